//! Both parties over a channel in memory: every output integer equals the fixed-point reference.

use std::sync::Arc;

use lanner_graph::Graph;
use lanner_local::reshare::{Reading, Reveal};
use lanner_net::{Entry, Recorded, memory};
use lanner_network::{FixedExecutor, FixedRun, Network, Policy, Tensor, Tensors};
use lanner_plan::{
    Choices, Item, Layer, Limits, MODES, Mode, Plan, PlanCost, Rings, Samples, Step, plan, plan_within,
};
use lanner_primitives::{Prg, Ring, Seed};
use lanner_protocol::Protocol;
use lanner_quantize::{QuantizationOptions, compile};
use lanner_session::executor::{
    ClientPlan, ClientSession, ExecutionError, Measured, Outcome, Phase, ServedModel, ServerSession,
};
use lanner_session::requests::{Request, Responder};
use lanner_tabula as tabula;
use lanner_transfers::{DropGuard, Rounding};
use lanner_yao::softmax::likeliest;

/// Every mode over such rings whose outputs are exact, but for `auto`, which is a mixture of them.
pub(crate) fn over(rings: Rings) -> Vec<Mode> {
    let is_one = |mode: &Mode| mode.is_exact() && *mode != Mode::Auto && mode.design().rings == rings;
    MODES.into_iter().filter(is_one).collect()
}

/// Those whose outputs are near the reference's.
pub(crate) fn near() -> impl Iterator<Item = Mode> {
    MODES.into_iter().filter(|mode| !mode.is_exact())
}

fn rng(seed: u8) -> Prg {
    Prg::new(Seed::from_bytes([seed; 16]))
}

/// A deterministic value in [-1, 1).
fn value(index: usize, seed: usize) -> f32 {
    let mixed = (index + 1).wrapping_mul(2_654_435_761).wrapping_add(seed.wrapping_mul(40_503)) % 100_003;
    mixed as f32 / 50_001.5 - 1.0
}

fn tensors(shapes: &[(&str, &[usize])]) -> Tensors {
    let mut tensors = Tensors::default();
    for (seed, (name, shape)) in shapes.iter().enumerate() {
        let count = shape.iter().product();
        // A factor for all takes off.
        let value = |i| if shape.is_empty() { -1.0 } else { value(i, seed) };
        let data = (0..count).map(value).collect();
        tensors.insert(name, Tensor::new(shape.to_vec(), data).unwrap()).unwrap();
    }
    tensors
}

fn network(json: &str, shapes: &[(&str, &[usize])], input: usize) -> (Network, Vec<Vec<f32>>) {
    let graph = Graph::from_json(json).unwrap();
    let samples: Vec<Vec<f32>> =
        (0..8).map(|s| (0..input).map(|i| value(i, 100 + s).abs()).collect()).collect();
    let options = QuantizationOptions::default();
    (compile(&graph, &tensors(shapes), &samples.concat(), &options).unwrap(), samples)
}

/// As [`network`], over powers of two.
fn network_over_powers(json: &str, shapes: &[(&str, &[usize])], samples: &[Vec<f32>]) -> Network {
    let (graph, options) = (Graph::from_json(json).unwrap(), QuantizationOptions::powers_of_two());
    compile(&graph, &tensors(shapes), &samples.concat(), &options).unwrap()
}

/// Runs predictions in one session; returns the outcomes. What is sent is what the plan predicts.
fn run(network: &Network, policy: Policy, mode: Mode, inputs: &[Vec<i64>]) -> Vec<Outcome> {
    run_plan(network, &plan(network.public(), policy, mode).unwrap(), inputs)
}

pub(crate) fn run_plan(network: &Network, plan: &Plan, inputs: &[Vec<i64>]) -> Vec<Outcome> {
    check_mode(plan);
    let model = Arc::new(ServedModel::new(network, plan).unwrap());
    let client_plan = Arc::new(ClientPlan::new(network.public(), plan).unwrap());
    let (mut client, mut server) = memory::pair();
    let (count, steps) = (inputs.len(), plan.steps().cloned().collect::<Vec<_>>());
    let serving = std::thread::spawn(move || {
        let mut session = ServerSession::setup(&mut server, model, rng(1)).unwrap();
        for _ in 0..count {
            let prepared = session.prepare(&mut server).unwrap();
            check_computed(&steps, prepared.costs(), Phase::Offline);
            check_computed(&steps, &session.predict(&mut server, prepared).unwrap(), Phase::Online);
        }
        let computed = session.predict_unprepared(&mut server).unwrap();
        let (offline, online) = computed.split_at(steps.len());
        check_computed(&steps, offline, Phase::Offline);
        check_computed(&steps, online, Phase::Online);
    });
    let (mut session, setup) = ClientSession::setup(&mut client, client_plan, rng(2)).unwrap();
    let built = plan.build().unwrap();
    let mut supply = built.supply();
    let predict = |input: &Vec<i64>| {
        let predicted = built.next_cost(&mut supply).unwrap();
        let prepared = session.prepare(&mut client).unwrap();
        let (outcome, steps) = session.predict(&mut client, prepared, input).unwrap();
        check_costs(&predicted, &setup, &steps, plan.mode);
        outcome
    };
    let outcomes: Vec<Outcome> = inputs.iter().map(predict).collect();
    // The same run by run: what is sent, and what comes out where that is the reference's.
    let predicted = built.next_cost(&mut supply).unwrap();
    let (outcome, steps) = session.predict_unprepared(&mut client, &inputs[0]).unwrap();
    let costs = predicted.offline.iter().chain(&predicted.online);
    let sent: Vec<_> = costs.map(|cost| [cost.client_bytes(), cost.server_bytes()]).collect();
    assert_eq!(steps.iter().map(|step| [step.traffic.sent, step.traffic.received]).collect::<Vec<_>>(), sent);
    if plan.mode.is_exact() {
        assert_eq!(outcome, outcomes[0]);
    }
    serving.join().unwrap();
    outcomes
}

