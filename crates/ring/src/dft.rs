//! The cyclic discrete Fourier transform modulo a prime, exact and of any size that divides `q - 1`.
//!
//! Stockham's self-sorting mixed-radix algorithm ([CT65](https://doi.org/10.2307/2003354) with the output in its natural
//! order). A stage is a dense butterfly whose factors hold the twiddles, so that each of its values takes one reduction.

use zeroize::Zeroizing;

use crate::prime::root_of_order;
use crate::{Modulus, RingError, product};

/// Transforms of size `n` modulo one prime: value `k` is `sum_i x_i w^(i k)`, with `w` the root that [`Dft::root`] gives.
///
/// Two parties that build it for the same prime and size have the same root.
#[derive(Debug)]
pub struct Dft {
    modulus: Modulus,
    size: usize,
    root: u64,
    forward: Vec<Stage>,
    inverse: Vec<Stage>,
}

/// Butterflies of `radix` inputs that stand `groups` apart.
#[derive(Debug)]
struct Stage {
    radix: usize,
    groups: usize,
    /// For each group and each output of its butterfly, the factors of the inputs.
    factors: Vec<u64>,
}

impl Dft {
    /// Prepares transforms of size `n >= 1`.
    ///
    /// # Errors
    /// [`RingError::NoRootOfOrder`] unless `n` divides `q - 1`.
    pub fn new(modulus: &Modulus, n: usize) -> Result<Self, RingError> {
        let root = root_of_order(modulus, n)?;
        let forward = stages(modulus, n, root, 1);
        let inverse = stages(modulus, n, modulus.inverse(root), modulus.inverse(modulus.reduce(n as u64)));
        Ok(Self { modulus: *modulus, size: n, root, forward, inverse })
    }

    /// The prime `q`.
    #[must_use]
    pub fn modulus(&self) -> &Modulus {
        &self.modulus
    }

    /// The size `n`.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The root of order `n`.
    #[must_use]
    pub fn root(&self) -> u64 {
        self.root
    }

    /// Transforms every column of an `n x width` matrix of values in `[0, q)`, row by row; `width` follows from the length.
    ///
    /// # Panics
    /// If the length is not a multiple of `n`.
    pub fn forward(&self, values: &mut [u64]) {
        self.run(&self.forward, values);
    }

    /// What undoes [`Self::forward`].
    ///
    /// # Panics
    /// As [`Self::forward`].
    pub fn inverse(&self, values: &mut [u64]) {
        self.run(&self.inverse, values);
    }

    fn run(&self, stages: &[Stage], values: &mut [u64]) {
        assert!(values.len().is_multiple_of(self.size), "whole columns");
        let mut scratch = Zeroizing::new(vec![0; values.len()]);
        // What is contiguous: a row at first, then the outputs of the butterflies so far.
        let mut run = values.len() / self.size;
        for stage in stages {
            stage.apply(&self.modulus, &mut scratch, values, run);
            values.copy_from_slice(&scratch);
            run *= stage.radix;
        }
    }
}

impl Stage {
    fn apply(&self, modulus: &Modulus, out: &mut [u64], values: &[u64], run: usize) {
        let Self { radix, groups, factors } = self;
        // No column: nothing to do.
        let runs: Vec<&[u64]> = values.chunks_exact(run.max(1)).collect();
        let mut inputs = Vec::with_capacity(*radix);
        let outputs = out.chunks_exact_mut(run.max(1)).zip(factors.chunks_exact(*radix));
        for (index, (out, factors)) in outputs.enumerate() {
            let group = index / radix;
            inputs.clear();
            inputs.extend((0..*radix).map(|input| runs[group + groups * input]));
            combine(modulus, out, &inputs, factors);
        }
    }
}

/// `out = sum_j factors[j] * inputs[j] mod q`.
fn combine(modulus: &Modulus, out: &mut [u64], inputs: &[&[u64]], factors: &[u64]) {
    if !sums_fit_a_word(modulus, inputs.len()) {
        for (i, out) in out.iter_mut().enumerate() {
            let add = |sum: u64, (input, factor): (&&[u64], &u64)| {
                modulus.reduce_u128(product(input[i], *factor) + u128::from(sum))
            };
            *out = inputs.iter().zip(factors).fold(0, add);
        }
        return;
    }
    let mut sums = [0; BLOCK];
    for (block, out) in out.chunks_mut(BLOCK).enumerate() {
        let sums = &mut sums[..out.len()];
        sums.fill(0);
        for (input, factor) in inputs.iter().zip(factors) {
            let factor = *factor as u32;
            for (sum, x) in sums.iter_mut().zip(&input[block * BLOCK..]) {
                *sum += u64::from(*x as u32) * u64::from(factor);
            }
        }
        for (out, sum) in out.iter_mut().zip(&*sums) {
            *out = modulus.reduce(*sum);
        }
    }
}

