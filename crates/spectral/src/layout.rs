//! Where the elements of a value lie in the slots of ciphertexts.

use lanner_step::{Convolution, ProtocolError, Result};
use serde::{Deserialize, Serialize};

use super::grid::{Grid, MOST, Place, Taps};

/// Where the elements of a value lie. Slots that hold no element may hold anything.
///
/// Slots are numbered through both rows of a ciphertext, and through its ciphertexts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Layout {
    /// One ciphertext: element `e` at `(e / run) stride + e % run`, and at every multiple of `period` from there.
    Runs {
        /// Slots of a ciphertext.
        slots: usize,
        /// Elements.
        len: usize,
        /// Elements that lie side by side.
        run: usize,
        /// From one run to the next.
        stride: usize,
        /// From one copy of all to the next.
        period: usize,
    },
    /// An image as the taps of a convolution read it ("im2col"), one plane of output positions for each: see [`Patches`].
    Patches(Patches),
    /// An image position by position: see [`Grid`].
    Grid(Grid),
    /// An image as the taps of a convolution read it, position by position: see [`Taps`].
    Taps(Taps),
}

/// Planes of what the taps of a convolution read, in blocks.
///
/// Tap number `t` is for block `t / kinds`, and there for each plane `x` with `x % kinds = t % kinds`, so that a rotation by fewer than
/// `kinds` planes brings it to any other plane, as long as the block has one more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patches {
    /// Slots of a ciphertext.
    pub slots: usize,
    /// The convolution.
    pub shape: Convolution,
    /// Slots of a block.
    pub block: usize,
    /// Different planes of a block.
    pub kinds: usize,
}

impl Layout {
    /// Elements, one beside the other, and copies of all as often as they fit.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if they do not fit a ciphertext, or there is none.
    pub fn copies(len: usize, slots: usize) -> Result<Self> {
        let period = len.next_power_of_two();
        ProtocolError::refuse_if(
            !(1..=slots).contains(&period),
            "a value of more elements than a ciphertext has slots",
        )?;
        Ok(Self::Runs { slots, len, run: len, stride: period, period })
    }

    /// Checks what came from elsewhere.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless elements have slots of their own.
    pub fn check(&self, slots: usize) -> Result<()> {
        let is_sound = match self {
            Self::Runs { slots: own, len, run, stride, period } => {
                let ends = len.checked_sub(1).and_then(|last| {
                    let whole = (last / (*run).max(1)).checked_mul(*stride)?;
                    whole.checked_add((*run).min(*len))
                });
                *own == slots
                    && *run > 0
                    && run <= stride
                    && period.is_power_of_two()
                    && *period <= slots
                    && ends.is_some_and(|end| end <= *period)
            }
            Self::Patches(patches) => patches.slots == slots && patches.is_sound(),
            Self::Grid(grid) => grid.slots == slots && grid.is_sound(),
            Self::Taps(taps) => taps.output.slots == slots && taps.is_sound(),
        };
        if is_sound { Ok(()) } else { Err(ProtocolError::Parameters("a layout of slots")) }
    }

