//! A linear layer on slots: which products are summed where, and by which rotations they come there.
//!
//! An output `o` has accumulators: its slot `b(o)`, and all that the folds bring there in the end. Each of its products `w x` is given to one
//! of them, `a`, and takes `x` from a slot `s` that holds it. All products with the same `s - a` are one diagonal: a plaintext times the input rotated by that. With folds by `d`,
//! `2d`, ... the accumulator can be chosen such that `s - a < d`, whatever the product (the "hybrid" of GAZELLE, section V).
//!
//! The diagonals are summed by baby steps and giant steps: `sum_g rot(sum_b D rot(x, b), g)`, where the input is decomposed once for all `b`.

use std::collections::{BTreeMap, BTreeSet};

use lanner_bfv::{NoiseBound, Parameters};
use serde::{Deserialize, Serialize};

use super::layout::{Layout, Patches};
use crate::ProtocolError;
use crate::linear::Convolution;
use crate::linear::gazelle::packing::Rotation;

/// How a layer is computed. It follows from the layer's shape and the layout of its input, and not from weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    shape: Convolution,
    from: Layout,
    to: Layout,
    gathering: Gathering,
    diagonals: BTreeSet<Diagonal>,
    /// Steps from one giant step to the next.
    giant: usize,
}

/// Which accumulator takes a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gathering {
    /// That in the block of the patch.
    Blocks,
    /// That from which it is fewer than so many steps to the input, a power of two.
    Hybrid(usize),
    /// That which stands as far from the output's slot as the input does from its first.
    Aligned,
}

/// A plaintext that multiplies a rotated ciphertext.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagonal {
    /// The number of the ciphertext.
    pub ciphertext: usize,
    /// Steps to the left within each row, from `-N/4` to `N/4`.
    pub step: isize,
    /// Whether the rows are exchanged.
    pub swap: bool,
}

/// A ciphertext, and the step that it is rotated by before the products.
type Baby = (usize, isize);

/// The step that a sum of products is rotated by, and whether its rows are exchanged.
type Giant = (isize, bool);

/// Steps with their numbers.
type Numbered<S> = BTreeMap<S, usize>;

/// Operations of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ciphertexts that it reads.
    pub ciphertexts: usize,
    /// Rotations of ciphertexts that are decomposed once.
    pub hoisted: usize,
    /// Other rotations.
    pub rotations: usize,
    /// Products with plaintexts.
    pub multiplications: usize,
}

impl Counts {
    /// Roughly, in microseconds of one core at `N = 16384` and seven limbs.
    fn cost(self) -> usize {
        let Self { ciphertexts, hoisted, rotations, multiplications } = self;
        30_000 * ciphertexts + 350 * hoisted + 1300 * rotations + 25 * multiplications
    }
}

impl Program {
    /// The cheapest programs of a network's layers, with anything slot by slot in between; the client lays its input out as the first one wants it.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] if there is no layer, or a layer's input or output has more elements than a ciphertext has slots.
    pub fn chain(shapes: &[Convolution], slots: usize) -> Result<Vec<Self>, ProtocolError> {
        let (first, rest) = shapes.split_first().ok_or(NO_LAYER)?;
        if shapes.len() > MAX_LAYERS {
            return Err(TOO_MANY);
        }
        let mut left = MAX_SEARCH;
        let mut chains =
            cheapest(Self::first(first, slots, &mut left)?.into_iter().map(|program| vec![program]));
        for shape in rest {
            let mut longer = Vec::new();
            for chain in chains {
                let Some(last) = chain.last() else { continue };
                let next = Self::next(shape, &last.to, &mut left)?;
                longer.extend(next.into_iter().map(|program| [chain.as_slice(), &[program]].concat()));
            }
            chains = cheapest(longer);
        }
        chains.into_iter().min_by_key(|chain| cost(chain)).ok_or(NO_LAYOUT)
    }

