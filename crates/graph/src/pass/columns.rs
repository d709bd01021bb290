//! Columns that are picked, scaled and joined in front of a matrix are that matrix with its rows picked and scaled.

use std::collections::HashMap;

use lanner_network::CompileError;
use lanner_network::shape::per_channel_or_whole;

use super::{Draft, fold, tidy};
use crate::graph::{Node, Op, infer};

/// A vector of which every element is one of the graph's input, times a factor, plus a term.
#[derive(Clone, Debug)]
struct Columns {
    of: Vec<Pick>,
    /// Whether an operator moved them.
    moved: bool,
}

/// Element `column` of the graph's input times `factor`, plus `term`.
#[derive(Clone, Copy, Debug)]
struct Pick {
    column: usize,
    factor: f64,
    term: f64,
}

/// Makes every matrix behind slices and joins of the input's features take the input itself, where that is a vector.
pub(super) fn join(draft: &mut Draft) -> Result<(), CompileError> {
    let input = draft.graph.inputs[0].clone();
    let &[features] = input.shape.as_slice() else { return Ok(()) };
    let whole = (0..features).map(|column| Pick { column, factor: 1.0, term: 0.0 }).collect();
    let mut known = HashMap::from([(input.name.clone(), Columns { of: whole, moved: false })]);
    for index in 0..draft.graph.nodes.len() {
        let node = &draft.graph.nodes[index];
        if let Some(columns) = pass_through(draft, node, &known)? {
            known.insert(node.name.clone(), columns);
        } else if let (Op::MatMul { .. }, Some(columns)) = (&node.op, known.get(&node.inputs[0]))
            && columns.moved
        {
            let terms: Vec<f32> = columns.of.iter().map(|pick| pick.term as f32).collect();
            fold::shift_inputs(draft, index, &terms)?;
            let rows: Vec<(usize, f64)> = columns.of.iter().map(|pick| (pick.column, pick.factor)).collect();
            fold::scatter_rows(draft, index, &rows, features)?;
            draft.graph.nodes[index].inputs[0].clone_from(&input.name);
        }
    }
    tidy::remove_unused(draft);
    draft.shapes = infer(&draft.graph, &draft.tensors)?;
    Ok(())
}

/// What a node makes of columns; None where that is something else.
fn pass_through(
    draft: &Draft,
    node: &Node,
    known: &HashMap<String, Columns>,
) -> Result<Option<Columns>, CompileError> {
    let sources: Option<Vec<&Columns>> = node.inputs.iter().map(|name| known.get(name)).collect();
    let Some(sources) = sources else { return Ok(None) };
    let constant = |value: &str, source: &Columns| -> Result<Vec<f64>, CompileError> {
        let values = draft.tensors.of_node(&node.name, value)?.data();
        Ok(per_channel_or_whole(values, &[source.of.len()]).into_iter().map(f64::from).collect())
    };
    let columns = match (&node.op, sources.as_slice()) {
        (Op::Slice { starts, sizes, steps }, [source]) => {
            let place = |element: usize| (starts[0] as i64 + element as i64 * steps[0]) as usize;
            let of = (0..sizes[0]).map(|element| source.of[place(element)]).collect();
            Columns { of, moved: true }
        }
        (Op::Concat { .. }, sources) => {
            Columns { of: sources.iter().flat_map(|source| source.of.clone()).collect(), moved: true }
        }
        (Op::AddConstant { value }, [source]) => {
            let add = |(pick, term): (&Pick, f64)| Pick { term: pick.term + term, ..*pick };
            let of = source.of.iter().zip(constant(value, source)?).map(add).collect();
            Columns { of, moved: source.moved }
        }
        (Op::MulConstant { value }, [source]) => {
            let multiply = |(pick, factor): (&Pick, f64)| Pick {
                factor: pick.factor * factor,
                term: pick.term * factor,
                ..*pick
            };
            let of = source.of.iter().zip(constant(value, source)?).map(multiply).collect();
            Columns { of, moved: source.moved }
        }
        _ => return Ok(None),
    };
    Ok(Some(columns))
}
