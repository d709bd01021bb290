//! What a plan is made of.

use std::collections::{BTreeMap, BTreeSet};

use lanner_network::Policy;
use lanner_network::repeats::from_to;
use lanner_primitives::Ring;
use lanner_protocol::Protocol;
use lanner_step::Samples;
use serde::{Deserialize, Serialize};

use crate::mode::{Between, Mode, NodeDesign};

/// The designs of the nodes, by name, that do not follow [`NodeDesign::Cheetah`]; what tells the result goes by the name `output`.
pub type Designs = BTreeMap<String, NodeDesign>;

/// Nodes, by name, that are upper bounds of the compiler's own: beside scores or quantities the client learns one bit, whether any of their values
/// reached its bound.
pub type Saturation = BTreeSet<String>;

/// What a network and a policy leave open of a plan: with it, they determine every step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// The design followed.
    pub mode: Mode,
    /// In mode `auto`, the designs of nodes; empty in others.
    pub designs: Designs,
    /// How many samples a request holds.
    pub samples: Samples,
    /// The upper bounds of which the client learns whether any was reached; mostly none.
    pub saturation: Saturation,
}

impl From<Mode> for Choices {
    /// One sample a request.
    fn from(mode: Mode) -> Self {
        Self { mode, designs: Designs::new(), samples: Samples::ONE, saturation: Saturation::new() }
    }
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The name of the model's node that the step ends with; its weights are the node's.
    pub name: String,
    /// The values that it reads.
    pub inputs: Vec<usize>,
    /// How it is computed.
    #[serde(flatten)]
    pub protocol: Protocol,
}

/// A loop: its body runs a fixed number of times, with one set of layers for all.
///
/// In the body value `i` is the loop's `i`-th input, the carried ones first, then the sliced, then the whole; then come what its steps make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scan {
    /// The name of the model's node.
    pub name: String,
    /// Values that go from one iteration to the next.
    pub carried: Vec<Carried>,
    /// Values that are cut into as many equal parts as there are iterations, which read one each.
    pub sliced: Vec<usize>,
    /// Values that every iteration reads whole.
    pub whole: Vec<usize>,
    /// The steps of one iteration.
    pub body: Vec<Step>,
    /// Values of the body that are joined over all iterations, in the order of the slices.
    pub stacked: Vec<usize>,
    /// Whether the last slice is read first.
    pub reverse: bool,
    /// Number of iterations.
    pub times: usize,
}

/// A value that goes from one iteration to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Carried {
    /// The value that the first iteration reads.
    pub initial: usize,
    /// The value of the body that the next one reads.
    pub next: usize,
}

/// Steps that repeat, with one set of layers for all iterations, as those of a recurrent layer.
///
/// In the first iteration the steps read the values that they name; in each further one, values that are as far on as `advances` say: what the
/// iteration before made, the next of a sequence, or the same again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeated {
    /// Number of iterations.
    pub times: usize,
    /// The steps of the first iteration, under its names.
    pub body: Vec<Step>,
    /// The names of the last iteration.
    pub last: Vec<String>,
    /// For each step and each value that it reads, how much further on the value is in the next iteration.
    pub advances: Vec<Vec<i64>>,
}

/// A step, a loop, or steps that repeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant, reason = "a plan has few steps")]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// A step, which makes one value.
    Step(Step),
    /// A loop, which makes its carried values as the last iteration leaves them, then its stacked ones.
    Scan(Scan),
    /// Steps that repeat, which make the values of one iteration after the other.
    Repeat(Repeated),
}

impl Item {
    /// How many values it makes.
    #[must_use]
    pub const fn outputs(&self) -> usize {
        match self {
            Self::Step(_) => 1,
            Self::Scan(scan) => scan.carried.len() + scan.stacked.len(),
            Self::Repeat(repeated) => repeated.body.len() * repeated.times,
        }
    }

    /// What each of its steps is called, all iterations together.
    pub(crate) fn labels(&self) -> Vec<String> {
        let Self::Repeat(Repeated { body, last, .. }) = self else {
            return self.steps().iter().map(|step| step.name.clone()).collect();
        };
        let last = last.iter().map(Some).chain(std::iter::repeat(None));
        let label = |(step, last): (&Step, Option<&String>)| {
            last.map_or_else(|| step.name.clone(), |last| from_to(&step.name, last))
        };
        body.iter().zip(last).map(label).collect()
    }

