//! Layers that pick elements, by transfers: outputs equal what is picked, samples together equal samples alone, bytes and material are those announced, and
//! messages are uniform.

use lanner_primitives::{Prg, Ring, Share, parallel};
use lanner_protocol::Protocol;
use lanner_step::{Built, Client, Known, Samples, Server, SetUp, Sets, Spec, ValueType};
use lanner_testkit::check_bits;
use lanner_transfers::{ComputedAhead, RingSelect};
use lanner_wire::{pack_bits, unpack_bits};
use rand_core::Rng;

use crate::common::laws::{Case, Model};
use crate::common::{Party as End, constant, edge_share, inputs, rng, run, signed, unknown};

/// A layer with what it picks, as both parties run it.
struct Layer {
    spec: RingSelect,
    model: Model,
    /// Whether it is computed ahead of time.
    is_ahead: bool,
}

/// What a run made, and the messages of the server offline and of the client.
struct Outcome {
    outputs: [Share; 2],
    flips: Vec<u8>,
    differences: Vec<u8>,
    /// What the client sent online.
    online: Vec<u8>,
}

/// Rows with a single 1 each.
fn rows(inputs: usize, picked: &[usize]) -> Vec<i64> {
    picked.iter().flat_map(|at| (0..inputs).map(move |i| i64::from(i == *at))).collect()
}

impl Layer {
    /// The first and the last element are among those that are picked.
    fn new([inputs, outputs]: [usize; 2], bits: u32, rng: &mut Prg) -> Self {
        // As on two cores, whatever the machine.
        parallel::set_threads(2);
        let spec = RingSelect { elements: inputs, outputs, bits, samples: Samples::ONE };
        let mut picked: Vec<usize> =
            (0..outputs).map(|_| (rng.next_u64() % inputs as u64) as usize).collect();
        picked.iter_mut().zip([inputs - 1, 0]).for_each(|(at, end)| *at = end);
        let bias = signed(outputs, 1 << (bits - 2), rng);
        Self { spec, model: Model::new(rows(inputs, &picked), bias), is_ahead: false }
    }

    fn ahead(self) -> Self {
        Self { is_ahead: true, ..self }
    }

    fn with_samples(mut self, samples: usize) -> Self {
        self.spec = self.spec.of_samples(Samples::try_from(samples).unwrap()).unwrap();
        self
    }

    fn ring(&self) -> Ring {
        Ring::Pow2(self.spec.bits)
    }

    fn inputs(&self) -> usize {
        self.spec.samples.times(self.spec.elements)
    }

    /// The step that is held against the laws.
    fn case(&self) -> Case<'_> {
        if self.is_ahead {
            Case::new(ComputedAhead(self.spec.clone()), &self.model)
        } else {
            Case::new(self.spec.clone(), &self.model)
        }
    }

    fn built(&self) -> Box<dyn Built> {
        self.case().built()
    }

    fn run(&self, [client, server]: [&Share; 2], seed: u8) -> Outcome {
        let run = self.case().run([&[client], &[server]], seed);
        assert_eq!(run.sent[1][2], [], "the server says nothing online");
        let [differences, online] = if self.is_ahead {
            [run.only(0, 1, 0x74), run.only(0, 2, 0x44)]
        } else {
            [run.only(0, 2, 0x74), run.only(0, 2, 0x74)]
        };
        Outcome { flips: run.only(1, 1, 0x74), outputs: run.outputs, differences, online }
    }

    /// The ideal twin: the product with the weights in the clear, of each sample.
    fn expected(&self, shares: [&Share; 2]) -> Vec<i64> {
        let (input, ring) = (shares[0].reveal(shares[1]).unwrap(), self.ring());
        let of_row = |sample: &[i64], row: &[i64], bias: i64| {
            let terms = row.iter().zip(sample).map(|(w, x)| ring.embed(*x).wrapping_mul(*w as u64));
            ring.signed(terms.fold(ring.embed(bias), |sum, term| ring.add(sum, term)))
        };
        let of_sample = |sample| {
            let rows = self.model.weights.chunks(self.spec.elements).zip(&self.model.bias);
            rows.map(move |(row, bias)| of_row(sample, row, *bias))
        };
        input.chunks(self.spec.elements).flat_map(of_sample).collect()
    }

    fn check(&self, shares: [&Share; 2], seed: u8) {
        let [client, server] = self.run(shares, seed).outputs;
        assert_eq!(client.ring(), self.ring());
        assert_eq!(client.reveal(&server).unwrap(), self.expected(shares), "{:?}", self.spec);
    }
}

