//! Nodes that need not wait for one another become one node: two parties wait for each message, however much is in it.
//!
//! Layers with the same weights on pieces of one value, as those of a recurrent network's input at each of its steps, become one
//! convolution of one tap over all pieces. Sigmoids and hyperbolic tangents of what comes from one value, as gates, become one sigmoid:
//! tanh(x) = 2 sigmoid(2 x) - 1.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use lanner_network::movement::Moves;
use lanner_network::{CompileError, MAX_INPUTS, Tensor};

use super::leftover::uniform;
use super::{Draft, constant};
use crate::elementwise::Function;
use crate::graph::{Node, Op, infer_added};

/// Joins all that can be.
pub(super) fn join(draft: &mut Draft) -> Result<(), CompileError> {
    while let Some(layers) = find(draft, &is_vector_layer, &moves, &same_weights) {
        join_layers(draft, &layers)?;
    }
    while let Some(gates) = find(draft, &is_gate, &moves_or_shifts, &|_, _, _| true) {
        join_gates(draft, &gates)?;
    }
    Ok(())
}

/// The nodes of a kind that wait for equally many others, whose inputs come from one value through nodes that `passes`, and of which each is
/// like the first: the first such that are several.
fn find(
    draft: &Draft,
    is_one: &dyn Fn(&Draft, usize) -> bool,
    passes: &dyn Fn(&Draft, usize) -> bool,
    alike: &dyn Fn(&Draft, usize, usize) -> bool,
) -> Option<Vec<usize>> {
    let places = places(draft);
    let levels = levels(draft, &places);
    let source = |index: usize| {
        let mut value = &draft.graph.nodes[index].inputs[0];
        while let Some(&before) = places.get(value.as_str())
            && passes(draft, before)
        {
            value = &draft.graph.nodes[before].inputs[0];
        }
        value
    };
    let mut groups: BTreeMap<(usize, &String), Vec<usize>> = BTreeMap::new();
    for index in (0..draft.graph.nodes.len()).filter(|&index| is_one(draft, index)) {
        groups.entry((levels[index], source(index))).or_default().push(index);
    }
    groups.into_values().filter(|group| group.len() > 1).find_map(|group| {
        let like = |&first: &usize| -> Vec<usize> {
            group.iter().copied().filter(|&other| alike(draft, first, other)).take(MAX_INPUTS).collect()
        };
        group.iter().map(like).find(|members| members.len() > 1)
    })
}

/// The place of the node that makes each value.
fn places(draft: &Draft) -> HashMap<&str, usize> {
    draft.graph.nodes.iter().enumerate().map(|(index, node)| (node.name.as_str(), index)).collect()
}

/// For each node, how many come one after another before it, itself included, for which parties speak. Of two with as many none comes before the
/// other.
fn levels(draft: &Draft, places: &HashMap<&str, usize>) -> Vec<usize> {
    let mut levels: Vec<usize> = Vec::with_capacity(draft.graph.nodes.len());
    for node in &draft.graph.nodes {
        let before = node.inputs.iter().filter_map(|input| places.get(input.as_str()));
        let before = before.map(|&index| levels[index]).max().unwrap_or(0);
        levels.push(before + usize::from(!is_local(&node.op)));
    }
    levels
}

/// Whether parties need not speak for an operator.
const fn is_local(op: &Op) -> bool {
    is_movement(op)
        || matches!(
            op,
            Op::Add
                | Op::AddConstant { .. }
                | Op::MulConstant { .. }
                | Op::AveragePool { .. }
                | Op::GlobalAveragePool
        )
}

const fn is_movement(op: &Op) -> bool {
    matches!(
        op,
        Op::Flatten
            | Op::Reshape { .. }
            | Op::Transpose { .. }
            | Op::Slice { .. }
            | Op::Pad { .. }
            | Op::Concat { .. }
    )
}

fn moves(draft: &Draft, index: usize) -> bool {
    let node = &draft.graph.nodes[index];
    is_movement(&node.op) && node.inputs.len() == 1
}

