//! One-time material of moves, from the transfers of both directions.

use lanner_ot::{CorrelatedReceiver, CorrelatedSender};
use lanner_primitives::{Bits, Block, CorrelationRobustHash, parallel};
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use rand_core::CryptoRng;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::bit_products::BitTriples;
use super::driver::Task;
use super::lanes::Values;
use super::layer::Layer;
use super::leaf::{LeafChoices, LeafKeys};
use super::moves::{Compared, Move, OPERANDS};
use super::mux::Selected;
use super::product::{ChoosingProducts, Chosen, Factors, Offered, OfferingProducts};
use super::run::Role;
use super::transfers::Transfers;
use crate::{Party, ProtocolError};

/// What one party keeps of a layer until it is used, move by move.
pub struct Material(pub(super) Vec<PreparedMove>);

/// A move with this party's material for it.
pub(super) struct PreparedMove {
    pub(super) step: Move,
    /// Whether this party speaks first.
    pub(super) is_first: bool,
    pub(super) prepared: Prepared,
}

impl ZeroizeOnDrop for Material {}

impl Material {
    /// Appends all of it, which takes no more than [`Layer::held`] bytes. They are as secret as the material, and serve once.
    pub fn encode(&self, writer: &mut Writer) {
        for PreparedMove { step, prepared, .. } in &self.0 {
            let bits = step.bits();
            match prepared {
                Prepared::LeafChoices(choices, parts) => choices.encode(*parts, writer),
                Prepared::LeafKeys(keys, parts) => keys.encode(*parts, writer),
                Prepared::BitTriples(triples) => triples.encode(writer),
                Prepared::Mux(offered, chosen) => {
                    offered.encode(bits, writer);
                    chosen.encode(bits, writer);
                }
                Prepared::Chosen(chosen) => chosen.encode(bits, writer),
                Prepared::Offered(offered) => offered.encode(bits, writer),
            }
        }
    }

    /// Reads what [`Self::encode`] wrote of this party's material for one run of the layer, whose moves say every length.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if fewer bytes are left; [`DecodeError::Invalid`] if padding is set.
    pub fn decode(reader: &mut Reader<'_>, layer: &Layer, party: Party) -> Result<Self, DecodeError> {
        let prepared = |(step, first): (Move, Party)| {
            let is_first = first == party;
            Ok(PreparedMove { step, is_first, prepared: Prepared::decode(reader, step, is_first)? })
        };
        layer.moves.in_turn().map(prepared).collect::<Result<_, _>>().map(Self)
    }
}

impl Prepared {
    fn decode(reader: &mut Reader, step: Move, is_first: bool) -> Result<Self, DecodeError> {
        Ok(match step {
            Move::Leaves { values, parts } if is_first => {
                Self::LeafChoices(LeafChoices::decode(reader, values, parts)?, parts)
            }
            Move::Leaves { values, parts } => Self::LeafKeys(LeafKeys::decode(reader, values, parts)?, parts),
            Move::Bits { words } => Self::BitTriples(BitTriples::decode(reader, words)?),
            Move::Mux { values, bits } => {
                Self::Mux(Offered::decode(reader, values, bits)?, Chosen::decode(reader, values, bits)?)
            }
            Move::Products { bits, .. } => {
                let [_, count] = step.transfers();
                if is_first {
                    Self::Chosen(Chosen::decode(reader, count, bits)?)
                } else {
                    Self::Offered(Offered::decode(reader, count, bits)?)
                }
            }
        })
    }

