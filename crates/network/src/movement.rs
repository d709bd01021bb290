//! Operators that only move elements: each output element is one input element or zero.
//!
//! One rule serves the float meaning, the fixed-point reference and the parties' shares: [`Source`] names, for an output element, the
//! element it copies. Shapes here may come from untrusted files; every function checks before it multiplies.

use std::ops::Range;

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

/// How the elements of values move, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moves {
    len: usize,
    way: Way,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    /// Where each element is found in the one input, in order.
    From(Rows),
    /// Where the elements of each input go, in order.
    Into(Vec<Rows>),
}

impl Moves {
    /// A checked transposition.
    #[must_use]
    pub fn transpose(input: &[usize], axes: &[usize]) -> Self {
        let strides = strides(input);
        let of_output: Vec<i64> = axes.iter().map(|&axis| strides[axis]).collect();
        let shape: Vec<usize> = axes.iter().map(|&axis| input[axis]).collect();
        Self::from(&shape, 0, &of_output)
    }

    /// A checked slice.
    #[must_use]
    pub fn slice(input: &[usize], starts: &[usize], sizes: &[usize], steps: &[i64]) -> Self {
        let strides = strides(input);
        let base = starts.iter().zip(&strides).map(|(&start, stride)| start as i64 * stride).sum();
        let of_output: Vec<i64> = steps.iter().zip(&strides).map(|(step, stride)| step * stride).collect();
        Self::from(sizes, base, &of_output)
    }

    /// A checked padding.
    #[must_use]
    pub fn pad(input: &[usize], before: &[usize], output: &[usize]) -> Self {
        let strides = strides(output);
        let base = before.iter().zip(&strides).map(|(&pad, stride)| pad as i64 * stride).sum();
        let way = Way::Into(vec![Rows::new(input, base, &strides)]);
        Self { len: output.iter().product(), way }
    }

    /// A checked join.
    #[must_use]
    pub fn concat(inputs: &[&[usize]], axis: usize, output: &[usize]) -> Self {
        let strides = strides(output);
        let mut offset = 0;
        let rows = inputs.iter().map(|input| {
            let rows = Rows::new(input, offset * strides[axis], &strides);
            offset += input[axis] as i64;
            rows
        });
        Self { way: Way::Into(rows.collect()), len: output.iter().product() }
    }

    /// The same elements under another shape.
    #[must_use]
    pub fn reshape(input: &[usize]) -> Self {
        let len = element_count(input).unwrap_or(0);
        Self::from(&[len], 0, &[1])
    }

    fn from(shape: &[usize], base: i64, strides: &[i64]) -> Self {
        Self { way: Way::From(Rows::new(shape, base, strides)), len: shape.iter().product() }
    }

    /// The moved elements of the inputs.
    pub fn apply<T: Copy + Default>(&self, inputs: &[&[T]]) -> Vec<T> {
        match &self.way {
            Way::From(rows) => {
                let mut moved = Vec::with_capacity(self.len);
                for start in rows.starts() {
                    match rows.row(start) {
                        Row::Whole(places) => moved.extend_from_slice(&inputs[0][places]),
                        Row::Apart(places) => moved.extend(places.map(|place| inputs[0][place])),
                    }
                }
                moved
            }
            Way::Into(each) => {
                let mut moved = vec![T::default(); self.len];
                for (rows, input) in each.iter().zip(inputs) {
                    for (start, row) in rows.starts().into_iter().zip(input.chunks(rows.count.max(1))) {
                        match rows.row(start) {
                            Row::Whole(places) => moved[places].copy_from_slice(row),
                            Row::Apart(places) => places.zip(row).for_each(|(place, x)| moved[place] = *x),
                        }
                    }
                }
                moved
            }
        }
    }

    /// For each output element its source, or `None` for zero.
    #[must_use]
    pub fn sources(&self) -> Sources {
        match &self.way {
            Way::From(rows) => rows.places().map(|element| Some(Source { input: 0, element })).collect(),
            Way::Into(each) => {
                let mut sources = vec![None; self.len];
                for (input, rows) in each.iter().enumerate() {
                    for (element, target) in rows.places().enumerate() {
                        sources[target] = Some(Source { input, element });
                    }
                }
                sources
            }
        }
    }
}

/// Places `base + sum of index * stride` for the row-major indices of a shape, of which none is negative. Axes that lie in memory as one are one,
/// and the last is a row.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rows {
    base: i64,
    /// The size and the stride of each axis but the last.
    outer: Vec<(usize, i64)>,
    count: usize,
    stride: i64,
}

/// The places of a row.
enum Row<R> {
    Whole(Range<usize>),
    Apart(R),
}

impl Rows {
    fn new(shape: &[usize], base: i64, strides: &[i64]) -> Self {
        let mut outer: Vec<(usize, i64)> = Vec::with_capacity(shape.len());
        for (&size, &stride) in shape.iter().zip(strides).filter(|(size, _)| **size != 1) {
            match outer.last_mut() {
                Some(last) if last.1 == stride * size as i64 => *last = (last.0 * size, stride),
                _ => outer.push((size, stride)),
            }
        }
        let (count, stride) = outer.pop().unwrap_or((1, 1));
        Self { base, outer, count, stride }
    }

