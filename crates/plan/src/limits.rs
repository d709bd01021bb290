//! How large a network may be: checked on its public half before anything is built from it.
//!
//! A client plans what a server describes, and a server what a file describes. Neither may make the other build tables, circuits or
//! keys without bound, so every sum that memory or time grows with has a limit far beyond real networks.

use lanner_graph::{FixedNode, FixedOp, Policy, PublicNetwork};
use lanner_protocol::nonlinear::softmax::{MAX_CLASSES as MAX_SOFTMAX_CLASSES, MAX_DIGITS};

use crate::lower::SLOTS;
use crate::{Held, Memory, PlanError};

/// What a network adds up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    elements: u64,
    window_elements: u64,
    circuit_values: u64,
    products: u64,
    keys: u64,
}

/// Checks a network's sizes.
///
/// # Errors
/// [`PlanError::TooLarge`] naming the node that goes beyond a limit.
pub(crate) fn check(network: &PublicNetwork, policy: Policy) -> Result<(), PlanError> {
    let mut totals = Totals::default();
    for node in network.nodes() {
        // The value that the node takes, which in a network that branches is not the one made last.
        totals.add(node, network.shape(node.inputs[0]));
        totals.check(&node.name)?;
    }
    check_policy(network.output_len(), policy)
}

/// Checks that a policy fits the number of scores.
fn check_policy(scores: usize, policy: Policy) -> Result<(), PlanError> {
    let wrong = |reason: String| Err(PlanError::Policy { policy: policy.name(), reason });
    match policy {
        Policy::Logits => return Ok(()),
        _ if scores < 2 => return wrong("it needs two scores or more; choose logits".to_owned()),
        Policy::TopK { k } if !(1..=scores).contains(&(k as usize)) => {
            return wrong(format!("k is {k} and there are {scores} scores; give 1 to {scores}"));
        }
        Policy::Probability { digits } if !(1..=MAX_DIGITS).contains(&digits) => {
            return wrong(format!("it has {digits} digits; give 1 to {MAX_DIGITS}"));
        }
        Policy::Probability { .. } => {
            return within("output", "classes of a softmax", scores as u64, MAX_SOFTMAX_CLASSES as u64);
        }
        Policy::TopK { k } => {
            // About what a tree of merges by odd-even compares, if each part keeps k.
            let depth = u64::from((2 * u64::from(k)).ilog2());
            let comparisons = (scores as u64).saturating_mul(depth * depth) / 4;
            within("output", "comparisons of a top-k", comparisons, MAX_COMPARISONS)?;
        }
        Policy::Label => {}
    }
    within("output", "classes of an arg-max", scores as u64, MAX_CLASSES)
}

/// Checks what each party would keep of one prediction.
///
/// # Errors
/// [`PlanError::TooLarge`] if it is more than a machine may be made to hold.
pub(crate) fn check_held(held: &Held) -> Result<(), PlanError> {
    within("output", "bytes of one-time material for a prediction", held.client.max(held.server), MAX_HELD)
}

/// Checks what a server would keep besides.
///
/// # Errors
/// As [`check_held`].
pub(crate) fn check_memory(memory: &Memory) -> Result<(), PlanError> {
    within("output", "bytes of encoded weights", memory.model, MAX_HELD)?;
    within("output", "bytes of keys and partial sums of a session", memory.session + memory.working, MAX_HELD)
}

/// Checks the products that layers add up to whose layouts the network's sizes do not bound.
///
/// # Errors
/// [`PlanError::TooLarge`] naming the node.
pub(crate) fn check_products(node: &FixedNode, products: u64) -> Result<(), PlanError> {
    within(&node.name, "ciphertext products", products, MAX_PRODUCTS)
}

/// Checks the ciphertexts that coefficient-encoded layers add up to.
///
/// # Errors
/// [`PlanError::TooLarge`] naming the node.
pub(crate) fn check_ciphertexts(node: &FixedNode, ciphertexts: u64) -> Result<(), PlanError> {
    within(&node.name, "ciphertexts", ciphertexts, MAX_CIPHERTEXTS)
}

impl Totals {
    fn add(&mut self, node: &FixedNode, input: &[usize]) {
        let outputs = node.len() as u64;
        self.elements = self.elements.saturating_add(outputs);
        match &node.op {
            FixedOp::MaxPool(window) | FixedOp::SumPool(window) => {
                let area = area(window.kernel);
                self.window_elements = self.window_elements.saturating_add(outputs.saturating_mul(area));
                if matches!(node.op, FixedOp::MaxPool(_)) {
                    self.circuit_values = self.circuit_values.saturating_add(area);
                }
            }
            op if op.is_nonlinear() => self.circuit_values = self.circuit_values.saturating_add(1),
            FixedOp::Conv2d(geometry) => {
                let phases = area(geometry.strides);
                let pixels =
                    area([input[1].max(1), input[2].max(1)]).max(outputs / geometry.out_channels as u64);
                self.linear(
                    input[0] as u64 * phases,
                    geometry.out_channels as u64,
                    area(geometry.kernel),
                    pixels,
                );
            }
            FixedOp::Linear { outputs } => {
                self.linear(input.iter().product::<usize>() as u64, *outputs as u64, 1, 1);
            }
            _ => {}
        }
    }

