//! The packed layers over clear slots equal the convolution itself, with the operation counts of the paper's tables.
#![allow(clippy::unwrap_used)]

use lanner_protocol::linear::Convolution;
use lanner_protocol::linear::gazelle::packing::{Packing, Rotation};
use lanner_protocol::linear::gazelle::scheme::{PackedScheme, evaluate};
use proptest::prelude::*;

/// The scheme without encryption.
struct ClearSlots(usize);

impl PackedScheme for ClearSlots {
    type Ciphertext = Vec<i64>;
    type Rotated = Vec<i64>;
    type Multiplier = Vec<i64>;
    type Sums = Vec<Vec<i64>>;
    type Error = std::convert::Infallible;

    fn rotate_hoisted(
        &self,
        ciphertext: &Vec<i64>,
        rotations: &[Rotation],
        mut visit: impl FnMut(&[Vec<i64>]) -> Result<(), Self::Error>,
    ) -> Result<(), Self::Error> {
        for rotations in rotations.chunks(7) {
            let rotated = rotations.iter().map(|rotation| self.rotate(ciphertext, *rotation));
            visit(&rotated.collect::<Result<Vec<_>, _>>()?)?;
        }
        Ok(())
    }

    fn empty_sums(&self, count: usize) -> Result<Self::Sums, Self::Error> {
        Ok(vec![vec![0; self.0]; count])
    }

    fn multiply_add(
        &self,
        sums: &mut Self::Sums,
        rotated: &[Vec<i64>],
        multipliers: &[Vec<i64>],
    ) -> Result<(), Self::Error> {
        assert_eq!(multipliers.len(), rotated.len() * sums.len());
        for (rotated, multipliers) in rotated.iter().zip(multipliers.chunks(sums.len())) {
            for (sum, multiplier) in sums.iter_mut().zip(multipliers) {
                sum.iter_mut().zip(rotated.iter().zip(multiplier)).for_each(|(s, (x, w))| *s += x * w);
            }
        }
        Ok(())
    }

    fn finish(&self, sums: Self::Sums) -> Result<Vec<Vec<i64>>, Self::Error> {
        Ok(sums)
    }

    fn rotate(&self, ciphertext: &Vec<i64>, rotation: Rotation) -> Result<Vec<i64>, Self::Error> {
        Ok((0..self.0).map(|slot| ciphertext[rotation.source(slot, self.0)]).collect())
    }

    fn add(&self, sum: &mut Vec<i64>, other: &Vec<i64>) -> Result<(), Self::Error> {
        sum.iter_mut().zip(other).for_each(|(a, b)| *a += b);
        Ok(())
    }
}

fn packed(packing: &Packing, weights: &[i64], input: &[i64]) -> Vec<i64> {
    let ciphertexts = packing.operations().input_ciphertexts;
    // Slots that carry no element hold noise: they must never reach an output.
    let inputs: Vec<Vec<i64>> = (0..ciphertexts)
        .map(|c| packing.input_slots(c).into_iter().map(|slot| slot.map_or(977, |i| input[i])).collect())
        .collect();
    let multipliers: Vec<_> = packing.terms().map(|term| packing.multiplier(term, weights)).collect();
    let outputs = evaluate(&ClearSlots(packing.slots()), packing, &multipliers, &inputs).unwrap();
    packing.output_slots().into_iter().map(|(ciphertext, slot)| outputs[ciphertext][slot]).collect()
}

fn operand(length: usize, seed: i64) -> Vec<i64> {
    (0..length as i64).map(|i| (i * 7919 + seed * 104_729) % 201 - 100).collect()
}

fn check(shape: &Convolution, slots: usize) {
    let (weights, input) = (operand(shape.weights(), 1), operand(shape.inputs(), 2));
    let truth = shape.apply(&weights, &input).unwrap();
    for packing in Packing::all(shape, slots).unwrap() {
        assert_eq!(packed(&packing, &weights, &input), truth, "{shape:?} baby {}", packing.baby());
    }
}

