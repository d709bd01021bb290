//! The rescale and ReLU of values, with the keys that were made for them.

use lanner_dpf::{MAX_BITS, Salts};
use lanner_primitives::{Block, Ring, Share};
use lanner_step::{Cost, CotSupply, OfflineCost, Party, ProtocolError, Result};
use lanner_wire::{Channel, DecodeError, Reader, Writer, packed_len};
use rand_core::CryptoRng;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::corrections::Comparison;
use super::dither::{Dither, Rounding};
use super::keyed::{Keyed, Maker};
use super::keys::{Made, Making};
use super::opening::Opening;
use super::signs::Signs;

/// What is made of a rescaled value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The value.
    Identity,
    /// Its positive part.
    Relu,
    /// Its positive part, or a bound if that is less.
    Clip(u64),
}

/// `floor((x + 2^(d-1)) / 2^d)` of values of `w` bits with their sign, or what a [`Shape`] makes of it, modulo `2^to`: of what is below `2^w` of larger
/// ones. Of a stochastic one `floor((x + u) / 2^d)`, u uniform.
#[derive(Clone, Debug)]
pub struct Activation {
    /// d.
    dropped: u32,
    /// k.
    kept: u32,
    to: u32,
    shape: Shape,
    making: Making,
    /// What makes the low bits of masks where no key compares with them, since the rescale is stochastic.
    dither: Option<Dither>,
}

/// One party's one-time material: masks and keys.
pub struct Material {
    salt: Block,
    /// This party's shares of s, modulo `2^w`.
    masks: Zeroizing<Vec<u64>>,
    /// None of a stochastic rescale.
    borrows: Option<Made>,
    signs: Made,
}

impl ZeroizeOnDrop for Material {}

impl Activation {
    /// Of `values` values of `kept + dropped` bits.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless there are values, 2 to 16 bits that are kept, 1 to 16 that are dropped, `to` is 62 at most and no less
    /// than what is kept, and a bound is at most the largest number of `kept` bits.
    pub fn new(values: usize, kept: u32, dropped: u32, to: u32, shape: Shape) -> Result<Self> {
        Self::rounding(Rounding::Exact, values, [kept, dropped, to], shape)
    }

    /// The same with either rounding, of the bits that are kept, those that are dropped, and those of the results.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn rounding(
        rounding: Rounding,
        values: usize,
        [kept, dropped, to]: [u32; 3],
        shape: Shape,
    ) -> Result<Self> {
        let bound = if let Shape::Clip(high) = shape { high } else { 0 };
        ProtocolError::refuse_if(
            !(2..=MAX_BITS).contains(&kept)
                || !(1..=MAX_BITS).contains(&dropped)
                || !(kept..=62).contains(&to)
                || bound >> (kept - 1) > 0,
            "the bits of an activation",
        )?;
        // A mask's low bits count modulo 2^w, the borrow modulo 2^k.
        let borrow = Comparison::new(dropped, kept, kept + dropped, false)?;
        let sign = Comparison::new(kept, to, to, shape != Shape::Identity)?;
        let (comparisons, dither) = match rounding {
            Rounding::Exact => (vec![borrow, sign], None),
            Rounding::Stochastic => (vec![sign], Some(Dither::new(dropped, kept + dropped, values)?)),
        };
        let making = Making::new(comparisons, values)?;
        Ok(Self { dropped, kept, to, shape, making, dither })
    }

    /// Bits of a value, its sign among them.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        self.kept + self.dropped
    }

    /// Bits of the ring of the results.
    #[must_use]
    pub const fn to(&self) -> u32 {
        self.to
    }

    /// This party's shares of the results, given e.
    fn results(&self, signs: &Signs<'_>, e: &[u64]) -> Result<Vec<u64>> {
        match self.shape {
            Shape::Identity => signs.values(e),
            Shape::Relu => signs.positive(e),
            Shape::Clip(high) => signs.clipped(e, high),
        }
    }
}

impl Keyed for Activation {
    type Material = Material;

    fn values(&self) -> usize {
        self.making.keys()
    }

    fn transfers(&self, sender: Party) -> usize {
        self.making.transfers(sender) + self.dither.as_ref().map_or(0, |dither| dither.transfers(sender))
    }

