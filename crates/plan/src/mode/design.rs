//! What modes are made of.

use lanner_network::{Network, Policy};

/// What is the same of all plans of a mode.
#[derive(Debug)]
pub struct Design {
    /// The mode's name on the command line, in Python and in reports.
    pub name: &'static str,
    /// A way of rounding that its owner may choose instead of the exact one, in which every result is the reference's.
    pub inexact: Option<Inexact>,
    /// The rings that values are computed in.
    pub rings: Rings,
    /// What nodes become on shares; none where the server computes on ciphertexts, and the client takes no part between its input and the result.
    pub rules: Option<Rules>,
    /// How many samples a request may hold at most, which share ciphertexts; a network's layouts may allow less.
    pub most_samples: usize,
}

impl Design {
    /// Whether the client takes part between its input and the result.
    #[must_use]
    pub const fn is_interactive(&self) -> bool {
        self.rules.is_some()
    }

    /// Whether it takes every network that shares can be computed of.
    #[must_use]
    pub fn takes_any(&self) -> bool {
        self.rules.is_some_and(|rules| rules.layer != Layer::Checked)
    }

    /// Whether it checks what clients do, so that they may be any.
    #[must_use]
    pub fn checks_clients(&self) -> bool {
        self.rules.is_some_and(|rules| rules.layer == Layer::Checked)
    }

    /// Whether it has a policy: on ciphertexts nobody compares scores, so that the client learns them all.
    #[must_use]
    pub const fn has_policy(&self, policy: Policy) -> bool {
        self.is_interactive() || matches!(policy, Policy::Logits | Policy::Value)
    }

    /// Whether all that is rescaled is looked up.
    #[must_use]
    pub fn looks_up(&self) -> bool {
        self.rules.is_some_and(|rules| rules.between == Between::Lookups)
    }

    /// Whether layers multiply slots by slots, and not polynomials whose coefficients values are.
    pub(crate) fn has_slots(&self) -> bool {
        self.rules.is_none_or(|rules| rules.layer.has_slots())
    }
}

/// A way of rounding that depends on randomness, which an owner may choose with policy `label` alone.
#[derive(Debug)]
pub struct Inexact {
    /// Its name.
    pub name: &'static str,
    /// How it rounds, for people.
    pub said: &'static str,
    /// What that tells a client, for people.
    pub leak: &'static str,
    /// How far each value of a network may be from the reference's integer.
    pub errors: fn(&Network) -> Vec<i64>,
}

/// The rings of a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rings {
    /// Modulo primes.
    Primes,
    /// All modulo one prime.
    OnePrime,
    /// Modulo powers of two.
    PowersOfTwo,
    /// Modulo products of primes, where nothing is rescaled.
    Products,
}

/// What nodes become on shares; what is not said here follows from the rings. In mode `auto` each node may follow rules of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Linear layers.
    pub layer: Layer,
    /// What is between them.
    pub between: Between,
}

/// What a linear layer becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// `gazelle::Linear`: slots, by rotations.
    Rotations,
    /// `falcon::Linear`: slots in the frequency domain; as [`Self::Rotations`] where it has no form there.
    Frequencies,
    /// `cheetah::Linear`: products of polynomials.
    Coefficients,
    /// `delphi::Linear`: the same, computed ahead.
    Ahead,
    /// `hardened::Whole`: all layers, and what is between them, are one step, which checks the client.
    Checked,
}

impl Layer {
    pub(crate) const fn has_slots(self) -> bool {
        matches!(self, Self::Rotations | Self::Frequencies)
    }
}

/// What operators between layers become, and the label with its probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// `yao::Activation`: a circuit computes several of them.
    Circuits,
    /// `RingActivation`; as [`Self::Circuits`] what transfers do not compute.
    Transfers,
    /// `tabula::Lookup`, and functions by `tabula::Table`; as [`Self::Transfers`] what keys are too short for.
    Lookups,
}
