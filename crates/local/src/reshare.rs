//! A fresh sharing of a shared value, whose server share was known ahead of time.
//!
//! ```text
//! C: x_C                    S: x_S; r uniform (offline)
//!       <-----------------  x_S - r
//! x_C + x_S - r             r
//! ```
//!
//! The message is uniform, since `r` is uniform and used once.

use lanner_primitives::{Ring, Share};
use lanner_step::encoding::{read_share, write_share};
use lanner_step::messages::{receive_share, send_share};
use lanner_step::{
    Answer, Answering, Asked, BoxedStep, Built, Client, Cost, CotSupply, Inputs, Known, Likely, MAX_DIGITS,
    Memory, ModelParts, Online, Outcome, ProtocolError, Result, Samples, Server, Sets, Spec, StepCost,
    Unprepared, Value, ValueType, WORD, kind, softmax_ring,
};
use lanner_wire::{Channel, DecodeError, Reader, Writer, packed_len};
use serde::{Deserialize, Serialize};

/// The server draws its share anew, so that it is known before the input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reshare {
    /// Number of elements.
    pub values: usize,
    /// The ring.
    pub ring: Ring,
}

/// The server opens its share of a result to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reveal {
    /// Number of values.
    pub values: usize,
    /// Their ring.
    pub from: Ring,
    /// What they are.
    #[serde(default, skip_serializing_if = "Reading::is_scores")]
    pub reading: Reading,
}

/// What values are that a client learns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// All scores.
    #[default]
    Scores,
    /// All scores, beside what the client has learnt of saturation: the step's second input, the signs of one number for each sample.
    ScoresWithSaturation,
    /// A label, and its probability to so many decimal digits.
    Probability {
        /// Number of labels.
        classes: usize,
        /// The digits.
        digits: u32,
    },
}

impl Reading {
    /// Whether they are scores, which is not written down.
    fn is_scores(&self) -> bool {
        *self == Self::Scores
    }

    /// What the client learns; none if no scores have it.
    fn outcome(self, values: Vec<i64>, beside: Option<&Outcome>) -> Option<Outcome> {
        let scores = |values: Vec<i64>| values.into_iter().map(i128::from).collect();
        match self {
            Self::Scores => Some(Outcome::Logits(scores(values))),
            Self::ScoresWithSaturation => {
                let saturated = saturation(beside?)?;
                Some(Outcome::Saturable { scores: scores(values), saturated })
            }
            Self::Probability { classes, digits } => {
                let &[label, parts] = values.as_slice() else { return None };
                let (label, parts) = (label.try_into().ok()?, parts.try_into().ok()?);
                Likely::told(label, parts, classes, digits).map(Outcome::Probability)
            }
        }
    }
}

/// Of each sample whether its number is above zero; none if an outcome tells something else.
fn saturation(outcome: &Outcome) -> Option<Vec<bool>> {
    let of_sample = |outcome: &Outcome| match outcome {
        Outcome::Labels(above) => Some(!above.is_empty()),
        _ => None,
    };
    match outcome {
        Outcome::Each(outcomes) => outcomes.iter().map(of_sample).collect(),
        one => Some(vec![of_sample(one)?]),
    }
}

/// The server's side: moves from `share` to `fresh`, which was drawn uniformly.
///
/// # Errors
/// [`ProtocolError::Share`] if the shares do not fit together.
pub fn server(channel: &mut dyn Channel, share: &Share, fresh: Share) -> Result<Share> {
    send_share(channel, kind::RESHARE, &share.sub(&fresh)?)?;
    Ok(fresh)
}

/// The client's side.
///
/// # Errors
/// [`ProtocolError::Channel`] if the peer's message is not the one due.
pub fn client(channel: &mut dyn Channel, share: &Share) -> Result<Share> {
    let difference = receive_share(channel, kind::RESHARE, share.ring(), share.len())?;
    Ok(share.add(&difference)?)
}

/// The server opens a value to the client.
///
/// # Errors
/// Those of the channel.
pub fn reveal(channel: &mut dyn Channel, share: &Share) -> Result<()> {
    send_share(channel, kind::REVEAL, share)
}

/// The client learns a value that the server opens, as signed integers.
///
/// # Errors
/// [`ProtocolError::Channel`] if the peer's message is not the one due.
pub fn learn(channel: &mut dyn Channel, share: &Share) -> Result<Vec<i64>> {
    let other = receive_share(channel, kind::REVEAL, share.ring(), share.len())?;
    Ok(share.reveal(&other)?)
}

