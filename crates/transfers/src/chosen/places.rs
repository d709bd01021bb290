//! Which comparison chooses which weights, and what is sent for it.

use lanner_step::{Convolution, ProtocolError, Result, Samples};
use lanner_wire::packed_len;

/// A layer of groups: group `g` is a matrix of some rows, one for each of its outputs, and columns, one for each of its comparisons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    /// The groups' number, rows and columns.
    groups: [usize; 3],
    samples: Samples,
    /// Bits of the ring of the outputs.
    bits: u32,
}

impl Places {
    /// The places of a layer over `Z_2^bits`.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless it is a product with a vector, in groups, over 2 to 62 bits and with fewer than `2^40` products.
    pub(super) fn new(shape: &Convolution, samples: Samples, bits: u32) -> Result<Self> {
        let error = ProtocolError::Parameters("a layer that comparisons choose");
        shape.output_image()?;
        if !is_of_vector(shape) || !(2..=62).contains(&bits) {
            return Err(error);
        }
        let groups = [shape.groups, shape.group_outputs(), shape.group_inputs()];
        let products = groups.into_iter().try_fold(samples.count(), usize::checked_mul);
        if products.is_none_or(|products| products as u64 >= 1 << 40) {
            return Err(error);
        }
        Ok(Self { groups, samples, bits })
    }

    /// Bits of the ring of the outputs.
    pub(super) const fn bits(&self) -> u32 {
        self.bits
    }

    /// Weights.
    pub(super) const fn weights(&self) -> usize {
        let [groups, rows, columns] = self.groups;
        groups * rows * columns
    }

    /// Weights that a comparison chooses.
    pub(super) const fn width(&self) -> usize {
        self.groups[1]
    }

    /// Comparisons, each of which takes a transfer: of all samples.
    pub(super) const fn choices(&self) -> usize {
        let [groups, _, columns] = self.groups;
        self.samples.times(groups * columns)
    }

    /// Products of a comparison and a weight.
    pub(super) const fn products(&self) -> usize {
        self.choices() * self.width()
    }

    /// Outputs of one sample.
    pub(super) const fn outputs_of_one(&self) -> usize {
        let [groups, rows, _] = self.groups;
        groups * rows
    }

    /// Outputs.
    pub(super) const fn outputs(&self) -> usize {
        self.samples.times(self.outputs_of_one())
    }

    /// Bytes of the client's choices.
    pub(super) const fn flips_len(&self) -> usize {
        packed_len(self.choices(), 1)
    }

    /// Bytes of all corrections.
    pub(super) const fn message_len(&self) -> usize {
        packed_len(self.products(), self.bits)
    }

    /// Comparisons whose corrections are made together: so many that they are whole bytes.
    pub(super) fn at_once(&self) -> usize {
        (AT_ONCE / self.width()).next_multiple_of(8).max(8)
    }

    /// The weight of row `row` that a comparison chooses.
    pub(super) const fn weight(&self, choice: usize, row: usize) -> usize {
        let [groups, rows, columns] = self.groups;
        let (group, column) = (choice / columns % groups, choice % columns);
        (group * rows + row) * columns + column
    }

    /// The first of the outputs that a comparison's products are added to.
    pub(super) const fn output(&self, choice: usize) -> usize {
        let [_, rows, columns] = self.groups;
        choice / columns * rows
    }
}

/// Whether a layer is a product with a vector, of one matrix or of one in each group.
pub(super) fn is_of_vector(shape: &Convolution) -> bool {
    shape.image == [1, 1] && shape.kernel == [1, 1] && shape.strides == [1, 1] && shape.pads == [0; 4]
}

/// Products whose corrections are made together, about.
const AT_ONCE: usize = 1 << 12;