    /// Where each row begins.
    fn starts(&self) -> Vec<i64> {
        let mut starts = vec![self.base];
        for &(size, stride) in &self.outer {
            starts = starts.iter().flat_map(|&at| (0..size as i64).map(move |i| at + i * stride)).collect();
        }
        starts
    }

    fn row(&self, start: i64) -> Row<impl Iterator<Item = usize>> {
        let (count, stride) = (self.count, self.stride);
        if stride == 1 {
            Row::Whole(start as usize..start as usize + count)
        } else {
            Row::Apart((0..count as i64).map(move |index| (start + index * stride) as usize))
        }
    }

    fn places(&self) -> impl Iterator<Item = usize> {
        let (count, stride) = (self.count as i64, self.stride);
        let row = move |start| (0..count).map(move |index| (start + index * stride) as usize);
        self.starts().into_iter().flat_map(row)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(sources: &Sources) -> Vec<Option<usize>> {
        sources.iter().map(|source| source.map(|source| source.element)).collect()
    }

    #[test]
    fn transposition_moves_axes() {
        assert_eq!(transpose(&[2, 3], &[1, 0]), Ok(vec![3, 2]));
        assert_eq!(elements(&Moves::transpose(&[2, 3], &[1, 0]).sources()), [0, 3, 1, 4, 2, 5].map(Some));
        assert!(transpose(&[2, 3], &[1, 1]).is_err());
        assert!(transpose(&[2, 3], &[0]).is_err());
    }

    #[test]
    fn slices_step_either_way() {
        assert_eq!(slice(&[2, 5], &[1, 4], &[1, 3], &[1, -2]), Ok(vec![1, 3]));
        assert_eq!(
            elements(&Moves::slice(&[2, 5], &[1, 4], &[1, 3], &[1, -2]).sources()),
            [9, 7, 5].map(Some)
        );
        assert!(slice(&[5], &[1], &[3], &[2]).is_err());
        assert!(slice(&[5], &[1], &[3], &[-1]).is_err());
        assert!(slice(&[5], &[0], &[1], &[0]).is_err());
        assert!(slice(&[5], &[0], &[usize::MAX], &[i64::MAX]).is_err());
    }

    #[test]
    fn padding_leaves_zeros() {
        assert_eq!(pad(&[2], &[1], &[2]), Ok(vec![5]));
        assert_eq!(elements(&Moves::pad(&[2], &[1], &[5]).sources()), [None, Some(0), Some(1), None, None]);
        assert!(pad(&[2], &[usize::MAX], &[2]).is_err());
    }

    #[test]
    fn joining_keeps_the_inputs_apart() {
        let inputs: [&[usize]; 2] = [&[2, 1], &[2, 2]];
        assert_eq!(concat(&inputs, 1), Ok(vec![2, 3]));
        let joined = Moves::concat(&inputs, 1, &[2, 3]).apply(&[&[1, 2], &[3, 4, 5, 6]]);
        assert_eq!(joined, [1, 3, 4, 2, 5, 6]);
        assert!(concat(&inputs, 0).is_err());
        assert!(concat(&inputs, 2).is_err());
    }

    /// Rows that are copied as wholes, such that are not, and axes that are one.
    #[test]
    fn elements_move_as_their_sources_say() {
        let shape = [3, 4, 1, 5];
        let other = [3, 2, 1, 5];
        let mut moves = vec![Moves::reshape(&shape)];
        for axes in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 2, 3], [0, 1, 3, 2], [2, 3, 0, 1]] {
            moves.push(Moves::transpose(&shape, &axes));
        }
        for (starts, sizes, steps) in [
            ([0, 0, 0, 0], [3, 4, 1, 5], [1, 1, 1, 1]),
            ([1, 0, 0, 0], [2, 4, 1, 5], [1, 1, 1, 1]),
            ([2, 3, 0, 4], [3, 2, 1, 5], [-1, -2, 1, -1]),
            ([0, 1, 0, 2], [2, 3, 1, 1], [2, 1, 1, 1]),
            ([2, 3, 0, 4], [1, 1, 1, 1], [1, 1, 1, 1]),
        ] {
            moves.push(Moves::slice(&shape, &starts, &sizes, &steps));
        }
        for before in [[0; 4], [1, 0, 2, 0], [0, 0, 0, 3]] {
            moves.push(Moves::pad(&shape, &before, &[5, 4, 3, 9]));
        }
        moves.push(Moves::concat(&[&shape, &other, &shape], 1, &[3, 10, 1, 5]));
        moves.push(Moves::concat(&[&shape, &shape], 0, &[6, 4, 1, 5]));
        moves.push(Moves::concat(&[&[3, 1], &[3, 2]], 1, &[3, 3]));
        let values: Vec<i32> = (1..181).collect();
        let inputs: [&[i32]; 3] = [&values[..60], &values[60..120], &values[120..]];
        for moves in moves {
            let lens = match &moves.way {
                Way::From(_) => vec![60],
                Way::Into(each) => each.iter().map(|rows| rows.places().count()).collect(),
            };
            let inputs: Vec<&[i32]> = lens.iter().zip(inputs).map(|(len, input)| &input[..*len]).collect();
            let of_source = |source: &Option<Source>| source.map_or(0, |at| inputs[at.input][at.element]);
            let expected: Vec<i32> = moves.sources().iter().map(of_source).collect();
            assert_eq!(moves.apply(&inputs), expected, "{moves:?}");
            assert_eq!(expected.len(), moves.len);
        }
    }
}
