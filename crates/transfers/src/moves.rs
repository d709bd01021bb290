//! The moves that protocols are made of: who sends how much in each, and the transfers it takes.

use lanner_step::{Cost, Party};
use lanner_wire::packed_len;

use super::lanes::words;
use super::lookup::TableShape;
use super::matrices::Shape;
use super::source::parts;

/// A step of both parties on a given number of values; see the diagram of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Comparisons of all blocks of values, which have up to three parts.
    Leaves {
        /// How many.
        values: usize,
        /// Of each, the lower first.
        parts: [Compared; PARTS],
    },
    /// Products of shared bits and up to four others of each, in words of 64: how many words each of the others has. The first has as
    /// many as the bits themselves, no other has more.
    Bits {
        /// Of each of the others; none behind the last.
        words: [usize; OPERANDS],
    },
    /// Products of each party's numbers, of `factor` bits, and the other's values, modulo `2^bits`.
    BothWays {
        /// How many.
        values: usize,
        /// Bits of the numbers.
        factor: u32,
        /// Bits of the products.
        bits: u32,
    },
    /// Products of the first party's values, of `factor` bits, and the second's, modulo `2^bits`.
    Products {
        /// How many.
        values: usize,
        /// Bits of the first party's.
        factor: u32,
        /// Bits of the products.
        bits: u32,
    },
    /// Products of matrices of shared values, modulo `2^bits`: of each party's numbers and the other's rows.
    Matrices {
        /// The matrices' sides.
        shape: Shape,
        /// Bits of the products.
        bits: u32,
    },
    /// Entries of a table at shared places.
    Lookup {
        /// How many.
        values: usize,
        /// The table's.
        shape: TableShape,
    },
    /// The same, multiplied with shared values.
    Scaled {
        /// How many.
        values: usize,
        /// The table's.
        shape: TableShape,
    },
}

/// The most bits that a shared bit is multiplied with in one go.
pub(super) const OPERANDS: usize = 4;

/// The most parts of a value that are compared.
pub(super) const PARTS: usize = 3;

/// What is compared of a value: a number of the first party's with as many of the second's as there are ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Bits of the numbers; none if there is nothing.
    pub bits: u32,
    /// One or two.
    pub ways: usize,
    /// Whether it is asked if they are equal, which the blocks above the lowest always tell.
    pub equality: bool,
}

/// Neighbouring bits of a value that one transfer of several compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// The part that it is of.
    pub(super) part: usize,
    /// Where it begins in its part, and in all parts one after the other.
    pub(super) shift: [u32; 2],
    /// Bits.
    pub(super) width: u32,
    /// Bits that are told of it in each way: whether the first party's is less and, but for the lowest of a part, whether both are equal.
    pub(super) told: usize,
    /// Ways.
    pub(super) ways: usize,
}

/// The most bits of a leaf.
pub(super) const LEAF_BITS: u32 = 4;

/// The bits of a leaf that send least, joins counted.
const CHEAP_LEAF_BITS: u32 = 3;

impl Leaf {
    /// Bits that each of its keys has.
    pub(super) const fn rows(&self) -> usize {
        self.told * self.ways
    }

    /// Bits of the reply to a choice: a row of one for each number of the leaf's bits.
    pub(super) const fn reply_bits(&self) -> u32 {
        (self.rows() as u32) << self.width
    }
}

/// The leaves of values of these parts, the lowest first: of as few bits as send least, unless that takes one more level of joins than the
/// fewest leaves. Widths differ by one at most.
pub(super) fn leaves(parts: [Compared; PARTS]) -> impl Iterator<Item = Leaf> {
    let starts = parts.into_iter().scan(0, |end, compared| {
        *end += compared.bits;
        Some(*end - compared.bits)
    });
    parts.into_iter().zip(starts).enumerate().flat_map(|(part, (compared, start))| {
        let deepest = compared.bits.div_ceil(LEAF_BITS).next_power_of_two();
        let count = compared.bits.div_ceil(CHEAP_LEAF_BITS).min(deepest);
        let mut shift = 0;
        (0..count).map(move |leaf| {
            let (from, left) = (shift, compared.bits - shift);
            let width = left.div_ceil(count - leaf);
            shift += width;
            let told = if leaf == 0 && !compared.equality { 1 } else { 2 };
            Leaf { part, shift: [from, start + from], width, told, ways: compared.ways }
        })
    })
}