/// The server tells of every step of the phase, in order, how long it computed.
fn check_computed(steps: &[Step], computed: &[Measured], phase: Phase) {
    let planned: Vec<_> =
        steps.iter().map(|step| (step.name.as_str(), step.protocol.name(), phase)).collect();
    let told: Vec<_> = computed.iter().map(|step| (step.name.as_str(), step.protocol, step.phase)).collect();
    assert_eq!(told, planned);
    assert!(computed.iter().map(|step| step.computing).sum::<f64>() > 0.0);
}

/// Predicted bytes and rounds are the measured, for every step and phase.
fn check_costs(predicted: &PlanCost, setup: &Measured, steps: &[Measured], mode: Mode) {
    let all = std::iter::once(&predicted.setup).chain(&predicted.offline).chain(&predicted.online);
    let measured: Vec<_> = std::iter::once(setup).chain(steps).collect();
    assert_eq!(all.clone().count(), measured.len());
    for (cost, step) in all.zip(measured) {
        let traffic = step.traffic;
        assert_eq!(
            (cost.client_bytes(), cost.server_bytes(), cost.rounds()),
            (traffic.sent, traffic.received, traffic.rounds),
            "{} {:?}",
            step.name,
            step.phase
        );
    }
    let totals = [(predicted.offline_total(), Phase::Offline), (predicted.online_total(), Phase::Online)];
    for (total, phase) in totals {
        let steps = steps.iter().filter(|step| step.phase == phase);
        let rounds: u64 = steps.clone().map(|step| step.traffic.rounds).sum();
        let bytes: u64 = steps.map(|step| step.traffic.sent + step.traffic.received).sum();
        assert_eq!((total.bytes(), total.rounds()), (bytes, rounds));
    }
    // All layers are prepared in one round, but for keys, which take some for each of their levels.
    assert!(predicted.offline_total().rounds() <= 1 || mode.design().looks_up());
}

/// The linear layers of a plan follow its mode.
fn check_mode(plan: &Plan) {
    let linear = |step: &&Step| {
        matches!(
            step.protocol,
            Protocol::GazelleLinear(_)
                | Protocol::FalconLinear(_)
                | Protocol::CheetahLinear(_)
                | Protocol::DelphiLinear(_)
        )
    };
    let layers = plan.steps().filter(linear).map(|step| step.protocol.name());
    let layers: Vec<_> = layers.collect();
    let by_transfers = ["ot.sparse", "ot.sparse_ahead", "ot.select", "ot.select_ahead", "ot.chosen"];
    let is_layer = |step: &Step| by_transfers.contains(&step.protocol.name());
    assert!(!layers.is_empty() || plan.steps().any(is_layer));
    let family = match plan.mode.design().rules.unwrap().layer {
        Layer::Rotations => "gazelle",
        Layer::Frequencies => "falcon",
        Layer::Coefficients => "cheetah",
        Layer::Ahead => "delphi",
        Layer::Checked => unreachable!("of a step of its own"),
    };
    assert!(layers.iter().all(|name| name.starts_with(family)), "{layers:?}");
    // Over powers of two, transfers compute everything but slopes.
    let circuit =
        |step: &Step| matches!(&step.protocol, Protocol::Yao(layer) if layer.function.slope.is_none());
    assert!(plan.mode.design().rings != Rings::PowersOfTwo || !plan.steps().any(circuit));
}

fn check(json: &str, shapes: &[(&str, &[usize])], input: usize) {
    let (network, samples) = network(json, shapes, input);
    check_exact(&network, &samples, &over(Rings::Primes));
    let network = network_over_powers(json, shapes, &samples);
    check_exact(&network, &samples, &over(Rings::PowersOfTwo));
    for mode in near() {
        check_near(&network, &samples[..3], mode);
    }
}

/// Samples of one request: each has the result that it has alone, and so has the place without one, which holds zeros.
fn check_together(
    network: &Network,
    mode: Mode,
    inputs: &[Vec<i64>],
    truth: &[FixedRun],
    policies: &[Policy],
) {
    let samples = Samples::try_from(inputs.len().next_power_of_two()).unwrap();
    let empty = vec![0; network.public().input().len()];
    let spare = FixedExecutor::new(network).unwrap().run(&empty).unwrap();
    let truth: Vec<_> = truth.iter().chain(std::iter::repeat(&spare)).take(samples.count()).collect();
    let mut request = inputs.concat();
    request.resize(samples.times(empty.len()), 0);
    for &policy in policies {
        let choices = Choices { samples, ..mode.into() };
        let plan = plan_within(network.public(), policy, &choices, &Limits::default()).unwrap();
        let each: Vec<_> = truth.iter().map(|run| expected(policy, run)).collect();
        let together = match policy {
            Policy::Logits => Outcome::Logits(truth.iter().flat_map(|run| run.output.clone()).collect()),
            _ => Outcome::Each(each),
        };
        assert_eq!(run_plan(network, &plan, std::slice::from_ref(&request)), [together], "{mode:?}");
    }
}

