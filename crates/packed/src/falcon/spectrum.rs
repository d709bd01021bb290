//! Shares, filters and partial sums between the image and its transform.

use lanner_primitives::{Ring, Share};
use lanner_ring::{Dft2, Modulus, RingError};
use lanner_step::{ProtocolError, Result};
use zeroize::Zeroizing;

use super::packing::{Output, Packing, Run};

/// The transform of a layer, with its places: what each party computes in the clear.
pub struct Spectrum {
    packing: Packing,
    modulus: Modulus,
    transform: Dft2,
}

impl Spectrum {
    /// Prepares the transform.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the plaintext modulus is no prime.
    pub fn new(packing: &Packing) -> Result<Self> {
        let refused = |error: RingError| ProtocolError::Bfv(error.into());
        let modulus = Modulus::new(packing.prime()).map_err(refused)?;
        let (size, axes) = packing.plane();
        let transform = Dft2::along(&modulus, size, axes).map_err(refused)?;
        Ok(Self { packing: packing.clone(), modulus, transform })
    }

    /// The layer's packing.
    #[must_use]
    pub fn packing(&self) -> &Packing {
        &self.packing
    }

    /// `Z_p`.
    #[must_use]
    pub fn ring(&self) -> Ring {
        Ring::Prime(self.packing.prime())
    }

    /// The slots of each input ciphertext that carry the transform of `share`; the others are zero.
    ///
    /// # Errors
    /// [`ProtocolError::WrongRing`] or [`ProtocolError::Length`] if the share is not one of this layer's input.
    pub fn pack(&self, share: &Share) -> Result<Vec<Zeroizing<Vec<u64>>>> {
        let shape = self.packing.shape();
        ProtocolError::check_share("input share of a linear layer", share, self.ring(), shape.inputs())?;
        let pixels = shape.image[0] * shape.image[1];
        let of_channel = self.packing.planes() * self.packing.places();
        let channels = share.values().chunks(pixels);
        let mut values = Zeroizing::new(vec![0; channels.len() * of_channel]);
        channels
            .zip(values.chunks_mut(of_channel))
            .for_each(|(channel, planes)| self.planes(channel, planes));
        let of_group = values.len() / shape.groups;
        let pack = |runs: &Vec<Run>| {
            let mut slots = Zeroizing::new(vec![0; self.packing.slots()]);
            for run in runs {
                let from = run.group * of_group + run.value;
                slots[run.slot..][..run.length].copy_from_slice(&values[from..][..run.length]);
            }
            slots
        };
        Ok(self.packing.inputs().iter().map(pack).collect())
    }

    /// The transformed planes of one input channel, into zeros.
    fn planes(&self, channel: &[u64], values: &mut [u64]) {
        let [vertical, horizontal] = &self.packing.axes;
        let width = self.packing.shape().image[1];
        let planes = vertical.planes.iter().flat_map(|v| horizontal.planes.iter().map(move |h| (v, h)));
        for ((rows, columns), plane) in planes.zip(values.chunks_mut(self.packing.places())) {
            for (y, row) in &rows.pixels {
                for (x, column) in &columns.pixels {
                    plane[y * horizontal.size + x] = channel[row * width + column];
                }
            }
            self.transform.forward(plane);
        }
    }

    /// The transformed planes of the filter of one output channel, over the input channels of its group.
    fn filter(&self, weights: &[i64], out_channel: usize) -> Zeroizing<Vec<u64>> {
        let [vertical, horizontal] = &self.packing.axes;
        let shape = self.packing.shape();
        let planes = || vertical.planes.iter().flat_map(|v| horizontal.planes.iter().map(move |h| (v, h)));
        let count = shape.group_inputs() * self.packing.planes();
        let mut values = Zeroizing::new(vec![0; count * self.packing.places()]);
        let channels =
            (0..shape.group_inputs()).flat_map(|channel| planes().map(move |plane| (channel, plane)));
        for ((channel, (rows, columns)), plane) in channels.zip(values.chunks_mut(self.packing.places())) {
            for (y, row) in &rows.taps {
                for (x, column) in &columns.taps {
                    let weight = weights[shape.weight_index(out_channel, channel, [*row, *column])];
                    plane[y * horizontal.size + x] = self.modulus.reduce_signed(weight);
                }
            }
            self.transform.forward(plane);
        }
        values
    }

    /// The slots of the multipliers of one output ciphertext, in order; `weights` as in [`lanner_step::Convolution`].
    #[must_use]
    pub fn multipliers(&self, output: &Output, weights: &[i64]) -> Vec<Zeroizing<Vec<u64>>> {
        let filters = self.packing.shape().group_outputs();
        let out_channel = |run: &Run| {
            let filter = output.first + run.copy;
            (filter < filters).then_some(run.group * filters + filter)
        };
        let runs = self.packing.output_runs(output);
        let mut spectra: Vec<(usize, Zeroizing<Vec<u64>>)> = Vec::new();
        for channel in runs.iter().filter_map(out_channel) {
            // Runs of one output channel follow each other.
            if spectra.last().is_none_or(|(last, _)| *last != channel) {
                spectra.push((channel, self.filter(weights, channel)));
            }
        }
        let spectrum = |channel: usize| spectra.iter().find(|(of, _)| *of == channel);
        let multiplier = |runs: &Vec<Run>| {
            let mut slots = Zeroizing::new(vec![0; self.packing.slots()]);
            for run in runs {
                if let Some((_, values)) = out_channel(run).and_then(spectrum) {
                    slots[run.slot..][..run.length].copy_from_slice(&values[run.value..][..run.length]);
                }
            }
            slots
        };
        self.packing.inputs()[output.inputs.clone()].iter().map(multiplier).collect()
    }

    /// The share in the slots of the output ciphertexts: partial sums added, transformed back, cropped.
    ///
    /// # Errors
    /// Those of the shape.
    pub fn unpack(&self, outputs: &[impl AsRef<[u64]>]) -> Result<Share> {
        let shape = self.packing.shape();
        let ([height, width], places) = (shape.output_image()?, self.packing.places());
        let mut sums = Zeroizing::new(vec![0; shape.out_channels * places]);
        let filters = shape.group_outputs();
        for (output, slots) in self.packing.outputs().iter().zip(outputs) {
            for run in self.packing.output_runs(output) {
                let filter = output.first + run.copy;
                if filter < filters {
                    let sum = &mut sums[(run.group * filters + filter) * places..][..places];
                    self.fold(sum, run.value % places, &slots.as_ref()[run.slot..][..run.length]);
                }
            }
        }
        let mut values = Vec::with_capacity(shape.out_channels * height * width);
        for plane in sums.chunks_mut(places) {
            self.transform.inverse(plane);
            let rows = plane.chunks(self.packing.axes[1].size).take(height);
            rows.for_each(|row| values.extend_from_slice(&row[..width]));
        }
        Ok(Share::new(self.ring(), values)?)
    }

    /// Adds values to the places of a plane, from a first place on and around.
    fn fold(&self, sum: &mut [u64], first: usize, values: &[u64]) {
        let (head, rest) = values.split_at(values.len().min(sum.len() - first));
        self.add(&mut sum[first..], head);
        rest.chunks(sum.len()).for_each(|values| self.add(sum, values));
    }

    fn add(&self, sum: &mut [u64], values: &[u64]) {
        for (sum, value) in sum.iter_mut().zip(values) {
            *sum = self.modulus.add(*sum, *value);
        }
    }
}
