//! One-time material of moves, from the transfers of both directions.

use lanner_step::Result;
use lanner_wire::{DecodeError, Reader, Writer};
use rand_core::CryptoRng;
use zeroize::ZeroizeOnDrop;

use super::bit_products::{BitTriples, ReceivedBits, SentBits};
use super::both_ways::{BothWays, Operands};
use super::driver::Task;
use super::lanes::Values;
use super::leaf::{LeafChoices, LeafKeys};
use super::lookup::{LookupKeys, LookupPlaces, ScaledPlaces};
use super::matrices::{ChosenRows, MatrixProduct, OfferedRows};
use super::moves::{Compared, Move, PARTS};
use super::product::{ChoosingProducts, Chosen, Offered, OfferingProducts};
use super::role::Role;
use super::source::Source;

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
    /// Appends all of it, which takes no more than [`Layer::held`](super::Layer::held) bytes. They are as secret as the material, and serve once.
    pub fn encode(&self, writer: &mut Writer) {
        for PreparedMove { step, prepared, .. } in &self.0 {
            let bits = step.bits();
            match prepared {
                Prepared::LeafChoices(choices, parts) => choices.encode(*parts, writer),
                Prepared::LeafKeys(keys, parts) => keys.encode(*parts, writer),
                Prepared::BitTriples(triples) => triples.encode(writer),
                Prepared::BothWays(offered, chosen) => {
                    offered.encode(bits, writer);
                    chosen.encode(bits, writer);
                }
                Prepared::Matrices(offered, chosen) => {
                    offered.encode(writer);
                    chosen.encode(writer);
                }
                Prepared::Chosen(chosen) => chosen.encode(bits, writer),
                Prepared::Offered(offered) => offered.encode(bits, writer),
                Prepared::LookupPlaces(places) => places.encode(writer),
                Prepared::LookupKeys(keys) => keys.encode(writer),
                Prepared::Scaled(places, keys) => {
                    places.encode(writer);
                    keys.encode(writer);
                }
            }
        }
    }
}

