//! Products of matrices of shared values, where one transfer serves a whole row.
//!
//! `(X_F + X_G)(Y_F + Y_G)` is `X Y` of each party's own, and its `X` times the other's `Y`, bit by bit of the numbers in `X`: bit `i` of `x[r, j]`
//! chooses whether `2^i y[j, :]` is added to row `r` of the result. So each bit takes one transfer, whose two keys are stretched to
//! as many values as the row has: the correlated-product trick of [Gil99](https://doi.org/10.1007/3-540-48405-1_8), "Two Party RSA Key
//! Generation", on vectors. Messages are those of [`both_ways`](super::both_ways), each value at the place that the diagram of the module says:
//!
//! ```text
//! F: bits of X_F xor r  -------------------------->
//!        <----------------------------------------   its own; for each of F's bits a correction of the row Y_G that it chooses
//! the corrections of G's  ------------------------>
//! ```

use lanner_primitives::{Block, PrgStream, Ring, Seed, parallel};
use lanner_step::Result;
use lanner_step::encoding::{read_blocks, write_blocks};
use lanner_wire::{DecodeError, Reader, Writer, pack_bits, pack_bits_to, packed_len};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::lanes::{Lanes, Values, bit, decode, mask, words};
use super::role::{Role, packed};
use super::source::{Source, parts};

/// Pairs of matrices `[groups, rows, inner]` and `[groups, inner, columns]` that are multiplied, all one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Pairs.
    pub groups: usize,
    /// Rows of the left ones.
    pub rows: usize,
    /// Columns of the left ones and rows of the right ones.
    pub inner: usize,
    /// Columns of the right ones.
    pub columns: usize,
}

impl Shape {
    /// Numbers of the left matrices, each of which multiplies a row of the right ones.
    pub(super) const fn numbers(self) -> usize {
        self.lines() * self.inner
    }

    /// Values of the right matrices.
    pub(super) const fn values(self) -> usize {
        self.groups * self.inner * self.columns
    }

    /// Sums that come out.
    pub(super) const fn sums(self) -> usize {
        self.lines() * self.columns
    }

    /// Rows of the left matrices, and so of the products.
    const fn lines(self) -> usize {
        self.groups * self.rows
    }

    /// Products that each line is the sum of.
    const fn terms(self) -> usize {
        self.inner * self.columns
    }

    /// Bytes of the corrections for one bit of every number, of so many bits each: those of a line begin at a byte.
    pub(super) const fn corrections(self, bits: u32) -> usize {
        self.lines() * packed_len(self.terms(), bits)
    }

    /// The values that the numbers of a line multiply.
    fn group<'v>(&self, values: &'v [u64], line: usize) -> &'v [u64] {
        &values[line / self.rows * self.terms()..][..self.terms()]
    }

    /// The products of both matrices of one party, modulo a power of two.
    fn product(self, numbers: &Values, values: &Values, ring: Ring) -> Values {
        let mut sums = Zeroizing::new(vec![0_u64; self.sums()]);
        for (line, sums) in sums.chunks_exact_mut(self.columns).enumerate() {
            let numbers = &numbers[line * self.inner..][..self.inner];
            for (x, row) in numbers.iter().zip(self.group(values, line).chunks_exact(self.columns)) {
                let products = sums.iter_mut().zip(row);
                products.for_each(|(sum, y)| *sum = ring.embed(sum.wrapping_add(x.wrapping_mul(*y)) as i64));
            }
        }
        sums
    }
}

/// The offering party's keys, two for each transfer.
pub(super) struct OfferedRows(pub(super) Zeroizing<Vec<[Block; 2]>>);

/// The choosing party's random choices, in words, and the key of each.
pub(super) struct ChosenRows {
    pub(super) random: Values,
    pub(super) keys: Zeroizing<Vec<Block>>,
}

impl ZeroizeOnDrop for OfferedRows {}

impl ZeroizeOnDrop for ChosenRows {}

impl OfferedRows {
    pub(super) fn new(source: &mut Source<'_>, count: usize) -> Result<Self> {
        let (mut keys, delta) = (Zeroizing::new(Vec::with_capacity(count)), source.delta());
        for count in parts(count) {
            let part = source.draw(count)?;
            let (zeros, ones) = (part.hashes(Block::ZERO), part.hashes(delta));
            keys.extend(zeros.iter().zip(ones.iter()).map(|(k0, k1)| [*k0, *k1]));
        }
        Ok(Self(keys))
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        write_blocks(self.0.as_flattened(), writer);
    }

