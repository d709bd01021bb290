//! What chooses its scale: the unit of its output, and the room that its domain takes; and what is a function of rescaled values, where these are looked up.

use lanner_graph::elementwise::Function;
use lanner_network::grid::GridFactor;
use lanner_network::{Bound, CompileError, Evidence, FixedOp, grid, rescale};

use super::{Builder, Placed, Source, Stop, UNBOUNDED};
use crate::elementwise::{Coarser, Lowered, Part, Spans, Wanted};
use crate::item::Action;
use crate::layer::{Relation, Room};
use crate::reach::{Reached, ends, to_rescales};
use crate::structure::Structure;

/// How many times what calibration asks for there may be room before a function with limits.
const ROOMIER: f64 = 4.0;

/// How much finer than usual a value is rounded that others take, too, beside what asks for finer ones.
const FINER: f64 = 4.0;

impl Source<'_> {
    /// Steps between the smallest and the largest value where a way to products, joins or the output ends: the usual ones, unless all
    /// that take it say how it is to be rounded.
    pub(super) fn levels(&self, structure: &Structure, end: usize) -> f64 {
        let usual = self.usual_levels(structure, end);
        let wishes = self.wishes(structure, end);
        let wished = wishes.iter().flatten().copied().fold(0.0, f64::max);
        match wishes.contains(&None) {
            _ if wished == 0.0 => usual,
            true => usual.max(wished.min(FINER * usual)),
            false => wished,
        }
    }

    /// The steps that each operator asks for that takes a value, or takes a sum of it that is not rescaled any more; none of one that asks
    /// for nothing.
    fn wishes(&self, structure: &Structure, value: usize) -> Vec<Option<f64>> {
        let width = self.range(value).width();
        let levels = |unit: f64| (width > 0.0).then(|| (width / unit).max(1.0));
        self.wished_units(structure, value).into_iter().map(|unit| unit.and_then(levels)).collect()
    }

    fn wished_units(&self, structure: &Structure, value: usize) -> Vec<Option<f64>> {
        let mut wishes = Vec::new();
        for &user in &structure.users[value] {
            let action = &self.items[user].action;
            if let Some(operator) = action.choosing() {
                let (seen, unit) = (self.ends_of(value), self.free_unit(structure, user + 1));
                wishes.push(self.functions.unit_or(user, seen, unit, || operator.input_unit(seen, unit)));
            } else if action.takes_few_bits() {
                wishes.push(None);
            } else if matches!(action, Action::Add) && !structure.wide[user + 1] {
                wishes.extend(self.wished_units(structure, user + 1));
            }
        }
        wishes
    }

    /// The unit that gives a value which may have any the bits that are wanted of it where its ways end.
    pub(super) fn free_unit(&self, structure: &Structure, value: usize) -> f64 {
        let units = ends(self.items, structure, value).into_iter().map(|end| {
            let levels = self.levels(structure, end.value) * end.growth.sqrt();
            self.range(end.value).width() / (levels * end.unit)
        });
        let unit = units.fold(0.0, f64::max);
        // A value that is always 0 may have any unit.
        if unit > 0.0 { unit } else { 1.0 }
    }

    /// The smallest and the largest value over the calibration samples.
    fn ends_of(&self, value: usize) -> [f64; 2] {
        value.checked_sub(1).map_or(self.input_ends, |item| self.items[item].seen.ends)
    }
}

