//! Linear maps with public coefficients, and constants of the server's, that each party applies to its own shares alone: nothing is sent.
#![allow(clippy::doc_markdown, reason = "ReLU is the field's name, not code")]

pub mod reshare;
pub mod shortfall;

use lanner_primitives::{Ring, Share};
use lanner_step::{
    BoxedStep, Built, Client, Inputs, ModelParts, Online, PartyState, ProtocolError, Result, Samples, Server,
    Sets, Spec, Unprepared, Value, ValueType, Windows, Work,
};
use lanner_wire::Channel;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Sums over windows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SumPool {
    /// The windows.
    pub windows: Windows,
    /// The ring.
    pub ring: Ring,
}

/// `factors[0] * a + factors[1] * b`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Add {
    /// Public factors.
    pub factors: [i64; 2],
    /// Number of elements of each.
    pub values: usize,
    /// The ring.
    pub ring: Ring,
}

/// `factor * x`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    /// A public factor.
    pub factor: i64,
    /// Number of elements.
    pub values: usize,
    /// The ring.
    pub ring: Ring,
}

/// `x + 2^guard b` for integers b of the server's, which adds them to its share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bias {
    /// Bits below those of what is added.
    pub guard: u32,
    /// Number of elements.
    pub values: usize,
    /// The ring.
    pub ring: Ring,
    /// Samples, one after the other.
    #[serde(default, skip_serializing_if = "Samples::is_one")]
    pub samples: Samples,
}

/// `2^guard x` over `Z_2^(bits + guard)`, of `x` over `Z_2^bits`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lift {
    /// Bits of the ring of the input.
    pub bits: u32,
    /// Bits that are added below.
    pub guard: u32,
    /// Number of elements.
    pub values: usize,
}

/// `x` modulo `2^to`, of `x` over `Z_2^from`: the low bits of each share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narrow {
    /// Number of elements.
    pub values: usize,
    /// Bits of the ring of the input.
    pub from: u32,
    /// Bits of the ring of the output, no more than these.
    pub to: u32,
}

/// Elements in another order or number, as the network's node says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// Number of elements that are made.
    pub values: usize,
    /// The ring.
    pub ring: Ring,
    /// Samples, one after the other.
    #[serde(default, skip_serializing_if = "Samples::is_one")]
    pub samples: Samples,
}

impl Spec for SumPool {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let known = ValueType::only(inputs, self.ring, self.windows.inputs())?;
        Ok(ValueType::shared(self.ring, self.windows.count()?, known))
    }

    fn work(&self) -> Work {
        self.windows.work().without_circuits()
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { windows: self.windows.of_samples(samples), ..self.clone() })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(Map::SumGroups(self.windows.groups()?)))
    }
}

impl Spec for Add {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let &[left, right] = inputs else { return Err(ProtocolError::WrongInput("there must be two terms")) };
        let known = [left, right].map(|input| ValueType::only(&[input], self.ring, self.values));
        let [left, right] = known;
        Ok(ValueType::shared(self.ring, self.values, left?.and(right?)))
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { values: samples.times(self.values), ..self.clone() })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(Map::Add(self.factors)))
    }
}

impl Spec for Scale {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let known = ValueType::only(inputs, self.ring, self.values)?;
        Ok(ValueType::shared(self.ring, self.values, known))
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { values: samples.times(self.values), ..self.clone() })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(Map::Scale(self.factor)))
    }
}

impl Spec for Bias {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        ProtocolError::refuse_if(self.guard >= self.ring.bits(), "the guard of a bias")?;
        let known = ValueType::only(inputs, self.ring, self.values)?;
        Ok(ValueType::shared(self.ring, self.values, known))
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { values: samples.times(self.values), samples, ..self.clone() })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(self.clone()))
    }
}

impl Spec for Lift {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let known = ValueType::only(inputs, Ring::Pow2(self.bits), self.values)?;
        Ok(ValueType::shared(self.ring(), self.values, known))
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { values: samples.times(self.values), ..self.clone() })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(Map::Lift(self.guard, self.ring())))
    }
}

impl Lift {
    const fn ring(&self) -> Ring {
        Ring::Pow2(self.bits + self.guard)
    }
}

impl Spec for Narrow {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        ProtocolError::refuse_if(
            !(1..=self.from).contains(&self.to),
            "the rings of a value that is narrowed",
        )?;
        let known = ValueType::only(inputs, Ring::Pow2(self.from), self.values)?;
        Ok(ValueType::shared(Ring::Pow2(self.to), self.values, known))
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { values: samples.times(self.values), ..self.clone() })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(Map::Narrow(Ring::Pow2(self.to))))
    }
}

