//! A circuit over shares together with the way shares become its inputs.

use lanner_primitives::{Bits, Ring};
use zeroize::Zeroizing;

use super::reconstruct::{reconstruct, signed_bound, word};
use crate::GcError;
use crate::circuit::{Circuit, CircuitBuilder, Wire, check_length};

/// How values are shared: `x` as the sum of two shares of the ring, with some bits of guard below the value's own, which a circuit drops.
/// `2^guard x + e` counts as `x`, for every e from 0 to `2^guard - 1`; the guard takes as many AND gates of each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The ring of the shares; one modulo a power of two where there is a guard.
    pub ring: Ring,
    /// Bits of guard.
    pub guard: u32,
}

impl From<Ring> for Sharing {
    fn from(ring: Ring) -> Self {
        Self { ring, guard: 0 }
    }
}

impl Sharing {
    /// Bits of a value, its sign included.
    #[must_use]
    pub fn value_bits(self) -> u32 {
        self.ring.bits().saturating_sub(self.guard)
    }
}

/// A circuit over shared values.
///
/// Instances follow each other; inside an instance its values do, and inside a value its bits.
#[derive(Clone, Debug)]
pub struct MaskedCircuit {
    circuit: Circuit,
    ring: Ring,
    values: usize,
    /// By how many bits it rescales, which is folded into the garbler's constants.
    d: u32,
    /// What is taken off each value, which is folded in as well.
    less: u64,
}

impl MaskedCircuit {
    /// The circuit of one instance.
    #[must_use]
    pub const fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// The ring of the input shares.
    #[must_use]
    pub const fn ring(&self) -> Ring {
        self.ring
    }

    /// Shared values that one instance takes.
    #[must_use]
    pub const fn values(&self) -> usize {
        self.values
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
    /// [`GcError::Length`] if the shares do not fill instances, [`GcError::ShareRange`] if one is not in the ring.
    pub fn garbler_bits(&self, shares: &[u64]) -> Result<Bits, GcError> {
        self.check_shares(shares)?;
        let mut bits = BitWriter::with_capacity(shares.len() / self.values * self.circuit.garbler_inputs());
        for share in shares {
            let (constant, width) = word(self.ring, self.ring.sub(*share, self.less), self.d);
            bits.push(constant, width);
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
        // Folded without an early end: how long it takes says nothing about the values.
        let fits = shares.iter().fold(true, |fits, share| fits & self.ring.contains(*share));
        if fits { Ok(()) } else { Err(GcError::ShareRange) }
    }
}

/// Builds a [`MaskedCircuit`] value by value.
pub(super) struct MaskedBuilder {
    pub(super) gates: CircuitBuilder,
    ring: Ring,
    d: u32,
    /// Bits that a value loses in all.
    dropped: u32,
    /// What is taken off each value first.
    less: u64,
    values: usize,
}

impl MaskedBuilder {
    /// Checks the parameters.
    pub(super) fn new(ring: Ring, d: u32) -> Result<Self, GcError> {
        signed_bound(ring, d)?;
        Ok(Self { gates: CircuitBuilder::new(), ring, d, dropped: d, less: 0, values: 0 })
    }

    /// For values that are not rescaled, of which `less` is taken off first, modulo the ring.
    pub(super) fn moved(ring: Ring, less: u64) -> Result<Self, GcError> {
        Ok(Self { less, ..Self::new(ring, 0)? })
    }

    /// For values that are not rescaled and lose their guard alone, rounding down.
    pub(super) fn guarded(Sharing { ring, guard }: Sharing) -> Result<Self, GcError> {
        if guard > 0 && matches!(ring, Ring::Prime(_)) {
            return Err(GcError::Parameters("bits of guard modulo a prime"));
        }
        Ok(Self { d: 0, ..Self::new(ring, guard)? })
    }

    /// The next shared value, rescaled or without its guard: the bits that are left in two's complement.
    pub(super) fn value(&mut self) -> Vec<Wire> {
        self.values += 1;
        reconstruct(self.ring, &mut self.gates, self.dropped)
    }

    /// The two shares of the next value in a ring modulo a power of two of so many bits: the evaluator's, and the garbler's, which it knows.
    pub(super) fn shares(&mut self, bits: u32) -> [Vec<Wire>; 2] {
        self.values += 1;
        [self.gates.evaluator_word(bits), self.gates.garbler_word(bits)]
    }

    /// The next shared value with all its bits, half of `2^d` added: rescaled, it is [`Self::value`].
    pub(super) fn unshifted_value(&mut self) -> Vec<Wire> {
        self.values += 1;
        reconstruct(self.ring, &mut self.gates, 0)
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
        let Self { gates, ring, values, d, less, .. } = self;
        Ok(MaskedCircuit { circuit: gates.build(outputs)?, ring, values, d, less })
    }
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

    fn finish(self) -> Result<Bits, GcError> {
        let bytes: &[u8] = bytemuck::must_cast_slice(&self.words[..]);
        let expected = Bits::byte_len(self.len);
        let error = GcError::Length { what: "input bits", expected, got: bytes.len() };
        Bits::from_bytes(self.len, &bytes[..expected]).map_err(|_| error)
    }
}