fn moves_or_shifts(draft: &Draft, index: usize) -> bool {
    match draft.graph.nodes[index].op {
        Op::AddConstant { .. } => true,
        Op::MulConstant { .. } => {
            constant::values_of(draft, index).is_ok_and(|factors| uniform(&factors).is_some())
        }
        _ => moves(draft, index),
    }
}

fn is_vector_layer(draft: &Draft, index: usize) -> bool {
    matches!(draft.graph.nodes[index].op, Op::MatMul { .. })
}

fn is_gate(draft: &Draft, index: usize) -> bool {
    matches!(draft.graph.nodes[index].op, Op::Function(Function::Sigmoid | Function::Tanh))
}

/// Whether two layers have the same weights.
fn same_weights(draft: &Draft, first: usize, second: usize) -> bool {
    match [first, second].map(|index| &draft.graph.nodes[index].op) {
        [Op::MatMul { weight: a, bias: b }, Op::MatMul { weight: c, bias: d }] => {
            same_tensor(draft, Some(a), Some(c)) && same_tensor(draft, b.as_ref(), d.as_ref())
        }
        _ => false,
    }
}

fn same_tensor<'a>(draft: &'a Draft, first: Option<&String>, second: Option<&String>) -> bool {
    let data = |name: Option<&String>| name.and_then(|name| draft.tensors.get(name));
    first == second
        || data(first).zip(data(second)).is_some_and(|(first, second)| {
            let bits = |tensor: &'a Tensor| tensor.data().iter().map(|x| x.to_bits());
            first.shape() == second.shape() && bits(first).eq(bits(second))
        })
}

/// Makes one convolution of layers with the same weights: each takes a column of its input and makes one of its output.
fn join_layers(draft: &mut Draft, members: &[usize]) -> Result<(), CompileError> {
    let first = draft.graph.nodes[members[0]].clone();
    let Op::MatMul { weight, bias } = &first.op else { return Ok(()) };
    let matrix = draft.tensors.of_node(&first.name, weight)?;
    let &[inputs, outputs] = matrix.shape() else { return Ok(()) };
    let rows = Moves::transpose(matrix.shape(), &[1, 0]).apply(&[matrix.data()]);
    let kernel = Tensor::new(vec![outputs, inputs, 1, 1], rows).unwrap_or_else(|| Tensor::vector(Vec::new()));
    let weight = draft.add_tensor(&format!("{}/kernel", first.name), kernel)?;
    let bias = bias.clone();
    let conv = Op::Conv { weight, bias, strides: [1, 1], pads: [0; 4], dilations: [1, 1], groups: 1 };
    let mut made = Made::default();
    let columns = members.iter().map(|&member| {
        let input = draft.graph.nodes[member].inputs.clone();
        made.add(
            draft,
            format!("{}/column", draft.graph.nodes[member].name),
            Op::Reshape { shape: vec![inputs, 1, 1] },
            input,
        )
    });
    let columns: Vec<String> = columns.collect();
    let all = made.add(draft, format!("{}/columns", first.name), Op::Concat { axis: 1 }, columns);
    let all = made.add(draft, format!("{}/joined", first.name), conv, vec![all]);
    for (place, &member) in members.iter().enumerate() {
        let name = draft.graph.nodes[member].name.clone();
        let slice = Op::Slice { starts: vec![0, place, 0], sizes: vec![outputs, 1, 1], steps: vec![1; 3] };
        let column = made.add(draft, format!("{name}/slice"), slice, vec![all.clone()]);
        made.0.push(Node { name, op: Op::Reshape { shape: vec![outputs] }, inputs: vec![column] });
    }
    replace(draft, members, made)
}

