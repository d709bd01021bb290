//! Trees of decisions as a network: exact, whatever the samples.
//!
//! A layer picks each node's column and takes its threshold off, a step makes a bit of it, and sums along the ways to the leaves, which are 1 at the leaf
//! that is reached and at most 0 at the others, become bits again. The last layer adds up what the reached leaves say. `docs/protocols/trees.md` draws it.

use std::collections::BTreeMap;

use lanner_graph::trees::{Forest, UNREACHED};
use lanner_graph::{FloatExecutor, Graph, Node, Op};
use lanner_network::elementwise::FixedClip;
use lanner_network::grid::GridFactor;
use lanner_network::{
    Accumulator, Calibrated, CompileError, ConvGeometry, ENCRYPTED_VALUES, Ending, FixedExecutor, FixedNode,
    FixedOp, Head, InputScale, LinearWeights, Network, NetworkInput, Outline, OutlinedNode, Tensors,
};

use super::QuantizationOptions;
use super::closeness::Closeness;
use super::precision::Aim;

/// A graph that begins with trees.
pub(super) struct TreeGraph<'g> {
    graph: &'g Graph,
    tensors: &'g Tensors,
    name: &'g str,
    forest: Forest,
    /// Zeros before the scores.
    zeros: usize,
}

/// The bits that the largest possible score is told in: more than a float's.
const SCORE_BITS: u32 = 28;

/// A sum that no ring holds.
const MAX_BITS: i128 = 1 << 41;

impl<'g> TreeGraph<'g> {
    /// The graph's trees; none if it is a network.
    ///
    /// # Errors
    /// [`CompileError`] if there are other operators than zeros before their scores, or the graph is damaged.
    pub(super) fn of(graph: &'g Graph, tensors: &'g Tensors) -> Result<Option<Self>, CompileError> {
        if !graph.nodes.iter().any(|node| matches!(node.op, Op::Trees(_))) {
            return Ok(None);
        }
        lanner_graph::graph::infer(graph, tensors)?;
        let input = &graph.inputs[0];
        let (first, others) = graph.nodes.split_first().unzip();
        let Some((node, trees)) = first.and_then(|node| match &node.op {
            Op::Trees(trees) => Some((node, trees)),
            _ => None,
        }) else {
            return Err(among_others(&graph.nodes));
        };
        let forest = Forest::new(node, trees, &input.shape, tensors)?;
        let mut zeros = 0;
        for node in others.unwrap_or_default() {
            match &node.op {
                Op::Pad { before, after } if before.len() == 1 && after == &[0] => zeros += before[0],
                Op::Flatten => {}
                Op::Reshape { shape } if shape.len() == 1 => {}
                _ => return Err(among_others(&graph.nodes)),
            }
        }
        Ok(Some(Self { graph, tensors, name: &node.name, forest, zeros }))
    }

    /// As [`outline`](super::outline) of a network.
    pub(super) fn outline(&self) -> Outline {
        let nodes = self.forest.columns.len();
        let node = |suffix: &str, inputs: usize, outputs: usize| OutlinedNode {
            name: self.named(suffix),
            input: vec![inputs],
            shape: vec![outputs],
            op: Some(FixedOp::Linear { outputs, picks: suffix == COMPARED }),
        };
        let leaves = self.forest.trees * self.forest.leaves();
        let scores = self.forest.base.len();
        let ways = self.forest.paths.is_some().then(|| OutlinedNode {
            name: self.named(WAYS),
            input: vec![nodes, 1, 1],
            shape: vec![leaves, 1, 1],
            op: Some(FixedOp::Conv2d(blocks(self.forest.trees, leaves))),
        });
        let [first, last] = [node(COMPARED, self.forest.inputs, nodes), node(SCORES, leaves, scores)];
        Outline {
            nodes: std::iter::once(first).chain(ways).chain([last]).collect(),
            refused: Vec::new(),
            outputs: scores + self.zeros,
        }
    }

