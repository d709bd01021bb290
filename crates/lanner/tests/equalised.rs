//! A precision that channels of unequal size put out of reach: they are equalised, and only their owner knows.

use lanner::{CompileOptions, ErrorKind, Model, debug};
use lanner_graph::{FloatExecutor, Graph, equalised};
use lanner_network::{Precision, Tensor, Tensors};

const GRAPH: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,8,8]}],"nodes":[
    {"name":"first","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["first"]},
    {"name":"each","op":{"Conv":{"weight":"w2","bias":null,"strides":[1,1],"pads":[0,0,0,0],"dilations":[1,1],"groups":8}},"inputs":["relu"]},
    {"name":"again","op":"Relu","inputs":["each"]},
    {"name":"flat","op":"Flatten","inputs":["again"]},
    {"name":"scores","op":{"MatMul":{"weight":"w3","bias":null}},"inputs":["flat"]}],"output":"scores"}"#;

/// Weights of which channel k is 2^-k times as large in the first layer, and 2^k times in the second.
fn tensors() -> Tensors {
    let mut tensors = Tensors::default();
    let shapes = [
        ("w1", vec![8, 1, 3, 3], -1.0),
        ("b1", vec![8], -1.0),
        ("w2", vec![8, 1, 3, 3], 1.0),
        ("w3", vec![288, 3], 0.0),
    ];
    for (number, (name, shape, sign)) in shapes.into_iter().enumerate() {
        let count: usize = shape.iter().product();
        let of = |index: usize| {
            let even = (index * 37 + number * 11) % 97;
            let channel = (index / (count / 8).max(1)) as f32;
            (even as f32 / 97.0 - 0.4) * (sign * channel).exp2()
        };
        tensors.insert(name, Tensor::new(shape, (0..count).map(of).collect()).unwrap()).unwrap();
    }
    tensors
}

fn samples() -> Vec<f32> {
    (0..40 * 64).map(|i| (i * i % 1009) as f32 / 1009.0).collect()
}

fn options(precision: Precision) -> CompileOptions {
    CompileOptions {
        name: "uneven".to_owned(),
        mode: "cheetah".to_owned(),
        output: "logits".to_owned(),
        precision: Some(precision),
        ..CompileOptions::default()
    }
}

fn compiled(tensors: Tensors, precision: Precision) -> lanner::Result<Model> {
    Model::compile(Graph::from_json(GRAPH).unwrap(), tensors, &samples(), &options(precision))
}

#[test]
fn a_precision_out_of_reach_is_reached_with_even_channels_and_the_public_half_is_any_networks() {
    let error = |model: &Model| model.network().reached().unwrap().error;
    let most = error(&compiled(tensors(), Precision::Bits(16)).unwrap());
    let model = compiled(tensors(), Precision::Error(0.5 * most)).unwrap();
    assert!(model.network().reached().unwrap().is_met());
    // It is what an owner gets whose weights are these.
    let graph = Graph::from_json(GRAPH).unwrap();
    let even = equalised(&graph, &tensors(), &samples(), 2).unwrap().unwrap();
    let twin = compiled(even, Precision::Error(0.5 * most)).unwrap();
    assert_eq!(model.manifest().network, twin.manifest().network);
    assert_eq!(model.network(), twin.network());
    // The float network is the same, and every layer is held against it as it is now.
    let sample = &samples()[..64];
    let weights = tensors();
    let float = FloatExecutor::new(&graph, &weights).unwrap().run(sample).unwrap();
    assert_eq!(model.float(sample).unwrap(), [float]);
    for layer in debug(&model, sample, false).unwrap()["layers"].as_array().unwrap() {
        let off = layer["relative_error"].as_f64();
        assert!(off.is_none_or(|off| off < 0.001), "{layer}");
    }
}

#[test]
fn what_is_within_reach_is_left_as_it_is_and_what_is_not_is_refused() {
    let error = |model: &Model| model.network().reached().unwrap().error;
    let coarse = compiled(tensors(), Precision::Bits(14)).unwrap();
    let found = compiled(tensors(), Precision::Error(error(&coarse))).unwrap();
    // Its first layer's smallest channel still has 2^-7 of the largest one's weights.
    let largest = |model: &Model, channel: usize| {
        let nodes = model.network().public().nodes();
        let first = nodes.iter().position(|node| node.op.is_linear()).unwrap();
        let weights = model.network().weights(first).unwrap().weight();
        weights[channel * 9..][..9].iter().map(|x| x.abs()).max().unwrap()
    };
    assert!(64 * largest(&found, 7) < largest(&found, 0));
    let refused = compiled(tensors(), Precision::Error(1e-7)).err().unwrap();
    assert_eq!(refused.kind, ErrorKind::Model);
}
