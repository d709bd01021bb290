//! Algorithm 2: a fully connected layer with block-circulant weights.
//!
//! ```text
//! [x]  -> stacked                     log2 of the copies rotations
//! [X]  = HDFT([x])                    1 product, log2 k rotations
//! for each of l ciphertexts:
//!   [V] = [X] W                       1 product
//!   [V] += rot([V], Q/2), ..., 1      log2 Q rotations: sums over the input blocks
//!   [y] = inverse HDFT([V])           1 product, log2 k rotations
//! ```
//!
//! The paper leaves the layout open, but for "stacked and permuted". Here slot `((b G + g) k + c) Q + k - 1 + j` holds element `b` of input block `j`, for
//! all `g < G` and `c < k`: `G k` copies, `N = k G k Q`. As `b` is the topmost digit, HDFT leaves value `c` of block `j`'s transform at every `b`, which makes
//! them copies for `k G` output blocks `i = b G + g`. Before the inverse transform, copies for its `k` values are needed once more; they come by themselves: with `k - 1` empty slots
//! before the input blocks, the `Q` slots from any of the first `k` on hold all blocks once. So `Q` is the power of two from `ceil(I/k) + k - 1` on.

use lanner_ring::Dft;

use super::hdft::{halves, stack};
use super::{BlockCirculant, Counted, Digit, Hdft, Operations, SlotScheme};
use lanner_step::ProtocolError;
use lanner_step::Rotation;

/// A layer's shape and layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hfc {
    inputs: usize,
    outputs: usize,
    block: usize,
    slots: usize,
    /// `Q`.
    region: usize,
}

/// A layer's weights, ready to multiply.
pub struct HfcFactors<M> {
    forward: M,
    weights: Vec<M>,
    inverse: M,
}

impl Hfc {
    /// The layer with blocks of `k`, a power of two, in so many slots.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless one ciphertext holds the `k` copies that HDFT takes.
    pub fn new(inputs: usize, outputs: usize, block: usize, slots: usize) -> Result<Self, ProtocolError> {
        let powers = block.is_power_of_two() && block > 1 && slots.is_power_of_two();
        if inputs == 0 || outputs == 0 || inputs > slots || block > slots || !powers {
            return Err(NO_LAYER);
        }
        let region = (inputs.div_ceil(block) + block - 1).next_power_of_two();
        if block * block * region > slots {
            return Err(NO_LAYER);
        }
        Ok(Self { inputs, outputs, block, slots, region })
    }

    /// `G`.
    fn groups(&self) -> usize {
        self.slots / (self.block * self.block * self.region)
    }

    /// Slots from one output block to the next.
    fn stride(&self) -> usize {
        self.block * self.region
    }

    /// `l`: ciphertexts of outputs.
    #[must_use]
    pub fn ciphertexts(&self) -> usize {
        self.outputs.div_ceil(self.block).div_ceil(self.block * self.groups())
    }

    /// The slot of an input element; all others have to be zero.
    #[must_use]
    pub fn from(&self, element: usize) -> usize {
        let (j, b) = (element / self.block, element % self.block);
        b * self.slots / self.block + self.block - 1 + j
    }

    /// The ciphertext and the slot of an output element; other slots hold anything.
    #[must_use]
    pub fn to(&self, element: usize) -> (usize, usize) {
        let (i, a) = (element / self.block, element % self.block);
        let of_one = self.block * self.groups();
        (i / of_one, i % of_one * self.stride() + a)
    }

    /// The rotations that make copies.
    fn stacking(&self) -> Vec<Rotation> {
        stack(self.region, self.block * self.groups(), self.slots)
    }

    /// HDFT of the stacked input.
    #[must_use]
    pub fn forward(&self) -> Hdft {
        Hdft {
            slots: self.slots,
            elements: Digit { stride: self.slots / self.block, size: self.block },
            copies: Digit { stride: self.region, size: self.block },
            first: 0,
            inverse: false,
        }
    }

