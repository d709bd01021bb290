//! The moves that protocols are made of: who sends how much in each, and the transfers it takes; and the driver that lists them.

use lanner_wire::packed_len;

use super::driver::Driver;
use super::lanes::{Count, words};
use crate::{Cost, Party, ProtocolError};

/// A step of both parties on a given number of values; see the diagram of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// The comparisons of all blocks of values of a given number of bits.
    Leaves { values: usize, bits: u32 },
    /// Products of shared bits, in words of 64.
    AndTriples { words: usize },
    /// Products of shared bits and shared values of a given number of bits.
    Mux { values: usize, bits: u32 },
    /// Products of the first party's values, of `factor` bits, and the second's, modulo `2^bits`.
    Products { values: usize, factor: u32, bits: u32 },
}

/// Bits of a block that one transfer compares.
pub(super) const LEAF_BITS: u32 = 4;

/// The widths of a value's blocks, the lowest first.
pub(super) fn leaf_widths(bits: u32) -> impl DoubleEndedIterator<Item = u32> {
    (0..bits.div_ceil(LEAF_BITS)).map(move |leaf| (bits - leaf * LEAF_BITS).min(LEAF_BITS))
}

/// Bits of the reply to a leaf's choice: of the lowest block only whether it is less.
pub(super) const fn leaf_reply_bits(leaf: usize, width: u32) -> u32 {
    (if leaf == 0 { 1 } else { 2 }) << width
}

impl Move {
    /// Bits of the numbers that are compared, opened, or computed.
    pub(super) const fn bits(self) -> u32 {
        match self {
            Self::Leaves { bits, .. } | Self::Mux { bits, .. } | Self::Products { bits, .. } => bits,
            Self::AndTriples { .. } => 64,
        }
    }

    /// Transfers that the first and the second party send.
    pub(super) fn transfers(self) -> [usize; 2] {
        match self {
            Self::Leaves { values, bits: each } | Self::Products { values, factor: each, .. } => {
                [0, values * each as usize]
            }
            Self::AndTriples { words } => [64 * words; 2],
            Self::Mux { values, .. } => [values; 2],
        }
    }

    /// Bytes of material that the first and the second party keep.
    pub(super) fn held(self) -> [usize; 2] {
        const WORD: usize = 8;
        match self {
            Self::Leaves { values, bits } => {
                let leaves = leaf_widths(bits).count();
                // Two bits of a block that is known, and all 32 of one that is not.
                let shares = 2 * leaves * words(values) * WORD;
                [values * WORD + shares, 4 * leaves * values + shares]
            }
            Self::AndTriples { words } => [3 * words * WORD; 2],
            Self::Mux { values, .. } => [3 * values * WORD + words(values) * WORD; 2],
            Self::Products { .. } => {
                let [_, transfers] = self.transfers();
                [transfers * WORD + words(transfers) * WORD, 2 * transfers * WORD]
            }
        }
    }

    /// The bytes of its messages in order, the first party's and the second's in turn.
    pub(super) fn messages(self) -> Vec<usize> {
        let replies = |(leaf, width)| leaf_reply_bits(leaf, width);
        // Each message is packed values, a given number of each of some widths.
        let (values, widths) = match self {
            Self::Leaves { values, bits } => {
                (values, vec![vec![bits], leaf_widths(bits).enumerate().map(replies).collect()])
            }
            Self::AndTriples { words } => (words, vec![vec![64; 2]; 2]),
            Self::Mux { values, bits } => (values, vec![vec![1], vec![1, bits], vec![bits]]),
            Self::Products { values, factor, bits } => {
                (values, vec![vec![factor], (0..factor).map(|i| bits - i).collect()])
            }
        };
        let bytes = |widths: &Vec<u32>| widths.iter().map(|bits| packed_len(values, *bits)).sum();
        widths.iter().map(bytes).collect()
    }
}

/// Moves in order. The client speaks first in the first of them; who speaks last in one speaks first in the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moves(Vec<Move>);

impl Moves {
    /// Each move with the party that speaks first in it.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = (Move, Party)> + '_ {
        self.0.iter().scan(Party::Client, |first, step| {
            let now = *first;
            if step.messages().len() % 2 == 0 {
                *first = now.other();
            }
            Some((*step, now))
        })
    }

    /// Transfers that a party sends in all moves together.
    pub(super) fn sent_by(&self, party: Party) -> usize {
        self.sum(party, Move::transfers)
    }

    /// Bytes of material that a party keeps of all moves together.
    pub(super) fn held_by(&self, party: Party) -> usize {
        self.sum(party, Move::held)
    }

    fn sum(&self, party: Party, of: impl Fn(Move) -> [usize; 2]) -> usize {
        self.in_turn().map(|(step, first)| of(step)[usize::from(first != party)]).sum()
    }

    /// Who sends each message, and its bytes.
    pub(super) fn messages(&self) -> impl Iterator<Item = (Party, usize)> + '_ {
        self.in_turn()
            .flat_map(|(step, first)| [first, first.other()].into_iter().cycle().zip(step.messages()))
    }

    /// What all messages send.
    pub(super) fn cost(&self) -> Cost {
        self.messages().fold(Cost::NONE, |cost, (speaker, bytes)| match speaker {
            Party::Client => cost.client(bytes),
            Party::Server => cost.server(bytes),
        })
    }
}

/// Lists the moves that a protocol makes. They are the same for both parties.
#[derive(Default)]
pub(super) struct Counter(Vec<Move>);

impl Counter {
    pub(super) fn into_moves(self) -> Moves {
        Moves(self.0)
    }
}

impl Driver for Counter {
    type Values = Count;

    fn party(&self) -> Party {
        Party::Client
    }

    fn leaves(&mut self, &Count(values): &Count, bits: u32) -> Result<Vec<[Count; 2]>, ProtocolError> {
        self.0.push(Move::Leaves { values, bits });
        Ok(vec![[Count(words(values)); 2]; leaf_widths(bits).count()])
    }

    fn and(&mut self, &u: &Count, _: &Count) -> Result<Count, ProtocolError> {
        self.0.push(Move::AndTriples { words: u.0 });
        Ok(u)
    }

    fn mux(&mut self, _: &Count, &x: &Count, bits: u32) -> Result<Count, ProtocolError> {
        self.0.push(Move::Mux { values: x.0, bits });
        Ok(x)
    }

    fn product(&mut self, &mine: &Count, factor: u32, bits: u32) -> Result<Count, ProtocolError> {
        self.0.push(Move::Products { values: mine.0, factor, bits });
        Ok(mine)
    }
}
