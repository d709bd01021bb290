//! What all attempts to compile one graph share: the prepared graph, the samples, and what the float graph did on them.

use super::bits::LayerBits;
use super::calibrate::{Observed, Range, Samples, observe, samples};
use super::choice::{Choice, Chosen};
use super::features::{CodedInput, Coding, prepare_input};
use super::fits::Fits;
use super::item::{Action, Item, items, only_polynomials};
use super::lower::Source;
use super::{QuantizationOptions, outlier};
use crate::CompileError;
use crate::fit;
use crate::graph::{Graph, Op};
use crate::network::Head;
use crate::pass::Draft;
use crate::tensor::Tensors;

/// A graph and its calibration.
pub(super) struct Prepared<'c> {
    draft: Draft,
    head: Head,
    samples: Samples<'c>,
    coding: Option<Coding>,
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
    pub(super) samples: Samples<'p>,
    pub(super) set_aside: usize,
}

impl<'c> Prepared<'c> {
    /// Runs the passes, and the float graph on the samples.
    pub(super) fn new(
        graph: &Graph,
        tensors: &Tensors,
        calibration: &'c [f32],
        options: &QuantizationOptions,
    ) -> Result<Self, CompileError> {
        let input = prepare_input(graph, tensors, calibration, options)?;
        let CodedInput { draft, head, samples: coded, coding } = input;
        let observed = observe(&draft, &samples(&draft, coded.as_deref().unwrap_or(calibration))?)?;
        let samples = samples(&draft, calibration)?;
        Ok(Self { draft, head, samples, coding, observed, functions: fit::FitCache::default() })
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
        let items = items(&self.draft, &seen)?;
        if !options.rescales {
            only_polynomials(&items)?;
        }
        let fits = Fits::new(&self.draft, &items)?;
        let input = options.input_range.map_or(seen[0].range, |[low, high]| Range { low, high });
        let input_ends = options.input_range.unwrap_or(seen[0].ends);
        let set_aside = self.samples.len() - samples.len();
        Ok(Part { prepared: self, items, fits, input, input_ends, samples, set_aside })
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
        let Prepared { draft, head, coding, observed, functions, .. } = self.prepared;
        let (items, fits, coding) = (&self.items, &self.fits, coding.as_ref());
        let (input, input_ends, sparing) = (self.input, self.input_ends, self.set_aside > 0);
        let source =
            Source { draft, items, fits, input, input_ends, coding, options, bits, sparing, functions };
        Choice { source, head: *head, samples, scores: &observed.scores }.fewest_circuits()
    }

    /// How many products of weights and activations a sample takes.
    pub(super) fn products(&self) -> Result<usize, CompileError> {
        self.over_layers(|weights, shape| weights * shape.iter().skip(1).product::<usize>())
    }

    /// How many weights there are.
    pub(super) fn weights(&self) -> Result<usize, CompileError> {
        self.over_layers(|weights, _| weights)
    }

    /// The sum, over all layers, of what follows from the number of weights and the output's shape.
    fn over_layers(&self, count: impl Fn(usize, &[usize]) -> usize) -> Result<usize, CompileError> {
        let Draft { graph, tensors, .. } = &self.prepared.draft;
        let of_item = |item: &Item<'_>| {
            let Action::Layer { node, .. } = item.action else { return Ok(0) };
            let node = &graph.nodes[node];
            let (Op::Conv { weight, .. } | Op::MatMul { weight, .. }) = &node.op else { return Ok(0) };
            Ok(count(tensors.of_node(&node.name, weight)?.data().len(), &item.shape))
        };
        self.items.iter().map(of_item).sum()
    }
}