#[test]
fn shares_add_up_to_what_is_picked() {
    let sizes = [
        ([2, 5], 2, 1),
        ([2, 1], 62, 4),
        ([3, 40], 3, 4),
        ([30, 300], 26, 1),
        // More than are packed together, are hashed together, and are drawn together.
        ([30, 600], 24, 2),
        ([2, 4200], 16, 1),
        ([2, 4100], 20, 4),
        ([64, 70], 62, 4),
        ([1000, 9], 26, 4),
        ([1024, 6], 25, 1),
    ];
    for (number, (size, bits, samples)) in (0..).zip(sizes) {
        let rng = &mut rng(number);
        let layer = Layer::new(size, bits, rng).with_samples(samples);
        let shares = [0; 2].map(|_| edge_share(layer.ring(), layer.inputs(), rng));
        let layer = if number % 3 == 2 { layer.ahead() } else { layer };
        layer.check([&shares[0], &shares[1]], 20 + 2 * number);
    }
}

#[test]
fn random_layers_pick_what_they_say() {
    for number in 0..10 {
        let rng = &mut rng(100 + number);
        let mut below = |most: u64| 1 + (rng.next_u64() % most) as usize;
        let size = [1 + below(40), below(50)];
        let bits = 1 + below(61) as u32;
        let samples = 1 << (below(3) - 1);
        let layer = Layer::new(size, bits, rng).with_samples(samples);
        let shares = [0; 2].map(|_| edge_share(layer.ring(), layer.inputs(), rng));
        let layer = if number % 2 == 1 { layer.ahead() } else { layer };
        layer.check([&shares[0], &shares[1]], 2 * number);
    }
}

#[test]
fn samples_together_are_samples_alone() {
    let (random, samples) = (&mut rng(3), 4);
    let alone = Layer::new([5, 7], 24, random);
    let together = Layer::new([5, 7], 24, &mut rng(3)).with_samples(samples);
    let [client, server] = [0; 2].map(|_| edge_share(alone.ring(), together.inputs(), random));
    let [c, s] = together.run([&client, &server], 5).outputs;
    let part =
        |share: &Share, at: usize| Share::new(share.ring(), share.values()[at * 5..][..5].to_vec()).unwrap();
    let each = (0..samples).flat_map(|at| {
        let [c, s] = alone.run([&part(&client, at), &part(&server, at)], 10 + at as u8).outputs;
        c.reveal(&s).unwrap()
    });
    assert_eq!(c.reveal(&s).unwrap(), each.collect::<Vec<_>>());
    // One transfer serves all samples.
    assert_eq!(together.built().needs().unwrap(), alone.built().needs().unwrap());
}

/// Multiples of eight, so that no byte is padded.
const COUNT: usize = 1024;
const BITS: u32 = 24;

#[test]
fn messages_are_uniform_whatever_is_picked_and_of_what() {
    // A number without an element must not tell that nothing picks it.
    for inputs in [4, 5] {
        let width = usize::BITS - (inputs - 1_usize).leading_zeros();
        for (at, value) in [(0, 0), (1, -1), (inputs - 1, 1 << 23)] {
            let mut layer = Layer::new([inputs, COUNT], BITS, &mut rng(1));
            layer.model.weights = rows(inputs, &[at; COUNT]);
            let input = constant(layer.ring(), value, inputs);
            let runs = [30, 32].map(|seed| layer.run([&input, &input], seed));
            let flips: Vec<&[u8]> = runs.iter().map(|run| run.flips.as_slice()).collect();
            assert_eq!(check_bits(&flips, &[width as usize]), Ok(()), "{at} of {inputs}");
            // A server without random choices.
            let bare = pack_bits(&vec![at as u64; 2 * COUNT], width);
            assert!(check_bits(&[&bare], &[width as usize]).is_err(), "{at} of {inputs}");
            let differences: Vec<&[u8]> = runs.iter().map(|run| run.differences.as_slice()).collect();
            assert_eq!(check_bits(&differences, &[BITS as usize]), Ok(()), "{at} of {inputs}, {value}");
            // A client whose strings are zero sends differences of elements.
            let bare = vec![0; 2 * differences[0].len()];
            assert!(check_bits(&[&bare], &[BITS as usize]).is_err());
        }
    }
}