impl Move {
    /// Bits of the numbers that are opened or computed.
    pub(super) fn bits(self) -> u32 {
        match self {
            Self::Leaves { parts, .. } => parts.iter().map(|part| part.bits).sum(),
            Self::BothWays { bits, .. } | Self::Products { bits, .. } | Self::Matrices { bits, .. } => bits,
            Self::Bits { .. } | Self::Lookup { .. } | Self::Scaled { .. } => 64,
        }
    }

    /// How many results it gives.
    #[cfg(test)]
    pub(super) fn results(self) -> usize {
        match self {
            Self::Leaves { parts, .. } => leaves(parts).map(|leaf| leaf.rows()).sum(),
            Self::Bits { words } => words.iter().filter(|words| **words > 0).count(),
            Self::BothWays { .. } | Self::Products { .. } | Self::Matrices { .. } => 1,
            Self::Lookup { shape, .. } | Self::Scaled { shape, .. } => shape.columns().count(),
        }
    }

    /// Transfers that the first and the second party send.
    pub(super) fn transfers(self) -> [usize; 2] {
        match self {
            Self::Leaves { values, .. } => [0, values * self.bits() as usize],
            Self::Products { values, factor, .. } => [0, values * factor as usize],
            Self::Bits { words: [words, ..] } => [64 * words; 2],
            Self::BothWays { values, factor, .. } => [values * factor as usize; 2],
            Self::Matrices { shape, bits } => [shape.numbers() * bits as usize; 2],
            Self::Lookup { values, shape } => [0, values * shape.place_bits as usize],
            Self::Scaled { values, shape } => [values * shape.place_bits as usize; 2],
        }
    }

    /// How many transfers a party draws at a time of those that the first party sends, or the second.
    fn draws(self, by_first: bool) -> Vec<usize> {
        let count = self.transfers()[usize::from(!by_first)];
        match self {
            Self::Leaves { values, parts: of } if count > 0 => {
                let of_leaf = |leaf: Leaf| parts(values).map(move |part| part * leaf.width as usize);
                leaves(of).flat_map(of_leaf).collect()
            }
            Self::Lookup { values, shape } | Self::Scaled { values, shape } if count > 0 => {
                parts(values).map(|part| part * shape.place_bits as usize).collect()
            }
            _ => parts(count).collect(),
        }
    }

    /// Bytes of material that the first and the second party keep.
    pub(super) fn held(self) -> [usize; 2] {
        const WORD: usize = 8;
        match self {
            Self::Leaves { values, parts } => {
                let rows: usize = leaves(parts).map(|leaf| leaf.rows()).sum();
                let shares = rows * words(values) * WORD;
                // A bit of each row's key that is known, and all 16 of one that is not.
                [values * WORD + shares, 2 * rows * values + shares]
            }
            Self::Bits { words } => [(words[0] + 2 * words.iter().sum::<usize>()) * WORD; 2],
            Self::BothWays { .. } => {
                let [transfers, _] = self.transfers();
                [3 * transfers * WORD + words(transfers) * WORD; 2]
            }
            Self::Matrices { .. } => {
                // Three keys of two words, and a bit.
                let [transfers, _] = self.transfers();
                [6 * transfers * WORD + words(transfers) * WORD; 2]
            }
            Self::Products { .. } => {
                let [_, transfers] = self.transfers();
                [transfers * WORD + words(transfers) * WORD, 2 * transfers * WORD]
            }
            Self::Lookup { values, shape } => {
                let columns = shape.columns().count();
                [(1 + columns) * values * WORD, shape.reply_bytes(values) + columns * values * WORD]
            }
            Self::Scaled { values, shape } => [shape.reply_bytes(values) + 3 * values * WORD; 2],
        }
    }

    /// Bytes that either party holds while it makes the move, at most and besides the material: what goes in and comes out, and what lies
    /// between; each message once as it is made or read, and once on its way.
    fn working(self) -> usize {
        const WORD: usize = 8;
        let lanes = match self {
            // The numbers of all parts, one of them in two ways at most, and the choices.
            Self::Leaves { values, parts } => (6 + usize::from(parts[2].bits > 0)) * values,
            Self::Bits { words } => 4 * (words[0] + words.iter().sum::<usize>()),
            // Shares, choices and flips as numbers, offers and sums.
            Self::BothWays { values, .. }
            | Self::Products { values, .. }
            | Self::Lookup { values, .. }
            | Self::Scaled { values, .. } => 8 * values,
            // Shares and flips; corrections of one bit of every number.
            Self::Matrices { shape, .. } => {
                4 * shape.numbers() + 2 * shape.values() + 2 * shape.sums() + shape.numbers() * shape.columns
            }
        };
        lanes * WORD + 2 * self.messages().into_iter().sum::<usize>()
    }