    /// Programs of a network's first layer.
    fn first(shape: &Convolution, slots: usize, left: &mut u64) -> Result<Vec<Self>, ProtocolError> {
        if shape.output_image()? == [1, 1] || shape.groups != 1 {
            return Self::next(shape, &Layout::copies(shape.inputs(), slots)?, left);
        }
        let outputs = shape.outputs()?;
        let positions = outputs / shape.out_channels;
        let blocks = (0..=slots.ilog2()).map(|bits| 1 << bits).filter(|block| outputs <= *block);
        // As many kinds of planes as fit, as few as leave one ciphertext, and what lies between.
        let taps = shape.weights() / shape.out_channels;
        let kinds = |block: usize| {
            let planes = block / positions;
            let one = taps.div_ceil(slots / block);
            let powers = (0..usize::BITS).map(|bits| 1 << bits).take_while(move |kinds| *kinds < planes);
            let all: BTreeSet<usize> = powers.chain([planes]).chain((one <= planes).then_some(one)).collect();
            all.into_iter().map(move |kinds| (block, kinds))
        };
        let program = |(block, kinds)| {
            spend(left, shape)?;
            let patches = Patches { slots, shape: shape.clone(), block, kinds };
            let from = Layout::Patches(patches.clone());
            from.check(slots)?;
            Self::patched(&patches)?
                .into_iter()
                .map(|(to, gathering)| Self::new(shape, from.clone(), to, gathering))
                .collect::<Result<Vec<_>, _>>()
        };
        let programs = blocks.flat_map(kinds).map(program).collect::<Result<Vec<_>, _>>()?;
        Ok(programs.into_iter().flatten().collect())
    }

    /// Where the output of a layer that reads patches may lie.
    fn patched(patches: &Patches) -> Result<Vec<(Layout, Gathering)>, ProtocolError> {
        let (slots, block, outputs) = (patches.slots, patches.block, patches.shape.outputs()?);
        let to = Layout::Runs { slots, len: outputs, run: outputs, stride: block, period: block };
        Ok(if outputs <= block { vec![(to, Gathering::Blocks)] } else { Vec::new() })
    }

    /// Programs of a layer that reads what another one made.
    fn next(shape: &Convolution, from: &Layout, left: &mut u64) -> Result<Vec<Self>, ProtocolError> {
        let program = |(to, gathering)| {
            spend(left, shape)?;
            Self::new(shape, from.clone(), to, gathering)
        };
        Self::ways(shape, from)?.into_iter().map(program).collect()
    }

    /// Where its output may lie.
    fn ways(shape: &Convolution, from: &Layout) -> Result<Vec<(Layout, Gathering)>, ProtocolError> {
        let (slots, outputs) = (from.slots(), shape.outputs()?);
        let Layout::Runs { len, run, stride, period, .. } = *from else { return Err(NO_LAYOUT) };
        if len != shape.inputs() {
            return Err(NO_LAYOUT);
        }
        let hybrid = |d| {
            let to = if period == slots {
                Layout::Runs { slots, len: outputs, run: outputs, stride: d, period: d }
            } else {
                Layout::Runs { slots, len: outputs, run: d, stride: period, period: slots }
            };
            (to, Gathering::Hybrid(d))
        };
        let mut ways: Vec<_> =
            (0..=slots.ilog2()).map(|bits| 1 << bits).filter(|d| *d <= period).map(hybrid).collect();
        if run < len && period == slots && run.is_power_of_two() && stride.is_power_of_two() {
            let to = Layout::Runs { slots, len: outputs, run: 1, stride: run, period: stride };
            ways.push((to, Gathering::Aligned));
        }
        ways.retain(|(to, _)| to.check(slots).is_ok());
        Ok(ways)
    }

