//! Every layer on any scheme, beside its naive twin and its formula.

use lanner_research::circulant::{
    BlockCirculant, Counted, Digit, HConv, Hdft, Hfc, Operations, Planes, Rows, SlotScheme, StackedRows,
};
use lanner_ring::{Dft, Modulus};
use lanner_step::Convolution;
use proptest::prelude::*;

use crate::circulant::clear::ClearSlots;

/// How a test encrypts and decrypts slots.
pub(crate) trait Client<S: SlotScheme> {
    fn encrypt(&mut self, slots: &[u64]) -> S::Ciphertext;
    fn decrypt(&self, ciphertext: &S::Ciphertext) -> Vec<u64>;
}

/// In the clear there is nothing to do.
pub(crate) struct Nobody;

impl Client<ClearSlots> for Nobody {
    fn encrypt(&mut self, slots: &[u64]) -> Vec<u64> {
        slots.to_vec()
    }

    fn decrypt(&self, ciphertext: &Vec<u64>) -> Vec<u64> {
        ciphertext.clone()
    }
}

/// Numbers of a range of either sign, the same for the same seed.
pub(crate) fn numbers(count: usize, seed: u64, largest: i64) -> Vec<i64> {
    let mut state = seed.wrapping_mul(2) + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64 % (2 * largest + 1) - largest
    };
    (0..count).map(|_| next()).collect()
}

/// Dense weights that are circulant in blocks over channels.
pub(crate) fn circulant(shape: &Convolution, block: usize, seed: u64, largest: i64) -> Vec<i64> {
    let taps = shape.kernel[0] * shape.kernel[1];
    let blocks = [shape.out_channels, shape.in_channels].map(|side| side.div_ceil(block));
    let free = numbers(blocks[0] * blocks[1] * block * taps, seed, largest);
    let weight = |place: usize| {
        let (a, b, tap) = (place / taps / shape.in_channels, place / taps % shape.in_channels, place % taps);
        let difference = (a as isize - b as isize).rem_euclid(block as isize) as usize;
        free[((a / block * blocks[1] + b / block) * taps + tap) * block + difference]
    };
    (0..shape.weights()).map(weight).collect()
}

/// The naive twin: the dense layer, reduced.
pub(crate) fn expected(shape: &Convolution, weights: &[i64], input: &[i64], t: u64) -> Vec<u64> {
    residues(&shape.apply(weights, input).unwrap(), t)
}

pub(crate) fn residues(values: &[i64], t: u64) -> Vec<u64> {
    values.iter().map(|value| value.rem_euclid(t as i64) as u64).collect()
}

/// Slots with values at places, all others zero.
pub(crate) fn placed(values: &[u64], place: impl Fn(usize) -> usize, slots: usize) -> Vec<u64> {
    let mut all = vec![0; slots];
    values.iter().enumerate().for_each(|(element, value)| {
        assert_eq!(std::mem::replace(&mut all[place(element)], *value), 0, "two elements in a slot");
    });
    all
}

pub(crate) fn transform(t: u64, block: usize) -> Dft {
    Dft::new(&Modulus::new(t).unwrap(), block).unwrap()
}

pub(crate) fn check_hfc<S: SlotScheme>(
    scheme: &S,
    client: &mut impl Client<S>,
    layer: &Hfc,
    [inputs, outputs, block, slots]: [usize; 4],
    t: u64,
) {
    let shape = Convolution::fully_connected(inputs, outputs);
    let weights = circulant(&shape, block, 3, 1000);
    let input = numbers(inputs, 5, 1000);
    let found = BlockCirculant::of(&shape, &weights, block).unwrap();
    let factors = layer.prepare(scheme, &transform(t, block), &found).unwrap();
    let mut counted = Counted::new(scheme);
    let x = client.encrypt(&placed(&residues(&input, t), |element| layer.from(element), slots));
    let results = layer.apply(&mut counted, &x, &factors).unwrap();
    assert_eq!(counted.operations(), layer.operations());
    let results: Vec<_> = results.iter().map(|result| client.decrypt(result)).collect();
    let at = |element| {
        let (ciphertext, slot) = layer.to(element);
        results[ciphertext][slot]
    };
    let got: Vec<u64> = (0..outputs).map(at).collect();
    assert_eq!(got, expected(&shape, &weights, &input, t), "{inputs} -> {outputs}, k = {block}");
}