impl Builder<'_> {
    /// What layer `node` must respect: sums that functions with limits take, which have a value whatever they are, may be as large as accepted inputs make them.
    pub(super) fn with_limits(&self, node: usize, room: Room, reached: &[Reached]) -> Result<Room, Stop> {
        let users = |at: &Reached| self.structure.users[at.value].iter();
        let has_limits = |user: &usize| {
            self.source.items[*user]
                .action
                .choosing()
                .is_some_and(lanner_graph::elementwise::Elementwise::has_limits)
        };
        if !reached.iter().any(|at| users(at).any(has_limits)) {
            return Ok(room);
        }
        let seen = |input: usize| match input.checked_sub(1) {
            Some(item) => self.source.items[item].seen.range.magnitude(),
            None => self.source.input.magnitude(),
        };
        let added: f64 = self.partners(reached).map(|(at, _, input)| 2.0 * seen(input) / at.unit).sum();
        let worst = self.source.fits.worst(node, &room)? + added;
        Ok(Room { peak: room.peak.max((worst / 2.0).min(ROOMIER * room.peak)), ..room })
    }

    /// The operators of an element-wise item, one after the other.
    pub(super) fn add_elementwise(
        &mut self,
        index: usize,
        operator: &dyn Lowered,
        x: Placed,
    ) -> Result<Placed, Stop> {
        let item = &self.source.items[index];
        if let Some((of, x)) = self.magnitude(index, operator, x)? {
            return self.add_elementwise(index, &of, x);
        }
        if operator.multiplies() && self.structure.wide[index + 1] {
            self.choose_ring(index, x.scale * x.scale);
        }
        let bound = self.bounds[x.value][1];
        let wanted = Wanted {
            scale: if operator.changes_ring() { self.snapped(x.scale) } else { x.scale },
            activation_bits: self.source.options.activation_bits,
            seen: self.source.ends_of(item.inputs[0]),
            reach: [bound.low, bound.high].map(|end| end.clamp(i64::MIN.into(), i64::MAX.into()) as i64),
            unit: match operator {
                _ if operator.compares() => 1.0,
                _ if operator.changes_ring() => self.unit(index + 1),
                _ => x.scale,
            },
            vanishes: self.structure.vanishes[index],
            functions: self.source.functions,
        };
        if operator.compares() {
            return self.add_comparison(index, operator.lower(&wanted), x);
        }
        let spans = operator.spans(&wanted).map_err(|attribute| self.unsupported(index, attribute))?;
        if let Some(spans) = spans {
            return self.add_spans(index, x, spans);
        }
        let parts = operator.lower(&wanted).map_err(|attribute| self.unsupported(index, attribute))?;
        let mut placed = x;
        for part in parts {
            placed = self.add_part(index, placed, part)?;
        }
        Ok(placed)
    }

    /// The absolute value of an item's input, which is twice its positive part less itself, and what the item is of that, where it is the same on
    /// both sides of 0: polynomials for one side are half as many. What is computed on shares costs nothing where they are sums modulo powers of two.
    fn magnitude(
        &mut self,
        index: usize,
        operator: &dyn Lowered,
        x: Placed,
    ) -> Result<Option<(Function, Placed)>, Stop> {
        let items = self.source.items;
        let is_free = self.source.options.has_powers_of_two() && !self.source.options.narrow;
        let Some(of) = operator.of_magnitude().filter(|_| is_free) else { return Ok(None) };
        let is_positive_part = |other: &usize| {
            let item = &items[*other];
            let is_relu = matches!(item.action, Action::Elementwise(op) if op.is_positive_part());
            is_relu && item.inputs == items[index].inputs
        };
        let Some(other) = (0..index).find(is_positive_part) else { return Ok(None) };
        let positive = self.place(other + 1)?;
        if positive.scale.to_bits() != x.scale.to_bits() {
            return Ok(None);
        }
        let (name, shape) = (&items[index].name, &items[index].shape);
        let group = self.structure.group_before(other + 1);
        let limit = self.ring(group).map_or(UNBOUNDED, |ring| ring.limit(0));
        let negated = (format!("{name}/negated"), FixedOp::Scale { factor: -1 });
        let negated = self.push(negated.0, negated.1, vec![x.value], shape.clone(), group, x.scale, limit)?;
        let (sum, inputs) = (FixedOp::Add { factors: [2, 1] }, vec![positive.value, negated]);
        let value = self.push(format!("{name}/size"), sum, inputs, shape.clone(), group, x.scale, limit)?;
        Ok(Some((of, Placed { value, scale: x.scale })))
    }

    /// The operators of a comparison: all but the last, a rescale into the ring of what is made of it, are in the ring of what is compared.
    fn add_comparison(
        &mut self,
        index: usize,
        parts: Result<Vec<Part>, String>,
        x: Placed,
    ) -> Result<Placed, Stop> {
        let item = &self.source.items[index];
        let mut parts = parts.map_err(|attribute| self.unsupported(index, attribute))?;
        let Some(Part { scale, .. }) = parts.pop() else { return Ok(x) };
        let group = match x.value.checked_sub(1) {
            Some(node) => self.nodes[node].group,
            None => self.structure.group_behind(0),
        };
        let mut placed = x;
        for Part { suffix, op, .. } in parts {
            let (name, shape) = (format!("{}{suffix}", item.name), item.shape.clone());
            let value = self.push(name, op, vec![placed.value], shape, group, x.scale, UNBOUNDED)?;
            placed = Placed { value, scale };
        }
        self.push_rescale(item.name.clone(), index + 1, placed, 0, self.structure.group_before(index + 1))
    }

    /// An element-wise item as a function of its rescaled input, where rescales are looked up and it has one; it is the item's value then.
    pub(super) fn add_behind_rescale(&mut self, index: usize) -> Result<Option<Placed>, Stop> {
        let (item, value) = (&self.source.items[index], index + 1);
        let (Action::Elementwise(operator), true, true) =
            (&item.action, self.source.options.narrow, self.structure.rescaled[value])
        else {
            return Ok(None);
        };
        let x = self.place(item.inputs[0])?;
        let shift = self.shift(value, x.scale);
        let scale = x.scale * f64::from(shift).exp2();
        let wanted = Wanted {
            scale,
            activation_bits: self.source.options.activation_bits,
            seen: self.source.ends_of(item.inputs[0]),
            reach: self.looked_up(value, x, shift),
            unit: scale,
            vanishes: false,
            functions: self.source.functions,
        };
        let Some(Part { op, fit, .. }) = operator.behind_rescale(&wanted).filter(|_| shift > 0) else {
            return Ok(None);
        };
        let x = self.add_rescale(value, x)?;
        self.fitted.extend(fit.map(|fit| (self.nodes.len(), fit)));
        let (group, shape) = (self.structure.group_behind(value), item.shape.clone());
        let limit = self.ring(group).map_or(UNBOUNDED, |ring| ring.limit(0));
        let value = self.push(item.name.clone(), op, vec![x.value], shape, group, x.scale, limit)?;
        Ok(Some(Placed { value, scale: x.scale }))
    }

    /// The ends of what has room in the ring that item value `value`'s rescale will take `x` in: see [`Network::narrowed`](lanner_network::Network).
    fn looked_up(&self, value: usize, x: Placed, shift: u32) -> [i64; 2] {
        let Bound { low, high, evidence } = self.bounds[x.value][0];
        let seen = (2.0 * self.entering(value) / x.scale) as i64;
        let proved = high.max(-low).min(1 << 62) as i64;
        let asked = self.source.options.kept_bits;
        let most = if asked.is_some() || evidence == Evidence::Calibrated { seen } else { proved };
        [-most, most].map(|end| rescale(end, shift))
    }

    fn add_part(
        &mut self,
        index: usize,
        x: Placed,
        Part { suffix, op, scale, fit }: Part,
    ) -> Result<Placed, Stop> {
        let name = &self.source.items[index].name;
        if let FixedOp::Function(function) = &op {
            self.require(x.value, function.last().max(-function.low).into(), name)?;
        }
        self.fitted.extend(fit.map(|fit| (self.nodes.len(), fit)));
        self.add(index + 1, &format!("{name}{suffix}"), op, &[x.value], scale)
    }

    /// Functions of one input, all but the first of fewer and fewer bits of it, and their sum.
    fn add_spans(&mut self, index: usize, x: Placed, spans: Spans) -> Result<Placed, Stop> {
        let name = self.source.items[index].name.clone();
        let mut sum = self.add_part(index, x, spans.first)?;
        let group = self.structure.group_before(index + 1);
        let last = spans.others.len();
        for (number, Coarser { shift, part }) in (1..).zip(spans.others) {
            let coarse = self.push_rescale(format!("{name}/coarse"), index + 1, x, shift, group)?;
            let next = self.add_part(index, coarse, part)?;
            let add = FixedOp::Add { factors: [1, 1] };
            // Some of the spans alone are not the function.
            let of = if number == last { name.clone() } else { format!("{name}/part") };
            sum = self.add(index + 1, &of, add, &[sum.value, next.value], sum.scale)?;
        }
        Ok(sum)
    }

    /// The unit of a value that may have any: that of what it is joined with where its own would be finer. Else it is a power of two, so that products of
    /// such values are whole multiples of one another and of such values, as often as they are multiplied and added up in a loop.
    fn unit(&self, value: usize) -> f64 {
        let (unit, origin) = (self.source.free_unit(self.structure, value), self.origins[value]);
        let reached = to_rescales(self.source.items, self.structure, value);
        let unit = match (self.relation(&reached, origin.unwrap_or(self.scales[0])), origin) {
            (Some(Relation::Multiple { other, .. }), _) if other >= unit => other,
            (Some(relation), _) => relation.above(unit),
            (None, Some(origin)) => grid::above(unit, origin),
            (None, None) => GridFactor::nearest_power_of_two(unit).map_or(unit, GridFactor::value),
        };
        self.snapped(unit)
    }

    /// A scale without the rounding errors of the weights that it came by, which polynomials would tell of.
    fn snapped(&self, scale: f64) -> f64 {
        let unit = self.scales[0];
        GridFactor::exactly(scale / unit).map_or(scale, |factor| unit * factor.value())
    }

    /// Sees to it that the ring of a node's value, or of the input, has room for integers of this size.
    fn require(&mut self, value: usize, need: i128, name: &str) -> Result<(), Stop> {
        let group = match value.checked_sub(1) {
            Some(node) => self.nodes[node].group,
            None => self.structure.group_behind(0),
        };
        self.enlarge(group, need);
        match self.rings[group] {
            Some(ring) if need > self.source.options.accumulators[ring].limit(0) => {
                let limit = self.source.options.accumulators[ring].limit(0);
                let error = CompileError::RangeOverflow { node: name.to_owned(), bound: need, limit };
                Err(Stop::Narrow { group, next: ring + 1, error })
            }
            _ => Ok(()),
        }
    }

    fn unsupported(&self, index: usize, attribute: String) -> CompileError {
        let item = &self.source.items[index];
        CompileError::UnsupportedOp {
            node: item.name.clone(),
            operator: item.operator,
            attribute,
            fix: "keep its input where the function is defined and not too steep",
        }
    }
}