/// What the server has of each output masks one difference and no other: with its string, the others are still uniform.
#[test]
fn the_string_that_the_server_has_opens_one_difference() {
    let (inputs, ring) = (4, Ring::Pow2(BITS));
    let input = constant(ring, 0, inputs);
    for at in 0..inputs {
        let mut layer = Layer::new([inputs, COUNT], BITS, &mut rng(1));
        (layer.model.weights, layer.model.bias) = (rows(inputs, &[at; COUNT]), vec![0; COUNT]);
        let runs = [30, 32].map(|seed| layer.run([&input, &input], seed));
        let sent = |run: &Outcome| unpack_bits(&run.differences, COUNT * (inputs - 1), BITS).unwrap();
        let mut opened = vec![Vec::new(); inputs];
        for run in &runs {
            // Of inputs that are zero, k[0], whichever is chosen: its share less that is what the server takes of a difference.
            let of_server = run.outputs[1].values();
            for (output, differences) in sent(run).chunks(inputs - 1).enumerate() {
                let chosen = if at == 0 { 0 } else { differences[at - 1] };
                let own = ring.sub(of_server[output], chosen);
                for (i, difference) in differences.iter().enumerate() {
                    // k[0] - k[i], with k[0] known where it is the server's.
                    let known = if at == 0 { ring.sub(own, *difference) } else { ring.add(own, *difference) };
                    opened[i + 1].push(known);
                }
            }
        }
        for (i, values) in opened.iter().enumerate().skip(1) {
            let bits = pack_bits(values, BITS);
            assert_eq!(check_bits(&[&bits], &[BITS as usize]), Ok(()), "difference {i} with string {at}");
        }
    }
}

#[test]
fn strings_that_serve_two_inputs_tell_of_them() {
    let layer = Layer::new([3, COUNT], BITS, &mut rng(1));
    let ring = layer.ring();
    let server = constant(ring, 0, 3);
    let sent = |elements: [i64; 3]| {
        let run = layer.run([&Share::embed(ring, &elements), &server], 30);
        unpack_bits(&run.differences, 2 * COUNT, BITS).unwrap()
    };
    let twice = [sent([0; 3]), sent([5, 6, 8])];
    for (first, second) in twice[0].chunks(2).zip(twice[1].chunks(2)) {
        assert_eq!([0, 1].map(|i| ring.sub(second[i], first[i])), [1, 3]);
    }
}

#[test]
fn what_is_left_to_send_online_is_uniform() {
    let layer = Layer::new([1024, 2], BITS, &mut rng(1)).ahead();
    for value in [0, -1] {
        let input = constant(layer.ring(), value, 1024);
        let runs = [40, 50].map(|seed| layer.run([&input, &input], seed));
        let messages: Vec<&[u8]> = runs.iter().map(|run| run.online.as_slice()).collect();
        assert_eq!(check_bits(&messages, &[BITS as usize]), Ok(()), "{value}");
        // A client whose mask is zero, and one that takes a mask twice.
        let bare = pack_bits(constant(layer.ring(), value, 2048).values(), BITS);
        assert!(check_bits(&[&bare], &[BITS as usize]).is_err(), "{value}");
        let other = layer.run([&constant(layer.ring(), value + 1, 1024), &input], 40).online;
        assert!(check_bits(&[&messages[..], &[&other]].concat(), &[BITS as usize]).is_err(), "{value}");
    }
}

#[test]
fn shares_are_uniform_whatever_is_picked() {
    for samples in [1, 4] {
        let mut layer = Layer::new([3, COUNT], BITS, &mut rng(1)).with_samples(samples);
        layer.model.bias = vec![0; COUNT];
        let input = constant(layer.ring(), 0, layer.inputs());
        let runs: Vec<Outcome> = [30, 32].map(|seed| layer.run([&input, &input], seed)).into();
        for party in 0..2 {
            let shares: Vec<Vec<u8>> =
                runs.iter().map(|run| pack_bits(run.outputs[party].values(), BITS)).collect();
            let shares: Vec<&[u8]> = shares.iter().map(Vec::as_slice).collect();
            assert_eq!(check_bits(&shares, &[BITS as usize]), Ok(()), "{samples} samples");
        }
    }
}

