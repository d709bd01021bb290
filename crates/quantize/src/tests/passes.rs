//! Passes keep a graph's meaning and remove what fixed point lacks.

use lanner_graph::elementwise::{Clip, Function, LeakyRelu, Ramp};
use lanner_graph::pass::{Draft, prepare};
use lanner_graph::{FloatExecutor, Node, Op};
use lanner_network::Head;

use super::{Random, Sketch};

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
fn columns_that_are_picked_and_joined_go_into_the_matrix() {
    let pick = |start: usize, size: usize, step: i64| Op::Slice {
        starts: vec![start],
        sizes: vec![size],
        steps: vec![step],
    };
    let branch = |mut sketch: Sketch, name: &str, op: Op| {
        sketch.graph.output = "x".to_owned();
        sketch.op(name, op)
    };
    let sketch = Sketch::new(&[9], 11)
        .op("last", pick(8, 4, -2))
        .mul_constant("m", &[4], -2.0)
        .add_constant("a", &[1]);
    let sketch = branch(sketch, "first", pick(1, 3, 1)).add_constant("b", &[3]);
    let mut sketch = branch(sketch, "whole", pick(0, 9, 1)).mul_constant("n", &[], 0.5);
    let inputs = ["a", "n", "b"].map(str::to_owned).to_vec();
    sketch.graph.nodes.push(Node { name: "joined".to_owned(), op: Op::Concat { axis: 0 }, inputs });
    sketch.graph.output = "joined".to_owned();
    let sketch = sketch.batch_norm("bn", [-2.0, 2.0]).dense("fc", 5).relu("r").dense("out", 3);
    assert_eq!(names(&same_meaning(&sketch)), ["MatMul", "Relu", "MatMul"]);
    // Without a matrix nothing can take them in.
    let mut alone = sketch;
    alone.graph.output = "bn".to_owned();
    assert!(names(&same_meaning(&alone)).contains(&"Concat"));
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
    let clip = Op::Clip(Clip { min: Some(0.0), max: Some(0.7) });
    let sketch = Sketch::new(&[1, 8, 8], 10).conv("c", 2, 1, 1, 0).relu("r").op("k", clip).max_pool("p", 2);
    assert_eq!(names(&same_meaning(&sketch)), ["Conv", "MaxPool", "Relu", "Clip"]);
}

#[test]
fn a_leaky_relu_that_decreases_stays_before_the_pool() {
    let leaky = Op::LeakyRelu(LeakyRelu { alpha: -0.5 });
    let sketch = Sketch::new(&[1, 8, 8], 11).conv("c", 2, 1, 1, 0).op("l", leaky).max_pool("p", 2);
    assert_eq!(names(&same_meaning(&sketch)), ["Conv", "LeakyRelu", "MaxPool"]);
}

#[test]
fn a_relu_of_what_is_never_negative_goes() {
    let node = |name: &str, op, inputs: &[&str]| lanner_graph::Node {
        name: name.into(),
        op,
        inputs: inputs.iter().map(|&input| input.into()).collect(),
    };
    let branches = |second| {
        let mut sketch = Sketch::new(&[6], 13).dense("a", 4).relu("r");
        sketch.graph.nodes.extend([
            node("q", second, &["a"]),
            node("sum", Op::Add, &["r", "q"]),
            node("s", Op::Relu, &["sum"]),
        ]);
        sketch.graph.output = "s".into();
        sketch.dense("b", 3)
    };
    let square = names(&same_meaning(&branches(Op::Square)));
    assert_eq!(square, ["MatMul", "Relu", "Square", "Add", "MatMul"]);
    let leaky = names(&same_meaning(&branches(Op::LeakyRelu(LeakyRelu { alpha: 0.5 }))));
    assert_eq!(leaky, ["MatMul", "Relu", "LeakyRelu", "Add", "Relu", "MatMul"]);
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
        sketch.graph.nodes.push(lanner_graph::Node {
            name: "unused".into(),
            op: Op::Relu,
            inputs: vec!["fc".into()],
        });
        let (draft, found) = prepare(&sketch.graph, &sketch.tensors).unwrap();
        assert_eq!((found, names(&draft)), (head, vec!["MatMul"]));
    }
}

