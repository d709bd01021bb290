//! What goes from step to step: as both parties know it, and as one of them holds it.

use std::rc::Rc;

use lanner_bfv::{Ciphertext, NoiseBound, ParameterSet};
use lanner_primitives::{Ring, Share};

use crate::{Likely, ProtocolError, Result};

/// Which parties know their share of a value before the network's input is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The client.
    pub client: bool,
    /// The server.
    pub server: bool,
}

impl Known {
    /// Neither party.
    pub const NOBODY: Self = Self { client: false, server: false };
    /// The client alone.
    pub const CLIENT: Self = Self { client: true, server: false };
    /// The server alone.
    pub const SERVER: Self = Self { client: false, server: true };

    /// Who knows both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { client: self.client && other.client, server: self.server && other.server }
    }
}

/// A value of a plan as both parties know it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueType {
    /// Additive shares.
    Shared {
        /// Their ring.
        ring: Ring,
        /// Number of elements.
        len: usize,
        /// Who knows its share ahead of time.
        known: Known,
    },
    /// Encrypted for the client, at the server.
    Encrypted(Encrypted),
    /// What the client learns; the end of a plan.
    Revealed,
}

/// Ciphertexts of a value: as many modulo each of some primes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Encrypted {
    /// The parameter set.
    pub set: ParameterSet,
    /// The product of the primes.
    pub modulus: u128,
    /// Ciphertexts modulo each prime.
    pub ciphertexts: usize,
    /// Their limbs.
    pub limbs: usize,
    /// A bound on their noise.
    pub noise: NoiseBound,
}

impl ValueType {
    /// Shares in a ring.
    #[must_use]
    pub const fn shared(ring: Ring, len: usize, known: Known) -> Self {
        Self::Shared { ring, len, known }
    }

    /// Checks that a step's only input is a given number of elements of a ring; returns who knows its share.
    ///
    /// # Errors
    /// [`ProtocolError::WrongInput`], [`ProtocolError::WrongRing`] or [`ProtocolError::Length`] otherwise.
    pub fn only(inputs: &[Self], ring: Ring, len: usize) -> Result<Known> {
        let [Self::Shared { ring: found, len: elements, known }] = inputs else {
            return Err(ProtocolError::WrongInput("it must be one share"));
        };
        if *found != ring {
            return Err(ProtocolError::WrongRing { what: INPUT, expected: ring, found: *found });
        }
        ProtocolError::check_length(INPUT, len, *elements)?;
        Ok(*known)
    }

    /// The step's only input, which is encrypted.
    ///
    /// # Errors
    /// [`ProtocolError::WrongInput`] otherwise.
    pub fn only_encrypted(inputs: &[Self]) -> Result<Encrypted> {
        match inputs {
            [Self::Encrypted(encrypted)] => Ok(*encrypted),
            _ => Err(ProtocolError::WrongInput("it must be one encrypted value")),
        }
    }

    /// As [`Self::only`], for a step that needs the server's share ahead of time.
    ///
    /// # Errors
    /// As [`Self::only`].
    pub fn only_known(inputs: &[Self], ring: Ring, len: usize) -> Result<()> {
        if Self::only(inputs, ring, len)?.server {
            Ok(())
        } else {
            Err(ProtocolError::WrongInput("the server must know its share ahead of time"))
        }
    }
}

/// A value as one party holds it.
pub enum Value {
    /// The party's share.
    Shared(Share),
    /// Ciphertexts of the client's, by the prime modulo which they are.
    Encrypted(Vec<Vec<Ciphertext>>),
    /// What the client learnt.
    Revealed(Outcome),
    /// The other party's alone.
    AtPeer,
}

/// What the client learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The index of the largest score, ties to the lowest index.
    Label(usize),
    /// At each place the index of its largest score, ties to the lowest index.
    LabelMap(Vec<usize>),
    /// The label and its probability to some decimal digits.
    Probability(Likely),
    /// The indices of the largest scores in order, ties to the lowest index.
    TopK(Vec<usize>),
    /// The indices of the scores above zero, in rising order.
    Labels(Vec<usize>),
    /// Every score, as integers at the network's output scale.
    Logits(Vec<i128>),
    /// Every score, and of each sample whether an activation saturated.
    Saturable {
        /// The scores of all samples, as in [`Self::Logits`].
        scores: Vec<i128>,
        /// For each sample, whether any activation reached its upper bound.
        saturated: Vec<bool>,
    },
    /// What is told of each of several samples.
    Each(Vec<Outcome>),
}

/// What a step reads, as far as the party has it.
pub struct Inputs(Vec<Option<Rc<Value>>>);

impl Inputs {
    /// The values that a step reads, in order; none where the party has not got one yet.
    #[must_use]
    pub const fn new(values: Vec<Option<Rc<Value>>>) -> Self {
        Self(values)
    }

    /// Whether the party has all of them.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.0.iter().all(Option::is_some)
    }

    /// The shares of all inputs.
    ///
    /// # Errors
    /// [`ProtocolError::WrongInput`] if one is missing or not shared.
    pub fn shares(&self) -> Result<Vec<&Share>> {
        self.0.iter().map(|value| share_of(value.as_deref())).collect()
    }

    /// The ciphertexts of the only input, by prime.
    ///
    /// # Errors
    /// [`ProtocolError::WrongInput`] if there is another number of inputs, or it is not encrypted.
    pub fn encrypted(&self) -> Result<&[Vec<Ciphertext>]> {
        match &self.0[..] {
            [Some(value)] => match &**value {
                Value::Encrypted(ciphertexts) => Ok(ciphertexts),
                _ => Err(ProtocolError::WrongInput("it must be encrypted")),
            },
            _ => Err(ProtocolError::WrongInput("there must be one")),
        }
    }

    /// The share of the first input, and what the client has learnt that is the second.
    ///
    /// # Errors
    /// [`ProtocolError::WrongInput`] if there are other inputs, or the first is not shared.
    pub fn share_and_revealed(&self) -> Result<(&Share, &Value)> {
        match &self.0[..] {
            [share, Some(revealed)] => Ok((share_of(share.as_deref())?, revealed)),
            _ => Err(ProtocolError::WrongInput("a share and what was opened are read")),
        }
    }

    /// The share of the only input.
    ///
    /// # Errors
    /// As [`Self::shares`], and if there are several.
    pub fn share(&self) -> Result<&Share> {
        match &self.shares()?[..] {
            [share] => Ok(share),
            _ => Err(ProtocolError::WrongInput("there must be one")),
        }
    }
}

/// What a length or a ring is that is not the step's.
const INPUT: &str = "the input of a step";

fn share_of(value: Option<&Value>) -> Result<&Share> {
    match value {
        Some(Value::Shared(share)) => Ok(share),
        _ => Err(ProtocolError::WrongInput("a share is not known yet")),
    }
}
