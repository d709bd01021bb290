//! A circuit over shares together with the way shares become its inputs.

use lanner_primitives::Bits;
use zeroize::Zeroizing;

use super::paper::paper_words;
use super::reshare::mask_word;
use super::ring::ShareRing;
use crate::GcError;
use crate::circuit::{Circuit, CircuitBuilder, Wire, check_length};

/// A circuit over shared values.
///
/// Instances follow each other; inside an instance its values do, and inside a value its bits.
#[derive(Clone, Debug)]
pub struct MaskedCircuit {
    circuit: Circuit,
    ring: ShareRing,
    values: usize,
    preparation: Preparation,
    output_ring: Option<ShareRing>,
}

/// How the garbler's share becomes constants.
#[derive(Clone, Copy, Debug)]
pub(super) enum Preparation {
    /// [`ShareRing::word`] for rescaling by this many bits.
    Folded(u32),
    /// The share, the modulus and the largest positive element, as the paper's circuit takes them.
    Paper,
    /// The share plus (p-1)/2, less p where the sum of both shares reaches it.
    Offset,
}

impl MaskedCircuit {
    /// The circuit of one instance.
    #[must_use]
    pub const fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// The ring of the input shares.
    #[must_use]
    pub const fn ring(&self) -> ShareRing {
        self.ring
    }

    /// Shared values that one instance takes.
    #[must_use]
    pub const fn values(&self) -> usize {
        self.values
    }

    /// The ring of the output if the circuit reshares it: the output is the value plus the garbler's mask in that ring.
    #[must_use]
    pub const fn output_ring(&self) -> Option<ShareRing> {
        self.output_ring
    }

    /// The evaluator's input bits for its shares, `values` for each instance.
    ///
    /// # Errors
    /// [`GcError::Length`] if the shares do not fill instances, [`GcError::ShareRange`] if one is not in the ring.
    pub fn evaluator_bits(&self, shares: &[u64]) -> Result<Bits, GcError> {
        self.check_shares(shares)?;
        let mut bits = BitWriter::with_capacity(shares.len() * self.ring.bits() as usize);
        for share in shares {
            bits.push(*share, self.ring.bits());
        }
        bits.finish()
    }

    /// The garbler's input bits for its shares, `values` for each instance.
    ///
    /// # Errors
    /// [`GcError::Length`] if the shares do not fill instances or the circuit needs output masks,
    /// [`GcError::ShareRange`] if a share is not in the ring.
    pub fn garbler_bits(&self, shares: &[u64]) -> Result<Bits, GcError> {
        self.garbler_bits_with_masks(shares, &[])
    }

    /// The garbler's input bits for its shares and one output mask for each instance, an element of the output ring.
    ///
    /// The garbler's share of the output is the mask's negative.
    ///
    /// # Errors
    /// [`GcError::Length`] if the shares do not fill instances or the masks are too few or too many,
    /// [`GcError::ShareRange`] if a share or a mask is not in its ring.
    pub fn garbler_bits_with_masks(&self, shares: &[u64], masks: &[u64]) -> Result<Bits, GcError> {
        self.check_shares(shares)?;
        let instances = shares.len() / self.values;
        let expected = if self.output_ring.is_some() { instances } else { 0 };
        check_length("output masks", expected, masks.len())?;
        if !self.output_ring.is_none_or(|ring| ring.contains(masks)) {
            return Err(GcError::ShareRange);
        }
        let mut bits = BitWriter::with_capacity(instances * self.circuit.garbler_inputs());
        for (instance, values) in shares.chunks(self.values).enumerate() {
            for share in values {
                match self.preparation {
                    Preparation::Folded(d) => bits.extend(&[self.ring.word(*share, d)]),
                    Preparation::Paper => bits.extend(&paper_words(self.ring, *share)),
                    Preparation::Offset => {
                        let constant = mask_word(self.ring, self.ring.offset(*share));
                        bits.push(constant, self.ring.bits());
                    }
                }
            }
            if let (Some(ring), Some(mask)) = (self.output_ring, masks.get(instance)) {
                match self.preparation {
                    Preparation::Paper => bits.push(*mask, ring.bits()),
                    _ => bits.push(mask_word(ring, *mask), ring.bits()),
                }
            }
        }
        bits.finish()
    }

    /// The outputs of each instance as an integer, from instance-major bits: colour bits, permute bits or their XOR.
    ///
    /// # Errors
    /// [`GcError::Length`] if the bits do not fill instances, [`GcError::Parameters`] if an instance has no output or
    /// more than 64.
    pub fn output_words(&self, bits: &Bits) -> Result<Vec<u64>, GcError> {
        let width = self.circuit.outputs();
        if !(1..=64).contains(&width) {
            return Err(GcError::Parameters("the outputs of an instance do not fit one word"));
        }
        check_length("output bits", bits.len().next_multiple_of(width), bits.len())?;
        let instances = bits.len() / width;
        let bit = |i: usize, j: usize| u64::from(bits.get(i * width + j)) << j;
        Ok((0..instances).map(|i| (0..width).fold(0, |word, j| word | bit(i, j))).collect())
    }

