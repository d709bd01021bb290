//! Operators without weights: each item as a node, and the rescales and factors between them.

use std::collections::BTreeSet;

use lanner_network::elementwise::FixedClip;
use lanner_network::{
    Bound, CompileError, Evidence, FixedOp, LinearWeights, MAX_BIAS_BITS, MAX_FACTOR, grid, rounding_constant,
};

use super::{Builder, Pending, Placed, Stop, UNBOUNDED};
use crate::compared::beside_steps;
use crate::item::Action;
use crate::reach::{Reached, to_rescales};

/// How many times the largest calibrated square, or sum of squares, there is room for: inputs may be twice as large as calibration's, and a step of the grid.
const SQUARED: f64 = 4.0 * 1.19;

impl Builder<'_> {
    pub(super) fn add_item(&mut self, index: usize) -> Result<Placed, Stop> {
        let item = &self.source.items[index];
        let (value, x) = (index + 1, self.place(item.inputs[0])?);
        let one = |op| (op, x.scale * item.action.unit());
        let (op, scale) = match &item.action {
            Action::Layer { node, .. } => return self.add_layer(index, *node, x),
            Action::Bias { node } => return self.add_bias(index, *node, x),
            Action::Add | Action::Move(FixedOp::Concat { .. }) => return self.add_join(index),
            Action::Factor(factor) if *factor > 0.0 => {
                return Ok(Placed { scale: x.scale * item.action.unit(), ..x });
            }
            Action::Factor(_) => one(FixedOp::Scale { factor: -1 }),
            Action::Mean(window) => one(FixedOp::SumPool(*window)),
            Action::Max(window) => one(FixedOp::MaxPool(*window)),
            Action::Elementwise(operator) => return self.add_elementwise(index, *operator, x),
            Action::Mul => return self.add_product(index, FixedOp::Mul),
            &Action::MatrixProduct { inner } => {
                return self.add_product(index, FixedOp::MatrixProduct { inner });
            }
            Action::Move(op) => one(op.clone()),
        };
        self.add(value, &item.name, op, &[x.value], scale)
    }

    /// Constants at the scale of what they are added to.
    fn add_bias(&mut self, index: usize, node: usize, x: Placed) -> Result<Placed, Stop> {
        let constants = lanner_graph::pass::values_of(self.source.draft, node)?;
        let x = self.fine_enough(index, x, &constants)?;
        let units_of_step = self.units_of_step(index, x);
        let integer = |b: &f32| {
            let exact = f64::from(*b) / x.scale;
            // What is compared is never equal to a constant that it cannot be equal to.
            units_of_step.map_or_else(|| exact.round_ties_even(), |units| beside_steps(exact, units)) as i128
        };
        let bias: Vec<i128> = constants.iter().map(integer).collect();
        let largest = bias.iter().map(|b| b.unsigned_abs()).max().unwrap_or(0);
        let (bits, item) = (u128::BITS - largest.leading_zeros(), &self.source.items[index]);
        if bits > MAX_BIAS_BITS {
            let (node, bound) = (item.name.clone(), i128::try_from(largest).unwrap_or(i128::MAX));
            return Err(CompileError::RangeOverflow { node, bound, limit: 1 << MAX_BIAS_BITS }.into());
        }
        self.weights.insert(self.nodes.len(), LinearWeights::bias_alone(bias));
        self.add(index + 1, &item.name, FixedOp::Bias { bits }, &[x.value], x.scale)
    }

    /// What item `index` adds constants to, times a factor where its units are so coarse that they would round these off: truth values, times a number,
    /// have one unit for it.
    fn fine_enough(&mut self, index: usize, x: Placed, constants: &[f32]) -> Result<Placed, Stop> {
        let off = |b: &f32| {
            let exact = f64::from(*b) / x.scale;
            (exact - exact.round_ties_even()).abs() * x.scale
        };
        let (most, unit) =
            (constants.iter().map(off).fold(0.0, f64::max), self.source.free_unit(self.structure, index + 1));
        if most <= unit || !self.is_of_truths(self.source.items[index].inputs[0]) {
            return Ok(x);
        }
        let factor = (x.scale / unit * FINER_BESIDE).log2().ceil().exp2().clamp(1.0, MAX_FACTOR as f64);
        self.multiplied(index, self.source.items[index].inputs[0], x, factor as i64, "finer")
    }

    /// Whether a value is what comparisons make, times numbers.
    fn is_of_truths(&self, mut value: usize) -> bool {
        while let Some(item) = value.checked_sub(1).map(|index| &self.source.items[index]) {
            match &item.action {
                action if action.compares() => return true,
                Action::Factor(_) | Action::Move(_) | Action::Mean(_) => value = item.inputs[0],
                _ => return false,
            }
        }
        false
    }

    /// How many units are a step of what item `index` adds constants to, where elements of the input are, and sums with these are compared.
    fn units_of_step(&self, index: usize, x: Placed) -> Option<f64> {
        let units = self.source.compared?.units_of_step(self.source.items[index].inputs[0], x.scale)?;
        let mut sums = BTreeSet::from([index + 1]);
        while let Some(value) = sums.pop_first() {
            for &user in &self.structure.users[value] {
                match &self.source.items[user].action {
                    action if action.compares() => return Some(units),
                    Action::Move(_) | Action::Factor(_) => _ = sums.insert(user + 1),
                    _ => {}
                }
            }
        }
        None
    }

    /// A product of two values, of all their bits.
    fn add_product(&mut self, index: usize, op: FixedOp) -> Result<Placed, Stop> {
        let item = &self.source.items[index];
        let [x, y] = [self.place(item.inputs[0])?, self.place(item.inputs[1])?];
        if matches!(op, FixedOp::MatrixProduct { .. }) {
            self.choose_ring(index, x.scale * y.scale);
        }
        self.add(index + 1, &item.name, op, &[x.value, y.value], x.scale * y.scale)
    }

    /// Chooses the ring of a group that has none by the sums of item `index`, of this scale: the smallest with room for twice the largest
    /// that is computed from them before a rescale, of squares for the square of that. Where none has it, what follows says so.
    pub(super) fn choose_ring(&mut self, index: usize, scale: f64) {
        let group = self.structure.group_before(index + 1);
        if self.rings[group].is_some() {
            return;
        }
        let reached = to_rescales(self.source.items, self.structure, index + 1);
        let peak = |at: &Reached| self.source.items[at.value - 1].seen.range.magnitude() / (scale * at.unit);
        let is_square = self.source.items[index].action.is_square();
        let times = if is_square { SQUARED } else { 2.0 };
        let need = times * self.slack * reached.iter().map(peak).fold(0.0, f64::max);
        for ring in self.least[group]..self.source.options.accumulators.len() {
            self.rings[group] = Some(ring);
            let has_room = self.needs[group] <= self.source.options.accumulators[ring].limit(0);
            if has_room && need <= self.limit(index + 1, group, scale) as f64 {
                self.chosen.push((index, group));
                return;
            }
        }
        self.rings[group] = None;
    }

    /// A sum or a join of values: public factors bring them to one scale.
    fn add_join(&mut self, index: usize) -> Result<Placed, Stop> {
        let item = &self.source.items[index];
        let mut inputs = item.inputs.iter().map(|&input| self.place(input)).collect::<Result<Vec<_>, _>>()?;
        let common = match self.common(index, &inputs) {
            None => {
                self.make_finer(index, &mut inputs)?;
                self.common(index, &inputs)
            }
            common => common,
        };
        let (factors, scale) = common.ok_or_else(|| CompileError::UnsupportedOp {
            node: item.name.clone(),
            operator: if matches!(item.action, Action::Add) { "Add" } else { "Concat" },
            attribute: format!("scales of {:?}", inputs.iter().map(|input| input.scale).collect::<Vec<_>>()),
            fix: "scale its inputs to similar ranges",
        })?;
        if let (Action::Add, &[a, b]) = (&item.action, factors.as_slice()) {
            let values = [inputs[0].value, inputs[1].value];
            return self.add(index + 1, &item.name, FixedOp::Add { factors: [a, b] }, &values, scale);
        }
        let mut values = Vec::with_capacity(inputs.len());
        for ((input, &factor), &value) in inputs.iter().zip(&factors).zip(&item.inputs) {
            if factor == 1 {
                values.push(input.value);
                continue;
            }
            values.push(self.multiplied(index, value, *input, factor, "scale")?.value);
        }
        let Action::Move(op) = &item.action else { return Err(self.lost(index).into()) };
        self.add(index + 1, &item.name, op.clone(), &values, scale)
    }

    /// The factors that bring values to one scale where item `index` joins them, and that scale.
    fn common(&self, index: usize, inputs: &[Placed]) -> Option<(Vec<i64>, f64)> {
        let scales: Vec<f64> = inputs.iter().map(|input| input.scale).collect();
        tolerances(self.source.options.activation_bits).find_map(|tolerance| match self.origins[index + 1] {
            None => common_scale(&scales, tolerance),
            Some(origin) => common_scale_on_grid(&scales, origin, tolerance),
        })
    }

    /// Multiplies what is far coarser than the finest of some values, such as a truth value beside fine sums, so that one factor more joins them.
    fn make_finer(&mut self, index: usize, inputs: &mut [Placed]) -> Result<(), Stop> {
        let finest = inputs.iter().map(|input| input.scale).fold(f64::INFINITY, f64::min);
        for (place, input) in inputs.iter_mut().enumerate() {
            let down = (input.scale / finest).log2() - FINER_BY_JOINING;
            if down >= 1.0 {
                let factor = (1_i64 << (down as u32).min(62)).min(MAX_FACTOR);
                let of = self.source.items[index].inputs[place];
                *input = self.multiplied(index, of, *input, factor, "finer")?;
            }
        }
        Ok(())
    }

    /// What is placed times a public factor, of item value `of`'s shape, where item `index` joins it to others.
    fn multiplied(
        &mut self,
        index: usize,
        of: usize,
        x: Placed,
        factor: i64,
        suffix: &str,
    ) -> Result<Placed, Stop> {
        let name = format!("{}/{suffix}", self.source.items[index].name);
        let (group, scale) = (self.structure.group_before(index + 1), x.scale / factor as f64);
        let limit = self.limit(index + 1, group, scale);
        let (op, shape) = (FixedOp::Scale { factor }, self.shape_of(of));
        let value = self.push(name, op, vec![x.value], shape, group, scale, limit)?;
        Ok(Placed { value, scale })
    }

    /// Brings the output's scale to the grid through the input's, where it is not on it: a truth value times any number is one that no layer chose.
    pub(super) fn add_output(&mut self) -> Result<(), Stop> {
        let (last, origin) = (self.source.items.len(), self.input.scale.unit());
        let output = self.place(last)?;
        let Some(node) = output.value.checked_sub(1).filter(|_| !grid::holds(output.scale, origin)) else {
            return Ok(());
        };
        let (factor, scale) = nearest_on_grid(output.scale, origin);
        let (name, group) = (format!("{}/output", self.nodes[node].name), self.nodes[node].group);
        let limit = self.limit(last, group, scale);
        let (op, shape) = (FixedOp::Scale { factor }, self.shape_of(last));
        let value = self.push(name, op, vec![output.value], shape, group, scale, limit)?;
        self.placed[last] = Some(Placed { value, scale });
        Ok(())
    }

    fn lost(&self, index: usize) -> CompileError {
        CompileError::Network {
            place: self.source.items[index].name.clone(),
            reason: "it joins another number of values than it takes".to_owned(),
        }
    }

    fn shape_of(&self, value: usize) -> Vec<usize> {
        match value.checked_sub(1) {
            None => self.input.shape.clone(),
            Some(item) => self.source.items[item].shape.clone(),
        }
    }

    /// Adds a node without weights for item value `value`.
    pub(super) fn add(
        &mut self,
        value: usize,
        name: &str,
        op: FixedOp,
        inputs: &[usize],
        scale: f64,
    ) -> Result<Placed, Stop> {
        let group = self.structure.group_before(value);
        let limit = self.limit(value, group, scale);
        let (index, item, shape) = (value - 1, &self.source.items[value - 1], self.shape_of(value));
        let value = self.push(name.to_owned(), op, inputs.to_vec(), shape, group, scale, limit)?;
        // Samples would only show what floats tell already.
        let needed = 2.0 * self.slack * item.seen.range.magnitude() / scale;
        let node = &self.nodes[value - 1];
        if let Some(ring) = self.rings[group]
            && self.bounds[value][0].evidence == Evidence::Calibrated
            && node.op.may_grow()
        {
            if needed > limit as f64 {
                let error =
                    CompileError::RangeOverflow { node: item.name.clone(), bound: needed as i128, limit };
                return Err(Stop::Narrow { group, next: ring + 1, error });
            }
            // Products of values that saturate on neither side take far larger rings.
            if !item.action.is_product() && !item.action.is_square() && self.wants_proof(index, inputs) {
                // Where values are joined, those of coarser scales leave room.
                let floor = matches!(node.op, FixedOp::Add { .. }).then(|| {
                    let Pending { op, inputs, .. } = node;
                    let worst = worst_sum(op, inputs.iter().map(|&value| self.bounds[value][0]));
                    (index + 1, worst as f64 / limit as f64 * scale)
                });
                return Err(Stop::Unproved { index, group, next: ring + 1, floor });
            }
        }
        Ok(Placed { value, scale })
    }

    /// The value with an upper bound, which leaves integers rescaled by `shift` bits room above the calibrated largest; the value itself where that bound
    /// follows already, or where it may be negative.
    ///
    /// Modulo a prime they are below the smallest power of two above twice that: a bound of ones alone takes no gates of a circuit beside those of the `Relu`
    /// before it. Modulo a power of two the bound is a number of few significant bits, since those below them need no comparison of their own.
    fn saturated(&mut self, value: usize, x: Placed, shift: u32) -> Result<Placed, Stop> {
        let Bound { low, high, .. } = self.bounds[x.value][0];
        let item = &self.source.items[value - 1];
        let unit = x.scale * f64::from(shift).exp2();
        let of_primes = !self.source.options.fills_rings();
        let times = |margin: f64| (margin * self.slack * item.seen.range.high / unit).max(1.0);
        let cap = if of_primes {
            (times(2.0) + 1.0).log2().ceil().exp2() - 1.0
        } else {
            with_few_bits(times(SATURATED_MARGIN))
        };
        if !self.source.options.saturates || low < 0 || cap.log2() + f64::from(shift) >= MOST_SATURATED_BITS {
            return Ok(x);
        }
        // All that is rescaled to that or less; modulo a prime a bound of ones alone.
        let most = if of_primes {
            ((cap as i64 + 1) << shift) - 1 - rounding_constant(shift)
        } else {
            (cap as i64) << shift
        };
        if high <= most.into() {
            return Ok(x);
        }
        self.saturating.insert(self.nodes.len());
        let name = format!("{}/saturate", item.name);
        let (group, shape) = (self.structure.group_before(value), item.shape.clone());
        let limit = self.limit(value, group, x.scale);
        let op = FixedOp::Clip(FixedClip { high: most });
        let value = self.push(name, op, vec![x.value], shape, group, x.scale, limit)?;
        Ok(Placed { value, ..x })
    }

    pub(super) fn add_rescale(&mut self, value: usize, x: Placed) -> Result<Placed, Stop> {
        let (from, group) = (self.structure.group_before(value), self.structure.group_behind(value));
        let ring = self.ring(from);
        let most =
            ring.or(self.source.options.accumulators.last().copied()).map_or(0, |ring| ring.bits() - 1);
        let shift = self.shift(value, x.scale).min(most);
        if ring.is_none() {
            // Products alone choose no ring: the one that they get must have room for what the rescale adds, too.
            self.enlarge(from, self.bounds[x.value][0].magnitude() + (1 << shift));
        }
        let name = match x.value.checked_sub(1) {
            Some(node) => format!("{}/rescale", self.nodes[node].name),
            None => format!("{}/rescale", self.input.name),
        };
        let x = if value > 0 { self.saturated(value, x, shift)? } else { x };
        self.push_rescale(name, value, x, shift, group)
    }

    /// Adds a rescale into a group's ring, of something of item value `value`'s shape.
    pub(super) fn push_rescale(
        &mut self,
        name: String,
        value: usize,
        x: Placed,
        shift: u32,
        group: usize,
    ) -> Result<Placed, Stop> {
        let (scale, shape) = (x.scale * f64::from(shift).exp2(), self.shape_of(value));
        let limit = self.ring(group).map_or(UNBOUNDED, |ring| ring.limit(0));
        let op = FixedOp::Rescale { shift };
        let value = self.push(name, op, vec![x.value], shape, group, scale, limit)?;
        Ok(Placed { value, scale })
    }
}

