//! The kernels by the paper's names, and what each costs.
//!
//! All are layouts of one construction ([`super::packing`]): they differ in how many channels share a ciphertext, how many
//! diagonals there are, and which of them are reached by rotating inputs.

use lanner_step::Convolution;
use serde::{Deserialize, Serialize};

/// A way to compute a linear layer on slots. Counts are in the table of [`Operations`]' fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kernel {
    /// Matrix: one product and one sum over all slots for each row, one output ciphertext each (section V-A).
    Naive,
    /// Matrix: the same with several rows at once, on copies of the input (section V-C).
    NaiveInputPacked,
    /// Matrix: one product for each diagonal of the square matrix ([HS14](https://eprint.iacr.org/2014/106), section V-D).
    Diagonal,
    /// Matrix: extended diagonals, then a sum over the rest (section V-F).
    Hybrid,
    /// Either: `baby` diagonals by rotating inputs, the others by rotating partial sums.
    BabyStepGiantStep {
        /// Diagonals reached by rotating inputs: a divisor of their number.
        baby: usize,
    },
    /// Convolution: zeros are packed around the image and each tap multiplies all slots alike (section VI-A). A baseline: which
    /// slots hold partial sums depends on the filter's size, and images take more slots. One channel per ciphertext.
    PaddedSiso,
    /// Convolution of one channel to one channel, tightly packed, with zeros in the plaintexts (section VI-B).
    PackedSiso,
    /// Convolution: each channel in a ciphertext of its own (section VI-C).
    OneChannel,
    /// Convolution: all diagonals by rotating inputs (section VI-D).
    InputRotations,
    /// Convolution: all diagonals by rotating partial sums, those of each input ciphertext on their own (section VI-D).
    OutputRotationsPerInput,
    /// Convolution: all diagonals by rotating partial sums, after summing over the input ciphertexts.
    OutputRotations,
    /// Convolution: inputs are rotated along rows of the image only, and partial sums along its columns, so that there are
    /// fewer keys and more rotations; diagonals as in [`Self::BabyStepGiantStep`].
    Separable {
        /// Diagonals reached by rotating inputs: a divisor of their number.
        baby: usize,
    },
    /// Convolution of many images at once: a ciphertext holds the same channel of several, zeros packed around each, and
    /// every plaintext is a constant, which makes the least noise (section VI, "Low-noise Batched Convolutions").
    Batched {
        /// Images.
        images: usize,
    },
}

impl Kernel {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::NaiveInputPacked => "naive-input-packed",
            Self::Diagonal => "diagonal",
            Self::Hybrid => "hybrid",
            Self::BabyStepGiantStep { .. } => "baby-step-giant-step",
            Self::PaddedSiso => "padded-siso",
            Self::PackedSiso => "packed-siso",
            Self::OneChannel => "one-channel",
            Self::InputRotations => "input-rotations",
            Self::OutputRotationsPerInput => "output-rotations-per-input",
            Self::OutputRotations => "output-rotations",
            Self::Separable { .. } => "separable",
            Self::Batched { .. } => "batched",
        }
    }

    /// Whether the kernel is one for layers of this shape.
    #[must_use]
    pub fn serves(self, shape: &Convolution) -> bool {
        let matrix = is_matrix(shape);
        let single = [shape.in_channels, shape.out_channels] == [1, 1];
        match self {
            Self::Naive | Self::NaiveInputPacked | Self::Diagonal | Self::Hybrid => matrix,
            Self::BabyStepGiantStep { .. } => true,
            Self::PackedSiso => single && !matrix,
            Self::PaddedSiso
            | Self::OneChannel
            | Self::InputRotations
            | Self::OutputRotationsPerInput
            | Self::OutputRotations
            | Self::Separable { .. }
            | Self::Batched { .. } => !matrix,
        }
    }

    /// The kernels that a plan chooses from for layers of this shape with a given number of `diagonals`: none of the others is ever
    /// cheaper than all of these.
    #[must_use]
    pub fn choices(shape: &Convolution, diagonals: usize) -> Vec<Self> {
        let separable = if shape.kernel[0] > 1 { diagonals } else { 0 };
        // One baby step alone has another name for convolutions.
        let first = if is_matrix(shape) { 1 } else { 2 };
        let between = babies(diagonals).filter(|baby| (first..diagonals).contains(baby));
        let all = [Self::Hybrid, Self::InputRotations, Self::OutputRotations]
            .into_iter()
            .chain(between.map(|baby| Self::BabyStepGiantStep { baby }))
            .chain(babies(separable).map(|baby| Self::Separable { baby }));
        all.filter(|kernel| kernel.serves(shape)).collect()
    }

    /// Every kernel for one image of this shape with a given number of `diagonals`.
    #[must_use]
    pub fn all(shape: &Convolution, diagonals: usize) -> Vec<Self> {
        let all = [
            Self::Naive,
            Self::NaiveInputPacked,
            Self::Diagonal,
            Self::Hybrid,
            Self::PaddedSiso,
            Self::PackedSiso,
            Self::OneChannel,
            Self::InputRotations,
            Self::OutputRotationsPerInput,
            Self::OutputRotations,
        ]
        .into_iter()
        .chain(babies(diagonals).map(|baby| Self::BabyStepGiantStep { baby }))
        .chain(babies(diagonals).map(|baby| Self::Separable { baby }));
        all.filter(|kernel| kernel.serves(shape)).collect()
    }
}

/// Whether a layer is a matrix: one pixel, one tap.
fn is_matrix(shape: &Convolution) -> bool {
    shape.image == [1, 1] && shape.kernel == [1, 1] && shape.groups == 1
}

/// The powers of two that divide the number of diagonals, a power of two itself; none of none.
fn babies(diagonals: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |baby| Some(2 * baby)).take_while(move |baby| *baby <= diagonals)
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
    /// Sums of products, each reduced once.
    pub sums: usize,
    /// Ciphertexts from the client.
    pub input_ciphertexts: usize,
    /// Ciphertexts to the client.
    pub output_ciphertexts: usize,
}
