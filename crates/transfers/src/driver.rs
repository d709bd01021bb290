//! The moves of the diagram, and what every layer is made of: carries, bits as values, wider rings, squares.
//!
//! A protocol is written once, over a driver. [`Run`](super::run::Run) makes its moves with the peer on one party's shares;
//! [`Counter`](super::counter::Counter) lists them, for costs and material.

use std::sync::Arc;

use lanner_primitives::Ring;
use lanner_step::{Party, ProtocolError, Result};

use super::lanes::{Lanes, mask};
use super::lookup::Table;
use super::matrices::Shape;
use super::moves::{Compared, Move, OPERANDS, PARTS};

/// One party's shares that go into a move: of values, reduced modulo a power of two that the protocol knows, or of bits in words.
pub enum Task<V> {
    /// For each leaf of the one to three parts, the lowest first, and each way what is told of it, in words: `[not a < b]` for the first party's `a` and
    /// the second's `b`, and whether both are equal.
    Leaves(Vec<Part<V>>),
    /// The products of shared bits and each of the others, in words; what has fewer words is multiplied with the first of the bits.
    Bits(V, Vec<V>),
    /// The products of shared bits, in words, and shared values, modulo `2^bits`.
    Mux {
        /// The bits.
        choices: V,
        /// The values.
        values: V,
        /// Bits of the values and the products.
        bits: u32,
    },
    /// The products of shared values, modulo `2^bits`, and the sums over the whole numbers of what both parties have of `factor` bits.
    Multiply {
        /// What both parties have of the sums.
        numbers: V,
        /// Bits of either.
        factor: u32,
        /// The values.
        values: V,
        /// Bits of the values and the products.
        bits: u32,
    },
    /// The products of the first party's values, of `factor` bits, and the second's, modulo `2^bits`.
    Products {
        /// This party's values.
        mine: V,
        /// Bits of the first party's.
        factor: u32,
        /// Bits of the second party's, and of the products.
        bits: u32,
    },
    /// The products of matrices of shared values, modulo `2^bits`.
    Matrices {
        /// The left ones.
        numbers: V,
        /// The right ones.
        values: V,
        /// Their sides.
        shape: Shape,
        /// Bits of all of them, and of the products.
        bits: u32,
    },
    /// The entries of a public table at places that are shared modulo its length, column by column.
    Lookup {
        /// The places.
        places: V,
        /// What is there.
        table: Arc<Table>,
    },
    /// The same of a table of one column, each entry multiplied with a value that is shared modulo the same power of two.
    Scaled {
        /// The places.
        places: V,
        /// What is there.
        table: Arc<Table>,
        /// What it is multiplied with.
        values: V,
    },
}

/// One party's numbers of a comparison, of `bits` bits. The first party's is the first of them, the second's are all.
pub struct Part<V> {
    /// The numbers.
    pub numbers: Vec<V>,
    /// Bits of each.
    pub bits: u32,
    /// Whether it is asked if they are equal.
    pub equality: bool,
}

impl<V: Lanes> Task<V> {
    /// The move that it takes.
    pub(super) fn step(&self) -> Move {
        match self {
            Self::Leaves(parts) => {
                debug_assert!((1..=PARTS).contains(&parts.len()), "{} parts", parts.len());
                let mut compared = [Compared::default(); PARTS];
                for (compared, part) in compared.iter_mut().zip(parts) {
                    *compared =
                        Compared { bits: part.bits, ways: part.numbers.len(), equality: part.equality };
                }
                Move::Leaves { values: parts[0].numbers[0].count(), parts: compared }
            }
            Self::Bits(_, others) => {
                debug_assert!((1..=OPERANDS).contains(&others.len()), "{} operands", others.len());
                let mut words = [0; OPERANDS];
                words.iter_mut().zip(others).for_each(|(words, other)| *words = other.count());
                Move::Bits { words }
            }
            Self::Mux { values, bits, .. } => {
                Move::BothWays { values: values.count(), factor: 1, bits: *bits }
            }
            Self::Multiply { values, factor, bits, .. } => {
                Move::BothWays { values: values.count(), factor: *factor, bits: *bits }
            }
            Self::Products { mine, factor, bits } => {
                Move::Products { values: mine.count(), factor: *factor, bits: *bits }
            }
            Self::Matrices { shape, bits, .. } => Move::Matrices { shape: *shape, bits: *bits },
            Self::Lookup { places, table } => Move::Lookup { values: places.count(), shape: table.shape() },
            Self::Scaled { places, table, .. } => {
                Move::Scaled { values: places.count(), shape: table.shape() }
            }
        }
    }
}

/// Takes and gives one party's shares.
pub trait Driver {
    /// The lanes it works on.
    type Values: Lanes;

    /// Whose shares they are.
    fn party(&self) -> Party;

    /// Whether this party is the second in the next turn.
    fn is_second(&self) -> bool;

    /// Makes moves together; what each gives.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer sends something else, [`ProtocolError::WrongMaterial`] if other moves are due.
    fn turn(&mut self, tasks: Vec<Task<Self::Values>>) -> Result<Vec<Vec<Self::Values>>>;

