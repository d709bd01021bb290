//! The activation as a step of a plan.

use lanner_dpf::MAX_BITS;
use lanner_primitives::Ring;
use lanner_step::{Built, Known, ProtocolError, Result, Sets, Spec, ValueType, Work};
use serde::{Deserialize, Serialize};

use super::keyed::ByKeys;
use super::{Activation, Rounding, Shape};

/// The rescale of each element, its positive part, or that and a bound, by openings under masks with keys that are made ahead; from `Z_2^from` to
/// `Z_2^to`.
///
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    /// Number of elements.
    pub values: usize,
    /// Bits of the ring of the input.
    pub from: u32,
    /// Bits that are dropped.
    pub shift: u32,
    /// Whether elements may be anything in their ring; else they are below a quarter of it, and one bit less of them is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// How they are.
    #[serde(default, skip_serializing_if = "Rounding::is_exact")]
    pub rounding: Rounding,
    /// Whether what is below zero becomes zero.
    pub relu: bool,
    /// The least upper bound, where there is one, of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<u64>,
    /// Bits of the ring of the output.
    pub to: u32,
}

impl Lookup {
    /// Bits that are kept, with the sign.
    fn kept(&self) -> u32 {
        self.from.saturating_sub(self.shift).saturating_sub(u32::from(!self.whole))
    }
}

impl Spec for Lookup {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        ValueType::only(inputs, Ring::Pow2(self.from), self.values)?;
        Ok(ValueType::shared(Ring::Pow2(self.to), self.values, Known::NOBODY))
    }

    fn work(&self) -> Work {
        // As many nodes are hashed as a few times the points of a tail's node; both parties' of 700 points take as long as reading an element of a window is
        // said to take, and the transfers of a value as long as 15.
        let left = (self.kept() + 1).min(MAX_BITS);
        let compared = if self.rounding.is_exact() { self.shift.min(MAX_BITS) } else { 0 };
        let nodes = (1_u64 << left) + (1 << compared) / 4;
        Work { window_elements: (self.values as u64).saturating_mul(15 + nodes / 700), ..Work::default() }
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>> {
        let &Self { values, shift, rounding, relu, high, to, .. } = self;
        let shape = match (relu, high) {
            (false, None) => Shape::Identity,
            (true, None) => Shape::Relu,
            (true, Some(high)) => Shape::Clip(high),
            (false, Some(_)) => return Err(ProtocolError::Parameters("an upper bound without ReLU")),
        };
        let kept = self.kept();
        Ok(Box::new(ByKeys(Activation::rounding(rounding, values, [kept, shift, to], shape)?)))
    }
}