    /// One party's role in a move with this material; None if it is of another kind.
    pub(super) fn role(self, task: Task<Values>, is_first: bool) -> Option<Box<dyn Role>> {
        Some(match (self, task) {
            (Self::LeafChoices(choices, parts), Task::Leaves(numbers)) => {
                Box::new(choices.role(&numbers, parts))
            }
            (Self::LeafKeys(keys, parts), Task::Leaves(numbers)) => Box::new(keys.role(numbers, parts)),
            (Self::BitTriples(triples), Task::Bits(bits, others)) => {
                Box::new(triples.role(&bits, &others, is_first))
            }
            (Self::Mux(offered, chosen), Task::Mux { choices, values, bits }) => {
                Box::new(Selected::new((offered, chosen), &choices, &values, bits, is_first))
            }
            (Self::Chosen(chosen), Task::Products { mine, factor, bits }) => {
                Box::new(ChoosingProducts { chosen, of: Factors::new(mine, factor, bits) })
            }
            (Self::Offered(offered), Task::Products { mine, factor, bits }) => {
                Box::new(OfferingProducts::new(offered, Factors::new(mine, factor, bits)))
            }
            _ => return None,
        })
    }
}

/// The first half of a layer's preparation: the transfers that the client sends.
pub struct Request(Drawn);

/// One move's material: the first party's or the second's.
pub(super) enum Prepared {
    LeafChoices(LeafChoices, [Compared; 2]),
    LeafKeys(LeafKeys, [Compared; 2]),
    BitTriples(BitTriples),
    Mux(Offered, Chosen),
    Chosen(Chosen),
    Offered(Offered),
}

/// Transfers of one direction for all moves.
pub(super) struct Drawn {
    blocks: Vec<Block>,
    /// The choices, where this party receives.
    choices: Bits,
    first: u64,
    used: usize,
}

/// Transfers of one move.
pub(super) struct Part<'d> {
    pub(super) blocks: &'d [Block],
    choices: &'d Bits,
    start: usize,
    /// The index of the first.
    pub(super) first: u64,
}

impl Drop for Drawn {
    fn drop(&mut self) {
        self.blocks.zeroize();
    }
}

impl Drawn {
    fn new(
        channel: &mut dyn Channel,
        transfers: &mut Transfers,
        sends: bool,
        count: usize,
    ) -> Result<Self, ProtocolError> {
        let mut blocks = Vec::new();
        let (choices, first) = if sends {
            (Bits::default(), transfers.sender.extend_random(channel, count, &mut blocks)?)
        } else {
            transfers.receiver.extend_random(channel, count, &mut blocks)?
        };
        Ok(Self { blocks, choices, first, used: 0 })
    }

    /// The next `count` transfers.
    fn part(&mut self, count: usize) -> Part<'_> {
        let start = self.used;
        self.used += count;
        let blocks = &self.blocks[start..self.used];
        Part { blocks, choices: &self.choices, start, first: self.first + start as u64 }
    }
}

impl Part<'_> {
    /// The low word of the key of each transfer, whose block is added to `offset` before it is hashed.
    pub(super) fn keys(&self, hash: &CorrelationRobustHash, offset: Block) -> Values {
        let mut made = Zeroizing::new(vec![0; self.blocks.len()]);
        let parts = made.chunks_mut(PART).zip(self.blocks.chunks(PART)).zip((self.first..).step_by(PART));
        parallel::for_each(parts, |((made, blocks), first)| hash.hash_to_words(blocks, offset, first, made));
        made
    }

    /// As many low bits of the key of each transfer as there are rows, each of which has the first of them in a given number of words.
    pub(super) fn key_bits(
        &self,
        hash: &CorrelationRobustHash,
        offset: Block,
        rows: [usize; OPERANDS],
    ) -> Vec<Values> {
        let mut made: Vec<Values> =
            rows.into_iter().filter(|row| *row > 0).map(|row| Zeroizing::new(vec![0; row])).collect();
        let mut columns: Vec<_> = made.iter_mut().map(|row| row.chunks_mut(PART / 64)).collect();
        let parts = self.blocks.chunks(PART).zip((self.first..).step_by(PART)).map(|(blocks, first)| {
            (
                blocks,
                first,
                columns.iter_mut().map(|column| column.next().unwrap_or_default()).collect::<Vec<_>>(),
            )
        });
        parallel::for_each(parts, |(blocks, first, mut rows)| {
            let mut words = Zeroizing::new([0; 64]);
            for (number, (blocks, first)) in blocks.chunks(64).zip((first..).step_by(64)).enumerate() {
                hash.hash_to_words(blocks, offset, first, &mut *words);
                for (bit, row) in (0..).zip(&mut rows) {
                    row.iter_mut()
                        .skip(number)
                        .take(1)
                        .for_each(|word| *word = gather_bits(&words[..blocks.len()], bit));
                }
            }
        });
        made
    }

    /// The choices from transfer `i` on, 64 of them; zeros behind the last.
    pub(super) fn choices(&self, i: usize) -> u64 {
        let (word, shift) = ((self.start + i) / 64, (self.start + i) % 64);
        let at = |word: usize| self.choices.as_words().get(word).copied().unwrap_or_default();
        at(word) >> shift | at(word + 1) << (63 - shift) << 1
    }
}

