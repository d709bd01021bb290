//! Both transforms, written once over a [`Kernel`].
//!
//! Levels whose butterflies join whole vectors are done three at a time between a load and a store (radix 8) as far as
//! possible; the last levels of the forward and the first of the inverse transform, inside vectors, work on
//! quads of four blocks of two vectors. Everywhere four butterflies stand side by side, so that their latencies overlap.
#![allow(unsafe_code)] // Raw pointers let a pass work on eight rows of one slice.

/// Four vectors.
pub(super) type Four<K> = [<K as Kernel>::Vector; 4];

/// Lazy modular butterflies on vectors of one instruction set.
///
/// A kernel chooses its own form and lazy range for the values between butterflies and in memory between passes. All
/// methods are unsafe as they need a machine with the instruction set.
pub(super) trait Kernel: Copy {
    /// One register of values.
    type Vector: Copy;
    /// A factor with what the kernel prepared of it, in all lanes or one for each.
    type Factor: Copy;
    /// The roots that a quad needs in the levels inside vectors, and in the one before.
    type Quad;
    /// Values in a vector.
    const LANES: usize;

    /// Reads a vector: residues in `[0, q)` if `FRESH`, else what [`Self::store`] wrote.
    ///
    /// # Safety
    /// [`Self::LANES`] words are readable at `from`.
    unsafe fn load<const FRESH: bool>(self, from: *const u64) -> Self::Vector;

    /// Writes a vector, as residues if it went through [`Self::finish`] and `DONE`.
    ///
    /// # Safety
    /// [`Self::LANES`] words are writable at `to`.
    unsafe fn store<const DONE: bool>(self, to: *mut u64, vector: Self::Vector);

    /// Root `index` in bit-reversed order, in all lanes.
    ///
    /// # Safety
    /// `index` is below `n / (2 LANES)`.
    unsafe fn root(self, index: usize) -> Self::Factor;

    /// The factors of `level` of a quad, from 0 to `log2 LANES`.
    unsafe fn quad_roots(quad: &Self::Quad, level: u32) -> [Self::Factor; 4];

    /// Brings values stored by an earlier pass into the range that three or four levels may start from.
    unsafe fn settle<const INVERSE: bool>(self, x: &mut Four<Self>, y: &mut Four<Self>);

    /// `(x, y)` to `(x + w y, x - w y)`; `FRESH` if they are residues in `[0, q)`.
    unsafe fn butterfly<const FRESH: bool>(
        self,
        x: &mut Four<Self>,
        y: &mut Four<Self>,
        w: [Self::Factor; 4],
    );

    /// `(x, y)` to `(x + y, (x - y) w)`.
    unsafe fn inverse_butterfly(self, x: &mut Four<Self>, y: &mut Four<Self>, w: [Self::Factor; 4]);

    /// `(x, y)` to `((x + y) / n, (x - y) w / n)` in `[0, q)`: the last butterfly of the inverse.
    unsafe fn last_butterfly(self, x: &mut Four<Self>, y: &mut Four<Self>);

    /// Reduces to `[0, q)`.
    unsafe fn finish(self, x: &mut Four<Self>, y: &mut Four<Self>);

    /// Lanes `x0 y0 x1 y1 ..`, the first half in `x`.
    unsafe fn interleave(self, x: &mut Four<Self>, y: &mut Four<Self>);

    /// The inverse of [`Self::interleave`].
    unsafe fn separate(self, x: &mut Four<Self>, y: &mut Four<Self>);
}

/// The forward transform, from `[0, q)` to `[0, q)`.
///
/// # Safety
/// `values` points to `8 LANES` words for each quad, the roots are for this length, and the machine has the
/// instruction set.
#[inline(always)]
pub(super) unsafe fn forward<K: Kernel>(kernel: K, quads: &[K::Quad], values: *mut u64) {
    let n = quads.len() * 8 * K::LANES;
    let levels = upper_levels::<K>(n);
    let (mut blocks, mut left) = (1, levels);
    while left > 0 {
        // Threes, then twos; there are at least two levels.
        let radix = if left == 2 || left == 4 { 2 } else { 3 };
        // SAFETY: forwarded from the caller; each pass stays inside its block.
        unsafe {
            match (radix, blocks) {
                (3, 1) => forward_8::<K, true>(kernel, values, n, blocks),
                (3, _) => forward_8::<K, false>(kernel, values, n, blocks),
                (_, 1) => forward_4::<K, true>(kernel, values, n, blocks),
                (_, _) => forward_4::<K, false>(kernel, values, n, blocks),
            }
        }
        blocks <<= radix;
        left -= radix;
    }
    let (pairs, last) = quads.as_chunks::<2>();
    for (i, pair) in pairs.iter().enumerate() {
        // SAFETY: both quads lie inside the values.
        unsafe { forward_quads(kernel, values.add(16 * K::LANES * i), pair) };
    }
    for (i, quad) in last.as_chunks::<1>().0.iter().enumerate() {
        // SAFETY: so does one that is left.
        unsafe { forward_quads(kernel, values.add(8 * K::LANES * (2 * pairs.len() + i)), quad) };
    }
}