/// What a policy tells of the reference's result.
fn expected(policy: Policy, truth: &FixedRun) -> Outcome {
    match policy {
        Policy::Logits | Policy::Value => Outcome::Logits(truth.output.clone()),
        Policy::Label => Outcome::Label(truth.label()),
        Policy::LabelMap { places } => {
            let scores = truth.output.chunks_exact(truth.output.len() / places as usize);
            Outcome::LabelMap(scores.map(lanner_network::arg_max).collect())
        }
        Policy::Labels => positive_scores(truth),
        _ => panic!("it has a test of its own"),
    }
}

/// Inputs, and the reference's results, none of which overflows.
fn referenced(network: &Network, samples: &[Vec<f32>]) -> (Vec<Vec<i64>>, Vec<FixedRun>) {
    let executor = FixedExecutor::new(network).unwrap();
    let inputs: Vec<Vec<i64>> =
        samples.iter().map(|s| network.public().input().quantize(s).unwrap()).collect();
    let truth: Vec<_> = inputs.iter().map(|x| executor.run(x).unwrap()).collect();
    assert!(truth.iter().all(|run| run.overflow_count() == 0));
    (inputs, truth)
}

/// Every mode tells logits and label of two predictions of one session, and the logits of three samples of one request.
pub(crate) fn check_exact(network: &Network, samples: &[Vec<f32>], modes: &[Mode]) {
    let (inputs, truth) = referenced(network, &samples[..3]);
    for &mode in modes {
        for (policy, count) in [(Policy::Logits, 2), (Policy::Label, 1)] {
            let told = run(network, policy, mode, &inputs[..count]);
            assert_eq!(told, truth[..count].iter().map(|run| expected(policy, run)).collect::<Vec<_>>());
        }
        if mode.design().most_samples > 1 {
            check_together(network, mode, &inputs, &truth, &[Policy::Logits]);
        }
    }
}

/// Every mode tells what each policy says, of predictions of one session and of samples of one request.
fn check_policies(network: &Network, samples: &[Vec<f32>], modes: &[Mode]) {
    const AT_FIVE: Policy = Policy::LabelMap { places: 5 };
    const POLICIES: [Policy; 5] = [Policy::Logits, Policy::Label, AT_FIVE, Policy::Labels, Policy::Value];
    let (inputs, truth) = referenced(network, &samples[..3]);
    for &mode in modes {
        for policy in POLICIES {
            let told = run(network, policy, mode, &inputs[..1]);
            assert_eq!(told, [expected(policy, &truth[0])]);
        }
        if mode.design().most_samples > 1 {
            check_together(network, mode, &inputs, &truth, &POLICIES[..4]);
        }
    }
    check_ranking(network, modes[0], &inputs, &truth);
    check_probability(network, modes[0], &inputs, &truth);
}

/// Which scores are above zero.
fn positive_scores(truth: &FixedRun) -> Outcome {
    let scores = truth.output.iter().enumerate();
    Outcome::Labels(scores.filter(|(_, score)| **score > 0).map(|(class, _)| class).collect())
}

/// The best classes, in order, and all of them.
fn check_ranking(network: &Network, mode: Mode, inputs: &[Vec<i64>], truth: &[FixedRun]) {
    let classes = network.public().output_len();
    for k in [1, 2, classes] {
        let outcomes = run(network, Policy::TopK { k: k as u32 }, mode, &inputs[..1]);
        assert_eq!(outcomes, [Outcome::TopK(truth[0].best(k))]);
    }
}

/// The digits of the reference's integers, in every run, and within one part of their exact softmax.
fn check_probability(network: &Network, mode: Mode, inputs: &[Vec<i64>], truth: &[FixedRun]) {
    for digits in [1, 6] {
        for (outcome, truth) in run(network, Policy::Probability { digits }, mode, inputs).iter().zip(truth) {
            let likely = match outcome {
                Outcome::Probability(likely) => Some(likely),
                _ => None,
            };
            let likely = likely.unwrap();
            let (scale, ring) =
                (network.output_scale(), network.public().accumulator(network.public().nodes().len()));
            assert_eq!(*likely, likeliest(&truth.output, digits, scale, ring.bits()).unwrap());
            assert_eq!((likely.label, likely.digits), (truth.label(), digits));
            let error = likely.probability() - truth.probability(network.output_scale());
            assert!(error.abs() <= 10_f64.powi(-(digits as i32)), "{digits}: {error}");
        }
    }
}

/// Every output is within the bound that is proved for the network, and labels differ only where the two largest scores are that near.
pub(crate) fn check_near(network: &Network, samples: &[Vec<f32>], mode: Mode) {
    let executor = FixedExecutor::new(network).unwrap();
    let inputs: Vec<Vec<i64>> =
        samples.iter().map(|s| network.public().input().quantize(s).unwrap()).collect();
    let errors =
        if matches!(mode, Mode::Tabula(_)) { network.stochastic_errors() } else { network.faithful_errors() };
    let bound = i128::from(*errors.last().unwrap());
    let labelling = plan(network.public(), Policy::Label, mode).unwrap();
    let labels = run_plan(network, &labelling, &inputs);
    let logits = run_plan(network, &revealing(labelling, network), &inputs);
    for ((input, logits), label) in inputs.iter().zip(logits).zip(labels) {
        let truth = executor.run(input).unwrap();
        let (Outcome::Logits(logits), Outcome::Label(label)) = (logits, label) else {
            panic!("another outcome")
        };
        assert_eq!(logits.len(), truth.output.len());
        for (secure, exact) in logits.iter().zip(&truth.output) {
            assert!((secure - exact).abs() <= bound, "{secure} instead of {exact}, bound {bound}");
        }
        let margin = truth.output[truth.label()] - truth.output[label];
        assert!(label == truth.label() || margin <= 2 * bound);
    }
}

