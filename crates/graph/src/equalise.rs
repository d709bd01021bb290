//! Channels of more even sizes, for networks that miss a precision because one unit serves channels of very different sizes.
//!
//! A layer has one unit for all its weights, and one for all its values. Where values reach the next layers through `f` with `f(c x) = c f(x)` for c > 0, a
//! channel may be made c times as large if the weights that take it are made c times as small ([NBBW19] section 4.1, <https://arxiv.org/abs/1906.04721>). Here,
//! other than there, c is a power of two, so that the floats in between are the same but for their exponents, and the output is the same float for float; and
//! channels are only raised, until either their values or their weights are about the layer's largest: neither unit grows. By weights alone, channels that hardly
//! ever have a value would be raised without end.
//!
//! What comes out is another set of tensors for the same graph. Factors are the owner's, as weights are: nothing else says that there are any.

use lanner_network::{CompileError, InputError, Tensor, Tensors};

use crate::elementwise::Elementwise;
use crate::graph::{Graph, Node, Op, Shapes, infer};
use crate::{FloatExecutor, cores};

/// The samples that channels' sizes are measured on, evenly spread.
const MEASURED: usize = 16;

/// The tensors with which a graph computes the same from channels of more even sizes; none where no channel can be raised.
///
/// `calibration` holds one or more samples of the graph's input, one after the other. No channel is raised by more than `doublings`: weights that take
/// it lose as many bits, and it has as much less room for inputs that make more of it than the samples do.
///
/// # Errors
/// [`CompileError`] if the graph or its tensors are damaged, or samples are misshapen or not finite.
pub fn equalised(
    graph: &Graph,
    tensors: &Tensors,
    calibration: &[f32],
    doublings: u32,
) -> Result<Option<Tensors>, CompileError> {
    let web = Web { graph, shapes: infer(graph, tensors)? };
    let groups: Vec<Group> = (0..graph.nodes.len()).filter_map(|maker| web.group(maker)).collect();
    let sizes = web.sizes(&groups, tensors, calibration)?;
    let mut equal = tensors.clone();
    let mut is_changed = false;
    for (group, sizes) in groups.iter().zip(sizes) {
        let rows = web.row_sizes(group, &equal)?;
        let factors = factors(&sizes, &rows, doublings);
        if factors.iter().any(|factor| *factor > 1.0) {
            web.raise(group, &factors, &mut equal)?;
            is_changed = true;
        }
    }
    Ok(is_changed.then_some(equal))
}

/// What each channel is multiplied with: as many doublings as leave it below the largest by its values and by its weights.
fn factors(sizes: &[f64], rows: &[f64], doublings: u32) -> Vec<f32> {
    let largest = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
    let [largest_size, largest_row] = [sizes, rows].map(largest);
    let of_channel = |(size, row): (&f64, &f64)| {
        if *size == 0.0 || *row == 0.0 {
            return 1.0;
        }
        let room = (largest_size / size).min(largest_row / row);
        room.log2().floor().clamp(0.0, doublings.into()).exp2() as f32
    };
    sizes.iter().zip(rows).map(of_channel).collect()
}

/// A graph and the shapes of its values.
struct Web<'g> {
    graph: &'g Graph,
    shapes: Shapes,
}

/// Channels that one layer makes and that layers alone take.
struct Group {
    /// The layer, by its place in the graph.
    maker: usize,
    /// The normalisation that alone takes its value, if there is one.
    norm: Option<usize>,
    /// The layers that take what it makes.
    takers: Vec<usize>,
    channels: usize,
}

/// The value that a layer, or the normalisation behind it, makes.
#[derive(Clone, Copy)]
struct Channels<'v> {
    value: &'v str,
    channels: usize,
}