#[test]
fn nobody_knows_a_share_ahead_and_other_sizes_are_refused() {
    let layer = Layer::new([4, 6], 24, &mut rng(1));
    assert_eq!(Protocol::from(layer.spec.clone()).name(), "ot.select");
    for known in [Known::NOBODY, Known::SERVER, Known::CLIENT] {
        let input = ValueType::shared(layer.ring(), 4, known);
        assert_eq!(layer.spec.infer(&[input]).unwrap(), ValueType::shared(layer.ring(), 6, Known::NOBODY));
    }
    let ahead = ComputedAhead(layer.spec.clone());
    let input = ValueType::shared(layer.ring(), 4, Known::SERVER);
    assert_eq!(ahead.infer(&[input]).unwrap(), ValueType::shared(layer.ring(), 6, Known::CLIENT));
    assert_eq!(Protocol::from(ahead).name(), "ot.select_ahead");
    assert!(layer.spec.infer(&[ValueType::shared(Ring::Pow2(25), 4, Known::SERVER)]).is_err());
    assert!(layer.spec.infer(&[ValueType::shared(layer.ring(), 6, Known::SERVER)]).is_err());
    let refused = |inputs, outputs, bits| {
        RingSelect { elements: inputs, outputs, bits, samples: Samples::ONE }
            .build(&Sets::new().unwrap())
            .is_err()
    };
    assert!(!refused(2, 1, 2) && !refused(1024, 1, 62));
    assert!(refused(1, 1, 24) && refused(0, 1, 24) && refused(1025, 1, 24) && refused(2, 0, 24));
    assert!(refused(2, 1, 1) && refused(2, 1, 63) && refused(2, usize::MAX, 24) && refused(2, 1 << 39, 24));
}

#[test]
fn rows_without_a_single_one_and_other_lengths_are_refused() {
    let layer = |weights: Vec<i64>, outputs: usize| {
        let layer = Layer::new([2, 2], 24, &mut rng(1));
        let model = Model::new(weights, vec![0; outputs]);
        layer.built().server("layer", &model).is_ok()
    };
    assert!(layer(vec![0, 1, 1, 0], 2));
    for weights in [vec![0, 0, 1, 0], vec![1, 1, 1, 0], vec![0, 2, 1, 0], vec![2, -1, 1, 0], vec![1, 0]] {
        assert!(!layer(weights, 2));
    }
}

/// 6,300 nodes over 30 columns, as an ensemble of 100 trees of depth 6 has them: processor time of each step, on one core.
#[test]
#[ignore = "a measurement"]
fn many_outputs_take_milliseconds() {
    const RUNS: u8 = 40;
    let layer = Layer::new([30, 6300], 24, &mut rng(1));
    parallel::set_threads(1);
    let sets = Sets::new().unwrap();
    let needs = layer.built().needs().unwrap();
    let set_up = SetUp::of(std::slice::from_ref(&needs), needs.transfers, &sets).unwrap();
    let client_step = layer.built().client("layer", &layer.model).unwrap();
    let server_step = layer.built().server("layer", &layer.model).unwrap();
    let input = edge_share(layer.ring(), 30, &mut rng(2));
    let milliseconds = || {
        let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        times.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e6
    };
    // On average: the system counts it some hundred times a second.
    let add = |times: &mut [f64; 3], at: [f64; 4]| {
        times.iter_mut().zip(at.windows(2)).for_each(|(time, at)| *time += (at[1] - at[0]) / f64::from(RUNS));
    };
    let mut channels = End::pair();
    let (client, server) = run(
        &mut channels,
        |end| {
            let mut client = Client::set_up(end, &set_up, rng(1)).unwrap();
            let mut times = [0.0; 3];
            for _ in 0..RUNS {
                let mut at = [milliseconds(); 4];
                let request = client_step.request(end, &mut client).unwrap();
                at[1] = milliseconds();
                let (material, _) = client_step.prepare(end, &mut client, request, &unknown(1)).unwrap();
                at[2] = milliseconds();
                client_step.online(end, material, &inputs(&[&input])).unwrap();
                at[3] = milliseconds();
                add(&mut times, at);
            }
            times
        },
        |end| {
            let mut server = Server::set_up(end, &set_up, rng(2)).unwrap();
            let mut times = [0.0; 3];
            for _ in 0..RUNS {
                let mut at = [milliseconds(); 4];
                let request = server_step.request(end, &mut server).unwrap();
                at[1] = milliseconds();
                let (material, _) = server_step.prepare(end, &mut server, request, &unknown(1)).unwrap();
                at[2] = milliseconds();
                server_step.online(end, material, &inputs(&[&input])).unwrap();
                at[3] = milliseconds();
                add(&mut times, at);
            }
            times
        },
    );
    println!("request, prepare, online: client {client:.2?} ms, server {server:.2?} ms");
}
