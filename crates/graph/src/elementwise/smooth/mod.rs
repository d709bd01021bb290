//! Smooth functions of one element, each by its formula: fixed point has one operator for all.

mod erf;
mod ramp;
mod within;

use serde::{Deserialize, Serialize};

use erf::erf;
pub use ramp::Ramp;
pub use within::Within;

use super::Elementwise;

/// A function of one element.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Function {
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// The error function.
    Erf,
    /// `x / (1 + |x|)`.
    Softsign,
    /// The sine.
    Sin,
    /// The cosine.
    Cos,
    /// `e^x`.
    Exp,
    /// The natural logarithm.
    Log,
    /// The square root.
    Sqrt,
    /// `1 / x`.
    Reciprocal,
    /// `(x + term)^exponent`.
    Power {
        /// Neither 0 nor 1.
        exponent: f32,
        /// Not below 0; an epsilon, say.
        #[serde(default)]
        term: f32,
    },
    /// A function of values that lie in a range whatever the network's input is.
    Within(Within),
    /// What a ramp is beside its `Relu`; a pass makes it.
    Tail(Ramp),
}

impl Function {
    /// The operator's name in messages.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Sigmoid => "Sigmoid",
            Self::Tanh => "Tanh",
            Self::Erf => "Erf",
            Self::Softsign => "Softsign",
            Self::Sin => "Sin",
            Self::Cos => "Cos",
            Self::Exp => "Exp",
            Self::Log => "Log",
            Self::Sqrt => "Sqrt",
            Self::Reciprocal => "Reciprocal",
            Self::Power { .. } => "Pow",
            Self::Within(within) => within.of.name(),
            Self::Tail(ramp) => ramp.name(),
        }
    }

    /// The value at x.
    #[must_use]
    pub fn at(&self, x: f64) -> f64 {
        match self {
            Self::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Self::Tanh => x.tanh(),
            Self::Erf => erf(x),
            Self::Softsign => x / (1.0 + x.abs()),
            Self::Sin => x.sin(),
            Self::Cos => x.cos(),
            Self::Exp => x.exp(),
            Self::Log => x.ln(),
            Self::Sqrt => x.sqrt(),
            Self::Reciprocal => 1.0 / x,
            Self::Power { exponent, term } => (x + f64::from(*term)).powf(f64::from(*exponent)),
            Self::Within(within) => within.at(x),
            Self::Tail(ramp) => ramp.tail(x),
        }
    }

    /// The exponent, its sign left out, and the term of a power that grows without limit towards 0 and is not known to stay away from it.
    #[must_use]
    pub fn inverse(&self) -> Option<[f64; 2]> {
        match self {
            Self::Reciprocal => Some([1.0, 0.0]),
            Self::Power { exponent, term } if *exponent < 0.0 => {
                Some([-f64::from(*exponent), f64::from(*term)])
            }
            // Known from end to end, as a softmax's sums are, they are not near it.
            Self::Within(Within { of, high: None, .. }) => of.inverse(),
            _ => None,
        }
    }

    /// The exponent and the term of a power between 0 and 1: a root.
    #[must_use]
    pub fn root(&self) -> Option<[f64; 2]> {
        match self {
            Self::Sqrt => Some([0.5, 0.0]),
            Self::Power { exponent, term } if *exponent > 0.0 && *exponent < 1.0 => {
                Some([f64::from(*exponent), f64::from(*term)])
            }
            Self::Within(within) => within.of.root(),
            _ => None,
        }
    }

    /// Whether it bends without limit towards 0 though it is no inverse power: a root or a logarithm.
    #[must_use]
    pub fn is_bent_at_0(&self) -> bool {
        match self {
            Self::Log => true,
            Self::Within(within) => within.of.is_bent_at_0(),
            _ => self.root().is_some(),
        }
    }

    /// What it approaches far below and far above 0, if it does.
    #[must_use]
    pub fn limits(&self) -> [Option<f64>; 2] {
        match self {
            Self::Sigmoid => [Some(0.0), Some(1.0)],
            Self::Tanh | Self::Erf | Self::Softsign => [Some(-1.0), Some(1.0)],
            Self::Exp => [Some(0.0), None],
            Self::Tail(ramp) => [Some(ramp.floor()), Some(0.0)],
            Self::Sin | Self::Cos | Self::Log | Self::Sqrt | Self::Reciprocal | Self::Power { .. } => {
                [None, None]
            }
            Self::Within(within) => within.of.limits(),
        }
    }
}

impl Elementwise for Function {
    fn eval(&self, x: f32) -> f32 {
        self.at(f64::from(x)) as f32
    }

    fn is_finite(&self) -> bool {
        match self {
            Self::Power { exponent, term } => exponent.is_finite() && term.is_finite(),
            Self::Within(within) => within.is_finite(),
            Self::Tail(ramp) => ramp.is_finite(),
            _ => true,
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Tail(ramp) => ramp.check(),
            Self::Power { term, .. } if *term < 0.0 => Err(format!("the term {term} is below 0")),
            Self::Within(within) => within.check(),
            _ => Ok(()),
        }
    }

    fn never_decreases(&self) -> bool {
        match self {
            Self::Sin | Self::Cos | Self::Reciprocal | Self::Power { .. } | Self::Tail(_) => false,
            Self::Within(within) => within.of.never_decreases(),
            _ => true,
        }
    }

    fn changes_ring(&self) -> bool {
        true
    }

    fn has_limits(&self) -> bool {
        !matches!(self, Self::Tail(_)) && self.limits().iter().all(Option::is_some)
    }

    fn is_inverse(&self) -> bool {
        self.inverse().is_some()
    }
}
