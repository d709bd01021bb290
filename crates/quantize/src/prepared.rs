//! What all attempts to compile one graph share: the prepared graph, the samples, and what the float graph did on them.

use std::borrow::Cow;
use std::cell::RefCell;

use lanner_graph::pass::Draft;
use lanner_graph::{FloatExecutor, Graph, Node, Op, cores, pass};
use lanner_network::{CompileError, Head, InputError, Tensor, Tensors};

use super::beside::{Beside, Input, are_probabilities};
use super::bits::LayerBits;
use super::calibrate::{Observed, OfSample, Range, Samples, observe, observe_each, samples};
use super::choice::{Choice, Chosen};
use super::compared::Compared;
use super::features::{CodedInput, Coding, prepare_input};
use super::fits::Fits;
use super::item::{Action, Item, items, only_polynomials};
use super::lower::Source;
use super::precision::Told;
use super::trace::{Calibration, Tracer};
use super::{QuantizationOptions, made, outlier, steps};
use crate::fit;

/// The part of what an input may be, relative to samples, that inputs beside these are within: twice as much is accepted.
const ACCEPTED: f64 = 1.9;

/// How many products take as long as what is done with an element of a value.
const PRODUCTS_OF_ELEMENT: usize = 10;

/// The most that the work of a sample times the squares that are looked at one by one may come to: each takes tens of runs.
const WORK_OF_SQUARES: u64 = 2_000_000_000;

/// A graph and its calibration.
pub(super) struct Prepared<'c> {
    draft: Draft,
    head: Head,
    samples: Samples<'c>,
    tracer: &'c dyn Tracer,
    tell: &'c (dyn Fn(&str) + Sync),
    /// All samples, one after the other, as the draft takes them where it does not take them as they are.
    coded: Option<Vec<f32>>,
    coding: Option<Coding>,
    /// Inputs of the compiler's own making.
    made: Vec<Vec<f32>>,
    /// Whether some of these lie beside the samples, and not in the rest of a range.
    is_beside: bool,
    /// How many there were of them before they were given up.
    given_up: usize,
    pub(super) observed: Observed,
    /// Polynomials found for functions.
    functions: fit::FitCache,
}

/// The samples that are not set aside, and what is known from them.
pub(super) struct Part<'p> {
    prepared: &'p Prepared<'p>,
    pub(super) items: Vec<Item<'p>>,
    fits: Fits<'p>,
    input: Range,
    input_ends: [f64; 2],
    compared: Option<Compared>,
    pub(super) samples: Samples<'p>,
    pub(super) made: Samples<'p>,
    pub(super) set_aside: usize,
}

impl<'c> Prepared<'c> {
    /// Runs the passes, and the float graph on the samples.
    pub(super) fn new(
        graph: &Graph,
        tensors: &Tensors,
        calibration: Calibration<'c>,
        options: &QuantizationOptions,
    ) -> Result<Self, CompileError> {
        let Calibration { samples: calibration, tracer, tell } = calibration;
        let input = prepare_input(graph, tensors, calibration, options)?;
        let CodedInput { mut draft, head, samples: coded, coding } = input;
        steps::check_count(&draft)?;
        if !options.rescales {
            pass::layers::make_all(&mut draft)?;
        }
        let observed = observe(&draft, &samples(&draft, coded.as_deref().unwrap_or(calibration))?)?;
        let samples = samples(&draft, calibration)?;
        Ok(Self {
            draft,
            head,
            samples,
            tracer,
            tell,
            coded,
            coding,
            made: Vec::new(),
            is_beside: false,
            given_up: 0,
            observed,
            functions: fit::FitCache::default(),
        })
    }

