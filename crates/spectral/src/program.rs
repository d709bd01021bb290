//! A linear layer on slots: which products are summed where, and by which rotations they come there.
//!
//! An output `o` has accumulators: its slot `b(o)`, and all that the folds bring there in the end. Each of its products `w x` is given to one
//! of them, `a`, and takes `x` from a slot `s` that holds it. All products with the same `s - a` are one diagonal: a plaintext times the input rotated by that. With folds by `d`,
//! `2d`, ... the accumulator can be chosen such that `s - a < d`, whatever the product (the "hybrid" of GAZELLE, section V).
//!
//! The diagonals are summed by baby steps and giant steps: `sum_g rot(sum_b D rot(x, b), g)`, where the input is decomposed once for all `b`.
//!
//! A convolution between [grids](super::Grid) has one accumulator for each output, and plaintexts that repeat from position to position.

use std::collections::{BTreeMap, BTreeSet};

use lanner_bfv::{NoiseBound, Parameters};
use lanner_step::{Convolution, ProtocolError, Result, Rotation};
use serde::{Deserialize, Serialize};

use super::grid::{Grid, Taps};
use super::layout::{Layout, Patches};
use super::primes::largest;

/// How a layer is computed. It follows from the layer's shape and the layout of its input, and not from weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    shape: Convolution,
    from: Layout,
    to: Layout,
    gathering: Gathering,
    diagonals: BTreeSet<Diagonal>,
    stride: Stride,
}

/// How steps are taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stride {
    /// Steps from one giant step to the next.
    giant: usize,
    /// Baby steps go on at its multiples, which are left to them whole: giant steps are shorter than half of it. Half the slots: they do not.
    block: usize,
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
    /// The output's own, position by position.
    Positions,
}

/// A plaintext that multiplies a rotated ciphertext.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagonal {
    /// The number of the ciphertext.
    pub ciphertext: usize,
    /// That of the output's, which it is summed in.
    pub output: usize,
    /// Steps to the left within each row, from `-N/4` to `N/4`.
    pub step: isize,
    /// Whether the rows are exchanged.
    pub swap: bool,
}

/// A ciphertext, and the step that it is rotated by before the products.
type Baby = (usize, isize);

/// What a sum of products is rotated by, and the ciphertext that it goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Giant {
    pub(super) output: usize,
    step: isize,
    swap: bool,
}

impl Giant {
    pub(super) fn rotation(self, slots: usize) -> Rotation {
        Rotation { swap: self.swap, ..Rotation::by(self.step, slots) }
    }
}

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

impl Program {
    /// The cheapest programs of a network's layers, with anything slot by slot in between; the client lays its input out as the first one wants it.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if there is no layer, a layer's input or output has more elements than a ciphertext has slots, or the search
    /// takes longer than what is left of it.
    pub fn chain(shapes: &[Convolution], slots: usize, search: &mut Search) -> Result<Vec<Self>> {
        let (first, rest) = shapes.split_first().ok_or(NO_LAYER)?;
        if shapes.len() > MAX_LAYERS {
            return Err(TOO_MANY);
        }
        if slots < 2 || !slots.is_power_of_two() {
            return Err(NO_LAYOUT);
        }
        let phases = phases(shapes);
        let programs = Self::first(first, slots, phases[0], search)?;
        let mut chains = cheapest(programs.into_iter().map(|program| vec![program]));
        for shape in rest {
            // Where a layer goes from grid to grid, no other way is searched: each would take as many diagonals as there are inputs or outputs.
            let on_grids = |chain: &Vec<Self>| chain.last().is_some_and(|last| last.leads_to_grid(shape));
            if chains.iter().any(on_grids) {
                chains.retain(on_grids);
            }
            let mut longer = Vec::new();
            for chain in chains {
                let Some(last) = chain.last() else { continue };
                let next = Self::next(shape, &last.to, search)?;
                longer.extend(next.into_iter().map(|program| [chain.as_slice(), &[program]].concat()));
            }
            chains = cheapest(longer);
        }
        chains.into_iter().min_by_key(|chain| cost(chain)).ok_or(NO_LAYOUT)
    }