    /// The bytes of its messages in order, the first party's and the second's in turn.
    pub(super) fn messages(self) -> Vec<usize> {
        // Each message is packed values, a given number of each of some widths.
        let (values, widths) = match self {
            Self::Leaves { values, parts } => {
                (values, vec![vec![self.bits()], leaves(parts).map(|leaf| leaf.reply_bits()).collect()])
            }
            Self::Bits { words } => {
                let opened = words[0] + words.iter().sum::<usize>();
                return vec![8 * opened; 2];
            }
            Self::BothWays { values, factor, bits } => {
                let corrections: Vec<u32> = (0..factor).map(|i| bits - i).collect();
                let both = [&[factor], corrections.as_slice()].concat();
                (values, vec![vec![factor], both, corrections])
            }
            Self::Products { values, factor, bits } => {
                (values, vec![vec![factor], (0..factor).map(|i| bits - i).collect()])
            }
            Self::Matrices { shape, bits } => {
                let flips = packed_len(shape.numbers(), bits);
                let corrections: usize = (0..bits).map(|i| shape.corrections(bits - i)).sum();
                return vec![flips, flips + corrections, corrections];
            }
            Self::Lookup { values, shape } => {
                return vec![packed_len(values, shape.place_bits), shape.reply_bytes(values)];
            }
            Self::Scaled { values, shape } => {
                let (places, reply) = (packed_len(values, shape.place_bits), shape.reply_bytes(values));
                return vec![places, places + reply, reply];
            }
        };
        let bytes = |widths: &Vec<u32>| widths.iter().map(|bits| packed_len(values, *bits)).sum();
        widths.iter().map(bytes).collect()
    }
}

/// Moves that are made together: their first messages are one, their second ones, and so on.
pub(super) type Turn = Vec<Move>;

/// Turns in order. The client speaks first in the first of them; who speaks last in one speaks first in the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moves(pub(super) Vec<Turn>);

impl Moves {
    /// Each turn with the party that speaks first in it, and the bytes of its messages.
    fn turns(&self) -> impl Iterator<Item = (&Turn, Party, Vec<usize>)> + '_ {
        self.0.iter().scan(Party::Client, |first, turn| {
            let (now, messages) = (*first, joint_messages(turn));
            if messages.len().is_multiple_of(2) {
                *first = now.other();
            }
            Some((turn, now, messages))
        })
    }

    /// Each move with the party that speaks first in it.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = (Move, Party)> + '_ {
        self.turns().flat_map(|(turn, first, _)| turn.iter().map(move |step| (*step, first)))
    }

    /// Transfers that a party sends in all moves together.
    pub(super) fn sent_by(&self, party: Party) -> usize {
        self.sum(party, Move::transfers)
    }

    /// How many transfers are drawn at a time of those that a party sends.
    pub(super) fn draws(&self, sender: Party) -> impl Iterator<Item = usize> + '_ {
        self.in_turn().flat_map(move |(step, first)| step.draws(first == sender))
    }

    /// Bytes of material that a party keeps of all moves together.
    pub(super) fn held_by(&self, party: Party) -> usize {
        self.sum(party, Move::held)
    }

    /// Bytes that either party holds while moves are made, at most and besides the material: of the turn that takes most.
    pub(super) fn working(&self) -> usize {
        self.0.iter().map(|turn| turn.iter().map(|step| step.working()).sum()).max().unwrap_or(0)
    }

    fn sum(&self, party: Party, of: impl Fn(Move) -> [usize; 2]) -> usize {
        self.in_turn().map(|(step, first)| of(step)[usize::from(first != party)]).sum()
    }

    /// Who sends each message, and its bytes.
    pub(super) fn messages(&self) -> impl Iterator<Item = (Party, usize)> + '_ {
        self.turns().flat_map(|(_, first, messages)| [first, first.other()].into_iter().cycle().zip(messages))
    }

    /// What all messages send.
    pub(super) fn cost(&self) -> Cost {
        self.messages().fold(Cost::NONE, |cost, (speaker, bytes)| match speaker {
            Party::Client => cost.client(bytes),
            Party::Server => cost.server(bytes),
        })
    }
}

/// The bytes of the messages of moves that are made together.
pub(super) fn joint_messages(turn: &[Move]) -> Vec<usize> {
    let mut joint = Vec::new();
    for step in turn {
        for (number, bytes) in step.messages().into_iter().enumerate() {
            if number == joint.len() {
                joint.push(0);
            }
            joint[number] += bytes;
        }
    }
    joint
}