#[test]
fn layers_of_the_mnist_networks_equal_their_convolutions() {
    let convolution = |c, o, image, strides, pads| Convolution {
        in_channels: c,
        out_channels: o,
        image,
        kernel: [5, 5],
        strides,
        pads,
    };
    check(&convolution(1, 16, [28, 28], [1, 1], [0; 4]), 4096);
    check(&convolution(1, 5, [28, 28], [2, 2], [1, 1, 2, 2]), 4096);
    check(&convolution(16, 16, [12, 12], [1, 1], [0; 4]), 4096);
    check(&Convolution::fully_connected(256, 100), 2048);
    check(&Convolution::fully_connected(100, 10), 2048);
}

#[test]
fn hybrid_counts_equal_the_table() {
    let hybrid = |inputs, outputs, slots| {
        let layouts = Packing::all(&Convolution::fully_connected(inputs, outputs), slots).unwrap();
        let operations = layouts.last().unwrap().operations();
        (operations.hoisted_rotations, operations.rotations, operations.multiplications)
    };
    assert_eq!(hybrid(2048, 1, 2048), (0, 11, 1));
    assert_eq!(hybrid(1024, 128, 2048), (63, 4, 64));
    assert_eq!(hybrid(1024, 16, 2048), (7, 7, 8));
    assert_eq!(hybrid(128, 16, 2048), (0, 7, 1));
    assert_eq!(hybrid(2048, 1, 8192), (0, 11, 1));
    assert_eq!(hybrid(1024, 128, 8192), (15, 6, 16));
    assert_eq!(hybrid(1024, 16, 8192), (1, 9, 2));
    assert_eq!(hybrid(128, 16, 8192), (0, 7, 1));
}

#[test]
fn convolution_counts_equal_the_table() {
    let shape = Convolution {
        in_channels: 16,
        out_channels: 16,
        image: [16, 16],
        kernel: [3, 3],
        strides: [1, 1],
        pads: [1; 4],
    };
    // c_n = 8 channels per ciphertext, c_i = c_o = 16.
    let layouts = Packing::all(&shape, 2048).unwrap();
    let counts = |packing: &Packing| {
        let operations = packing.operations();
        (operations.hoisted_rotations, operations.rotations, operations.multiplications)
    };
    assert_eq!(
        counts(&layouts[0]),
        ((9 - 1) * 16 / 8, (8 - 1) * 16 / 8, 9 * 16 * 16 / 8),
        "output rotations"
    );
    assert_eq!(
        counts(layouts.last().unwrap()),
        ((8 * 9 - 1) * 16 / 8, 0, 9 * 16 * 16 / 8),
        "input rotations"
    );
}

#[test]
fn impossible_layouts_are_refused() {
    let mut shape = Convolution::fully_connected(4, 4);
    assert!(Packing::new(&shape, 16, 3).is_err());
    shape.image = [5, 5];
    assert!(Packing::new(&shape, 32, 1).is_err());
    shape.kernel = [6, 6];
    assert!(Packing::new(&shape, 1024, 1).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn packed_layers_equal_the_convolution(
        channels in (1usize..10, 1usize..10),
        image in (1usize..9, 1usize..9),
        kernel in (1usize..5, 1usize..5),
        strides in (1usize..4, 1usize..4),
        pads in (0usize..3, 0usize..3, 0usize..3, 0usize..3),
    ) {
        let shape = Convolution {
            in_channels: channels.0,
            out_channels: channels.1,
            image: [image.0, image.1],
            kernel: [kernel.0, kernel.1],
            strides: [strides.0, strides.1],
            pads: [pads.0, pads.1, pads.2, pads.3],
        };
        prop_assume!(shape.output_image().is_ok());
        prop_assume!(Packing::new(&shape, 512, 1).is_ok());
        check(&shape, 512);
    }

    #[test]
    fn packed_products_equal_the_matrix(inputs in 1usize..80, outputs in 1usize..80) {
        check(&Convolution::fully_connected(inputs, outputs), 64);
    }
}