    /// The program of a layer between two layouts.
    ///
    /// # Errors
    /// [`ProtocolError::Shape`] unless there is one.
    pub fn of(
        shape: &Convolution,
        from: &Layout,
        to: &Layout,
        gathering: Gathering,
    ) -> Result<Self, ProtocolError> {
        let programs = match from {
            Layout::Patches(patches) if patches.shape != *shape => return Err(NO_LAYOUT),
            Layout::Patches(patches) => {
                from.check(patches.slots)?;
                Self::patched(patches)?
            }
            Layout::Runs { slots, .. } => {
                from.check(*slots)?;
                Self::ways(shape, from)?
            }
        };
        let is_wanted = |way: &(Layout, Gathering)| (&way.0, way.1) == (to, gathering);
        if from.len() != shape.inputs() || !programs.iter().any(is_wanted) {
            return Err(NO_LAYOUT);
        }
        Self::new(shape, from.clone(), to.clone(), gathering)
    }

    fn new(
        shape: &Convolution,
        from: Layout,
        to: Layout,
        gathering: Gathering,
    ) -> Result<Self, ProtocolError> {
        shape.output_image()?;
        let mut program =
            Self { shape: shape.clone(), from, to, gathering, diagonals: BTreeSet::new(), giant: 1 };
        // Many products have one diagonal, and these follow each other in runs.
        let slots = program.from.slots();
        let mut seen = vec![false; 2 * slots * program.from.ciphertexts()];
        let mut diagonals = BTreeSet::new();
        program.each_product(|Product { diagonal, .. }| {
            let Diagonal { ciphertext, step, swap } = diagonal;
            let place = (ciphertext * 2 + usize::from(swap)) * slots + (step + (slots / 2) as isize) as usize;
            if !std::mem::replace(&mut seen[place], true) {
                diagonals.insert(diagonal);
            }
        });
        if diagonals.is_empty() {
            return Err(ProtocolError::Shape { what: "a layer that reads nothing but padding" });
        }
        program.diagonals = diagonals;
        let unit = match &program.from {
            Layout::Patches(patches) => patches.positions(),
            Layout::Runs { .. } => 1,
        };
        let giants: BTreeSet<usize> =
            [1, unit].into_iter().flat_map(|unit| (0..14).map(move |bits| unit << bits)).collect();
        let giants = giants.into_iter();
        let mut best = (usize::MAX, 1);
        for giant in giants.take_while(|giant| *giant <= slots * 2) {
            program.giant = giant;
            best = best.min((program.counts().cost(), giant));
        }
        program.giant = best.1;
        Ok(program)
    }

    /// The layer.
    #[must_use]
    pub fn shape(&self) -> &Convolution {
        &self.shape
    }

    /// How products come where they are summed.
    #[must_use]
    pub const fn gathering(&self) -> Gathering {
        self.gathering
    }

    /// Where the input's elements lie.
    #[must_use]
    pub fn from(&self) -> &Layout {
        &self.from
    }

    /// Where the output's elements lie.
    #[must_use]
    pub fn to(&self) -> &Layout {
        &self.to
    }

    /// The rotations whose results are added, one after the other, to what the diagonals make.
    #[must_use]
    pub fn folds(&self) -> Vec<Rotation> {
        let (slots, half) = (self.from.slots(), self.from.slots() / 2);
        let steps = |from: usize, below: usize| {
            std::iter::successors(Some(from), |step| Some(2 * step)).take_while(move |step| *step < below)
        };
        let by = |step: usize| Rotation { step, swap: false };
        // Up to the end of a ciphertext: its rows are the last two parts.
        let to_end = |from: usize| {
            let swap = (from < slots).then_some(Rotation::SWAP);
            steps(from, half).map(by).chain(swap).collect::<Vec<_>>()
        };
        match (self.gathering, &self.from) {
            (Gathering::Blocks, Layout::Patches(patches)) => to_end(patches.block),
            (Gathering::Hybrid(d), from) if from.period() == slots => to_end(d),
            (Gathering::Hybrid(d), from) => steps(d, from.period()).map(by).collect(),
            (_, Layout::Runs { run, stride, .. }) => steps(1, *run).map(by).chain(to_end(*stride)).collect(),
            _ => Vec::new(),
        }
    }

    /// The baby step and the giant step of a diagonal.
    pub(super) fn split(&self, diagonal: Diagonal) -> (Baby, Giant) {
        let baby = diagonal.step.rem_euclid(self.giant as isize);
        ((diagonal.ciphertext, baby), (diagonal.step - baby, diagonal.swap))
    }

