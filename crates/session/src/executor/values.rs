//! The values of a prediction as one party holds them, each kept until its last reader has it.

use std::rc::Rc;

use lanner_plan::Plan;
use lanner_protocol::ProtocolError;
use lanner_share::Share;

use super::ExecutionError;

/// Which values a step reads and makes, and which nobody reads after it.
pub(super) struct Wiring {
    inputs: Vec<usize>,
    output: usize,
    last_read: Vec<usize>,
}

impl Wiring {
    /// The wiring of each step of a plan.
    pub(super) fn of(plan: &Plan) -> Vec<Self> {
        let last_reader = |value: usize| plan.steps.iter().rposition(|step| step.inputs.contains(&value));
        let wiring = |(index, step): (usize, &lanner_plan::Step)| {
            let mut last_read = step.inputs.clone();
            last_read.retain(|value| last_reader(*value) == Some(index));
            Self { inputs: step.inputs.clone(), output: index + 1, last_read }
        };
        plan.steps.iter().enumerate().map(wiring).collect()
    }
}

/// What a step reads.
pub(super) struct Inputs(Vec<Rc<Share>>);

impl Inputs {
    pub(super) fn all(&self) -> Vec<&Share> {
        self.0.iter().map(Rc::as_ref).collect()
    }

    /// The only input.
    pub(super) fn one(&self) -> Result<&Share, ProtocolError> {
        match &self.0[..] {
            [share] => Ok(share),
            _ => Err(ProtocolError::Shape { what: "the number of a step's inputs" }),
        }
    }
}

/// One party's shares of the values made so far.
pub(super) struct Values(Vec<Option<Rc<Share>>>);

impl Values {
    /// Begins with the party's share of the network's input.
    pub(super) fn new(input: Share) -> Self {
        Self(vec![Some(Rc::new(input))])
    }

    /// What a step reads.
    ///
    /// # Errors
    /// [`ExecutionError::Mismatch`] if a value is not there: the plan is wrong.
    pub(super) fn read(&mut self, wiring: &Wiring) -> Result<Inputs, ExecutionError> {
        self.read_known(wiring).ok_or(ExecutionError::Mismatch { what: "a step's inputs" })
    }

    /// What a step reads, if the party has all of it.
    pub(super) fn read_known(&mut self, wiring: &Wiring) -> Option<Inputs> {
        let held = wiring.inputs.iter().map(|value| self.0.get(*value).cloned().flatten());
        let inputs = held.collect::<Option<Vec<_>>>();
        for value in &wiring.last_read {
            if let Some(slot) = self.0.get_mut(*value) {
                *slot = None;
            }
        }
        inputs.map(Inputs)
    }

    /// Keeps what a step made.
    pub(super) fn write(&mut self, wiring: &Wiring, share: Share) {
        self.write_known(wiring, Some(share));
    }

    /// Keeps what a step made, if the party has it.
    pub(super) fn write_known(&mut self, wiring: &Wiring, share: Option<Share>) {
        self.0.resize(self.0.len().max(wiring.output + 1), None);
        self.0[wiring.output] = share.map(Rc::new);
    }
}