    /// The same with inputs of the compiler's own making, where the range of inputs is stated and the samples cover little of it, or where the
    /// input is choices. Those that the float graph makes nothing finite of are left out.
    ///
    /// # Errors
    /// [`CompileError`] if the graph is damaged.
    pub(super) fn widened(mut self, options: &QuantizationOptions, most: u64) -> Result<Self, CompileError> {
        let range = options.input_range.filter(|_| self.covers_little(options));
        // Of features of their own units nothing is known but from samples.
        let choices = if options.widens && self.coded.is_none() { &options.choices[..] } else { &[] };
        if range.is_none() && choices.is_empty() {
            return Ok(self);
        }
        let count = samples_within(most, self.products()?).clamp(made::FEW, made::MOST);
        let shape = &self.draft.graph.inputs[0].shape;
        let inputs = match range {
            Some(range) if choices.is_empty() => made::inputs(shape, range, count),
            _ => {
                let samples: Vec<&[f32]> = self.samples.iter().map(|(_, sample)| *sample).collect();
                made::chosen(&samples, choices, &self.draft.tensors, count)
            }
        };
        let numbered = inputs.iter().enumerate().map(|(number, input)| (number, &input[..])).collect();
        let observed = observe_each(&self.draft, &numbered)?;
        self.take(inputs, observed);
        Ok(self)
    }

    /// Takes what was made, and what the float graph does on it, but for what it makes nothing finite of.
    fn take(&mut self, inputs: Vec<Vec<f32>>, observed: Vec<Result<OfSample, CompileError>>) {
        for (input, observed) in inputs.into_iter().zip(observed) {
            let Ok((ends, scores)) = observed else { continue };
            self.observed.made.push(ends);
            self.observed.scores.push(scores);
            self.made.push(input);
        }
    }

    /// The same with inputs between the samples and beside them, where what is told are probabilities.
    ///
    /// # Errors
    /// [`CompileError`] if the graph is damaged.
    pub(super) fn beside(
        mut self,
        options: &QuantizationOptions,
        told: Told,
        most: u64,
    ) -> Result<Self, CompileError> {
        let scores = &self.observed.scores[..self.samples.len()];
        if !options.widens || !are_probabilities(told, scores) {
            return Ok(self);
        }
        let seen = self.observed.seen(&self.samples);
        // What is compared jumps, and is right on a grid that these inputs are not on.
        if items(&self.draft, &seen)?.iter().any(|item| item.action.compares()) {
            return Ok(self);
        }
        let Range { low, high } = seen[0].range;
        let executor = FloatExecutor::new(&self.draft.graph, &self.draft.tensors)?;
        let run = |taken: &[f32]| {
            let scores = executor.run(taken).ok()?;
            scores.iter().all(|score| score.is_finite()).then_some(scores)
        };
        let sample = |(number, given): &(usize, &[f32])| {
            let taken = self.as_taken(*number, given).to_vec();
            (Input { given: given.to_vec(), taken }, &scores[*number][..])
        };
        let beside = Beside {
            samples: self.samples.iter().map(sample).collect(),
            ends: options.input_range.unwrap_or([ACCEPTED * low, ACCEPTED * high]),
            is_table: self.draft.graph.inputs[0].shape.len() == 1,
            told,
            run: &run,
        };
        let inputs = beside.inputs(samples_within(most, self.products()?).max(made::FEW));
        let numbered = inputs.iter().enumerate().map(|(number, input)| (number, &input.taken[..])).collect();
        let observed = observe_each(&self.draft, &numbered)?;
        self.is_beside = !inputs.is_empty();
        self.take(inputs.into_iter().map(|input| input.given).collect(), observed);
        Ok(self)
    }

    /// Whether the range of inputs is stated, and the samples cover little of it, where other inputs may.
    pub(super) fn covers_little(&self, options: &QuantizationOptions) -> bool {
        let given: Vec<&[f32]> = self.samples.iter().map(|(_, sample)| *sample).collect();
        let range = options.input_range.filter(|_| options.widens);
        range.is_some_and(|range| made::is_sparse(made::covered(&given, range)))
    }

    /// The same without what was made; none if nothing was.
    pub(super) fn narrow(mut self) -> Option<Self> {
        self.observed.scores.truncate(self.samples.len());
        self.observed.made.clear();
        self.is_beside = false;
        self.given_up = std::mem::take(&mut self.made).len();
        (self.given_up > 0).then_some(self)
    }

