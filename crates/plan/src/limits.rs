//! Bounds on the networks that are planned.
//!
//! A client plans what an unknown server describes, and a server what an unknown model holds: a small description of huge work must
//! be refused before the work begins. What counts is what a prediction takes of memory and of time ([`Limits`]), which both parties
//! can raise. It is bounded from shapes alone first, by less than it takes, and held against the plan's own account in the end. What a step
//! takes is the step's own word ([`Work`], [`Memory`]); here is what all together may. What is searched or built gate by gate while
//! planning has limits of its own, far beyond real networks.

use lanner_coefficient::cheetah;
use lanner_network::{Field, FixedOp, Outline, Policy, PublicNetwork};
use lanner_packed::gazelle;
use lanner_step::{Convolution, MAX_DIGITS, Memory, Work};
use lanner_transfers::{RingSelect, RingSparse};
use lanner_yao::softmax::MAX_CLASSES as MAX_SOFTMAX_CLASSES;

use crate::lower::{convolution, layer_shape, windows};
use crate::{Choices, Mode, PlanError, Rings, Samples};

/// What a prediction may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that either party holds for a session with one prediction, the server's model included.
    pub memory: u64,
    /// Seconds that both parties together compute on one core, very roughly.
    pub seconds: u64,
}

impl Limits {
    /// None at all: for plans that nobody runs, or whose sizes were checked before.
    pub const NONE: Self = Self { memory: u64::MAX, seconds: u64::MAX };
}

impl Default for Limits {
    /// 8 GiB and half an hour: ResNet-50 on images of 224x224 pixels fits.
    fn default() -> Self {
        Self { memory: 8 << 30, seconds: 1800 }
    }
}

/// Checks the sizes of a network's values and the policy, before anything is planned.
///
/// # Errors
/// [`PlanError::TooLarge`] naming the node that goes beyond a limit.
pub(crate) fn check(
    network: &PublicNetwork,
    policy: Policy,
    &Choices { mode, samples, .. }: &Choices,
    limits: &Limits,
) -> Result<(), PlanError> {
    let (mut totals, mut steps) = (Totals::new(mode, *limits), 0_u64);
    for node in network.nodes() {
        totals.add_elements(&node.name, samples.times(node.len()))?;
        // Which elements a window adds is laid out as soon as a step is built, in a list for each window.
        if let FixedOp::SumPool(window) = &node.op {
            let [height, width] = window.kernel.map(|side| side as u64);
            let each = height.saturating_mul(width).saturating_add(LIST);
            let read = each.saturating_mul(samples.times(node.len()) as u64);
            totals.add(&node.name, Work { window_elements: read, ..Work::default() })?;
        }
        if !node.op.is_linear() {
            continue;
        }
        let layer = convolution(node, network.shape(node.inputs[0]))?;
        if mode.design().has_slots() {
            // No layout takes much more.
            totals.add(&node.name, gazelle::work(&layer, samples))?;
        } else {
            steps = steps.saturating_add(cheetah::search_steps(&layer));
            within(&node.name, "steps of a search for layouts", steps, MAX_SEARCH_STEPS)?;
        }
    }
    check_policy(network.output_len(), policy)
}

/// Checks a graph's sizes and the policy as far as shapes tell, which is before calibration: what goes beyond a limit here would be
/// refused by [`plan`](crate::plan), whatever the integers.
///
/// # Errors
/// As [`plan`](crate::plan) where it refuses sizes or a policy: [`PlanError::TooLarge`] naming the node, or [`PlanError::Policy`].
pub fn check_outline(
    outline: &Outline,
    policy: Policy,
    mode: Mode,
    limits: &Limits,
) -> Result<(), PlanError> {
    let has_slots = mode.design().has_slots();
    // Over powers of two maxima are found by transfers or lookups.
    let has_circuits = mode.design().rings != Rings::PowersOfTwo;
    let layer_work = |op: &FixedOp, layer: &Convolution| {
        if has_slots { gazelle::work(layer, Samples::ONE) } else { coefficient_work(op, layer) }
    };
    let [mut layers, mut pools] = [Totals::new(mode, *limits); 2];
    for node in &outline.nodes {
        layers.add_elements(&node.name, node.shape.iter().product())?;
        match &node.op {
            Some(FixedOp::MaxPool(window)) if has_circuits => {
                pools.add(&node.name, windows(&node.input, window).work())?;
            }
            Some(FixedOp::MaxPool(window) | FixedOp::SumPool(window)) => {
                pools.add(&node.name, windows(&node.input, window).work().without_circuits())?;
            }
            Some(op) => layers.add(
                &node.name,
                layer_shape(op, &node.input).map_or(Work::default(), |layer| layer_work(op, &layer)),
            )?,
            None => {}
        }
    }
    check_policy(outline.outputs, policy)
}

