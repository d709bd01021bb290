//! Nodes that need not wait for one another become one, and nothing else does.

use lanner_graph::elementwise::Function;
use lanner_graph::pass::{Draft, prepare};
use lanner_graph::{FloatExecutor, Node, Op};

use super::{Random, Sketch};

/// A gated unit over `steps` rows of 6 of the input: each takes a product of its row, added to one of the state, a gate and a candidate of it.
fn unit(steps: usize) -> Sketch {
    let mut sketch = Sketch::new(&[steps, 6], 31);
    let of_input = sketch.tensor("w", &[6, 4], -0.6, 0.6);
    let of_state = sketch.tensor("u", &[4, 4], -0.6, 0.6);
    let shift = sketch.tensor("b", &[4], -0.5, 0.5);
    let mut add = |name: String, op: Op, inputs: &[&str]| {
        let inputs = inputs.iter().map(|&input| input.to_owned()).collect();
        sketch.graph.nodes.push(Node { name: name.clone(), op, inputs });
        name.clone_into(&mut sketch.graph.output);
        name
    };
    let matrix = |weight: &String| Op::MatMul { weight: weight.clone(), bias: None };
    let mut state = String::new();
    for step in 0..steps {
        let slice = Op::Slice { starts: vec![step, 0], sizes: vec![1, 6], steps: vec![1; 2] };
        let row = add(format!("x{step}"), slice, &["x"]);
        let row = add(format!("row{step}"), Op::Reshape { shape: vec![6] }, &[&row]);
        let mut sum = add(format!("wx{step}"), matrix(&of_input), &[&row]);
        if step > 0 {
            let kept = add(format!("uh{step}"), matrix(&of_state), &[&state]);
            sum = add(format!("sum{step}"), Op::Add, &[&sum, &kept]);
        }
        let gate = add(format!("g{step}"), Op::Function(Function::Sigmoid), &[&sum]);
        let moved = add(format!("m{step}"), Op::AddConstant { value: shift.clone() }, &[&sum]);
        let new = add(format!("c{step}"), Op::Function(Function::Tanh), &[&moved]);
        state = add(format!("h{step}"), Op::Mul, &[&gate, &new]);
    }
    sketch
}

/// The passes' graph, which computes the same.
fn passed(sketch: &Sketch) -> Draft {
    let (draft, _) = prepare(&sketch.graph, &sketch.tensors).unwrap();
    let run = |graph, tensors, x: &[f32]| FloatExecutor::new(graph, tensors).unwrap().run(x).unwrap();
    let mut random = Random(7);
    for _ in 0..8 {
        let x = random.reals(sketch.graph.inputs[0].shape.iter().product(), -2.0, 2.0);
        let expected = run(&sketch.graph, &sketch.tensors, &x);
        let found = run(&draft.graph, &draft.tensors, &x);
        assert!(expected.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-5), "{expected:?} {found:?}");
    }
    draft
}

fn count(draft: &Draft, is_one: impl Fn(&Op) -> bool) -> usize {
    draft.graph.nodes.iter().filter(|node| is_one(&node.op)).count()
}

#[test]
fn products_of_all_steps_inputs_are_one_and_gates_of_each_step_are_one() {
    let steps = 5;
    let draft = passed(&unit(steps));
    // The products of the state wait for one another.
    assert_eq!(count(&draft, |op| matches!(op, Op::MatMul { .. })), steps - 1);
    let columns = |op: &Op| matches!(op, Op::Conv { groups: 1, .. });
    assert_eq!(count(&draft, columns), 1);
    let joined = draft.graph.nodes.iter().find(|node| columns(&node.op)).unwrap();
    assert_eq!(draft.shapes[&joined.name], [4, steps, 1]);
    assert_eq!(count(&draft, |op| *op == Op::Function(Function::Sigmoid)), steps);
    assert_eq!(count(&draft, |op| *op == Op::Function(Function::Tanh)), 0);
}

#[test]
fn a_step_alone_has_its_gates_joined_and_its_product_as_it_is() {
    let draft = passed(&unit(1));
    assert_eq!(count(&draft, |op| matches!(op, Op::Conv { .. })), 0);
    assert_eq!(count(&draft, |op| matches!(op, Op::Function(_))), 1);
}

/// Other weights, other values, or one behind the other.
#[test]
fn what_differs_or_waits_stays_apart() {
    let mut others = unit(4);
    for step in 0..4 {
        let name = others.tensor(&format!("w{step}"), &[6, 4], -0.6, 0.6);
        let node = others.graph.nodes.iter_mut().find(|node| node.name == format!("wx{step}")).unwrap();
        node.op = Op::MatMul { weight: name, bias: None };
    }
    let draft = passed(&others);
    assert_eq!(count(&draft, |op| matches!(op, Op::MatMul { .. })), 7);
    let chain = Sketch::new(&[6], 5).dense("a", 6);
    let mut chain = chain.op("s", Op::Function(Function::Sigmoid)).op("t", Op::Function(Function::Tanh));
    let again = Op::MatMul { weight: "a.w".to_owned(), bias: Some("a.b".to_owned()) };
    chain = chain.op("again", again);
    let draft = passed(&chain);
    assert_eq!(count(&draft, |op| matches!(op, Op::Function(_))), 2);
    assert_eq!(count(&draft, |op| matches!(op, Op::MatMul { .. })), 2);
}

/// Tensors of other names with the same numbers are the same.
#[test]
fn equal_weights_of_other_names_are_joined() {
    let mut sketch = unit(3);
    let copy = sketch.tensors.get("w").unwrap().clone();
    sketch.tensors.insert("copy", copy).unwrap();
    let node = sketch.graph.nodes.iter_mut().find(|node| node.name == "wx1").unwrap();
    node.op = Op::MatMul { weight: "copy".to_owned(), bias: None };
    assert_eq!(count(&passed(&sketch), |op| matches!(op, Op::MatMul { .. })), 2);
}
