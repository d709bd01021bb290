//! Float operators on cases computed by hand.

use lanner_graph::elementwise::{Clip, LeakyRelu};
use lanner_graph::{FloatExecutor, Op};
use lanner_network::{InputError, Tensor};

use super::Sketch;

fn run(sketch: &Sketch, x: &[f32]) -> Vec<f32> {
    FloatExecutor::new(&sketch.graph, &sketch.tensors).unwrap().run(x).unwrap()
}

fn close(left: &[f32], right: &[f32]) {
    assert_eq!(left.len(), right.len());
    for (l, r) in left.iter().zip(right) {
        assert!((l - r).abs() <= 1e-5 * r.abs().max(1.0), "{left:?} {right:?}");
    }
}

fn with(mut sketch: Sketch, name: &str, shape: &[usize], data: &[f32]) -> Sketch {
    sketch.tensors.insert(name, Tensor::new(shape.to_vec(), data.to_vec()).unwrap()).unwrap();
    sketch
}

#[test]
fn conv_with_stride_padding_and_bias() {
    let sketch = with(Sketch::new(&[1, 3, 3], 0), "w", &[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let sketch = with(sketch, "b", &[1], &[0.5]);
    let op = Op::Conv {
        weight: "w".into(),
        bias: Some("b".into()),
        strides: [2, 2],
        pads: [1, 1, 0, 0],
        dilations: [1, 1],
        groups: 1,
    };
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
    // Windows: [0 0; 0 1], [0 0; 2 3], [0 4; 0 7], [5 6; 8 9].
    close(&run(&sketch.op("conv", op), &x), &[4.5, 18.5, 36.5, 77.5]);
}

#[test]
fn grouped_conv_keeps_its_groups_apart() {
    let sketch = with(Sketch::new(&[2, 1, 1], 0), "w", &[2, 1, 1, 1], &[10.0, 100.0]);
    let op = Op::Conv {
        weight: "w".into(),
        bias: None,
        strides: [1, 1],
        pads: [0; 4],
        dilations: [1, 1],
        groups: 2,
    };
    close(&run(&sketch.op("conv", op), &[2.0, 3.0]), &[20.0, 300.0]);
}

#[test]
fn matmul_is_input_times_weight() {
    let sketch = with(Sketch::new(&[2], 0), "w", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let sketch = with(sketch, "b", &[3], &[0.0, 0.0, -1.0]);
    let op = Op::MatMul { weight: "w".into(), bias: Some("b".into()) };
    close(&run(&sketch.op("fc", op), &[1.0, -1.0]), &[-3.0, -3.0, -4.0]);
}

#[test]
fn batch_norm_normalises_by_channel() {
    let mut sketch = Sketch::new(&[2, 1, 2], 0);
    for (name, data) in [("s", [2.0, 1.0]), ("b", [1.0, 0.0]), ("m", [1.0, 4.0]), ("v", [4.0, 9.0])] {
        sketch = with(sketch, name, &[2], &data);
    }
    let op =
        Op::BatchNorm { scale: "s".into(), bias: "b".into(), mean: "m".into(), var: "v".into(), eps: 0.0 };
    close(&run(&sketch.op("bn", op), &[1.0, 3.0, 4.0, 10.0]), &[1.0, 3.0, 0.0, 2.0]);
}

#[test]
fn activations_by_definition() {
    let x = [-2.0, -0.5, 0.0, 3.0, 9.0];
    let of = |op: Op| run(&Sketch::new(&[5], 0).op("f", op), &x);
    close(&of(Op::Relu), &[0.0, 0.0, 0.0, 3.0, 9.0]);
    close(&of(Op::LeakyRelu(LeakyRelu { alpha: 0.5 })), &[-1.0, -0.25, 0.0, 3.0, 9.0]);
    close(&of(Op::Clip(Clip { min: Some(0.0), max: Some(6.0) })), &[0.0, 0.0, 0.0, 3.0, 6.0]);
    close(&of(Op::Clip(Clip { min: None, max: Some(1.0) })), &[-2.0, -0.5, 0.0, 1.0, 1.0]);
    close(&of(Op::ArgMax), &[4.0]);
}

#[test]
fn pools_by_definition() {
    let x = [1.0, -2.0, 3.0, -4.0, -5.0, -6.0, 7.0, 8.0, 9.0];
    let of = |op: Op| run(&Sketch::new(&[1, 3, 3], 0).op("f", op), &x);
    let (kernel, strides, pads) = ([2, 2], [2, 2], [1, 1, 0, 0]);
    close(&of(Op::MaxPool { kernel, strides, pads }), &[1.0, 3.0, 7.0, 9.0]);
    close(&of(Op::AveragePool { kernel, strides, pads, count_include_pad: true }), &[0.25, 0.25, 0.75, 1.5]);
    close(&of(Op::AveragePool { kernel, strides, pads, count_include_pad: false }), &[1.0, 0.5, 1.5, 1.5]);
    close(&of(Op::GlobalAveragePool), &[11.0 / 9.0]);
}

#[test]
fn constants_broadcast_and_softmax_sums_to_one() {
    let sketch = with(Sketch::new(&[2, 1, 2], 0), "c", &[2, 1, 1], &[10.0, 20.0]);
    let sketch = sketch.op("add", Op::AddConstant { value: "c".into() });
    close(&run(&sketch, &[1.0, 2.0, 3.0, 4.0]), &[11.0, 12.0, 23.0, 24.0]);
    let sketch =
        with(Sketch::new(&[3], 0), "c", &[], &[2.0]).op("mul", Op::MulConstant { value: "c".into() });
    close(&run(&sketch, &[1.0, 2.0, 3.0]), &[2.0, 4.0, 6.0]);
    let y = run(&Sketch::new(&[2], 0).op("p", Op::Softmax), &[1000.0, 1000.0 + 3.0_f32.ln()]);
    close(&y, &[0.25, 0.75]);
}

#[test]
fn branches_add_and_multiply() {
    let mut sketch = Sketch::new(&[2], 0).relu("r");
    for (name, op) in [("sum", Op::Add), ("product", Op::Mul)] {
        let inputs = vec!["x".to_owned(), sketch.graph.output.clone()];
        sketch.graph.nodes.push(lanner_graph::Node { name: name.into(), op, inputs });
        sketch.graph.output = name.into();
    }
    close(&run(&sketch, &[3.0, -1.0]), &[18.0, 1.0]);
}

#[test]
fn misshapen_and_infinite_inputs_are_refused() {
    let sketch = Sketch::new(&[2], 0).relu("r");
    let executor = FloatExecutor::new(&sketch.graph, &sketch.tensors).unwrap();
    assert_eq!(executor.run(&[1.0]), Err(InputError::Length { found: 1, expected: 2, shape: vec![2] }));
    assert_eq!(executor.run(&[1.0, f32::NAN]), Err(InputError::NotFinite { index: 1 }));
}
