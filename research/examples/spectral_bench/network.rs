//! LoLa's networks, each way.

use lanner_bfv::{Ciphertext, ParameterSet};
use lanner_research::circulant::{
    BlockCirculant, Counted, EncryptedSlots, HConv, Hfc, Operations, Planes, Rows, StackedRows,
};
use lanner_ring::Modulus;
use lanner_spectral::{Kernel, Program, Search};
use lanner_step::Convolution;
use lanner_step::Samples;

use crate::layer::{Layer, dense};
use crate::setting::{Limbs, Measured, Setting};
use crate::{T, weights_file};

/// A layer with its weights; those of a square are none.
pub(crate) struct Weighted {
    pub(crate) layer: Layer,
    pub(crate) shape: Convolution,
    pub(crate) weights: Vec<i64>,
}

/// Rows of LoLa's replaced layer that are run, about.
const SAMPLE: usize = 16;

/// The clear twin of a network: shapes, with squares between them, and weights.
struct Network {
    shapes: Vec<Convolution>,
    weights: Vec<Vec<i64>>,
    input: Vec<u64>,
    block: usize,
}

impl Network {
    /// With trained weights, or random ones that are circulant in the second layer.
    fn new(shapes: Vec<Convolution>, block: usize) -> Self {
        let input = numbers(shapes[0].inputs(), 9, 7).iter().map(|x| (x + 7) as u64).collect();
        if let Some(weights) = trained(&shapes) {
            return Self { shapes, weights, input, block };
        }
        let weight = |(number, shape): (usize, &Convolution)| {
            let dense = numbers(shape.weights(), number as u64 + 1, 15);
            if number == 1 { circulant(shape, &dense, block) } else { dense }
        };
        let weights = shapes.iter().enumerate().map(weight).collect();
        Self { shapes, weights, input, block }
    }

    fn found(&self) -> BlockCirculant {
        let found = BlockCirculant::largest(&self.shapes[1], &self.weights[1]).unwrap();
        assert_eq!(found.block(), self.block, "blocks are found in dense weights");
        found
    }

    /// A layer for each of these, a square standing before the second and the third.
    fn weighted(&self, layers: [Layer; 3]) -> Vec<Weighted> {
        let layers = layers.into_iter().zip(self.shapes.iter().zip(&self.weights));
        let mut all: Vec<Weighted> = Vec::new();
        for (layer, (shape, weights)) in layers {
            if !all.is_empty() {
                let shape = Convolution::fully_connected(shape.inputs(), shape.inputs());
                all.push(Weighted { layer: Layer::Square, shape, weights: Vec::new() });
            }
            all.push(Weighted { layer, shape: shape.clone(), weights: weights.clone() });
        }
        all
    }

    /// By the programs of mode `spectral`.
    fn programs(&self, set: ParameterSet) -> Vec<Weighted> {
        let programs = Program::chain(&self.shapes, set.degree(), &mut Search::default()).unwrap();
        let layers: Vec<_> = programs.into_iter().map(Box::new).map(Layer::Program).collect();
        self.weighted(layers.try_into().ok().unwrap())
    }

    /// What the places of the first layer's kernel read, in the slots of outputs.
    fn planes(&self, layer: &Planes, places: &[usize]) -> Vec<Vec<u64>> {
        let shape = &self.shapes[0];
        let [height, width] = shape.output_image().unwrap();
        let maps = if layer.maps == 1 { shape.out_channels } else { 1 };
        let source = |axis: usize, output: usize, tap: usize| {
            let padded = output * shape.strides[axis] + tap;
            padded.checked_sub(shape.pads[axis]).filter(|pixel| *pixel < shape.image[axis])
        };
        let of_tap = |tap: usize| {
            let of_kernel = shape.kernel[0] * shape.kernel[1];
            let (channel, tap) = (tap / of_kernel, tap % of_kernel);
            let mut slots = vec![0; layer.slots];
            for (element, slot) in places[..maps * height * width].iter().enumerate() {
                let position = element % (height * width);
                let y = source(0, position / width, tap / shape.kernel[1]);
                let x = source(1, position % width, tap % shape.kernel[1]);
                if let (Some(y), Some(x)) = (y, x) {
                    slots[*slot] = self.input[(channel * shape.image[0] + y) * shape.image[1] + x];
                }
            }
            slots
        };
        (0..layer.taps).map(of_tap).collect()
    }
}