/// The inverse transform, from `[0, q)` to `[0, q)`.
///
/// # Safety
/// As for [`forward`].
#[inline(always)]
pub(super) unsafe fn inverse<K: Kernel>(kernel: K, quads: &[K::Quad], values: *mut u64) {
    let n = quads.len() * 8 * K::LANES;
    let (pairs, last) = quads.as_chunks::<2>();
    for (i, pair) in pairs.iter().enumerate() {
        // SAFETY: both quads lie inside the values.
        unsafe { inverse_quads(kernel, values.add(16 * K::LANES * i), pair) };
    }
    for (i, quad) in last.as_chunks::<1>().0.iter().enumerate() {
        // SAFETY: so does one that is left.
        unsafe { inverse_quads(kernel, values.add(8 * K::LANES * (2 * pairs.len() + i)), quad) };
    }
    // The same passes as forward, backwards: the twos come first.
    let mut left = upper_levels::<K>(n);
    while left > 0 {
        let radix = if left.is_multiple_of(3) { 3 } else { 2 };
        left -= radix;
        // SAFETY: forwarded from the caller; each pass stays inside its block.
        unsafe {
            match (radix, left) {
                (3, 0) => inverse_8::<K, true>(kernel, values, n, 1),
                (3, _) => inverse_8::<K, false>(kernel, values, n, 1 << left),
                (_, 0) => inverse_4::<K, true>(kernel, values, n, 1),
                (_, _) => inverse_4::<K, false>(kernel, values, n, 1 << left),
            }
        }
    }
}

/// Levels before those of a quad, whose blocks are of two vectors.
fn upper_levels<K: Kernel>(n: usize) -> u32 {
    (n / (2 * K::LANES)).trailing_zeros()
}

/// The last levels of `QUADS` times four blocks.
///
/// `x[i]` and `y[i]` of a quad begin as the halves of block `i`. Before each further level their lanes are interleaved, so that the
/// halves of all parts of the block stand apart again; roots then repeat with period 2, 4 and so on. A last
/// interleaving restores the standard order. Quads take turns level by level, so that one computes while another waits for its
/// butterflies.
#[inline(always)]
unsafe fn forward_quads<K: Kernel, const QUADS: usize>(k: K, values: *mut u64, roots: &[K::Quad; QUADS]) {
    // SAFETY: the quads are `8 LANES` words each, forwarded from `forward`.
    unsafe {
        let mut quads: [_; QUADS] =
            std::array::from_fn(|i| load_quad::<K, false>(k, values.add(8 * K::LANES * i)));
        for (x, y) in &mut quads {
            k.settle::<false>(x, y);
        }
        forward_level(k, &mut quads, roots, 0);
        forward_level(k, &mut quads, roots, 1);
        forward_level(k, &mut quads, roots, 2);
        if last_level::<K>() == 3 {
            forward_level(k, &mut quads, roots, 3);
        }
        for (i, (x, y)) in quads.into_iter().enumerate() {
            store_quad::<K, true>(k, values.add(8 * K::LANES * i), x, y);
        }
    }
}

/// The last level of a quad, 2 or 3. Levels are written out one by one: a loop over them stays a loop, and the vectors go
/// through memory.
const fn last_level<K: Kernel>() -> u32 {
    assert!(K::LANES == 4 || K::LANES == 8, "a quad has three or four levels");
    K::LANES.trailing_zeros()
}

#[inline(always)]
unsafe fn forward_level<K: Kernel, const QUADS: usize>(
    k: K,
    quads: &mut [(Four<K>, Four<K>); QUADS],
    roots: &[K::Quad; QUADS],
    level: u32,
) {
    for ((x, y), roots) in quads.iter_mut().zip(roots) {
        // SAFETY: arithmetic on registers.
        unsafe {
            k.butterfly::<false>(x, y, K::quad_roots(roots, level));
            if level == last_level::<K>() {
                k.finish(x, y);
            }
            k.interleave(x, y);
        }
    }
}

/// The first levels of four blocks each: [`forward_quads`] backwards.
#[inline(always)]
unsafe fn inverse_quads<K: Kernel, const QUADS: usize>(k: K, values: *mut u64, roots: &[K::Quad; QUADS]) {
    // SAFETY: the quads are `8 LANES` words each, forwarded from `inverse`.
    unsafe {
        let mut quads: [_; QUADS] =
            std::array::from_fn(|i| load_quad::<K, true>(k, values.add(8 * K::LANES * i)));
        if last_level::<K>() == 3 {
            inverse_level(k, &mut quads, roots, 3);
        }
        inverse_level(k, &mut quads, roots, 2);
        inverse_level(k, &mut quads, roots, 1);
        inverse_level(k, &mut quads, roots, 0);
        for (i, (x, y)) in quads.into_iter().enumerate() {
            store_quad::<K, false>(k, values.add(8 * K::LANES * i), x, y);
        }
    }
}