/// A plan that reveals the scores in the place of their label: no planner makes one of such steps.
fn revealing(plan: Plan, network: &Network) -> Plan {
    let mut items = plan.items;
    let Item::Step(last) = items.last_mut().unwrap() else { panic!("another end") };
    let Protocol::YaoArgMax(argmax) = last.protocol else { panic!("another end") };
    let (values, guard, bits) =
        (network.public().output_len(), argmax.guard, argmax.from.bits() - argmax.guard);
    let reveal = Protocol::Reveal(Reveal { values, from: Ring::Pow2(bits), reading: Reading::Scores });
    if guard == 0 {
        last.protocol = reveal;
    } else {
        last.protocol = Protocol::DropGuard(DropGuard { values, bits, guard });
        let inputs = vec![items.len()];
        items.push(Item::Step(Step { name: "output".to_owned(), inputs, protocol: reveal }));
    }
    Plan { policy: Policy::Logits, items, ..plan }
}

const CONVOLUTIONS: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,12,12]}],"nodes":[
    {"name":"conv1","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu1","op":"Relu","inputs":["conv1"]},
    {"name":"pool1","op":{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}},"inputs":["relu1"]},
    {"name":"conv2","op":{"Conv":{"weight":"w2","bias":null,"strides":[2,2],"pads":[0,1,1,0],"dilations":[1,1],"groups":1}},"inputs":["pool1"]},
    {"name":"relu2","op":"Relu","inputs":["conv2"]},
    {"name":"flat","op":"Flatten","inputs":["relu2"]},
    {"name":"fc","op":{"MatMul":{"weight":"w3","bias":"b3"}},"inputs":["flat"]}],"output":"fc"}"#;
const CONVOLUTIONS_SHAPES: [(&str, &[usize]); 5] =
    [("w1", &[4, 1, 3, 3]), ("b1", &[4]), ("w2", &[3, 4, 3, 3]), ("w3", &[27, 10]), ("b3", &[10])];

#[test]
fn convolutional_network_with_pooling_equals_the_reference() {
    check(CONVOLUTIONS, &CONVOLUTIONS_SHAPES, 144);
}

#[test]
fn every_policy_tells_what_the_reference_does() {
    let (network, samples) = network(CONVOLUTIONS, &CONVOLUTIONS_SHAPES, 144);
    check_policies(&network, &samples, &over(Rings::Primes));
    let network = network_over_powers(CONVOLUTIONS, &CONVOLUTIONS_SHAPES, &samples);
    check_policies(&network, &samples, &over(Rings::PowersOfTwo));
}

#[test]
fn average_pool_between_circuits_equals_the_reference() {
    let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[2,8,8]}],"nodes":[
        {"name":"conv1","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[0,0,0,0],"dilations":[1,1],"groups":1}},"inputs":["x"]},
        {"name":"relu1","op":"Relu","inputs":["conv1"]},
        {"name":"mean","op":{"AveragePool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0],"count_include_pad":false}},"inputs":["relu1"]},
        {"name":"max","op":{"MaxPool":{"kernel":[3,3],"strides":[1,1],"pads":[1,1,1,1]}},"inputs":["mean"]},
        {"name":"flat","op":"Flatten","inputs":["max"]},
        {"name":"fc","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["flat"]}],"output":"fc"}"#;
    check(json, &[("w1", &[3, 2, 3, 3]), ("b1", &[3]), ("w2", &[27, 3])], 128);
}

#[test]
fn a_pool_after_a_pool_and_a_clipped_activation_equal_the_reference() {
    let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,9,9]}],"nodes":[
        {"name":"conv1","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[0,0,0,0],"dilations":[1,1],"groups":1}},"inputs":["x"]},
        {"name":"relu1","op":{"Clip":{"min":0.0,"max":0.5}},"inputs":["conv1"]},
        {"name":"pool1","op":{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}},"inputs":["relu1"]},
        {"name":"pool2","op":{"MaxPool":{"kernel":[2,2],"strides":[1,1],"pads":[0,0,0,0]}},"inputs":["pool1"]},
        {"name":"flat","op":"Flatten","inputs":["pool2"]},
        {"name":"fc","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["flat"]}],"output":"fc"}"#;
    check(json, &[("w1", &[2, 1, 2, 2]), ("b1", &[2]), ("w2", &[18, 4])], 81);
}

#[test]
fn linear_layers_without_activation_equal_the_reference() {
    let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[20]}],"nodes":[
        {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":"b1"}},"inputs":["x"]},
        {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["fc1"]}],"output":"fc2"}"#;
    check(json, &[("w1", &[20, 30]), ("b1", &[30]), ("w2", &[30, 7]), ("b2", &[7])], 20);
}

/// Of many classes a circuit sends so much that transfers tell label and probability, the same ones.
#[test]
fn probabilities_of_many_classes_come_by_transfers() {
    let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[16]}],"nodes":[
        {"name":"fc","op":{"MatMul":{"weight":"w","bias":"b"}},"inputs":["x"]}],"output":"fc"}"#;
    let softmax = |classes: usize, digits: u32| {
        let shapes: [(&str, &[usize]); 2] = [("w", &[16, classes]), ("b", &[classes])];
        let (_, samples) = network(json, &shapes, 16);
        let network = network_over_powers(json, &shapes, &samples);
        let (policy, mode) = (Policy::Probability { digits }, Mode::Cheetah(Rounding::Exact));
        let plan = plan(network.public(), policy, mode).unwrap();
        let inputs: Vec<Vec<i64>> =
            samples[..3].iter().map(|s| network.public().input().quantize(s).unwrap()).collect();
        let executor = FixedExecutor::new(&network).unwrap();
        let bits = network.public().accumulator(network.public().nodes().len()).bits();
        for (outcome, input) in run_plan(&network, &plan, &inputs).into_iter().zip(&inputs) {
            let scores = executor.run(input).unwrap().output;
            let likely = likeliest(&scores, digits, network.output_scale(), bits).unwrap();
            assert_eq!(outcome, Outcome::Probability(likely), "{classes} {digits}");
        }
        plan.steps().any(|step| step.protocol.name() == "ot.softmax")
    };
    assert!(!softmax(10, 2) && softmax(600, 3));
}