impl Prepared {
    /// Reads what [`Material::encode`] wrote of a move.
    pub(super) fn decode(reader: &mut Reader, step: Move, is_first: bool) -> Result<Self, DecodeError> {
        Ok(match step {
            Move::Leaves { values, parts } if is_first => {
                Self::LeafChoices(LeafChoices::decode(reader, values, parts)?, parts)
            }
            Move::Leaves { values, parts } => Self::LeafKeys(LeafKeys::decode(reader, values, parts)?, parts),
            Move::Bits { words } => Self::BitTriples(BitTriples::decode(reader, words)?),
            Move::BothWays { bits, .. } => {
                let [_, count] = step.transfers();
                Self::BothWays(Offered::decode(reader, count, bits)?, Chosen::decode(reader, count, bits)?)
            }
            Move::Matrices { .. } => {
                let [_, count] = step.transfers();
                Self::Matrices(OfferedRows::decode(reader, count)?, ChosenRows::decode(reader, count)?)
            }
            Move::Lookup { values, shape } if is_first => {
                Self::LookupPlaces(LookupPlaces::decode(reader, values, shape)?)
            }
            Move::Lookup { values, shape } => Self::LookupKeys(LookupKeys::decode(reader, values, shape)?),
            Move::Scaled { values, shape } => {
                let places = LookupPlaces::decode(reader, values, shape)?;
                Self::Scaled(places, LookupKeys::decode(reader, values, shape)?)
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
            (Self::BothWays(offered, chosen), Task::Mux { choices, values, bits }) => {
                let operands = Operands::Mux(&choices, &values);
                Box::new(BothWays::new((offered, chosen), operands, [1, bits], is_first))
            }
            (Self::BothWays(offered, chosen), Task::Multiply { numbers, factor, values, bits }) => {
                let operands = Operands::Product(numbers, &values);
                Box::new(BothWays::new((offered, chosen), operands, [factor, bits], is_first))
            }
            (Self::Matrices(offered, chosen), Task::Matrices { numbers, values, shape, bits }) => {
                Box::new(MatrixProduct::new((offered, chosen), (numbers, values), (shape, bits), is_first))
            }
            (Self::LookupPlaces(own), Task::Lookup { places, .. }) => Box::new(own.role(&places)),
            (Self::LookupKeys(keys), Task::Lookup { places, table }) => {
                Box::new(keys.role(places, table, None))
            }
            (Self::Scaled(own, keys), Task::Scaled { places, table, values }) => {
                let choosing = own.role(&places);
                Box::new(ScaledPlaces::new(choosing, keys.role(places, table, Some(values)), is_first))
            }
            (Self::Chosen(chosen), Task::Products { mine, factor, bits }) => {
                Box::new(ChoosingProducts::new(chosen, mine, [factor, bits]))
            }
            (Self::Offered(offered), Task::Products { mine, factor, bits }) => {
                Box::new(OfferingProducts::new(offered, mine, [factor, bits]))
            }
            _ => return None,
        })
    }
}

/// One move's material: the first party's or the second's.
pub(super) enum Prepared {
    LeafChoices(LeafChoices, [Compared; PARTS]),
    LeafKeys(LeafKeys, [Compared; PARTS]),
    BitTriples(BitTriples),
    BothWays(Offered, Chosen),
    Matrices(OfferedRows, ChosenRows),
    Chosen(Chosen),
    Offered(Offered),
    LookupPlaces(LookupPlaces),
    LookupKeys(LookupKeys),
    Scaled(LookupPlaces, LookupKeys),
}

/// What the transfers of one direction give for a move.
pub(super) enum Half {
    LeafChoices(LeafChoices),
    LeafKeys(LeafKeys),
    SentBits(SentBits),
    ReceivedBits(ReceivedBits),
    Chosen(Chosen),
    Offered(Offered),
    ChosenRows(ChosenRows),
    OfferedRows(OfferedRows),
    LookupPlaces(LookupPlaces),
    LookupKeys(LookupKeys),
}

impl Half {
    /// What a move takes of the direction that this party sends in, or receives; nothing where that has no transfers.
    pub(super) fn draw(
        source: &mut Source<'_>,
        step: Move,
        is_first: bool,
        sends: bool,
    ) -> Result<Option<Self>> {
        let [by_first, by_second] = step.transfers();
        let count = if is_first == sends { by_first } else { by_second };
        if count == 0 {
            return Ok(None);
        }
        Ok(Some(match (step, sends) {
            (Move::Leaves { values, parts }, false) => {
                Self::LeafChoices(LeafChoices::new(source, values, parts)?)
            }
            (Move::Leaves { values, parts }, true) => Self::LeafKeys(LeafKeys::new(source, values, parts)?),
            (Move::Bits { words }, true) => Self::SentBits(SentBits::new(source, words)?),
            (Move::Bits { words }, false) => Self::ReceivedBits(ReceivedBits::new(source, words)?),
            (Move::BothWays { .. } | Move::Products { .. }, true) => {
                Self::Offered(Offered::new(source, count)?)
            }
            (Move::BothWays { .. } | Move::Products { .. }, false) => {
                Self::Chosen(Chosen::new(source, count)?)
            }
            (Move::Matrices { .. }, true) => Self::OfferedRows(OfferedRows::new(source, count)?),
            (Move::Matrices { .. }, false) => Self::ChosenRows(ChosenRows::new(source, count)?),
            (Move::Lookup { values, shape } | Move::Scaled { values, shape }, false) => {
                Self::LookupPlaces(LookupPlaces::new(source, values, shape)?)
            }
            (Move::Lookup { values, shape } | Move::Scaled { values, shape }, true) => {
                Self::LookupKeys(LookupKeys::new(source, values, shape)?)
            }
        }))
    }
}

impl Prepared {
    /// The material of a move from what both directions give.
    pub(super) fn new(
        step: Move,
        sent: Option<Half>,
        received: Option<Half>,
        rng: &mut impl CryptoRng,
    ) -> Option<Self> {
        Some(match (step, sent, received) {
            (Move::Leaves { parts, .. }, None, Some(Half::LeafChoices(choices))) => {
                Self::LeafChoices(choices, parts)
            }
            (Move::Leaves { values, parts }, Some(Half::LeafKeys(keys)), None) => {
                Self::LeafKeys(keys.with_shares(values, parts, rng), parts)
            }
            (_, Some(Half::SentBits(sent)), Some(Half::ReceivedBits(received))) => {
                Self::BitTriples(BitTriples::new(sent, received))
            }
            (_, Some(Half::Offered(offered)), Some(Half::Chosen(chosen))) => Self::BothWays(offered, chosen),
            (_, Some(Half::OfferedRows(offered)), Some(Half::ChosenRows(chosen))) => {
                Self::Matrices(offered, chosen)
            }
            (Move::Lookup { .. }, None, Some(Half::LookupPlaces(places))) => Self::LookupPlaces(places),
            (Move::Lookup { values, shape }, Some(Half::LookupKeys(keys)), None) => {
                Self::LookupKeys(keys.with_shares(values, shape, rng))
            }
            (
                Move::Scaled { values, shape },
                Some(Half::LookupKeys(keys)),
                Some(Half::LookupPlaces(places)),
            ) => Self::Scaled(places, keys.with_shares(values, shape, rng)),
            (_, None, Some(Half::Chosen(chosen))) => Self::Chosen(chosen),
            (_, Some(Half::Offered(offered)), None) => Self::Offered(offered),
            _ => return None,
        })
    }
}