pub(crate) fn check_hconv<S: SlotScheme>(
    scheme: &S,
    client: &mut impl Client<S>,
    shape: &Convolution,
    [block, slots]: [usize; 2],
    t: u64,
) {
    let layer = HConv::new(shape, block, slots).unwrap();
    let weights = circulant(shape, block, 3, 1000);
    let input = numbers(shape.inputs(), 5, 1000);
    let found = BlockCirculant::of(shape, &weights, block).unwrap();
    let factors = layer.prepare(scheme, &transform(t, block), &found).unwrap();
    let mut counted = Counted::new(scheme);
    let mut x = vec![vec![0; slots]; layer.inputs()];
    for (element, value) in residues(&input, t).into_iter().enumerate() {
        let (ciphertext, slot) = layer.from(element);
        assert_eq!(std::mem::replace(&mut x[ciphertext][slot], value), 0, "two elements in a slot");
    }
    let x: Vec<_> = x.iter().map(|slots| client.encrypt(slots)).collect();
    let results = layer.apply(&mut counted, &x, &factors).unwrap();
    assert_eq!(counted.operations(), layer.operations());
    let results: Vec<_> = results.iter().map(|result| client.decrypt(result)).collect();
    assert_eq!(results.len(), layer.outputs());
    let places: Vec<_> = (0..shape.outputs().unwrap()).map(|element| layer.to(element)).collect();
    let got: Vec<u64> = places.iter().map(|(ciphertext, slot)| results[*ciphertext][*slot]).collect();
    assert_eq!(got, expected(shape, &weights, &input, t), "{shape:?}, k = {block}");
}

pub(crate) fn convolution(
    channels: [usize; 2],
    image: [usize; 2],
    kernel: [usize; 2],
    strides: [usize; 2],
) -> Convolution {
    Convolution {
        in_channels: channels[0],
        out_channels: channels[1],
        image,
        kernel,
        strides,
        pads: [0; 4],
        dilations: [1, 1],
        groups: 1,
    }
}

pub(crate) fn check_stacked<S: SlotScheme>(
    scheme: &S,
    client: &mut impl Client<S>,
    [inputs, outputs, copies, slots]: [usize; 4],
    t: u64,
) {
    let layer = StackedRows::new(inputs, outputs, copies, slots).unwrap();
    let shape = Convolution::fully_connected(inputs, outputs);
    let (weights, input) = (numbers(shape.weights(), 3, 1000), numbers(inputs, 5, 1000));
    let of = residues(&weights, t);
    let factors: Vec<_> =
        (0..layer.groups()).map(|group| layer.prepare(scheme, group, &of).unwrap()).collect();
    let mut counted = Counted::new(scheme);
    let x = client.encrypt(&placed(&residues(&input, t), |element| element, slots));
    let result = layer.apply(&mut counted, &x, &factors).unwrap();
    assert_eq!(counted.operations(), layer.operations());
    let wanted = placed(&expected(&shape, &weights, &input, t), |element| layer.to(element), slots);
    assert_eq!(client.decrypt(&result), wanted, "{inputs} -> {outputs}, {copies} copies");
}

pub(crate) fn check_rows<S: SlotScheme>(
    scheme: &S,
    client: &mut impl Client<S>,
    places: &[usize],
    outputs: usize,
    slots: usize,
    t: u64,
) {
    let layer = Rows::new(places, slots).unwrap();
    let shape = Convolution::fully_connected(places.len(), outputs);
    let (weights, input) = (numbers(shape.weights(), 3, 1000), numbers(places.len(), 5, 1000));
    let of = residues(&weights, t);
    let factors: Vec<_> = of.chunks(places.len()).map(|row| layer.prepare(scheme, row).unwrap()).collect();
    let mut counted = Counted::new(scheme);
    // Other slots hold anything.
    let mut slots_of_x = residues(&numbers(slots, 7, 1000), t);
    residues(&input, t).iter().zip(places).for_each(|(x, place)| slots_of_x[*place] = *x);
    let results = layer.apply(&mut counted, &client.encrypt(&slots_of_x), &factors).unwrap();
    assert_eq!(counted.operations(), layer.operations(outputs));
    let got: Vec<u64> = results.iter().map(|result| client.decrypt(result)[layer.to()]).collect();
    assert_eq!(got, expected(&shape, &weights, &input, t), "{places:?}");
}

const T: u64 = 65_537;