    /// The network, in the smallest rings offered with room for it; with what it reaches, where something is asked.
    ///
    /// # Errors
    /// [`CompileError::RangeOverflow`] if there are none, [`CompileError::UnsupportedOp`] where nothing is compared, [`CompileError::Calibration`] if a sample is
    /// none of the columns' values.
    pub(super) fn network(
        &self,
        calibration: &[f32],
        options: &QuantizationOptions,
        aim: Option<Aim>,
    ) -> Result<Network, CompileError> {
        if !options.rescales {
            return Err(CompileError::UnsupportedOp {
                node: self.name.to_owned(),
                operator: "Trees",
                attribute: ENCRYPTED_VALUES.to_owned(),
                fix: "compile for another mode, such as auto",
            });
        }
        let refused = |reason: String| CompileError::Calibration {
            reason,
            fix: "pass samples like those that clients will ask about".to_owned(),
        };
        if calibration.is_empty() || !calibration.len().is_multiple_of(self.forest.inputs) {
            let (found, each) = (calibration.len(), self.forest.inputs);
            return Err(refused(format!(
                "found {found} values; expected a multiple of {each}, the values of a sample"
            )));
        }
        let built = Builder::new(self, options)?.build()?;
        let first = built.network(None)?;
        let executor = FixedExecutor::new(&first)?;
        let mut seen = built.unseen();
        let mut found = Vec::new();
        for (number, sample) in calibration.chunks_exact(self.forest.inputs).enumerate() {
            let outside = |error: &dyn std::fmt::Display| refused(format!("sample {number}: {error}"));
            let integers = first.public().input().quantize(sample).map_err(|error| outside(&error))?;
            let mut last = Vec::new();
            let traced = executor.trace(&integers, |value, integers| {
                last = integers.to_vec();
                for integer in &last {
                    let range = &mut seen[value];
                    (range.low, range.high) = (range.low.min(*integer), range.high.max(*integer));
                }
            });
            traced.map_err(|error| outside(&error))?;
            found.push(last);
        }
        let network = built.network(Some(seen))?;
        let Some(aim) = aim else { return Ok(network) };
        let float = FloatExecutor::new(self.graph, self.tensors)?;
        let samples: Vec<(usize, &[f32])> =
            calibration.chunks_exact(self.forest.inputs).enumerate().collect();
        let scores = samples.iter().map(|(number, sample)| {
            float.run(sample).map_err(|error| refused(format!("sample {number}: {error}")))
        });
        let scores = scores.collect::<Result<Vec<_>, _>>()?;
        let shape = [self.forest.base.len() + self.zeros];
        let closeness = Closeness::new(&scores, &shape, &samples, aim);
        let scale = network.output_scale();
        let reached = closeness.measure(&samples, &found, scale).reached;
        Ok(network.with_reached(reached))
    }

    fn named(&self, suffix: &str) -> String {
        format!("{}_{suffix}", self.name)
    }
}

const COMPARED: &str = "compared";
const WAYS: &str = "ways";
const SCORES: &str = "scores";

fn among_others(nodes: &[Node]) -> CompileError {
    let other = nodes.iter().find(|node| !matches!(node.op, Op::Trees(_)));
    CompileError::UnsupportedOp {
        node: other.map_or_else(String::new, |node| node.name.clone()),
        operator: other.map_or("an operator", |node| node.op.name()),
        attribute: "trees in the same network".to_owned(),
        fix: "compile the ensemble of trees alone",
    }
}

/// The nodes and weights of a network of trees.
struct Builder<'t> {
    trees: &'t TreeGraph<'t>,
    options: &'t QuantizationOptions,
    input: NetworkInput,
    nodes: Vec<FixedNode>,
    weights: BTreeMap<usize, LinearWeights>,
    /// The real value of a unit of each value: the input, then each node's.
    scales: Vec<f64>,
    output_scale: GridFactor,
    /// The real value of a unit of what comes next.
    unit: f64,
}

impl<'t> Builder<'t> {
    fn new(trees: &'t TreeGraph<'t>, options: &'t QuantizationOptions) -> Result<Self, CompileError> {
        let forest = &trees.forest;
        let Some(unit) = GridFactor::power_of_two(0) else {
            return Err(lacking(trees.name, 1));
        };
        let mut builder = Self {
            trees,
            options,
            input: NetworkInput {
                name: trees.graph.inputs[0].name.clone(),
                shape: trees.graph.inputs[0].shape.clone(),
                scale: InputScale::Grid(unit),
                features: None,
                low: 0,
                high: i64::from(forest.high),
                accumulator: options.accumulators[0],
            },
            nodes: Vec::new(),
            weights: BTreeMap::new(),
            scales: vec![1.0],
            output_scale: unit,
            unit: 1.0,
        };
        // A column less a threshold, and 1, may be one more than any threshold from 0.
        builder.input.accumulator = builder.ring(i128::from(forest.high) + 1, trees.name)?;
        Ok(builder)
    }

    fn build(mut self) -> Result<Self, CompileError> {
        let compared = self.compare();
        let bits = self.bits()?;
        let turns = self.step("turns", compared, bits);
        let sums = match &self.trees.forest.paths {
            None => self.complete(turns),
            Some(paths) => self.along(turns, paths),
        };
        self.add_up(sums)?;
        Ok(self)
    }