    /// The diagonals, in order.
    pub(super) fn diagonals(&self) -> impl Iterator<Item = Diagonal> {
        self.diagonals.iter().copied()
    }

    /// The baby steps by ciphertext and step, and the giant steps by step and exchange; each with its number.
    pub(super) fn steps(&self) -> (Numbered<Baby>, Numbered<Giant>) {
        let babies: BTreeSet<_> = self.diagonals().map(|diagonal| self.split(diagonal).0).collect();
        let giants: BTreeSet<_> = self.diagonals().map(|diagonal| self.split(diagonal).1).collect();
        let number = |(number, key)| (key, number);
        (
            babies.into_iter().enumerate().map(number).collect(),
            giants.into_iter().enumerate().map(|(number, key)| (key, number)).collect(),
        )
    }

    /// The rotations that need a key.
    #[must_use]
    pub fn rotations(&self) -> BTreeSet<Rotation> {
        let slots = self.from.slots();
        let (babies, giants) = self.steps();
        let babies = babies.into_keys().map(|(_, step)| Rotation::by(step, slots));
        let giants = giants.into_keys().map(|(step, swap)| Rotation { swap, ..Rotation::by(step, slots) });
        let all = babies.chain(giants).chain(self.folds());
        all.filter(|rotation| *rotation != Rotation::IDENTITY).collect()
    }

    /// A bound on the noise of the output, for inputs of this noise and so many limbs.
    #[must_use]
    pub fn noise(
        &self,
        input: NoiseBound,
        parameters: &Parameters,
        primes: &[u64],
        limbs: usize,
    ) -> NoiseBound {
        let prime = primes.iter().max().copied().unwrap_or(1);
        let (babies, giants) = self.steps();
        let product = |step| {
            let rotated = if step == 0 { input } else { input.switched_key_extended_at(parameters, limbs) };
            rotated.multiplied(parameters, prime)
        };
        let mut all = NoiseBound::NONE;
        for giant in giants.into_keys() {
            let mut sum = NoiseBound::NONE;
            for (_, step) in babies.keys().filter(|baby| self.has(**baby, giant)) {
                sum = sum.plus(product(*step));
            }
            let sum = sum.rescaled(parameters);
            all = all.plus(if giant == (0, false) { sum } else { sum.switched_key_at(parameters, limbs) });
        }
        for _ in self.folds() {
            all = all.plus(all.switched_key_at(parameters, limbs));
        }
        all.plus_plaintext()
    }

    /// Whether there is a diagonal of a baby step and a giant step.
    fn has(&self, (ciphertext, baby): Baby, (giant, swap): Giant) -> bool {
        self.diagonals.contains(&Diagonal { ciphertext, step: baby + giant, swap })
    }