impl Reveal {
    /// The share that is opened, and what the client has learnt beside it.
    fn inputs<'i>(&self, inputs: &'i Inputs) -> Result<(&'i Share, Option<&'i Outcome>)> {
        if self.reading != Reading::ScoresWithSaturation {
            return Ok((inputs.share()?, None));
        }
        let (share, beside) = inputs.share_and_revealed()?;
        match beside {
            Value::Revealed(outcome) => Ok((share, Some(outcome))),
            _ => Ok((share, None)),
        }
    }
}

/// The cost of either: one message of `values` elements.
#[must_use]
pub fn cost(ring: Ring, values: usize) -> Cost {
    Cost::NONE.server(packed_len(values, ring.bits()))
}

impl Spec for Reshare {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        ValueType::only(inputs, self.ring, self.values)?;
        Ok(ValueType::shared(self.ring, self.values, Known::SERVER))
    }

    fn of_samples(&self, samples: Samples) -> Option<Self> {
        Some(Self { values: samples.times(self.values), ..*self })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(*self))
    }
}

impl Spec for Reveal {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        let scores = match (self.reading, inputs) {
            (Reading::ScoresWithSaturation, [scores, ValueType::Revealed]) => std::slice::from_ref(scores),
            (Reading::ScoresWithSaturation, _) => {
                return Err(ProtocolError::WrongInput("a result must stand beside the scores"));
            }
            _ => inputs,
        };
        ValueType::only(scores, self.from, self.values)?;
        match self.reading {
            Reading::Probability { classes, digits }
                if self.values != 2 || digits > MAX_DIGITS || softmax_ring(classes, digits)? != self.from =>
            {
                Err(ProtocolError::Parameters("the values of a probability"))
            }
            _ => Ok(ValueType::Revealed),
        }
    }

    /// Scores follow one another. Labels with their probabilities are told of one sample.
    fn of_samples(&self, samples: Samples) -> Option<Self> {
        let is_one_sample = matches!(self.reading, Reading::Probability { .. });
        (!is_one_sample).then(|| Self { values: samples.times(self.values), ..*self })
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        Ok(Box::new(*self))
    }
}

impl Built for Reshare {
    fn cost(&self, _: &mut CotSupply) -> Result<StepCost> {
        Ok(StepCost { online: cost(self.ring, self.values), ..StepCost::default() })
    }

    fn memory(&self) -> Result<Memory> {
        Ok(Memory { server_material: self.values as u64 * WORD, ..Memory::default() })
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(Online(*self)))
    }

    fn server(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(Box::new(Answering(*self)))
    }
}

impl Built for Reveal {
    fn cost(&self, _: &mut CotSupply) -> Result<StepCost> {
        Ok(StepCost { online: cost(self.from, self.values), ..StepCost::default() })
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(Online(*self)))
    }

    fn server(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(Box::new(Online(*self)))
    }
}

impl Unprepared<Client> for Reshare {
    fn online(&self, channel: &mut dyn Channel, inputs: &Inputs) -> Result<Value> {
        client(channel, inputs.share()?).map(Value::Shared)
    }
}

impl Answer for Reshare {
    /// The share to come.
    type Material = Share;

    fn prepare(&self, Asked { server: party, .. }: Asked<'_>) -> Result<(Share, Option<Value>)> {
        let fresh = Share::random(self.ring, self.values, &mut party.rng);
        Ok((fresh.clone(), Some(Value::Shared(fresh))))
    }

    fn encode(&self, fresh: &Share, writer: &mut Writer) {
        write_share(fresh, writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Share, DecodeError> {
        read_share(reader, self.ring, self.values)
    }

    fn online(&self, channel: &mut dyn Channel, fresh: Share, inputs: &Inputs) -> Result<Value> {
        server(channel, inputs.share()?, fresh).map(Value::Shared)
    }
}

impl Unprepared<Client> for Reveal {
    fn online(&self, channel: &mut dyn Channel, inputs: &Inputs) -> Result<Value> {
        let (share, beside) = self.inputs(inputs)?;
        let outcome = self.reading.outcome(learn(channel, share)?, beside);
        let malformed = || lanner_wire::ChannelError::Malformed { what: "share" };
        Ok(Value::Revealed(outcome.ok_or_else(malformed)?))
    }
}

impl Unprepared<Server> for Reveal {
    fn online(&self, channel: &mut dyn Channel, inputs: &Inputs) -> Result<Value> {
        reveal(channel, self.inputs(inputs)?.0)?;
        Ok(Value::AtPeer)
    }
}