#[test]
fn policies_that_do_not_fit_the_scores_are_refused() {
    let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[4]}],"nodes":[
        {"name":"fc","op":{"MatMul":{"weight":"w","bias":null}},"inputs":["x"]}],"output":"fc"}"#;
    let (network, _) = network(json, &[("w", &[4, 3])], 4);
    for policy in [Policy::Probability { digits: 7 }, Policy::TopK { k: 4 }] {
        let error = plan(network.public(), policy, Mode::Gazelle).unwrap_err();
        assert!(error.to_string().contains(policy.name()), "{error}");
    }
}

/// The kinds and lengths of all messages of a session with one prediction, as the client and as the server see them.
fn transcripts(network: &Network, policy: Policy, mode: Mode, input: &[i64]) -> [Vec<Entry>; 2] {
    let plan = plan(network.public(), policy, mode).unwrap();
    let model = Arc::new(ServedModel::new(network, &plan).unwrap());
    let client_plan = Arc::new(ClientPlan::new(network.public(), &plan).unwrap());
    let (client, server) = memory::pair();
    let serving = std::thread::spawn(move || {
        let mut server = Recorded::new(server);
        let mut session = ServerSession::setup(&mut server, model, rng(1)).unwrap();
        let prepared = session.prepare(&mut server).unwrap();
        session.predict(&mut server, prepared).unwrap();
        server.into_parts().1
    });
    let mut client = Recorded::new(client);
    let (mut session, _) = ClientSession::setup(&mut client, client_plan, rng(2)).unwrap();
    let prepared = session.prepare(&mut client).unwrap();
    session.predict(&mut client, prepared, input).unwrap();
    [client.into_parts().1, serving.join().unwrap()]
}

fn check_transcripts(network: &Network, mode: Mode, sample: &[f32], policies: &[Policy]) {
    let other = without_weights(network);
    assert_eq!(network.public(), other.public());
    let input = network.public().input().quantize(sample).unwrap();
    // Other than exact rounding goes with labels alone.
    let policies = if mode.is_exact() { policies } else { &[Policy::Label] };
    for &policy in policies {
        let transcript = transcripts(network, policy, mode, &input);
        assert!(transcript[0].len() > 20);
        assert_eq!(transcripts(network, policy, mode, &vec![0; input.len()]), transcript);
        assert_eq!(transcripts(&other, policy, mode, &input), transcript);
    }
}

/// The same architecture with all weights zero.
fn without_weights(network: &Network) -> Network {
    let (manifest, mut weights) = network.to_parts().unwrap();
    // Safetensors: eight bytes of length, a header of that length, the numbers.
    let header = u64::from_le_bytes(weights[..8].try_into().unwrap()) as usize;
    weights[8 + header..].fill(0);
    Network::from_parts(manifest, &weights).unwrap()
}

