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
//! A strided convolution is the sum of stride-1 convolutions of its phases `x_ab[i, j] = x[s_y i + a, s_x j + b]`, so the
//! phases are treated as channels.

use std::collections::BTreeSet;

use crate::ProtocolError;
use crate::linear::convolution::Convolution;

/// A rotation by `step` slots inside each half, after exchanging the halves if `swap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rotation {
    /// Slots to the left, modulo half the slots.
    pub step: usize,
    /// Whether the halves are exchanged.
    pub swap: bool,
}

impl Rotation {
    /// No rotation.
    pub const IDENTITY: Self = Self { step: 0, swap: false };

    /// The slot that `slot` of the result is taken from, among `slots`.
    #[must_use]
    pub fn source(self, slot: usize, slots: usize) -> usize {
        let half = slots / 2;
        let row = (slot / half) ^ usize::from(self.swap);
        row * half + (slot % half + self.step) % half
    }

    fn then(self, other: Self, slots: usize) -> Self {
        Self { step: (self.step + other.step) % (slots / 2), swap: self.swap ^ other.swap }
    }

    fn inverse(self, slots: usize) -> Self {
        let half = slots / 2;
        Self { step: (half - self.step) % half, swap: self.swap }
    }
}

/// One filter tap over phase images: output pixel `(i, j)` reads phase pixel `(i + dy, j + dx)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tap {
    dy: isize,
    dx: isize,
}

/// What a packed layer costs the server, and how many ciphertexts travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Rotations that share a decomposition with others.
    pub hoisted_rotations: usize,
    /// Rotations of their own.
    pub rotations: usize,
    /// Ciphertext-plaintext products.
    pub multiplications: usize,
    /// Ciphertexts from the client.
    pub input_ciphertexts: usize,
    /// Ciphertexts to the client.
    pub output_ciphertexts: usize,
}

/// The public layout of one linear layer.
#[derive(Clone, Debug)]
pub struct Packing {
    shape: Convolution,
    output_image: [usize; 2],
    slots: usize,
    /// Slots of a channel's block, and the row stride inside it.
    block: usize,
    block_width: usize,
    phase_image: [usize; 2],
    /// Channels of one input ciphertext, repeated with this period; of one output ciphertext.
    period: usize,
    rows: usize,
    diagonals: usize,
    baby: usize,
    taps: Vec<Tap>,
    input_ciphertexts: usize,
    output_ciphertexts: usize,
}

impl Packing {
    /// Lays out `shape` over `slots` (a power of two), rotating inputs by up to `baby` diagonals and partial sums for the rest.
    ///
    /// `baby` is the number of diagonals reached by rotating inputs: all of them is the paper's input rotations (for a
    /// matrix: the hybrid method), one is its output rotations with the sum over inputs taken first.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if the shape is degenerate, an image is larger than half the slots, or `baby` does not
    /// divide the number of diagonals.
    pub fn new(shape: &Convolution, slots: usize, baby: usize) -> Result<Self, ProtocolError> {
        let output_image = shape.output_image()?;
        let phase_image = [0, 1].map(|axis| shape.image[axis].div_ceil(shape.strides[axis]));
        let block_width = phase_image[1].max(output_image[1]);
        let block = (phase_image[0].max(output_image[0]) * block_width).next_power_of_two();
        if block > slots / 2 {
            return Err(ProtocolError::Shape { what: "image larger than half the slots" });
        }
        let positions = slots / block;
        let in_channels = shape.in_channels * shape.strides[0] * shape.strides[1];
        let period = in_channels.next_power_of_two().min(positions);
        let rows = shape.out_channels.next_power_of_two().clamp(positions / period, positions);
        let diagonals = rows * period / positions;
        if baby == 0 || !diagonals.is_multiple_of(baby) {
            return Err(ProtocolError::Shape { what: "baby steps" });
        }
        Ok(Self {
            output_image,
            slots,
            block,
            block_width,
            phase_image,
            period,
            rows,
            diagonals,
            baby,
            taps: taps(shape),
            input_ciphertexts: in_channels.div_ceil(period),
            output_ciphertexts: shape.out_channels.div_ceil(rows),
            shape: shape.clone(),
        })
    }

