//! The moves that protocols are made of: who sends how much in each, and the transfers it takes.

use lanner_wire::packed_len;

use crate::{Cost, Party};

/// A step of both parties on so many values; see the diagram of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// The comparisons of all blocks of values of so many bits.
    Leaves { values: usize, bits: u32 },
    /// Products of shared bits, in words of 64.
    AndTriples { words: usize },
    /// Products of shared bits and shared values of so many bits.
    Mux { values: usize, bits: u32 },
    /// Products of a bit of the first and one of the second party, modulo `2^bits`.
    BitProducts { values: usize, bits: u32 },
    /// Products of a value of the first and one of the second party, modulo `2^bits`.
    Products { values: usize, bits: u32 },
}

/// Bits of a block that one transfer compares.
pub(super) const LEAF_BITS: u32 = 4;

/// Words of 64 bits that hold so many.
pub(super) const fn words(values: usize) -> usize {
    values.div_ceil(64)
}

/// The widths of a value's blocks, the lowest first.
pub(super) fn leaf_widths(bits: u32) -> impl DoubleEndedIterator<Item = u32> {
    (0..bits.div_ceil(LEAF_BITS)).map(move |leaf| (bits - leaf * LEAF_BITS).min(LEAF_BITS))
}

/// Bits of the reply to a leaf's choice: of the lowest block only whether it is less.
pub(super) const fn leaf_reply_bits(leaf: usize, width: u32) -> u32 {
    (if leaf == 0 { 1 } else { 2 }) << width
}

impl Move {
    /// Transfers that the first and the second party send.
    pub(super) fn transfers(self) -> [usize; 2] {
        match self {
            Self::Leaves { values, bits } | Self::Products { values, bits } => [0, values * bits as usize],
            Self::AndTriples { words } => [64 * words; 2],
            Self::Mux { values, .. } => [values; 2],
            Self::BitProducts { values, .. } => [0, values],
        }
    }

    /// Bytes of material that the first and the second party keep.
    pub(super) fn held(self) -> [usize; 2] {
        const WORD: usize = 8;
        match self {
            Self::Leaves { values, bits } => {
                let leaves = bits.div_ceil(LEAF_BITS) as usize;
                // Two bits of a block that is known, and all 32 of one that is not.
                let shares = 2 * leaves * words(values) * WORD;
                [values * WORD + shares, 4 * leaves * values + shares]
            }
            Self::AndTriples { words } => [3 * words * WORD; 2],
            Self::Mux { values, .. } => [3 * values * WORD + words(values) * WORD; 2],
            Self::BitProducts { .. } | Self::Products { .. } => {
                let [_, transfers] = self.transfers();
                [transfers * WORD + words(transfers) * WORD, 2 * transfers * WORD]
            }
        }
    }

    /// The bytes of its messages in order, the first party's and the second's in turn.
    pub(super) fn messages(self) -> Vec<usize> {
        match self {
            Self::Leaves { values, bits } => {
                let replies = leaf_widths(bits).enumerate();
                let replies =
                    replies.map(|(leaf, width)| packed_len(values, leaf_reply_bits(leaf, width))).sum();
                vec![packed_len(values, bits), replies]
            }
            Self::AndTriples { words } => vec![16 * words; 2],
            Self::Mux { values, bits } => {
                let (choices, corrections) = (packed_len(values, 1), packed_len(values, bits));
                vec![choices, choices + corrections, corrections]
            }
            Self::BitProducts { values, bits } => vec![packed_len(values, 1), packed_len(values, bits)],
            Self::Products { values, bits } => {
                let corrections = (1..=bits).map(|bits| packed_len(values, bits)).sum();
                vec![packed_len(values, bits), corrections]
            }
        }
    }
}

/// Moves in order. The client speaks first in the first of them; who speaks last in one is second in the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moves(pub(super) Vec<Move>);

impl Moves {
    /// Each move with the party that speaks first in it.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = (Move, Party)> + '_ {
        self.0.iter().scan(Party::Client, |first, step| {
            let now = *first;
            // Who spoke last is ready to speak first.
            if !matches!(step, Move::Mux { .. }) {
                *first = now.other();
            }
            Some((*step, now))
        })
    }

    /// Transfers that a party sends in all moves together.
    pub(super) fn sent_by(&self, party: Party) -> usize {
        let of = |(step, first): (Move, Party)| step.transfers()[usize::from(first != party)];
        self.in_turn().map(of).sum()
    }

    /// Bytes of material that a party keeps of all moves together.
    pub(super) fn held_by(&self, party: Party) -> usize {
        self.in_turn().map(|(step, first)| step.held()[usize::from(first != party)]).sum()
    }

    /// What all messages send.
    pub(super) fn cost(&self) -> Cost {
        self.in_turn().fold(Cost::NONE, |cost, (step, first)| {
            let speakers = [first, first.other()];
            let messages = step.messages().into_iter().zip(speakers.into_iter().cycle());
            messages.fold(cost, |cost, (bytes, speaker)| match speaker {
                Party::Client => cost.client(bytes),
                Party::Server => cost.server(bytes),
            })
        })
    }
}

/// The moves of the carries of sums of two values of so many bits.
pub(super) fn carry(values: usize, bits: u32) -> impl Iterator<Item = Move> {
    let blocks = |left: &usize| Some(left.div_ceil(2));
    let levels = std::iter::successors(Some(bits.div_ceil(LEAF_BITS) as usize), blocks);
    // Each pair of neighbours joins with two products, the lowest with one.
    let joins = levels.take_while(|left| *left > 1).map(move |left| {
        let pairs = left / 2;
        Move::AndTriples { words: (2 * pairs - 1) * words(values) }
    });
    std::iter::once(Move::Leaves { values, bits }).chain(joins)
}