/// What a layer over a power of two takes: in ciphertexts, or by transfers where it is block-diagonal or picks elements, and takes less memory so.
fn coefficient_work(op: &FixedOp, layer: &Convolution) -> Work {
    let encrypted = cheetah::work(layer);
    let picks = matches!(op, FixedOp::Linear { picks: true, .. }) && RingSelect::takes(layer.inputs());
    if !picks && (layer.groups == 1 || !RingSparse::takes(layer)) {
        return encrypted;
    }
    let products = (layer.weights() as u64).saturating_mul((layer.image[0] * layer.image[1]) as u64);
    let [_, read, ciphertext] = BYTES;
    let by_transfers = Work { window_elements: products, ..Work::default() };
    if products.saturating_mul(read) < encrypted.ciphertexts.saturating_mul(ciphertext) {
        by_transfers
    } else {
        encrypted
    }
}

/// What the steps planned so far take together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Totals {
    limits: Limits,
    /// Bytes that the server holds for the plaintext of a product.
    plaintext: u64,
    work: Work,
    elements: u64,
    /// Ciphertexts of the step with the most.
    most_ciphertexts: u64,
}

impl Totals {
    pub(crate) fn new(mode: Mode, limits: Limits) -> Self {
        // Layers that encode coefficients have theirs made when they are needed.
        let plaintext = if mode.design().has_slots() { PLAINTEXT } else { 0 };
        Self { limits, plaintext, work: Work::default(), elements: 0, most_ciphertexts: 0 }
    }

    /// Adds a value's elements.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`] naming the node that makes it if all together go beyond a limit.
    fn add_elements(&mut self, node: &str, elements: usize) -> Result<(), PlanError> {
        self.elements = self.elements.saturating_add(elements as u64);
        self.check(node)
    }

    /// Adds a step that is taken so many times.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`] naming the step's node if all together go beyond a limit.
    pub(crate) fn add(&mut self, node: &str, work: Work) -> Result<(), PlanError> {
        let all = &mut self.work;
        all.window_elements = all.window_elements.saturating_add(work.window_elements);
        all.circuit_values = all.circuit_values.saturating_add(work.circuit_values);
        all.products = all.products.saturating_add(work.products);
        all.ciphertexts = all.ciphertexts.saturating_add(work.ciphertexts);
        all.taps = all.taps.saturating_add(work.taps);
        self.most_ciphertexts = self.most_ciphertexts.max(work.ciphertexts);
        self.check(node)
    }

    fn check(&self, node: &str) -> Result<(), PlanError> {
        let Self { limits, plaintext, work, elements, most_ciphertexts } = self;
        within(node, "values of circuits", work.circuit_values, MAX_CIRCUIT_VALUES)?;
        within(node, "filter taps", work.taps, MAX_TAPS)?;
        let sum = |ciphertexts: u64, each: [u64; 4]| {
            let counts = [*elements, work.window_elements, ciphertexts, work.products];
            let parts = counts.iter().zip(each).map(|(count, each)| count.saturating_mul(each));
            parts.fold(0, u64::saturating_add)
        };
        within_or(
            Some(Field::MAX_SECONDS),
            node,
            "seconds of computation",
            sum(work.ciphertexts, NANOSECONDS) / 1_000_000_000,
            limits.seconds,
        )?;
        // A prediction that is made run by run does not hold the ciphertexts of all layers at a time.
        let [element, read, ciphertext] = BYTES;
        within_or(
            Some(Field::MAX_MEMORY),
            node,
            "bytes of memory",
            sum(*most_ciphertexts, [element, read, ciphertext, *plaintext]),
            limits.memory,
        )
    }
}