impl Spec for Move {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let known = inputs.iter().map(|input| match input {
            ValueType::Shared { ring, known, .. } if *ring == self.ring => Ok(*known),
            _ => Err(ProtocolError::WrongInput("moved elements must be of one ring")),
        });
        let known = known.reduce(|all, known| Ok(all?.and(known?)));
        let known = known.ok_or(ProtocolError::WrongInput("there must be one at least"))??;
        Ok(ValueType::shared(self.ring, self.values, known))
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { values: samples.times(self.values), samples, ..self.clone() })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(self.clone()))
    }
}

/// Any of these maps.
enum Map {
    /// Sums of groups of elements.
    SumGroups(Vec<Vec<usize>>),
    /// `factors[0] * a + factors[1] * b`.
    Add([i64; 2]),
    /// `factor * x`.
    Scale(i64),
    /// `2^guard x` in a ring that is wider by as many bits.
    Lift(u32, Ring),
    /// x in a smaller ring.
    Narrow(Ring),
    /// `x + b`; for who has no b, x.
    Bias(Option<Share>),
    /// Input and element that each element of one sample comes from; zero where there is none.
    Move(Vec<Option<(usize, usize)>>, Samples),
}

impl Map {
    /// Applies it to one party's shares.
    fn apply(&self, inputs: &Inputs) -> Result<Share> {
        let shares = inputs.shares()?;
        Ok(match (self, &shares[..]) {
            (Self::SumGroups(groups), [share]) => share.sum_groups(groups)?,
            (Self::Add([left, right]), [a, b]) => a.scale(*left).add(&b.scale(*right))?,
            (Self::Scale(factor), [share]) => share.scale(*factor),
            (Self::Lift(guard, ring), [share]) => {
                Share::new(*ring, share.values().iter().map(|value| value << guard).collect())?
            }
            (Self::Narrow(ring), [share]) => {
                Share::new(*ring, share.values().iter().map(|value| ring.embed(*value as i64)).collect())?
            }
            (Self::Bias(Some(bias)), [share]) => share.add(bias)?,
            (Self::Bias(None), [share]) => (*share).clone(),
            (Self::Move(sources, samples), shares) => {
                Share::gather(shares, &of_samples(sources, shares, *samples))?
            }
            _ => return Err(ProtocolError::WrongInput("their number")),
        })
    }
}

/// Where the elements of all samples come from, whose shares these are.
fn of_samples(
    sources: &[Option<(usize, usize)>],
    shares: &[&Share],
    samples: Samples,
) -> Vec<Option<(usize, usize)>> {
    let of_sample = |(input, element): (usize, usize), sample| {
        let each = shares.get(input).map_or(0, |share| share.len() / samples.count());
        (input, sample * each + element)
    };
    let all = |sample| sources.iter().map(move |source| source.map(|source| of_sample(source, sample)));
    (0..samples.count()).flat_map(all).collect()
}

impl Move {
    /// The places are the network's to say.
    fn map(&self, node: &str, model: &dyn ModelParts) -> Result<Map> {
        let sources = model.sources(node)?;
        if self.samples.times(sources.len()) == self.values {
            Ok(Map::Move(sources, self.samples))
        } else {
            Err(ProtocolError::WrongModel("it moves elements otherwise"))
        }
    }
}

impl Built for Map {
    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(Online(*self)))
    }

    fn server(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(Box::new(Online(*self)))
    }
}

impl Built for Bias {
    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(Online(Map::Bias(None))))
    }

    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server> {
        let bias = Zeroizing::new(model.weights(node, self.values / self.samples.count())?.small_bias()?);
        let guarded = Zeroizing::new(bias.repeat(self.samples.count()));
        let guarded: Zeroizing<Vec<i64>> =
            Zeroizing::new(guarded.iter().map(|b| b.wrapping_shl(self.guard)).collect());
        Ok(Box::new(Online(Map::Bias(Some(Share::embed(self.ring, &guarded))))))
    }
}

impl Built for Move {
    fn client(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(Online(self.map(node, model)?)))
    }

    fn server(self: Box<Self>, node: &str, model: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(Box::new(Online(self.map(node, model)?)))
    }
}

impl<P: PartyState> Unprepared<P> for Map {
    fn online(&self, _: &mut dyn Channel, inputs: &Inputs) -> Result<Value> {
        self.apply(inputs).map(Value::Shared)
    }

    fn ahead(&self, known: &Inputs) -> Result<Option<Value>> {
        known.complete().then(|| self.apply(known).map(Value::Shared)).transpose()
    }
}
