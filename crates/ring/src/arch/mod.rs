//! The kernels, one folder per instruction set, and the one place that chooses among them.
//!
//! A [`Modulus`] carries the backend chosen for it when it was made: a table of [`Kernels`], which each operation here looks into. All
//! tables give the same results, bit by bit.
#![allow(unsafe_code)]
// Calls of functions that need an instruction set.
// Intrinsics compile to one instruction only inside a function with the instruction set, so helpers must be inlined there.
#![allow(clippy::inline_always, clippy::wildcard_imports)]
// Tables of functions.
#![allow(clippy::type_complexity)]

#[cfg(target_arch = "x86_64")]
mod passes;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use std::fmt;
use std::iter;
use std::ops::Range;
use std::sync::OnceLock;

use crate::buffer::Buffer;
use crate::modulus::Shoup;
use crate::{Ending, EvalPermutation, Modulus};

/// The kernels of an instruction set, as a table that it fills.
///
/// Whoever calls one has the table from [`Backend`], and a modulus that the table serves. Slices are of equal lengths, for sums of
/// a multiple of 8. What works element by element returns how many elements it did: the portable twin does the rest.
pub(crate) struct Kernels {
    name: &'static str,
    /// One more than the largest modulus.
    limit: u64,
    /// How many products of reduced factors the two words of `mul_add` hold.
    capacity: fn(&Modulus) -> u64,
    /// Lays out the powers of a root in bit-reversed order, or of its inverse with `n^-1` and it times the root of the last level.
    roots: fn(&Modulus, Vec<Shoup>, Shoup, Shoup) -> Box<dyn Roots>,
    add_assign: ElementWise,
    sub_assign: ElementWise,
    mul_assign: ElementWise,
    reduce: ElementWise,
    mul_scalar: unsafe fn(&Modulus, &mut [u64], Shoup) -> usize,
    sub_mul: unsafe fn(&Modulus, &mut [u64], &[u64], Shoup) -> usize,
    lift_centered: unsafe fn(&Modulus, &mut [u64], &[u64], &Modulus) -> usize,
    permute: unsafe fn(&mut [u64], &[u64], &EvalPermutation),
    mul_add: unsafe fn(&mut [u64], &mut [u64], &[u64], &[u64]),
    reduce_sum: unsafe fn(&Modulus, &mut [u64], &[u64], &[u64]),
    /// Overwrites, or adds to what is there.
    dot: [unsafe fn(&Modulus, &mut [u64], &[&[u64]], &[&[u64]]); 2],
    combine: [unsafe fn(&Modulus, &mut [u64], &[&[u64]], &[u64], Range<usize>); 2],
    quotients: unsafe fn(&mut [u64], &[&[u64]], &[u64], u32),
    dot_permuted: unsafe fn(&Modulus, &mut [u64], &[&[u64]], &[&[u64]], &Ending<'_>),
}

type ElementWise = unsafe fn(&Modulus, &mut [u64], &[u64]) -> usize;

/// The roots of one direction of a transform, laid out for the kernels that made them.
pub(crate) trait Roots: fmt::Debug + Send + Sync {
    /// The forward transform of `values`, which have the length of the roots.
    fn forward(&self, modulus: &Modulus, values: &mut [u64]);

    /// The inverse transform of `values`, which have the length of the roots.
    fn inverse(&self, modulus: &Modulus, values: &mut [u64]);
}

/// An instruction set the kernels are written for, and which this machine has.
#[derive(Clone, Copy)]
pub struct Backend(&'static Kernels);

impl Backend {
    /// Plain Rust; any modulus.
    pub const PORTABLE: Self = Self(&portable::KERNELS);

    /// Every backend of this machine, the fastest first; the last is [`Self::PORTABLE`].
    #[must_use]
    pub fn available() -> &'static [Self] {
        static AVAILABLE: OnceLock<Vec<Backend>> = OnceLock::new();
        AVAILABLE.get_or_init(|| {
            let tables = iter::once(&portable::KERNELS);
            #[cfg(target_arch = "x86_64")]
            let tables = x86_64::available().chain(tables);
            tables.map(Self).collect()
        })
    }

    /// The fastest backend of this machine that can serve `q`.
    pub(crate) fn select(q: u64) -> Self {
        Self::available().iter().copied().find(|backend| backend.serves(q)).unwrap_or(Self::PORTABLE)
    }

    /// Whether the backend can serve `q`.
    pub(crate) const fn serves(self, q: u64) -> bool {
        q < self.0.limit
    }

    /// Lays out roots: see [`Kernels`].
    pub(crate) fn roots(modulus: &Modulus, roots: Vec<Shoup>, scale: Shoup, last: Shoup) -> Box<dyn Roots> {
        (modulus.backend().0.roots)(modulus, roots, scale, last)
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.name)
    }
}