/// How far the ratio of two factors may be from that of their scales, the finest first: as values of so many bits want it, and as much as few want it.
fn tolerances(bits: u32) -> impl Iterator<Item = f64> {
    let finest = bits.saturating_sub(FINER_THAN_RATIOS).max(COARSEST_RATIO);
    (COARSEST_RATIO..=finest).rev().map(|bits| (-f64::from(bits)).exp2())
}

/// The smallest factors that bring values of these scales to one, each within a tolerance of the exact ratio, and that scale.
fn common_scale(scales: &[f64], tolerance: f64) -> Option<(Vec<i64>, f64)> {
    let finest = scales.iter().copied().fold(f64::INFINITY, f64::min);
    (1..=DENOMINATORS).find_map(|denominator| at_scale(scales, finest / f64::from(denominator), tolerance))
}

/// As [`common_scale`], the scale on the grid through `origin`.
fn common_scale_on_grid(scales: &[f64], origin: f64, tolerance: f64) -> Option<(Vec<i64>, f64)> {
    let finest = scales.iter().copied().fold(f64::INFINITY, f64::min);
    let enough = finest / f64::from(2 * DENOMINATORS);
    grid::downwards(finest, origin)
        .take_while(|scale| *scale > enough)
        .find_map(|scale| at_scale(scales, scale, tolerance))
}