    /// A layer of `inputs` and `outputs` channels of `pixels` slots each, with `taps` filter taps: at most about so many products
    /// and keys, whatever the layout.
    fn linear(&mut self, inputs: u64, outputs: u64, taps: u64, pixels: u64) {
        let positions = (SLOTS as u64 / pixels.next_power_of_two()).max(2);
        let ciphertexts = |channels: u64| channels.div_ceil(positions);
        let diagonals = inputs.min(positions);
        let products = taps
            .saturating_mul(diagonals)
            .saturating_mul(ciphertexts(inputs))
            .saturating_mul(ciphertexts(outputs));
        self.products = self.products.saturating_add(products);
        self.keys = self.keys.saturating_add(taps);
    }

    fn check(&self, node: &str) -> Result<(), PlanError> {
        within(node, "elements", self.elements, MAX_ELEMENTS)?;
        within(node, "elements of windows", self.window_elements, MAX_ELEMENTS)?;
        within(node, "values of circuits", self.circuit_values, MAX_CIRCUIT_VALUES)?;
        within(node, "ciphertext products", self.products, MAX_PRODUCTS)?;
        within(node, "filter taps", self.keys, MAX_TAPS)
    }
}

fn within(node: &str, what: &'static str, count: u64, limit: u64) -> Result<(), PlanError> {
    if count <= limit {
        Ok(())
    } else {
        Err(PlanError::TooLarge { node: node.to_owned(), what, count, limit })
    }
}

fn area(size: [usize; 2]) -> u64 {
    (size[0] as u64).saturating_mul(size[1] as u64)
}