    /// Programs of a network's first layer, whose output may be taken apart in so many phases.
    fn first(
        shape: &Convolution,
        slots: usize,
        phases: [usize; 2],
        search: &mut Search,
    ) -> Result<Vec<Self>> {
        if shape.output_image()? == [1, 1] || shape.groups != 1 {
            return Self::next(shape, &Layout::copies(shape.inputs(), slots)?, search);
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
            let patches = Patches { slots, shape: shape.clone(), block, kinds };
            let from = Layout::Patches(patches.clone());
            if from.check(slots).is_err() {
                // Of more ciphertexts than anybody would send.
                return Ok(Vec::new());
            }
            Self::patched(&patches)?
                .into_iter()
                .filter_map(|(to, gathering)| {
                    Self::new(shape, from.clone(), to, gathering, search).transpose()
                })
                .collect::<Result<Vec<_>, _>>()
        };
        let programs = blocks.flat_map(kinds).map(program).collect::<Result<Vec<_>, _>>()?;
        let mut programs: Vec<Self> = programs.into_iter().flatten().collect();
        for output in grids(shape, slots, phases)? {
            let from = Layout::Taps(Taps { shape: shape.clone(), output: output.clone() });
            if from.check(slots).is_ok() {
                let to = Layout::Grid(output);
                programs.extend(Self::new(shape, from, to, Gathering::Positions, search)?);
            }
        }
        Ok(programs)
    }

    /// Where the output of a layer that reads patches may lie.
    fn patched(patches: &Patches) -> Result<Vec<(Layout, Gathering)>> {
        let (slots, block, outputs) = (patches.slots, patches.block, patches.shape.outputs()?);
        let to = Layout::Runs { slots, len: outputs, run: outputs, stride: block, period: block };
        Ok(if outputs <= block { vec![(to, Gathering::Blocks)] } else { Vec::new() })
    }

    /// Whether a layer behind goes from grid to grid.
    fn leads_to_grid(&self, shape: &Convolution) -> bool {
        matches!(&self.to, Layout::Grid(from) if behind(shape, from).is_ok_and(|grids| !grids.is_empty()))
    }

    /// Programs of a layer that reads what another one made.
    fn next(shape: &Convolution, from: &Layout, search: &mut Search) -> Result<Vec<Self>> {
        let program = |(to, gathering)| Self::new(shape, from.clone(), to, gathering, search).transpose();
        Self::ways(shape, from)?.into_iter().filter_map(program).collect()
    }