/// Checks that a policy fits the number of scores.
fn check_policy(scores: usize, policy: Policy) -> Result<(), PlanError> {
    let wrong = |reason: String, fix: String| Err(PlanError::Policy { policy: policy.name(), reason, fix });
    match policy {
        Policy::Logits | Policy::Value => return Ok(()),
        _ if scores < 2 => {
            return wrong(
                "it needs two scores or more, and the network has one".to_owned(),
                "choose value or logits".to_owned(),
            );
        }
        Policy::LabelMap { places } => {
            let places = places as usize;
            let classes = scores.checked_div(places).unwrap_or(0);
            if classes < 2 || classes * places != scores {
                return wrong(
                    format!("{scores} scores are not two or more at each of {places} places"),
                    "choose value".to_owned(),
                );
            }
            return within("output", "classes of an arg-max", classes as u64, MAX_CLASSES);
        }
        Policy::TopK { k } if !(1..=scores).contains(&(k as usize)) => {
            return wrong(
                format!("k is {k}, and the network has {scores} scores"),
                format!("give 1 to {scores}"),
            );
        }
        Policy::Probability { digits } if !(1..=MAX_DIGITS).contains(&digits) => {
            return wrong(format!("{digits} digits are asked for"), format!("give 1 to {MAX_DIGITS}"));
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
        Policy::Label | Policy::Labels => {}
    }
    within("output", "classes of an arg-max", scores as u64, MAX_CLASSES)
}

/// Checks what the parties would hold.
///
/// # Errors
/// [`PlanError::TooLarge`] if it is more than either may be made to.
pub(crate) fn check_memory(memory: &Memory, limits: &Limits) -> Result<(), PlanError> {
    check_memory_within(memory, limits, ADDRESSABLE)
}

/// The same on a machine that can address so many bytes, which no option raises.
fn check_memory_within(memory: &Memory, limits: &Limits, addressable: u64) -> Result<(), PlanError> {
    let raised_by = (limits.memory < addressable).then_some(Field::MAX_MEMORY);
    let limit = limits.memory.min(addressable);
    within_or(raised_by, "", "bytes on the client", memory.of_client(), limit)?;
    within_or(Some(Field::MAX_MEMORY), "", "bytes on the server", memory.of_server(), limits.memory)
}

/// Checks a count whose limit is fixed.
pub(crate) fn within(node: &str, what: &'static str, count: u64, limit: u64) -> Result<(), PlanError> {
    within_or(None, node, what, count, limit)
}

fn within_or(
    raised_by: Option<Field>,
    node: &str,
    what: &'static str,
    count: u64,
    limit: u64,
) -> Result<(), PlanError> {
    if count <= limit {
        Ok(())
    } else {
        Err(PlanError::TooLarge { node: node.to_owned(), what, count, limit, raised_by })
    }
}

/// Nanoseconds of an element of a value, an element that a window reads, a ciphertext, and a product of one by a plaintext. A rescale by
/// transfers takes some microseconds; each of its values is an element several times, as a sum, rescaled, and behind an activation.
const NANOSECONDS: [u64; 4] = [1500, 1500, 150_000, 20_000];
/// Bytes of the first three that a party holds at least: its share, the index that is read, half a ciphertext.
const BYTES: [u64; 3] = [8, 8, 1 << 16];
/// As many elements that are read take the place of an empty list of them.
const LIST: u64 = 4;
/// Bytes of a plaintext of slots, at least.
const PLAINTEXT: u64 = 1 << 15;
/// Bytes of material that a program can hold: three quarters of what it can address. The client in a browser has 32 bits; only clients have so few.
pub const ADDRESSABLE: u64 = (usize::MAX / 4 * 3) as u64;
/// Layouts that are looked at in search of the cheapest, each in some nanoseconds.
const MAX_SEARCH_STEPS: u64 = 1 << 26;
/// Values that one instance of each circuit reads, together: circuits are built gate by gate, one for each layer.
const MAX_CIRCUIT_VALUES: u64 = 1 << 14;
/// Filter taps of all layers that rotate together: each may need an evaluation key of its own, and keys are what their layouts are searched
/// for.
const MAX_TAPS: u64 = 1 << 12;
/// Comparisons of an oblivious top-k, each some hundred gates of one circuit.
const MAX_COMPARISONS: u64 = 1 << 17;
/// Classes of an oblivious arg-max: more than a language model has words.
const MAX_CLASSES: u64 = 1 << 16;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lanner_step::Windows;
    use lanner_transfers::Rounding;

    use super::*;
    use crate::{Mode, plan};

    /// A network of one node on an input of this shape, as a hostile server would describe it.
    fn network(input: &str, node: &str) -> PublicNetwork {
        let json = format!(
            r#"{{"format_version":7,"input":{{"name":"x","shape":{input},"scale":{{"grid":0}},"low":0,"high":1,"modulus":1032193}},"nodes":[{node}],"output_scale":0,"head":"scores"}}"#
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
    fn a_client_of_32_bits_holds_no_more_than_it_can_address() {
        const THREE_GIB: u64 = 3 << 30;
        // Runs as large as all.
        let memory = |client| Memory {
            client_material: client,
            server_material: 6 << 30,
            client_run: client,
            server_run: 6 << 30,
            ..Memory::default()
        };
        let refused = |client, memory_limit| {
            let limits = Limits { memory: memory_limit, ..Limits::default() };
            match check_memory_within(&memory(client), &limits, THREE_GIB) {
                Err(PlanError::TooLarge { limit, raised_by, .. }) => Some((limit, raised_by)),
                _ => None,
            }
        };
        assert_eq!(refused(THREE_GIB, 8 << 30), None);
        // A larger limit would not help.
        assert_eq!(refused(THREE_GIB + 1, 8 << 30), Some((THREE_GIB, None)));
        assert_eq!(refused(7 << 30, 7 << 30), Some((THREE_GIB, None)));
        assert_eq!(refused(1 << 30, 1 << 20), Some((1 << 20, Some(Field::MAX_MEMORY))));
        assert!(check_memory(&memory(7 << 30), &Limits::default()).is_ok());
    }

    /// A network whose client is checked is one step: all that it lays out is counted before.
    #[test]
    fn small_descriptions_of_huge_checked_networks_are_refused_before_they_are_laid_out() {
        let node = |name: &str, op: &str, inputs: &str, shape: &str| {
            format!(r#"{{"name":"{name}","op":{op},"inputs":[{inputs}],"shape":{shape},"modulus":1032193}}"#)
        };
        let refusal = |input: &str, nodes: &[String]| {
            let network = network(input, &nodes.join(","));
            plan(&network, Policy::Logits, Mode::Hardened).unwrap_err().to_string()
        };
        let all = |count: usize| (1..=count).map(|value| value.to_string()).collect::<Vec<_>>().join(",");

        // Many circuits on many values each.
        let pool = r#"{"MaxPool":{"kernel":[128,128],"strides":[1,1],"pads":[0,0,0,0]}}"#;
        let mut nodes: Vec<_> =
            (0..3).map(|number| node(&format!("pool{number}"), pool, "0", "[1,1,1]")).collect();
        nodes.push(node("join", r#"{"Concat":{"axis":0}}"#, &all(3), "[3,1,1]"));
        nodes.push(node("flat", r#""Reshape""#, "4", "[3]"));
        nodes.push(node("fc", r#"{"Linear":{"outputs":2}}"#, "5", "[2]"));
        let refused = refusal("[1,128,128]", &nodes);
        assert!(refused.contains("values of circuits"), "{refused}");

        // Windows of one element each, laid out for every value that reads them.
        let pool = r#"{"SumPool":{"kernel":[1,1],"strides":[1,1],"pads":[0,0,0,0]}}"#;
        let mut nodes: Vec<_> = (0..8)
            .map(|number| node(&format!("pool{number}"), pool, &number.to_string(), "[1,1024,1024]"))
            .collect();
        let slice = r#"{"Slice":{"starts":[0,0,0],"steps":[1,1,1]}}"#;
        nodes.extend((0..120).map(|number| node(&format!("slice{number}"), slice, "8", "[1,1,1]")));
        let slices = (9..129).map(|value| value.to_string()).collect::<Vec<_>>().join(",");
        nodes.push(node("join", r#"{"Concat":{"axis":0}}"#, &slices, "[120,1,1]"));
        nodes.push(node("flat", r#""Reshape""#, "129", "[120]"));
        nodes.push(node("fc", r#"{"Linear":{"outputs":2}}"#, "130", "[2]"));
        let refused = refusal("[1,1024,1024]", &nodes);
        assert!(refused.contains("seconds of computation"), "{refused}");

        // Long sums that many values copy.
        let slice = r#"{"Slice":{"starts":[0],"steps":[1]}}"#;
        let mut nodes: Vec<_> =
            (0..256).map(|number| node(&format!("slice{number}"), slice, "0", "[1]")).collect();
        nodes.push(node("join", r#"{"Concat":{"axis":0}}"#, &all(256), "[256]"));
        for number in 257..271 {
            let name = format!("turn{number}{}", "n".repeat(1000));
            nodes.push(node(&name, r#"{"Transpose":{"axes":[0]}}"#, &number.to_string(), "[256]"));
        }
        for number in 271..1271 {
            nodes.push(node(&format!("same{number}"), r#""Reshape""#, &number.to_string(), "[256]"));
        }
        nodes.push(node("fc", r#"{"Linear":{"outputs":2}}"#, "1271", "[2]"));
        let refused = refusal("[256]", &nodes);
        assert!(refused.contains("of sums"), "{refused}");
    }

    #[test]
    fn an_axis_too_long_to_transform_is_still_planned_in_a_moment() {
        let conv = r#"{"name":"conv","op":{"Conv2d":{"out_channels":1,"kernel":[3,1],"strides":[1,1],"pads":[1048576,0,1048576,0],"dilations":[1048576,1],"groups":1}},"inputs":[0],"shape":[1,1,1],"modulus":1032193}"#;
        let plan = plan(&network("[1,1,1]", conv), Policy::Logits, Mode::Falcon).unwrap();
        assert_eq!(plan.steps().next().unwrap().protocol.name(), "falcon.fc");
    }

    #[test]
    fn a_layer_without_a_frequency_domain_form_is_computed_by_rotations() {
        // Every output reads padding alone.
        let conv = r#"{"name":"conv","op":{"Conv2d":{"out_channels":1,"kernel":[1,1],"strides":[2,2],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":[0],"shape":[1,2,2],"modulus":1032193}"#;
        let plan = plan(&network("[1,1,1]", conv), Policy::Logits, Mode::Falcon).unwrap();
        assert_eq!(plan.steps().next().unwrap().protocol.name(), "gazelle.fc");
    }

    #[test]
    fn a_circuit_over_too_many_values_is_refused_whatever_its_instances() {
        let pool = |side: usize| {
            let windows =
                Windows { channels: 1, image: [side; 2], kernel: [side; 2], strides: [1, 1], pads: [0; 4] };
            Totals::new(Mode::Gazelle, Limits::default()).add("pool", windows.work())
        };
        assert!(pool(128).is_ok());
        let refusal = pool(129).unwrap_err();
        assert!(refusal.to_string().contains("16641 values of circuits"), "{refusal}");
    }

    #[test]
    fn an_arg_max_over_too_many_classes_is_refused() {
        let linear = r#"{"name":"fc","op":{"Linear":{"outputs":131072}},"inputs":[0],"shape":[131072],"modulus":1032193}"#;
        let refusal = plan(&network("[4]", linear), Policy::Label, Mode::Gazelle).unwrap_err();
        assert!(refusal.to_string().contains("131072 classes of an arg-max"), "{refusal}");
    }

    #[test]
    fn policies_that_do_not_fit_the_scores_are_refused() {
        let linear = |outputs: usize| {
            format!(
                r#"{{"name":"fc","op":{{"Linear":{{"outputs":{outputs}}}}},"inputs":[0],"shape":[{outputs}],"modulus":1032193}}"#
            )
        };
        let refusal = |outputs, policy| {
            let error = plan(&network("[4]", &linear(outputs)), policy, Mode::Gazelle).unwrap_err();
            format!("{error}; {}", error.fix())
        };
        assert!(refusal(1, Policy::Label).contains("two scores"));
        assert!(refusal(1, Policy::Labels).contains("two scores"));
        assert!(plan(&network("[4]", &linear(1)), Policy::Value, Mode::Gazelle).is_ok());
        assert!(refusal(1, Policy::Probability { digits: 2 }).contains("two scores"));
        assert!(refusal(1, Policy::TopK { k: 1 }).contains("two scores"));
        for (outputs, places) in [(10, 0), (10, 10), (10, 3)] {
            assert!(refusal(outputs, Policy::LabelMap { places }).contains("two or more at each"));
        }
        assert!(plan(&network("[4]", &linear(10)), Policy::LabelMap { places: 5 }, Mode::Gazelle).is_ok());
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
        assert!(check(&network, Policy::TopK { k: 5 }, &Mode::Gazelle.into(), &Limits::default()).is_ok());
        let refusal =
            check(&network, Policy::TopK { k: 8192 }, &Mode::Gazelle.into(), &Limits::default()).unwrap_err();
        assert!(refusal.to_string().contains("401408 comparisons of a top-k"), "{refusal}");
    }

    #[test]
    fn layers_of_real_networks_fit() {
        let linear =
            r#"{"name":"fc","op":{"Linear":{"outputs":4096}},"inputs":[0],"shape":[4096],"modulus":1032193}"#;
        let fits = |network: PublicNetwork| {
            let check = |mode| check(&network, Policy::Logits, &Choices::from(mode), &Limits::default());
            [Mode::Gazelle, Mode::Cheetah(Rounding::Exact)].map(check).iter().all(Result::is_ok)
        };
        assert!(fits(network("[4096]", linear)));
        let conv = r#"{"name":"conv","op":{"Conv2d":{"out_channels":128,"kernel":[3,3],"strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":[0],"shape":[128,16,16],"modulus":1032193}"#;
        assert!(fits(network("[128,16,16]", conv)));
    }
}
