//! Kernels in plain Rust, the definition the other backends are tested against.

use std::ops::Range;

use super::{Kernels, Roots, step_by_step};
use crate::modulus::{Modulus, Shoup, reduce_once};
use crate::{EvalPermutation, product};

/// Element by element there is nothing to do before the portable twin does it.
pub(super) const KERNELS: Kernels = Kernels {
    name: "Portable",
    limit: Modulus::LIMIT,
    capacity,
    roots,
    add_assign: |_, _, _| 0,
    sub_assign: |_, _, _| 0,
    mul_assign: |_, _, _| 0,
    reduce: |_, _, _| 0,
    mul_scalar: |_, _, _| 0,
    sub_mul: |_, _, _, _| 0,
    lift_centered: |_, _, _, _| 0,
    permute,
    mul_add,
    reduce_sum,
    dot: [dot::<false>, dot::<true>],
    combine: [combine::<false>, combine::<true>],
    quotients,
    dot_permuted: step_by_step,
};

/// Roots in bit-reversed order, with `n^-1` and it times the root of the last inverse level.
#[derive(Debug)]
struct InOrder {
    roots: Vec<Shoup>,
    scale: Shoup,
    last: Shoup,
}

/// Keeps the roots as they are.
pub(super) fn roots(_modulus: &Modulus, roots: Vec<Shoup>, scale: Shoup, last: Shoup) -> Box<dyn Roots> {
    Box::new(InOrder { roots, scale, last })
}

impl Roots for InOrder {
    fn forward(&self, modulus: &Modulus, values: &mut [u64]) {
        forward(modulus, &self.roots, values);
    }

    fn inverse(&self, modulus: &Modulus, values: &mut [u64]) {
        inverse(modulus, &self.roots, self.scale, self.last, values);
    }
}

/// Cooley-Tukey passes over `values`, from `[0, q)` to `[0, q)`; `roots[m + i]` belongs to block `i` of `m`.
pub(crate) fn forward(modulus: &Modulus, roots: &[Shoup], values: &mut [u64]) {
    let q = modulus.value();
    let n = values.len();
    let mut blocks = 1;
    while blocks < n {
        let half = n / blocks / 2;
        for (block, root) in values.chunks_exact_mut(2 * half).zip(&roots[blocks..]) {
            let (left, right) = block.split_at_mut(half);
            for (x, y) in left.iter_mut().zip(right) {
                // x, y < 4q in; x + t and x - t + 2q < 4q out.
                let kept = reduce_once(*x, 2 * q);
                let t = modulus.mul_shoup_lazy(*y, *root);
                *x = kept + t;
                *y = kept + 2 * q - t;
            }
        }
        blocks *= 2;
    }
    for value in values {
        *value = reduce_once(reduce_once(*value, 2 * q), q);
    }
}

/// Gentleman-Sande passes over `values`, from `[0, q)` to `[0, q)`; `roots` are the inverses of the forward ones.
///
/// `scale` is `n^-1` and `last` is `n^-1` times the root of the last pass.
pub(crate) fn inverse(modulus: &Modulus, roots: &[Shoup], scale: Shoup, last: Shoup, values: &mut [u64]) {
    let q = modulus.value();
    let n = values.len();
    let mut blocks = n / 2;
    while blocks > 1 {
        let half = n / blocks / 2;
        for (block, root) in values.chunks_exact_mut(2 * half).zip(&roots[blocks..]) {
            let (left, right) = block.split_at_mut(half);
            for (x, y) in left.iter_mut().zip(right) {
                let (sum, difference) = (*x + *y, *x + 2 * q - *y);
                *x = reduce_once(sum, 2 * q);
                *y = modulus.mul_shoup_lazy(difference, *root);
            }
        }
        blocks /= 2;
    }
    let (left, right) = values.split_at_mut(n / 2);
    for (x, y) in left.iter_mut().zip(right) {
        let (sum, difference) = (*x + *y, *x + 2 * q - *y);
        *x = modulus.mul_shoup(sum, scale);
        *y = modulus.mul_shoup(difference, last);
    }
}

/// `a += b`.
pub(crate) fn add_assign(modulus: &Modulus, a: &mut [u64], b: &[u64]) {
    for (x, y) in a.iter_mut().zip(b) {
        *x = modulus.add(*x, *y);
    }
}

/// `a -= b`.
pub(crate) fn sub_assign(modulus: &Modulus, a: &mut [u64], b: &[u64]) {
    for (x, y) in a.iter_mut().zip(b) {
        *x = modulus.sub(*x, *y);
    }
}