/// The whole number by which a scale is divided to be nearest to a scale on the grid through `origin`, and that scale.
fn nearest_on_grid(scale: f64, origin: f64) -> (i64, f64) {
    let off = |unit: f64| ((scale / unit).round() * unit / scale - 1.0).abs();
    let units = grid::downwards(scale, origin).take_while(|unit| scale / unit < LARGEST_TO_GRID);
    let unit = units.min_by(|a, b| off(*a).total_cmp(&off(*b))).unwrap_or(scale);
    ((scale / unit).round().max(1.0) as i64, unit)
}

/// More than the factors that bring an output to the grid.
const LARGEST_TO_GRID: f64 = (1_u32 << 16) as f64;

/// How many units of a value whose constants would be rounded off make one that is wanted of it.
const FINER_BESIDE: f64 = 16.0;

/// Doublings between two scales that a join makes up for by itself.
const FINER_BY_JOINING: f64 = 12.0;

/// The factors that bring values of these scales to `unit`.
fn at_scale(scales: &[f64], unit: f64, tolerance: f64) -> Option<(Vec<i64>, f64)> {
    let factor = |&scale: &f64| {
        let factor = (scale / unit).round();
        let error = (factor * unit / scale - 1.0).abs();
        (error <= tolerance && factor <= MAX_FACTOR as f64).then_some(factor as i64)
    };
    Some((scales.iter().map(factor).collect::<Option<Vec<_>>>()?, unit))
}

