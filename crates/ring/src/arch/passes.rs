//! The passes of both transforms whose butterflies join whole vectors, written once over a [`Kernel`].
//!
//! Three levels are done between a load and a store (radix 8) as far as possible, four butterflies side by side
//! so that their latencies overlap.
#![allow(unsafe_code)] // Raw pointers let a pass work on eight rows of one slice.

/// Lazy modular butterflies on vectors of one instruction set.
///
/// A kernel chooses its own lazy range for the values in memory between passes.
pub(super) trait Kernel: Copy {
    /// One register of values.
    type Vector: Copy;
    /// A factor with what the kernel prepared of it, in all lanes.
    type Factor: Copy;
    /// Values in a vector.
    const LANES: usize;

    /// Reads a vector.
    ///
    /// # Safety
    /// [`Self::LANES`] words are readable at `from`, and the machine has the instruction set.
    unsafe fn load(self, from: *const u64) -> Self::Vector;

    /// Writes a vector.
    ///
    /// # Safety
    /// [`Self::LANES`] words are writable at `to`, and the machine has the instruction set.
    unsafe fn store(self, to: *mut u64, vector: Self::Vector);

    /// Root `index` of the table, in all lanes.
    ///
    /// # Safety
    /// `index` is inside the table, and the machine has the instruction set.
    unsafe fn root(self, index: usize) -> Self::Factor;

    /// `(x, y)` to `(x + w y, x - w y)`; without `REDUCE` for `x` in `[0, q)`.
    ///
    /// # Safety
    /// The machine has the instruction set.
    unsafe fn butterfly<const REDUCE: bool>(
        self,
        x: &mut [Self::Vector; 4],
        y: &mut [Self::Vector; 4],
        w: [Self::Factor; 4],
    );

    /// `(x, y)` to `(x + y, (x - y) w)`.
    ///
    /// # Safety
    /// The machine has the instruction set.
    unsafe fn inverse_butterfly(
        self,
        x: &mut [Self::Vector; 4],
        y: &mut [Self::Vector; 4],
        w: [Self::Factor; 4],
    );

    /// `(x, y)` to `((x + y) / n, (x - y) w / n)` in `[0, q)`: the last butterfly of the inverse.
    ///
    /// # Safety
    /// The machine has the instruction set.
    unsafe fn last_butterfly(self, x: &mut [Self::Vector; 4], y: &mut [Self::Vector; 4]);
}

/// The first `levels` levels of the forward transform.
///
/// # Safety
/// `values` points to `n` words, `levels >= 2`, half a block of the last of these levels is two vectors or more,
/// the roots are for `n`, and the machine has the instruction set.
#[inline(always)]
pub(super) unsafe fn forward<K: Kernel>(kernel: K, values: *mut u64, n: usize, levels: u32) {
    let (mut blocks, mut left) = (1, levels);
    while left > 0 {
        let radix = radix(left);
        // SAFETY: forwarded from the caller; each pass stays inside its block.
        unsafe {
            match (radix, blocks) {
                (3, 1) => forward_8::<K, false>(kernel, values, n, blocks),
                (3, _) => forward_8::<K, true>(kernel, values, n, blocks),
                (_, 1) => forward_4::<K, false>(kernel, values, n, blocks),
                (_, _) => forward_4::<K, true>(kernel, values, n, blocks),
            }
        }
        blocks <<= radix;
        left -= radix;
    }
}

/// The last `levels` levels of the inverse transform.
///
/// # Safety
/// As for [`forward`].
#[inline(always)]
pub(super) unsafe fn inverse<K: Kernel>(kernel: K, values: *mut u64, n: usize, levels: u32) {
    // The same passes as forward, backwards: the twos come first.
    let mut left = levels;
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

/// How many of the `left >= 2` remaining levels the next pass does: threes, then twos.
fn radix(left: u32) -> u32 {
    if left == 2 || left == 4 { 2 } else { 3 }
}

#[inline(always)]
unsafe fn forward_8<K: Kernel, const REDUCE: bool>(k: K, values: *mut u64, n: usize, blocks: usize) {
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
                let mut x = [k.load(at(0)), k.load(at(1)), k.load(at(2)), k.load(at(3))];
                let mut y = [k.load(at(4)), k.load(at(5)), k.load(at(6)), k.load(at(7))];
                k.butterfly::<REDUCE>(&mut x, &mut y, [first; 4]);
                let (mut u, mut v) = ([x[0], x[1], y[0], y[1]], [x[2], x[3], y[2], y[3]]);
                k.butterfly::<true>(&mut u, &mut v, [second[0], second[0], second[1], second[1]]);
                let (mut x, mut y) = ([u[0], v[0], u[2], v[2]], [u[1], v[1], u[3], v[3]]);
                k.butterfly::<true>(&mut x, &mut y, third);
                for i in 0..4 {
                    k.store(at(2 * i), x[i]);
                    k.store(at(2 * i + 1), y[i]);
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
                let mut x = [k.load(at(0)), k.load(at(2)), k.load(at(4)), k.load(at(6))];
                let mut y = [k.load(at(1)), k.load(at(3)), k.load(at(5)), k.load(at(7))];
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
                    k.store(at(i), x[i]);
                    k.store(at(4 + i), y[i]);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn forward_4<K: Kernel, const REDUCE: bool>(k: K, values: *mut u64, n: usize, blocks: usize) {
    let row = n / blocks / 4;
    for block in 0..blocks {
        // SAFETY: rows up to 3 and columns below `row`, an even number of vectors, stay inside the block.
        unsafe {
            let first = k.root(blocks + block);
            let (w, z) = (k.root(2 * (blocks + block)), k.root(2 * (blocks + block) + 1));
            let base = values.add(block * 4 * row);
            for column in (0..row).step_by(2 * K::LANES) {
                let at = |i: usize, half: usize| base.add(i * row + column + half * K::LANES);
                let mut x = [k.load(at(0, 0)), k.load(at(1, 0)), k.load(at(0, 1)), k.load(at(1, 1))];
                let mut y = [k.load(at(2, 0)), k.load(at(3, 0)), k.load(at(2, 1)), k.load(at(3, 1))];
                k.butterfly::<REDUCE>(&mut x, &mut y, [first; 4]);
                let (mut u, mut v) = ([x[0], y[0], x[2], y[2]], [x[1], y[1], x[3], y[3]]);
                k.butterfly::<true>(&mut u, &mut v, [w, z, w, z]);
                for half in 0..2 {
                    k.store(at(0, half), u[2 * half]);
                    k.store(at(1, half), v[2 * half]);
                    k.store(at(2, half), u[2 * half + 1]);
                    k.store(at(3, half), v[2 * half + 1]);
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
                let mut u = [k.load(at(0, 0)), k.load(at(2, 0)), k.load(at(0, 1)), k.load(at(2, 1))];
                let mut v = [k.load(at(1, 0)), k.load(at(3, 0)), k.load(at(1, 1)), k.load(at(3, 1))];
                k.inverse_butterfly(&mut u, &mut v, [w, z, w, z]);
                let (mut x, mut y) = ([u[0], v[0], u[2], v[2]], [u[1], v[1], u[3], v[3]]);
                if LAST {
                    k.last_butterfly(&mut x, &mut y);
                } else {
                    k.inverse_butterfly(&mut x, &mut y, [first; 4]);
                }
                for half in 0..2 {
                    k.store(at(0, half), x[2 * half]);
                    k.store(at(1, half), x[2 * half + 1]);
                    k.store(at(2, half), y[2 * half]);
                    k.store(at(3, half), y[2 * half + 1]);
                }
            }
        }
    }
}
