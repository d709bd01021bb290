//! Passes: rewrites of the float graph that keep its meaning and bring it into the form that fixed point needs.
//!
//! In order: nodes that the output does not need go; where the input comes coded by feature, constants decode it; a final Softmax or `ArgMax` is recorded and goes; products of a value with itself
//! become squares; batch normalisation becomes a constant factor and a constant term; columns that are picked and joined go into the matrix behind them; an average whose divisor varies becomes one that
//! counts its padding, times a factor for each place; transpositions move towards the output, where
//! they meet and cancel; padding joins its convolution; quadratic activations between layers become squares; constants move into
//! neighbouring weights and biases; a `Relu` of what is never negative goes; what makes up for padding becomes factors of slices; max-pooling moves before the activation; ramps become a `Relu` and a tail; factors that no layer could take become layers of their own; layers and gates that need not wait for one another become one. A value with several users is changed for none.
//! What the passes cannot remove stays, and quantisation refuses it by name.

mod average;
mod batch_norm;
mod columns;
mod constant;
mod fold;
mod input;
pub mod layers;
mod leftover;
mod order;
mod pad;
mod parallel;
mod quadratic;
mod ramp;
mod regions;
mod sign;
mod tidy;
mod transpose;

pub use constant::values_of;
pub use input::{Coded, strip};
pub use leftover::uniform;

use lanner_network::{CompileError, Head, Tensor, Tensors};

use crate::graph::{Graph, Node, Shapes, infer};

/// A graph in the hands of the passes, with its own copy of the tensors.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The graph.
    pub graph: Graph,
    /// Its tensors.
    pub tensors: Tensors,
    /// The shapes of its values.
    pub shapes: Shapes,
}

/// Runs every pass; also returns how the graph ended.
///
/// # Errors
/// [`CompileError`] if the graph or its tensors are damaged, or it has no layer.
pub fn prepare(graph: &Graph, tensors: &Tensors) -> Result<(Draft, Head), CompileError> {
    prepare_coded(graph, tensors, None)
}

/// A float graph as compiling joins and orders it: a node of the integer network approximates the node of its name here.
///
/// # Errors
/// [`CompileError`] if the graph or its tensors are damaged.
pub fn joined(graph: &Graph, tensors: &Tensors) -> Result<(Graph, Tensors), CompileError> {
    let (Draft { graph, tensors, .. }, _) = prepare(graph, tensors)?;
    Ok((graph, tensors))
}

/// As [`prepare`], for an input that comes coded.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_coded(
    graph: &Graph,
    tensors: &Tensors,
    coded: Option<&Coded>,
) -> Result<(Draft, Head), CompileError> {
    let shapes = infer(graph, tensors)?;
    let mut draft = Draft { graph: graph.clone(), tensors: tensors.clone(), shapes };
    tidy::remove_unused(&mut draft);
    if let Some(coded) = coded {
        input::decode(&mut draft, coded)?;
    }
    let head = tidy::take_head(&mut draft)?;
    tidy::name_squares(&mut draft);
    batch_norm::expand(&mut draft)?;
    columns::join(&mut draft)?;
    average::count_padding(&mut draft)?;
    transpose::push_back(&mut draft)?;
    pad::join(&mut draft)?;
    quadratic::complete(&mut draft)?;
    constant::fold(&mut draft)?;
    sign::leave_out_relu(&mut draft);
    tidy::remove_unused(&mut draft);
    regions::split(&mut draft)?;
    order::pool_before_activation(&mut draft)?;
    ramp::take_apart(&mut draft)?;
    leftover::make_layers(&mut draft)?;
    parallel::join(&mut draft)?;
    tidy::remove_unused(&mut draft);
    draft.shapes = infer(&draft.graph, &draft.tensors)?;
    Ok((draft, head))
}

impl Draft {
    /// The node that makes the value, or `None` for the graph's input.
    fn producer(&self, value: &str) -> Option<usize> {
        self.graph.nodes.iter().position(|node| node.name == value)
    }

    /// The only node that uses the value, or `None` if several do or the value is the output.
    fn only_consumer(&self, value: &str) -> Option<usize> {
        let uses = |node: &Node| node.inputs.iter().filter(|input| *input == value).count();
        let total: usize = self.graph.nodes.iter().map(uses).sum();
        let alone = total == 1 && self.graph.output != value;
        if alone { self.graph.nodes.iter().position(|node| uses(node) == 1) } else { None }
    }

    /// The node before node `index` in a chain: it makes the node's first input, and nobody else uses that.
    fn chained_before(&self, index: usize) -> Option<usize> {
        let input = &self.graph.nodes[index].inputs[0];
        self.only_consumer(input)?;
        self.producer(input)
    }

    fn shape_of(&self, value: &str) -> &[usize] {
        &self.shapes[value]
    }

    /// Shape of the first input of node `index`.
    fn input_shape(&self, index: usize) -> &[usize] {
        self.shape_of(&self.graph.nodes[index].inputs[0])
    }

    /// Shape of the output of node `index`.
    fn output_shape(&self, index: usize) -> &[usize] {
        &self.shapes[&self.graph.nodes[index].name]
    }

    /// Makes every user of `old`, and the output, take `new`.
    fn rewire(&mut self, old: &str, new: &str) {
        let inputs = self.graph.nodes.iter_mut().flat_map(|node| node.inputs.iter_mut());
        for name in inputs.chain(std::iter::once(&mut self.graph.output)).filter(|name| *name == old) {
            new.clone_into(name);
        }
    }

    /// Removes a one-input node; its users take its input.
    fn remove(&mut self, index: usize) {
        let node = self.graph.nodes.remove(index);
        self.rewire(&node.name, &node.inputs[0]);
        self.shapes.remove(&node.name);
    }

    /// Exchanges node `first` with the one-input node `second` that alone uses it, and infers the shapes again.
    fn exchange(&mut self, first: usize, second: usize) -> Result<(), CompileError> {
        let first_name = self.graph.nodes[first].name.clone();
        let second_name = self.graph.nodes[second].name.clone();
        let source = self.graph.nodes[first].inputs[0].clone();
        self.rewire(&second_name, &first_name);
        self.graph.nodes[second].inputs[0] = source;
        self.graph.nodes[first].inputs[0] = second_name;
        let moved = self.graph.nodes.remove(second);
        self.graph.nodes.insert(first, moved);
        self.shapes = infer(&self.graph, &self.tensors)?;
        Ok(())
    }

    /// Adds a tensor under a name that nothing uses yet, and returns the name.
    fn add_tensor(&mut self, base: &str, tensor: Tensor) -> Result<String, CompileError> {
        let mut name = base.to_owned();
        while self.tensors.get(&name).is_some() {
            name.push('\'');
        }
        self.tensors.insert(&name, tensor)?;
        Ok(name)
    }

    /// A node name that nothing uses yet.
    fn fresh_name(&self, base: String) -> String {
        let mut name = base;
        while self.shapes.contains_key(&name) {
            name.push('\'');
        }
        name
    }
}