/// `a *= b`.
pub(crate) fn mul_assign(modulus: &Modulus, a: &mut [u64], b: &[u64]) {
    for (x, y) in a.iter_mut().zip(b) {
        *x = modulus.mul(*x, *y);
    }
}

/// `a *= w`.
pub(crate) fn mul_scalar(modulus: &Modulus, a: &mut [u64], w: Shoup) {
    for x in a {
        *x = modulus.mul_shoup(*x, w);
    }
}

/// `a = (a - b) w`.
pub(crate) fn sub_mul(modulus: &Modulus, a: &mut [u64], b: &[u64], w: Shoup) {
    for (x, y) in a.iter_mut().zip(b) {
        *x = modulus.mul_shoup(*x + modulus.value() - *y, w);
    }
}

/// `out = a mod q`.
pub(crate) fn reduce(modulus: &Modulus, out: &mut [u64], a: &[u64]) {
    for (x, y) in out.iter_mut().zip(a) {
        *x = modulus.reduce(*y);
    }
}

/// `out = r mod q` with `r` the centred representative of `a mod from`.
pub(crate) fn lift_centered(modulus: &Modulus, out: &mut [u64], a: &[u64], from: &Modulus) {
    let half = from.value() / 2;
    let shift = modulus.reduce(half);
    for (x, y) in out.iter_mut().zip(a) {
        // Adding half of `from` before the reduction makes the representative non-negative.
        *x = modulus.sub(modulus.reduce(from.add(*y, half)), shift);
    }
}

/// `out = a` permuted.
pub(crate) fn permute(out: &mut [u64], a: &[u64], permutation: &EvalPermutation) {
    for (slots, packed) in out.chunks_exact_mut(8).zip(permutation.blocks()) {
        let (from, pattern) = (*packed as usize & !7, permutation.patterns()[*packed as usize & 7]);
        let source = &a[from..from + 8];
        for (slot, lane) in slots.iter_mut().zip(pattern) {
            *slot = source[lane as usize & 7];
        }
    }
}

/// How many products of reduced factors two words hold.
pub(crate) fn capacity(modulus: &Modulus) -> u64 {
    1 << (128 - 2 * modulus.bits()).min(62)
}

/// `low + 2^64 high += a b`.
pub(crate) fn mul_add(low: &mut [u64], high: &mut [u64], a: &[u64], b: &[u64]) {
    for ((low, high), (a, b)) in low.iter_mut().zip(high).zip(a.iter().zip(b)) {
        let sum = join(*low, *high) + product(*a, *b);
        *low = sum as u64;
        *high = (sum >> 64) as u64;
    }
}

/// `out = low + 2^64 high mod q`.
pub(crate) fn reduce_sum(modulus: &Modulus, out: &mut [u64], low: &[u64], high: &[u64]) {
    for (word, (low, high)) in out.iter_mut().zip(low.iter().zip(high)) {
        *word = modulus.reduce_u128(join(*low, *high));
    }
}

/// `out = sum_k a[k] b[k] mod q`, onto what is there if `ADD`; fewer than [`capacity`] terms.
pub(crate) fn dot<const ADD: bool>(modulus: &Modulus, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
    for (i, word) in out.iter_mut().enumerate() {
        let products = a.iter().zip(b).map(|(a, b)| product(a[i], b[i]));
        let there = if ADD { u128::from(*word) } else { 0 };
        *word = modulus.reduce_u128(products.sum::<u128>() + there);
    }
}

/// `out = sum_k a[k] w[k] mod q` at these places, onto what is there if `ADD`, for words `a` below `2^52` and fewer than `2^12` terms, or reduced
/// words and fewer than [`capacity`].
pub(crate) fn combine<const ADD: bool>(
    modulus: &Modulus,
    out: &mut [u64],
    a: &[&[u64]],
    w: &[u64],
    places: Range<usize>,
) {
    for i in places {
        let products = a.iter().zip(w).map(|(a, w)| product(a[i], *w));
        let there = if ADD { u128::from(out[i]) } else { 0 };
        out[i] = modulus.reduce_u128(products.sum::<u128>() + there);
    }
}

/// `out = (sum_k floor(a[k] w[k] / 2^52) + 2^(shift-1)) / 2^shift`, rounded down, for words below `2^52`.
pub(crate) fn quotients(out: &mut [u64], a: &[&[u64]], w: &[u64], shift: u32) {
    for (i, word) in out.iter_mut().enumerate() {
        let terms = a.iter().zip(w).map(|(a, w)| ((product(a[i], *w)) >> 52) as u64);
        *word = (terms.sum::<u64>() + (1 << (shift - 1))) >> shift;
    }
}

fn join(low: u64, high: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}