/// Adds a node with several inputs and makes it the output.
fn join(mut sketch: Sketch, name: &str, op: Op, inputs: &[&str]) -> Sketch {
    let inputs = inputs.iter().map(|&input| input.to_owned()).collect();
    sketch.graph.nodes.push(lanner_graph::Node { name: name.into(), op, inputs });
    name.clone_into(&mut sketch.graph.output);
    sketch
}

#[test]
fn constants_between_branches_become_a_layer_unless_one_factor_or_a_share_serves() {
    let sum = |sketch| join(sketch, "sum", Op::Add, &["fc", "m"]);
    let varied = Sketch::new(&[4], 13).dense("fc", 4).mul_constant("m", &[4], 0.5);
    assert_eq!(names(&same_meaning(&sum(varied))), ["MatMul", "Reshape", "Conv", "Reshape", "Add"]);
    let uniform = Sketch::new(&[4], 13).dense("fc", 4).mul_constant("m", &[1], 0.5);
    assert_eq!(names(&same_meaning(&sum(uniform))), ["MatMul", "Mul by a constant", "Add"]);
    let term = Sketch::new(&[2, 4, 4], 13).conv("fc", 2, 3, 1, 1).add_constant("m", &[2, 4, 4]);
    assert_eq!(names(&same_meaning(&sum(term))), ["Conv", "Conv", "Add"]);
    let gates = Sketch::new(&[4], 13).dense("fc", 4).add_constant("m", &[4]);
    let product = join(gates.op("g", Op::Function(Function::Sigmoid)), "p", Op::Mul, &["g", "fc"]);
    assert_eq!(names(&same_meaning(&product)), ["MatMul", "Add of a constant", "Sigmoid", "Mul"]);
}

#[test]
fn constants_behind_a_sum_enter_its_branches() {
    let branches = || {
        let mut sketch = Sketch::new(&[2, 4, 4], 14).conv("a", 2, 3, 1, 1);
        sketch.graph.output = "x".into();
        join(sketch.conv("b", 2, 1, 1, 0), "sum", Op::Add, &["a", "b"])
    };
    let both = branches().batch_norm("bn", [-2.0, 2.0]).relu("r");
    assert_eq!(names(&same_meaning(&both)), ["Conv", "Conv", "Add", "Relu"]);
    let mut one = Sketch::new(&[2, 4, 4], 14).conv("a", 2, 3, 1, 1);
    one = join(one, "sum", Op::Add, &["a", "x"]).add_constant("t", &[2, 1, 1]);
    assert_eq!(names(&same_meaning(&one)), ["Conv", "Add"]);
}

#[test]
fn a_value_with_two_users_keeps_its_activation_before_the_pool() {
    let sketch = Sketch::new(&[1, 8, 8], 15).conv("c", 2, 3, 1, 1).relu("r").max_pool("p", 2);
    let mut sketch = sketch.flatten("f");
    sketch.graph.output = "r".into();
    let sketch = join(sketch.flatten("g"), "both", Op::Concat { axis: 0 }, &["f", "g"]);
    let expected = ["Conv", "Relu", "MaxPool", "Flatten", "Flatten", "Concat"];
    assert_eq!(names(&same_meaning(&sketch)), expected);
}

#[test]
fn products_of_a_value_with_itself_are_squares() {
    let sketch = join(Sketch::new(&[3], 16).dense("fc", 4), "p", Op::Mul, &["fc", "fc"]);
    assert_eq!(names(&same_meaning(&sketch)), ["MatMul", "Square"]);
}