/// Elements of all values together, and of all pooling windows.
const MAX_ELEMENTS: u64 = 1 << 25;
/// Values that one instance of each circuit reads, together: circuits are built gate by gate, one for each layer.
const MAX_CIRCUIT_VALUES: u64 = 1 << 14;
/// Ciphertext-plaintext products of all layers together; each needs a plaintext of 32 KiB or more on the server.
const MAX_PRODUCTS: u64 = 1 << 18;
/// Ciphertexts of all coefficient-encoded layers together; both parties write down what each of 4096 coefficients holds.
const MAX_CIPHERTEXTS: u64 = 1 << 15;
/// Filter taps of all layers together: each may need an evaluation key of its own.
const MAX_TAPS: u64 = 1 << 12;
/// Bytes of one prediction's material, and of what else a server keeps: 16 GiB.
const MAX_HELD: u64 = 16 << 30;
/// Comparisons of an oblivious top-k, each some hundred gates of one circuit.
const MAX_COMPARISONS: u64 = 1 << 17;
/// Classes of an oblivious arg-max.
const MAX_CLASSES: u64 = 1 << 13;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Mode, plan};

    /// A network of one node on an input of this shape, as a hostile server would describe it.
    fn network(input: &str, node: &str) -> PublicNetwork {
        let json = format!(
            r#"{{"format_version":4,"input":{{"name":"x","shape":{input},"scale":{{"grid":0}},"low":0,"high":1,"modulus":1032193}},"nodes":[{node}],"output_scale":0,"head":"scores"}}"#
        );
        PublicNetwork::from_json(&json).unwrap()
    }

    fn refused(input: &str, node: &str) -> bool {
        let network = network(input, node);
        let refused = |mode| matches!(plan(&network, Policy::Logits, mode), Err(PlanError::TooLarge { .. }));
        assert_eq!(refused(Mode::Gazelle), refused(Mode::Falcon));
        refused(Mode::Falcon)
    }

    #[test]
    fn small_descriptions_of_huge_work_are_refused_before_it_begins() {
        let pool = r#"{"name":"pool","op":{"SumPool":{"kernel":[64,64],"strides":[1,1],"pads":[0,0,0,0]}},"inputs":[0],"shape":[1,1985,1985],"modulus":1032193}"#;
        assert!(refused("[1,2048,2048]", pool));
        let pool = r#"{"name":"pool","op":{"MaxPool":{"kernel":[512,512],"strides":[1,1],"pads":[0,0,0,0]}},"inputs":[0],"shape":[1,513,513],"modulus":1032193}"#;
        assert!(refused("[1,1024,1024]", pool));
        let conv = r#"{"name":"conv","op":{"Conv2d":{"out_channels":1,"kernel":[4096,4096],"strides":[1,1],"pads":[4095,4095,0,0],"dilations":[1,1],"groups":1}},"inputs":[0],"shape":[1,1,1],"modulus":1032193}"#;
        assert!(refused("[1,1,1]", conv));
        let conv = r#"{"name":"conv","op":{"Conv2d":{"out_channels":1,"kernel":[65,65],"strides":[1,1],"pads":[32,32,32,32],"dilations":[1,1],"groups":1}},"inputs":[0],"shape":[1,64,64],"modulus":1032193}"#;
        assert!(refused("[1,64,64]", conv));
    }

    #[test]
    fn an_axis_too_long_to_transform_is_still_planned_in_a_moment() {
        let conv = r#"{"name":"conv","op":{"Conv2d":{"out_channels":1,"kernel":[3,1],"strides":[1,1],"pads":[1048576,0,1048576,0],"dilations":[1048576,1],"groups":1}},"inputs":[0],"shape":[1,1,1],"modulus":1032193}"#;
        let plan = plan(&network("[1,1,1]", conv), Policy::Logits, Mode::Falcon).unwrap();
        assert_eq!(plan.steps[0].protocol.describe().name(), "falcon.fc");
    }

    #[test]
    fn a_layer_without_a_frequency_domain_form_is_computed_by_rotations() {
        // Every output reads padding alone.
        let conv = r#"{"name":"conv","op":{"Conv2d":{"out_channels":1,"kernel":[1,1],"strides":[2,2],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":[0],"shape":[1,2,2],"modulus":1032193}"#;
        let plan = plan(&network("[1,1,1]", conv), Policy::Logits, Mode::Falcon).unwrap();
        assert_eq!(plan.steps[0].protocol.describe().name(), "gazelle.fc");
    }

    #[test]
    fn a_circuit_over_too_many_values_is_refused_whatever_its_instances() {
        let pool = |side: usize| {
            let pool = format!(
                r#"{{"name":"pool","op":{{"MaxPool":{{"kernel":[{side},{side}],"strides":[1,1],"pads":[0,0,0,0]}}}},"inputs":[0],"shape":[1,1,1],"modulus":1032193}}"#
            );
            network(&format!("[1,{side},{side}]"), &pool)
        };
        assert!(check(&pool(128), Policy::Logits).is_ok());
        let refusal = check(&pool(129), Policy::Logits).unwrap_err();
        assert!(refusal.to_string().contains("16641 values of circuits"), "{refusal}");
    }

    #[test]
    fn an_arg_max_over_too_many_classes_is_refused() {
        let linear = r#"{"name":"fc","op":{"Linear":{"outputs":65536}},"inputs":[0],"shape":[65536],"modulus":1032193}"#;
        let refusal = plan(&network("[4]", linear), Policy::Label, Mode::Gazelle).unwrap_err();
        assert!(refusal.to_string().contains("65536 classes of an arg-max"), "{refusal}");
    }

    #[test]
    fn policies_that_do_not_fit_the_scores_are_refused() {
        let linear = |outputs: usize| {
            format!(
                r#"{{"name":"fc","op":{{"Linear":{{"outputs":{outputs}}}}},"inputs":[0],"shape":[{outputs}],"modulus":1032193}}"#
            )
        };
        let refusal = |outputs, policy| {
            plan(&network("[4]", &linear(outputs)), policy, Mode::Gazelle).unwrap_err().to_string()
        };
        assert!(refusal(1, Policy::Label).contains("two scores"));
        assert!(refusal(1, Policy::Probability { digits: 2 }).contains("two scores"));
        assert!(refusal(1, Policy::TopK { k: 1 }).contains("two scores"));
        assert!(refusal(10, Policy::TopK { k: 0 }).contains("give 1 to 10"));
        assert!(refusal(10, Policy::TopK { k: 11 }).contains("k is 11"));
        assert!(refusal(10, Policy::Probability { digits: 0 }).contains("give 1 to 6"));
        assert!(refusal(10, Policy::Probability { digits: 7 }).contains("7 digits"));
        assert!(refusal(1025, Policy::Probability { digits: 2 }).contains("1025 classes of a softmax"));
        for policy in [Policy::TopK { k: 10 }, Policy::Probability { digits: 6 }] {
            assert!(plan(&network("[4]", &linear(10)), policy, Mode::Gazelle).is_ok());
        }
    }

    #[test]
    fn the_order_of_too_many_scores_is_refused() {
        let linear =
            r#"{"name":"fc","op":{"Linear":{"outputs":8192}},"inputs":[0],"shape":[8192],"modulus":1032193}"#;
        let network = network("[4]", linear);
        assert!(check(&network, Policy::TopK { k: 5 }).is_ok());
        let refusal = check(&network, Policy::TopK { k: 8192 }).unwrap_err();
        assert!(refusal.to_string().contains("401408 comparisons of a top-k"), "{refusal}");
    }

    #[test]
    fn layers_of_real_networks_fit() {
        let linear =
            r#"{"name":"fc","op":{"Linear":{"outputs":4096}},"inputs":[0],"shape":[4096],"modulus":1032193}"#;
        assert!(check(&network("[4096]", linear), Policy::Label).is_ok());
        let conv = r#"{"name":"conv","op":{"Conv2d":{"out_channels":128,"kernel":[3,3],"strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":[0],"shape":[128,16,16],"modulus":1032193}"#;
        assert!(check(&network("[128,16,16]", conv), Policy::Logits).is_ok());
    }
}
