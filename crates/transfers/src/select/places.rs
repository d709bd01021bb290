//! How many elements are picked, and of how many.

use lanner_step::{ProtocolError, Result, Samples};
use lanner_wire::packed_len;

/// A layer that picks elements, of each sample the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    /// Elements of a sample.
    options: usize,
    /// Elements that are picked of each sample.
    picked: usize,
    /// Bits of the ring.
    bits: u32,
    samples: Samples,
}

/// The most elements that one is picked of.
pub(super) const MAX_OPTIONS: usize = 1 << lanner_ot::MAX_WIDTH;

impl Places {
    /// The places of a layer over `Z_2^bits`.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless there are from 2 elements up to [`MAX_OPTIONS`], one is picked at least, and the ring has 2 to 62 bits; or if there are
    /// `2^40` strings or more.
    pub(super) fn new([options, picked]: [usize; 2], bits: u32, samples: Samples) -> Result<Self> {
        let sides = [options, picked, samples.count()];
        let strings = sides.into_iter().try_fold(1_usize, usize::checked_mul);
        if !(2..=MAX_OPTIONS).contains(&options)
            || picked == 0
            || !(2..=62).contains(&bits)
            || strings.is_none_or(|strings| strings as u64 >= 1 << 40)
        {
            return Err(ProtocolError::Parameters("a layer that picks elements"));
        }
        Ok(Self { options, picked, bits, samples })
    }

    /// Bits of the ring.
    pub(super) const fn bits(&self) -> u32 {
        self.bits
    }

    /// Elements that one is picked of.
    pub(super) const fn options(&self) -> usize {
        self.options
    }

    /// Elements that are picked of each sample.
    pub(super) const fn picked(&self) -> usize {
        self.picked
    }

    /// Samples.
    pub(super) const fn width(&self) -> usize {
        self.samples.count()
    }

    /// Elements of the input.
    pub(super) const fn inputs(&self) -> usize {
        self.samples.times(self.options)
    }

    /// Elements of the output.
    pub(super) const fn outputs(&self) -> usize {
        self.samples.times(self.picked)
    }

    /// Bits of a choice, and transfers that a string is combined of: `w`.
    pub(super) const fn choice_bits(&self) -> u32 {
        self.options.next_power_of_two().ilog2()
    }

    /// Strings of all outputs.
    pub(super) const fn strings(&self) -> usize {
        self.options * self.picked
    }

    /// Transfers, which the client sends.
    pub(super) const fn transfers(&self) -> usize {
        self.picked * self.choice_bits() as usize
    }

    /// Outputs whose transfers are drawn in one go, from the first on.
    pub(super) fn drawn(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.picked).step_by(DRAWN).map(|start| DRAWN.min(self.picked - start))
    }

    /// How many transfers are drawn in one go.
    pub(super) fn draws(&self) -> impl Iterator<Item = usize> + '_ {
        self.drawn().map(|outputs| outputs * self.choice_bits() as usize)
    }

    /// Differences that are sent for an output, of all samples.
    pub(super) const fn differences(&self) -> usize {
        (self.options - 1) * self.width()
    }

    /// Outputs whose differences are packed together.
    pub(super) fn at_once(&self) -> usize {
        (AT_ONCE / self.differences()).clamp(1, self.picked)
    }

    /// Bytes of the differences of so many outputs that are packed together.
    pub(super) const fn packed(&self, outputs: usize) -> usize {
        packed_len(outputs * self.differences(), self.bits)
    }

    /// Bytes of what the server says of its choices.
    pub(super) const fn flips_len(&self) -> usize {
        packed_len(self.picked, self.choice_bits())
    }

    /// Bytes of all differences.
    pub(super) fn message_len(&self) -> usize {
        let (whole, rest) = (self.picked / self.at_once(), self.picked % self.at_once());
        whole * self.packed(self.at_once()) + self.packed(rest)
    }
}

/// Outputs whose transfers are drawn in one go: no more blocks than others' draws have.
const DRAWN: usize = 1 << 12;

/// Differences that are packed together, about.
const AT_ONCE: usize = 1 << 12;