/// `m2 x^2 + m1 x + m0` of the last value, which is called `c`; either factor may be left out.
fn polynomial(sketch: Sketch, factors: [bool; 2], shape: &[usize]) -> Sketch {
    let mut sketch = sketch.op("sq", Op::Square);
    let square = if factors[0] { "m2" } else { "sq" };
    if factors[0] {
        sketch = sketch.mul_constant("m2", shape, 0.2);
    }
    sketch.graph.output = "c".into();
    let linear = if factors[1] { "m1" } else { "c" };
    if factors[1] {
        sketch = sketch.mul_constant("m1", shape, -2.0);
    }
    join(sketch, "sum", Op::Add, &[square, linear]).add_constant("m0", shape)
}

#[test]
fn quadratics_between_layers_are_squares_alone() {
    for factors in [[true, true], [true, false], [false, true], [false, false]] {
        for shape in [&[1, 1, 1], &[3, 1, 1]] {
            let conv = Sketch::new(&[2, 6, 6], 31).conv("c", 3, 3, 1, 1);
            let sketch = polynomial(conv, factors, shape).conv("d", 2, 3, 1, 1);
            assert_eq!(names(&same_meaning(&sketch)), ["Conv", "Square", "Conv"]);
        }
    }
    let conv = Sketch::new(&[2, 6, 6], 32).conv("c", 3, 3, 1, 1);
    let pooled = polynomial(conv, [true; 2], &[3, 1, 1]).average_pool("p", 2).flatten("f").dense("fc", 4);
    assert_eq!(names(&same_meaning(&pooled)), ["Conv", "Square", "AveragePool", "Flatten", "MatMul"]);
    let normed = Sketch::new(&[2, 6, 6], 33).conv("c0", 3, 3, 1, 1).batch_norm("c", [0.5, 2.0]);
    let twice = polynomial(normed, [true; 2], &[1]).conv("d", 2, 3, 1, 1);
    assert_eq!(names(&same_meaning(&twice)), ["Conv", "Square", "Conv"]);
}

#[test]
fn quadratics_whose_constants_no_layer_takes_stay() {
    let dense = || Sketch::new(&[5], 34).dense("c", 4);
    // Nothing behind, and a value that is used elsewhere.
    let last = polynomial(dense(), [true; 2], &[1]);
    assert!(names(&same_meaning(&last)).contains(&"Add"));
    let shared = join(polynomial(dense(), [true; 2], &[1]), "again", Op::Add, &["m0", "c"]).dense("fc", 3);
    assert_eq!(names(&same_meaning(&shared)).iter().filter(|name| **name == "Add").count(), 2);
    // Not of the same value.
    let mut other = dense().op("sq", Op::Square);
    other.graph.output = "x".into();
    let other = join(other.dense("e", 4), "sum", Op::Add, &["sq", "e"]).dense("fc", 3);
    assert!(names(&same_meaning(&other)).contains(&"Add"));
}

#[test]
fn padding_joins_the_convolution_that_alone_uses_it() {
    let pad = |before: [usize; 3]| Op::Pad { before: before.to_vec(), after: vec![0, 1, 2] };
    let sketch = Sketch::new(&[2, 4, 4], 17).add_constant("t", &[2, 1, 1]).op("p", pad([0, 2, 1]));
    assert_eq!(names(&same_meaning(&sketch.conv("c", 3, 3, 1, 1))), ["Conv"]);
    let sketch = Sketch::new(&[2, 4, 4], 17).op("p", pad([1, 0, 0])).conv("c", 3, 3, 1, 0);
    assert_eq!(names(&same_meaning(&sketch)), ["Pad", "Conv"]);
}

