//! Small models that between them have a layer of every kind.

use std::sync::Arc;

use lanner::{CompileOptions, Model};
use lanner_graph::Graph;
use lanner_network::{Policy, Precision, Tensor, Tensors};
use lanner_plan::{Mode, Plan};
use lanner_session::executor::{ClientPlan, ServedModel};
use lanner_transfers::Rounding;

/// A model, as both parties have prepared it, and an input with its true scores.
pub struct Subject {
    /// The owner's model.
    pub model: Arc<Model>,
    /// The protocols that both parties run.
    pub protocols: Plan,
    /// The server's half.
    pub served: Arc<ServedModel>,
    /// The client's half.
    pub plan: Arc<ClientPlan>,
    /// A sample.
    pub sample: Vec<f32>,
    /// The sample in fixed point.
    pub input: Vec<i64>,
    /// What the fixed-point reference makes of it.
    pub scores: Vec<i128>,
}

impl Subject {
    fn new(model: Model, sample: Vec<f32>) -> Self {
        let protocols = model.manifest().plan.clone();
        Self::of(Arc::new(model), protocols, sample)
    }

    fn of(model: Arc<Model>, protocols: Plan, sample: Vec<f32>) -> Self {
        let network = &model.manifest().network;
        let input = network.input().quantize(&sample).unwrap();
        Self {
            served: Arc::new(ServedModel::new(model.network(), &protocols).unwrap()),
            plan: Arc::new(ClientPlan::new(network, &protocols).unwrap()),
            protocols,
            scores: model.fixed(&sample).unwrap().scores.remove(0),
            input,
            sample,
            model,
        }
    }
}

/// Packed linear layers, garbled activations, a re-masking between them, and an arg-max.
#[must_use]
pub fn circuits() -> Subject {
    subject("circuits", "gazelle", "label", CIRCUITS, &[("w1", &[2, 1, 2, 2]), ("w2", &[2, 3])], 25)
}

/// Linear layers in the frequency domain.
#[must_use]
pub fn frequency() -> Subject {
    subject("frequency", "falcon", "label", CIRCUITS, &[("w1", &[2, 1, 2, 2]), ("w2", &[2, 3])], 25)
}

/// Packed linear layers, a square, and scores that are revealed.
#[must_use]
pub fn squares() -> Subject {
    subject("squares", "gazelle", "logits", SQUARES, &[("w1", &[5, 3]), ("w2", &[3, 3])], 5)
}

/// A packed linear layer, and the label with its probability.
#[must_use]
pub fn probability() -> Subject {
    subject("probability", "gazelle", "probability", LINEAR, &[("w1", &[5, 3])], 5)
}

/// A packed linear layer, and the two best labels.
#[must_use]
pub fn best() -> Subject {
    subject("best", "gazelle", "top-k", LINEAR, &[("w1", &[5, 3])], 5)
}

/// A layer in a coefficient encoding, and which scores are above zero.
#[must_use]
pub fn several() -> Subject {
    subject("several", "cheetah", "labels", LINEAR, &[("w1", &[5, 3])], 5)
}

/// Layers in coefficient encodings, everything between them by transfers, and an arg-max.
#[must_use]
pub fn transfers() -> Subject {
    subject("transfers", "cheetah", "label", CIRCUITS, &[("w1", &[2, 1, 2, 2]), ("w2", &[2, 3])], 25)
}

/// As [`transfers`] with faithful rounding: the plan alone differs, not what the model says of itself.
#[must_use]
pub fn faithful() -> Subject {
    let Subject { model, sample, .. } = transfers();
    let mode = Mode::Cheetah(Rounding::Faithful);
    let protocols = lanner_plan::plan(&model.manifest().network, Policy::Label, mode).unwrap();
    Subject::of(model, protocols, sample)
}

/// Layers that are split, and lookups with comparison keys between them.
#[must_use]
pub fn lookups() -> Subject {
    subject("lookups", "tabula", "label", CIRCUITS, &[("w1", &[2, 1, 2, 2]), ("w2", &[2, 3])], 25)
}

/// A network on ciphertexts, with a square.
#[must_use]
pub fn encrypted() -> Subject {
    subject("encrypted", "spectral", "logits", SQUARES, &[("w1", &[5, 3]), ("w2", &[3, 3])], 5)
}

/// Mode `cheetah` with a square, and scores that are revealed.
#[must_use]
pub fn products() -> Subject {
    subject("products", "cheetah", "logits", SQUARES, &[("w1", &[5, 3]), ("w2", &[3, 3])], 5)
}

/// A product of two secrets' matrices, which ciphertexts compute.
#[must_use]
pub fn matrices() -> Subject {
    let shapes: [(&str, &[usize]); 3] = [("w1", &[5, 120]), ("w2", &[5, 140]), ("w3", &[168, 3])];
    let subject = subject("matrices", "cheetah", "label", MATRICES, &shapes, 5);
    assert!(subject.protocols.steps().any(|step| step.protocol.name() == "cheetah.matrices"));
    subject
}

/// Complete trees: a layer that picks elements, and steps of which the last one chooses what leaves say.
#[must_use]
pub fn trees() -> Subject {
    let subject = ensemble("trees", 3, 4, None);
    for name in ["ot.select", "ot.chosen"] {
        assert!(subject.protocols.steps().any(|step| step.protocol.name() == name), "{name}");
    }
    subject
}

/// Trees whose ways are secret: a layer of blocks between steps.
#[must_use]
pub fn ways() -> Subject {
    // The first node leads to a leaf, or to the second one.
    let paths = [1.0, 0.0, -1.0, 1.0, -1.0, -1.0].repeat(2);
    ensemble("ways", 2, 3, Some(paths))
}