/// LoLa's network for MNIST.
pub(crate) fn mnist(repeats: usize) {
    let conv = Convolution { pads: [1, 1, 0, 0], ..convolution([1, 5], 28, 5, 2) };
    let dense =
        [[845, 100], [100, 10]].map(|[inputs, outputs]| Convolution::fully_connected(inputs, outputs));
    let network = Network::new([&[conv], dense.as_slice()].concat(), 8);
    let interleaved =
        |places: Vec<usize>, set: ParameterSet| Layer::Rows(Rows::new(&places, set.degree()).unwrap());

    let lola = |set: ParameterSet| {
        let slots = set.degree();
        // 8 copies fill a row at N = 16384.
        let stacked = StackedRows::new(845, 100, 8, slots).unwrap();
        let places = (0..100).map(|element| stacked.to(element)).collect();
        let planes = Planes { taps: 25, maps: 5, pitch: 169, slots };
        network.weighted([
            Layer::Planes(planes, (0..845).collect()),
            Layer::Stacked(stacked),
            interleaved(places, set),
        ])
    };
    run_network("lola", &network, &lola, repeats);

    let falcon = |set: ParameterSet| {
        let slots = set.degree();
        let hfc = Hfc::new(845, 100, 8, slots).unwrap();
        let places = (0..100).map(|element| hfc.to(element).1).collect();
        let planes = Planes { taps: 25, maps: 1, pitch: 0, slots };
        let from = (0..845).map(|element| hfc.from(element)).collect();
        network.weighted([
            Layer::Planes(planes, from),
            Layer::Hfc(hfc, network.found()),
            interleaved(places, set),
        ])
    };
    run_network("falcon", &network, &falcon, repeats);

    let default = |set: ParameterSet| network.programs(set);
    run_network("default", &network, &default, repeats);
}

/// The layers of a way with the first set of parameters that they fit.
fn planned(way: &dyn Fn(ParameterSet) -> Vec<Weighted>) -> (Vec<Weighted>, Limbs) {
    let fit = |set| {
        let layers = way(set);
        Limbs::plan(&layers, set).map(|limbs| (layers, limbs))
    };
    [ParameterSet::L, ParameterSet::LPrime].into_iter().find_map(fit).unwrap()
}

fn run_network(
    way: &'static str,
    network: &Network,
    layers: &dyn Fn(ParameterSet) -> Vec<Weighted>,
    repeats: usize,
) {
    let (layers, limbs) = planned(layers);
    let with_limbs: Vec<_> =
        layers.iter().zip(&limbs.of_layers).map(|(layer, limbs)| (&layer.layer, *limbs)).collect();
    let mut setting = Setting::new(way, limbs.set, &with_limbs, repeats);
    let slots = match &layers[0].layer {
        Layer::Planes(planes, places) => network.planes(planes, places),
        Layer::Program(program) => program.from().pack(Samples::ONE, &network.input),
        _ => unreachable!("another first layer"),
    };
    let mut state = setting.encrypt(&slots, limbs.of_layers[0]);
    let mut clear = network.input.clone();
    for (number, layer) in layers.iter().enumerate() {
        let [before, behind] = [limbs.of_layers[number], limbs.of_layers[number + 1]];
        clear = layer.expected(&clear);
        state = run_layer(&mut setting, layer, &state, [before, behind]);
        if !matches!(layer.layer, Layer::Square) {
            check(&setting, &layer.layer, &state, &clear);
        }
    }
    setting.finish();
}

/// Runs a layer and drops the limbs that the plan does; squares drop theirs before they are relinearized.
fn run_layer(
    setting: &mut Setting,
    weighted: &Weighted,
    inputs: &[Ciphertext],
    [before, behind]: [usize; 2],
) -> Vec<Ciphertext> {
    let outputs = weighted.shape.outputs().unwrap();
    let (layer, formula) = (&weighted.layer, weighted.layer.operations(outputs));
    let down = |x: &Ciphertext| setting.evaluator.mod_switch_to(x, behind).unwrap();
    let dropped = |made: Vec<Ciphertext>| (made.iter().map(down).collect::<Vec<_>>(), made);
    let ((results, made), milliseconds) = match layer {
        Layer::Square => setting.time(|| {
            let (modulus, keys) = (setting.encoder.modulus(), &setting.keys);
            dropped(vec![setting.evaluator.square_to(&inputs[0], modulus, keys, behind).unwrap()])
        }),
        Layer::Program(program) => {
            let bias = vec![0; outputs];
            let encoders = std::slice::from_ref(&setting.encoder);
            let kernel = Kernel::new(
                program,
                Samples::ONE,
                weighted.weights[..].into(),
                &bias,
                &setting.parameters,
                before,
                encoders,
            )
            .unwrap();
            let inputs = [inputs.to_vec()];
            let apply = || kernel.apply(&setting.evaluator, &inputs, &setting.keys).unwrap().remove(0);
            setting.time(|| dropped(apply()))
        }
        _ => {
            let scheme = EncryptedSlots::new(&setting.encoder, &setting.keys, before);
            let factors = layer.prepare(&scheme, &weighted.shape, &weighted.weights);
            setting.time(|| {
                let mut counted = Counted::new(&scheme);
                let results = layer.apply(&mut counted, inputs, &factors);
                assert_eq!(counted.operations(), formula, "{}", layer.name());
                dropped(results)
            })
        }
    };
    let measured = Measured { name: layer.name(), operations: formula, limbs: before, times: 1.0 };
    setting.report(&measured, milliseconds, &made[0]);
    results
}