    /// All layouts of a shape, from output rotations to input rotations.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn all(shape: &Convolution, slots: usize) -> Result<Vec<Self>, ProtocolError> {
        let first = Self::new(shape, slots, 1)?;
        let babies = (0..=first.diagonals.ilog2()).map(|log| 1 << log);
        Ok(babies.map(|baby| Self { baby, ..first.clone() }).collect())
    }

    /// The layer's shape.
    #[must_use]
    pub fn shape(&self) -> &Convolution {
        &self.shape
    }

    /// Number of slots of a ciphertext.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Diagonals reached by rotating inputs.
    #[must_use]
    pub fn baby(&self) -> usize {
        self.baby
    }

    /// Number of giant steps: partial sums of one output ciphertext that are rotated on their own.
    #[must_use]
    pub fn giants(&self) -> usize {
        self.diagonals / self.baby
    }

    /// The server's work.
    #[must_use]
    pub fn operations(&self) -> Operations {
        let per_input = self.taps.len() * self.baby;
        let moving =
            self.input_rotations().iter().filter(|rotation| **rotation != Rotation::IDENTITY).count();
        Operations {
            hoisted_rotations: moving * self.input_ciphertexts,
            rotations: (self.giants() - 1 + self.folds().len()) * self.output_ciphertexts,
            multiplications: per_input * self.giants() * self.input_ciphertexts * self.output_ciphertexts,
            input_ciphertexts: self.input_ciphertexts,
            output_ciphertexts: self.output_ciphertexts,
        }
    }

    /// The rotations applied to every input ciphertext, the identity among them.
    #[must_use]
    pub fn input_rotations(&self) -> Vec<Rotation> {
        let babies = (0..self.baby).map(|j| self.diagonal(j));
        babies
            .flat_map(|baby| self.taps.iter().map(move |tap| (baby, tap)))
            .map(|(baby, tap)| baby.then(self.tap(*tap), self.slots))
            .collect()
    }

    /// The rotation that brings partial sum `giant` into place.
    #[must_use]
    pub fn giant_rotation(&self, giant: usize) -> Rotation {
        self.diagonal(giant * self.baby)
    }

    /// The rotate-and-add steps that complete the sums.
    #[must_use]
    pub fn folds(&self) -> Vec<Rotation> {
        let (half, doublings) = (self.slots / self.block / 2, (self.period / self.diagonals).ilog2());
        let fold = |log| match self.diagonals << log {
            blocks if blocks == half => Rotation { step: 0, swap: true },
            blocks => Rotation { step: blocks * self.block, swap: false },
        };
        (0..doublings).map(fold).collect()
    }

    /// Every rotation that needs an evaluation key.
    #[must_use]
    pub fn keys(&self) -> BTreeSet<Rotation> {
        let giants = (0..self.giants()).map(|giant| self.giant_rotation(giant));
        let all = self.input_rotations().into_iter().chain(giants).chain(self.folds());
        all.filter(|rotation| *rotation != Rotation::IDENTITY).collect()
    }

    /// For every slot of input ciphertext `ciphertext`, the input element it carries.
    #[must_use]
    pub fn input_slots(&self, ciphertext: usize) -> Vec<Option<usize>> {
        (0..self.slots).map(|slot| self.input_element(ciphertext, slot)).collect()
    }

    /// For every output element, its ciphertext and slot.
    #[must_use]
    pub fn output_slots(&self) -> Vec<(usize, usize)> {
        let [height, width] = self.output_image;
        let place = |channel: usize, y: usize, x: usize| {
            let row = channel % self.rows;
            let position = row / self.diagonals * self.period + row % self.diagonals;
            (channel / self.rows, position * self.block + y * self.block_width + x)
        };
        let channels = 0..self.shape.out_channels;
        let pixels = channels.flat_map(|channel| (0..height).map(move |y| (channel, y)));
        pixels.flat_map(|(channel, y)| (0..width).map(move |x| place(channel, y, x))).collect()
    }

    /// The plaintext that weighs `input_rotations()[rotation]` of input `input` in partial sum `giant` of output `output`,
    /// as signed slot values.
    #[must_use]
    pub fn multiplier(&self, term: Term, weights: &[i64]) -> Vec<i64> {
        let unrotate = self.giant_rotation(term.giant).inverse(self.slots);
        let diagonal = term.giant * self.baby + term.rotation / self.taps.len();
        let tap = self.taps[term.rotation % self.taps.len()];
        let weight = |slot| {
            self.weight(term, diagonal, tap, unrotate.source(slot, self.slots))
                .map_or(0, |index| weights[index])
        };
        (0..self.slots).map(weight).collect()
    }

    /// All terms, by input ciphertext, input rotation, output ciphertext and giant step.
    pub fn terms(&self) -> impl Iterator<Item = Term> + '_ {
        let rotations = self.taps.len() * self.baby;
        let sums = self.output_ciphertexts * self.giants();
        (0..self.input_ciphertexts * rotations * sums).map(move |index| Term {
            input: index / sums / rotations,
            rotation: index / sums % rotations,
            output: index % sums / self.giants(),
            giant: index % self.giants(),
        })
    }

    fn diagonal(&self, j: usize) -> Rotation {
        let half = self.slots / self.block / 2;
        Rotation { step: j % half * self.block, swap: j >= half }
    }

    fn tap(&self, tap: Tap) -> Rotation {
        let half = (self.slots / 2) as isize;
        Rotation {
            step: (tap.dy * self.block_width as isize + tap.dx).rem_euclid(half) as usize,
            swap: false,
        }
    }

    /// The weight at a slot of a diagonal, before giant rotation; none where the source is outside the image.
    fn weight(&self, term: Term, diagonal: usize, tap: Tap, slot: usize) -> Option<usize> {
        let (position, pixel) = (slot / self.block, slot % self.block);
        let row = position / self.period * self.diagonals + position % self.period % self.diagonals;
        let out_channel = Some(term.output * self.rows + row).filter(|c| *c < self.shape.out_channels)?;
        let half = self.slots / self.block / 2;
        let shifted = Rotation { step: diagonal % half, swap: diagonal >= half }.source(position, 2 * half);
        let [in_channel, a, b] = self.phase_channel(term.input * self.period + shifted % self.period)?;
        let output = [pixel / self.block_width, pixel % self.block_width];
        let y = self.kernel_index(0, output[0], tap.dy, a)?;
        let x = self.kernel_index(1, output[1], tap.dx, b)?;
        Some(self.shape.weight_index(out_channel, in_channel, [y, x]))
    }

    /// The filter index that output index `output` applies to phase pixel `output + shift` of phase `phase`.
    fn kernel_index(&self, axis: usize, output: usize, shift: isize, phase: usize) -> Option<usize> {
        let stride = self.shape.strides[axis] as isize;
        let source = (output as isize + shift) * stride + phase as isize;
        let index = shift * stride + phase as isize + self.shape.pads[axis] as isize;
        let inside = output < self.output_image[axis]
            && (0..self.shape.image[axis] as isize).contains(&source)
            && (0..self.shape.kernel[axis] as isize).contains(&index);
        inside.then_some(index as usize)
    }

    /// Input channel and phase of a phase channel.
    fn phase_channel(&self, index: usize) -> Option<[usize; 3]> {
        let [down, right] = self.shape.strides;
        let channel = index / (down * right);
        (channel < self.shape.in_channels).then_some([channel, index / right % down, index % right])
    }

    fn input_element(&self, ciphertext: usize, slot: usize) -> Option<usize> {
        let (position, pixel) = (slot / self.block, slot % self.block);
        let [channel, a, b] = self.phase_channel(ciphertext * self.period + position % self.period)?;
        let phase = [pixel / self.block_width, pixel % self.block_width];
        if phase[0] >= self.phase_image[0] || phase[1] >= self.phase_image[1] {
            return None;
        }
        let [y, x] = [phase[0] * self.shape.strides[0] + a, phase[1] * self.shape.strides[1] + b];
        let [height, width] = self.shape.image;
        (y < height && x < width).then_some((channel * height + y) * width + x)
    }
}

/// One ciphertext-plaintext product of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Which input ciphertext.
    pub input: usize,
    /// Which of its rotations.
    pub rotation: usize,
    /// Which output ciphertext.
    pub output: usize,
    /// Which partial sum of it.
    pub giant: usize,
}

/// The distinct shifts between an output pixel and the phase pixels it reads.
fn taps(shape: &Convolution) -> Vec<Tap> {
    let shifts = |axis: usize| {
        let (stride, pad) = (shape.strides[axis] as isize, shape.pads[axis] as isize);
        let first = (-pad).div_euclid(stride);
        let last = (shape.kernel[axis] as isize - 1 - pad).div_euclid(stride);
        first..=last
    };
    shifts(0).flat_map(|dy| shifts(1).map(move |dx| Tap { dy, dx })).collect()
}