/// Two trees of so many nodes and leaves each over five columns, with scores of three classes.
fn ensemble(name: &str, nodes: usize, leaves: usize, paths: Option<Vec<f32>>) -> Subject {
    let mut tensors = Tensors::default();
    let mut put = |name: &str, shape: Vec<usize>, data: Vec<f32>| {
        tensors.insert(name, Tensor::new(shape, data).unwrap()).unwrap();
    };
    put("columns", vec![2 * nodes], (0..2 * nodes).map(|node| (node % 5) as f32).collect());
    put("thresholds", vec![2 * nodes], (0..2 * nodes).map(|node| (3 + 2 * node) as f32).collect());
    put("values", vec![2 * leaves, 3], (0..6 * leaves).map(|at| value(at, 1)).collect());
    put("base", vec![3], vec![0.0; 3]);
    let named = if paths.is_some() { "\"paths\"" } else { "null" };
    if let Some(paths) = paths {
        put("paths", vec![2 * leaves, nodes], paths);
    }
    let graph = TREES.replace("PATHS", named);
    let row = |seed: usize| (0..5).map(move |at| ((7 * at + 3 * seed) % 16) as f32);
    let calibration: Vec<f32> = (0..8).flat_map(row).collect();
    let options = options(name, "cheetah", "label");
    let model = Model::compile(Graph::from_json(&graph).unwrap(), tensors, &calibration, &options).unwrap();
    Subject::new(model, row(3).collect())
}

/// A layer in a coefficient encoding, and the label with its probability.
#[must_use]
pub fn likely() -> Subject {
    subject("likely", "cheetah", "probability", LINEAR, &[("w1", &[5, 3])], 5)
}

/// Two layers with an activation between.
#[must_use]
pub fn hidden(mode: &str, output: &str) -> Subject {
    subject("hidden", mode, output, HIDDEN, &[("w1", &[5, 8]), ("w2", &[8, 3])], 5)
}

/// A model of one layer, with other weights for another seed.
#[must_use]
pub fn linear(seed: usize, output: &str) -> Model {
    compile(&options("linear", "gazelle", output), LINEAR, &[("w1", &[5, 3])], 5, seed)
}

fn subject(
    name: &str,
    mode: &str,
    output: &str,
    graph: &str,
    shapes: &[(&str, &[usize])],
    input: usize,
) -> Subject {
    Subject::new(compile(&options(name, mode, output), graph, shapes, input, 0), sample(input, 3))
}

fn options(name: &str, mode: &str, output: &str) -> CompileOptions {
    CompileOptions {
        name: name.to_owned(),
        mode: mode.to_owned(),
        rounding: Some("exact".to_owned()),
        output: output.to_owned(),
        k: 2,
        digits: Some(2),
        // Attacks name the messages of these bits.
        precision: Some(Precision::Bits(8)),
        classes: Some(["ash", "birch", "cedar"].map(str::to_owned).to_vec()),
        ..CompileOptions::default()
    }
}

fn compile(
    options: &CompileOptions,
    graph: &str,
    shapes: &[(&str, &[usize])],
    input: usize,
    seed: usize,
) -> Model {
    let mut tensors = Tensors::default();
    for (at, (name, shape)) in shapes.iter().enumerate() {
        let data = (0..shape.iter().product()).map(|i| value(i, at + 10 * seed)).collect();
        tensors.insert(name, Tensor::new(shape.to_vec(), data).unwrap()).unwrap();
    }
    let calibration: Vec<f32> = (0..8).flat_map(|seed| sample(input, seed)).collect();
    Model::compile(Graph::from_json(graph).unwrap(), tensors, &calibration, options).unwrap()
}

fn sample(length: usize, seed: usize) -> Vec<f32> {
    (0..length).map(|i| value(i, 100 + seed).abs()).collect()
}

/// A deterministic value in [-1, 1).
fn value(index: usize, seed: usize) -> f32 {
    let mixed = (index + 1).wrapping_mul(2_654_435_761).wrapping_add(seed.wrapping_mul(40_503)) % 100_003;
    mixed as f32 / 50_001.5 - 1.0
}

const CIRCUITS: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,5,5]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":null,"strides":[1,1],"pads":[0,0,0,0],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["conv"]},
    {"name":"mean","op":{"AveragePool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0],"count_include_pad":false}},"inputs":["relu"]},
    {"name":"max","op":{"MaxPool":{"kernel":[2,2],"strides":[1,1],"pads":[0,0,0,0]}},"inputs":["mean"]},
    {"name":"flat","op":"Flatten","inputs":["max"]},
    {"name":"fc","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["flat"]}],"output":"fc"}"#;

const SQUARES: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[5]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]},
    {"name":"square","op":"Square","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["square"]}],"output":"fc2"}"#;

const MATRICES: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[5]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]},
    {"name":"left","op":{"Reshape":{"shape":[1,12,10]}},"inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["x"]},
    {"name":"right","op":{"Reshape":{"shape":[1,10,14]}},"inputs":["fc2"]},
    {"name":"product","op":"MatrixProduct","inputs":["left","right"]},
    {"name":"flat","op":"Flatten","inputs":["product"]},
    {"name":"fc3","op":{"MatMul":{"weight":"w3","bias":null}},"inputs":["flat"]}],"output":"fc3"}"#;

const TREES: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[5]}],"nodes":[
    {"name":"trees","op":{"Trees":{"trees":2,"high":15,"columns":"columns","thresholds":"thresholds","paths":PATHS,"values":"values","base":"base"}},
    "inputs":["x"]}],"output":"trees"}"#;

const HIDDEN: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[5]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["relu"]}],"output":"fc2"}"#;

const LINEAR: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[5]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]}],"output":"fc1"}"#;