#[test]
fn transcripts_are_alike_whatever_the_weights_and_the_input() {
    let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,8,8]}],"nodes":[
        {"name":"conv1","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[0,0,0,0],"dilations":[1,1],"groups":1}},"inputs":["x"]},
        {"name":"relu1","op":"Relu","inputs":["conv1"]},
        {"name":"mean","op":{"AveragePool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0],"count_include_pad":false}},"inputs":["relu1"]},
        {"name":"max","op":{"MaxPool":{"kernel":[2,2],"strides":[1,1],"pads":[0,0,0,0]}},"inputs":["mean"]},
        {"name":"flat","op":"Flatten","inputs":["max"]},
        {"name":"fc","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["flat"]}],"output":"fc"}"#;
    let shapes: &[(&str, &[usize])] = &[("w1", &[2, 1, 3, 3]), ("b1", &[2]), ("w2", &[8, 3]), ("b2", &[3])];
    let probability = Policy::Probability { digits: 2 };
    alike(json, shapes, &[Policy::Label, Policy::Labels, probability, Policy::TopK { k: 2 }, Policy::Logits]);
    alike(SQUARES, &SQUARES_SHAPES, &[Policy::Label]);
}

/// Transcripts of a network on 64 values are alike.
fn alike(json: &str, shapes: &[(&str, &[usize])], policies: &[Policy]) {
    let (network, samples) = network(json, shapes, 64);
    for mode in over(Rings::Primes) {
        check_transcripts(&network, mode, &samples[0], policies);
    }
    let network = network_over_powers(json, shapes, &samples);
    for mode in near().chain([Mode::Cheetah(Rounding::Exact)]) {
        check_transcripts(&network, mode, &samples[0], policies);
    }
}

#[test]
fn residual_network_equals_the_reference() {
    let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[2,6,6]}],"nodes":[
        {"name":"conv1","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
        {"name":"relu1","op":"Relu","inputs":["conv1"]},
        {"name":"conv2","op":{"Conv":{"weight":"w2","bias":null,"strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["relu1"]},
        {"name":"relu2","op":"Relu","inputs":["conv2"]},
        {"name":"conv3","op":{"Conv":{"weight":"w3","bias":null,"strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":3}},"inputs":["relu2"]},
        {"name":"sum","op":"Add","inputs":["conv3","relu1"]},
        {"name":"relu3","op":"Relu","inputs":["sum"]},
        {"name":"mean","op":"GlobalAveragePool","inputs":["relu3"]},
        {"name":"flat","op":"Flatten","inputs":["mean"]},
        {"name":"fc","op":{"MatMul":{"weight":"w4","bias":null}},"inputs":["flat"]}],"output":"fc"}"#;
    let shapes: [(&str, &[usize]); 5] =
        [("w1", &[3, 2, 3, 3]), ("b1", &[3]), ("w2", &[3, 3, 3, 3]), ("w3", &[3, 1, 3, 3]), ("w4", &[3, 4])];
    check(json, &shapes, 72);
}

#[test]
fn joined_and_moved_branches_equal_the_reference() {
    let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[2,4,4]}],"nodes":[
        {"name":"conv1","op":{"Conv":{"weight":"w1","bias":null,"strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
        {"name":"relu1","op":"Relu","inputs":["conv1"]},
        {"name":"half","op":{"Slice":{"starts":[0,0,0],"sizes":[3,2,2],"steps":[1,2,2]}},"inputs":["relu1"]},
        {"name":"conv2","op":{"Conv":{"weight":"w2","bias":null,"strides":[2,2],"pads":[0,0,1,1],"dilations":[1,1],"groups":1}},"inputs":["relu1"]},
        {"name":"relu2","op":"Relu","inputs":["conv2"]},
        {"name":"join","op":{"Concat":{"axis":0}},"inputs":["half","relu2"]},
        {"name":"turn","op":{"Transpose":{"axes":[1,2,0]}},"inputs":["join"]},
        {"name":"flat","op":"Flatten","inputs":["turn"]},
        {"name":"fc","op":{"MatMul":{"weight":"w3","bias":null}},"inputs":["flat"]}],"output":"fc"}"#;
    check(json, &[("w1", &[3, 2, 3, 3]), ("w2", &[3, 3, 3, 3]), ("w3", &[24, 5])], 32);
}

/// The layer in the middle takes another value than the one that is made before it, of another shape.
#[test]
fn branches_from_the_input_to_the_output_equal_the_reference() {
    let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,4,4]}],"nodes":[
        {"name":"flat","op":"Flatten","inputs":["x"]},
        {"name":"fc","op":{"MatMul":{"weight":"w1","bias":"b1"}},"inputs":["flat"]},
        {"name":"conv","op":{"Conv":{"weight":"w2","bias":null,"strides":[2,2],"pads":[0,0,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
        {"name":"other","op":"Flatten","inputs":["conv"]},
        {"name":"sum","op":"Add","inputs":["fc","other"]}],"output":"sum"}"#;
    check(json, &[("w1", &[16, 8]), ("b1", &[8]), ("w2", &[2, 1, 3, 3])], 16);
}

#[test]
fn squares_equal_the_reference() {
    let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[20]}],"nodes":[
        {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":"b1"}},"inputs":["x"]},
        {"name":"square1","op":"Square","inputs":["fc1"]},
        {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["square1"]},
        {"name":"square2","op":"Mul","inputs":["fc2","fc2"]},
        {"name":"fc3","op":{"MatMul":{"weight":"w3","bias":null}},"inputs":["square2"]}],"output":"fc3"}"#;
    let shapes: [(&str, &[usize]); 5] =
        [("w1", &[20, 12]), ("b1", &[12]), ("w2", &[12, 8]), ("b2", &[8]), ("w3", &[8, 4])];
    check(json, &shapes, 20);
    // No ring holds what the first square makes and leaves room for squares in a row.
    assert_eq!(
        protocols(json, &shapes, 20),
        [
            "gazelle.fc",
            "gazelle.square",
            "gazelle.fc",
            "yao.activation",
            "share.reshare",
            "gazelle.square_fc",
            "yao.argmax"
        ]
    );
}

/// A gate of each kind, a product of both, and a tail with its ramp behind a sum.
#[test]
fn functions_and_products_of_two_values_equal_the_reference() {
    let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[20]}],"nodes":[
        {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":"b1"}},"inputs":["x"]},
        {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["x"]},
        {"name":"gate","op":{"Function":"Sigmoid"},"inputs":["fc1"]},
        {"name":"state","op":{"Function":"Tanh"},"inputs":["fc2"]},
        {"name":"kept","op":"Mul","inputs":["gate","state"]},
        {"name":"fc3","op":{"MatMul":{"weight":"w3","bias":"b3"}},"inputs":["kept"]},
        {"name":"sum","op":"Add","inputs":["fc3","gate"]},
        {"name":"smooth","op":{"Ramp":{"Gelu":{"approximate":false}}},"inputs":["sum"]},
        {"name":"fc4","op":{"MatMul":{"weight":"w4","bias":null}},"inputs":["smooth"]}],"output":"fc4"}"#;
    let shapes: [(&str, &[usize]); 6] = [
        ("w1", &[20, 12]),
        ("b1", &[12]),
        ("w2", &[20, 12]),
        ("w3", &[12, 12]),
        ("b3", &[12]),
        ("w4", &[12, 4]),
    ];
    check(json, &shapes, 20);
    let functions = |names: &[&str]| names.iter().filter(|name| **name == "ot.function").count();
    assert_eq!(functions(&protocols(json, &shapes, 20)), 3);
    let (_, samples) = network(json, &shapes, 20);
    let powers = network_over_powers(json, &shapes, &samples);
    let plan = plan(powers.public(), Policy::Logits, Mode::Tabula(tabula::Rounding::Exact)).unwrap();
    let names: Vec<_> = plan.steps().map(|step| step.protocol.name()).collect();
    // What is read behind a rescale keeps few bits; the tail's argument is in the ring of a sum.
    assert_eq!([functions(&names), names.iter().filter(|name| **name == "tabula.table").count()], [1, 2]);
}

/// Terms that no layer takes: of sums that two branches read, and of a gate.
#[test]
fn terms_between_branches_equal_the_reference() {
    let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[2,4,4]}],"nodes":[
        {"name":"conv1","op":{"Conv":{"weight":"w1","bias":null,"strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
        {"name":"term1","op":{"AddConstant":{"value":"t1"}},"inputs":["conv1"]},
        {"name":"relu1","op":"Relu","inputs":["term1"]},
        {"name":"term2","op":{"AddConstant":{"value":"t2"}},"inputs":["conv1"]},
        {"name":"gate","op":{"Function":"Sigmoid"},"inputs":["term2"]},
        {"name":"half","op":{"MulConstant":{"value":"h"}},"inputs":["gate"]},
        {"name":"term3","op":{"AddConstant":{"value":"t3"}},"inputs":["half"]},
        {"name":"gated","op":"Mul","inputs":["relu1","term3"]},
        {"name":"most","op":{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}},"inputs":["gated"]},
        {"name":"flat","op":"Flatten","inputs":["most"]},
        {"name":"fc","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["flat"]}],"output":"fc"}"#;
    let shapes: [(&str, &[usize]); 6] = [
        ("w1", &[3, 2, 3, 3]),
        ("t1", &[3, 1, 1]),
        ("t2", &[3, 4, 4]),
        ("h", &[1]),
        ("t3", &[1]),
        ("w2", &[12, 4]),
    ];
    check(json, &shapes, 32);
    let biases = |names: &[&str]| names.iter().filter(|name| **name == "local.bias").count();
    assert_eq!(biases(&protocols(json, &shapes, 32)), 3);
}

/// Scores of three queries by four keys, and the values that their exponentials mix, divided by their means.
#[test]
fn attention_equals_the_reference() {
    let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[12]}],"nodes":[
        {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":"b1"}},"inputs":["x"]},
        {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["x"]},
        {"name":"fc3","op":{"MatMul":{"weight":"w3","bias":null}},"inputs":["x"]},
        {"name":"queries","op":{"Reshape":{"shape":[1,3,2]}},"inputs":["fc1"]},
        {"name":"keys","op":{"Reshape":{"shape":[1,2,4]}},"inputs":["fc2"]},
        {"name":"values","op":{"Reshape":{"shape":[1,4,5]}},"inputs":["fc3"]},
        {"name":"scores","op":"MatrixProduct","inputs":["queries","keys"]},
        {"name":"lines","op":{"Reshape":{"shape":[3,4,1]}},"inputs":["scores"]},
        {"name":"largest","op":{"MaxPool":{"kernel":[4,1],"strides":[1,1],"pads":[0,0,0,0]}},"inputs":["lines"]},
        {"name":"along","op":{"Concat":{"axis":1}},"inputs":["largest","largest","largest","largest"]},
        {"name":"less","op":{"MulConstant":{"value":"minus"}},"inputs":["along"]},
        {"name":"differences","op":"Add","inputs":["lines","less"]},
        {"name":"powers","op":{"Function":{"Within":{"of":"Exp","low":null,"high":0.0}}},"inputs":["differences"]},
        {"name":"mean","op":"GlobalAveragePool","inputs":["powers"]},
        {"name":"inverse","op":{"Function":{"Within":{"of":"Reciprocal","low":0.25,"high":1.0}}},"inputs":["mean"]},
        {"name":"softmax","op":"MatrixProduct","inputs":["powers","inverse"]},
        {"name":"shares","op":{"Reshape":{"shape":[1,3,4]}},"inputs":["softmax"]},
        {"name":"mixed","op":"MatrixProduct","inputs":["shares","values"]},
        {"name":"flat","op":"Flatten","inputs":["mixed"]},
        {"name":"fc4","op":{"MatMul":{"weight":"w4","bias":"b4"}},"inputs":["flat"]}],"output":"fc4"}"#;
    let shapes: [(&str, &[usize]); 7] = [
        ("w1", &[12, 6]),
        ("b1", &[6]),
        ("w2", &[12, 8]),
        ("w3", &[12, 20]),
        ("w4", &[15, 4]),
        ("b4", &[4]),
        ("minus", &[]),
    ];
    check(json, &shapes, 12);
    let matrices = |names: &[&str]| names.iter().filter(|name| **name == "ot.matrices").count();
    assert_eq!(matrices(&protocols(json, &shapes, 12)), 3);
}

/// The protocols of a network's plan.
fn protocols(json: &str, shapes: &[(&str, &[usize])], input: usize) -> Vec<&'static str> {
    let (network, _) = network(json, shapes, input);
    let plan = plan(network.public(), Policy::Label, Mode::Gazelle).unwrap();
    plan.steps().map(|step| step.protocol.name()).collect()
}