    fn offline_cost(&self, supply: &mut CotSupply) -> OfflineCost {
        let OfflineCost { request, mut answer } = self.making.cost(supply);
        if let Some(dither) = &self.dither {
            let drawn = dither.cost(supply);
            answer = answer.then(drawn.request).then(drawn.answer);
        }
        OfflineCost { request, answer }
    }

    fn online_cost(&self) -> Cost {
        let [masked, high] = [self.bits(), self.kept].map(|bits| packed_len(self.values(), bits));
        match self.dither {
            None => Cost::NONE.client(masked).server(masked + high).client(high),
            Some(_) => Cost::NONE.client(masked).server(high),
        }
    }

    fn held(&self) -> u64 {
        self.making.held() + packed_len(self.values(), self.bits()) as u64
    }

    fn nodes(&self) -> u64 {
        self.making.nodes()
    }

    fn working(&self) -> u64 {
        self.making.working() as u64 + self.dither.as_ref().map_or(0, Dither::working)
    }

    fn prepare(&self, maker: &mut Maker<'_, impl CryptoRng>, salt: Block) -> Result<Material> {
        let mut made = self.making.make(maker, salt)?;
        let missing = || ProtocolError::WrongMaterial("no keys of an activation");
        let signs = made.pop().ok_or_else(missing)?;
        let (borrows, ring) = (made.pop(), Ring::Pow2(self.bits()));
        let mask = |(high, low): (u64, &u64)| ring.add(ring.embed((high << self.dropped) as i64), *low);
        let masks = match (&self.dither, &borrows) {
            // The high bits are what signs are told by.
            (Some(dither), _) => {
                let low = dither.draw(maker)?;
                signs.thresholds.iter().copied().zip(low.iter()).map(mask).collect()
            }
            // The high bits need no keys: each party draws its share.
            (None, Some(borrows)) => {
                let high = std::iter::repeat_with(|| maker.rng.next_u64());
                high.zip(borrows.thresholds.iter()).map(mask).collect()
            }
            (None, None) => return Err(missing()),
        };
        Ok(Material { salt, masks: Zeroizing::new(masks), borrows, signs })
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        party: Party,
        material: Material,
        share: &Share,
    ) -> Result<Share> {
        let narrow = matches!(share.ring(), Ring::Pow2(bits) if bits >= self.bits());
        if !narrow {
            return Err(ProtocolError::WrongInput("the ring of an activation has too few bits"));
        }
        ProtocolError::check_length("input share of an activation", self.values(), share.len())?;
        ProtocolError::check_length("masks of an activation", self.values(), material.masks.len())?;
        let Material { salt, masks, borrows, signs } = material;
        // There are no keys of borrows in a stochastic rescale: those of signs are the first.
        let numbers = [0, u32::from(borrows.is_some())];
        let [of_borrows, of_signs] = numbers.map(|number| Salts::new(salt, number));
        let opening = Opening {
            party,
            salts: &of_borrows,
            kept: self.kept,
            dropped: self.dropped,
            masks: &masks,
            borrows: borrows.as_ref(),
            t: &signs.thresholds,
        };
        let e = opening.rescale(channel, share.values())?;
        let signs = Signs { party, salts: &of_signs, made: &signs, kept: self.kept, to: self.to };
        Ok(Share::new(Ring::Pow2(self.to), self.results(&signs, &e)?)?)
    }

    fn encode(&self, material: &Material, writer: &mut Writer) {
        writer.u128(material.salt.0);
        writer.packed(&material.masks, self.bits());
        for (made, of) in material.borrows.iter().chain([&material.signs]).zip(self.making.comparisons()) {
            made.encode(*of, writer);
        }
    }

    fn decode(&self, reader: &mut Reader<'_>, party: Party) -> Result<Material, DecodeError> {
        let count = self.values();
        let salt = Block(reader.u128()?);
        let masks = Zeroizing::new(reader.packed(count, self.bits())?);
        let missing = || DecodeError::Invalid { what: "keys" };
        let mut made = Vec::new();
        for of in self.making.comparisons() {
            made.push(Made::decode(*of, count, party, reader)?);
        }
        let signs = made.pop().ok_or_else(missing)?;
        Ok(Material { salt, masks, borrows: made.pop(), signs })
    }
}
