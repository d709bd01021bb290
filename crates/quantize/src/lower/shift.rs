//! Shifts: how many bits a rescale drops, and what that leaves a ring to allow.

use lanner_network::Accumulator;

use super::{Builder, UNBOUNDED};
use crate::reach::{Reached, ends, to_rescales};

/// Bits that a unit of a rescaled value may be finer than that of what it is joined with, which is brought to the finer one.
const FINEST_JOINED: f64 = 12.0;

impl Builder<'_> {
    /// The widest shift that any scale could ask for in this ring: the limit it leaves holds for every choice.
    pub(super) fn widest_shift(&self, reached: &[Reached], ring: Accumulator) -> u32 {
        let widest = |at: &Reached| {
            if let Some(bits) = self.structure.centring[at.value] {
                return bits;
            }
            if let Some(kept) = self.kept_bits(at.value) {
                return ring.bits().saturating_sub(kept);
            }
            let ends = ends(self.source.items, self.structure, at.value);
            let of_end = |end: &Reached| {
                let sides = if self.source.range(end.value).low < 0.0 { 2.0 } else { 1.0 };
                self.shift_of(end, sides * self.limit_in(ring, at.value, 0) as f64 * end.growth)
            };
            ends.iter().map(of_end).max().unwrap_or(0)
        };
        let rescaled = reached.iter().filter(|at| self.structure.rescaled[at.value]);
        rescaled.map(widest).max().unwrap_or(0).min(ring.bits() - 1)
    }

    /// The shift with which a value of this scale reaches the next products, joins or the output with the activation bits.
    ///
    /// Or that which keeps so many bits as are asked for, of twice what enters the run behind which the value lies.
    pub(super) fn shift(&self, value: usize, scale: f64) -> u32 {
        if let Some(bits) = self.structure.centring[value] {
            return bits;
        }
        if let Some(kept) = self.kept_bits(value) {
            // As `Accumulator::limit` has it, of a ring of one bit more than are kept and dropped.
            let most = f64::from((1_u32 << (kept - 1)) - 1);
            let bits = ((2.0 * self.slack * self.entering(value) / scale + 2.0) / most).log2().ceil();
            return if bits > 0.0 { bits.min(62.0) as u32 } else { 0 };
        }
        let of_end = |end: &Reached| {
            let unit = scale * end.unit;
            self.shift_of(end, self.source.range(end.value).width() / unit).max(self.shift_to_join(end, unit))
        };
        ends(self.source.items, self.structure, value).iter().map(of_end).max().unwrap_or(0)
    }

    /// The bits that the rescale of a value keeps, where that is asked for: what a function takes, and an output with digits, has bits of its own.
    fn kept_bits(&self, value: usize) -> Option<u32> {
        let takes_any = |end: &Reached| {
            let chooses = |user: &usize| self.source.items[*user].action.chooses_scale();
            let is_output = end.value == self.source.items.len() && self.source.options.output_unit.is_some();
            !is_output && !self.structure.users[end.value].iter().any(chooses)
        };
        let asked = self.source.options.kept_bits;
        asked.filter(|_| ends(self.source.items, self.structure, value).iter().all(takes_any))
    }

    /// The largest absolute value of what the nonlinear operators up to a value take and make.
    pub(super) fn entering(&self, value: usize) -> f64 {
        let before = |&value: &usize| {
            let item = &self.source.items[value.checked_sub(1)?];
            item.action.is_nonlinear().then_some(item.inputs[0])
        };
        let run = std::iter::successors(Some(value), before).filter_map(|value| value.checked_sub(1));
        run.map(|item| self.source.items[item].seen.range.magnitude()).fold(0.0, f64::max)
    }

    /// The smallest shift behind which a value of this unit is not too fine for what it is joined with.
    fn shift_to_join(&self, end: &Reached, unit: f64) -> u32 {
        let others = self.partners_of(end).filter_map(|(_, _, input)| self.scale_of(input));
        let bits = (others.fold(0.0, f64::max) / unit).log2().ceil() - FINEST_JOINED;
        if bits > 0.0 { bits.min(62.0) as u32 } else { 0 }
    }

    /// The smallest shift that brings integers of this width to the bits that are wanted at a way's end.
    ///
    /// Where a pool of k sums follows, its result may have sqrt(k) more: the k rounding errors add up to just that much less than k.
    fn shift_of(&self, end: &Reached, width: f64) -> u32 {
        let bits =
            (width / (self.source.levels(self.structure, end.value) * end.growth.sqrt())).log2().ceil();
        if bits > 0.0 { bits.min(62.0) as u32 } else { 0 }
    }

    /// What the ring allows a value of this scale, whose rescale may still lie ahead.
    pub(super) fn limit(&self, value: usize, group: usize, scale: f64) -> i128 {
        let Some(ring) = self.ring(group) else { return UNBOUNDED };
        if !self.structure.wide[value] {
            return if self.source.options.commits { ring.limit_committed(0) } else { ring.limit(0) };
        }
        let reached = to_rescales(self.source.items, self.structure, value);
        let rescaled = reached.iter().filter(|at| self.structure.rescaled[at.value]);
        let shift = rescaled.map(|at| self.shift(at.value, scale * at.unit)).max().unwrap_or(0);
        self.limit_in(ring, value, shift.min(ring.bits() - 1))
    }

    /// What a ring allows a value in front of a rescale by `shift` bits.
    pub(super) fn limit_in(&self, ring: Accumulator, value: usize, shift: u32) -> i128 {
        if self.source.options.commits {
            ring.limit_committed(shift)
        } else if self.structure.differences[value] {
            ring.limit(shift)
        } else {
            ring.limit_without_differences(shift)
        }
    }
}