impl PartialEq for Backend {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Backend {}

/// Declares an operation on slices of equal length: the vector kernel does what it can, the portable one the rest.
macro_rules! element_wise {
    ($(#[$doc:meta])* $name:ident($a:ident, $b:ident $(, $extra:ident: $type:ty)*)) => {
        $(#[$doc])*
        pub(crate) fn $name(modulus: &Modulus, $a: &mut [u64], $b: &[u64] $(, $extra: $type)*) {
            assert_eq!($a.len(), $b.len(), "slice lengths");
            // SAFETY: a modulus has a backend of this machine that serves it; the lengths are equal.
            let done = unsafe { (modulus.backend().0.$name)(modulus, $a, $b $(, $extra)*) };
            portable::$name(modulus, &mut $a[done..], &$b[done..] $(, $extra)*);
        }
    };
}

element_wise!(
    /// `a += b`.
    add_assign(a, b)
);
element_wise!(
    /// `a -= b`.
    sub_assign(a, b)
);
element_wise!(
    /// `a *= b`.
    mul_assign(a, b)
);
element_wise!(
    /// `a = (a - b) w`.
    sub_mul(a, b, w: Shoup)
);
element_wise!(
    /// `out = r mod q` with `r` the centred representative of `a mod from`.
    lift_centered(out, a, from: &Modulus)
);

/// `a *= w`.
pub(crate) fn mul_scalar(modulus: &Modulus, a: &mut [u64], w: Shoup) {
    // SAFETY: a modulus has a backend of this machine that serves it.
    let done = unsafe { (modulus.backend().0.mul_scalar)(modulus, a, w) };
    portable::mul_scalar(modulus, &mut a[done..], w);
}

element_wise!(
    /// `out = a mod q` for any words.
    reduce(out, a)
);

/// `out = a` permuted; both have the length of the permutation.
pub(crate) fn permute(out: &mut [u64], a: &[u64], permutation: &EvalPermutation) {
    assert!(out.len() == permutation.degree() && a.len() == permutation.degree(), "polynomial length");
    // SAFETY: the machine has the first backend; the lengths were checked.
    unsafe { (Backend::available()[0].0.permute)(out, a, permutation) }
}

/// How many products of reduced factors a pair of words of [`mul_add`] holds.
pub(crate) fn sum_capacity(modulus: &Modulus) -> u64 {
    (modulus.backend().0.capacity)(modulus)
}

/// Adds products to sums kept in two words, whose meaning is the backend's.
///
/// All slices have the same length, a multiple of 8, and each sum has room for one more.
pub(crate) fn mul_add(modulus: &Modulus, (low, high): (&mut [u64], &mut [u64]), a: &[u64], b: &[u64]) {
    let n = low.len();
    assert!(n == high.len() && n == a.len() && n == b.len() && n.is_multiple_of(8), "slice lengths");
    // SAFETY: a modulus has a backend of this machine that serves it; the lengths were checked.
    unsafe { (modulus.backend().0.mul_add)(low, high, a, b) }
}

/// Reduces the sums of [`mul_add`] to `out`; all of the same length, a multiple of 8.
pub(crate) fn reduce_sum(modulus: &Modulus, out: &mut [u64], low: &[u64], high: &[u64]) {
    let n = out.len();
    assert!(n == low.len() && n == high.len() && n.is_multiple_of(8), "slice lengths");
    // SAFETY: a modulus has a backend of this machine that serves it; the lengths were checked.
    unsafe { (modulus.backend().0.reduce_sum)(modulus, out, low, high) }
}

/// `out = sum_k a[k] b[k] mod q`, onto what is there if `ADD`; fewer than [`sum_capacity`] terms.
pub(crate) fn dot<const ADD: bool>(modulus: &Modulus, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
    let n = out.len();
    assert!(a.iter().chain(b).all(|slice| slice.len() == n) && n.is_multiple_of(8), "slice lengths");
    // SAFETY: a modulus has a backend of this machine that serves it; the lengths were checked.
    unsafe { (modulus.backend().0.dot[usize::from(ADD)])(modulus, out, a, b) }
}

/// [`Modulus::add_dot_repeated`].
pub(crate) fn add_dot_repeated(modulus: &Modulus, out: &mut [u64], a: &[&[u64]], b: &[u64], run: usize) {
    let (n, stride) = (out.len(), a.len());
    assert!(a.iter().all(|slice| slice.len() == n) && run.is_multiple_of(8), "slice lengths");
    assert!(n.is_multiple_of(run) && b.len() == stride * (n / run), "numbers of repeated factors");
    // What is there is no larger than a product.
    let most = (sum_capacity(modulus) as usize).min(REPEATED).saturating_sub(1).max(1);
    for (part, a) in a.chunks(most).enumerate() {
        for (number, start) in (0..n).step_by(run).enumerate() {
            let w = &b[number * stride + part * most..][..a.len()];
            add_multiples::<true>(modulus, out, a, w, start..start + run);
        }
    }
}

/// Terms of a sum of multiples that every backend has room for, if its sums of products do.
const REPEATED: usize = 1 << 12;

/// [`Modulus::combine`]; at most some thousand terms.
pub(crate) fn combine(modulus: &Modulus, out: &mut [u64], a: &[&[u64]], w: &[u64]) {
    let n = out.len();
    assert!(a.iter().all(|slice| slice.len() == n) && n.is_multiple_of(8), "slice lengths");
    add_multiples::<false>(modulus, out, a, w, 0..n);
}

/// `out = sum_k a[k] w[k] mod q` at places of a vector or several, onto what is there if `ADD`. All slices are of one length, which is
/// the caller's promise, and there are as many constants as vectors, which every backend has room for.
fn add_multiples<const ADD: bool>(
    modulus: &Modulus,
    out: &mut [u64],
    a: &[&[u64]],
    w: &[u64],
    places: Range<usize>,
) {
    // SAFETY: as for [`dot`]; the callers checked lengths, and that places are multiples of 8.
    unsafe { (modulus.backend().0.combine[usize::from(ADD)])(modulus, out, a, w, places) }
}

/// `out = (sum_k floor(a[k] w[k] / 2^52) + 2^(shift-1)) / 2^shift`, rounded down, for words below `2^52`, with the kernels of `backend`.
pub(crate) fn quotients(backend: Backend, out: &mut [u64], a: &[&[u64]], w: &[u64], shift: u32) {
    let n = out.len();
    assert!(a.iter().all(|slice| slice.len() == n) && n.is_multiple_of(8), "slice lengths");
    // SAFETY: a backend is of this machine; the lengths were checked.
    unsafe { (backend.0.quotients)(out, a, w, shift) }
}

/// [`Modulus::dot_permuted`]; fewer than [`sum_capacity`] terms.
pub(crate) fn dot_permuted(
    modulus: &Modulus,
    out: &mut [u64],
    a: &[&[u64]],
    b: &[&[u64]],
    ending: &Ending<'_>,
) {
    let n = ending.permutation.degree();
    let others = [ending.added.map(|(slice, _)| slice), ending.subtracted.map(|(slice, _)| slice)];
    let mut inputs = a.iter().chain(b).copied().chain(others.into_iter().flatten());
    assert!(out.len() == n && inputs.all(|slice| slice.len() == n), "polynomial length");
    // SAFETY: a modulus has a backend of this machine that serves it; the lengths were checked.
    unsafe { (modulus.backend().0.dot_permuted)(modulus, out, a, b, ending) }
}

/// [`dot_permuted`] by the other operations.
fn step_by_step(modulus: &Modulus, out: &mut [u64], a: &[&[u64]], b: &[&[u64]], ending: &Ending<'_>) {
    let mut sum = Buffer::zeroed(out.len());
    dot::<false>(modulus, &mut sum, a, b);
    if let Some((vector, factor)) = ending.added {
        let mut scaled = Buffer::from(vector);
        mul_scalar(modulus, &mut scaled, modulus.shoup(factor));
        add_assign(modulus, &mut sum, &scaled);
    }
    if let Some((vector, factor)) = ending.subtracted {
        sub_mul(modulus, &mut sum, vector, factor);
    }
    permute(out, &sum, ending.permutation);
}