/// Whether a given number of products of two residues of at most 32 bits add up within a word.
fn sums_fit_a_word(modulus: &Modulus, terms: usize) -> bool {
    let room = u64::BITS.saturating_sub(2 * modulus.bits());
    terms <= 1 << room.min(16) && room > 0
}

/// Values that are summed at a time.
const BLOCK: usize = 64;
/// Larger butterflies cost more products than a further stage costs reductions.
const LARGEST_RADIX: usize = 8;

/// The stages of a transform by powers of `root`, whose result is multiplied by `scale`.
fn stages(modulus: &Modulus, n: usize, root: u64, scale: u64) -> Vec<Stage> {
    let radices = radices(n);
    let mut size = n;
    let mut stages = Vec::with_capacity(radices.len());
    for (index, radix) in radices.iter().enumerate() {
        // A root of order `size`: the transform that is left.
        let root = modulus.pow(root, (n / size) as u64);
        let scale = if index == 0 { scale } else { 1 };
        stages.push(Stage::new(modulus, size, *radix, root, scale));
        size /= radix;
    }
    stages
}

impl Stage {
    fn new(modulus: &Modulus, size: usize, radix: usize, root: u64, scale: u64) -> Self {
        let groups = size / radix;
        let mut factors = Vec::with_capacity(size * radix);
        for (group, output) in (0..groups).flat_map(|group| (0..radix).map(move |output| (group, output))) {
            let exponent = |input: usize| (output * (group + groups * input)) as u64;
            factors.extend((0..radix).map(|input| modulus.mul(scale, modulus.pow(root, exponent(input)))));
        }
        Self { radix, groups, factors }
    }
}

/// Factors of `n`: each the largest divisor of what is left that is no larger than [`LARGEST_RADIX`], or a prime.
fn radices(n: usize) -> Vec<usize> {
    let mut rest = n;
    let mut radices = Vec::new();
    while rest > 1 {
        let small = (2..=LARGEST_RADIX).rev().find(|radix| rest.is_multiple_of(*radix));
        let radix = small.or_else(|| (2..=rest).find(|radix| rest.is_multiple_of(*radix))).unwrap_or(rest);
        radices.push(radix);
        rest /= radix;
    }
    radices
}

/// Two-dimensional transforms of `height x width` values, row by row, along both axes or one of them.
#[derive(Debug)]
pub struct Dft2 {
    shape: [usize; 2],
    axes: [Option<Dft>; 2],
}

impl Dft2 {
    /// Prepares transforms along both axes.
    ///
    /// # Errors
    /// As [`Dft::new`].
    pub fn new(modulus: &Modulus, shape: [usize; 2]) -> Result<Self, RingError> {
        Self::along(modulus, shape, [true; 2])
    }

    /// Prepares transforms along the chosen axes, vertical and horizontal; the others may have any size.
    ///
    /// # Errors
    /// As [`Dft::new`].
    pub fn along(modulus: &Modulus, shape: [usize; 2], axes: [bool; 2]) -> Result<Self, RingError> {
        let axis = |axis: usize| axes[axis].then(|| Dft::new(modulus, shape[axis])).transpose();
        Ok(Self { shape, axes: [axis(0)?, axis(1)?] })
    }

    /// Height and width.
    #[must_use]
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// Transforms values in `[0, q)` in place; frequencies are in their natural order.
    ///
    /// # Panics
    /// If there are not `height * width` values.
    pub fn forward(&self, values: &mut [u64]) {
        self.each(values, Dft::forward);
    }

    /// What undoes [`Self::forward`].
    ///
    /// # Panics
    /// As [`Self::forward`].
    pub fn inverse(&self, values: &mut [u64]) {
        self.each(values, Dft::inverse);
    }

    fn each(&self, values: &mut [u64], transform: impl Fn(&Dft, &mut [u64])) {
        let [height, width] = self.shape;
        assert_eq!(values.len(), height * width, "one value for each place");
        if let Some(columns) = &self.axes[0] {
            transform(columns, values);
        }
        if let Some(rows) = &self.axes[1] {
            let mut turned = transposed(values, width);
            transform(rows, &mut turned);
            values.copy_from_slice(&transposed(&turned, height));
        }
    }
}

fn transposed(values: &[u64], width: usize) -> Zeroizing<Vec<u64>> {
    // Room for all at once: what grows leaves values behind.
    let mut columns = Zeroizing::new(Vec::with_capacity(values.len()));
    (0..width).for_each(|column| columns.extend(values.iter().skip(column).step_by(width)));
    columns
}