#[inline(always)]
unsafe fn inverse_level<K: Kernel, const QUADS: usize>(
    k: K,
    quads: &mut [(Four<K>, Four<K>); QUADS],
    roots: &[K::Quad; QUADS],
    level: u32,
) {
    for ((x, y), roots) in quads.iter_mut().zip(roots) {
        // SAFETY: arithmetic on registers.
        unsafe {
            k.separate(x, y);
            k.inverse_butterfly(x, y, K::quad_roots(roots, level));
        }
    }
}

/// Eight vectors, the even ones first.
#[inline(always)]
unsafe fn load_quad<K: Kernel, const FRESH: bool>(k: K, from: *const u64) -> (Four<K>, Four<K>) {
    let at = |i: usize| from.wrapping_add(i * K::LANES);
    // SAFETY: eight vectors are readable.
    unsafe {
        let x =
            [k.load::<FRESH>(at(0)), k.load::<FRESH>(at(2)), k.load::<FRESH>(at(4)), k.load::<FRESH>(at(6))];
        let y =
            [k.load::<FRESH>(at(1)), k.load::<FRESH>(at(3)), k.load::<FRESH>(at(5)), k.load::<FRESH>(at(7))];
        (x, y)
    }
}

#[inline(always)]
unsafe fn store_quad<K: Kernel, const DONE: bool>(k: K, to: *mut u64, x: Four<K>, y: Four<K>) {
    for i in 0..4 {
        // SAFETY: eight vectors are writable.
        unsafe {
            k.store::<DONE>(to.add(2 * i * K::LANES), x[i]);
            k.store::<DONE>(to.add((2 * i + 1) * K::LANES), y[i]);
        }
    }
}

