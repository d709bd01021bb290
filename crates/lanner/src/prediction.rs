//! What a prediction returns, in the shape of the command line's JSON.

use lanner_session::executor::{Outcome, Phase, StepCost};
use serde::Serialize;

use crate::Manifest;

/// One prediction: what the output policy reveals, and what it took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// The class of the largest score, ties to the lowest index.
    pub label: usize,
    /// The label's name, where the model names its classes.
    pub class_name: Option<String>,
    /// The label's probability, where the policy reveals it.
    pub probability: Option<f64>,
    /// The best classes, where the policy reveals them.
    pub top: Option<Vec<usize>>,
    /// The scores as real numbers, where the policy reveals them.
    pub logits: Option<Vec<f64>>,
    /// The scores as the integers of the fixed-point reference, where the policy reveals them.
    pub values: Option<Vec<i64>>,
    /// The mode.
    pub mode: String,
    /// The model's name.
    pub model: String,
    /// The client's cost by phase.
    pub phases: Phases,
    /// The client's cost by layer.
    pub layers: Vec<LayerCost>,
}

/// The client's cost by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Phases {
    /// Once a session: keys and base oblivious transfers.
    pub setup: Cost,
    /// Per prediction, before the input is known.
    pub offline: Cost,
    /// The rest.
    pub online: Cost,
}

/// Time, bytes and rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Wall time.
    pub seconds: f64,
    /// Bytes that the client sent.
    pub bytes_sent: u64,
    /// Bytes that the client received.
    pub bytes_received: u64,
    /// Sends of the client that were followed by a wait.
    pub rounds: u64,
}

/// The cost of one layer in one phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerCost {
    /// The layer.
    pub name: String,
    /// Its protocol.
    pub protocol: &'static str,
    /// The phase.
    pub phase: &'static str,
    /// Wall time.
    pub seconds: f64,
    /// Bytes in both directions.
    pub bytes: u64,
    /// Rounds.
    pub rounds: u64,
}

impl Prediction {
    pub(crate) fn new(manifest: &Manifest, outcome: Outcome, setup: &StepCost, costs: &[StepCost]) -> Self {
        let (mut probability, mut top, mut values) = (None, None, None);
        let label = match outcome {
            Outcome::Label(label) => label,
            Outcome::Probability(likely) => {
                probability = Some(likely.probability());
                likely.label
            }
            Outcome::TopK(best) => {
                let label = best.first().copied().unwrap_or(0);
                top = Some(best);
                label
            }
            Outcome::Logits(scores) => {
                let label = lanner_graph::arg_max(&scores);
                values = Some(scores);
                label
            }
        };
        let logits = values.as_ref().zip(manifest.network.output_scale());
        let logits = logits.map(|(values, scale)| values.iter().map(|value| *value as f64 * scale).collect());
        let mut phases = Phases::default();
        for cost in std::iter::once(setup).chain(costs) {
            phases.of(cost.phase).add(cost);
        }
        Self {
            label,
            class_name: manifest.class_name(label).map(str::to_owned),
            probability,
            top,
            logits,
            values,
            mode: manifest.mode.clone(),
            model: manifest.name.clone(),
            phases,
            layers: costs.iter().map(LayerCost::new).collect(),
        }
    }
}

impl Phases {
    fn of(&mut self, phase: Phase) -> &mut Cost {
        match phase {
            Phase::Setup => &mut self.setup,
            Phase::Offline => &mut self.offline,
            Phase::Online => &mut self.online,
        }
    }
}

impl Cost {
    fn add(&mut self, cost: &StepCost) {
        self.seconds += cost.seconds;
        self.bytes_sent += cost.traffic.sent;
        self.bytes_received += cost.traffic.received;
        self.rounds += cost.traffic.rounds;
    }
}

impl LayerCost {
    fn new(cost: &StepCost) -> Self {
        Self {
            name: cost.name.clone(),
            protocol: cost.protocol,
            phase: cost.phase.name(),
            seconds: cost.seconds,
            bytes: cost.traffic.sent + cost.traffic.received,
            rounds: cost.traffic.rounds,
        }
    }
}
