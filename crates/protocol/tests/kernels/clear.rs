//! The kernels over clear slots.

use lanner_packed::gazelle::Kernel;
use lanner_packed::gazelle::packing::{Packing, Weighting};
use lanner_packed::gazelle::program::Term;
use lanner_packed::gazelle::scheme::{PackedScheme, evaluate};
use lanner_step::{Convolution, Rotation};

/// The scheme without encryption.
pub struct ClearSlots(usize);

impl PackedScheme for ClearSlots {
    type Ciphertext = Vec<i64>;
    type Unreduced = Vec<i64>;
    type Multiplier = Weighting;
    type Sums = Vec<Vec<i64>>;
    type Error = std::convert::Infallible;

    fn rotate_hoisted(
        &self,
        ciphertext: &Vec<i64>,
        rotations: &[Rotation],
        mut visit: impl FnMut(&[Vec<i64>]) -> Result<(), Self::Error>,
    ) -> Result<(), Self::Error> {
        rotations.iter().try_for_each(|rotation| visit(&[self.rotate(ciphertext, *rotation)?]))
    }

    fn empty_sums(&self, count: usize) -> Result<Vec<Vec<i64>>, Self::Error> {
        Ok(vec![vec![0; self.0]; count])
    }

    fn multiply_add(
        &self,
        sums: &mut Vec<Vec<i64>>,
        rotated: &[Vec<i64>],
        terms: &[&[Term]],
        multipliers: &[Weighting],
    ) -> Result<(), Self::Error> {
        for (rotated, term) in
            rotated.iter().zip(terms).flat_map(|(r, terms)| terms.iter().map(move |t| (r, t)))
        {
            let weight = |slot: usize| match &multipliers[term.multiplier] {
                Weighting::Slots(weights) => weights[slot],
                Weighting::Constant(weight) => *weight,
            };
            let sum = sums[term.sum].iter_mut().zip(rotated).enumerate();
            sum.for_each(|(slot, (sum, x))| *sum += x * weight(slot));
        }
        Ok(())
    }

    fn open(&self, sums: Vec<Vec<i64>>) -> Vec<Vec<i64>> {
        sums
    }

    fn rotate_add(
        &self,
        sum: &mut Vec<i64>,
        ciphertext: &Vec<i64>,
        rotation: Rotation,
    ) -> Result<(), Self::Error> {
        self.add(sum, &self.rotate(ciphertext, rotation)?)
    }

    fn reduce(&self, sum: Vec<i64>) -> Vec<i64> {
        sum
    }

    fn rotate(&self, ciphertext: &Vec<i64>, rotation: Rotation) -> Result<Vec<i64>, Self::Error> {
        Ok((0..self.0).map(|slot| ciphertext[rotation.source(slot, self.0)]).collect())
    }

    fn add(&self, sum: &mut Vec<i64>, other: &Vec<i64>) -> Result<(), Self::Error> {
        sum.iter_mut().zip(other).for_each(|(a, b)| *a += b);
        Ok(())
    }
}

/// What a kernel makes of an input, over clear slots.
pub fn packed(packing: &Packing, weights: &[i64], input: &[i64]) -> Vec<i64> {
    let ciphertexts = packing.operations().input_ciphertexts;
    // Where padding is not packed, slots that carry no element are never read: they may hold anything.
    let padded = packing.kernel() == Kernel::PaddedSiso || packing.images() > 1 || packing.frames() > 1;
    let rest = if padded { 0 } else { 977 };
    let inputs: Vec<Vec<i64>> = (0..ciphertexts)
        .map(|c| packing.input_slots(c).into_iter().map(|slot| slot.map_or(rest, |i| input[i])).collect())
        .collect();
    let multipliers: Vec<_> = (0..packing.multipliers()).map(|i| packing.weighting(i, weights)).collect();
    let outputs = evaluate(&ClearSlots(packing.slots()), packing, &multipliers, &inputs).unwrap();
    packing.output_slots().into_iter().map(|(ciphertext, slot)| outputs[ciphertext][slot]).collect()
}

pub fn operand(length: usize, seed: i64) -> Vec<i64> {
    (0..length as i64).map(|i| (i * 7919 + seed * 104_729) % 201 - 100).collect()
}

/// A convolution with unit strides, dilations and groups, which tests change.
pub fn convolution(channels: [usize; 2], image: [usize; 2], kernel: [usize; 2]) -> Convolution {
    let pads = kernel.map(|size| (size - 1) / 2);
    Convolution {
        in_channels: channels[0],
        out_channels: channels[1],
        image,
        kernel,
        strides: [1, 1],
        pads: [pads[0], pads[1], pads[0], pads[1]],
        dilations: [1, 1],
        groups: 1,
    }
}
