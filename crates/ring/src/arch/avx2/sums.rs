//! Sums of products on AVX2.
//!
//! Each product is reduced, as doubles have no room for an unreduced one; that is still faster than adding two-word
//! products one by one.

use std::arch::x86_64::*;

use super::{Floats, load, store};
use crate::Modulus;

/// Reduced products, at most `11q/16` each, that are added before the sum is reduced.
const TERMS: usize = 8;

/// `out = sum_k a[k] b[k] mod q`, onto what is there if `ADD`.
///
/// # Safety
/// All slices are of the same length, a multiple of 4, and hold reduced values; `a` and `b` have equally many; the machine has AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn dot<const ADD: bool>(modulus: &Modulus, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
    for i in (0..out.len()).step_by(4) {
        // SAFETY: four words from `i` on are inside every slice.
        unsafe {
            let k = Floats::new(modulus);
            let mut sum = if ADD { load(k, out.as_ptr().add(i)) } else { _mm256_setzero_pd() };
            for (a, b) in a.chunks(TERMS).zip(b.chunks(TERMS)) {
                sum = k.reduce(sum);
                for (a, b) in a.iter().zip(b) {
                    let product = k.mul_pair(load(k, a.as_ptr().add(i)), load(k, b.as_ptr().add(i)));
                    sum = _mm256_add_pd(sum, product);
                }
            }
            store(k, out.as_mut_ptr().add(i), k.lift(k.reduce(sum)));
        }
    }
}
