//! How many channels, filters and groups share a ciphertext, and what that costs.

use serde::{Deserialize, Serialize};

/// How products are laid out and added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Variant {
    /// The paper's: channels one after another in `B'` ciphertexts, each product sent back on its own, all sums by the client. A
    /// baseline, and the way with the least noise.
    Literal,
    /// Channels at equal places of every ciphertext, so that the products of a filter are added before they are sent; with `copies` of
    /// the channels in each input ciphertext, an output serves as many filters.
    Folded {
        /// Copies, at least one.
        copies: usize,
    },
}

/// Homomorphic operations of a layer. There is no rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operations {
    /// Ciphertexts from the client.
    pub input_ciphertexts: usize,
    /// Ciphertexts to the client.
    pub output_ciphertexts: usize,
    /// Slotwise products by plaintexts.
    pub multiplications: usize,
    /// Additions of ciphertexts.
    pub additions: usize,
}

/// The sizes that an arrangement follows from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Slots of a ciphertext.
    pub(super) slots: usize,
    pub(super) groups: usize,
    /// Planes of all input channels of a group.
    pub(super) channels: usize,
    /// Output channels of a group.
    pub(super) filters: usize,
    /// Places of a plane.
    pub(super) places: usize,
}

/// Counts: how the planes of all groups are dealt to ciphertexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrangement {
    /// Groups that share ciphertexts.
    pub(super) together: usize,
    /// Sets of such groups.
    pub(super) bundles: usize,
    /// Ciphertexts that a plane is cut into.
    pub(super) parts: usize,
    /// Places in a part.
    pub(super) chunk: usize,
    pub(super) copies: usize,
    /// Channels of a copy in one ciphertext.
    pub(super) per_copy: usize,
    /// Input ciphertexts of one bundle and part.
    pub(super) inputs: usize,
    /// Output ciphertexts of one bundle and part.
    pub(super) outputs: usize,
    /// Whether the products of a filter are added.
    folds: bool,
}

impl Arrangement {
    /// None if a given number of copies do not fit a ciphertext.
    pub(super) fn new(sizes: &Sizes, variant: Variant) -> Option<Self> {
        let Sizes { slots, groups, channels, filters, places } = *sizes;
        let Variant::Folded { copies } = variant else {
            let inputs = (channels * places).div_ceil(slots);
            let (chunk, per_copy) = (places, channels);
            let one =
                Self { together: 1, bundles: groups, parts: 1, chunk, copies: 1, per_copy, ..Self::NONE };
            return Some(Self { inputs, outputs: filters * inputs, folds: false, ..one });
        };
        let parts = places.div_ceil(slots);
        let chunk = places.div_ceil(parts);
        let blocks = slots / chunk;
        let room = blocks.checked_div(copies).filter(|room| *room > 0)?;
        let inputs = channels.div_ceil(room);
        // Alike in all ciphertexts, so that none has more than it must.
        let per_copy = channels.div_ceil(inputs);
        let together = if inputs == 1 { (room / per_copy).clamp(1, groups) } else { 1 };
        let (bundles, outputs) = (groups.div_ceil(together), filters.div_ceil(copies));
        Some(Self { together, bundles, parts, chunk, copies, per_copy, inputs, outputs, folds: true })
    }

    const NONE: Self = Self {
        together: 0,
        bundles: 0,
        parts: 0,
        chunk: 0,
        copies: 0,
        per_copy: 0,
        inputs: 0,
        outputs: 0,
        folds: false,
    };

    pub(super) fn operations(&self) -> Operations {
        let sets = self.bundles * self.parts;
        let products = if self.folds { self.inputs * self.outputs } else { self.outputs };
        Operations {
            input_ciphertexts: sets * self.inputs,
            output_ciphertexts: sets * self.outputs,
            multiplications: sets * products,
            additions: sets * (products - self.outputs),
        }
    }

    /// Products in one output.
    pub(super) fn terms(&self) -> usize {
        if self.folds { self.inputs } else { 1 }
    }
}

impl Sizes {
    /// Every folded variant worth having: for each number of outputs, the one with the fewest inputs.
    pub(super) fn variants(&self) -> Vec<Variant> {
        let mut variants: Vec<Variant> = Vec::new();
        let mut copies = 1;
        while copies <= self.filters && Arrangement::new(self, Variant::Folded { copies }).is_some() {
            variants.push(Variant::Folded { copies });
            let outputs = self.filters.div_ceil(copies);
            // The fewest copies with fewer outputs.
            copies = if outputs == 1 { self.filters + 1 } else { self.filters.div_ceil(outputs - 1) };
        }
        variants
    }
}