#[test]
fn transpositions_of_channels_last_exports_cancel() {
    let (first, last) = (|| Op::Transpose { axes: vec![2, 0, 1] }, || Op::Transpose { axes: vec![1, 2, 0] });
    let clip = Op::Clip(Clip { min: Some(0.0), max: Some(0.7) });
    let sketch = Sketch::new(&[6, 6, 2], 18)
        .op("t1", first())
        .conv("c1", 4, 3, 1, 1)
        .op("t2", last())
        .add_constant("bias", &[4])
        .mul_constant("scale", &[6, 1, 4], 0.1)
        .op("k", clip);
    let sketch = sketch.op("t3", first()).conv("c2", 4, 3, 1, 1).op("t4", last());
    let sketch = join(sketch, "sum", Op::Add, &["t4", "k"]).relu("r").op("t5", first()).max_pool("p", 2);
    let draft = same_meaning(&sketch.op("t6", last()).flatten("f").dense("fc", 3));
    // The constant that differs by row joins no layer and becomes one; the pool goes before the activation.
    let expected = ["Transpose", "Conv", "Reshape", "Conv", "Reshape", "Clip"];
    assert_eq!(names(&draft)[..6], expected);
    assert_eq!(names(&draft)[6..], ["Conv", "Add", "MaxPool", "Relu", "Transpose", "Flatten", "MatMul"]);
}

#[test]
fn averages_over_real_elements_count_their_padding_afterwards() {
    let pool =
        || Op::AveragePool { kernel: [3, 2], strides: [2, 1], pads: [1, 0, 1, 1], count_include_pad: false };
    let sketch = Sketch::new(&[2, 5, 6], 21).conv("c", 3, 3, 1, 1).op("p", pool());
    let draft = same_meaning(&sketch);
    // Factors 3/2 above, 1 and 3/2 below, and 2 on the right of each: public ones, since the window alone has them.
    let kinds = |kind: &str| names(&draft).iter().filter(|name| **name == kind).count();
    assert_eq!(names(&draft)[..3], ["Conv", "AveragePool", "Slice"]);
    assert_eq!(["Slice", "Mul by a constant", "Concat"].map(kinds), [6, 5, 4]);
    let dense = Sketch::new(&[2, 5, 6], 22).op("p", pool()).flatten("f").dense("fc", 4);
    assert_eq!(names(&same_meaning(&dense)), ["AveragePool", "Flatten", "MatMul"]);
}

#[test]
fn factors_that_differ_by_place_become_a_layer() {
    let sketch = Sketch::new(&[2, 4, 4], 23).conv("c", 2, 3, 1, 1).relu("r").mul_constant("m", &[4, 1], -1.0);
    let draft = same_meaning(&sketch);
    assert_eq!(names(&draft), ["Conv", "Relu", "Reshape", "Conv", "Reshape"]);
    // One channel for each row, which has one factor.
    assert_eq!(draft.shapes["m/layer"], [8, 4, 1]);
    let moved =
        Sketch::new(&[6, 5, 5], 24).batch_norm("bn", [-2.0, 2.0]).flatten("f").relu("r").dense("fc", 3);
    let draft = same_meaning(&moved);
    assert_eq!(names(&draft), ["Flatten", "Reshape", "Conv", "Reshape", "Relu", "MatMul"]);
    assert_eq!(draft.shapes["bn/scale/layer"], [6, 25, 1]);
}

/// A maximum comes before a ramp that never decreases, and a slope above 0 other than 1 is a factor.
#[test]
fn ramps_are_a_relu_and_a_tail() {
    let sketch =
        |ramp| Sketch::new(&[2, 4, 4], 20).conv("c", 3, 3, 1, 1).op("ramp", Op::Ramp(ramp)).max_pool("p", 2);
    let mish = same_meaning(&sketch(Ramp::Mish));
    assert_eq!(names(&mish), ["Conv", "Relu", "Mish", "Add", "MaxPool"]);
    assert_eq!(mish.graph.nodes[2].op, Op::Function(Function::Tail(Ramp::Mish)));
    assert_eq!(mish.graph.nodes[3].name, "ramp");
    assert_eq!(names(&same_meaning(&sketch(Ramp::Softplus))), ["Conv", "MaxPool", "Relu", "Softplus", "Add"]);
    let selu = Ramp::Selu { alpha: 1.5, gamma: 1.25 };
    let expected = ["Conv", "MaxPool", "Relu", "Mul by a constant", "Selu", "Add"];
    assert_eq!(names(&same_meaning(&sketch(selu))), expected);
}
