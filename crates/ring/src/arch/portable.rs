//! Kernels in plain Rust, the definition the other backends are tested against.

use crate::modulus::{Modulus, Shoup, reduce_once};

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