#[inline(always)]
unsafe fn forward_8<K: Kernel, const FRESH: bool>(k: K, values: *mut u64, n: usize, blocks: usize) {
    let row = n / blocks / 8;
    for block in 0..blocks {
        // SAFETY: row indices up to 7 and columns below `row` stay inside the block; roots up to 8 * blocks <= n.
        unsafe {
            let first = k.root(blocks + block);
            let second = [k.root(2 * (blocks + block)), k.root(2 * (blocks + block) + 1)];
            let i = 4 * (blocks + block);
            let third = [k.root(i), k.root(i + 1), k.root(i + 2), k.root(i + 3)];
            let base = values.add(block * 8 * row);
            for column in (0..row).step_by(K::LANES) {
                let at = |i: usize| base.add(i * row + column);
                let mut x = [
                    k.load::<FRESH>(at(0)),
                    k.load::<FRESH>(at(1)),
                    k.load::<FRESH>(at(2)),
                    k.load::<FRESH>(at(3)),
                ];
                let mut y = [
                    k.load::<FRESH>(at(4)),
                    k.load::<FRESH>(at(5)),
                    k.load::<FRESH>(at(6)),
                    k.load::<FRESH>(at(7)),
                ];
                if !FRESH {
                    k.settle::<false>(&mut x, &mut y);
                }
                k.butterfly::<FRESH>(&mut x, &mut y, [first; 4]);
                let (mut u, mut v) = ([x[0], x[1], y[0], y[1]], [x[2], x[3], y[2], y[3]]);
                k.butterfly::<false>(&mut u, &mut v, [second[0], second[0], second[1], second[1]]);
                let (mut x, mut y) = ([u[0], v[0], u[2], v[2]], [u[1], v[1], u[3], v[3]]);
                k.butterfly::<false>(&mut x, &mut y, third);
                for i in 0..4 {
                    k.store::<false>(at(2 * i), x[i]);
                    k.store::<false>(at(2 * i + 1), y[i]);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn inverse_8<K: Kernel, const LAST: bool>(k: K, values: *mut u64, n: usize, blocks: usize) {
    let row = n / blocks / 8;
    for block in 0..blocks {
        // SAFETY: as in `forward_8`.
        unsafe {
            let first = k.root(blocks + block);
            let second = [k.root(2 * (blocks + block)), k.root(2 * (blocks + block) + 1)];
            let i = 4 * (blocks + block);
            let third = [k.root(i), k.root(i + 1), k.root(i + 2), k.root(i + 3)];
            let base = values.add(block * 8 * row);
            for column in (0..row).step_by(K::LANES) {
                let at = |i: usize| base.add(i * row + column);
                let mut x = [
                    k.load::<false>(at(0)),
                    k.load::<false>(at(2)),
                    k.load::<false>(at(4)),
                    k.load::<false>(at(6)),
                ];
                let mut y = [
                    k.load::<false>(at(1)),
                    k.load::<false>(at(3)),
                    k.load::<false>(at(5)),
                    k.load::<false>(at(7)),
                ];
                k.settle::<true>(&mut x, &mut y);
                k.inverse_butterfly(&mut x, &mut y, third);
                let (mut u, mut v) = ([x[0], y[0], x[2], y[2]], [x[1], y[1], x[3], y[3]]);
                k.inverse_butterfly(&mut u, &mut v, [second[0], second[0], second[1], second[1]]);
                let (mut x, mut y) = ([u[0], u[1], v[0], v[1]], [u[2], u[3], v[2], v[3]]);
                if LAST {
                    k.last_butterfly(&mut x, &mut y);
                } else {
                    k.inverse_butterfly(&mut x, &mut y, [first; 4]);
                }
                for i in 0..4 {
                    k.store::<LAST>(at(i), x[i]);
                    k.store::<LAST>(at(4 + i), y[i]);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn forward_4<K: Kernel, const FRESH: bool>(k: K, values: *mut u64, n: usize, blocks: usize) {
    let row = n / blocks / 4;
    for block in 0..blocks {
        // SAFETY: rows up to 3 and columns below `row`, an even number of vectors, stay inside the block.
        unsafe {
            let first = k.root(blocks + block);
            let (w, z) = (k.root(2 * (blocks + block)), k.root(2 * (blocks + block) + 1));
            let base = values.add(block * 4 * row);
            for column in (0..row).step_by(2 * K::LANES) {
                let at = |i: usize, half: usize| base.add(i * row + column + half * K::LANES);
                let mut x = [
                    k.load::<FRESH>(at(0, 0)),
                    k.load::<FRESH>(at(1, 0)),
                    k.load::<FRESH>(at(0, 1)),
                    k.load::<FRESH>(at(1, 1)),
                ];
                let mut y = [
                    k.load::<FRESH>(at(2, 0)),
                    k.load::<FRESH>(at(3, 0)),
                    k.load::<FRESH>(at(2, 1)),
                    k.load::<FRESH>(at(3, 1)),
                ];
                if !FRESH {
                    k.settle::<false>(&mut x, &mut y);
                }
                k.butterfly::<FRESH>(&mut x, &mut y, [first; 4]);
                let (mut u, mut v) = ([x[0], y[0], x[2], y[2]], [x[1], y[1], x[3], y[3]]);
                k.butterfly::<false>(&mut u, &mut v, [w, z, w, z]);
                for half in 0..2 {
                    k.store::<false>(at(0, half), u[2 * half]);
                    k.store::<false>(at(1, half), v[2 * half]);
                    k.store::<false>(at(2, half), u[2 * half + 1]);
                    k.store::<false>(at(3, half), v[2 * half + 1]);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn inverse_4<K: Kernel, const LAST: bool>(k: K, values: *mut u64, n: usize, blocks: usize) {
    let row = n / blocks / 4;
    for block in 0..blocks {
        // SAFETY: as in `forward_4`.
        unsafe {
            let first = k.root(blocks + block);
            let (w, z) = (k.root(2 * (blocks + block)), k.root(2 * (blocks + block) + 1));
            let base = values.add(block * 4 * row);
            for column in (0..row).step_by(2 * K::LANES) {
                let at = |i: usize, half: usize| base.add(i * row + column + half * K::LANES);
                let mut u = [
                    k.load::<false>(at(0, 0)),
                    k.load::<false>(at(2, 0)),
                    k.load::<false>(at(0, 1)),
                    k.load::<false>(at(2, 1)),
                ];
                let mut v = [
                    k.load::<false>(at(1, 0)),
                    k.load::<false>(at(3, 0)),
                    k.load::<false>(at(1, 1)),
                    k.load::<false>(at(3, 1)),
                ];
                k.settle::<true>(&mut u, &mut v);
                k.inverse_butterfly(&mut u, &mut v, [w, z, w, z]);
                let (mut x, mut y) = ([u[0], v[0], u[2], v[2]], [u[1], v[1], u[3], v[3]]);
                if LAST {
                    k.last_butterfly(&mut x, &mut y);
                } else {
                    k.inverse_butterfly(&mut x, &mut y, [first; 4]);
                }
                for half in 0..2 {
                    k.store::<LAST>(at(0, half), x[2 * half]);
                    k.store::<LAST>(at(1, half), x[2 * half + 1]);
                    k.store::<LAST>(at(2, half), y[2 * half]);
                    k.store::<LAST>(at(3, half), y[2 * half + 1]);
                }
            }
        }
    }
}
