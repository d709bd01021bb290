//! Passes keep a graph's meaning and remove what fixed point lacks.

use super::{Random, Sketch};
use crate::network::Head;
use crate::pass::{Draft, prepare};
use crate::{FloatExecutor, Op};

/// Runs the passes and checks that they changed nothing on random inputs.
fn same_meaning(sketch: &Sketch) -> Draft {
    let (draft, _) = prepare(&sketch.graph, &sketch.tensors).unwrap();
    let before = FloatExecutor::new(&sketch.graph, &sketch.tensors).unwrap();
    let after = FloatExecutor::new(&draft.graph, &draft.tensors).unwrap();
    let mut random = Random(99);
    for _ in 0..8 {
        let x = random.reals(before.input_len(), -2.0, 2.0);
        let (left, right) = (before.run(&x).unwrap(), after.run(&x).unwrap());
        for (l, r) in left.iter().zip(&right) {
            assert!((l - r).abs() <= 2e-4 * l.abs().max(1.0), "{l} {r}");
        }
    }
    draft
}

fn names(draft: &Draft) -> Vec<&'static str> {
    draft.graph.nodes.iter().map(|node| node.op.name()).collect()
}

#[test]
fn batch_norm_folds_into_the_layer_before() {
    for pad in [0, 1] {
        let sketch =
            Sketch::new(&[2, 6, 6], 1).conv("c", 3, 3, 1, pad).batch_norm("bn", [-2.0, 2.0]).relu("r");
        assert_eq!(names(&same_meaning(&sketch)), ["Conv", "Relu"]);
    }
    let sketch = Sketch::new(&[7], 2).dense("fc", 5).batch_norm("bn", [-2.0, 2.0]);
    assert_eq!(names(&same_meaning(&sketch)), ["MatMul"]);
}

#[test]
fn batch_norm_folds_into_the_layer_behind() {
    for pad in [0, 1] {
        let sketch = Sketch::new(&[2, 6, 6], 3).batch_norm("bn", [-2.0, 2.0]).conv("c", 3, 3, 2, pad);
        assert_eq!(names(&same_meaning(&sketch)), ["Conv"]);
    }
    let sketch = Sketch::new(&[2, 4, 4], 4).conv("c", 3, 3, 1, 0).relu("r").batch_norm("bn", [-2.0, 2.0]);
    let sketch = sketch.flatten("f").dense("fc", 5);
    assert_eq!(names(&same_meaning(&sketch)), ["Conv", "Relu", "Flatten", "MatMul"]);
}

#[test]
fn batch_norm_passes_pools() {
    let conv = |seed| Sketch::new(&[2, 6, 6], seed).conv("c", 3, 3, 1, 0);
    let average =
        conv(5).average_pool("p", 2).batch_norm("bn", [-2.0, 2.0]).relu("r").flatten("f").dense("fc", 4);
    assert_eq!(names(&same_meaning(&average)), ["Conv", "AveragePool", "Relu", "Flatten", "MatMul"]);
    let maximum = conv(6).max_pool("p", 2).batch_norm("bn", [0.1, 2.0]).relu("r").flatten("f").dense("fc", 4);
    assert_eq!(names(&same_meaning(&maximum)), ["Conv", "MaxPool", "Relu", "Flatten", "MatMul"]);
    let behind = conv(7).relu("r").batch_norm("bn", [0.1, 2.0]).max_pool("p", 2).flatten("f").dense("fc", 4);
    assert_eq!(names(&same_meaning(&behind)), ["Conv", "MaxPool", "Relu", "Flatten", "MatMul"]);
}

#[test]
fn constants_of_any_broadcast_shape_fold() {
    let sketch = Sketch::new(&[2, 4, 4], 8)
        .mul_constant("m0", &[2, 1, 1], -2.0)
        .add_constant("a0", &[2, 4, 4])
        .conv("c", 3, 3, 1, 1)
        .mul_constant("m1", &[], -2.0)
        .add_constant("a1", &[4, 4])
        .mul_constant("m2", &[3, 1, 1], -2.0)
        .relu("r")
        .mul_constant("m3", &[3, 1, 1], 0.1)
        .flatten("f")
        .add_constant("a3", &[48])
        .dense("fc", 5)
        .mul_constant("m4", &[5], -2.0)
        .add_constant("a4", &[1]);
    assert_eq!(names(&same_meaning(&sketch)), ["Conv", "Relu", "Flatten", "MatMul"]);
}

#[test]
fn shared_weights_are_not_changed_for_the_other_user() {
    let mut sketch = Sketch::new(&[4], 9).dense("a", 4);
    let op = sketch.graph.nodes[0].op.clone();
    sketch = sketch.mul_constant("m", &[4], 0.5).op("b", op);
    assert_eq!(names(&same_meaning(&sketch)), ["MatMul", "MatMul"]);
}

#[test]
fn max_pool_goes_before_the_activation() {
    let clip = Op::Clip { min: Some(0.0), max: Some(0.7) };
    let sketch = Sketch::new(&[1, 8, 8], 10).conv("c", 2, 1, 1, 0).relu("r").op("k", clip).max_pool("p", 2);
    assert_eq!(names(&same_meaning(&sketch)), ["Conv", "MaxPool", "Relu", "Clip"]);
}

#[test]
fn a_leaky_relu_that_decreases_stays_before_the_pool() {
    let leaky = Op::LeakyRelu { alpha: -0.5 };
    let sketch = Sketch::new(&[1, 8, 8], 11).conv("c", 2, 1, 1, 0).op("l", leaky).max_pool("p", 2);
    assert_eq!(names(&same_meaning(&sketch)), ["Conv", "LeakyRelu", "MaxPool"]);
}

#[test]
fn the_head_is_recorded_and_unused_nodes_go() {
    let scores = || Sketch::new(&[4], 12).dense("fc", 3);
    for (sketch, head) in [
        (scores(), Head::Scores),
        (scores().op("p", Op::Softmax), Head::Softmax),
        (scores().op("p", Op::Softmax).op("y", Op::ArgMax), Head::ArgMax),
        (scores().op("y", Op::ArgMax), Head::ArgMax),
    ] {
        let mut sketch = sketch;
        sketch.graph.nodes.push(crate::Node {
            name: "unused".into(),
            op: Op::Relu,
            inputs: vec!["fc".into()],
        });
        let (draft, found) = prepare(&sketch.graph, &sketch.tensors).unwrap();
        assert_eq!((found, names(&draft)), (head, vec!["MatMul"]));
    }
}

#[test]
fn a_constant_between_branches_stays() {
    let mut sketch = Sketch::new(&[4], 13).dense("fc", 4).mul_constant("m", &[4], 0.5);
    let inputs = vec!["fc".to_owned(), "m".to_owned()];
    sketch.graph.nodes.push(crate::Node { name: "sum".into(), op: Op::Add, inputs });
    sketch.graph.output = "sum".into();
    assert_eq!(names(&same_meaning(&sketch)), ["MatMul", "Mul by a constant", "Add"]);
}
