//! Images position by position: at each position of a grid all channels side by side.
//!
//! A convolution has the same weights at every position. Where positions are a power of two of slots apart, the plaintexts that a layer multiplies
//! by repeat from one to the next, and are [as much smaller](lanner_bfv::PeriodicMultiplier). A convolution of stride s reads images whose pixels lie
//! s by s at one position, as s^2 times as many channels, so that a step from one output to the next is a step from one position to the next.

use lanner_step::Convolution;
use serde::{Deserialize, Serialize};

/// An image on a grid of positions.
///
/// Pixel `(y, x)` lies at position `(y / phases[0], x / phases[1])` and is of phase `(y % phases[0], x % phases[1])`. A *plane* is what a channel has of a
/// phase; there are `width` planes in a row of slots, and two rows in a ciphertext.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Slots of a ciphertext.
    pub slots: usize,
    /// Channels of the image.
    pub channels: usize,
    /// Height and width of the image.
    pub image: [usize; 2],
    /// Rows and columns of pixels at a position.
    pub phases: [usize; 2],
    /// Rows and columns of positions, powers of two.
    pub positions: [usize; 2],
    /// Planes of a row of slots.
    pub width: usize,
}

/// What the taps of a convolution read for each pixel of its output, which is a [`Grid`]: a plane for each tap and each phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taps {
    /// The convolution.
    pub shape: Convolution,
    /// Its output.
    pub output: Grid,
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Anything.
    Free,
    /// Zero: what a convolution reads beside the image.
    Zero,
    /// The element of a number.
    Element(usize),
}

/// The most ciphertexts that a value has.
pub(super) const MOST: usize = 64;

impl Grid {
    /// Slots from one position to the next: planes that a row has room for.
    pub(super) fn cells(&self) -> usize {
        self.slots / 2 / self.positions.iter().product::<usize>()
    }

    /// Phases of a channel.
    pub(super) fn all_phases(&self) -> usize {
        self.phases.iter().product()
    }

    fn planes(&self) -> usize {
        self.channels * self.all_phases()
    }

    pub(super) fn len(&self) -> usize {
        self.channels * self.image.iter().product::<usize>()
    }

    pub(super) fn ciphertexts(&self) -> usize {
        self.planes().div_ceil(self.width).div_ceil(2)
    }

    /// The slot of a plane at the first position, through all ciphertexts.
    pub(super) fn plane(&self, phase: usize, channel: usize) -> usize {
        let plane = phase * self.channels + channel;
        plane / self.width * (self.slots / 2) + plane % self.width
    }

    /// The phase of a pixel, and how far its position is from the first one, in slots.
    pub(super) fn pixel(&self, pixel: [usize; 2]) -> (usize, usize) {
        let phase = [0, 1].map(|axis| pixel[axis] % self.phases[axis]);
        let place = [0, 1].map(|axis| pixel[axis] / self.phases[axis]);
        let position = place[0] * self.positions[1] + place[1];
        (phase[0] * self.phases[1] + phase[1], position * self.cells())
    }

    /// The pixel of a phase at the first position. It may be beyond the image, which then has none of that phase.
    pub(super) fn first_pixel(&self, phase: usize) -> [usize; 2] {
        [phase / self.phases[1], phase % self.phases[1]]
    }

    /// The slot of an element, through all ciphertexts.
    pub(super) fn slot(&self, element: usize) -> usize {
        let [height, width] = self.image;
        let (phase, ahead) = self.pixel([element / width % height, element % width]);
        self.plane(phase, element / (height * width)) + ahead
    }

    /// Checks what came from elsewhere.
    pub(super) fn is_sound(&self) -> bool {
        let sizes = [self.channels, self.image[0], self.image[1], self.phases[0], self.phases[1], self.width];
        // As often as plaintexts may repeat.
        let positions = product(&self.positions).filter(|positions| (8..=1024).contains(positions));
        let reaches = |axis: usize| {
            product(&[self.phases[axis], self.positions[axis]]).is_some_and(|most| self.image[axis] <= most)
        };
        sizes.iter().all(|size| *size > 0)
            && self.slots.is_power_of_two()
            && self.positions.iter().all(|positions| positions.is_power_of_two())
            && positions.is_some_and(|positions| positions * 2 <= self.slots)
            && self.width <= self.cells()
            && [0, 1].into_iter().all(reaches)
            && product(&[self.channels, self.phases[0], self.phases[1]])
                .is_some_and(|planes| planes <= 2 * MOST * self.width)
    }
}

/// The product of numbers from elsewhere, if it is one.
fn product(numbers: &[usize]) -> Option<usize> {
    numbers.iter().try_fold(1_usize, |all, number| all.checked_mul(*number))
}

impl Taps {
    /// Whether both rows hold the same taps, of phases that take turns.
    fn is_paired(&self) -> bool {
        self.output.all_phases() > 1
    }

    /// Rows of slots that a row of every ciphertext, or all of them, has planes for.
    fn rows(&self) -> usize {
        let turns = if self.is_paired() { self.output.all_phases().div_ceil(2) } else { 1 };
        (turns * self.shape.taps()).div_ceil(self.output.cells())
    }

    pub(super) fn ciphertexts(&self) -> usize {
        if self.is_paired() { self.rows() } else { self.rows().div_ceil(2) }
    }

    /// The slot of a plane at the first position, through all ciphertexts.
    ///
    /// The phases of the output lie in the two rows in turn, and so do those of the taps: what is summed lies in one row.
    pub(super) fn plane(&self, phase: usize, tap: usize) -> usize {
        let (half, cells) = (self.output.slots / 2, self.output.cells());
        if self.is_paired() {
            let plane = phase / 2 * self.shape.taps() + tap;
            (plane / cells * 2 + phase % 2) * half + plane % cells
        } else {
            tap / cells * half + tap % cells
        }
    }

    /// Checks what came from elsewhere.
    pub(super) fn is_sound(&self) -> bool {
        let Grid { channels, image, slots, .. } = self.output;
        let Convolution { in_channels, kernel: [height, width], .. } = self.shape;
        self.output.is_sound()
            && self.shape.output_image().is_ok_and(|own| (own, self.shape.out_channels) == (image, channels))
            && product(&[in_channels, height, width]).is_some_and(|taps| taps <= MOST * slots)
            && self.ciphertexts() <= MOST
    }

    /// What each slot of each ciphertext holds.
    pub(super) fn places(&self) -> Vec<Vec<Place>> {
        let (slots, grid) = (self.output.slots, &self.output);
        let mut places = vec![vec![Place::Free; slots]; self.ciphertexts()];
        let pixels = (0..grid.image[0]).flat_map(|y| (0..grid.image[1]).map(move |x| [y, x]));
        for pixel in pixels {
            let (phase, ahead) = grid.pixel(pixel);
            for number in 0..self.shape.taps() {
                let (channel, tap) = self.shape.numbered_tap(number);
                let slot = self.plane(phase, number) + ahead;
                // Weights are the same in the padding.
                places[slot / slots][slot % slots] =
                    self.shape.element(channel, tap, pixel).map_or(Place::Zero, Place::Element);
            }
        }
        places
    }
}