/// A value of up to a given number of units of the common scale is rounded to a whole number of them within the tolerance.
const DENOMINATORS: u32 = 256;

/// Bits of the coarsest ratio, and how many more values have than what they are joined by.
const COARSEST_RATIO: u32 = 9;
const FINER_THAN_RATIOS: u32 = 2;

/// The whole number of few significant bits that is nearest to `x`, which is 1 or more.
fn with_few_bits(x: f64) -> f64 {
    let unit = (x.log2().floor() - SATURATED_BITS).max(0.0).exp2();
    (x / unit).round() * unit
}

/// Significant bits of an upper bound, behind the first: it is off by a ninth of what it is to be, at most.
const SATURATED_BITS: f64 = 2.0;

/// How much above the calibrated largest an upper bound is to be where its ring's bits cost transfers.
const SATURATED_MARGIN: f64 = 1.5;

/// Beyond the bits of any ring with rescales.
const MOST_SATURATED_BITS: f64 = 60.0;

/// The largest absolute sum of values times factors.
fn worst_sum(op: &FixedOp, bounds: impl Iterator<Item = Bound>) -> i128 {
    let FixedOp::Add { factors } = op else { return 0 };
    let times = |(bound, factor): (Bound, &i64)| {
        let ends = [bound.low, bound.high].map(|end| end.saturating_mul((*factor).into()));
        [ends[0].min(ends[1]), ends[0].max(ends[1])]
    };
    let [low, high] = bounds
        .zip(factors)
        .map(times)
        .fold([0_i128; 2], |sum, ends| [sum[0].saturating_add(ends[0]), sum[1].saturating_add(ends[1])]);
    high.max(low.saturating_neg())
}