    /// What each node's column is above its threshold, and 1.
    fn compare(&mut self) -> usize {
        let forest = &self.trees.forest;
        let mut rows = vec![0; forest.columns.len() * forest.inputs];
        for (row, column) in rows.chunks_exact_mut(forest.inputs).zip(&forest.columns) {
            row[*column] = 1;
        }
        let terms = forest.thresholds.iter().map(|threshold| 1 - i128::from(*threshold)).collect();
        let weights = LinearWeights::new(forest.columns.len(), rows, terms);
        let outputs = forest.columns.len();
        let ring = self.input.accumulator;
        let row = match self.input.shape.len() {
            1 => 0,
            _ => self.node("row", FixedOp::Reshape, &[0], vec![forest.inputs], ring),
        };
        self.layer(COMPARED, row, (FixedOp::Linear { outputs, picks: true }, weights), vec![outputs], ring)
    }

    /// The ring of bits and of their sums along a way.
    fn bits(&self) -> Result<Accumulator, CompileError> {
        let forest = &self.trees.forest;
        let longest = match &forest.paths {
            None => (forest.nodes() + 1).ilog2() as usize,
            Some(paths) => {
                let length = |row: &[i8]| row.iter().filter(|turn| matches!(turn, 1 | -1)).count();
                paths.chunks_exact(forest.nodes()).map(length).max().unwrap_or(0)
            }
        };
        let small = Accumulator::small_powers_of_two().filter(|_| self.options.has_powers_of_two());
        let need = longest.max(1) as i128;
        match small.into_iter().find(|ring| ring.limit_without_differences(0) >= need) {
            Some(ring) => Ok(ring),
            None => self.ring(need, self.trees.name),
        }
    }

    /// 1 where a value is at least 1, else 0, in another ring.
    fn step(&mut self, suffix: &str, value: usize, ring: Accumulator) -> usize {
        let (shape, from) = (self.shape(value), self.ring_of(value));
        let relu = self.node(&format!("{suffix}_relu"), FixedOp::Relu, &[value], shape.clone(), from);
        let clip = FixedOp::Clip(FixedClip { high: 1 });
        let clip = self.node(&format!("{suffix}_clip"), clip, &[relu], shape.clone(), from);
        self.node(suffix, FixedOp::Rescale { shift: 0 }, &[clip], shape, ring)
    }

    /// Sums along the ways of complete trees, which are public: 1 at the leaf that is reached, at most 0 at others.
    fn complete(&mut self, turns: usize) -> usize {
        let (forest, ring) = (&self.trees.forest, self.ring_of(turns));
        let (count, all) = (forest.trees, forest.columns.len());
        let missed = LinearWeights::bias_alone(vec![-1; all]);
        let missed = self.layer("missed", turns, (FixedOp::Bias { bits: 1 }, missed), vec![all], ring);
        let mut sums = None;
        let (mut first, mut width) = (0, count);
        while first < all {
            let level = |builder: &mut Self, of: &str, value: usize| {
                let slice = FixedOp::Slice { starts: vec![first], steps: vec![1] };
                builder.node(&format!("{of}_{}", width / count), slice, &[value], vec![width], ring)
            };
            let (right, short) = (level(self, "right", turns), level(self, "short", missed));
            let named = |side: &str| format!("{side}_sums_{}", width / count);
            let both = match sums {
                // On the left 1 - bit, on the right the bit.
                None => {
                    let left = FixedOp::Scale { factor: -1 };
                    [self.node(&named("left"), left, &[short], vec![width], ring), right]
                }
                Some(sums) => {
                    let left = FixedOp::Add { factors: [1, -1] };
                    let left = self.node(&named("left"), left, &[sums, right], vec![width], ring);
                    let sum = FixedOp::Add { factors: [1, 1] };
                    [left, self.node(&named("right"), sum, &[sums, short], vec![width], ring)]
                }
            };
            (first, width) = (first + width, 2 * width);
            let joined = FixedOp::Concat { axis: 0 };
            sums = Some(self.node(&format!("sums_{}", width / count), joined, &both, vec![width], ring));
        }
        let Some(sums) = sums else { return turns };
        if forest.width() == forest.base.len() {
            return sums;
        }
        // Leaves of one tree after the other, so that each score has its own trees'.
        let shape = vec![forest.leaves(), count];
        let sums = self.node("by_way", FixedOp::Reshape, &[sums], shape, ring);
        let axes = FixedOp::Transpose { axes: vec![1, 0] };
        self.node("by_tree", axes, &[sums], vec![count, forest.leaves()], ring)
    }

