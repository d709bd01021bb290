//! The values of a prediction as one party holds them, each kept until its last reader has it.

use std::rc::Rc;

use lanner_plan::{Action, Visit};
use lanner_primitives::Share;
use lanner_step::{Inputs, ProtocolError, Value};

/// For each visit, the values that nobody reads after it.
pub(super) fn last_reads(visits: &[Visit]) -> Vec<Vec<usize>> {
    let mut read = vec![false; visits.iter().map(|visit| visit.output + 1).max().unwrap_or(0)];
    let last = |visit: &Visit| {
        let mut last: Vec<usize> = visit.inputs.clone();
        last.retain(|value| !std::mem::replace(&mut read[*value], true));
        last
    };
    let mut reads: Vec<_> = visits.iter().rev().map(last).collect();
    reads.reverse();
    reads
}

/// One party's values made so far.
pub(super) struct Values(Vec<Option<Rc<Value>>>);

impl Values {
    /// Begins with the party's share of the network's input, if it is known.
    pub(super) fn new(input: Option<Share>) -> Self {
        Self(vec![input.map(|share| Rc::new(Value::Shared(share)))])
    }

    /// What a visit reads, as far as the party has it; what nobody reads later is let go of.
    pub(super) fn read(&mut self, visit: &Visit, last_reads: &[usize]) -> Inputs {
        let inputs = visit.inputs.iter().map(|value| self.0.get(*value).cloned().flatten()).collect();
        for value in last_reads {
            if let Some(slot) = self.0.get_mut(*value) {
                *slot = None;
            }
        }
        Inputs::new(inputs)
    }

    /// Keeps what a visit made, if the party has it.
    pub(super) fn write(&mut self, visit: &Visit, value: Option<Value>) {
        self.0.resize(self.0.len().max(visit.output + 1), None);
        self.0[visit.output] = value.map(Rc::new);
    }

    /// The last value.
    pub(super) fn into_last(mut self) -> Option<Value> {
        Rc::into_inner(self.0.pop()??)
    }
}

/// What a loop does around its steps, on one party's shares.
///
/// # Errors
/// [`ProtocolError::WrongInput`] if a share is not there.
pub(super) fn move_around(action: Action, inputs: &Inputs) -> Result<Value, ProtocolError> {
    let shares = inputs.shares()?;
    let places: Vec<_> = match action {
        Action::Slice { part, parts } => {
            let length = inputs.share()?.len() / parts;
            (part * length..(part + 1) * length).map(|element| Some((0, element))).collect()
        }
        Action::Join => {
            let of = |(input, share): (usize, &&Share)| {
                (0..share.len()).map(move |element| Some((input, element)))
            };
            shares.iter().enumerate().flat_map(of).collect()
        }
        Action::Step(_) => return Err(ProtocolError::WrongModel("a step moves no elements")),
    };
    Ok(Value::Shared(Share::gather(&shares, &places)?))
}