#[test]
fn transforms_of_stacked_blocks_are_the_transform_and_its_inverse() {
    let slots = 256;
    let scheme = ClearSlots::new(T, slots);
    for block in [2, 4, 8, 16] {
        // Elements side by side as the topmost digit, copies below.
        let elements = Digit { stride: slots / block, size: block };
        let copies = Digit { stride: 1, size: slots / block };
        let forward = Hdft { slots, elements, copies, first: 0, inverse: false };
        let transform = transform(T, block);
        let x = residues(&numbers(block, 3, 1000), T);
        let mut truth = x.clone();
        transform.forward(&mut truth);
        for inverse in [false, true] {
            let hdft = Hdft { inverse, ..forward };
            let (input, wanted) = if inverse { (&truth, &x) } else { (&x, &truth) };
            let stacked: Vec<u64> = (0..slots).map(|slot| input[elements.of(slot)]).collect();
            let factor = hdft.twiddles(&transform, |_| true);
            let mut counted = Counted::new(&scheme);
            let got = hdft.apply(&mut counted, &stacked, &factor).unwrap();
            let log = block.ilog2() as usize;
            let paper = Operations { rotations: log, additions: log, multiplications: 1, ..Operations::NONE };
            assert_eq!((counted.operations(), hdft.operations()), (paper, paper));
            // Rotations close a circle: every slot is right.
            let expected = |slot| wanted.get(copies.of(slot)).copied().unwrap_or(0);
            assert_eq!(got, (0..slots).map(expected).collect::<Vec<_>>(), "k = {block}");
        }
    }
}

#[test]
fn the_replaced_layer_of_lolas_network_for_mnist_takes_17_rotations_and_lolas_145() {
    for (slots, groups, stacking) in [(16384, 16, 4), (32768, 32, 5)] {
        let layer = Hfc::new(845, 100, 8, slots).unwrap();
        assert!(groups >= 100_usize.div_ceil(8));
        let operations = Operations {
            rotations: stacking + 3 + 7 + 3,
            additions: stacking + 3 + 7 + 3,
            multiplications: 3,
            ..Operations::NONE
        };
        assert_eq!((layer.operations(), layer.ciphertexts()), (operations, 1));
    }
    // 8 copies in one row, 13 groups: 3 + 13 * 10 + 12.
    let layer = StackedRows::new(845, 100, 8, 16384).unwrap();
    let operations = Operations { rotations: 145, additions: 145, multiplications: 26, ..Operations::NONE };
    assert_eq!(layer.operations(), operations);
    let interleaved: Vec<_> = (0..100).map(|element| layer.to(element)).collect();
    assert_eq!(Rows::new(&interleaved, 16384).unwrap().operations(10).rotations, 70);
}

#[test]
fn the_replaced_layer_of_lolas_network_for_cifar_takes_1375_rotations_and_lolas_57050() {
    let shape = convolution([83, 163], [14, 14], [6, 6], [2, 2]);
    let layer = HConv::new(&shape, 16, 32768).unwrap();
    let operations = Operations {
        // HDFT for each of 16 values; 9 partitions; outputs of 16 channels of a block.
        rotations: 16 * 4 + 9 * 16 * (3 + 3 + 3) + 15,
        additions: 16 * 4 + 9 * 16 * (3 + 3 + 3) + 16 * (9 * 16 - 1) + 15,
        multiplications: 16 + 9 * 16 + 16 * 9 * 16,
        ..Operations::NONE
    };
    assert_eq!((layer.operations(), layer.inputs(), layer.outputs()), (operations, 1, 1));
    // One copy, in two rows or in one: 14 rotations for each of 4075 outputs, or 13 and the exchange of rows.
    let operations = Operations {
        rotations: 4075 * 14,
        additions: 4075 * 14 + 4074,
        multiplications: 2 * 4075,
        ..Operations::NONE
    };
    for slots in [16384, 32768] {
        let layer = StackedRows::new(83 * 196, 163 * 25, 1, slots).unwrap();
        assert_eq!(layer.operations(), operations);
    }
}

#[test]
fn convolutions_with_padding_dilation_or_groups_are_refused() {
    let shape = convolution([4, 4], [5, 5], [3, 3], [1, 1]);
    HConv::new(&shape, 2, 64).unwrap();
    for refused in [
        Convolution { pads: [1, 0, 0, 0], ..shape.clone() },
        Convolution { dilations: [1, 2], ..shape.clone() },
        Convolution { groups: 2, ..shape.clone() },
        Convolution { kernel: [6, 6], ..shape.clone() },
    ] {
        assert!(HConv::new(&refused, 2, 64).is_err(), "{refused:?}");
    }
    assert!(HConv::new(&shape, 4, 64).is_err(), "four planes of 32 slots");
    assert!(HConv::new(&shape, 3, 1024).is_err(), "no power of two");
}