impl Web<'_> {
    /// The channels that a node makes, if they may be raised.
    fn group(&self, maker: usize) -> Option<Group> {
        let node = &self.graph.nodes[maker];
        let channels = self.shapes[&node.name][0];
        if !node.op.is_linear() || !self.has_own_tensors(node) {
            return None;
        }
        let norm = self.norm_of(&node.name);
        let value = norm.map_or(&node.name, |norm| &self.graph.nodes[norm].name);
        let mut takers = Vec::new();
        self.takers(Channels { value, channels }, value, &mut takers)?;
        takers.sort_unstable();
        takers.dedup();
        (!takers.is_empty()).then_some(Group { maker, norm, takers, channels })
    }

    /// The nodes that take a value.
    fn users<'a>(&'a self, value: &'a str) -> impl Iterator<Item = (usize, &'a Node)> {
        let takes = move |node: &Node| node.inputs.iter().any(|input| input == value);
        self.graph.nodes.iter().enumerate().filter(move |(_, node)| takes(node))
    }

    /// The normalisation that alone takes a value.
    fn norm_of(&self, value: &str) -> Option<usize> {
        let mut users = self.users(value);
        let (index, node) = users.next().filter(|_| users.next().is_none())?;
        let is_norm = matches!(node.op, Op::BatchNorm { .. }) && self.graph.output != value;
        (is_norm && self.has_own_tensors(node)).then_some(index)
    }

    /// The layers that take a value, or what is made of it by operators that let factors through; none where anything else does.
    fn takers(&self, of: Channels<'_>, value: &str, takers: &mut Vec<usize>) -> Option<()> {
        if self.graph.output == value {
            return None;
        }
        for (index, node) in self.users(value) {
            if self.lets_through(of, node) {
                self.takers(of, &node.name, takers)?;
                continue;
            }
            // Each of its inputs is of one channel.
            let fits = node.op.is_linear() && self.shapes[value][0].is_multiple_of(of.channels);
            if !fits || !self.has_own_tensors(node) {
                return None;
            }
            takers.push(index);
        }
        Some(())
    }

    /// Whether a node makes of channels what lies as they do and is as many times larger as they are.
    fn lets_through(&self, of: Channels<'_>, node: &Node) -> bool {
        match &node.op {
            Op::MaxPool { .. }
            | Op::AveragePool { .. }
            | Op::GlobalAveragePool
            | Op::Flatten
            | Op::Reshape { .. } => true,
            // Behind the first axis what is of a channel stays together, if all of it is of the same channels.
            Op::Concat { axis } => {
                *axis > 0
                    && self.shapes[&node.name][0].is_multiple_of(of.channels)
                    && node.inputs.iter().all(|input| self.is_of(of, input))
            }
            op => op.elementwise().is_some_and(Elementwise::is_homogeneous),
        }
    }

    /// Whether a value is made of these channels alone, by operators that let factors through.
    fn is_of(&self, of: Channels<'_>, value: &str) -> bool {
        let maker = || self.graph.nodes.iter().find(|node| node.name == value);
        value == of.value
            || maker().is_some_and(|node| {
                !node.op.is_linear()
                    && node.inputs.iter().all(|input| self.is_of(of, input))
                    && self.lets_through(of, node)
            })
    }

    /// Whether no tensor of a node is named again, there or elsewhere.
    fn has_own_tensors(&self, node: &Node) -> bool {
        let all = || self.graph.nodes.iter().flat_map(|node| named(&node.op));
        named(&node.op).into_iter().all(|name| all().filter(|other| *other == name).count() == 1)
    }

    /// For each group, the largest value of each of its channels that a layer takes, over some of the samples.
    fn sizes(
        &self,
        groups: &[Group],
        tensors: &Tensors,
        calibration: &[f32],
    ) -> Result<Vec<Vec<f64>>, CompileError> {
        let executor = FloatExecutor::new(self.graph, tensors)?;
        let all: Vec<&[f32]> = calibration.chunks(executor.input_len().max(1)).collect();
        let count = all.len().min(MEASURED);
        let samples: Vec<&[f32]> = (0..count).map(|index| all[index * all.len() / count]).collect();
        let number = |name: &str| self.graph.nodes.iter().position(|node| node.name == name).map(|at| at + 1);
        let of_sample = |values: Vec<Vec<f32>>| -> Vec<Vec<f64>> {
            let of_group = |group: &Group| {
                let mut sizes = vec![0.0_f64; group.channels];
                for taker in &group.takers {
                    let taken = number(&self.graph.nodes[*taker].inputs[0]).map_or(&[][..], |at| &values[at]);
                    let length = (taken.len() / group.channels).max(1);
                    for (size, channel) in sizes.iter_mut().zip(taken.chunks(length)) {
                        *size = channel.iter().fold(*size, |size, x| size.max(f64::from(x.abs())));
                    }
                }
                sizes
            };
            groups.iter().map(of_group).collect()
        };
        let refuse = |error: &InputError| CompileError::Calibration {
            reason: error.to_string(),
            fix: error.fix().to_owned(),
        };
        let each = cores::map(&samples, |sample| executor.run_all(sample).map(of_sample));
        let mut sizes: Vec<Vec<f64>> = groups.iter().map(|group| vec![0.0; group.channels]).collect();
        for of_sample in each {
            let of_sample = of_sample.map_err(|error| refuse(&error))?;
            for (size, x) in sizes.iter_mut().flatten().zip(of_sample.into_iter().flatten()) {
                *size = size.max(x);
            }
        }
        Ok(sizes)
    }

    /// The largest weight of each of a group's channels, what a normalisation multiplies it with included.
    fn row_sizes(&self, group: &Group, tensors: &Tensors) -> Result<Vec<f64>, CompileError> {
        let node = &self.graph.nodes[group.maker];
        let mut sizes = vec![0.0_f64; group.channels];
        if let Op::Conv { weight, .. } | Op::MatMul { weight, .. } = &node.op {
            let tensor = tensors.of_node(&node.name, weight)?;
            let length = (tensor.data().len() / group.channels).max(1);
            for (index, x) in tensor.data().iter().enumerate() {
                let channel =
                    if matches!(node.op, Op::Conv { .. }) { index / length } else { index % group.channels };
                sizes[channel] = sizes[channel].max(f64::from(x.abs()));
            }
        }
        if let Some(norm) = group.norm.map(|norm| &self.graph.nodes[norm])
            && let Op::BatchNorm { scale, var, eps, .. } = &norm.op
        {
            let (scale, var) = (tensors.of_node(&norm.name, scale)?, tensors.of_node(&norm.name, var)?);
            for ((size, scale), var) in sizes.iter_mut().zip(scale.data()).zip(var.data()) {
                *size *= f64::from(scale.abs()) / (f64::from(*var) + eps).sqrt();
            }
        }
        Ok(sizes)
    }

    /// Multiplies a group's channels with factors where they are made, and divides the weights that take them.
    fn raise(&self, group: &Group, factors: &[f32], tensors: &mut Tensors) -> Result<(), CompileError> {
        let last = &self.graph.nodes[group.norm.unwrap_or(group.maker)];
        let made = match &last.op {
            Op::BatchNorm { scale, bias, .. } => vec![scale, bias],
            Op::Conv { weight, bias, .. } | Op::MatMul { weight, bias } => {
                [weight].into_iter().chain(bias).collect()
            }
            _ => Vec::new(),
        };
        for name in made {
            let of_channel = (tensors.of_node(&last.name, name)?.data().len() / group.channels).max(1);
            if matches!(last.op, Op::MatMul { .. }) {
                times(tensors, last, name, |index| factors[index % group.channels])?;
            } else {
                times(tensors, last, name, |index| factors[index / of_channel])?;
            }
        }
        for taker in group.takers.iter().map(|taker| &self.graph.nodes[*taker]) {
            let (Op::Conv { weight, .. } | Op::MatMul { weight, .. }) = &taker.op else { continue };
            // How many of the layer's inputs, along the first axis, a channel is.
            let each = self.shapes[&taker.inputs[0]][0] / group.channels;
            let shape = tensors.of_node(&taker.name, weight)?.shape().to_vec();
            match (&taker.op, &shape[..]) {
                (Op::Conv { groups, .. }, &[rows, columns, height, width]) => {
                    let (area, of_group) = (height * width, rows / groups);
                    times(tensors, taker, weight, |index| {
                        let (row, column) = (index / (columns * area), index / area % columns);
                        factors[(row / of_group * columns + column) / each].recip()
                    })?;
                }
                (_, &[_, columns]) => {
                    times(tensors, taker, weight, |index| factors[index / columns / each].recip())?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The tensors that an operator names.
fn named(op: &Op) -> Vec<&str> {
    match op {
        Op::Conv { weight, bias, .. } | Op::MatMul { weight, bias } => {
            [weight].into_iter().chain(bias).map(String::as_str).collect()
        }
        Op::BatchNorm { scale, bias, mean, var, .. } => vec![scale, bias, mean, var],
        Op::AddConstant { value } | Op::MulConstant { value } => vec![value],
        _ => Vec::new(),
    }
}

/// Multiplies each element of a node's tensor with what its place says.
fn times(
    tensors: &mut Tensors,
    node: &Node,
    name: &str,
    by: impl Fn(usize) -> f32,
) -> Result<(), CompileError> {
    let tensor = tensors.of_node(&node.name, name)?;
    let data = tensor.data().iter().enumerate().map(|(index, x)| x * by(index)).collect();
    match Tensor::new(tensor.shape().to_vec(), data) {
        Some(raised) => tensors.insert(name, raised),
        None => Ok(()),
    }
}