    /// How many operations it takes.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let (babies, giants) = self.steps();
        let giants = giants.into_keys().filter(|giant| *giant != (0, false)).count();
        Counts {
            ciphertexts: self.from.ciphertexts(),
            hoisted: babies.into_keys().filter(|(_, step)| *step != 0).count(),
            rotations: giants + self.folds().len(),
            multiplications: self.diagonals.len(),
        }
    }

    /// Shows every product of a weight and an input element.
    pub(super) fn each_product(&self, mut visit: impl FnMut(Product)) {
        let shape = &self.shape;
        let [height, width] = shape.output_image().unwrap_or([0; 2]);
        let [kernel_height, kernel_width] = shape.kernel;
        for channel in 0..shape.out_channels {
            let first = channel / shape.group_outputs() * shape.group_inputs();
            for (of_group, dy, dx) in (0..shape.group_inputs()).flat_map(|c| {
                (0..kernel_height).flat_map(move |dy| (0..kernel_width).map(move |dx| (c, dy, dx)))
            }) {
                let weight = shape.weight_index(channel, of_group, [dy, dx]);
                for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
                    let [Some(iy), Some(ix)] = [shape.source(0, y, dy), shape.source(1, x, dx)] else {
                        continue;
                    };
                    let output = (channel * height + y) * width + x;
                    let (ciphertext, accumulator, source) = match &self.from {
                        Layout::Patches(patches) => {
                            let tap = (of_group * kernel_height + dy) * kernel_width + dx;
                            patched(patches, channel, tap, y * width + x)
                        }
                        Layout::Runs { .. } => {
                            let input = ((first + of_group) * shape.image[0] + iy) * shape.image[1] + ix;
                            let (accumulator, source) = self.gathered(output, input);
                            (0, accumulator, source)
                        }
                    };
                    let diagonal = self.diagonal(ciphertext, accumulator, source);
                    visit(Product { weight, accumulator, diagonal });
                }
            }
        }
    }

    /// The accumulator and the input's slot of a product.
    fn gathered(&self, output: usize, input: usize) -> (usize, usize) {
        let (slots, half) = (self.from.slots(), self.from.slots() / 2);
        let (base, first) = (self.to.first(output), self.from.first(input));
        match self.gathering {
            Gathering::Hybrid(d) if self.from.period() == slots && d < slots => {
                // Both rows accumulate: that of the input does.
                let (row, column) = (first - first % half, first % half);
                let ahead = (column + half - base % half) % half;
                (row + (base % half + ahead - ahead % d.min(half)) % half, first)
            }
            Gathering::Hybrid(d) if d < slots => {
                let period = self.from.period();
                let (block, within) = (base - base % period, base % period);
                let ahead = (first + period - within) % period;
                let accumulator = block + within + ahead - ahead % d;
                // The copy in this block, or in the next one of the row.
                let source = accumulator % half + ahead % d;
                (accumulator, accumulator - accumulator % half + source % half)
            }
            Gathering::Aligned => {
                let Layout::Runs { stride, .. } = self.from else { return (base, first) };
                (first - first % stride + (base + first % stride), first)
            }
            _ => (base, first),
        }
    }

    fn diagonal(&self, ciphertext: usize, accumulator: usize, source: usize) -> Diagonal {
        let half = self.from.slots() / 2;
        let ahead = (source % half + half - accumulator % half) % half;
        let step = if ahead > half / 2 { ahead as isize - half as isize } else { ahead as isize };
        Diagonal { ciphertext, step, swap: accumulator / half != source / half }
    }
}

/// A product of a weight and an input element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    /// The weight's number.
    pub(super) weight: usize,
    /// The slot that takes it.
    pub(super) accumulator: usize,
    /// How its input comes there.
    pub(super) diagonal: Diagonal,
}

/// The ciphertext, the accumulator and the slot of what a tap reads for an output channel and position.
fn patched(patches: &Patches, channel: usize, tap: usize, position: usize) -> (usize, usize, usize) {
    let (ciphertext, block, kind) = patches.tap(tap);
    let ahead = channel + (kind + patches.kinds - channel % patches.kinds) % patches.kinds;
    let plane = if ahead < patches.planes() { ahead } else { kind };
    let at = |plane: usize| block + plane * patches.positions() + position;
    (ciphertext, at(channel), at(plane))
}

/// What programs cost together.
fn cost(chain: &[Program]) -> usize {
    chain.iter().map(|program| program.counts().cost()).sum()
}

/// For each layout that the last programs leave, the cheapest of the chains that end so.
fn cheapest(chains: impl IntoIterator<Item = Vec<Program>>) -> Vec<Vec<Program>> {
    let mut best: Vec<Vec<Program>> = Vec::new();
    for chain in chains {
        let ends_so = |other: &&mut Vec<Program>| {
            other.last().map(Program::to).is_some_and(|to| Some(to) == chain.last().map(Program::to))
        };
        match best.iter_mut().find(ends_so) {
            Some(other) if cost(&chain) < cost(other) => *other = chain,
            Some(_) => {}
            None => best.push(chain),
        }
    }
    best
}