    /// Of a given number of transfers.
    pub(super) fn decode(reader: &mut Reader, count: usize) -> Result<Self, DecodeError> {
        let keys = read_blocks(reader, 2 * count)?;
        Ok(Self(Zeroizing::new(keys.as_chunks().0.to_vec())))
    }
}

impl ChosenRows {
    pub(super) fn new(source: &mut Source<'_>, count: usize) -> Result<Self> {
        let mut random = Zeroizing::new(Vec::with_capacity(words(count)));
        let mut keys = Zeroizing::new(Vec::with_capacity(count));
        for count in parts(count) {
            let part = source.draw(count)?;
            keys.extend_from_slice(&part.hashes(Block::ZERO));
            random.extend((0..count).step_by(64).map(|i| part.choices(i)));
        }
        Ok(Self { random, keys })
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.packed(&self.random, 64);
        write_blocks(&self.keys, writer);
    }

    /// As [`OfferedRows::decode`].
    pub(super) fn decode(reader: &mut Reader, count: usize) -> Result<Self, DecodeError> {
        Ok(Self { random: decode(reader, words(count), 64)?, keys: read_blocks(reader, count)? })
    }
}

const fn halves(block: Block) -> [u64; 2] {
    [block.0 as u64, (block.0 >> 64) as u64]
}

/// A key's stream, as the values of a row: the same for both parties, and used once.
pub(super) fn stretch(key: Block, row: &mut [Block]) {
    stretch_from(key, 0, row);
}

/// As [`stretch`], from block `first` of the stream on.
pub(super) fn stretch_from(key: Block, first: u64, row: &mut [Block]) {
    let mut bytes = key.to_bytes();
    PrgStream::new(&Seed::from_bytes(bytes)).fill_at(first, row);
    bytes.zeroize();
}

/// A key's words: of one block its own, of more its stream.
pub(super) fn fill(key: Block, row: &mut [Block]) {
    match row {
        [block] => *block = key,
        row => stretch(key, row),
    }
}

/// The value at a place of a stretched key.
pub(super) fn value(row: &[Block], place: usize) -> u64 {
    halves(row[place / 2])[place % 2]
}

/// Room for a stretched key.
pub(super) fn row(columns: usize) -> Zeroizing<Vec<Block>> {
    Zeroizing::new(vec![Block::ZERO; columns.div_ceil(2)])
}

/// One party's role. The first says its flips, the second its own and what corrects the first's, the first what corrects the second's.
pub(super) struct MatrixProduct {
    offered: OfferedRows,
    chosen: ChosenRows,
    shape: Shape,
    bits: u32,
    numbers: Values,
    values: Values,
    sums: Values,
    /// What the other party said of its numbers.
    flips: Vec<u64>,
    is_first: bool,
    /// Whether the flips were said.
    is_open: bool,
}

impl MatrixProduct {
    /// With this party's shares of both matrices, modulo `2^bits`.
    pub(super) fn new(
        (offered, chosen): (OfferedRows, ChosenRows),
        (numbers, values): (Values, Values),
        (shape, bits): (Shape, u32),
        is_first: bool,
    ) -> Self {
        let sums = shape.product(&numbers, &values, Ring::Pow2(bits));
        let flips = Vec::new();
        Self { offered, chosen, shape, bits, numbers, values, sums, flips, is_first, is_open: false }
    }

    /// The transfers of bit `i` start here.
    const fn start(&self, i: u32) -> usize {
        i as usize * self.shape.numbers()
    }

    /// This party's numbers, masked by its random choices.
    fn masked(&self) -> Vec<u8> {
        let random = |number: usize| {
            (0..self.bits).fold(0, |all, i| all | bit(&self.chosen.random, self.start(i) + number) << i)
        };
        let flips: Vec<u64> = self.numbers.iter().zip(0..).map(|(x, number)| x ^ random(number)).collect();
        pack_bits(&flips, self.bits)
    }