fn check(setting: &Setting, layer: &Layer, results: &[Ciphertext], expected: &[u64]) {
    let slots: Vec<_> = results.iter().map(|result| setting.decrypt(result)).collect();
    let got: Vec<u64> = match layer {
        Layer::Program(program) => program.to().unpack(&slots),
        _ => (0..expected.len()).map(|element| layer.to(element)).map(|(at, slot)| slots[at][slot]).collect(),
    };
    assert!(got == expected, "{}: a wrong result", layer.name());
}

impl Weighted {
    /// Ciphertexts of its results, if it is the last.
    pub(crate) fn responses(&self) -> usize {
        if matches!(self.layer, Layer::Rows(_)) { self.shape.out_channels } else { 1 }
    }

    /// The layer in the clear.
    fn expected(&self, input: &[u64]) -> Vec<u64> {
        let modulus = Modulus::new(T).unwrap();
        if matches!(self.layer, Layer::Square) {
            return input.iter().map(|x| modulus.mul(*x, *x)).collect();
        }
        let input: Vec<i64> = input.iter().map(|x| *x as i64).collect();
        self.shape.apply(&self.weights, &input).unwrap().iter().map(|y| modulus.reduce_signed(*y)).collect()
    }
}

/// The replaced layer of LoLa's network for CIFAR-10.
pub(crate) fn cifar(repeats: usize) {
    // With a pixel of padding all around, 32 pixels give 14 windows of 8.
    let first = Convolution { pads: [1; 4], ..convolution([3, 83], 32, 8, 2) };
    let shapes = vec![first, convolution([83, 163], 14, 6, 2), Convolution::fully_connected(4075, 10)];
    let network = Network::new(shapes, 16);
    let input: Vec<u64> =
        numbers(network.shapes[1].inputs(), 11, 1 << 20).iter().map(|x| x.unsigned_abs()).collect();
    let planes = |slots| Planes { taps: 192, maps: 1, pitch: 0, slots };
    let rows = |places: Vec<usize>, set: ParameterSet| Layer::Rows(Rows::new(&places, set.degree()).unwrap());

    let falcon = |set: ParameterSet| {
        // One ciphertext holds the input from N = 32768 on; set L has no room for the network, either.
        let hconv = HConv::new(&network.shapes[1], 16, set.degree()).unwrap();
        let from = (0..16268).map(|element| hconv.from(element).1).collect();
        let places = (0..4075).map(|element| hconv.to(element).1).collect();
        let layers = [
            Layer::Planes(planes(set.degree()), from),
            Layer::HConv(hconv, network.found()),
            rows(places, set),
        ];
        network.weighted(layers)
    };
    run_second("falcon", &falcon, &input, repeats);
    let lola = |set: ParameterSet| {
        let stacked = StackedRows::new(16268, 4075, 1, set.degree()).unwrap();
        let places = (0..4075).map(|element| stacked.to(element)).collect();
        network.weighted([
            Layer::Planes(planes(set.degree()), (0..16268).collect()),
            Layer::Stacked(stacked),
            rows(places, set),
        ])
    };
    run_second("lola", &lola, &input, repeats);

    let default = |set: ParameterSet| network.programs(set);
    run_second("default", &default, &input, repeats);
}

/// The third step alone, the second linear layer, on a fresh encryption.
fn run_second(
    way: &'static str,
    layers: &dyn Fn(ParameterSet) -> Vec<Weighted>,
    input: &[u64],
    repeats: usize,
) {
    let (layers, limbs) = planned(layers);
    let (second, [before, behind]) = (&layers[2], [limbs.of_layers[2], limbs.of_layers[3]]);
    let mut setting = Setting::new(way, limbs.set, &[(&second.layer, before)], repeats);
    let mut slots = vec![vec![0; limbs.set.degree()]];
    match &second.layer {
        Layer::HConv(layer, _) => {
            slots.resize(layer.inputs(), slots[0].clone());
            for (element, x) in input.iter().enumerate() {
                let (ciphertext, slot) = layer.from(element);
                slots[ciphertext][slot] = *x;
            }
        }
        Layer::Program(program) => slots = program.from().pack(Samples::ONE, input),
        _ => slots[0][..input.len()].copy_from_slice(input),
    }
    let state = setting.encrypt(&slots, before);
    let expected = second.expected(input);
    if let Layer::Stacked(layer) = &second.layer {
        run_sample(&mut setting, layer, second, &state[0], &expected, [before, behind]);
    } else {
        let results = run_layer(&mut setting, second, &state, [before, behind]);
        check(&setting, &second.layer, &results, &expected);
    }
}