    /// Elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Runs { len, .. } => *len,
            Self::Patches(patches) => patches.shape.inputs(),
            Self::Grid(grid) => grid.len(),
            Self::Taps(taps) => taps.shape.inputs(),
        }
    }

    /// Whether there are none; never so where [`Self::check`] passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Slots of a ciphertext.
    #[must_use]
    pub fn slots(&self) -> usize {
        match self {
            Self::Runs { slots, .. } => *slots,
            Self::Patches(patches) => patches.slots,
            Self::Grid(grid) => grid.slots,
            Self::Taps(taps) => taps.output.slots,
        }
    }

    /// Ciphertexts.
    #[must_use]
    pub fn ciphertexts(&self) -> usize {
        match self {
            Self::Runs { .. } => 1,
            Self::Patches(patches) => patches.ciphertexts(),
            Self::Grid(grid) => grid.ciphertexts(),
            Self::Taps(taps) => taps.ciphertexts(),
        }
    }

    /// The first slot of an element of a value that a layer made, through all ciphertexts.
    pub(super) fn first(&self, element: usize) -> usize {
        match self {
            Self::Runs { run, stride, .. } => element / run * stride + element % run,
            Self::Grid(grid) => grid.slot(element),
            Self::Patches(_) | Self::Taps(_) => 0,
        }
    }

    /// From one copy of all to the next; all slots of a ciphertext where there is one.
    pub(super) fn period(&self) -> usize {
        match self {
            Self::Runs { period, .. } => *period,
            _ => self.slots(),
        }
    }

    /// What each slot of each ciphertext holds.
    pub(super) fn places(&self) -> Vec<Vec<Place>> {
        match self {
            Self::Runs { slots, len, period, .. } => {
                let mut places = vec![Place::Free; *slots];
                for element in 0..*len {
                    for copy in (self.first(element)..*slots).step_by(*period) {
                        places[copy] = Place::Element(element);
                    }
                }
                vec![places]
            }
            Self::Patches(patches) => patches.places(),
            Self::Grid(grid) => {
                let mut places = vec![vec![Place::Free; grid.slots]; grid.ciphertexts()];
                for element in 0..grid.len() {
                    let slot = grid.slot(element);
                    places[slot / grid.slots][slot % grid.slots] = Place::Element(element);
                }
                places
            }
            Self::Taps(taps) => taps.places(),
        }
    }

    /// The elements, by their first slots.
    #[must_use]
    pub fn unpack(&self, slots: &[Vec<u64>]) -> Vec<u64> {
        let mut values = vec![0; self.len()];
        for (places, slots) in self.places().iter().zip(slots).rev() {
            for (place, slot) in places.iter().zip(slots).rev() {
                if let Place::Element(element) = place {
                    values[*element] = *slot;
                }
            }
        }
        values
    }

    /// For each ciphertext, which slots hold elements, or zeros that count.
    #[must_use]
    pub fn occupied(&self) -> Vec<Vec<bool>> {
        self.places()
            .iter()
            .map(|places| places.iter().map(|place| *place != Place::Free).collect())
            .collect()
    }
}

impl Patches {
    /// Positions of the output: slots of a plane.
    pub(super) fn positions(&self) -> usize {
        self.shape.output_image().map_or(1, |[height, width]| height * width)
    }

    /// Planes of a block.
    pub(super) fn planes(&self) -> usize {
        self.block / self.positions()
    }

    /// Taps of a ciphertext.
    fn taps_in_one(&self) -> usize {
        self.slots / self.block * self.kinds
    }

    /// The ciphertext, the first slot of the block, and the first plane of a tap.
    pub(super) fn tap(&self, tap: usize) -> (usize, usize, usize) {
        let (ciphertext, tap) = (tap / self.taps_in_one(), tap % self.taps_in_one());
        (ciphertext, tap / self.kinds * self.block, tap % self.kinds)
    }

    pub(super) fn ciphertexts(&self) -> usize {
        self.shape.taps().div_ceil(self.taps_in_one())
    }

    fn is_sound(&self) -> bool {
        let fits =
            self.shape.output_image().is_ok() && self.block.is_power_of_two() && self.block <= self.slots;
        fits && self.shape.groups == 1
            && self.positions() <= self.block
            && (1..=self.planes()).contains(&self.kinds)
            && self.ciphertexts() <= MOST
    }

    /// The input element that a tap reads for an output position; none in the padding.
    pub(super) fn source(&self, tap: usize, position: usize) -> Option<usize> {
        let columns = self.shape.output_image().ok()?[1];
        let (channel, tap) = self.shape.numbered_tap(tap);
        self.shape.element(channel, tap, [position / columns, position % columns])
    }

    fn places(&self) -> Vec<Vec<Place>> {
        let mut places = vec![vec![Place::Free; self.slots]; self.ciphertexts()];
        for tap in 0..self.shape.taps() {
            let (ciphertext, block, first) = self.tap(tap);
            for plane in (first..self.planes()).step_by(self.kinds) {
                for position in 0..self.positions() {
                    places[ciphertext][block + plane * self.positions() + position] =
                        self.source(tap, position).map_or(Place::Free, Place::Element);
                }
            }
        }
        places
    }
}
