//! The parties' roles in lookups.

use std::sync::Arc;

use lanner_primitives::{Ring, parallel};
use lanner_step::Result;
use lanner_wire::{ChannelError, DecodeError, Reader, pack_bits, pack_bits_to, packed_len, unpack_bits};
use zeroize::Zeroizing;

use super::super::lanes::{Lanes, Values, mask};
use super::super::role::{Role, packed};
use super::material::{LookupKeys, LookupPlaces};
use super::turning::{Turning, choose};
use super::{ITEM, Table};

impl LookupPlaces {
    /// The choosing party's role, with its shares of the places.
    pub(crate) fn role(self, places: &Values) -> ChoosingPlaces {
        let places = places.map(|place| place & mask(self.shape.place_bits));
        ChoosingPlaces::new(self, places)
    }
}

impl LookupKeys {
    /// The replying party's role, with its shares of the places, and of what the entries are multiplied with where there is that.
    pub(crate) fn role(self, places: Values, table: Arc<Table>, times: Option<Values>) -> ReplyingPlaces {
        ReplyingPlaces::new(self, places, table, times)
    }
}

/// The choosing party's role: it learns the entry at its own place of what the other made of the table.
pub(crate) struct ChoosingPlaces {
    own: LookupPlaces,
    places: Values,
}

impl ChoosingPlaces {
    pub(super) const fn new(own: LookupPlaces, places: Values) -> Self {
        Self { own, places }
    }
}

impl Role for ChoosingPlaces {
    fn say(&mut self) -> Vec<u8> {
        let flips = self.places.zip_map(&self.own.random, |place, random| place ^ random);
        pack_bits(&flips, self.own.shape.place_bits)
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<()> {
        let (shape, rows) = (self.own.shape, self.own.shape.rows());
        for (keys, bits) in self.own.keys.iter_mut().zip(shape.columns()) {
            let replies = message.bytes(packed_len(self.places.len() * rows, bits));
            let replies = replies.map_err(ChannelError::from)?.chunks(packed_len(ITEM * rows, bits));
            let items = replies.zip(self.places.chunks(ITEM)).zip(keys.chunks_mut(ITEM));
            let opened = parallel::map(items, |((replies, places), keys)| {
                let replies = unpack_bits(replies, places.len() * rows, bits)?;
                for ((replies, place), key) in replies.chunks(rows).zip(places).zip(keys) {
                    let chosen = choose(replies, *place);
                    *key = shape.sharing.sub(bits, chosen, *key);
                }
                Ok::<(), DecodeError>(())
            });
            opened.into_iter().collect::<Result<(), _>>().map_err(ChannelError::from)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        self.own.keys
    }
}

/// The replying party's role: it replies with the table as its share of the place turns it, masked entry by entry.
pub(crate) struct ReplyingPlaces {
    keys: LookupKeys,
    places: Values,
    table: Arc<Table>,
    /// What the entries are multiplied with, if they are.
    times: Option<Values>,
    /// What the other party said.
    flips: Vec<u64>,
}

impl ReplyingPlaces {
    pub(super) const fn new(
        keys: LookupKeys,
        places: Values,
        table: Arc<Table>,
        times: Option<Values>,
    ) -> Self {
        Self { keys, places, table, times, flips: Vec::new() }
    }
}

impl Role for ReplyingPlaces {
    fn say(&mut self) -> Vec<u8> {
        let (shape, rows) = (self.keys.shape, self.keys.shape.rows());
        let mut message = vec![0; shape.reply_bytes(self.places.len())];
        let mut rest = message.as_mut_slice();
        let columns = shape.columns().zip(&self.keys.keys).zip(&self.keys.shares).zip(&self.table.columns);
        for (((bits, keys), shares), entries) in columns {
            let (of_column, behind) = rest.split_at_mut(keys.len());
            rest = behind;
            let (size, sharing) = (packed_len(ITEM * rows, bits), shape.sharing);
            let made = of_column.chunks_mut(size).zip(keys.chunks(size)).zip(shares.chunks(ITEM));
            let times = (0..).step_by(ITEM).map(|first| self.times.as_deref().map(|times| &times[first..]));
            let items = made.zip(self.places.chunks(ITEM).zip(self.flips.chunks(ITEM))).zip(times);
            parallel::for_each(items, |((((bytes, keys), shares), (places, flips)), times)| {
                let Ok(keys) = unpack_bits(keys, places.len() * rows, bits).map(Zeroizing::new) else {
                    return;
                };
                let mut replies = Zeroizing::new(Vec::with_capacity(keys.len()));
                let mut turning = Turning::new(entries);
                let values = keys.chunks(rows).zip(shares).zip(places.iter().zip(flips)).enumerate();
                for (number, ((keys, share), (place, flip))) in values {
                    let times = times.map_or(1, |times| times[number]);
                    let turned = turning.by(entries, *place).iter().enumerate();
                    replies.extend(turned.map(|(row, entry)| {
                        let entry = entry.wrapping_mul(times) & mask(bits);
                        sharing.sub(bits, sharing.add(bits, entry, keys[row ^ *flip as usize]), *share)
                    }));
                }
                pack_bits_to(&replies, bits, bytes);
            });
        }
        message
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<()> {
        self.flips = packed(message, self.places.len(), self.keys.shape.place_bits)?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        self.keys.shares
    }
}

/// A party's role where entries are multiplied with shared values: it chooses of the other's table, and replies with its own.
pub(crate) struct ScaledPlaces {
    choosing: ChoosingPlaces,
    replying: ReplyingPlaces,
    is_first: bool,
    /// Whether the places were said.
    is_open: bool,
}

impl ScaledPlaces {
    pub(crate) const fn new(choosing: ChoosingPlaces, replying: ReplyingPlaces, is_first: bool) -> Self {
        Self { choosing, replying, is_first, is_open: false }
    }
}

impl Role for ScaledPlaces {
    /// The first says its places, the second its own and the table, the first its table.
    fn say(&mut self) -> Vec<u8> {
        if self.is_open {
            return self.replying.say();
        }
        self.is_open = true;
        let mut message = self.choosing.say();
        if !self.is_first {
            message.extend(self.replying.say());
        }
        message
    }

    fn hear(&mut self, message: &mut Reader<'_>) -> Result<()> {
        if !self.is_open || self.is_first {
            self.replying.hear(message)?;
        }
        if self.is_open { self.choosing.hear(message) } else { Ok(()) }
    }

    fn finish(self: Box<Self>) -> Vec<Values> {
        let Self { choosing, replying, .. } = *self;
        let bits: Vec<u32> = replying.keys.shape.columns().collect();
        let both = Box::new(choosing).finish().into_iter().zip(Box::new(replying).finish()).zip(bits);
        both.map(|((x, y), bits)| x.zip_map(&y, |x, y| Ring::Pow2(bits).add(x, y))).collect()
    }
}
