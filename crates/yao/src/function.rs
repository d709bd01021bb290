//! What a circuit computes, and how shares become its inputs: known to both parties.

use lanner_gc::Circuit;
use lanner_gc::library::{self, MaskedCircuit};
use lanner_primitives::{Bits, Ring, Share};
use lanner_step::{Function, ProtocolError, Result, Windows};
use zeroize::Zeroizing;

use crate::bits_to_ring::BitEncoding;

/// A function over all windows of a vector of shares, from one ring to another.
#[derive(Clone, Debug)]
pub struct Layer {
    circuit: MaskedCircuit,
    inputs: usize,
    instances: usize,
    /// The elements of all windows, one window after the other; none where each element is a window of its own.
    windows: Option<Vec<usize>>,
    from: Ring,
    encoding: BitEncoding,
}

impl Layer {
    /// The layer of `function` on `windows`, from the ring `from` to the ring `to`.
    ///
    /// # Errors
    /// [`ProtocolError::Gc`] if there is no such circuit; [`ProtocolError::Parameters`] if the windows do not fit, or a bound
    /// is negative or comes without ReLU, or a slope comes with ReLU, a bound or a pool.
    pub fn new(function: Function, windows: &Windows, from: Ring, to: Ring) -> Result<Self> {
        let (Function { relu, slope, high, shift }, ring) = (function, from);
        let high = high.map(u64::try_from).transpose();
        let high = high.map_err(|_| ProtocolError::Parameters("a negative upper bound"))?;
        let circuit = match (relu, slope, high, windows.area()) {
            (false, None, None, 1) => library::rescale(ring, shift)?,
            (true, None, None, 1) => library::relu_rescale(ring, shift)?,
            (true, None, Some(high), 1) => library::relu_clip(ring, shift, high)?,
            (false, None, None, area) => library::max_pool_rescale(ring, area, shift)?,
            (true, None, None, area) => library::max_pool_relu_rescale(ring, area, shift)?,
            (true, None, Some(high), area) => library::max_pool_relu_clip(ring, area, shift, high)?,
            (false, Some(slope), None, 1) => {
                library::leaky_relu_rescale(ring, slope.numerator, slope.shift, shift)?
            }
            (_, Some(_), _, _) => {
                return Err(ProtocolError::Parameters("a slope with ReLU, an upper bound or a pool"));
            }
            (false, None, Some(_), _) => {
                return Err(ProtocolError::Parameters("an upper bound without ReLU"));
            }
        };
        Self::of_windows(circuit, windows, from, to, !relu)
    }

    /// The layer that tells of each window whether any value is zero, from a ring modulo a power of two to bits in the ring `to`.
    ///
    /// # Errors
    /// [`ProtocolError::Gc`] if there is no such circuit; [`ProtocolError::Parameters`] if the windows do not fit.
    pub fn any_zero(windows: &Windows, from: Ring, to: Ring) -> Result<Self> {
        Self::of_windows(library::any_zero(from, windows.area())?, windows, from, to, false)
    }

    /// The layer of a circuit on every window.
    fn of_windows(
        circuit: MaskedCircuit,
        windows: &Windows,
        from: Ring,
        to: Ring,
        signed: bool,
    ) -> Result<Self> {
        let encoding = BitEncoding { ring: to, bits: circuit.circuit().outputs(), signed };
        let inputs = windows.inputs();
        let (instances, windows) = if windows.are_elements() {
            (inputs, None)
        } else {
            let groups = windows.filled_groups()?;
            (groups.len(), Some(groups.concat()))
        };
        Ok(Self { circuit, inputs, instances, windows, from, encoding })
    }

    /// The circuit of one window.
    #[must_use]
    pub fn circuit(&self) -> &Circuit {
        self.circuit.circuit()
    }

    /// Number of windows.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.instances
    }

    /// Bits of all outputs.
    #[must_use]
    pub fn output_bits(&self) -> usize {
        self.instances() * self.encoding.bits
    }

    /// How output bits encode values.
    #[must_use]
    pub fn encoding(&self) -> BitEncoding {
        self.encoding
    }

    /// The garbler's input bits, for its share of the input.
    ///
    /// # Errors
    /// [`ProtocolError::WrongRing`] or [`ProtocolError::Length`] if the share does not fit.
    pub fn garbler_bits(&self, share: &Share) -> Result<Bits> {
        Ok(self.circuit.garbler_bits(&self.gather(share)?)?)
    }

    /// The evaluator's input bits, for its share of the input.
    ///
    /// # Errors
    /// As [`Self::garbler_bits`].
    pub fn evaluator_bits(&self, share: &Share) -> Result<Bits> {
        Ok(self.circuit.evaluator_bits(&self.gather(share)?)?)
    }

    /// The elements of the input that the circuits read, instance after instance: one that several windows hold comes several times.
    #[must_use]
    pub fn elements(&self) -> Vec<usize> {
        self.windows.clone().unwrap_or_else(|| (0..self.inputs).collect())
    }

    /// The values of each window, one window after the other.
    fn gather(&self, share: &Share) -> Result<Zeroizing<Vec<u64>>> {
        ProtocolError::check_share("input share of an activation", share, self.from, self.inputs)?;
        let values = share.values();
        Ok(Zeroizing::new(match &self.windows {
            Some(windows) => windows.iter().map(|i| values[*i]).collect(),
            None => values.to_vec(),
        }))
    }
}