/// Makes one sigmoid of sigmoids and hyperbolic tangents.
fn join_gates(draft: &mut Draft, members: &[usize]) -> Result<(), CompileError> {
    let name = draft.graph.nodes[members[0]].name.clone();
    let is_tanh = |draft: &Draft, member: usize| draft.graph.nodes[member].op == Op::Function(Function::Tanh);
    let mixed = !members.iter().all(|&member| is_tanh(draft, member));
    let op = Op::Function(if mixed { Function::Sigmoid } else { Function::Tanh });
    let two = Op::MulConstant { value: draft.add_tensor(&format!("{name}/two"), Tensor::vector(vec![2.0]))? };
    let less =
        Op::AddConstant { value: draft.add_tensor(&format!("{name}/less"), Tensor::vector(vec![-1.0]))? };
    let (mut made, mut inputs, mut sizes) = (Made::default(), Vec::new(), Vec::new());
    for &member in members {
        let Node { name, inputs: input, .. } = draft.graph.nodes[member].clone();
        let size = draft.input_shape(member).iter().product();
        let mut x = made.add(draft, format!("{name}/sums"), Op::Reshape { shape: vec![size] }, input);
        if mixed && is_tanh(draft, member) {
            x = made.add(draft, format!("{name}/twice"), two.clone(), vec![x]);
        }
        inputs.push(x);
        sizes.push(size);
    }
    let all = made.add(draft, format!("{name}/all"), Op::Concat { axis: 0 }, inputs);
    let all = made.add(draft, format!("{name}/joined"), op, vec![all]);
    let mut start = 0;
    for (&member, size) in members.iter().zip(sizes) {
        let name = draft.graph.nodes[member].name.clone();
        let slice = Op::Slice { starts: vec![start], sizes: vec![size], steps: vec![1] };
        start += size;
        let mut y = made.add(draft, format!("{name}/gate"), slice, vec![all.clone()]);
        if mixed && is_tanh(draft, member) {
            y = made.add(draft, format!("{name}/doubled"), two.clone(), vec![y]);
            y = made.add(draft, format!("{name}/less"), less.clone(), vec![y]);
        }
        let op = Op::Reshape { shape: draft.input_shape(member).to_vec() };
        made.0.push(Node { name, op, inputs: vec![y] });
    }
    replace(draft, members, made)
}

/// Nodes in their order.
#[derive(Default)]
struct Made(Vec<Node>);

impl Made {
    /// Adds a node under a name that is free; returns the name.
    fn add(&mut self, draft: &Draft, mut name: String, op: Op, inputs: Vec<String>) -> String {
        name = draft.fresh_name(name);
        while self.0.iter().any(|node| node.name == name) {
            name.push('\'');
        }
        self.0.push(Node { name: name.clone(), op, inputs });
        name
    }
}

/// Puts nodes in the place of others, which have the same names where others take them.
fn replace(draft: &mut Draft, members: &[usize], made: Made) -> Result<(), CompileError> {
    let members: BTreeSet<usize> = members.iter().copied().collect();
    let mut index = 0;
    draft.graph.nodes.retain(|_| {
        index += 1;
        !members.contains(&(index - 1))
    });
    // The others' are as they were.
    infer_added(&made.0, &mut draft.shapes, &draft.tensors)?;
    draft.graph.nodes.extend(made.0);
    sort(draft);
    Ok(())
}

/// Brings nodes behind those that they take values of; else they keep their order.
fn sort(draft: &mut Draft) {
    let nodes = &draft.graph.nodes;
    let places = places(draft);
    let (mut users, mut missing) = (vec![Vec::new(); nodes.len()], vec![0; nodes.len()]);
    for (index, node) in nodes.iter().enumerate() {
        for before in node.inputs.iter().filter_map(|input| places.get(input.as_str())) {
            users[*before].push(index);
            missing[index] += 1;
        }
    }
    let ready = (0..nodes.len()).filter(|&index| missing[index] == 0).map(std::cmp::Reverse);
    let (mut ready, mut order): (BinaryHeap<_>, Vec<usize>) = (ready.collect(), Vec::new());
    while let Some(std::cmp::Reverse(index)) = ready.pop() {
        order.push(index);
        for &user in &users[index] {
            missing[user] -= 1;
            if missing[user] == 0 {
                ready.push(std::cmp::Reverse(user));
            }
        }
    }
    let mut nodes: Vec<_> = std::mem::take(&mut draft.graph.nodes).into_iter().map(Some).collect();
    draft.graph.nodes = order.into_iter().filter_map(|index| nodes[index].take()).collect();
}
