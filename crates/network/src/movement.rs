//! Operators that only move elements: each output element is one input element or zero.
//!
//! One rule serves the float meaning, the fixed-point reference and the parties' shares: [`Source`] names, for an output element, the
//! element it copies. Shapes here may come from untrusted files; every function checks before it multiplies.

use crate::tensor::element_count;
use crate::window::MAX_AXIS;

/// Where an element of a moved value comes from: element `element`, row-major, of the node's input number `input`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The position among the node's inputs.
    pub input: usize,
    /// The element's row-major position.
    pub element: usize,
}

/// For each output element its source, or `None` for zero.
pub type Sources = Vec<Option<Source>>;

/// The shape with its axes reordered.
///
/// # Errors
/// The reason why the shapes do not fit, for people.
pub fn transpose(input: &[usize], axes: &[usize]) -> Result<Vec<usize>, String> {
    let mut sorted = axes.to_vec();
    sorted.sort_unstable();
    if sorted.len() != input.len() || sorted.iter().enumerate().any(|(at, &axis)| at != axis) {
        return Err(format!("axes {axes:?} are not an order of the axes of {input:?}"));
    }
    Ok(axes.iter().map(|&axis| input[axis]).collect())
}

/// The shape `sizes`, if every element lies inside the input.
///
/// # Errors
/// The reason why the shapes do not fit, for people.
pub fn slice(
    input: &[usize],
    starts: &[usize],
    sizes: &[usize],
    steps: &[i64],
) -> Result<Vec<usize>, String> {
    let wrong = || format!("starts {starts:?}, sizes {sizes:?}, steps {steps:?} do not lie inside {input:?}");
    if starts.len() != input.len() || sizes.len() != input.len() || steps.len() != input.len() {
        return Err(wrong());
    }
    for axis in 0..input.len() {
        let (start, size, step) = (starts[axis], sizes[axis], steps[axis]);
        if size == 0 || size > MAX_AXIS || start >= input[axis] || step == 0 {
            return Err(wrong());
        }
        let last = step.checked_mul(size as i64 - 1).and_then(|way| way.checked_add(start as i64));
        if last.is_none_or(|last| last < 0 || last >= input[axis] as i64) {
            return Err(wrong());
        }
    }
    Ok(sizes.to_vec())
}

/// The shape with zeros around it.
///
/// # Errors
/// The reason why the shapes do not fit, for people.
pub fn pad(input: &[usize], before: &[usize], after: &[usize]) -> Result<Vec<usize>, String> {
    let fits = |pads: &[usize]| pads.len() == input.len() && pads.iter().all(|&pad| pad <= MAX_AXIS);
    if !fits(before) || !fits(after) {
        return Err(format!(
            "pads {before:?} and {after:?} need one entry of at most {MAX_AXIS} per axis of {input:?}"
        ));
    }
    Ok((0..input.len()).map(|axis| before[axis] + input[axis] + after[axis]).collect())
}

/// The shape of values joined along an axis.
///
/// # Errors
/// The reason why the shapes do not fit, for people.
pub fn concat(inputs: &[&[usize]], axis: usize) -> Result<Vec<usize>, String> {
    let mut shape = inputs.first().map_or_else(Vec::new, |first| first.to_vec());
    if axis >= shape.len() {
        return Err(format!("axis {axis} is not an axis of {shape:?}"));
    }
    for input in &inputs[1..] {
        let agrees = |other: usize| other == axis || input[other] == shape[other];
        if input.len() != shape.len() || !(0..shape.len()).all(agrees) {
            return Err(format!("shapes {inputs:?} differ on another axis than {axis}"));
        }
        shape[axis] = shape[axis].saturating_add(input[axis]);
    }
    Ok(shape)
}

/// The sources of a checked transposition.
#[must_use]
pub fn transpose_sources(input: &[usize], axes: &[usize]) -> Sources {
    let strides = strides(input);
    let of_output: Vec<i64> = axes.iter().map(|&axis| strides[axis]).collect();
    let shape: Vec<usize> = axes.iter().map(|&axis| input[axis]).collect();
    from_first(positions(&shape, 0, &of_output))
}

/// The sources of a checked slice.
#[must_use]
pub fn slice_sources(input: &[usize], starts: &[usize], sizes: &[usize], steps: &[i64]) -> Sources {
    let strides = strides(input);
    let base = starts.iter().zip(&strides).map(|(&start, stride)| start as i64 * stride).sum();
    let of_output: Vec<i64> = steps.iter().zip(&strides).map(|(step, stride)| step * stride).collect();
    from_first(positions(sizes, base, &of_output))
}