/// The given bit of each of at most 64 words.
pub(super) fn gather_bits(words: &[u64], bit: u32) -> u64 {
    words.iter().rev().fold(0, |gathered, word| gathered << 1 | word >> bit & 1)
}

/// Transfers or values that are worked on in one go: whole words of bits.
pub(super) const PART: usize = 1 << 13;

impl Layer {
    /// Offline: draws the transfers that the client sends.
    ///
    /// # Errors
    /// [`ProtocolError::Ot`] if the channel fails or the peer sends something else.
    pub fn request(
        &self,
        channel: &mut dyn Channel,
        transfers: &mut Transfers,
    ) -> Result<Request, ProtocolError> {
        let sends = transfers.party == Party::Client;
        Ok(Request(Drawn::new(channel, transfers, sends, self.transfers(Party::Client))?))
    }

    /// Offline: draws the transfers that the server sends, and expands all to the material of the moves.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn prepare(
        &self,
        channel: &mut dyn Channel,
        transfers: &mut Transfers,
        Request(by_client): Request,
        rng: &mut impl CryptoRng,
    ) -> Result<Material, ProtocolError> {
        let (party, sends) = (transfers.party, transfers.party == Party::Server);
        let by_server = Drawn::new(channel, transfers, sends, self.transfers(Party::Server))?;
        let (mut sent, mut received) = if sends { (by_server, by_client) } else { (by_client, by_server) };
        let prepare = |(step, first): (Move, Party)| {
            let is_first = first == party;
            let [send, receive] = [is_first, !is_first].map(|first| step.transfers()[usize::from(!first)]);
            let (sent, received) = (sent.part(send), received.part(receive));
            PreparedMove {
                step,
                is_first,
                prepared: expand(step, is_first, transfers, &sent, &received, rng),
            }
        };
        Ok(Material(self.moves.in_turn().map(prepare).collect()))
    }
}

/// Expands one move's transfers.
fn expand(
    step: Move,
    is_first: bool,
    transfers: &Transfers,
    sent: &Part,
    received: &Part,
    rng: &mut impl CryptoRng,
) -> Prepared {
    let (send, receive) = (&transfers.sender, transfers.receiver.hash());
    match step {
        Move::Leaves { values, parts } if is_first => {
            Prepared::LeafChoices(LeafChoices::new(receive, received, values, parts), parts)
        }
        Move::Leaves { values, parts } => {
            Prepared::LeafKeys(LeafKeys::new(send, sent, values, parts, rng), parts)
        }
        Move::Bits { words } => Prepared::BitTriples(BitTriples::new(send, receive, sent, received, words)),
        Move::Mux { .. } => Prepared::Mux(Offered::new(send, sent), Chosen::new(receive, received)),
        Move::Products { .. } if is_first => Prepared::Chosen(Chosen::new(receive, received)),
        Move::Products { .. } => Prepared::Offered(Offered::new(send, sent)),
    }
}