    /// Sums along ways that are secret: 1 at the leaf that is reached, at most 0 at others.
    fn along(&mut self, turns: usize, paths: &[i8]) -> usize {
        let (forest, ring) = (&self.trees.forest, self.ring_of(turns));
        let leaves = forest.trees * forest.leaves();
        let shape = vec![forest.columns.len(), 1, 1];
        let turns = self.node("of_trees", FixedOp::Reshape, &[turns], shape, ring);
        let rows = paths.iter().map(|turn| if *turn == UNREACHED { 0 } else { i64::from(*turn) });
        let begin = |row: &[i8]| {
            let is_reached = row.first() != Some(&UNREACHED);
            let right = row.iter().filter(|turn| **turn == 1).count();
            if is_reached { 1 - right as i128 } else { 0 }
        };
        let begins = paths.chunks_exact(forest.nodes()).map(begin).collect();
        let weights = LinearWeights::new(leaves, rows.collect(), begins);
        let op = FixedOp::Conv2d(blocks(forest.trees, leaves));
        self.layer(WAYS, turns, (op, weights), vec![leaves, 1, 1], ring)
    }

    /// The scores, from the sums along ways.
    fn add_up(&mut self, sums: usize) -> Result<(), CompileError> {
        let forest = &self.trees.forest;
        let (leaves, scores) = (forest.trees * forest.leaves(), forest.base.len());
        let (ring, unit) = self.scores()?;
        let reached = self.step("reached", sums, ring);
        let integer = |value: f64| (value / unit).round_ties_even();
        let grouped = forest.width() < scores;
        let width = if grouped { 1 } else { scores };
        // A row of each score's, of [leaves, scores].
        let weight = (0..width)
            .flat_map(|score| forest.values[score..].iter().step_by(width))
            .map(|value| integer(f64::from(*value)) as i64);
        let mut weight: Vec<i64> = weight.collect();
        if grouped && forest.paths.is_none() {
            // From way by way to tree by tree.
            let of = |place: usize| weight[place % forest.leaves() * forest.trees + place / forest.leaves()];
            weight = (0..leaves).map(of).collect();
        }
        let base = forest.base.iter().map(|base| integer(f64::from(*base)) as i128).collect();
        let weights = LinearWeights::new(scores, weight, base);
        let last = if grouped {
            let reached = self.node("leaves", FixedOp::Reshape, &[reached], vec![leaves, 1, 1], ring);
            let layer = (FixedOp::Conv2d(blocks(scores, scores)), weights);
            self.unit = unit;
            let made = self.layer(SCORES, reached, layer, vec![scores, 1, 1], ring);
            self.node("by_score", FixedOp::Reshape, &[made], vec![scores], ring)
        } else {
            let reached = self.node("leaves", FixedOp::Reshape, &[reached], vec![leaves], ring);
            self.unit = unit;
            self.layer(
                SCORES,
                reached,
                (FixedOp::Linear { outputs: scores, picks: false }, weights),
                vec![scores],
                ring,
            )
        };
        if self.trees.zeros > 0 {
            let pad = FixedOp::Pad { before: vec![self.trees.zeros] };
            self.node("zeros", pad, &[last], vec![self.trees.zeros + scores], ring);
        }
        Ok(())
    }

    /// The ring of the scores, and what a unit of them is worth: on the grid. Bounds do not know that one leaf of each tree is reached, so that there is room
    /// for all.
    fn scores(&mut self) -> Result<(Accumulator, f64), CompileError> {
        let forest = &self.trees.forest;
        let [reached, all, largest] = self.largest_sums();
        let of_chosen = [Accumulator::of_chosen_sums()];
        let powers = self.options.has_powers_of_two();
        let rings = if powers { &of_chosen[..] } else { &self.options.accumulators[..] };
        // Rounding may make each leaf's value half a unit larger.
        let room = |ring: &Accumulator| ring.limit(0) as f64 - (forest.trees * forest.leaves()) as f64;
        let of_bits = |bits: u32| ((1_u64 << bits) - 1) as f64;
        let unit_in = |ring: &Accumulator| {
            let bits = of_bits(ring.weight_bits() - 1);
            let unit = (all / room(ring)).max(reached / of_bits(SCORE_BITS)).max(largest / bits);
            // Of a power of two halves and quarters stay what they are, so that what ties in the trees ties here.
            if unit > 0.0 { unit.log2().ceil() as i32 } else { 0 }
        };
        let offered = rings.iter().filter(|ring| room(ring) > 1.0);
        let least = offered.clone().map(unit_in).min();
        let found = offered.clone().find(|ring| Some(unit_in(ring)) == least);
        let found = found.and_then(|ring| Some((*ring, GridFactor::power_of_two(unit_in(ring))?)));
        let Some((ring, scale)) = found else { return Err(lacking(self.trees.name, MAX_BITS)) };
        self.output_scale = scale;
        Ok((ring, scale.value()))
    }