    /// What corrects the other party's choices, bit by bit and line by line; this party's shares of their products are added.
    fn correct(&mut self) -> Vec<u8> {
        let Self { shape, bits, .. } = *self;
        let lengths = (0..bits).map(|i| shape.corrections(bits - i));
        let mut message = vec![0; lengths.sum()];
        let mut rest = message.as_mut_slice();
        for i in 0..bits {
            let (now, later) = rest.split_at_mut(shape.corrections(bits - i));
            rest = later;
            let keys = &self.offered.0[self.start(i)..][..shape.numbers()];
            let lines = now.chunks_exact_mut(packed_len(shape.terms(), bits - i));
            let lines = lines.zip(self.sums.chunks_exact_mut(shape.columns)).enumerate();
            let (flips, values) = (&self.flips, &self.values);
            parallel::for_each(lines, |(line, (message, sums))| {
                let numbers = line * shape.inner..(line + 1) * shape.inner;
                let choices = keys[numbers.clone()].iter().zip(&flips[numbers]);
                let offers = shape.group(values, line).chunks_exact(shape.columns);
                let (mut zeros, mut ones) = (row(shape.columns), row(shape.columns));
                let mut corrections = Vec::with_capacity(shape.terms());
                for ((keys, flips), offers) in choices.zip(offers) {
                    let swap = (keys[0] ^ keys[1]) & Block::mask(flips >> i & 1 == 1);
                    stretch(keys[0] ^ swap, &mut zeros);
                    stretch(keys[1] ^ swap, &mut ones);
                    for (place, (sum, offer)) in sums.iter_mut().zip(offers).enumerate() {
                        let (zero, one) = (value(&zeros, place), value(&ones, place));
                        corrections.push(offer.wrapping_add(zero).wrapping_sub(one));
                        *sum = sum.wrapping_sub(zero << i) & mask(bits);
                    }
                }
                pack_bits_to(&corrections, bits - i, message);
            });
        }
        message
    }

    /// Adds this party's shares of the products of its numbers, given the corrections.
    fn take(&mut self, message: &mut Reader<'_>) -> Result<()> {
        let Self { shape, bits, .. } = *self;
        for i in 0..bits {
            let corrections = (0..shape.lines()).map(|_| packed(message, shape.terms(), bits - i));
            let corrections = corrections.collect::<Result<Vec<_>, _>>()?;
            let keys = &self.chosen.keys[self.start(i)..][..shape.numbers()];
            let lines = corrections.iter().zip(self.sums.chunks_exact_mut(shape.columns)).enumerate();
            let numbers = &self.numbers;
            parallel::for_each(lines, |(line, (corrections, sums))| {
                let own = line * shape.inner..(line + 1) * shape.inner;
                let choices = keys[own.clone()].iter().zip(&numbers[own]);
                let mut stretched = row(shape.columns);
                for ((key, number), corrections) in choices.zip(corrections.chunks_exact(shape.columns)) {
                    // Or a compiler that knows the mask for one of two would branch on it.
                    let choice = std::hint::black_box(number >> i & 1).wrapping_neg();
                    stretch(*key, &mut stretched);
                    for (place, (sum, correction)) in sums.iter_mut().zip(corrections).enumerate() {
                        let share = value(&stretched, place).wrapping_add(correction & choice);
                        *sum = sum.wrapping_add(share << i) & mask(bits);
                    }
                }
            });
        }
        Ok(())
    }
}

impl Role for MatrixProduct {
    fn say(&mut self) -> Vec<u8> {
        if self.is_open {
            return self.correct();
        }
        self.is_open = true;
        let mut message = self.masked();
        if !self.is_first {
            message.extend(self.correct());
        }
        message
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<()> {
        // The second's corrections come with its flips, the first's behind both.
        if !self.is_open || self.is_first {
            self.flips = packed(message, self.shape.numbers(), self.bits)?;
        }
        if self.is_open { self.take(message) } else { Ok(()) }
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        vec![self.sums]
    }
}

/// The matrices' elements in rows as the elements of their transposes.
pub(super) fn transposed<V: Lanes>(x: &V, groups: usize, rows: usize, columns: usize) -> V {
    let place = |at: usize| {
        let (group, at) = (at / (rows * columns), at % (rows * columns));
        (group * rows + at % rows) * columns + at / rows
    };
    x.gather(&(0..groups * rows * columns).map(place).collect::<Vec<_>>())
}