    /// The name of the node that gives the scores.
    pub(super) fn output(&self) -> &str {
        &self.draft.graph.output
    }

    /// The shape of a sample's scores.
    pub(super) fn output_shape(&self) -> &[usize] {
        &self.draft.shapes[&self.draft.graph.output]
    }

    /// How many inputs were made.
    pub(super) fn made(&self) -> usize {
        self.made.len()
    }

    /// Whether some of them lie beside the samples.
    pub(super) fn is_beside(&self) -> bool {
        self.is_beside
    }

    /// How many of them were given up.
    pub(super) fn given_up(&self) -> usize {
        self.given_up
    }

    /// How many products of weights and activations a sample takes.
    fn products(&self) -> Result<usize, CompileError> {
        self.over_layers(|weights, shape| weights * shape.iter().skip(1).product::<usize>())
    }

    /// The sum, over all layers, of what follows from the number of weights and the output's shape.
    fn over_layers(&self, count: impl Fn(usize, &[usize]) -> usize) -> Result<usize, CompileError> {
        let Draft { graph, tensors, shapes, .. } = &self.draft;
        let of_node = |node: &Node| {
            let (Op::Conv { weight, .. } | Op::MatMul { weight, .. }) = &node.op else { return Ok(0) };
            Ok(count(tensors.of_node(&node.name, weight)?.data().len(), &shapes[&node.name]))
        };
        graph.nodes.iter().map(of_node).sum()
    }

    /// The samples without the first few of those that run away: all of them first, then one less each time.
    pub(super) fn kept(&self) -> impl Iterator<Item = Samples<'c>> + use<'c> {
        outlier::set_aside(&self.observed, &self.samples)
    }

    /// What is known from these samples.
    pub(super) fn part<'p>(
        &'p self,
        samples: Samples<'p>,
        options: &QuantizationOptions,
    ) -> Result<Part<'p>, CompileError> {
        let seen = self.observed.seen(&samples);
        let mut items = items(&self.draft, &seen)?;
        if options.rescales {
            steps::join(&mut items, &self.draft);
        } else {
            only_polynomials(&items)?;
        }
        let fits = Fits::new(&self.draft, &items, self.over_layers(|weights, _| weights)?)?;
        let input = options.input_range.map_or(seen[0].range, |[low, high]| Range { low, high });
        let input_ends = options.input_range.unwrap_or(seen[0].ends);
        let compared = self.compared(&items, &samples)?;
        let set_aside = self.samples.len() - samples.len();
        let numbered = self.made.iter().enumerate();
        let made = numbered.map(|(index, input)| (self.samples.len() + index, &input[..])).collect();
        Ok(Part { prepared: self, items, fits, input, input_ends, compared, samples, made, set_aside })
    }

    /// What comparisons ask of the input's unit; nothing where features have units of their own.
    fn compared(&self, items: &[Item<'_>], samples: &Samples<'_>) -> Result<Option<Compared>, CompileError> {
        if self.coding.as_ref().is_some_and(Coding::has_units) {
            return Ok(None);
        }
        let taken: Vec<&[f32]> =
            samples.iter().map(|(number, sample)| self.as_taken(*number, sample)).collect();
        Compared::of(items, &self.draft, &taken)
    }

    /// A sample as the draft takes it.
    fn as_taken<'s>(&'s self, number: usize, sample: &'s [f32]) -> &'s [f32] {
        self.coded.as_ref().map_or(sample, |coded| &coded[number * sample.len()..][..sample.len()])
    }
}

