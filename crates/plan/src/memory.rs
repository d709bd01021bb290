//! What a server keeps in memory, from public parameters alone.

use lanner_protocol::linear::{Form, falcon, gazelle};
use lanner_protocol::nonlinear::square::Target;

use crate::protocol::packed::{BuiltLinear, BuiltSquare};
use crate::{Built, BuiltStep};

/// Bytes that a server keeps, to within small change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Once a model, shared by all sessions: encoded weights.
    pub model: u64,
    /// Once a session: the client's evaluation keys.
    pub session: u64,
    /// Of each prepared prediction.
    pub prediction: u64,
    /// While a layer is computed: its rotated inputs and partial sums.
    pub working: u64,
}

impl Memory {
    /// What one client more takes, with one prediction prepared and one layer in work.
    #[must_use]
    pub const fn client(self) -> u64 {
        self.session + self.prediction + self.working
    }

    /// Both, of which one is in work at a time.
    pub(crate) fn beside(self, other: Self) -> Self {
        Self {
            model: self.model + other.model,
            session: self.session + other.session,
            prediction: self.prediction + other.prediction,
            working: self.working.max(other.working),
        }
    }
}

/// Has weights kept in their prepared form as long as those fit [`MAX_PREPARED_BYTES`], the largest layers first.
pub(crate) fn prepare(steps: &mut [BuiltStep]) {
    let mut layers: Vec<_> = steps.iter_mut().filter_map(weights).collect();
    layers.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let mut left = MAX_PREPARED_BYTES;
    for (bytes, form) in layers {
        if let Some(rest) = left.checked_sub(bytes) {
            (left, *form) = (rest, Form::Prepared);
        }
    }
}

/// The bytes of a step's weights in their prepared form, and the form that they have; none of a step without weights.
fn weights(step: &mut BuiltStep) -> Option<(u64, &mut Form)> {
    match &mut step.built {
        Built::Linear(linear) => {
            let BuiltLinear { packing, parameters, prime, form } = linear.as_mut();
            Some((gazelle::ServerLayer::bytes(packing, parameters, *prime, Form::Prepared), form))
        }
        Built::Square(square) => {
            let BuiltSquare { target, parameters, prime, form } = square.as_mut();
            let Target::Layer(packing) = target else { return None };
            Some((gazelle::ServerLayer::bytes(packing, parameters, *prime, Form::Prepared), form))
        }
        Built::FalconLinear(linear) => {
            let bytes = falcon::ServerLayer::bytes(&linear.packing, &linear.parameters, Form::Prepared);
            Some((bytes, &mut linear.form))
        }
        _ => None,
    }
}

/// Bytes of prepared weights of a model: 1 GiB. What goes beyond is transformed at every prediction, which takes more time.
const MAX_PREPARED_BYTES: u64 = 1 << 30;