    /// Inverse HDFT of the sums.
    #[must_use]
    pub fn inverse(&self) -> Hdft {
        Hdft {
            slots: self.slots,
            elements: Digit { stride: self.region, size: self.block },
            copies: Digit { stride: 1, size: self.region },
            first: 0,
            inverse: true,
        }
    }

    /// The rotations that sum over input blocks.
    fn sums(&self) -> Vec<Rotation> {
        halves(1, self.region, self.slots)
    }

    /// All rotations.
    #[must_use]
    pub fn rotations(&self) -> Vec<Rotation> {
        let transforms = [self.forward().rotations(), self.inverse().rotations()].concat();
        [self.stacking(), transforms, self.sums()].concat()
    }

    /// Operations to make copies, which the paper counts by themselves.
    #[must_use]
    pub fn stacking_operations(&self) -> Operations {
        Operations::rotate_and_add((self.block * self.groups()).ilog2() as usize)
    }

    /// All operations.
    #[must_use]
    pub fn operations(&self) -> Operations {
        let sums = Operations::PRODUCT + Operations::rotate_and_add(self.region.ilog2() as usize);
        let each = sums + self.inverse().operations();
        self.stacking_operations() + self.forward().operations() + each * self.ciphertexts()
    }

    /// Makes weights ready.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if weights or transform do not fit the layer; the scheme's.
    pub fn prepare<S: SlotScheme>(
        &self,
        scheme: &S,
        transform: &Dft,
        weights: &BlockCirculant,
    ) -> Result<HfcFactors<S::Multiplier>, ProtocolError> {
        let blocks = [self.outputs, self.inputs].map(|side| side.div_ceil(self.block));
        ProtocolError::refuse_if(
            weights.blocks() != blocks || weights.taps() != 1 || weights.block() != self.block,
            "weights of a circulant layer",
        )?;
        let spectrum = weights.spectrum(transform)?;
        let of = |ciphertext: usize| {
            let value = |slot: usize| {
                let i = ciphertext * self.block * self.groups() + slot / self.stride();
                let j = (slot % self.region).checked_sub(self.block - 1).filter(|j| *j < blocks[1]);
                let Some(j) = j.filter(|_| i < blocks[0]) else { return 0 };
                spectrum.at(self.forward().copies.of(slot), [i, j], 0)
            };
            let values = zeroize::Zeroizing::new((0..self.slots).map(value).collect::<Vec<_>>());
            scheme.multiplier(&values)
        };
        let forward = self.forward();
        // The last block may reach beyond the inputs.
        let holds = |slot: usize| {
            let j = (slot % self.region).checked_sub(self.block - 1);
            j.is_some_and(|j| j * self.block + forward.elements.of(slot) < self.inputs)
        };
        Ok(HfcFactors {
            forward: scheme.multiplier(&forward.twiddles(transform, holds))?,
            weights: (0..self.ciphertexts()).map(of).collect::<Result<_, _>>()?,
            inverse: scheme.multiplier(&self.inverse().twiddles(transform, |_| true))?,
        })
    }

    /// The layer on an input that lies as [`Self::from`] says; its outputs lie as [`Self::to`] says.
    ///
    /// # Errors
    /// The scheme's.
    pub fn apply<S: SlotScheme>(
        &self,
        scheme: &mut Counted<'_, S>,
        input: &S::Ciphertext,
        factors: &HfcFactors<S::Multiplier>,
    ) -> Result<Vec<S::Ciphertext>, ProtocolError> {
        let stacked = scheme.fold(input.clone(), &self.stacking())?;
        let spectral = self.forward().apply(scheme, &stacked, &factors.forward)?;
        let mut output = |weights: &S::Multiplier| {
            let products = scheme.multiply(&spectral, weights)?;
            let sums = scheme.fold(products, &self.sums())?;
            self.inverse().apply(scheme, &sums, &factors.inverse)
        };
        factors.weights.iter().map(&mut output).collect()
    }
}

/// Why there is no layout.
const NO_LAYER: ProtocolError = ProtocolError::Parameters("a circulant layer that one ciphertext holds");