#[cfg(test)]
mod tests {
    use super::common_scale as common;
    use super::common_scale_on_grid;
    use super::{grid, nearest_on_grid, tolerances};

    const COARSE: f64 = 1.0 / 512.0;

    fn common_scale(scales: &[f64]) -> Option<(Vec<i64>, f64)> {
        common(scales, COARSE)
    }

    #[test]
    fn factors_are_exact_where_scales_are_multiples_and_close_elsewhere() {
        assert_eq!(common_scale(&[0.5, 0.5]), Some((vec![1, 1], 0.5)));
        assert_eq!(common_scale(&[0.75, 0.25]), Some((vec![3, 1], 0.25)));
        assert_eq!(common_scale(&[1.0, 1.5]), Some((vec![2, 3], 0.5)));
        let (factors, unit) = common_scale(&[1.0, std::f64::consts::PI, 0.77]).unwrap();
        for (factor, scale) in factors.iter().zip([1.0, std::f64::consts::PI, 0.77]) {
            assert!((*factor as f64 * unit / scale - 1.0).abs() <= 1.0 / 512.0);
        }
        assert_eq!(common_scale(&[1.0, 1e-9]), None);
    }

    #[test]
    fn an_output_comes_near_to_the_grid() {
        assert_eq!(nearest_on_grid(144.0, 1.0), (9, 16.0));
        for (scale, origin) in [(0.3, 1.0), (1e-9, 0.7), (3.1e7, 0.01)] {
            let (factor, unit) = nearest_on_grid(scale, origin);
            assert!(grid::holds(unit, origin));
            assert!((factor as f64 * unit / scale - 1.0).abs() < 1e-4);
        }
    }

