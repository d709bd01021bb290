//! Sums over windows of any length.

use super::hdft::turn;
use super::{Counted, Operations, SlotScheme};
use lanner_step::ProtocolError;
use lanner_step::Rotation;

/// Slot by slot, the sum of `count` slots that lie `unit` apart, from that slot on, and of nothing else.
///
/// Sums of `1, 2, 4, ...` are doubled, and those that make up `count` are put one behind the other: as many rotations as its bits behind the first, and as its ones
/// but one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) count: usize,
    pub(super) unit: usize,
    pub(super) slots: usize,
}

impl Window {
    /// Of the doubled sum number `bit`, how far it is moved, if it is one that `count` is made of.
    fn behind(self, bit: u32) -> Option<usize> {
        (self.count >> bit & 1 == 1).then_some(self.count & ((1 << bit) - 1))
    }

    fn rotation(self, count: usize) -> Rotation {
        turn(count * self.unit, self.slots)
    }

    /// All rotations.
    pub(super) fn rotations(self) -> Vec<Rotation> {
        let last = self.count.ilog2();
        let doubled = (0..last).map(|bit| 1 << bit);
        let moved = (0..=last).filter_map(|bit| self.behind(bit)).filter(|behind| *behind > 0);
        doubled.chain(moved).map(|count| self.rotation(count)).collect()
    }

    /// Rotations and additions.
    pub(super) fn operations(self) -> Operations {
        Operations::rotate_and_add((self.count.ilog2() + self.count.count_ones() - 1) as usize)
    }

    /// # Errors
    /// The scheme's.
    pub(super) fn apply<S: SlotScheme>(
        self,
        scheme: &mut Counted<'_, S>,
        x: S::Ciphertext,
    ) -> Result<S::Ciphertext, ProtocolError> {
        let (mut doubled, mut sum) = (x, None);
        for bit in 0..=self.count.ilog2() {
            if bit > 0 {
                doubled = scheme.fold(doubled, &[self.rotation(1 << (bit - 1))])?;
            }
            match (self.behind(bit), &mut sum) {
                (Some(behind), Some(sum)) => {
                    let moved = scheme.rotate(&doubled, self.rotation(behind))?;
                    scheme.add_assign(sum, &moved)?;
                }
                (Some(_), sum @ None) => *sum = Some(doubled.clone()),
                (None, _) => {}
            }
        }
        sum.ok_or(ProtocolError::Parameters("a window of nothing"))
    }
}
