//! How far values are below the largest that they can be, in one ring, where only zero is right.
//!
//! ```text
//! C: x_C    S: x_S              x = x_C + x_S, from 0 to the largest
//!    x_C       -(largest - x_S)
//! ```
//!
//! The first is reduced in the ring of x, and so is what is negated; both are taken as integers then. A value is the largest exactly where they
//! are the same integer, whatever the ring, and so where the new shares add up to zero modulo a power of two with as many bits as either has. Modulo a power of
//! two, the bits of the largest are enough, since x is not above it. Nothing is sent, and what is shared says nothing else.

use lanner_primitives::{Ring, Share};
use lanner_step::{
    BoxedStep, Built, Client, Inputs, Known, ModelParts, Online, Party, PartyState, ProtocolError, Result,
    Samples, Server, Sets, Spec, Unprepared, Value, ValueType,
};
use lanner_wire::Channel;
use serde::{Deserialize, Serialize};

/// The shortfalls of several values, each sample's behind one another, filled up with ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shortfall {
    /// The values, in order.
    pub parts: Vec<Bounded>,
    /// Number of elements that are made of a sample.
    pub values: usize,
    /// Samples, one after the other.
    #[serde(default, skip_serializing_if = "Samples::is_one")]
    pub samples: Samples,
}

/// A value whose elements are from zero to a largest integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounded {
    /// Number of elements of a sample.
    pub values: usize,
    /// Their ring.
    pub ring: Ring,
    /// The largest integer.
    pub largest: u64,
}

impl Bounded {
    /// Bits of a share by which the largest is told from all others.
    fn bits(&self) -> u32 {
        match self.ring {
            Ring::Prime(_) => self.ring.bits(),
            // A circuit takes two bits at least.
            Ring::Pow2(bits) => (u64::BITS - self.largest.leading_zeros()).clamp(2, bits.max(2)),
        }
    }

    /// One party's part of an element's shortfall in the ring `to`.
    fn share(&self, party: Party, share: u64, to: Ring) -> u64 {
        let low = |word: u64| word & to.largest();
        match party {
            Party::Client => low(share),
            Party::Server => to.neg(low(self.ring.sub(self.largest, share))),
        }
    }
}

impl Shortfall {
    /// The ring of the shortfalls: modulo a power of two.
    #[must_use]
    pub fn to(&self) -> Ring {
        Ring::Pow2(self.parts.iter().map(Bounded::bits).max().unwrap_or(2))
    }
}

impl Spec for Shortfall {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let shape = ProtocolError::WrongInput("the shares of values below their largest");
        let elements = self.parts.iter().try_fold(0_usize, |sum, part| sum.checked_add(part.values));
        let fits = |part: &Bounded| part.largest <= part.ring.largest() / 2;
        if inputs.len() != self.parts.len()
            || elements.is_none_or(|sum| !(1..=self.values).contains(&sum))
            || !self.parts.iter().all(fits)
        {
            return Err(shape);
        }
        let mut known = Known { client: true, server: true };
        for (input, part) in inputs.iter().zip(&self.parts) {
            let len = self.samples.times(part.values);
            known = known.and(ValueType::only(std::slice::from_ref(input), part.ring, len)?);
        }
        Ok(ValueType::shared(self.to(), self.samples.times(self.values), known))
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { samples, ..self.clone() })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(self.clone()))
    }
}

impl Built for Shortfall {
    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(Online(*self)))
    }

    fn server(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(Box::new(Online(*self)))
    }
}

impl Shortfall {
    /// One party's shares of all of them.
    fn of(&self, party: Party, inputs: &Inputs) -> Result<Share> {
        let Self { parts, values, samples } = self;
        let (shares, to) = (inputs.shares()?, self.to());
        let mut all = Vec::with_capacity(samples.times(*values));
        for sample in 0..samples.count() {
            for (share, part) in shares.iter().zip(parts) {
                let elements = share.values().get(sample * part.values..(sample + 1) * part.values);
                let elements =
                    elements.ok_or(ProtocolError::WrongInput("the shares of values below their largest"))?;
                all.extend(elements.iter().map(|element| part.share(party, *element, to)));
            }
            // Nothing is short by zero where there is nothing.
            let one = u64::from(party == Party::Server);
            all.resize((sample + 1) * values, one);
        }
        Ok(Share::new(to, all)?)
    }
}

impl<P: PartyState> Unprepared<P> for Shortfall {
    fn online(&self, _: &mut dyn Channel, inputs: &Inputs) -> Result<Value> {
        self.of(P::PARTY, inputs).map(Value::Shared)
    }

    fn ahead(&self, known: &Inputs) -> Result<Option<Value>> {
        known.complete().then(|| self.of(P::PARTY, known).map(Value::Shared)).transpose()
    }
}