    #[test]
    fn a_common_scale_on_the_grid_is_the_finest_where_the_others_are_multiples() {
        assert_eq!(common_scale_on_grid(&[0.75, 0.25], 0.5, COARSE), Some((vec![3, 1], 0.25)));
        let (factors, unit) = common_scale_on_grid(&[0.75, 0.25], 1.1, COARSE).unwrap();
        assert!(lanner_network::grid::holds(unit, 1.1));
        for (factor, scale) in factors.iter().zip([0.75, 0.25]) {
            assert!((*factor as f64 * unit / scale - 1.0).abs() <= 1.0 / 512.0);
        }
        assert_eq!(common_scale_on_grid(&[1.0, 1e-9], 1.0, COARSE), None);
    }
    /// A mean of 509 values, rounded by 7 bits, beside them.
    #[test]
    fn values_of_more_bits_are_joined_by_finer_ratios() {
        let of =
            |bits| tolerances(bits).find_map(|tolerance| common(&[1.0, 128.0 / 509.0], tolerance)).unwrap().0;
        let off = |bits| (of(bits)[0] as f64 / of(bits)[1] as f64 * 128.0 / 509.0 - 1.0).abs();
        assert!(off(16) <= (-14.0_f64).exp2());
        assert!(off(8) > (-14.0_f64).exp2());
        assert_eq!(of(11), of(8));
        assert!(of(8)[0] < of(16)[0]);
    }
}
