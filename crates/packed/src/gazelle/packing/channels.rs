//! Where the channels of a layer lie.

use lanner_step::{Convolution, ProtocolError, Result};

use crate::gazelle::axis::Axis;
use crate::gazelle::kernel::Kernel;

/// The channels of a layer over block positions. Phases of an input channel are channels of their own.
#[derive(Clone, Debug)]
pub(super) struct Channels {
    /// Slots of a block, and the row stride inside it.
    pub(super) block: usize,
    pub(super) block_width: usize,
    /// `c`, the number of blocks of a ciphertext.
    pub(super) positions: usize,
    /// The phases that some tap reads, down and right.
    phases: Vec<[usize; 2]>,
    /// `n_i`: channels of one input ciphertext, repeated with this period so many times.
    pub(super) period: usize,
    pub(super) copies: usize,
    pub(super) diagonals: usize,
    pub(super) baby: usize,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
}

/// Frames that fit half the slots, as few as possible; an axis that is not cut packs no padding, unless `padded`.
pub(super) fn fit(shape: &Convolution, outputs: [usize; 2], slots: usize, padded: bool) -> Result<[Axis; 2]> {
    let cuts = |axis: usize| {
        let cut = |frames| match frames {
            1 if !padded => Axis::whole(shape, axis, outputs[axis]),
            _ => Axis::tiled(shape, axis, outputs[axis], frames),
        };
        let mut cuts: Vec<_> = (1..=outputs[axis].min(MAX_CUTS)).map(cut).collect();
        cuts.dedup_by_key(|cut| cut.frames);
        cuts
    };
    let right = cuts(1);
    let all =
        cuts(0).into_iter().flat_map(|down| right.iter().map(move |right| [down.clone(), right.clone()]));
    let fitting = all.filter(|axes| block(axes).0 <= slots / 2);
    let best = fitting.min_by_key(|[down, right]| (down.frames * right.frames, right.frames));
    best.ok_or(ProtocolError::Parameters("image larger than the slots"))
}

/// Slots of the block of a channel, and its row stride.
fn block(axes: &[Axis; 2]) -> (usize, usize) {
    let [height, width] = [&axes[0], &axes[1]].map(|axis| axis.phase_pixels().max(axis.outputs));
    ((height * width).next_power_of_two(), width)
}

impl Channels {
    pub(super) fn new(shape: &Convolution, kernel: Kernel, slots: usize, axes: &[Axis; 2]) -> Result<Self> {
        let (block, block_width) = block(axes);
        let positions = slots / block;
        let right = axes[1].phases();
        let phases: Vec<_> =
            axes[0].phases().into_iter().flat_map(|a| right.iter().map(move |b| [a, *b])).collect();
        let in_channels = phases.len() * shape.in_channels;
        let period = in_channels.next_power_of_two().min(positions);
        let most = positions / period;
        let rows = shape.out_channels.next_power_of_two().clamp(most, positions);
        let hybrid = if shape.groups == 1 { rows / most } else { period };
        let (period, copies, diagonals, baby) = match kernel {
            Kernel::Naive => (period, 1, 1, 1),
            Kernel::NaiveInputPacked => (period, most, 1, 1),
            Kernel::Diagonal => (period, most, period, period),
            Kernel::Hybrid | Kernel::InputRotations => (period, most, hybrid, hybrid),
            Kernel::OutputRotations | Kernel::OutputRotationsPerInput => (period, most, hybrid, 1),
            Kernel::BabyStepGiantStep { baby } | Kernel::Separable { baby } => (period, most, hybrid, baby),
            Kernel::OneChannel | Kernel::PackedSiso | Kernel::PaddedSiso | Kernel::Batched { .. } => {
                (1, 1, 1, 1)
            }
        };
        ProtocolError::refuse_if(baby == 0 || diagonals % baby != 0, "baby steps")?;
        Ok(Self {
            block,
            block_width,
            positions,
            phases,
            period,
            copies,
            diagonals,
            baby,
            inputs: in_channels.div_ceil(period),
            outputs: shape.out_channels.div_ceil(copies * diagonals),
        })
    }

    /// The slot of a pixel.
    pub(super) fn slot(&self, position: usize, pixel: [usize; 2]) -> usize {
        position * self.block + pixel[0] * self.block_width + pixel[1]
    }

    /// Position and pixel of a slot.
    pub(super) fn place(&self, slot: usize) -> (usize, [usize; 2]) {
        let pixel = slot % self.block;
        (slot / self.block, [pixel / self.block_width, pixel % self.block_width])
    }

    /// Input channel and phase at a position of an input ciphertext, in the first copy.
    ///
    /// The channels of one phase follow each other, those of a group apart by the number of groups.
    pub(super) fn input(
        &self,
        shape: &Convolution,
        ciphertext: usize,
        at: usize,
    ) -> Option<(usize, [usize; 2])> {
        let index = ciphertext * self.period + at;
        let (of_group, group) = (index / shape.groups, index % shape.groups);
        let phase = self.phases.get(of_group / shape.group_inputs())?;
        Some((group * shape.group_inputs() + of_group % shape.group_inputs(), *phase))
    }

    /// Output channel that a position weighs inputs for.
    pub(super) fn output(&self, shape: &Convolution, ciphertext: usize, position: usize) -> Option<usize> {
        let (copy, at) = (position / self.period, position % self.period);
        let index = (ciphertext * self.copies + copy) * self.diagonals + at % self.diagonals;
        let channel = index % shape.groups * shape.group_outputs() + index / shape.groups;
        (copy < self.copies && index < shape.out_channels).then_some(channel)
    }

    /// Whether a position holds a copy of the input.
    pub(super) fn holds_input(&self, position: usize) -> bool {
        position / self.period < self.copies
    }
}

/// The most frames along one axis.
const MAX_CUTS: usize = 1 << 7;
