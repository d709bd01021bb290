//! Where elements sit in slots: the hybrid layout of GAZELLE (Juvekar et al. 2018, sections IV and V), over channels.
//!
//! Slots form two halves; a rotation acts inside each half and the row swap exchanges the halves. An image channel takes
//! a block of consecutive slots, so a half is a ring of block positions. Matrix-vector products and convolutions are then
//! one construction: the hybrid method runs over channels, with one plaintext per diagonal and per filter tap. A fully
//! connected layer has blocks of one slot and a single tap.
//!
//! With `n_i` channels (a power of two) repeated over `c` positions, and `d = n_o n_i / c` diagonals, position
//! `s = k n_i + i` of diagonal `j` weighs input channel `i + j` for output channel `k d + (i mod d)`; rotating and adding
//! by `d, 2d, .., n_i / 2` blocks completes the sums, and output channel `k d + r` ends at position `k n_i + r`.
//!
//! A strided convolution is the sum of stride-1 convolutions of its phases, so the phases are treated as channels. With
//! groups, the channels of a group lie apart by the number of groups, so that the diagonals in use are the fewest;
//! products that are zero for every choice of weights are left out. An image that does not fit half the slots is cut into
//! frames that overlap, all computed alike.

mod channels;
mod layout;
mod program;

use std::collections::BTreeSet;

use super::axis::Axis;
pub use super::kernel::{Kernel, Operations};
use channels::Channels;

use super::program::Program;
pub use lanner_step::Rotation;
use lanner_step::{Convolution, ProtocolError, Result, Samples};

/// The public layout of one linear layer.
#[derive(Clone, Debug)]
pub struct Packing {
    shape: Convolution,
    kernel: Kernel,
    /// Slots of each of the samples that share ciphertexts.
    slots: usize,
    samples: Samples,
    axes: [Axis; 2],
    channels: Channels,
    /// Images computed at once, in positions of their own.
    images: usize,
    /// Whether plaintexts are zero where a tap leaves the image.
    punctured: bool,
    program: Program,
    cells: Vec<Cell>,
}

/// What one plaintext weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    input: usize,
    output: usize,
    diagonal: usize,
    /// Shift of the output's pixel to the one it reads, down and right.
    shift: [isize; 2],
}

/// The values of a plaintext, as signed integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weighting {
    /// One for each slot.
    Slots(Vec<i64>),
    /// The same in every slot.
    Constant(i64),
}

impl Weighting {
    /// The values in all `slots`.
    #[must_use]
    pub fn into_slots(self, slots: usize) -> Vec<i64> {
        match self {
            Self::Slots(values) => values,
            Self::Constant(value) => vec![value; slots],
        }
    }
}

