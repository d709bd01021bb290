//! Products of shared bits and others, 64 in a word, by triples from random transfers ([Bea91](https://doi.org/10.1007/3-540-46766-1_34),
//! made as in [GMW87](https://doi.org/10.1145/28395.28420)).
//!
//! A random transfer with keys `k_0, k_1` and choice `x` shares the product `x (k_0 xor k_1)` as `k_x` and `k_0` without a message; one
//! in each direction gives both cross terms of `(a_F xor a_G)(b_F xor b_G)`. Keys have many bits: as many `b` share one `a`.

use lanner_primitives::{Block, bit_of_words};
use lanner_step::Result;
use lanner_wire::{DecodeError, Reader, Writer, pack_bits};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::lanes::{Lanes, Values, decode};
use super::moves::OPERANDS;
use super::role::{Role, packed};
use super::source::{Source, parts};

/// Shares of random bits, of bits that they are multiplied with, and of the products.
pub(super) struct BitTriples {
    a: Values,
    /// The others, and their products with the first of the bits.
    products: Vec<[Values; 2]>,
}

/// What the transfers give that a party sends: the bits that the other's are multiplied with, and its share of the products.
pub(super) struct SentBits(Vec<[Values; 2]>);

/// What those give that it receives: its random bits, and its share of their products with the other's.
pub(super) struct ReceivedBits {
    a: Values,
    products: Vec<Values>,
}

impl ZeroizeOnDrop for BitTriples {}

impl SentBits {
    pub(super) fn new(source: &mut Source<'_>, words: [usize; OPERANDS]) -> Result<Self> {
        let (mut rows, delta) = (empty_rows(words), source.delta());
        let mut ones = empty_rows(words);
        let mut start = 0;
        for count in parts(64 * words[0]) {
            let part = source.draw(count)?;
            gather_rows(&part.keys(Block::ZERO), start, &mut rows);
            gather_rows(&part.keys(delta), start, &mut ones);
            start += count / 64;
        }
        let both = |(zero, one): (Values, Values)| [zero.zip_map(&one, |k0, k1| k0 ^ k1), zero];
        Ok(Self(rows.into_iter().zip(ones).map(both).collect()))
    }
}

impl ReceivedBits {
    pub(super) fn new(source: &mut Source<'_>, words: [usize; OPERANDS]) -> Result<Self> {
        let (mut a, mut products) = (Zeroizing::new(Vec::with_capacity(words[0])), empty_rows(words));
        for count in parts(64 * words[0]) {
            let part = source.draw(count)?;
            gather_rows(&part.keys(Block::ZERO), a.len(), &mut products);
            a.extend((0..count).step_by(64).map(|i| part.choices(i)));
        }
        Ok(Self { a, products })
    }
}

impl BitTriples {
    /// From the transfers of both directions.
    pub(super) fn new(SentBits(sent): SentBits, ReceivedBits { a, products }: ReceivedBits) -> Self {
        let product = |([b, sent], received): ([Values; 2], Values)| {
            let own = a.range(0..b.len()).zip_map(&b, |a, b| a & b);
            let product = sent.zip_map(&received, |sent, received| sent ^ received);
            [b, product.zip_map(&own, |cross, own| cross ^ own)]
        };
        let products = sent.into_iter().zip(products).map(product).collect();
        Self { a, products }
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        std::iter::once(&self.a).chain(self.products.iter().flatten()).for_each(|row| writer.packed(row, 64));
    }

    pub(super) fn decode(reader: &mut Reader, words: [usize; OPERANDS]) -> Result<Self, DecodeError> {
        let a = decode(reader, words[0], 64)?;
        let used = words.into_iter().filter(|words| *words > 0);
        let mut product = |words| Ok([decode(reader, words, 64)?, decode(reader, words, 64)?]);
        Ok(Self { a, products: used.map(&mut product).collect::<Result<_, _>>()? })
    }

    /// The role of one party, with its shares of the bits and of the others.
    pub(super) fn role(self, bits: &Values, others: &[Values], is_first: bool) -> Multiplied {
        let masked = |x: &Values, mask: &Values| x.zip_map(mask, |x, mask| x ^ mask);
        let mine = others.iter().zip(&self.products).map(|(other, [b, _])| masked(other, b));
        let mine: Vec<Values> = std::iter::once(masked(bits, &self.a)).chain(mine).collect();
        let mine = Values::concat(&mine.iter().collect::<Vec<_>>());
        Multiplied { triples: self, mine, theirs: Vec::new(), is_first }
    }
}

/// Rows of as many words.
fn empty_rows(words: [usize; OPERANDS]) -> Vec<Values> {
    words.into_iter().filter(|words| *words > 0).map(|words| Zeroizing::new(vec![0; words])).collect()
}

/// Writes as many low bits of keys as there are rows into these, from word `start` on, as far as they go.
fn gather_rows(keys: &[u64], start: usize, rows: &mut [Values]) {
    for (bit, row) in (0..).zip(rows) {
        let words = row.iter_mut().skip(start).zip(keys.chunks(64));
        words.for_each(|(word, keys)| *word = bit_of_words(keys, bit));
    }
}

/// The products of one party's shares, of which it opens what the triples mask.
pub(super) struct Multiplied {
    triples: BitTriples,
    /// Masked shares, this party's and the other's: of the bits, then of the others.
    mine: Values,
    theirs: Vec<u64>,
    is_first: bool,
}

impl Role for Multiplied {
    fn say(&mut self) -> Vec<u8> {
        pack_bits(&self.mine, 64)
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<()> {
        self.theirs = packed(message, self.mine.len(), 64)?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        let BitTriples { a, products } = &self.triples;
        // The first adds the product of the opened bits.
        let public = u64::from(self.is_first).wrapping_neg();
        let opened: Vec<u64> =
            self.mine.iter().zip(&self.theirs).map(|(mine, theirs)| mine ^ theirs).collect();
        let (d, mut rest) = opened.split_at(a.len());
        let product = |[b, product]: &[Values; 2]| {
            let (e, behind) = rest.split_at(b.len());
            rest = behind;
            let word = |i: usize| product[i] ^ d[i] & b[i] ^ e[i] & a[i] ^ d[i] & e[i] & public;
            Zeroizing::new((0..b.len()).map(word).collect())
        };
        products.iter().map(product).collect()
    }
}