    /// The largest score that leaves make of which each tree reaches one, the largest sum of leaves of one sign, and the largest leaf.
    fn largest_sums(&self) -> [f64; 3] {
        let forest = &self.trees.forest;
        let (leaves, width) = (forest.leaves(), forest.width());
        let of = |tree: usize, leaf: usize, score: usize| {
            let row = if forest.paths.is_some() { tree * leaves + leaf } else { leaf * forest.trees + tree };
            f64::from(forest.values[row * width + score])
        };
        let [mut reached, mut all, mut largest] = [0.0_f64; 3];
        for (score, base) in forest.base.iter().enumerate() {
            let base = f64::from(*base);
            let (mut sums, mut most) = ([base.min(0.0), base.max(0.0)], base.abs());
            let part = forest.trees / forest.base.len();
            let grouped = width < forest.base.len();
            let trees = if grouped { score * part..(score + 1) * part } else { 0..forest.trees };
            for tree in trees {
                let mut found = 0.0_f64;
                for leaf in 0..leaves {
                    let value = of(tree, leaf, if grouped { 0 } else { score });
                    (sums[0], sums[1]) = (sums[0] + value.min(0.0), sums[1] + value.max(0.0));
                    found = found.max(value.abs());
                }
                (most, largest) = (most + found, largest.max(found));
            }
            (reached, all) = (reached.max(most), all.max(-sums[0]).max(sums[1]));
        }
        [reached, all, largest]
    }

    /// The smallest ring offered with room for such values.
    fn ring(&self, need: i128, node: &str) -> Result<Accumulator, CompileError> {
        let rings = &self.options.accumulators;
        rings.iter().copied().find(|ring| ring.limit(0) >= need).ok_or_else(|| lacking(node, need))
    }

    fn shape(&self, value: usize) -> Vec<usize> {
        self.nodes[value - 1].shape.clone()
    }

    fn ring_of(&self, value: usize) -> Accumulator {
        self.nodes[value - 1].accumulator
    }

    fn node(
        &mut self,
        suffix: &str,
        op: FixedOp,
        inputs: &[usize],
        shape: Vec<usize>,
        accumulator: Accumulator,
    ) -> usize {
        let name = self.trees.named(suffix);
        self.nodes.push(FixedNode { name, op, inputs: inputs.to_vec(), shape, accumulator });
        self.scales.push(self.unit);
        self.nodes.len()
    }

    fn layer(
        &mut self,
        suffix: &str,
        input: usize,
        (op, weights): (FixedOp, LinearWeights),
        shape: Vec<usize>,
        ring: Accumulator,
    ) -> usize {
        self.weights.insert(self.nodes.len(), weights);
        self.node(suffix, op, &[input], shape, ring)
    }

    /// What is known of each value before a sample is seen.
    fn unseen(&self) -> Vec<Calibrated> {
        let unseen = |scale: &f64| Calibrated {
            scale: *scale,
            low: 0,
            high: 0,
            weight_error: None,
            function: None,
            saturates: false,
        };
        self.scales.iter().map(unseen).collect()
    }

    fn network(&self, seen: Option<Vec<Calibrated>>) -> Result<Network, CompileError> {
        let ending = Ending {
            output_scale: Some(self.output_scale),
            head: Head::Scores,
            fills_rings: self.options.has_powers_of_two(),
        };
        let seen = seen.unwrap_or_else(|| self.unseen());
        Network::repeating(self.input.clone(), self.nodes.clone(), ending, self.weights.clone(), seen)
    }
}

/// A layer of so many blocks with as many output channels in all, on one pixel.
const fn blocks(groups: usize, out_channels: usize) -> ConvGeometry {
    ConvGeometry { out_channels, kernel: [1, 1], strides: [1, 1], pads: [0; 4], dilations: [1, 1], groups }
}

fn lacking(node: &str, need: i128) -> CompileError {
    CompileError::RangeOverflow { node: node.to_owned(), bound: need, limit: 0 }
}
