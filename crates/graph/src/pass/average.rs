//! An average over real elements alone has a smaller divisor where a window reaches into padding. It is an average over whole
//! windows times a factor for each place.

use lanner_network::kernel::fold_windows;
use lanner_network::shape::area;
use lanner_network::{CompileError, Tensor, Window};

use super::Draft;
use crate::graph::{Node, Op, infer};

/// Makes every `AveragePool` count its padding; a `MulConstant` behind it, which keeps the node's name, makes up for it.
pub(super) fn count_padding(draft: &mut Draft) -> Result<(), CompileError> {
    while let Some((index, window)) = (0..draft.graph.nodes.len()).find_map(|index| real_window(draft, index))
    {
        let [height, width] = area(draft.output_shape(index));
        let factors = Tensor::new(vec![1, height, width], factors(draft, index, &window));
        let factors = factors.unwrap_or_else(|| Tensor::vector(Vec::new()));
        let Node { name, inputs, .. } = draft.graph.nodes[index].clone();
        let Window { kernel, strides, pads } = window;
        let value = draft.add_tensor(&format!("{name}/divisors"), factors)?;
        let whole = draft.fresh_name(format!("{name}/whole"));
        let op = Op::AveragePool { kernel, strides, pads, count_include_pad: true };
        let pool = Node { name: whole.clone(), op, inputs };
        let multiply = Node { name, op: Op::MulConstant { value }, inputs: vec![whole] };
        draft.graph.nodes.splice(index..=index, [pool, multiply]);
        draft.shapes = infer(&draft.graph, &draft.tensors)?;
    }
    Ok(())
}

fn real_window(draft: &Draft, index: usize) -> Option<(usize, Window)> {
    match draft.graph.nodes[index].op {
        Op::AveragePool { kernel, strides, pads, count_include_pad: false } if pads != [0; 4] => {
            Some((index, Window { kernel, strides, pads }))
        }
        _ => None,
    }
}

/// What the places of one channel are multiplied by behind an average that counts its padding, for it not to; none for another node.
pub(super) fn divisors(draft: &Draft, index: usize) -> Option<Vec<f32>> {
    match draft.graph.nodes[index].op {
        Op::AveragePool { kernel, strides, pads, count_include_pad: true } => {
            Some(factors(draft, index, &Window { kernel, strides, pads }))
        }
        _ => None,
    }
}

/// A window's area over its number of real elements, for each place of one channel.
fn factors(draft: &Draft, index: usize, window: &Window) -> Vec<f32> {
    let ([height, width], size) = (area(draft.input_shape(index)), area(draft.output_shape(index)));
    let plane = vec![1.0; height * width];
    let counted = fold_windows(&plane, [1, height, width], window, size, |sum: f32, one| sum + one);
    counted.iter().map(|(_, count)| window.area() as f32 / *count as f32).collect()
}