impl Packing {
    /// Lays out `shape` over `slots` (a power of two) with `baby` of the diagonals reached by rotating inputs.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn new(shape: &Convolution, slots: usize, baby: usize) -> Result<Self> {
        Self::of(shape, slots, Kernel::BabyStepGiantStep { baby })
    }

    /// Lays out `shape` over `slots` (a power of two) for a kernel.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if the shape is degenerate, no cut of the image into frames fits the slots, the kernel is
    /// not one for this shape, or its `baby` does not divide the number of diagonals.
    pub fn of(shape: &Convolution, slots: usize, kernel: Kernel) -> Result<Self> {
        Self::of_samples(shape, slots, kernel, Samples::ONE)
    }

    /// As [`Self::of`], for several samples that share the slots: each has as many as there are for it.
    ///
    /// # Errors
    /// As [`Self::of`]; also if a sample has fewer than two slots.
    pub fn of_samples(shape: &Convolution, slots: usize, kernel: Kernel, samples: Samples) -> Result<Self> {
        let slots = samples.slots(slots);
        let outputs = shape.output_image()?;
        let images = if let Kernel::Batched { images } = kernel { images } else { 1 };
        ProtocolError::refuse_if(
            !kernel.serves(shape) || !slots.is_power_of_two() || slots < 2 || images == 0,
            "the kernel and the layer",
        )?;
        let punctured = !matches!(kernel, Kernel::PaddedSiso | Kernel::Batched { .. });
        let axes = channels::fit(shape, outputs, slots, !punctured)?;
        let channels = Channels::new(shape, kernel, slots, &axes)?;
        let mut packing = Self {
            shape: shape.clone(),
            kernel,
            slots,
            samples,
            axes,
            channels,
            images,
            punctured,
            program: Program::default(),
            cells: Vec::new(),
        };
        packing.build_program();
        Ok(packing)
    }

    /// The layouts of a shape that a plan chooses from.
    ///
    /// # Errors
    /// As [`Self::of_samples`].
    pub fn choices(shape: &Convolution, slots: usize, samples: Samples) -> Result<Vec<Self>> {
        let of = |kernel| Self::of_samples(shape, slots, kernel, samples);
        let first = of(Kernel::BabyStepGiantStep { baby: 1 })?;
        Kernel::choices(shape, first.diagonals()).into_iter().map(of).collect()
    }

    /// The layouts of a shape by every kernel that serves a single image.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn all(shape: &Convolution, slots: usize) -> Result<Vec<Self>> {
        let first = Self::new(shape, slots, 1)?;
        let kernels = Kernel::all(shape, first.diagonals());
        kernels.into_iter().map(|kernel| Self::of(shape, slots, kernel)).collect()
    }

    /// The layer's shape.
    #[must_use]
    pub fn shape(&self) -> &Convolution {
        &self.shape
    }

    /// The kernel.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Number of slots of a ciphertext.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.samples.times(self.slots)
    }

    /// Diagonals of the channels, those in use or not.
    #[must_use]
    pub fn diagonals(&self) -> usize {
        self.channels.diagonals
    }

    /// Diagonals reached by rotating inputs.
    #[must_use]
    pub fn baby(&self) -> usize {
        self.channels.baby
    }

    /// Frames that are computed alike, one after another: tiles of an image, and groups of images.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.axes[0].frames * self.axes[1].frames * self.image_groups()
    }

    /// What the server does for one frame.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The server's work on all frames.
    #[must_use]
    pub fn operations(&self) -> Operations {
        let program = &self.program;
        let moving = |rotation: Rotation| rotation != Rotation::IDENTITY;
        let rotated = || program.inputs.iter().flatten();
        let frames = self.frames();
        Operations {
            hoisted_rotations: frames * rotated().filter(|rotated| moving(rotated.rotation)).count(),
            rotations: frames * program.merges.iter().filter(|merge| moving(merge.rotation)).count(),
            multiplications: frames * rotated().map(|rotated| rotated.terms.len()).sum::<usize>(),
            sums: frames * program.sums,
            input_ciphertexts: frames * program.inputs.len(),
            output_ciphertexts: frames * program.outputs.len(),
        }
    }

    /// Input and output ciphertexts.
    #[must_use]
    pub fn ciphertexts(&self) -> [usize; 2] {
        [self.program.inputs.len(), self.program.outputs.len()].map(|count| count * self.frames())
    }

    /// Every rotation that needs an evaluation key.
    #[must_use]
    pub fn keys(&self) -> BTreeSet<Rotation> {
        self.program.keys()
    }

    /// Images computed at once, of all samples.
    #[must_use]
    pub fn images(&self) -> usize {
        self.samples.times(self.images)
    }

    /// Number of elements of the input.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.images() * self.shape.inputs()
    }

    /// The element in each slot of an input ciphertext; a channel may be there several times. The other slots are zero, for some
    /// are padding.
    #[must_use]
    pub fn input_slots(&self, ciphertext: usize) -> Vec<Option<usize>> {
        (0..self.slots()).map(|slot| self.input_element(ciphertext, slot)).collect()
    }

    /// Output ciphertext and slot of every output element.
    #[must_use]
    pub fn output_slots(&self) -> Vec<(usize, usize)> {
        let of_one = self.output_slots_of_sample();
        let count = self.samples.count();
        let of = |sample| of_one.iter().map(move |(ciphertext, slot)| (*ciphertext, slot * count + sample));
        (0..count).flat_map(of).collect()
    }

    /// Output ciphertext, and slot among its own, of every output element of one sample.
    fn output_slots_of_sample(&self) -> Vec<(usize, usize)> {
        let per_frame = self.program.outputs.len();
        let mut places = Vec::new();
        for image in 0..self.images {
            for channel in 0..self.shape.out_channels {
                let (output, position) = self.output_position(image, channel);
                for (frame_y, y) in self.axes[0].output_places() {
                    for (frame_x, x) in self.axes[1].output_places() {
                        let frame = self.frame(image, frame_y, frame_x);
                        places.push((frame * per_frame + output, self.channels.slot(position, [y, x])));
                    }
                }
            }
        }
        places
    }

    /// Number of plaintexts.
    #[must_use]
    pub fn multipliers(&self) -> usize {
        self.cells.len()
    }

    /// The values of plaintext `index`.
    #[must_use]
    pub fn weighting(&self, index: usize, weights: &[i64]) -> Weighting {
        let cell = self.cells[index];
        if !self.punctured {
            return Weighting::Constant(self.constant_weight(cell).map_or(0, |index| weights[index]));
        }
        let unrotate = self.merge_rotation(cell).inverse(self.slots);
        let weight = |slot| self.weight(cell, unrotate.source(slot, self.slots)).map_or(0, |i| weights[i]);
        Weighting::Slots(self.samples.spread(&(0..self.slots).map(weight).collect::<Vec<_>>()))
    }

    /// Where all plaintexts are constants: the largest magnitude that one has modulo `t`.
    #[must_use]
    pub fn constant_bound(&self, t: u64) -> Option<u64> {
        (!self.punctured).then_some(t / 2)
    }
}