    fn check_shares(&self, shares: &[u64]) -> Result<(), GcError> {
        check_length("shares", shares.len().next_multiple_of(self.values), shares.len())?;
        if self.ring.contains(shares) { Ok(()) } else { Err(GcError::ShareRange) }
    }
}

/// Builds a [`MaskedCircuit`] value by value.
pub(super) struct MaskedBuilder {
    pub(super) gates: CircuitBuilder,
    ring: ShareRing,
    d: u32,
    values: usize,
    preparation: Preparation,
}

impl MaskedBuilder {
    /// Checks the parameters.
    pub(super) fn new(ring: ShareRing, d: u32) -> Result<Self, GcError> {
        ring.signed_bound(d)?;
        let preparation = Preparation::Folded(d);
        Ok(Self { gates: CircuitBuilder::new(), ring, d, values: 0, preparation })
    }

    /// As [`Self::new`], for a circuit that adds the shares of every element of Z_p itself, in offset form.
    pub(super) fn in_offset_form(ring: ShareRing) -> Result<Self, GcError> {
        Ok(Self { preparation: Preparation::Offset, ..Self::new(ring, 0)? })
    }

    /// The evaluator's share of the next value; the circuit adds the garbler's constant itself.
    pub(super) fn next_share(&mut self) -> Vec<Wire> {
        self.values += 1;
        self.gates.evaluator_word(self.ring.bits())
    }

    /// The next shared value, rescaled: `bits - d` bits in two's complement.
    pub(super) fn value(&mut self) -> Vec<Wire> {
        self.values += 1;
        self.ring.reconstruct(&mut self.gates, self.d)
    }

    /// The next shared value with all its bits, half of `2^d` added: rescaled, it is [`Self::value`].
    pub(super) fn unshifted_value(&mut self) -> Vec<Wire> {
        self.values += 1;
        self.ring.reconstruct(&mut self.gates, 0)
    }

    /// The next shared value in offset form: the order of unsigned integers is that of the values.
    pub(super) fn offset_value(&mut self) -> Vec<Wire> {
        let mut value = self.value();
        if let Some(sign) = value.last_mut() {
            *sign = !*sign;
        }
        value
    }

    pub(super) fn finish(self, outputs: &[Wire]) -> Result<MaskedCircuit, GcError> {
        self.finish_reshared(outputs, None)
    }

    pub(super) fn finish_reshared(
        self,
        outputs: &[Wire],
        output_ring: Option<ShareRing>,
    ) -> Result<MaskedCircuit, GcError> {
        let Self { gates, ring, values, preparation, .. } = self;
        let circuit = gates.build(outputs)?;
        Ok(MaskedCircuit { circuit, ring, values, preparation, output_ring })
    }
}

/// A circuit over one value whose constants are prepared in the paper's way.
pub(super) const fn paper_circuit(circuit: Circuit, ring: ShareRing) -> MaskedCircuit {
    MaskedCircuit { circuit, ring, values: 1, preparation: Preparation::Paper, output_ring: Some(ring) }
}

/// Packs words of bits. It never grows, which would leave copies of them in freed memory.
struct BitWriter {
    words: Zeroizing<Vec<u64>>,
    len: usize,
}

impl BitWriter {
    fn with_capacity(bits: usize) -> Self {
        Self { words: Zeroizing::new(Vec::with_capacity(bits.div_ceil(64))), len: 0 }
    }

    /// Adds the low `bits` bits of `value`.
    fn push(&mut self, value: u64, bits: u32) {
        if bits == 0 {
            return;
        }
        let value = value & (u64::MAX >> (u64::BITS - bits));
        let shift = self.len % 64;
        if shift == 0 {
            self.words.push(value);
        } else if let Some(last) = self.words.last_mut() {
            *last |= value << shift;
            if shift + bits as usize > 64 {
                self.words.push(value >> (64 - shift));
            }
        }
        self.len += bits as usize;
    }

    fn extend(&mut self, words: &[(u64, u32)]) {
        for (value, bits) in words {
            self.push(*value, *bits);
        }
    }

    fn finish(self) -> Result<Bits, GcError> {
        let bytes: &[u8] = bytemuck::must_cast_slice(&self.words[..]);
        let expected = Bits::byte_len(self.len);
        let error = GcError::Length { what: "input bits", expected, got: bytes.len() };
        Bits::from_bytes(self.len, &bytes[..expected]).map_err(|_| error)
    }
}