/// Takes what building a program of a layer costs off what is left of a search.
fn spend(left: &mut u64, shape: &Convolution) -> Result<(), ProtocolError> {
    let taps = (shape.group_inputs() as u64).saturating_mul((shape.kernel[0] * shape.kernel[1]) as u64);
    let products = (shape.outputs()? as u64).saturating_mul(taps);
    *left = left.checked_sub(products).ok_or(TOO_MANY)?;
    Ok(())
}

/// Products that all programs of a search have together: some ten seconds.
const MAX_SEARCH: u64 = 1 << 30;

/// Layers of a chain: beyond what any parameters have room for.
const MAX_LAYERS: usize = 12;

const TOO_MANY: ProtocolError =
    ProtocolError::Shape { what: "more layers, or larger ones, than layouts are searched for" };
const NO_LAYER: ProtocolError = ProtocolError::Shape { what: "a network without a linear layer" };
const NO_LAYOUT: ProtocolError =
    ProtocolError::Shape { what: "a layer of more elements than a ciphertext has slots" };

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const SLOTS: usize = 64;

    /// Runs a program on slots that hold anything where they hold no element, modulo 2^64.
    fn run(program: &Program, weights: &[i64], input: &[i64]) -> Vec<i64> {
        let slots = program.from().slots();
        let half = slots / 2;
        let mut noise = 7_u64;
        let mut packed = program.from().pack(&input.iter().map(|x| *x as u64).collect::<Vec<_>>());
        for (slots, occupied) in packed.iter_mut().zip(program.from().occupied()) {
            for (slot, _) in slots.iter_mut().zip(occupied).filter(|(_, occupied)| !occupied) {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *slot = noise;
            }
        }
        let rotate = |x: &[u64], rotation: Rotation| -> Vec<u64> {
            (0..slots).map(|slot| x[rotation.source(slot, slots)]).collect()
        };
        let (babies, giants) = program.steps();
        let babies: Vec<Vec<u64>> =
            babies.into_keys().map(|(at, step)| rotate(&packed[at], Rotation::by(step, slots))).collect();
        let mut sums = vec![vec![0_u64; slots]; giants.len()];
        let (numbers, _) = program.steps();
        program.each_product(|product| {
            let (baby, giant) = program.split(product.diagonal);
            let column = ((product.accumulator % half) as isize + giant.0).rem_euclid(half as isize) as usize;
            let row = usize::from(product.accumulator >= half) ^ usize::from(giant.1);
            let slot = row * half + column;
            let x = babies[numbers[&baby]][slot];
            let sum: &mut u64 = &mut sums[giants[&giant]][slot];
            *sum = sum.wrapping_add(x.wrapping_mul(weights[product.weight] as u64));
        });
        let mut all = vec![0_u64; slots];
        for ((step, swap), number) in giants {
            let rotated = rotate(&sums[number], Rotation { swap, ..Rotation::by(step, slots) });
            all.iter_mut().zip(rotated).for_each(|(sum, x)| *sum = sum.wrapping_add(x));
        }
        for fold in program.folds() {
            let rotated = rotate(&all, fold);
            all.iter_mut().zip(rotated).for_each(|(sum, x)| *sum = sum.wrapping_add(x));
        }
        // Every copy of a result is one.
        for (slot, occupied) in program.to().occupied()[0].iter().enumerate() {
            assert!(!occupied || all[slot] == all[slot % program.to().period()], "slot {slot}");
        }
        program.to().unpack(&[all]).into_iter().map(|y| y as i64).collect()
    }

    fn numbers(count: usize, seed: i64) -> Vec<i64> {
        (0..count as i64).map(|i| (i * 7919 + seed) % 101 - 50).collect()
    }

    fn check(program: &Program) {
        let shape = program.shape();
        let (weights, input) = (numbers(shape.weights(), 3), numbers(shape.inputs(), 5));
        let expected = shape.apply(&weights, &input).unwrap();
        assert_eq!(run(program, &weights, &input), expected, "{shape:?} {:?}", program.gathering);
    }

    fn conv(channels: [usize; 2], image: usize, kernel: usize, stride: usize, pad: usize) -> Convolution {
        Convolution {
            in_channels: channels[0],
            out_channels: channels[1],
            image: [image; 2],
            kernel: [kernel; 2],
            strides: [stride; 2],
            pads: [pad; 4],
            dilations: [1, 1],
            groups: 1,
        }
    }

    /// Every program that there is, and every one of a layer behind it.
    fn check_all(shape: &Convolution, next: &[Convolution]) {
        let programs = Program::first(shape, SLOTS, &mut MAX_SEARCH.clone()).unwrap();
        assert!(!programs.is_empty());
        for program in programs {
            check(&program);
            for shape in next {
                let behind = Program::next(shape, program.to(), &mut MAX_SEARCH.clone()).unwrap();
                assert!(!behind.is_empty());
                behind.iter().for_each(check);
            }
        }
    }

    #[test]
    fn layers_of_every_shape_are_computed_whatever_else_is_in_the_slots() {
        for inputs in [1, 2, 3, 7, 8, 13, 31, 33, 60, 64] {
            for outputs in [1, 2, 3, 5, 8, 10, 17, 32, 40, 64] {
                let next = [1, 3, 16].map(|next| Convolution::fully_connected(outputs, next));
                check_all(&Convolution::fully_connected(inputs, outputs), &next);
                let third = [[inputs, outputs], [outputs, 9], [9, 4]]
                    .map(|[i, o]| Convolution::fully_connected(i, o));
                Program::chain(&third, SLOTS).unwrap().iter().for_each(check);
            }
        }
    }

    #[test]
    fn convolutions_are_computed_in_patches_and_behind_another_layer() {
        for (channels, image, kernel, stride, pad) in [
            ([1, 2], 6, 3, 2, 1),
            ([1, 4], 4, 2, 1, 0),
            ([3, 2], 6, 3, 1, 0),
            ([2, 5], 5, 3, 2, 1),
            ([1, 1], 8, 5, 1, 2),
            ([3, 12], 6, 4, 2, 0),
        ] {
            let shape = conv(channels, image, kernel, stride, pad);
            let size = shape.output_image().unwrap()[0];
            let next: Vec<_> =
                (1..=size.min(2)).map(|kernel| conv([channels[1], 1], size, kernel, 1, 0)).collect();
            check_all(&shape, &next);
        }
        check_all(&Convolution { groups: 2, ..conv([2, 4], 4, 2, 2, 0) }, &[]);
    }

    #[test]
    fn layers_of_lolas_network_for_mnist_take_few_rotations() {
        let conv1 = Convolution { pads: [1, 1, 0, 0], ..conv([1, 5], 28, 5, 2, 0) };
        let dense =
            [[845, 100], [100, 10]].map(|[inputs, outputs]| Convolution::fully_connected(inputs, outputs));
        let chain = Program::chain(&[&[conv1], dense.as_slice()].concat(), 16384).unwrap();
        let counts = |ciphertexts, hoisted, rotations, multiplications| Counts {
            ciphertexts,
            hoisted,
            rotations,
            multiplications,
        };
        assert_eq!(
            chain.iter().map(Program::counts).collect::<Vec<_>>(),
            [counts(1, 1, 4, 2), counts(1, 3, 8, 8), counts(1, 7, 6, 17)]
        );
    }

    #[test]
    fn layouts_from_elsewhere_are_checked() {
        let runs = |len, run, stride, period| Layout::Runs { slots: 64, len, run, stride, period };
        for sound in [runs(64, 64, 64, 64), runs(10, 3, 8, 32), runs(1, 1, 1, 1)] {
            sound.check(64).unwrap();
            assert!(sound.check(32).is_err());
        }
        for wrong in [
            runs(65, 65, 65, 64),
            runs(10, 0, 8, 64),
            runs(10, 9, 8, 64),
            runs(10, 3, 8, 24),
            runs(10, 3, 16, 32),
            runs(usize::MAX, 1, usize::MAX, 64),
            runs(3, 4, 4, 128),
            runs(0, 1, 1, 64),
        ] {
            assert!(wrong.check(64).is_err(), "{wrong:?}");
        }
    }
}
