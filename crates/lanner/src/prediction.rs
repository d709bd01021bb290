//! What a prediction returns, in the shape of the command line's JSON.

use lanner_network::{Policy, arg_max};
use lanner_session::executor::{Measured, Outcome, Phase};
use serde::Serialize;

use crate::Manifest;

/// One prediction: what the output policy reveals, and what it took: of what a request for several samples took, a part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// The class of the largest score, ties to the lowest index; of one score 1 where it is above zero. `None` where labels do not
    /// exclude each other, and where there are none.
    pub label: Option<usize>,
    /// The label's name, where the model names its classes.
    pub class_name: Option<String>,
    /// The labels whose scores are above zero, where they do not exclude each other; of a map the label of each place.
    pub labels: Option<Vec<usize>>,
    /// Where the model names its classes, the names of `labels`, of `top`, or of the classes whose scores `logits` lists, in that order.
    pub class_names: Option<Vec<String>>,
    /// The label's probability, where the policy reveals it.
    pub probability: Option<f64>,
    /// The decimal digits that the probability is rounded to, where there is one.
    pub digits: Option<u32>,
    /// The best classes, where the policy reveals them.
    pub top: Option<Vec<usize>>,
    /// The scores as real numbers, where the policy reveals them.
    pub logits: Option<Vec<f64>>,
    /// The estimated quantities, of a model whose outputs are some.
    pub values: Option<Vec<f64>>,
    /// The scores or quantities as the integers of the fixed-point reference, where the policy reveals them.
    pub integers: Option<Vec<i128>>,
    /// Whether any activation saturated, where the model's owner has that revealed.
    pub saturated: Option<bool>,
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
    /// The part of it outside of the channel, in which the client computed.
    pub computing: f64,
    /// Bytes in both directions.
    pub bytes: u64,
    /// The part of them that the client sent.
    pub bytes_sent: u64,
    /// Rounds.
    pub rounds: u64,
}

impl Prediction {
    /// The predictions of a request for `count` samples, among which its cost is divided.
    pub(crate) fn of_request(
        manifest: &Manifest,
        outcome: Outcome,
        count: usize,
        setup: &Measured,
        costs: &[Measured],
    ) -> Vec<Self> {
        let outcomes = match outcome {
            Outcome::Logits(scores) => {
                let of_sample = scores.chunks(manifest.network.output_len());
                of_sample.take(count).map(|scores| Outcome::Logits(scores.to_vec())).collect()
            }
            Outcome::Saturable { scores, saturated } => {
                let of_sample = scores.chunks(manifest.network.output_len()).zip(saturated).take(count);
                let told = |(scores, bit): (&[i128], bool)| Outcome::Saturable {
                    scores: scores.to_vec(),
                    saturated: vec![bit],
                };
                of_sample.map(told).collect()
            }
            Outcome::Each(outcomes) => outcomes.into_iter().take(count).collect(),
            other => vec![other],
        };
        let part = |index| Part { index: index as u64, of: count as u64 };
        let of_sample = |(index, outcome)| Self::new(manifest, outcome, setup, costs, part(index));
        outcomes.into_iter().enumerate().map(of_sample).collect()
    }

    fn new(manifest: &Manifest, outcome: Outcome, setup: &Measured, costs: &[Measured], part: Part) -> Self {
        let revealed = Revealed::of(manifest, outcome);
        let name = |label: &usize| manifest.class_name(*label).map(str::to_owned);
        let mut phases = Phases::default();
        phases.add([setup]);
        phases.add(costs);
        let phases = phases.part(part);
        Self {
            class_name: revealed.label.as_ref().and_then(name),
            class_names: revealed.names(manifest),
            label: revealed.label,
            labels: revealed.labels,
            probability: revealed.probability,
            digits: match manifest.policy {
                Policy::Probability { digits } => Some(digits),
                _ => None,
            },
            top: revealed.top,
            logits: revealed.logits,
            values: revealed.values,
            integers: revealed.integers,
            saturated: revealed.saturated,
            mode: manifest.mode.clone(),
            model: manifest.name.clone(),
            phases,
            layers: costs.iter().map(|cost| LayerCost::new(cost, part)).collect(),
        }
    }
}

/// What an outcome tells, in the members of a prediction.
#[derive(Default)]
struct Revealed {
    label: Option<usize>,
    labels: Option<Vec<usize>>,
    probability: Option<f64>,
    top: Option<Vec<usize>>,
    logits: Option<Vec<f64>>,
    values: Option<Vec<f64>>,
    integers: Option<Vec<i128>>,
    saturated: Option<bool>,
}

impl Revealed {
    /// The names of the classes that are listed. Of one score there is no list: its classes are two.
    fn names(&self, manifest: &Manifest) -> Option<Vec<String>> {
        if let Some(listed) = self.labels.as_ref().or(self.top.as_ref()) {
            return listed.iter().map(|label| manifest.class_name(*label).map(str::to_owned)).collect();
        }
        let scores = self.logits.as_ref()?.len();
        manifest.classes.as_ref().filter(|classes| classes.len() == scores).cloned()
    }