/// Some of a dense layer's rows. Each is masked for itself, and takes as long as any other.
fn run_sample(
    setting: &mut Setting,
    layer: &StackedRows,
    weighted: &Weighted,
    input: &Ciphertext,
    expected: &[u64],
    [before, behind]: [usize; 2],
) {
    let scheme = EncryptedSlots::new(&setting.encoder, &setting.keys, before);
    let residues = dense(&weighted.shape, &weighted.weights);
    let groups: Vec<usize> = (0..layer.groups()).step_by(layer.groups() / SAMPLE).collect();
    let factors: Vec<_> =
        groups.iter().map(|group| layer.prepare(&scheme, *group, &residues).unwrap()).collect();
    let ((sum, made), milliseconds) = setting.time(|| {
        let mut counted = Counted::new(&scheme);
        let stacked = layer.stacked(&mut counted, input).unwrap();
        let group = |counted: &mut Counted<'_, _>, at: usize| {
            layer.group(counted, &stacked, groups[at], &factors[at])
        };
        let sum = counted.sum(groups.len(), group).unwrap();
        // Each group takes a share of all operations; between them are additions.
        let row = layer.operations() + Operations { additions: 1, ..Operations::NONE };
        let executed = counted.operations() + Operations { additions: 1, ..Operations::NONE };
        assert_eq!(executed * layer.groups(), row * groups.len(), "a sample of {} rows", groups.len());
        (setting.evaluator.mod_switch_to(&sum, behind).unwrap(), sum)
    });
    let slots = setting.decrypt(&sum);
    for (slot, value) in slots.iter().enumerate() {
        let wanted = if groups.contains(&slot) { expected[slot] } else { 0 };
        assert_eq!(*value, wanted, "slot {slot} of a sample of rows");
    }
    let times = layer.groups() as f64 / groups.len() as f64;
    let operations = layer.operations();
    let measured = Measured { name: "dense vector - row major", operations, limbs: before, times };
    setting.report(&measured, milliseconds, &made);
}

fn convolution(channels: [usize; 2], image: usize, kernel: usize, stride: usize) -> Convolution {
    Convolution {
        in_channels: channels[0],
        out_channels: channels[1],
        image: [image; 2],
        kernel: [kernel; 2],
        strides: [stride; 2],
        pads: [0; 4],
        dilations: [1, 1],
        groups: 1,
    }
}

/// Numbers of a range of either sign.
fn numbers(count: usize, seed: u64, largest: i64) -> Vec<i64> {
    let mut state = seed.wrapping_mul(2) + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64 % (2 * largest + 1) - largest
    };
    (0..count).map(|_| next()).collect()
}

/// The weights of a file of single-precision numbers, layer by layer, in steps of a 127th of each layer's largest.
fn trained(shapes: &[Convolution]) -> Option<Vec<Vec<i64>>> {
    let bytes = std::fs::read(weights_file()?).unwrap();
    let mut all = bytes.chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().unwrap()));
    let mut layer = |shape: &Convolution| {
        let weights: Vec<f32> = all.by_ref().take(shape.weights()).collect();
        assert_eq!(weights.len(), shape.weights(), "a file of another network's weights");
        let largest = weights.iter().fold(0.0_f32, |largest, weight| largest.max(weight.abs()));
        weights.iter().map(|weight| (weight / largest * 127.0).round() as i64).collect()
    };
    let weights = shapes.iter().map(&mut layer).collect();
    assert!(all.next().is_none(), "a file of another network's weights");
    Some(weights)
}

/// Each block's first column, or row, repeated along its diagonals.
fn circulant(shape: &Convolution, dense: &[i64], block: usize) -> Vec<i64> {
    let taps = shape.kernel[0] * shape.kernel[1];
    let blocks = shape.in_channels.div_ceil(block);
    let weight = |place: usize| {
        let (a, b, tap) = (place / taps / shape.in_channels, place / taps % shape.in_channels, place % taps);
        let difference = (a + block - b % block) % block;
        let free = ((a / block * blocks + b / block) * taps + tap) * block + difference;
        dense[free % dense.len()]
    };
    (0..shape.weights()).map(weight).collect()
}
