//! What cannot be compiled is refused with one sentence that names the node.

use lanner_graph::Op;
use lanner_graph::elementwise::{Clip, LeakyRelu};
use lanner_graph::graph::infer;
use lanner_network::{CompileError, Tensor};

use super::{Sketch, small_network};
use crate::{QuantizationOptions, compile};

fn refusal(sketch: &mut Sketch) -> CompileError {
    let calibration = sketch.samples(2, 0.0, 1.0);
    compile(&sketch.graph, &sketch.tensors, &calibration, &QuantizationOptions::default()).unwrap_err()
}

#[test]
fn unsupported_operators_are_named_with_node_and_attribute() {
    let image = || Sketch::new(&[2, 6, 6], 1).conv("c", 4, 3, 1, 0);
    let cases = [
        (
            image().op("act", Op::LeakyRelu(LeakyRelu { alpha: -0.1 })),
            "node `act`: LeakyRelu with alpha = -0.1 is not supported",
        ),
        (
            image().op("clip", Op::Clip(Clip { min: Some(-1.0), max: Some(1.0) })),
            "node `clip`: Clip with min = -1 is not supported",
        ),
        (
            image().flatten("f").op("p", Op::Softmax).relu("r"),
            "node `p`: Softmax with later nodes is not supported",
        ),
        (image().op("p", Op::Softmax), "node `p`: Softmax with an input of shape [4, 4, 4] is not supported"),
    ];
    for (mut sketch, start) in cases {
        let message = refusal(&mut sketch).to_string();
        assert!(message.starts_with(start), "{message}\n{start}");
    }
}

#[test]
fn wiring_mistakes_are_named() {
    let check = |sketch: &Sketch| infer(&sketch.graph, &sketch.tensors).unwrap_err().to_string();
    let mut sketch = small_network(1);
    sketch.graph.nodes[3].inputs = vec!["nowhere".into()];
    assert!(check(&sketch).contains("`conv2`") && check(&sketch).contains("`nowhere`"));
    let mut sketch = small_network(1);
    sketch.graph.nodes[1].name = "x".into();
    assert!(check(&sketch).contains("empty or taken"));
    let mut sketch = small_network(1);
    sketch.graph.nodes[1].inputs.push("x".into());
    assert!(check(&sketch).contains("expects 1 input(s), found 2"));
    let mut sketch = small_network(1);
    sketch.graph.output = "y".into();
    assert!(check(&sketch).contains("output must be one of its nodes"));
    let mut sketch = small_network(1);
    sketch.graph.inputs.clear();
    assert!(check(&sketch).contains("expected one input"));
    let mut sketch = small_network(1);
    sketch.graph.inputs[0].shape = vec![usize::MAX, 2, 2];
    assert!(check(&sketch).contains("empty, or too large"));
}

#[test]
fn misshapen_tensors_are_named() {
    let replaced = |name: &str, shape: &[usize]| {
        let mut sketch = small_network(1);
        let tensor = Tensor::new(shape.to_vec(), vec![0.1; shape.iter().product()]).unwrap();
        sketch.tensors.insert(name, tensor).unwrap();
        refusal(&mut sketch).to_string()
    };
    assert!(
        replaced("conv1.w", &[6, 2, 3, 3])
            .starts_with("node `conv1` (Conv): tensor `conv1.w` has shape [6, 2, 3, 3]")
    );
    assert!(replaced("conv1.w", &[6, 9]).contains("four axes"));
    assert!(replaced("conv1.b", &[5]).contains("`conv1.b` has shape [5], expected [6]"));
    assert!(replaced("fc1.w", &[71, 24]).contains("has 72 values"));
    assert!(replaced("fc1.b", &[1]).contains("`fc1.b`"));
    let mut sketch = small_network(1);
    sketch.graph.nodes[0].op = Op::Conv {
        weight: "gone".into(),
        bias: None,
        strides: [1, 1],
        pads: [0; 4],
        dilations: [1, 1],
        groups: 1,
    };
    let expected = CompileError::UnknownTensor { node: "conv1".into(), tensor: "gone".into() };
    assert_eq!(refusal(&mut sketch), expected);
}

#[test]
fn calibration_mistakes_are_named() {
    let sketch = small_network(1);
    let run = |calibration: &[f32]| {
        compile(&sketch.graph, &sketch.tensors, calibration, &QuantizationOptions::default())
            .unwrap_err()
            .to_string()
    };
    assert!(run(&[]).contains("found 0 values; expected a multiple of 196"));
    assert!(run(&[0.5; 197]).contains("197 values"));
    assert!(run(&[0.0; 196]).contains("every value is 0"));
    assert!(run(&[f32::NAN; 196]).contains("sample 0"));
    assert!(run(&[f32::MAX; 196]).contains("infinite or NaN"));
}

#[test]
fn options_outside_their_range_are_named() {
    let mut sketch = small_network(1);
    let calibration = sketch.samples(1, 0.0, 1.0);
    let base = QuantizationOptions::default;
    for (options, name) in [
        (QuantizationOptions { activation_bits: 1, ..base() }, "activation_bits"),
        (QuantizationOptions { min_weight_bits: 17, ..base() }, "min_weight_bits"),
        (QuantizationOptions { max_weight_bits: 7, ..base() }, "max_weight_bits"),
        (QuantizationOptions { accumulators: vec![], ..base() }, "accumulators"),
    ] {
        let error = compile(&sketch.graph, &sketch.tensors, &calibration, &options).unwrap_err();
        assert!(matches!(&error, CompileError::Option { option, .. } if *option == name), "{error}");
    }
}

#[test]
fn a_graph_without_layers_is_refused() {
    assert_eq!(refusal(&mut Sketch::new(&[4], 1).relu("r")), CompileError::NoLayer);
}