    /// This party's share of a public number: the server's is the number, the client's zero.
    fn public(&self, number: u64) -> u64 {
        if self.party() == Party::Server { number } else { 0 }
    }

    /// The complement of shared bits.
    fn complement(&self, bits: &Self::Values) -> Self::Values {
        let ones = if self.party() == Party::Client { u64::MAX } else { 0 };
        bits.map(|word| word ^ ones)
    }

    /// [`Task::Bits`] by itself.
    ///
    /// # Errors
    /// As [`Self::turn`], as all moves.
    fn bit_products(&mut self, bits: Self::Values, others: Vec<Self::Values>) -> Result<Vec<Self::Values>> {
        only(self.turn(vec![Task::Bits(bits, others)])?)
    }

    /// [`Task::Products`] by itself.
    ///
    /// # Errors
    /// As [`Self::turn`].
    fn product(&mut self, mine: Self::Values, factor: u32, bits: u32) -> Result<Self::Values> {
        only(only(self.turn(vec![Task::Products { mine, factor, bits }])?)?)
    }

    /// The task that makes values of shared bits, one a lane; see [`Self::values_of`].
    fn to_values(&self, bits: &Self::Values, to: u32) -> Task<Self::Values> {
        // Twice the product counts: its top bit does not.
        Task::Products { mine: bits.clone(), factor: 1, bits: if to > 1 { to - 1 } else { 1 } }
    }

    /// Shares modulo `2^to` of shared bits, given their product: the sum of both parties' bits less twice that.
    fn values_of(&self, bits: &Self::Values, product: &Self::Values, to: u32) -> Self::Values {
        let ring = Ring::Pow2(to);
        bits.zip_map(product, |bit, both| ring.sub(bit, both << 1))
    }

    /// Shares modulo `2^to` of shared bits, one a lane.
    ///
    /// # Errors
    /// As [`Self::turn`].
    fn bits_to_values(&mut self, bits: &Self::Values, to: u32) -> Result<Self::Values> {
        let task = self.to_values(bits, to);
        let product = only(only(self.turn(vec![task])?)?)?;
        Ok(self.values_of(bits, &product, to))
    }

    /// Shares of shared bits, one a lane, of each modulo a power of two of its own: in one turn, or none.
    ///
    /// # Errors
    /// As [`Self::turn`].
    fn all_bits_to_values(&mut self, bits: Vec<(Self::Values, u32)>) -> Result<Vec<Self::Values>> {
        if bits.is_empty() {
            return Ok(Vec::new());
        }
        let tasks = bits.iter().map(|(bits, to)| self.to_values(bits, *to)).collect();
        let products = self.turn(tasks)?.into_iter().map(only).collect::<Result<Vec<_>, _>>()?;
        let given = bits.iter().zip(&products);
        Ok(given.map(|((bits, to), product)| self.values_of(bits, product, *to)).collect())
    }

    /// Shares modulo `2^to` of values from 0 to half of `2^from`, which are shared modulo the latter.
    ///
    /// # Errors
    /// As [`Self::turn`].
    fn extend_positive(&mut self, x: Self::Values, from: u32, to: u32) -> Result<Self::Values> {
        let ring = Ring::Pow2(to);
        if to <= from {
            return Ok(x.map(|x| ring.embed(x as i64)));
        }
        // The shares wrap if either has its top bit set: the value has not. Both have it in the product.
        let top = x.map(|x| x >> (from - 1));
        let both = self.product(top.clone(), 1, to - from)?;
        let wraps = top.zip_map(&both, u64::wrapping_sub);
        Ok(unwrap(&x, &wraps, from, ring))
    }

    /// The squares of values shared modulo `2^bits`: `(a + b)^2 = a^2 + b^2 + 2 a b`, the product modulo half of that.
    ///
    /// # Errors
    /// As [`Self::turn`].
    fn square(&mut self, x: &Self::Values, bits: u32) -> Result<Self::Values> {
        let (ring, half) = (Ring::Pow2(bits), bits - 1);
        let cross = self.product(x.map(|x| x & mask(half)), half, half)?;
        Ok(x.zip_map(&cross, |x, cross| ring.add(x.wrapping_mul(x), cross << 1)))
    }
}

/// What a layer computes, written once for those who make its moves and those who count them.
pub trait Program {
    /// One party's shares of the outputs, of its shares of the inputs. The moves may depend on nothing but how many there are.
    ///
    /// # Errors
    /// As [`Driver::turn`].
    fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values>;
}

/// Shares of values that are shared modulo `2^from` and are `wraps` times that too large, in a wider ring.
pub(super) fn unwrap<V: Lanes>(x: &V, wraps: &V, from: u32, ring: Ring) -> V {
    x.zip_map(wraps, |x, wraps| ring.sub(x, ring.embed((wraps << from) as i64)))
}

/// The only one of several.
pub(super) fn only<T>(mut all: Vec<T>) -> Result<T> {
    match (all.pop(), all.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => Err(ProtocolError::Missing("the results of a move")),
    }
}

/// The sum of two bits, in words.
#[must_use]
pub const fn xor(x: u64, y: u64) -> u64 {
    x ^ y
}
