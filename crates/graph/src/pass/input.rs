//! The input in other coordinates: constants of each feature come in front of the graph, or go from there to the client.

use lanner_network::{CompileError, Preprocessing, Tensor, Tensors, position};

use super::{Draft, batch_norm, constant, tidy};
use crate::graph::{Graph, Node, Op, infer};

/// What the real input is of the coded one: `factors[j] * z + terms[j]` for the values of feature j.
#[derive(Clone, Debug, PartialEq)]
pub struct Coded {
    /// The axis whose positions are the features.
    pub axis: usize,
    /// What each feature is multiplied with.
    pub factors: Vec<f32>,
    /// What is added to each.
    pub terms: Vec<f32>,
}

/// Makes the graph's input the coded one. The constants stand in front of each user of the input, of which every one may take them.
pub(super) fn decode(draft: &mut Draft, coded: &Coded) -> Result<(), CompileError> {
    let input = draft.graph.inputs[0].clone();
    let mut shape = vec![1; input.shape.len()];
    shape[coded.axis] = coded.factors.len();
    let mut tensor = |base: &str, values: &[f32]| {
        let tensor =
            Tensor::new(shape.clone(), values.to_vec()).unwrap_or_else(|| Tensor::vector(Vec::new()));
        draft.add_tensor(&format!("{}/{base}", input.name), tensor)
    };
    let (factor, term) = (tensor("units", &coded.factors)?, tensor("centres", &coded.terms)?);
    let mut index = 0;
    while index < draft.graph.nodes.len() {
        let uses = draft.graph.nodes[index].inputs.contains(&input.name);
        let mut last = input.name.clone();
        let steps = [
            (
                Op::MulConstant { value: factor.clone() },
                coded.factors.iter().any(|factor| factor.to_bits() != 1.0_f32.to_bits()),
            ),
            (Op::AddConstant { value: term.clone() }, coded.terms.iter().any(|term| *term != 0.0)),
        ];
        for (op, _) in steps.into_iter().filter(|(_, is_needed)| uses && *is_needed) {
            let name = draft.fresh_name(format!("{}/{}", draft.graph.nodes[index].name, op.name()));
            draft.shapes.insert(name.clone(), input.shape.clone());
            draft.graph.nodes.insert(index, Node { name: name.clone(), op, inputs: vec![last] });
            last = name;
            index += 1;
        }
        let inputs = draft.graph.nodes[index].inputs.iter_mut();
        inputs.filter(|name| **name == input.name).for_each(|name| last.clone_into(name));
        index += 1;
    }
    draft.shapes = infer(&draft.graph, &draft.tensors)?;
    Ok(())
}

/// A graph without the constants that stood in front of it.
#[derive(Debug)]
pub struct Stripped {
    pub graph: Graph,
    pub tensors: Tensors,
    /// The axis whose positions are the features.
    pub axis: usize,
    pub preprocessing: Preprocessing,
}

/// Takes the constant factors and terms in front of all else from the graph, whatever moves elements between them.
///
/// # Errors
/// [`CompileError::Preprocessing`] if there are none, or they cannot be told by feature.
pub fn strip(graph: &Graph, tensors: &Tensors) -> Result<Stripped, CompileError> {
    let shapes = infer(graph, tensors)?;
    let mut draft = Draft { graph: graph.clone(), tensors: tensors.clone(), shapes };
    tidy::remove_unused(&mut draft);
    batch_norm::expand(&mut draft)?;
    let input = draft.graph.inputs[0].clone();
    let count = input.shape.iter().product();
    let (mut factors, mut terms) = (vec![1.0_f64; count], vec![0.0_f64; count]);
    let (mut value, mut moves, mut taken) = (input.name.clone(), Vec::new(), 0);
    while let Some(index) = draft.only_consumer(&value) {
        let op = draft.graph.nodes[index].op.clone();
        match op {
            Op::MulConstant { .. } | Op::AddConstant { .. } => {
                let values = constant::values_of(&draft, index)?;
                let back = |values: Vec<f32>, (op, shape): &(Op, Vec<usize>)| {
                    constant::moved_by(op, shape, &values, true)
                };
                let values = moves.iter().rev().fold(values, back);
                for ((factor, term), value) in factors.iter_mut().zip(&mut terms).zip(values) {
                    let value = f64::from(value);
                    if matches!(op, Op::AddConstant { .. }) {
                        *term += value;
                    } else {
                        (*factor, *term) = (*factor * value, *term * value);
                    }
                }
                draft.remove(index);
                taken += 1;
            }
            Op::Flatten | Op::Reshape { .. } | Op::Transpose { .. } => {
                moves.push((op, draft.input_shape(index).to_vec()));
                value.clone_from(&draft.graph.nodes[index].name);
            }
            _ => break,
        }
    }
    let refuse =
        |reason: &str| CompileError::Preprocessing { reason: reason.to_owned(), fix: "compile without it" };
    if taken == 0 {
        return Err(refuse("no constant factor or term stands in front of the first layer"));
    }
    let told = (0..input.shape.len()).find_map(|axis| {
        let by_feature = |values: &[f64]| by_position(values, &input.shape, axis);
        Some((axis, Preprocessing { factors: by_feature(&factors)?, terms: by_feature(&terms)? }))
    });
    let (axis, preprocessing) =
        told.ok_or_else(|| refuse("the constants in front of the first layer differ along several axes"))?;
    if !preprocessing.is_sound(input.shape[axis]) {
        return Err(refuse("a factor in front of the first layer is 0, or a constant there is too large"));
    }
    draft.shapes = infer(&draft.graph, &draft.tensors)?;
    Ok(Stripped { graph: draft.graph, tensors: draft.tensors, axis, preprocessing })
}

/// One value for each position of an axis, if the values differ along no other.
fn by_position(values: &[f64], shape: &[usize], axis: usize) -> Option<Vec<f64>> {
    let mut found = vec![None; shape[axis]];
    for (index, value) in values.iter().enumerate() {
        let seen: &mut Option<f64> = &mut found[position(shape, axis, index)];
        if seen.is_some_and(|seen| seen.to_bits() != value.to_bits()) {
            return None;
        }
        *seen = Some(*value);
    }
    found.into_iter().collect()
}