    /// Where its output may lie.
    fn ways(shape: &Convolution, from: &Layout) -> Result<Vec<(Layout, Gathering)>> {
        let (slots, outputs, period) = (from.slots(), shape.outputs()?, from.period());
        if from.len() != shape.inputs() || matches!(from, Layout::Patches(_) | Layout::Taps(_)) {
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
        match from {
            Layout::Runs { len, run, stride, .. }
                if run < len && period == slots && run.is_power_of_two() && stride.is_power_of_two() =>
            {
                let to = Layout::Runs { slots, len: outputs, run: 1, stride: *run, period: *stride };
                ways.push((to, Gathering::Aligned));
            }
            Layout::Grid(from) => {
                let grids = behind(shape, from)?;
                if !grids.is_empty() {
                    ways.clear();
                }
                ways.extend(grids.into_iter().map(|grid| (Layout::Grid(grid), Gathering::Positions)));
            }
            _ => {}
        }
        ways.retain(|(to, _)| to.check(slots).is_ok());
        Ok(ways)
    }

    /// The program of a layer between two layouts.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless there is one.
    pub fn of(shape: &Convolution, from: &Layout, to: &Layout, gathering: Gathering) -> Result<Self> {
        from.check(from.slots())?;
        let programs = match from {
            Layout::Patches(Patches { shape: own, .. }) | Layout::Taps(Taps { shape: own, .. })
                if own != shape =>
            {
                return Err(NO_LAYOUT);
            }
            Layout::Patches(patches) => Self::patched(patches)?,
            Layout::Taps(taps) => vec![(Layout::Grid(taps.output.clone()), Gathering::Positions)],
            Layout::Runs { .. } | Layout::Grid(_) => Self::ways(shape, from)?,
        };
        let is_wanted = |way: &(Layout, Gathering)| (&way.0, way.1) == (to, gathering);
        if from.len() != shape.inputs() || !programs.iter().any(is_wanted) {
            return Err(NO_LAYOUT);
        }
        Self::new(shape, from.clone(), to.clone(), gathering, &mut Search::default())?.ok_or(TOO_MANY)
    }

    /// Nothing, if it has more diagonals than anybody would keep.
    fn new(
        shape: &Convolution,
        from: Layout,
        to: Layout,
        gathering: Gathering,
        search: &mut Search,
    ) -> Result<Option<Self>> {
        search.spend(products(shape)?)?;
        let slots = from.slots();
        let stride = Stride { giant: 1, block: slots / 2 };
        let mut program =
            Self { shape: shape.clone(), from, to, gathering, diagonals: BTreeSet::new(), stride };
        // Many products have one diagonal, and these follow each other in runs.
        let (inputs, outputs) = (program.from.ciphertexts(), program.to.ciphertexts());
        let mut seen = vec![false; 2 * slots * inputs * outputs];
        let mut diagonals = BTreeSet::new();
        program.each_product(|Product { diagonal, .. }| {
            let Diagonal { ciphertext, output, step, swap } = diagonal;
            let kind = (ciphertext * outputs + output) * 2 + usize::from(swap);
            let place = kind * slots + (step + (slots / 2) as isize) as usize;
            if !std::mem::replace(&mut seen[place], true) && diagonals.len() <= MAX_DIAGONALS {
                diagonals.insert(diagonal);
            }
        });
        if diagonals.len() > MAX_DIAGONALS {
            return Ok(None);
        }
        ProtocolError::refuse_if(diagonals.is_empty(), "a layer that reads nothing but padding")?;
        program.diagonals = diagonals;
        let (mut best, strides) = ((usize::MAX, stride), program.strides());
        search.spend((strides.len() * program.diagonals.len() * STEP) as u64)?;
        for stride in strides {
            program.stride = stride;
            best = best.min((program.cost(), stride));
        }
        program.stride = best.1;
        Ok(Some(program))
    }

    /// Ways to take steps apart.
    fn strides(&self) -> Vec<Stride> {
        let half = self.from.slots() / 2;
        let (unit, blocks) = match (&self.from, &self.to) {
            (Layout::Patches(patches), _) => (patches.positions(), vec![half]),
            (_, Layout::Grid(to)) => (1, vec![half, to.cells() * to.positions[1], to.cells()]),
            _ => (1, vec![half]),
        };
        let giants: BTreeSet<usize> =
            [1, unit].into_iter().flat_map(|unit| (0..14).map(move |bits| unit << bits)).collect();
        let of = |block: usize| {
            let most = if block == half { 4 * half } else { block };
            giants
                .iter()
                .take_while(move |giant| **giant <= most)
                .map(move |giant| Stride { giant: *giant, block })
        };
        blocks.into_iter().flat_map(of).collect()
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

    /// Plaintexts repeat in each row after so many slots, if they do.
    #[must_use]
    pub fn period(&self) -> Option<usize> {
        match &self.to {
            Layout::Grid(to) if self.gathering == Gathering::Positions => Some(to.cells()),
            _ => None,
        }
    }

    /// The baby step and the giant step of a diagonal.
    pub(super) fn split(&self, diagonal: Diagonal) -> (Baby, Giant) {
        let Diagonal { ciphertext, output, step, swap } = diagonal;
        let Stride { giant, block } = self.stride;
        let (half, block) = ((self.from.slots() / 2) as isize, block as isize);
        let within = if block == half { step } else { (step + block / 2).rem_euclid(block) - block / 2 };
        let baby = step - within + within.rem_euclid(giant as isize);
        ((ciphertext, baby), Giant { output, step: step - baby, swap })
    }

    /// The diagonals, in order.
    pub(super) fn diagonals(&self) -> impl Iterator<Item = Diagonal> {
        self.diagonals.iter().copied()
    }

    /// The baby steps by ciphertext and step, and the giant steps; each with its number.
    pub(super) fn steps(&self) -> (Numbered<Baby>, Numbered<Giant>) {
        let (babies, giants) = self.diagonals().map(|diagonal| self.split(diagonal)).unzip();
        (numbered(babies), numbered(giants))
    }

    /// The rotations that need a key.
    #[must_use]
    pub fn rotations(&self) -> BTreeSet<Rotation> {
        let slots = self.from.slots();
        let (babies, giants) = self.steps();
        let babies = babies.into_keys().map(|(_, step)| Rotation::by(step, slots));
        let giants = giants.into_keys().map(|giant| giant.rotation(slots));
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
        let prime = largest(primes);
        let slots = self.from.slots();
        let product = |step| {
            let rotated = if step == 0 { input } else { input.switched_key_extended_at(parameters, limbs) };
            rotated.multiplied(parameters, prime)
        };
        let mut sums: BTreeMap<Giant, NoiseBound> = BTreeMap::new();
        for ((_, step), giant) in self.diagonals().map(|diagonal| self.split(diagonal)) {
            let sum = sums.entry(giant).or_insert(NoiseBound::NONE);
            *sum = sum.plus(product(step));
        }
        let mut outputs = vec![NoiseBound::NONE; self.to.ciphertexts()];
        for (giant, sum) in sums {
            let (sum, all) = (sum.rescaled(parameters), &mut outputs[giant.output]);
            let still = giant.rotation(slots) == Rotation::IDENTITY;
            *all = all.plus(if still { sum } else { sum.switched_key_at(parameters, limbs) });
        }
        let worst = |worst: NoiseBound, all| if all > worst { all } else { worst };
        let mut all = outputs.into_iter().fold(NoiseBound::NONE, worst);
        for _ in self.folds() {
            all = all.plus(all.switched_key_at(parameters, limbs));
        }
        all.plus_plaintext()
    }

    /// How many operations it takes.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let slots = self.from.slots();
        let (babies, giants) = self.steps();
        let giants = giants.into_keys().filter(|giant| giant.rotation(slots) != Rotation::IDENTITY).count();
        Counts {
            ciphertexts: self.from.ciphertexts(),
            hoisted: babies.into_keys().filter(|(_, step)| *step != 0).count(),
            rotations: giants + self.folds().len(),
            multiplications: self.diagonals.len(),
        }
    }

    /// Roughly, in microseconds of one core at `N = 16384` and seven limbs.
    fn cost(&self) -> usize {
        let Counts { ciphertexts, hoisted, rotations, multiplications } = self.counts();
        // What the client makes and sends, or what is squared.
        let ciphertext =
            if matches!(self.from, Layout::Patches(_) | Layout::Taps(_)) { 30_000 } else { 5_000 };
        let product = if self.period().is_some() { 12 } else { 25 };
        ciphertext * ciphertexts + 350 * hoisted + 1300 * rotations + product * multiplications
    }

    /// Shows every product of a weight and an input element: of those that repeat from position to position, that at the first one.
    pub(super) fn each_product(&self, visit: impl FnMut(Product)) {
        match (&self.from, &self.to) {
            (Layout::Taps(taps), Layout::Grid(to)) => self.each_repeated(to, visit, |phase, channel, tap| {
                taps.plane(phase, self.shape.tap_number(channel, tap))
            }),
            (Layout::Grid(from), Layout::Grid(to)) => self.each_repeated(to, visit, |phase, channel, tap| {
                let Convolution { strides, dilations, .. } = self.shape;
                let first = to.first_pixel(phase);
                let pixel = [0, 1].map(|axis| first[axis] * strides[axis] + tap[axis] * dilations[axis]);
                let (phase, ahead) = from.pixel(pixel);
                from.plane(phase, channel) + ahead
            }),
            _ => self.each_single(visit),
        }
    }

    /// Shows the products of all phases at the first position, where the input lies in a slot by phase, channel and tap.
    fn each_repeated(
        &self,
        to: &Grid,
        mut visit: impl FnMut(Product),
        source: impl Fn(usize, usize, [usize; 2]) -> usize,
    ) {
        // What the taps of a phase without pixels would read may be beyond the grid.
        let has_pixels = |phase: &usize| {
            let [y, x] = to.first_pixel(*phase);
            y < to.image[0] && x < to.image[1]
        };
        let phases: Vec<usize> = (0..to.all_phases()).filter(has_pixels).collect();
        for output in 0..self.shape.out_channels {
            for (channel, tap, weight) in self.shape.taps_of(output) {
                for &phase in &phases {
                    let (accumulator, source) = (to.plane(phase, output), source(phase, channel, tap));
                    visit(Product { weight, accumulator, diagonal: self.diagonal(accumulator, source) });
                }
            }
        }
    }

    /// Shows every product of a weight and an input element, which each have slots of their own.
    fn each_single(&self, mut visit: impl FnMut(Product)) {
        let shape = &self.shape;
        let [height, width] = shape.output_image().unwrap_or([0; 2]);
        for output in 0..shape.out_channels {
            for (channel, tap, weight) in shape.taps_of(output) {
                for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
                    let Some(input) = shape.element(channel, tap, [y, x]) else { continue };
                    let position = y * width + x;
                    let (accumulator, source) = if let Layout::Patches(patches) = &self.from {
                        patched(patches, output, shape.tap_number(channel, tap), position)
                    } else {
                        self.gathered(output * height * width + position, input)
                    };
                    visit(Product { weight, accumulator, diagonal: self.diagonal(accumulator, source) });
                }
            }
        }
    }