impl<'p> Part<'p> {
    /// The network with these options and bits that these samples, some of the part's, fit.
    pub(super) fn choose(
        &self,
        options: &QuantizationOptions,
        bits: &LayerBits,
        samples: Samples<'p>,
    ) -> Result<Chosen, CompileError> {
        let Prepared { head, observed, tracer, .. } = self.prepared;
        let source = self.source(options, bits);
        let made = self.made.clone();
        let scores = &observed.scores;
        let most_squares = samples_within(WORK_OF_SQUARES, self.work()?);
        let choice = Choice {
            source,
            head: *head,
            samples,
            made,
            tracer: *tracer,
            scores,
            most_squares,
            earlier: RefCell::default(),
        };
        choice.fewest_circuits()
    }

    /// Says what is tried.
    pub(super) fn tell(&self, what: &str) {
        (self.prepared.tell)(what);
    }

    /// What is lowered.
    pub(super) fn source<'s>(&'s self, options: &'s QuantizationOptions, bits: &'s LayerBits) -> Source<'s> {
        let Prepared { draft, coding, functions, .. } = self.prepared;
        let (items, fits, coding) = (&self.items, &self.fits, coding.as_ref());
        let (input, input_ends, compared) = (self.input, self.input_ends, self.compared.as_ref());
        let sparing = self.set_aside > 0;
        Source { draft, items, fits, input, input_ends, compared, coding, options, bits, sparing, functions }
    }

    /// The float graph's scores of samples where the weights of a node, or where there is none the samples, are rounded to multiples of
    /// a unit.
    pub(super) fn with_rounded(
        &self,
        node: Option<usize>,
        unit: f64,
        samples: &Samples<'_>,
    ) -> Result<Vec<Vec<f32>>, CompileError> {
        let Draft { graph, tensors, .. } = &self.prepared.draft;
        let rounded = |values: &[f32]| -> Vec<f32> {
            values.iter().map(|x| ((f64::from(*x) / unit).round_ties_even() * unit) as f32).collect()
        };
        let mut tensors = Cow::Borrowed(tensors);
        if let Some(node) = node.map(|node| &graph.nodes[node])
            && let Op::Conv { weight, .. } | Op::MatMul { weight, .. } = &node.op
        {
            let exact = tensors.of_node(&node.name, weight)?;
            if let Some(tensor) = Tensor::new(exact.shape().to_vec(), rounded(exact.data())) {
                tensors.to_mut().insert(weight, tensor)?;
            }
        }
        let executor = FloatExecutor::new(graph, &tensors)?;
        let scores = cores::map(samples, |(number, sample)| {
            let sample = self.prepared.as_taken(*number, sample);
            if node.is_none() { executor.run(&rounded(sample)) } else { executor.run(sample) }
        });
        let refuse = |error: InputError| CompileError::Calibration {
            reason: error.to_string(),
            fix: error.fix().to_owned(),
        };
        scores.into_iter().map(|scores| scores.map_err(refuse)).collect()
    }

    /// The node and the largest absolute weight of each layer, by item.
    pub(super) fn layers(&self) -> impl Iterator<Item = Result<(usize, usize, f64), CompileError>> + '_ {
        self.items.iter().enumerate().filter_map(|(index, item)| match item.action {
            Action::Layer { node, .. } => Some(self.fits.largest(node).map(|largest| (index, node, largest))),
            _ => None,
        })
    }

    /// How many products of weights and activations a sample takes.
    pub(super) fn products(&self) -> Result<usize, CompileError> {
        self.prepared.products()
    }

    /// The products that a sample takes, and those that take as long as what else is done with elements.
    fn work(&self) -> Result<usize, CompileError> {
        let elements = self.items.iter().map(|item| item.shape.iter().product::<usize>());
        let elements: usize = elements.sum();
        Ok(self.products()?.saturating_add(elements.saturating_mul(PRODUCTS_OF_ELEMENT)))
    }

    /// How many weights there are.
    pub(super) fn weights(&self) -> Result<usize, CompileError> {
        self.prepared.over_layers(|weights, _| weights)
    }
}

/// How many samples of so many products each have no more than `most` together.
pub(super) fn samples_within(most: u64, products: usize) -> usize {
    usize::try_from(most / products.max(1) as u64).unwrap_or(usize::MAX)
}
