//! One-time material of moves, from the transfers of both directions.

use lanner_ot::{CorrelatedReceiver, CorrelatedSender};
use lanner_primitives::{Bits, Block, CorrelationRobustHash, parallel};
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use rand_core::CryptoRng;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::and_triples::AndTriples;
use super::lanes::{Values, words};
use super::layer::Layer;
use super::leaf::{LeafChoices, LeafKeys};
use super::moves::Move;
use super::product::{Chosen, Offered};
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
                Prepared::LeafChoices(choices) => choices.encode(bits, writer),
                Prepared::LeafKeys(keys) => keys.encode(bits, writer),
                Prepared::AndTriples(triples) => triples.encode(writer),
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
            Move::Leaves { values, bits } if is_first => {
                Self::LeafChoices(LeafChoices::decode(reader, values, bits)?)
            }
            Move::Leaves { values, bits } => Self::LeafKeys(LeafKeys::decode(reader, values, bits)?),
            Move::AndTriples { words } => Self::AndTriples(AndTriples::decode(reader, words)?),
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
}

/// The first half of a layer's preparation: the transfers that the client sends.
pub struct Request(Drawn);

/// One move's material: the first party's or the second's.
pub(super) enum Prepared {
    LeafChoices(LeafChoices),
    LeafKeys(LeafKeys),
    AndTriples(AndTriples),
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
    /// What `of` makes of the key of each transfer, whose block is added to `offset` before it is hashed.
    pub(super) fn keys<T: Clone + Default + Send + Zeroize>(
        &self,
        hash: &CorrelationRobustHash,
        offset: Block,
        of: impl Fn(Block) -> T + Send + Sync,
    ) -> Zeroizing<Vec<T>> {
        let mut made = Zeroizing::new(vec![T::default(); self.blocks.len()]);
        let parts = made.chunks_mut(PART).zip(self.blocks.chunks(PART)).zip((self.first..).step_by(PART));
        parallel::for_each(parts, |((made, blocks), first)| {
            let mut made = made.iter_mut();
            hash_words(hash, blocks, offset, first, |keys| {
                made.by_ref().zip(keys).for_each(|(made, key)| *made = of(*key));
            });
        });
        made
    }

    /// Bit 0 of the key of each transfer.
    pub(super) fn key_bits(&self, hash: &CorrelationRobustHash, offset: Block) -> Values {
        let mut made = Zeroizing::new(vec![0; words(self.blocks.len())]);
        let parts =
            made.chunks_mut(PART / 64).zip(self.blocks.chunks(PART)).zip((self.first..).step_by(PART));
        parallel::for_each(parts, |((made, blocks), first)| {
            let mut made = made.iter_mut();
            hash_words(hash, blocks, offset, first, |keys| {
                made.by_ref().take(1).for_each(|made| *made = bits(keys, 0));
            });
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

/// Hands the keys of blocks to `take`, 64 at a time.
fn hash_words(
    hash: &CorrelationRobustHash,
    blocks: &[Block],
    offset: Block,
    first: u64,
    mut take: impl FnMut(&[Block]),
) {
    let mut keys = Zeroizing::new([Block::ZERO; 64]);
    for (blocks, first) in blocks.chunks(64).zip((first..).step_by(64)) {
        let keys = &mut keys[..blocks.len()];
        keys.copy_from_slice(blocks);
        hash.hash_masked_in_place(keys, offset, first);
        take(keys);
    }
}

/// The given bit of each of at most 64 keys.
pub(super) fn bits(keys: &[Block], bit: u32) -> u64 {
    keys.iter().rev().fold(0, |word, key| word << 1 | key.0 as u64 >> bit & 1)
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
        Move::Leaves { values, bits } if is_first => {
            Prepared::LeafChoices(LeafChoices::new(receive, received, values, bits))
        }
        Move::Leaves { values, bits } => Prepared::LeafKeys(LeafKeys::new(send, sent, values, bits, rng)),
        Move::AndTriples { words } => {
            Prepared::AndTriples(AndTriples::new(send, receive, sent, received, words))
        }
        Move::Mux { .. } => Prepared::Mux(Offered::new(send, sent), Chosen::new(receive, received)),
        Move::Products { .. } if is_first => Prepared::Chosen(Chosen::new(receive, received)),
        Move::Products { .. } => Prepared::Offered(Offered::new(send, sent)),
    }
}