/// The sources of a checked padding.
#[must_use]
pub fn pad_sources(input: &[usize], before: &[usize], output: &[usize]) -> Sources {
    let mut sources = vec![None; output.iter().product()];
    let strides = strides(output);
    let base = before.iter().zip(&strides).map(|(&pad, stride)| pad as i64 * stride).sum();
    place(&mut sources, 0, positions(input, base, &strides));
    sources
}

/// The sources of a checked join.
#[must_use]
pub fn concat_sources(inputs: &[&[usize]], axis: usize, output: &[usize]) -> Sources {
    let mut sources = vec![None; output.iter().product()];
    let strides = strides(output);
    let mut offset = 0;
    for (number, input) in inputs.iter().enumerate() {
        place(&mut sources, number, positions(input, offset * strides[axis], &strides));
        offset += input[axis] as i64;
    }
    sources
}

/// The sources of the same elements under another shape.
#[must_use]
pub fn reshape_sources(input: &[usize]) -> Sources {
    from_first(0..element_count(input).unwrap_or(0))
}

/// Copies elements by their sources.
pub fn gather<T: Copy + Default>(inputs: &[&[T]], sources: &Sources) -> Vec<T> {
    sources
        .iter()
        .map(|source| source.map_or_else(T::default, |source| inputs[source.input][source.element]))
        .collect()
}

fn from_first(elements: impl IntoIterator<Item = usize>) -> Sources {
    elements.into_iter().map(|element| Some(Source { input: 0, element })).collect()
}

/// Element i of input `input` goes to the i-th of `targets`.
fn place(sources: &mut Sources, input: usize, targets: Vec<usize>) {
    for (element, target) in targets.into_iter().enumerate() {
        sources[target] = Some(Source { input, element });
    }
}

/// Row-major strides.
fn strides(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as i64;
    }
    strides
}

/// `base + sum of index * stride` over the row-major indices of `shape`; the caller checked that none is negative.
fn positions(shape: &[usize], base: i64, strides: &[i64]) -> Vec<usize> {
    let mut positions = vec![base];
    for (&size, &stride) in shape.iter().zip(strides) {
        positions = positions.iter().flat_map(|&at| (0..size as i64).map(move |i| at + i * stride)).collect();
    }
    positions.into_iter().map(|at| at as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(sources: &Sources) -> Vec<Option<usize>> {
        sources.iter().map(|source| source.map(|source| source.element)).collect()
    }

    #[test]
    fn transposition_moves_axes() {
        assert_eq!(transpose(&[2, 3], &[1, 0]), Ok(vec![3, 2]));
        assert_eq!(elements(&transpose_sources(&[2, 3], &[1, 0])), [0, 3, 1, 4, 2, 5].map(Some));
        assert!(transpose(&[2, 3], &[1, 1]).is_err());
        assert!(transpose(&[2, 3], &[0]).is_err());
    }

    #[test]
    fn slices_step_either_way() {
        assert_eq!(slice(&[2, 5], &[1, 4], &[1, 3], &[1, -2]), Ok(vec![1, 3]));
        assert_eq!(elements(&slice_sources(&[2, 5], &[1, 4], &[1, 3], &[1, -2])), [9, 7, 5].map(Some));
        assert!(slice(&[5], &[1], &[3], &[2]).is_err());
        assert!(slice(&[5], &[1], &[3], &[-1]).is_err());
        assert!(slice(&[5], &[0], &[1], &[0]).is_err());
        assert!(slice(&[5], &[0], &[usize::MAX], &[i64::MAX]).is_err());
    }

    #[test]
    fn padding_leaves_zeros() {
        assert_eq!(pad(&[2], &[1], &[2]), Ok(vec![5]));
        assert_eq!(elements(&pad_sources(&[2], &[1], &[5])), [None, Some(0), Some(1), None, None]);
        assert!(pad(&[2], &[usize::MAX], &[2]).is_err());
    }

    #[test]
    fn joining_keeps_the_inputs_apart() {
        let inputs: [&[usize]; 2] = [&[2, 1], &[2, 2]];
        assert_eq!(concat(&inputs, 1), Ok(vec![2, 3]));
        let joined = gather(&[&[1, 2], &[3, 4, 5, 6]], &concat_sources(&inputs, 1, &[2, 3]));
        assert_eq!(joined, [1, 3, 4, 2, 5, 6]);
        assert!(concat(&inputs, 0).is_err());
        assert!(concat(&inputs, 2).is_err());
    }
}