    /// The steps that it is made of, each once.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        match self {
            Self::Step(step) => std::slice::from_ref(step),
            Self::Scan(scan) => &scan.body,
            Self::Repeat(repeated) => &repeated.body,
        }
    }
}

/// The protocol of every step, in order.
///
/// Value 0 is the network's input; then come what the items make, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The design followed.
    pub mode: Mode,
    /// In mode `auto`, the designs of nodes.
    #[serde(default, skip_serializing_if = "Designs::is_empty")]
    pub designs: Designs,
    /// What the client learns.
    pub policy: Policy,
    /// How many samples a request holds; their inputs follow one another, and so do their scores.
    #[serde(default, skip_serializing_if = "Samples::is_one")]
    pub samples: Samples,
    /// The upper bounds of which the client learns whether any was reached.
    #[serde(default, skip_serializing_if = "Saturation::is_empty")]
    pub saturation: Saturation,
    /// The ring and the number of elements of the input, of all samples.
    pub input: (Ring, usize),
    /// The steps and loops.
    pub items: Vec<Item>,
}

impl Plan {
    /// What determines the plan, beside its network and policy.
    #[must_use]
    pub fn choices(&self) -> Choices {
        let Self { mode, designs, samples, saturation, .. } = self;
        Choices { mode: *mode, designs: designs.clone(), samples: *samples, saturation: saturation.clone() }
    }

    /// Whether a node that is a rescale is looked up.
    #[must_use]
    pub fn looks_up(&self, node: &str) -> bool {
        let rules = self.designs.get(node).map(|design| design.rules()).or(self.mode.design().rules);
        rules.is_some_and(|rules| rules.between == Between::Lookups)
    }

    /// All steps in order, those of a loop once.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.items.iter().flat_map(Item::steps)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lanner_local::reshare::Reshare;
    use lanner_yao::softmax::Probability;
    use lanner_yao::{AboveZero, Best, Largest, Scores};

    use super::*;

    #[test]
    fn a_protocol_lies_flat_in_its_step() {
        let reshare = Protocol::Reshare(Reshare { values: 3, ring: Ring::Prime(1_032_193) });
        let step = Step { name: "sum".to_owned(), inputs: vec![2], protocol: reshare };
        let json = r#"{"name":"sum","inputs":[2],"protocol":"reshare","values":3,"ring":{"prime":1032193}}"#;
        assert_eq!(serde_json::to_string(&step).unwrap(), json);
        assert_eq!(serde_json::from_str::<Step>(json).unwrap(), step);
    }

    #[test]
    fn what_is_learnt_of_scores_lies_flat_beside_them() {
        let (ring, four) = (Ring::Pow2(20), Samples::try_from(4).unwrap());
        let largest = Scores { samples: four, ..Scores::new(5, Largest {}, ring, 0) };
        let cases: [(Protocol, &str); 5] = [
            (largest.into(), r#""yao_arg_max","classes":5,"from":{"pow2":20},"samples":4"#),
            (
                Scores::new(5, Largest {}, ring, 0).at(7).into(),
                r#""yao_arg_max","classes":5,"from":{"pow2":20},"places":7"#,
            ),
            (
                Scores::new(5, Best { k: 2 }, ring, 3).into(),
                r#""yao_top_k","classes":5,"k":2,"from":{"pow2":20},"guard":3"#,
            ),
            (
                Scores::new(5, AboveZero {}, ring, 0).into(),
                r#""yao_positive","classes":5,"from":{"pow2":20}"#,
            ),
            (
                Scores::new(5, Probability { digits: 2, scale: 0.125 }, ring, 0).into(),
                r#""softmax","classes":5,"digits":2,"scale":0.125,"from":{"pow2":20}"#,
            ),
        ];
        for (protocol, json) in cases {
            let json = format!(r#"{{"protocol":{json}}}"#);
            assert_eq!(serde_json::to_string(&protocol).unwrap(), json);
            assert_eq!(serde_json::from_str::<Protocol>(&json).unwrap(), protocol);
        }
    }
}