    fn of(manifest: &Manifest, outcome: Outcome) -> Self {
        let nothing = Self::default();
        match outcome {
            Outcome::Label(label) => Self { label: Some(label), ..nothing },
            Outcome::Labels(labels) | Outcome::LabelMap(labels) => Self { labels: Some(labels), ..nothing },
            Outcome::Probability(likely) => {
                Self { label: Some(likely.label), probability: Some(likely.probability()), ..nothing }
            }
            // Told sample by sample, each on its own.
            Outcome::Each(_) => nothing,
            Outcome::Saturable { scores, saturated } => {
                Self { saturated: saturated.first().copied(), ..Self::of(manifest, Outcome::Logits(scores)) }
            }
            Outcome::TopK(best) => Self { label: best.first().copied(), top: Some(best), ..nothing },
            Outcome::Logits(scores) => {
                let reals = manifest.network.output_scale().map(|scale| scaled(&scores, scale));
                let label = label_of(&scores);
                let integers = Some(scores);
                match manifest.policy {
                    Policy::Value => Self { values: reals, integers, ..nothing },
                    _ => Self { label: Some(label), logits: reals, integers, ..nothing },
                }
            }
        }
    }
}

/// Scores as real numbers.
fn scaled(scores: &[i128], scale: f64) -> Vec<f64> {
    scores.iter().map(|score| *score as f64 * scale).collect()
}

/// The label that scores tell; of one alone whether it is above zero.
fn label_of(scores: &[i128]) -> usize {
    match scores {
        [score] => usize::from(*score > 0),
        _ => arg_max(scores),
    }
}

/// A sample's part of what its request took. All parts together are the whole.
#[derive(Clone, Copy)]
struct Part {
    index: u64,
    of: u64,
}

impl Part {
    fn seconds(self, whole: f64) -> f64 {
        whole / self.of as f64
    }

    /// What is left over goes to the first.
    fn count(self, whole: u64) -> u64 {
        whole / self.of + u64::from(self.index < whole % self.of)
    }
}

impl Phases {
    fn part(self, part: Part) -> Self {
        let of = |cost: Cost| Cost {
            seconds: part.seconds(cost.seconds),
            bytes_sent: part.count(cost.bytes_sent),
            bytes_received: part.count(cost.bytes_received),
            rounds: part.count(cost.rounds),
        };
        // The set-up is the session's, whatever its requests hold.
        Self { offline: of(self.offline), online: of(self.online), ..self }
    }

    /// Adds what steps took.
    pub(crate) fn add<'c>(&mut self, costs: impl IntoIterator<Item = &'c Measured>) {
        costs.into_iter().for_each(|cost| self.of(cost.phase).add(cost));
    }

    fn of(&mut self, phase: Phase) -> &mut Cost {
        match phase {
            Phase::Setup => &mut self.setup,
            Phase::Offline => &mut self.offline,
            Phase::Online => &mut self.online,
        }
    }
}

impl Cost {
    fn add(&mut self, cost: &Measured) {
        self.seconds += cost.seconds;
        self.bytes_sent += cost.traffic.sent;
        self.bytes_received += cost.traffic.received;
        self.rounds += cost.traffic.rounds;
    }
}

impl LayerCost {
    fn new(cost: &Measured, part: Part) -> Self {
        Self {
            name: cost.name.clone(),
            protocol: cost.protocol,
            phase: cost.phase.name(),
            seconds: part.seconds(cost.seconds),
            computing: part.seconds(cost.computing),
            bytes: part.count(cost.traffic.sent + cost.traffic.received),
            bytes_sent: part.count(cost.traffic.sent),
            rounds: part.count(cost.traffic.rounds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_request_are_the_whole_and_the_set_up_is_the_sessions() {
        let cost = |bytes| Cost { seconds: 3.0, bytes_sent: bytes, bytes_received: 2 * bytes, rounds: 1 };
        let whole = Phases { setup: cost(1000), offline: cost(10), online: cost(101) };
        for of in [1, 3, 8] {
            let parts: Vec<Phases> = (0..of).map(|index| whole.part(Part { index, of })).collect();
            for phase in [|part: &Phases| part.offline, |part: &Phases| part.online] {
                let all = phase(&whole);
                assert_eq!(parts.iter().map(|part| phase(part).bytes_sent).sum::<u64>(), all.bytes_sent);
                assert_eq!(
                    parts.iter().map(|part| phase(part).bytes_received).sum::<u64>(),
                    all.bytes_received
                );
                assert_eq!(parts.iter().map(|part| phase(part).rounds).sum::<u64>(), all.rounds);
            }
            assert!(parts.iter().all(|part| part.setup == whole.setup));
        }
    }
}