const SQUARES: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,8,8]}],"nodes":[
    {"name":"conv1","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"square1","op":"Square","inputs":["conv1"]},
    {"name":"conv2","op":{"Conv":{"weight":"w2","bias":null,"strides":[2,2],"pads":[0,0,1,1],"dilations":[1,1],"groups":1}},"inputs":["square1"]},
    {"name":"square2","op":"Square","inputs":["conv2"]},
    {"name":"conv3","op":{"Conv":{"weight":"w3","bias":"b3","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["square2"]},
    {"name":"square3","op":"Square","inputs":["conv3"]},
    {"name":"flat","op":"Flatten","inputs":["square3"]},
    {"name":"fc","op":{"MatMul":{"weight":"w4","bias":"b4"}},"inputs":["flat"]}],"output":"fc"}"#;

const SQUARES_SHAPES: [(&str, &[usize]); 7] = [
    ("w1", &[2, 1, 3, 3]),
    ("b1", &[2]),
    ("w2", &[3, 2, 3, 3]),
    ("w3", &[2, 3, 3, 3]),
    ("b3", &[2]),
    ("w4", &[32, 5]),
    ("b4", &[5]),
];

#[test]
fn layers_take_squares_as_they_are_computed() {
    check(SQUARES, &SQUARES_SHAPES, 64);
    let planned = protocols(SQUARES, &SQUARES_SHAPES, 64);
    for fused in ["gazelle.square_conv", "gazelle.square_fc"] {
        assert!(planned.contains(&fused), "{planned:?}");
    }
}

#[test]
fn slopes_below_zero_equal_the_reference() {
    // Behind a pool, a slope has a circuit of its own.
    let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,8,8]}],"nodes":[
        {"name":"conv1","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[0,0,0,0],"dilations":[1,1],"groups":1}},"inputs":["x"]},
        {"name":"leaky1","op":{"LeakyRelu":{"alpha":0.1}},"inputs":["conv1"]},
        {"name":"conv2","op":{"Conv":{"weight":"w2","bias":null,"strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["leaky1"]},
        {"name":"leaky2","op":{"LeakyRelu":{"alpha":0.1}},"inputs":["conv2"]},
        {"name":"pool","op":{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}},"inputs":["leaky2"]},
        {"name":"flat","op":"Flatten","inputs":["pool"]},
        {"name":"fc1","op":{"MatMul":{"weight":"w3","bias":"b3"}},"inputs":["flat"]},
        {"name":"leaky3","op":{"LeakyRelu":{"alpha":0.1}},"inputs":["fc1"]},
        {"name":"fc2","op":{"MatMul":{"weight":"w4","bias":null}},"inputs":["leaky3"]}],"output":"fc2"}"#;
    let shapes: [(&str, &[usize]); 6] = [
        ("w1", &[2, 1, 3, 3]),
        ("b1", &[2]),
        ("w2", &[2, 2, 3, 3]),
        ("w3", &[18, 8]),
        ("b3", &[8]),
        ("w4", &[8, 4]),
    ];
    check(json, &shapes, 64);
}

#[test]
fn after_a_failure_a_service_serves_nothing_more() {
    let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[4]}],"nodes":[
        {"name":"fc","op":{"MatMul":{"weight":"w","bias":null}},"inputs":["x"]}],"output":"fc"}"#;
    let (network, _) = network(json, &[("w", &[4, 3])], 4);
    let plan = plan(network.public(), Policy::Label, Mode::Gazelle).unwrap();
    let model = Arc::new(ServedModel::new(&network, &plan).unwrap());
    let client_plan = Arc::new(ClientPlan::new(network.public(), &plan).unwrap());
    let (mut client, mut server) = memory::pair();
    let serving = std::thread::spawn(move || {
        let mut service = Responder::new(model, rng(1));
        service.answer(&mut server, Request::SetUp).unwrap();
        // Nothing is prepared.
        assert!(service.answer(&mut server, Request::Predict).is_err());
        for request in [Request::Prepare, Request::Predict, Request::End] {
            assert!(matches!(service.answer(&mut server, request), Err(ExecutionError::Broken)));
        }
    });
    ClientSession::setup(&mut client, client_plan, rng(2)).unwrap();
    serving.join().unwrap();
}