proptest! {
    #[test]
    fn circulant_convolutions_equal_dense_products(
        channels in [1_usize..20, 1_usize..20],
        image in [1_usize..8, 1_usize..8],
        kernel in [1_usize..8, 1_usize..8],
        strides in [1_usize..4, 1_usize..4],
        bits in 1_u32..3,
        wider in 0_u32..4,
    ) {
        let kernel = [0, 1].map(|axis| kernel[axis].min(image[axis]));
        let shape = convolution(channels, image, kernel, strides);
        let block = 1 << bits;
        let slots = (block * (image[0] * image[1]).next_power_of_two()) << wider;
        check_hconv(&ClearSlots::new(T, slots), &mut Nobody, &shape, [block, slots], T);
    }

    #[test]
    fn circulant_layers_equal_dense_products(
        inputs in 1_usize..70,
        outputs in 1_usize..70,
        bits in 1_u32..4,
        wider in 0_u32..3,
    ) {
        let block = 1 << bits;
        let region = (inputs.div_ceil(block) + block - 1).next_power_of_two();
        let slots = (block * block * region) << wider;
        let layer = Hfc::new(inputs, outputs, block, slots).unwrap();
        let scheme = ClearSlots::new(T, slots);
        check_hfc(&scheme, &mut Nobody, &layer, [inputs, outputs, block, slots], T);
        // l ciphertexts, as many as hold the output blocks.
        let blocks = outputs.div_ceil(block);
        prop_assert_eq!(layer.ciphertexts(), blocks.div_ceil(slots / (block * region)));
        // One slot less than the copies need is too few.
        prop_assert!(Hfc::new(inputs, outputs, block, (block * block * region) / 2).is_err());
    }

    #[test]
    fn lolas_stacked_layers_equal_dense_products(
        inputs in 1_usize..40,
        outputs in 1_usize..40,
        bits in 0_u32..3,
        wider in 0_u32..3,
    ) {
        let (copies, period) = (1 << bits, inputs.next_power_of_two());
        let slots = ((copies * period) << wider).max(4);
        let fits = outputs.div_ceil(copies) <= period;
        prop_assert_eq!(StackedRows::new(inputs, outputs, copies, slots).is_ok(), fits);
        if fits {
            check_stacked(&ClearSlots::new(T, slots), &mut Nobody, [inputs, outputs, copies, slots], T);
        }
    }

    #[test]
    fn planes_equal_convolutions_map_by_map(
        maps in 1_usize..5,
        channels in 1_usize..3,
        kernel in 1_usize..3,
        stride in 1_usize..3,
    ) {
        let (image, slots) = (5, 256);
        let shape = convolution([channels, maps], [image; 2], [kernel; 2], [stride; 2]);
        let size = shape.output_image().unwrap()[0];
        let (weights, input) = (numbers(shape.weights(), 3, 1000), numbers(shape.inputs(), 5, 1000));
        let taps = channels * kernel * kernel;
        let layer = Planes { taps, maps, pitch: size * size, slots };
        let scheme = ClearSlots::new(T, slots);
        let of_tap = |tap: usize| {
            let (channel, row, column) = (tap / kernel / kernel, tap / kernel % kernel, tap % kernel);
            let pixel = |p: usize| {
                let (y, x) = (p / size * stride + row, p % size * stride + column);
                input[(channel * image + y) * image + x]
            };
            let values: Vec<_> = (0..size * size).map(pixel).collect();
            placed(&residues(&values, T), |position| position, slots)
        };
        let inputs: Vec<_> = (0..taps).map(of_tap).collect();
        let factors: Vec<_> = residues(&weights, T).iter().map(|weight| vec![*weight; slots]).collect();
        let mut counted = Counted::new(&scheme);
        let got = layer.apply(&mut counted, &inputs, &factors).unwrap();
        prop_assert_eq!(counted.operations(), layer.operations());
        prop_assert_eq!(layer.operations().rotations, maps - 1);
        prop_assert_eq!(got, placed(&expected(&shape, &weights, &input, T), |element| element, slots));
    }

    #[test]
    fn rows_equal_dense_products_wherever_inputs_lie(
        places in proptest::collection::hash_set(0_usize..128, 1..40),
        outputs in 1_usize..6,
    ) {
        let places: Vec<_> = places.into_iter().collect();
        check_rows(&ClearSlots::new(T, 128), &mut Nobody, &places, outputs, 128, T);
    }
}
