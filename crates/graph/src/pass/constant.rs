//! Constant factors and terms move along the chain until a linear layer takes them into its weights and bias.
//!
//! First towards the layer before, then what is left towards the layer behind. A factor passes an operator that commutes with it: a
//! non-negative one passes homogeneous activations and max-pooling, one per channel passes pooling, any passes a reshape or a
//! transposition. A term passes a reshape or a transposition, and, one per channel, pooling. Behind an `Add` a term enters one branch
//! and a factor both, where layers are there to take them.

use lanner_network::movement::Moves;
use lanner_network::{CompileError, Tensor};

use super::{Draft, fold};
use crate::elementwise::Elementwise;
use crate::graph::{Node, Op};

/// A constant of an operator, repeated to the whole shape of the operator's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Factor,
    Term,
}

/// Folds constants until none can move.
pub(super) fn fold(draft: &mut Draft) -> Result<(), CompileError> {
    while move_one(draft, backward)? {}
    while move_one(draft, forward)? {}
    Ok(())
}

/// Tries each constant in turn; whether one moved.
fn move_one(
    draft: &mut Draft,
    attempt: impl Fn(&mut Draft, usize, Role) -> Result<bool, CompileError>,
) -> Result<bool, CompileError> {
    for index in 0..draft.graph.nodes.len() {
        if let Some(role) = role(&draft.graph.nodes[index].op)
            && attempt(draft, index, role)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

const fn role(op: &Op) -> Option<Role> {
    match op {
        Op::MulConstant { .. } => Some(Role::Factor),
        Op::AddConstant { .. } => Some(Role::Term),
        _ => None,
    }
}

/// Moves the constant at `index` one step towards the input, or into the layer before it.
fn backward(draft: &mut Draft, index: usize, role: Role) -> Result<bool, CompileError> {
    let Some(before) = draft.chained_before(index) else { return Ok(false) };
    let op = draft.graph.nodes[before].op.clone();
    match &op {
        Op::Conv { .. } | Op::MatMul { .. } => {
            let values = values_of(draft, index)?;
            let taken = match role {
                Role::Factor => fold::scale_outputs(draft, before, &values)?,
                Role::Term => fold::shift_outputs(draft, before, &values)?,
            };
            if taken {
                draft.remove(index);
            }
            Ok(taken)
        }
        Op::MulConstant { .. } | Op::AddConstant { .. } if self::role(&op) == Some(role) => {
            merge(draft, before, index, role)
        }
        // a (x + b) = a x + a b
        Op::AddConstant { .. } => {
            let term = product(&values_of(draft, before)?, &values_of(draft, index)?);
            draft.exchange(before, index)?;
            // The term now stands right behind the factor.
            set_values(draft, before + 1, term)?;
            Ok(true)
        }
        Op::Add => Ok(into_branches(draft, before, index, role)),
        _ => pass(draft, before, index, before, role),
    }
}

/// Moves the constant at `index`, which alone uses the sum `sum`, into the branches whose layers can take it.
fn into_branches(draft: &mut Draft, mut sum: usize, index: usize, role: Role) -> bool {
    let takes = |input: &String| {
        draft
            .only_consumer(input)
            .and(draft.producer(input))
            .is_some_and(|node| draft.graph.nodes[node].op.is_linear())
    };
    let inputs = draft.graph.nodes[sum].inputs.clone();
    let branches: Vec<usize> = (0..inputs.len()).filter(|&branch| takes(&inputs[branch])).collect();
    let branches = match role {
        Role::Term => &branches[..1.min(branches.len())],
        Role::Factor if branches.len() == inputs.len() => &branches[..],
        Role::Factor => &[],
    };
    if branches.is_empty() {
        return false;
    }
    let constant = draft.graph.nodes[index].clone();
    draft.remove(index);
    for &branch in branches {
        let name = draft.fresh_name(format!("{}/{branch}", constant.name));
        draft.shapes.insert(name.clone(), draft.shapes[&inputs[branch]].clone());
        let node = Node { name: name.clone(), op: constant.op.clone(), inputs: vec![inputs[branch].clone()] };
        draft.graph.nodes[sum].inputs[branch] = name;
        draft.graph.nodes.insert(sum, node);
        sum += 1;
    }
    true
}

/// Moves the constant at `index` one step towards the output, or into the layer behind it.
fn forward(draft: &mut Draft, index: usize, role: Role) -> Result<bool, CompileError> {
    let Some(behind) = draft.only_consumer(&draft.graph.nodes[index].name) else {
        return into_layers(draft, index, role);
    };
    match &draft.graph.nodes[behind].op {
        Op::Conv { .. } | Op::MatMul { .. } => {
            let values = values_of(draft, index)?;
            let taken = match role {
                Role::Factor => fold::scale_inputs(draft, behind, &values)?,
                Role::Term => fold::shift_inputs(draft, behind, &values)?,
            };
            if taken {
                draft.remove(index);
            }
            Ok(taken)
        }
        Op::MulConstant { .. } | Op::AddConstant { .. } => Ok(false),
        _ => pass(draft, index, behind, behind, role),
    }
}

/// Moves the constant at `index` into all that take what it makes, if these are layers that can: the queries, keys and values of an
/// attention, say.
fn into_layers(draft: &mut Draft, index: usize, role: Role) -> Result<bool, CompileError> {
    let name = draft.graph.nodes[index].name.clone();
    let takers: Vec<usize> =
        (0..draft.graph.nodes.len()).filter(|node| draft.graph.nodes[*node].inputs.contains(&name)).collect();
    let all_layers = takers.iter().all(|taker| draft.graph.nodes[*taker].op.is_linear());
    if takers.is_empty() || !all_layers || draft.graph.output == name {
        return Ok(false);
    }
    let values = values_of(draft, index)?;
    let is_of_channels = |taker: &usize| match &draft.graph.nodes[*taker].op {
        Op::Conv { .. } => per_channel(&values, draft.input_shape(*taker)[0]).is_some(),
        _ => true,
    };
    if role == Role::Factor && !takers.iter().all(is_of_channels) {
        return Ok(false);
    }
    for taker in takers {
        let taken = match role {
            Role::Factor => fold::scale_inputs(draft, taker, &values)?,
            Role::Term => fold::shift_inputs(draft, taker, &values)?,
        };
        debug_assert!(taken, "a layer takes what it was asked for");
    }
    draft.remove(index);
    Ok(true)
}

/// Exchanges the neighbours `first` and `second`, one of which is the constant and the other `operator`, if they commute.
fn pass(
    draft: &mut Draft,
    first: usize,
    second: usize,
    operator: usize,
    role: Role,
) -> Result<bool, CompileError> {
    // Values may be many, and most constants are asked again and again before one of them moves.
    let Some((commutes, factors)) = commutation(&draft.graph.nodes[operator].op, role) else {
        return Ok(false);
    };
    let moving_back = operator == first;
    let constant = if moving_back { second } else { first };
    if factors == Factors::NotNegative && !tensor_of(draft, constant)?.is_some_and(is_not_negative) {
        return Ok(false);
    }
    let values = values_of(draft, constant)?;
    let target =
        if moving_back { draft.input_shape(operator) } else { draft.output_shape(operator) }.to_vec();
    let source = if moving_back { draft.output_shape(operator) } else { draft.input_shape(operator) };
    let moved = match commutes {
        Commutes::ElementWise => Some(values),
        Commutes::Moved => {
            Some(moved_by(&draft.graph.nodes[operator].op, draft.input_shape(operator), &values, moving_back))
        }
        Commutes::PerChannel => per_channel(&values, source[0])
            .map(|channels| lanner_network::shape::per_channel_or_whole(&channels, &target)),
    };
    let Some(moved) = moved else { return Ok(false) };
    // The constant takes its new shape first, so that the exchanged graph is sound.
    replace_tensor(draft, constant, Tensor::new(target, moved))?;
    draft.exchange(first, second)?;
    Ok(true)
}

/// How an operator commutes with a constant.
enum Commutes {
    /// Element by element, in the row-major order that a reshape keeps.
    ElementWise,
    /// Element by element, moved as the operator moves them.
    Moved,
    /// If the constant is one value per channel.
    PerChannel,
}

/// The constants that an operator commutes with.
#[derive(PartialEq, Eq)]
enum Factors {
    All,
    NotNegative,
}

/// The constant on the other side of a transposition of a value of shape `shape`.
pub(super) fn moved_by(op: &Op, shape: &[usize], values: &[f32], back: bool) -> Vec<f32> {
    let Op::Transpose { axes } = op else { return values.to_vec() };
    let moves = Moves::transpose(shape, axes);
    if !back {
        return moves.apply(&[values]);
    }
    let mut moved = vec![0.0; values.len()];
    for (source, &value) in moves.sources().iter().flatten().zip(values) {
        moved[source.element] = value;
    }
    moved
}

/// How an operator commutes with constants of a role, and with which; none if it does with none.
fn commutation(op: &Op, role: Role) -> Option<(Commutes, Factors)> {
    Some(match (op, role) {
        (Op::Flatten | Op::Reshape { .. }, _) => (Commutes::ElementWise, Factors::All),
        (Op::Transpose { .. }, _) => (Commutes::Moved, Factors::All),
        (Op::MaxPool { .. }, Role::Factor) => (Commutes::PerChannel, Factors::NotNegative),
        (Op::MaxPool { .. }, Role::Term)
        | (Op::AveragePool { .. }, Role::Factor)
        | (Op::GlobalAveragePool, _) => (Commutes::PerChannel, Factors::All),
        // A window's padding does not carry the term.
        (Op::AveragePool { pads, count_include_pad, .. }, Role::Term)
            if *pads == [0; 4] || !count_include_pad =>
        {
            (Commutes::PerChannel, Factors::All)
        }
        (op, Role::Factor) if op.elementwise().is_some_and(Elementwise::is_homogeneous) => {
            (Commutes::ElementWise, Factors::NotNegative)
        }
        _ => return None,
    })
}

fn is_not_negative(constant: &Tensor) -> bool {
    constant.data().iter().all(|&value| value >= 0.0)
}

/// Joins two constants of one role; the first node stays.
fn merge(draft: &mut Draft, first: usize, second: usize, role: Role) -> Result<bool, CompileError> {
    let (a, b) = (values_of(draft, first)?, values_of(draft, second)?);
    let joined = match role {
        Role::Factor => product(&a, &b),
        Role::Term => a.iter().zip(&b).map(|(a, b)| a + b).collect(),
    };
    set_values(draft, first, joined)?;
    draft.remove(second);
    Ok(true)
}

fn product(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}

/// The constant's values over the whole shape of its operand.
///
/// # Errors
/// [`CompileError::UnknownTensor`] if the tensor is missing.
pub fn values_of(draft: &Draft, index: usize) -> Result<Vec<f32>, CompileError> {
    // Inference checked that the constant broadcasts.
    let repeated = |constant: &Tensor| constant.broadcast(draft.input_shape(index));
    Ok(tensor_of(draft, index)?.and_then(repeated).unwrap_or_default())
}

/// The constant as it is kept; none if the node has none.
fn tensor_of(draft: &Draft, index: usize) -> Result<Option<&Tensor>, CompileError> {
    let node = &draft.graph.nodes[index];
    let (Op::MulConstant { value } | Op::AddConstant { value }) = &node.op else { return Ok(None) };
    draft.tensors.of_node(&node.name, value).map(Some)
}

fn set_values(draft: &mut Draft, index: usize, values: Vec<f32>) -> Result<(), CompileError> {
    let shape = draft.input_shape(index).to_vec();
    replace_tensor(draft, index, Tensor::new(shape, values))
}

fn replace_tensor(draft: &mut Draft, index: usize, tensor: Option<Tensor>) -> Result<(), CompileError> {
    let node = draft.graph.nodes[index].clone();
    let mismatch = || CompileError::Shape {
        node: node.name.clone(),
        operator: node.op.name(),
        reason: "its constant does not fill its shape".to_owned(),
    };
    let name = draft.add_tensor(&format!("{}/constant", node.name), tensor.ok_or_else(mismatch)?)?;
    if let Op::MulConstant { value } | Op::AddConstant { value } = &mut draft.graph.nodes[index].op {
        *value = name;
    }
    Ok(())
}

/// One value per channel, if the values are constant on each of the `channels` equal runs.
pub(super) fn per_channel(values: &[f32], channels: usize) -> Option<Vec<f32>> {
    let runs = values.chunks_exact(values.len().checked_div(channels).filter(|&run| run > 0)?);
    runs.map(|run| run.iter().all(|value| value.to_bits() == run[0].to_bits()).then_some(run[0])).collect()
}
