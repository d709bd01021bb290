//! The automorphisms `X -> X^g` of `Z_q[X]/(X^n + 1)`, `g` odd.
//!
//! On coefficients, `X^i` goes to `X^(i g)`, with a sign. On values, slot permutation: the value at `psi^e`
//! of `a(X^g)` is that of `a` at `psi^(e g)`.

use crate::arch;
use crate::ntt::bit_reverse;
use crate::{Modulus, RingError};

/// An odd exponent `g` below `2n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GaloisElement {
    exponent: usize,
    n: usize,
}

impl GaloisElement {
    /// Generates, together with -1, the odd numbers mod `2n`; rotations of slots are its powers.
    pub const GENERATOR: usize = 3;

    /// The automorphism `X -> X^exponent` of degree `n`, a power of two from 8 on.
    ///
    /// # Errors
    /// [`RingError::Degree`], or [`RingError::GaloisElement`] unless `exponent` is odd and below `2n`.
    pub fn new(exponent: usize, n: usize) -> Result<Self, RingError> {
        if !n.is_power_of_two() || n < LANES {
            return Err(RingError::Degree { n });
        }
        if exponent.is_multiple_of(2) || exponent >= 2 * n {
            return Err(RingError::GaloisElement { element: exponent, n });
        }
        Ok(Self { exponent, n })
    }

    /// `GENERATOR^steps`, `steps` taken mod `n/2`: rotates each half of the slots of a batched plaintext.
    ///
    /// # Errors
    /// [`RingError::Degree`] unless `n` is a power of two from 8 on.
    pub fn rotation(steps: isize, n: usize) -> Result<Self, RingError> {
        let identity = Self::new(1, n)?;
        let steps = steps.rem_euclid(n as isize / 2);
        let exponent = (0..steps).fold(1, |power, _| power * Self::GENERATOR % (2 * n));
        Ok(Self { exponent, ..identity })
    }

    /// `X -> X^-1`: swaps the halves of the slots of a batched plaintext.
    ///
    /// # Errors
    /// [`RingError::Degree`] unless `n` is a power of two from 8 on.
    pub fn row_swap(n: usize) -> Result<Self, RingError> {
        Self::new(2 * n - 1, n)
    }

    /// The exponent `g`.
    #[must_use]
    pub fn exponent(self) -> usize {
        self.exponent
    }

    /// The ring degree.
    #[must_use]
    pub fn degree(self) -> usize {
        self.n
    }

    /// Writes `a(X^g)` to `out`, both coefficients in `[0, q)`.
    ///
    /// # Panics
    /// If a length is not the degree.
    pub fn apply(self, modulus: &Modulus, out: &mut [u64], a: &[u64]) {
        assert!(out.len() == self.n && a.len() == self.n, "polynomial length");
        let mut target = 0;
        for value in a {
            // The index is public; the value is only negated or not according to the index.
            out[target & (self.n - 1)] = if target & self.n == 0 { *value } else { modulus.neg(*value) };
            target = (target + self.exponent) & (2 * self.n - 1);
        }
    }
}

/// The slot permutation of an automorphism, prepared.
///
/// In bit-reversed order an automorphism sends each aligned block of eight slots to one such block, permuted
/// inside by one of eight patterns: the low index bits are the high bits of the evaluation point's exponent,
/// and these are multiplied by `g mod 8` and shifted by a carry.
#[derive(Clone, Debug)]
pub struct EvalPermutation {
    element: GaloisElement,
    /// For each block of the result, the block it is read from, times eight, plus its pattern.
    blocks: Vec<u32>,
    /// For each block, the block of the result that it becomes, times eight, plus its pattern.
    targets: Vec<u32>,
    /// `patterns[c][j]` is the lane read by lane `j`.
    patterns: Patterns,
}

/// Eight lane permutations, in the layout of vector index registers.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Patterns([[u64; LANES]; LANES]);

const LANES: usize = 8;

impl EvalPermutation {
    /// Prepares the permutation of `element`.
    #[must_use]
    pub fn new(element: GaloisElement) -> Self {
        let (g, n) = (element.exponent, element.n);
        let step = n / 4;
        let bits = (n / LANES).trailing_zeros();
        let reverse = |i: usize| if bits == 0 { 0 } else { bit_reverse(i, bits) };
        let block = |k: usize| {
            let point = g * (2 * reverse(k) + 1) % (2 * n);
            let source = reverse(point % step / 2);
            (source * LANES + point / step) as u32
        };
        let lane = |carry: usize, j: usize| bit_reverse((carry + g * bit_reverse(j, 3)) % LANES, 3) as u64;
        let patterns = std::array::from_fn(|carry| std::array::from_fn(|j| lane(carry, j)));
        let blocks: Vec<u32> = (0..n / LANES).map(block).collect();
        let mut targets = vec![0; blocks.len()];
        for (k, packed) in blocks.iter().enumerate() {
            targets[*packed as usize / LANES] = (k * LANES) as u32 + packed % LANES as u32;
        }
        Self { element, blocks, targets, patterns: Patterns(patterns) }
    }

    /// The automorphism.
    #[must_use]
    pub fn element(&self) -> GaloisElement {
        self.element
    }

    /// The number of slots.
    pub(crate) fn degree(&self) -> usize {
        self.element.n
    }

    /// The slot that slot `i` of the result is read from.
    ///
    /// # Panics
    /// If `i` is not below the degree.
    #[must_use]
    pub fn source(&self, i: usize) -> usize {
        let packed = self.blocks[i / LANES] as usize;
        packed / LANES * LANES + self.patterns.0[packed % LANES][i % LANES] as usize
    }

    /// Writes the permuted `values` to `out`.
    ///
    /// # Panics
    /// If a length is not the degree.
    pub fn apply(&self, out: &mut [u64], values: &[u64]) {
        arch::permute(out, values, self);
    }

    /// Where eight slots from `i` on, a multiple of eight, go: the first slot of the result, and the lane that each lane takes.
    ///
    /// # Panics
    /// If `i` is not below the degree.
    #[must_use]
    pub fn target(&self, i: usize) -> (usize, &[u64; LANES]) {
        let packed = self.targets[i / LANES] as usize;
        (packed / LANES * LANES, &self.patterns.0[packed % LANES])
    }

    /// For each eight slots of the result, the first slot they are read from plus the index of their pattern.
    pub(crate) fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    /// The lane read by each lane, for each pattern.
    pub(crate) fn patterns(&self) -> &[[u64; LANES]; LANES] {
        &self.patterns.0
    }
}
