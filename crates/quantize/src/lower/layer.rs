//! Linear layers: the ring of a group, and what a layer's scale must respect.

use lanner_network::{Accumulator, CompileError, Evidence, FixedOp, grid};

use super::{Builder, Placed, Stop};
use crate::item::Action;
use crate::layer::{Factors, Relation, Room};
use crate::reach::{Reached, ends, to_rescales};

impl Builder<'_> {
    /// Adds a linear layer, in its group's ring or in the smallest that takes it.
    pub(super) fn add_layer(&mut self, index: usize, node: usize, x: Placed) -> Result<Placed, Stop> {
        let item = &self.source.items[index];
        let value = index + 1;
        let fits = self.source.fits;
        let group = self.structure.group_before(value);
        let rings = &self.source.options.accumulators;
        let candidates = match self.rings[group] {
            Some(ring) => ring..ring + 1,
            None => self.least[group]..rings.len(),
        };
        let reached = to_rescales(self.source.items, self.structure, value);
        let proof = self.wants_proof(index, &[x.value]);
        let is_chosen = self.rings[group].is_some();
        // Of scores there are few, and nothing is rescaled behind them.
        let is_last = reached.iter().all(|at| !self.structure.rescaled[at.value]);
        let more = if is_last { u32::BITS } else { self.source.bits_for_a_proof() };
        let mut tried = (0, 0);
        let mut found = None;
        for ring in candidates.clone() {
            let limit = self.limit_in(rings[ring], value, self.widest_shift(&reached, rings[ring]));
            let room = self.room(index, x, &reached, rings[ring], limit);
            let room = self.with_limits(node, room, &reached)?;
            let has_room = is_chosen || self.needs[group] <= rings[ring].limit(0);
            let least = found.as_ref().map_or(ring, |(least, _)| *least);
            if rings[ring].bits() > rings[least].bits() + more {
                break;
            }
            if has_room
                && proof
                && let Some(fitted) = fits.fit(node, &Room { proof, ..room }, self.slack)?
            {
                found = Some((ring, fitted));
                break;
            }
            // Without a proof, the smallest ring with room for what calibration saw.
            if has_room && found.is_none() {
                found = fits.fit(node, &room, self.slack)?.map(|fitted| (ring, fitted));
                if found.is_some() && !proof {
                    break;
                }
                if found.is_some() && is_chosen {
                    let floor = self.floor_for(fits.worst(node, &room)?, &room, &reached);
                    return Err(Stop::Unproved { index, group, next: candidates.end, floor });
                }
            }
            tried = (fits.needed(node, &room)?.max(self.needs[group]), limit);
        }
        if let Some((ring, fitted)) = found {
            if self.rings[group].replace(ring).is_none() {
                self.chosen.push((index, group));
            }
            self.errors.insert(self.nodes.len(), fitted.error);
            self.weights.insert(self.nodes.len(), fitted.weights);
            let op = match item.action {
                Action::Layer { geometry: Some(geometry), .. } => FixedOp::Conv2d(geometry),
                _ => FixedOp::Linear { outputs: item.shape[0], picks: false },
            };
            return self.add(value, &item.name, op, &[x.value], fitted.scale * x.scale);
        }
        let error = CompileError::RangeOverflow { node: item.name.clone(), bound: tried.0, limit: tried.1 };
        Err(Stop::Narrow { group, next: candidates.end, error })
    }

    /// What layer `index`, which makes the first value reached, must respect in a ring with this limit.
    fn room(&self, index: usize, x: Placed, reached: &[Reached], ring: Accumulator, limit: i128) -> Room {
        let origin = self.origins[index + 1].or_else(|| self.shows_scales().then_some(self.scales[0]));
        let peak = |at: &Reached| self.source.items[at.value - 1].seen.range.magnitude() / at.unit;
        let floor = |at: &Reached| Some(self.floors.get(&at.value)? / at.unit);
        Room {
            floor: reached.iter().filter_map(floor).fold(0.0, f64::max),
            input: self.bounds[x.value][0],
            input_scale: x.scale,
            peak: reached.iter().map(peak).fold(0.0, f64::max),
            growth: reached.iter().map(|at| at.growth).fold(1.0, f64::max),
            others: self.others(reached),
            proof: false,
            joined: self
                .partners(reached)
                .any(|(_, user, _)| !matches!(self.source.items[user].action, Action::Add)),
            ring,
            limit,
            relation: origin.and_then(|origin| self.relation(reached, origin)),
            origin,
            bits: self.weight_bits(index),
        }
    }

    /// The value where a layer's sums are joined with others that are lowered already, and the scale from which on there is a proof for the join of both.
    fn floor_for(&self, worst: f64, room: &Room, reached: &[Reached]) -> Option<(usize, f64)> {
        let others = room.others.filter(|others| *others > 0.0)?;
        let (at, user, _) = self.partners(reached).next()?;
        Some((user + 1, (worst + others) * room.growth / room.limit as f64 * at.unit))
    }

    /// Whether what item `index` makes of these values is to be proved: where they are themselves, and a ring may have room for that.
    pub(super) fn wants_proof(&self, index: usize, values: &[usize]) -> bool {
        self.source.options.saturates
            && !self.unproved.contains(&index)
            && values.iter().all(|value| self.bounds[*value][0].evidence == Evidence::Proved)
    }

    /// Whether the public half tells anything of the scales on the way, by shifts or by factors of joins.
    fn shows_scales(&self) -> bool {
        self.source.options.rescales || self.source.items.iter().any(|item| item.action.joins())
    }

    /// The fewest and the most bits of a layer's weights. What is squared whole gets the fewest; where samples were set aside, the
    /// room that more bits would take is left for inputs like those.
    fn weight_bits(&self, index: usize) -> [u32; 2] {
        let (structure, bits) = (self.structure, self.source.bits.weights[index]);
        let fewest = match (structure.squared[index], structure.behind_squares[index]) {
            (true, _) => bits.min(structure.square_bits.weights),
            (_, true) => bits.min(structure.square_bits.behind),
            _ => bits,
        };
        let sparing = structure.squared[index] || self.source.sparing || !self.source.options.rescales;
        [fewest, if sparing { fewest } else { self.source.options.max_weight_bits }]
    }

    /// The other inputs of the joins among the values reached, each with the value that it is joined with.
    pub(super) fn partners<'s>(
        &'s self,
        reached: &'s [Reached],
    ) -> impl Iterator<Item = (&'s Reached, usize, usize)> + 's {
        let leaves = |at: &&Reached| !self.structure.rescaled[at.value];
        reached.iter().filter(leaves).flat_map(move |at| self.partners_of(at))
    }

    pub(super) fn partners_of<'s>(
        &'s self,
        at: &'s Reached,
    ) -> impl Iterator<Item = (&'s Reached, usize, usize)> + 's {
        let joins =
            self.structure.users[at.value].iter().filter(|&&user| self.source.items[user].action.joins());
        joins.flat_map(move |&user| {
            let others = self.source.items[user].inputs.iter().filter(|&&input| input != at.value);
            others.map(move |&input| (at, user, input))
        })
    }

    /// The largest absolute real value of all that is added before the rescale, if all of it is lowered already.
    fn others(&self, reached: &[Reached]) -> Option<f64> {
        let added = self
            .partners(reached)
            .filter(|&(_, user, _)| matches!(self.source.items[user].action, Action::Add))
            .map(|(at, _, input)| {
                let placed = self.placed[input]?;
                Some(self.bounds[placed.value][0].magnitude() as f64 * placed.scale / at.unit)
            });
        // A value added to itself is no partner of its own, but doubles.
        let doubled = |at: &Reached| {
            let twice = |&user: &usize| {
                let item = &self.source.items[user];
                matches!(item.action, Action::Add) && item.inputs[0] == item.inputs[1]
            };
            self.structure.users[at.value].iter().any(twice)
        };
        if reached.iter().any(doubled) { None } else { added.sum() }
    }

    /// The scale that a value has, or will have since it follows from that of a lowered one.
    pub(super) fn scale_of(&self, value: usize) -> Option<f64> {
        if let Some(placed) = self.placed[value] {
            return Some(placed.scale);
        }
        let item = &self.source.items[value.checked_sub(1)?];
        if item.action.takes_few_bits() || item.action.joins() || self.structure.rescaled[value] {
            return None;
        }
        Some(self.scale_of(item.inputs[0])? * item.action.unit())
    }

    /// The relation to the first lowered value that the sums are joined with: before the rescale, else behind it. Sums that reach the
    /// output keep to the grid through `origin`, and are related only to what lies on it.
    pub(super) fn relation(&self, reached: &[Reached], origin: f64) -> Option<Relation> {
        let is_output = reached.first().is_some_and(|sums| self.origins[sums.value].is_some());
        let factors = if is_output { Factors::PowersOfTwo } else { Factors::Whole };
        let before = self.partners(reached).find_map(|(at, _, input)| {
            Some(Relation::Multiple { other: self.scale_of(input)? / at.unit, factors })
        });
        let relation = before.or_else(|| {
            let rescaled = reached.iter().filter(|at| self.structure.rescaled[at.value]);
            rescaled.clone().find_map(|start| {
                let ends = ends(self.source.items, self.structure, start.value);
                ends.iter().find_map(|end| {
                    let lowered = self.partners_of(end).find_map(|(_, _, input)| self.scale_of(input));
                    lowered.map(|other| Relation::PowerOfTwo(other / (start.unit * end.unit)))
                })
            })
        });
        relation.filter(|relation| !is_output || grid::holds(relation.other(), origin))
    }
}
