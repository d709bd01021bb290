//! The activation as a step of a plan.

use lanner_dpf::MAX_BITS;
use lanner_primitives::Ring;
use serde::{Deserialize, Serialize};

use super::{Activation, Rounding, Shape};
use crate::ProtocolError;
use crate::linear::Sets;
use crate::step::{Built, Known, Spec, ValueType, Work};

/// The rescale of each element, its positive part, or that and a bound, by openings under masks with keys that are made ahead; from `Z_2^from` to
/// `Z_2^to`.
///
/// Elements must be below a quarter of their ring: half of what is kept, with a bit that tells the sign, and with a bound one bit more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    /// Number of elements.
    pub values: usize,
    /// Bits of the ring of the input.
    pub from: u32,
    /// Bits that are dropped.
    pub shift: u32,
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

impl Spec for Lookup {
    fn name(&self) -> &'static str {
        "tabula.lookup"
    }

    fn reason(&self) -> &'static str {
        "one opened value and one read online, by keys that are made ahead"
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType, ProtocolError> {
        ValueType::only(inputs, Ring::Pow2(self.from), self.values)?;
        Ok(ValueType::shared(Ring::Pow2(self.to), self.values, Known::NOBODY))
    }

    fn work(&self) -> Work {
        // As many nodes are hashed as a few times the points of a tail's node; both parties' of 700 points take as long as reading an element of a window is
        // said to take, and the transfers of a value as long as 15.
        let left = self.from.saturating_sub(self.shift).min(MAX_BITS);
        let compared = if self.rounding.is_exact() { self.shift.min(MAX_BITS) } else { 0 };
        let nodes = (1_u64 << left) + (1 << compared) / 4;
        Work { window_elements: (self.values as u64).saturating_mul(15 + nodes / 700), ..Work::default() }
    }

    fn build(&self, _: &Sets) -> Result<Box<dyn Built>, ProtocolError> {
        let &Self { values, from, shift, rounding, relu, high, to } = self;
        let left = from.saturating_sub(shift);
        let (shape, kept) = match (relu, high) {
            (false, None) => (Shape::Identity, left.saturating_sub(1)),
            (true, None) => (Shape::Relu, left.saturating_sub(1)),
            (true, Some(high)) => (Shape::Clip(high), left),
            (false, Some(_)) => return Err(ProtocolError::Shape { what: "an upper bound without ReLU" }),
        };
        Ok(Box::new(Activation::rounding(rounding, values, [kept, shift, to], shape)?))
    }
}
