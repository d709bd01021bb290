//! The layer over clear slots, with its operations counted.

use std::cell::Cell;

use lanner_packed::falcon::{Packing, SlotProducts, Spectrum, evaluate};
use lanner_primitives::Share;
use lanner_ring::Modulus;
use lanner_step::{Convolution, ProtocolError};

/// Slots in the clear.
pub struct Clear {
    modulus: Modulus,
    pub products: Cell<usize>,
    pub additions: Cell<usize>,
}

impl SlotProducts for Clear {
    type Ciphertext = Vec<u64>;
    type Multiplier = Vec<u64>;

    fn sum_of_products(
        &self,
        inputs: &[Vec<u64>],
        multipliers: &[Vec<u64>],
    ) -> Result<Vec<u64>, ProtocolError> {
        assert_eq!(inputs.len(), multipliers.len());
        let mut sum = vec![0; inputs[0].len()];
        for (input, multiplier) in inputs.iter().zip(multipliers) {
            for (sum, (x, w)) in sum.iter_mut().zip(input.iter().zip(multiplier)) {
                *sum = self.modulus.add(*sum, self.modulus.mul(*x, *w));
            }
        }
        self.products.set(self.products.get() + inputs.len());
        self.additions.set(self.additions.get() + inputs.len() - 1);
        Ok(sum)
    }
}

/// All multipliers of a layer.
pub fn multipliers(spectrum: &Spectrum, weights: &[i64]) -> Vec<Vec<u64>> {
    let outputs = spectrum.packing().outputs().iter();
    outputs.flat_map(|output| spectrum.multipliers(output, weights)).map(|slots| slots.to_vec()).collect()
}

/// The layer on an input in the clear, and what it counted.
pub fn layer(packing: &Packing, weights: &[i64], input: &[i64]) -> (Vec<i64>, Clear) {
    let spectrum = Spectrum::new(packing).unwrap();
    let modulus = Modulus::new(packing.prime()).unwrap();
    let scheme = Clear { modulus, products: Cell::new(0), additions: Cell::new(0) };
    let packed = spectrum.pack(&Share::embed(spectrum.ring(), input)).unwrap();
    let inputs: Vec<Vec<u64>> = packed.iter().map(|slots| slots.to_vec()).collect();
    let multipliers = multipliers(&spectrum, weights);
    let outputs: Vec<_> =
        evaluate(&scheme, packing, &multipliers, &inputs).collect::<Result<_, _>>().unwrap();
    assert_eq!([inputs.len(), outputs.len()], packing.ciphertexts());
    let share = spectrum.unpack(&outputs).unwrap();
    (share.reveal(&Share::zero(spectrum.ring(), share.len())).unwrap(), scheme)
}

/// A convolution with stride one and nothing else.
pub fn convolution(channels: [usize; 2], image: [usize; 2], kernel: [usize; 2]) -> Convolution {
    Convolution {
        in_channels: channels[0],
        out_channels: channels[1],
        image,
        kernel,
        strides: [1, 1],
        pads: [0; 4],
        dilations: [1, 1],
        groups: 1,
    }
}

/// Small integers of both signs.
pub fn operand(length: usize, seed: i64) -> Vec<i64> {
    (0..length as i64).map(|i| (i * 7919 + seed * 104_729) % 23 - 11).collect()
}