    /// The accumulator and the input's slot of a product, through all ciphertexts.
    fn gathered(&self, output: usize, input: usize) -> (usize, usize) {
        let (slots, half) = (self.from.slots(), self.from.slots() / 2);
        let (base, first) = (self.to.first(output), self.from.first(input));
        match self.gathering {
            Gathering::Hybrid(d) if self.from.period() == slots && d < slots => {
                // Both rows accumulate: that of the input does.
                let (row, column) = (first % slots - first % half, first % half);
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

    fn diagonal(&self, accumulator: usize, source: usize) -> Diagonal {
        let (slots, half) = (self.from.slots(), self.from.slots() / 2);
        let ahead = (source % half + half - accumulator % half) % half;
        let step = if ahead > half / 2 { ahead as isize - half as isize } else { ahead as isize };
        let swap = accumulator / half % 2 != source / half % 2;
        Diagonal { ciphertext: source / slots, output: accumulator / slots, step, swap }
    }

    /// The slot of its sum that takes a product, before the giant step brings it to the accumulator; in one period of each row, if slots repeat.
    pub(super) fn slot(&self, product: &Product) -> usize {
        let (slots, half) = (self.from.slots(), self.from.slots() / 2);
        let (_, giant) = self.split(product.diagonal);
        let slot = giant.rotation(slots).source(product.accumulator % slots, slots);
        self.period().map_or(slot, |period| slot / half * period + slot % period)
    }
}

/// A product of a weight and an input element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    /// The weight's number.
    pub(super) weight: usize,
    /// The slot that takes it, through all ciphertexts.
    pub(super) accumulator: usize,
    /// How its input comes there.
    pub(super) diagonal: Diagonal,
}

/// The accumulator and the slot of what a tap reads for an output channel and position.
fn patched(patches: &Patches, channel: usize, tap: usize, position: usize) -> (usize, usize) {
    let (ciphertext, block, kind) = patches.tap(tap);
    let ahead = channel + (kind + patches.kinds - channel % patches.kinds) % patches.kinds;
    let plane = if ahead < patches.planes() { ahead } else { kind };
    let at = |plane: usize| block + plane * patches.positions() + position;
    (at(channel), ciphertext * patches.slots + at(plane))
}

/// In how many phases the output of each layer is taken apart for the convolutions behind it, vertically and horizontally.
fn phases(shapes: &[Convolution]) -> Vec<[usize; 2]> {
    let mut all = vec![[1, 1]; shapes.len()];
    for (i, next) in shapes.iter().enumerate().skip(1).rev() {
        let behind = all[i];
        all[i - 1] = [0, 1].map(|axis| next.strides[axis].saturating_mul(behind[axis]));
    }
    all
}

/// The grids that the output of a network's first layer may have in so many phases.
fn grids(shape: &Convolution, slots: usize, phases: [usize; 2]) -> Result<Vec<Grid>> {
    let image = shape.output_image()?;
    let positions = [0, 1].map(|axis| image[axis].div_ceil(phases[axis].max(1)).next_power_of_two());
    grids_at(shape, slots, phases, positions)
}

/// The grids that the output of a layer may have that reads one: those with its positions, of which a step to the next output is one.
fn behind(shape: &Convolution, from: &Grid) -> Result<Vec<Grid>> {
    let phases = [0, 1].map(|axis| from.phases[axis] / shape.strides[axis].max(1));
    let steps = |axis: usize| phases[axis] * shape.strides[axis] == from.phases[axis];
    let reads = (from.channels, from.image, [0; 4]) == (shape.in_channels, shape.image, shape.pads);
    if reads && steps(0) && steps(1) {
        grids_at(shape, from.slots, phases, from.positions)
    } else {
        Ok(Vec::new())
    }
}

/// The grids of a layer's output.
fn grids_at(
    shape: &Convolution,
    slots: usize,
    phases: [usize; 2],
    positions: [usize; 2],
) -> Result<Vec<Grid>> {
    let (image, channels) = (shape.output_image()?, shape.out_channels);
    if image == [1, 1] {
        return Ok(Vec::new());
    }
    let planes = channels.saturating_mul(phases[0]).saturating_mul(phases[1]);
    let cells = slots / 2 / positions[0].saturating_mul(positions[1]).max(1);
    // A phase in each row, all planes side by side, and half of them in each row.
    let widths = BTreeSet::from([channels, planes.min(cells), planes.div_ceil(2)]);
    let grid = |width| Grid { slots, channels, image, phases, positions, width };
    Ok(widths.into_iter().map(grid).filter(Grid::is_sound).collect())
}

/// Keys with their numbers, in order.
fn numbered<S: Ord>(keys: BTreeSet<S>) -> Numbered<S> {
    keys.into_iter().enumerate().map(|(number, key)| (key, number)).collect()
}

/// What programs cost together.
fn cost(chain: &[Program]) -> usize {
    chain.iter().map(Program::cost).sum()
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

/// Products of a layer's weights with what they read.
fn products(shape: &Convolution) -> Result<u64> {
    let taps = (shape.group_inputs() as u64).saturating_mul((shape.kernel[0] * shape.kernel[1]) as u64);
    Ok((shape.outputs()? as u64).saturating_mul(taps))
}

/// What is left of a search for programs, in products of weights: a network from elsewhere does not take longer to plan. At first some twenty seconds.
#[derive(Clone, Copy, Debug)]
pub struct Search(u64);

impl Default for Search {
    fn default() -> Self {
        Self(1 << 31)
    }
}

impl Search {
    fn spend(&mut self, products: u64) -> Result<()> {
        self.0 = self.0.checked_sub(products).ok_or(TOO_MANY)?;
        Ok(())
    }
}

/// Products that take as long as a look at a diagonal.
const STEP: usize = 16;

/// Diagonals of a program: each takes a kilobyte of memory or more, and a product of ciphertexts for each prediction.
const MAX_DIAGONALS: usize = 1 << 17;

/// Layers of a chain: beyond what any parameters have room for.
const MAX_LAYERS: usize = 12;

const TOO_MANY: ProtocolError =
    ProtocolError::Parameters("more layers, or larger ones, than layouts are searched for");
const NO_LAYER: ProtocolError = ProtocolError::Parameters("a network without a linear layer");
const NO_LAYOUT: ProtocolError =
    ProtocolError::Parameters("a layer of more elements than a ciphertext has slots");

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lanner_step::Samples;

    use super::*;

    const SLOTS: usize = 64;

    /// Runs a program on slots that hold anything where they hold no element, modulo 2^64.
    fn run(program: &Program, weights: &[i64], input: &[i64]) -> Vec<i64> {
        let slots = program.from().slots();
        let half = slots / 2;
        let mut noise = 7_u64;
        let mut packed =
            program.from().pack(Samples::ONE, &input.iter().map(|x| *x as u64).collect::<Vec<_>>());
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
        let rotated: Vec<Vec<u64>> =
            babies.keys().map(|(at, step)| rotate(&packed[*at], Rotation::by(*step, slots))).collect();
        let mut sums = vec![vec![0_u64; slots]; giants.len()];
        program.each_product(|product| {
            let (baby, giant) = program.split(product.diagonal);
            let (x, sum) = (&rotated[babies[&baby]], &mut sums[giants[&giant]]);
            let (first, period) = (program.slot(&product), program.period().unwrap_or(half));
            let row = first / period * half;
            for slot in (row + first % period..row + half).step_by(period) {
                sum[slot] = sum[slot].wrapping_add(x[slot].wrapping_mul(weights[product.weight] as u64));
            }
        });
        let mut outputs = vec![vec![0_u64; slots]; program.to().ciphertexts()];
        for (giant, number) in giants {
            let rotated = rotate(&sums[number], giant.rotation(slots));
            outputs[giant.output].iter_mut().zip(rotated).for_each(|(sum, x)| *sum = sum.wrapping_add(x));
        }
        for fold in program.folds() {
            let rotated = rotate(&outputs[0], fold);
            outputs[0].iter_mut().zip(rotated).for_each(|(sum, x)| *sum = sum.wrapping_add(x));
        }
        // Every copy of a result is one.
        for (all, occupied) in outputs.iter().zip(program.to().occupied()) {
            for (slot, occupied) in occupied.iter().enumerate() {
                assert!(!occupied || all[slot] == all[slot % program.to().period()], "slot {slot}");
            }
        }
        program.to().unpack(&outputs).into_iter().map(|y| y as i64).collect()
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
        let programs = Program::first(shape, SLOTS, [1, 1], &mut Search::default()).unwrap();
        assert!(!programs.is_empty());
        for program in programs {
            check(&program);
            for shape in next {
                let behind = Program::next(shape, program.to(), &mut Search::default()).unwrap();
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
                Program::chain(&third, SLOTS, &mut Search::default()).unwrap().iter().for_each(check);
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

    /// All programs of convolutions one behind the other on grids, each of which reads what the one before made.
    fn check_grids(shapes: &[Convolution], slots: usize) -> usize {
        let phases = phases(shapes);
        let mut programs = Program::first(&shapes[0], slots, phases[0], &mut Search::default()).unwrap();
        let mut checked = 0;
        for next in shapes.iter().skip(1).map(Some).chain([None]) {
            programs.retain(|program| program.gathering == Gathering::Positions);
            let mut behind = Vec::new();
            for program in &programs {
                check(program);
                let (shape, from, to) = (program.shape(), program.from(), program.to());
                assert_eq!(&Program::of(shape, from, to, program.gathering()).unwrap(), program);
                checked += 1;
                if let Some(next) = next {
                    behind.extend(Program::next(next, to, &mut Search::default()).unwrap());
                } else {
                    let dense = Convolution::fully_connected(shape.outputs().unwrap(), 3);
                    Program::next(&dense, to, &mut Search::default()).unwrap().iter().for_each(check);
                }
            }
            programs = behind;
        }
        checked
    }

    #[test]
    fn convolutions_on_grids_are_computed_whatever_else_is_in_the_slots() {
        let padded = |shape: Convolution| Convolution { pads: [1, 2, 2, 1], ..shape };
        for (shapes, slots) in [
            (vec![padded(conv([1, 2], 6, 3, 1, 0)), conv([2, 3], 7, 3, 2, 0)], 256),
            (vec![conv([2, 5], 7, 2, 1, 0), conv([5, 4], 6, 2, 2, 0)], 256),
            // More planes than a ciphertext has room for.
            (vec![conv([1, 9], 9, 2, 1, 0), conv([9, 7], 8, 4, 2, 0)], 128),
            (vec![conv([3, 4], 16, 1, 1, 0), conv([4, 6], 16, 2, 2, 0), conv([6, 3], 8, 2, 2, 0)], 256),
            (vec![conv([2, 4], 9, 3, 1, 0), Convolution { groups: 2, ..conv([4, 6], 7, 3, 1, 0) }], 256),
            (
                vec![conv([1, 2], 7, 1, 1, 0), Convolution { dilations: [2, 1], ..conv([2, 2], 7, 2, 1, 0) }],
                256,
            ),
            (
                vec![conv([1, 2], 7, 1, 1, 0), Convolution { strides: [3, 1], ..conv([2, 2], 7, 3, 1, 0) }],
                256,
            ),
        ] {
            assert!(check_grids(&shapes, slots) >= shapes.len(), "{shapes:?}");
        }
        // Phases in which the image has no pixel: taps that would read beyond the grid.
        let column = |channels, kernel| Convolution { kernel, ..conv(channels, 1, 1, 1, 0) };
        let tall = [
            Convolution { image: [24, 8], ..column([1, 4], [1, 1]) },
            Convolution { image: [24, 8], ..column([4, 4], [24, 1]) },
            Convolution { image: [1, 8], strides: [3, 1], ..column([4, 1], [1, 1]) },
        ];
        for slots in [256, 8192, 16384] {
            assert!(check_grids(&tall, slots) >= tall.len());
            Program::chain(&tall, slots, &mut Search::default()).unwrap().iter().for_each(check);
        }
        // A padded convolution would read what is beside the image.
        assert_eq!(check_grids(&[conv([1, 2], 6, 3, 1, 0), conv([2, 2], 4, 3, 1, 1)], 256), 2);
    }

    fn counts(ciphertexts: usize, hoisted: usize, rotations: usize, multiplications: usize) -> Counts {
        Counts { ciphertexts, hoisted, rotations, multiplications }
    }

    #[test]
    fn layers_of_lolas_network_for_mnist_take_few_rotations() {
        let conv1 = Convolution { pads: [1, 1, 0, 0], ..conv([1, 5], 28, 5, 2, 0) };
        let dense =
            [[845, 100], [100, 10]].map(|[inputs, outputs]| Convolution::fully_connected(inputs, outputs));
        let chain =
            Program::chain(&[&[conv1], dense.as_slice()].concat(), 16384, &mut Search::default()).unwrap();
        assert_eq!(
            chain.iter().map(Program::counts).collect::<Vec<_>>(),
            [counts(1, 1, 4, 2), counts(1, 3, 8, 8), counts(1, 7, 6, 17)]
        );
    }

    #[test]
    fn layers_of_lolas_network_for_cifar_lie_on_grids() {
        let conv1 = conv([3, 83], 32, 8, 2, 1);
        let shapes = [conv1, conv([83, 163], 14, 6, 2, 0), Convolution::fully_connected(4075, 10)];
        let chain = Program::chain(&shapes, 16384, &mut Search::default()).unwrap();
        assert_eq!(
            chain.iter().map(Program::counts).collect::<Vec<_>>(),
            [counts(3, 93, 12, 712), counts(2, 190, 27, 5040), counts(1, 7, 11, 16)]
        );
        assert_eq!(chain.iter().map(|program| program.to().ciphertexts()).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(chain.iter().map(Program::period).collect::<Vec<_>>(), [Some(128), Some(128), None]);
    }

    #[test]
    fn a_search_ends() {
        let shapes = [[300, 200], [200, 100]].map(|[i, o]| Convolution::fully_connected(i, o));
        let search = |products| Program::chain(&shapes, 1024, &mut Search(products));
        assert!(search(1 << 31).is_ok());
        for products in [0, 60_000, 1_000_000] {
            assert!(matches!(search(products), Err(ProtocolError::Parameters(_))), "{products}");
        }
        // What one search takes is not there for the next.
        let mut left = Search(1 << 31);
        Program::chain(&shapes, 1024, &mut left).unwrap();
        let taken = (1 << 31) - left.0;
        assert!(Program::chain(&shapes, 1024, &mut Search(taken)).is_ok());
        assert!(Program::chain(&shapes, 1024, &mut Search(taken - 1)).is_err());
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
        let grid =
            Grid { slots: 64, channels: 2, image: [3, 7], phases: [1, 2], positions: [4, 4], width: 2 };
        let shape = conv([1, 2], 3, 1, 1, 0);
        let taps = |output: Grid| {
            Layout::Taps(Taps { shape: Convolution { image: [3, 7], ..shape.clone() }, output })
        };
        Layout::Grid(grid.clone()).check(64).unwrap();
        taps(grid.clone()).check(64).unwrap();
        for wrong in [
            Grid { slots: 32, ..grid.clone() },
            Grid { channels: 0, ..grid.clone() },
            Grid { channels: 129, ..grid.clone() },
            Grid { channels: usize::MAX, ..grid.clone() },
            Grid { image: [5, 7], ..grid.clone() },
            Grid { image: [3, 9], ..grid.clone() },
            Grid { phases: [0, 2], ..grid.clone() },
            Grid { phases: [usize::MAX, 2], ..grid.clone() },
            Grid { positions: [4, 3], ..grid.clone() },
            Grid { positions: [4, 16], ..grid.clone() },
            Grid { positions: [usize::MAX / 2 + 1, 2], ..grid.clone() },
            Grid { positions: [2, 2], ..grid.clone() },
            Grid { width: 3, ..grid.clone() },
            Grid { width: 0, ..grid.clone() },
        ] {
            assert!(Layout::Grid(wrong.clone()).check(64).is_err(), "{wrong:?}");
            assert!(taps(wrong.clone()).check(64).is_err(), "{wrong:?}");
        }
        assert!(taps(Grid { image: [3, 6], ..grid.clone() }).check(64).is_err());
        assert!(taps(Grid { channels: 3, ..grid }).check(64).is_err());
    }
}
