//! Which squares take sums whole, which saves a circuit, and which take them rescaled.

use std::cell::RefCell;
use std::collections::BTreeSet;

use lanner_network::{Accumulator, Calibrated, CompileError, Evidence, Head, Network, ValueReport};

use super::calibrate::{Measured, Samples, integer_ranges};
use super::lower::{Source, lower};
use super::structure::{SquareBits, Squares, Structure};
use super::trace::{Earlier, Tracer};
use super::{QuantizationOptions, refuse_all};

/// Room beyond twice the calibrated sums, tried in turn: the integers differ a little from the floats that scales were chosen on.
const SLACK: [f64; 4] = [1.0, 1.03, 1.1, 1.25];

/// The error of the scores that saving circuits may cost, relative to their spread over the samples.
const FAITHFUL: f64 = 1.0 / 15.0;

/// What the choice is made for.
pub(super) struct Choice<'a> {
    pub(super) source: Source<'a>,
    pub(super) head: Head,
    pub(super) samples: Samples<'a>,
    /// What was made beside them.
    pub(super) made: Samples<'a>,
    pub(super) tracer: &'a dyn Tracer,
    /// The float graph's scores of every sample, by number.
    pub(super) scores: &'a [Vec<f32>],
    /// The most squares that are looked at one by one.
    pub(super) most_squares: usize,
    /// What was traced last with each slack. Where a late group gets a larger ring, or another late square takes sums whole, what is before it
    /// stays as it was.
    pub(super) earlier: RefCell<[[Earlier; 2]; SLACK.len()]>,
}

/// A network, and what it makes of the samples.
pub(super) struct Chosen {
    pub(super) network: Network,
    /// Of each sample, in order.
    pub(super) scores: Vec<Vec<i128>>,
    /// Of each input that was made.
    pub(super) made: Vec<Vec<i128>>,
    /// Of the scores, relative to their spread over the samples.
    error: f64,
}

impl Choice<'_> {
    /// The network with the fewest elements in circuits whose scores stay close to the float graph's.
    ///
    /// First all squares take rescaled sums. Then each, the largest first, takes them whole if that fits a ring; in networks with so much work that
    /// this would take long, only the first few.
    ///
    /// # Errors
    /// [`CompileError`] if nothing fits where all squares take rescaled sums.
    pub(super) fn fewest_circuits(&self) -> Result<Chosen, CompileError> {
        let items = self.source.items;
        let none = Squares { whole: vec![false; items.len()], bits: self.narrowest() };
        let mut best = self.network(&none)?;
        let usual = best.error;
        let rescaled = self.structure(&none, &BTreeSet::new()).rescaled;
        let offered = self.source.options.squares_of_sums;
        // Where there is no rescale, few bits save no circuit.
        let is_square =
            |index: &usize| offered && items[*index].action.is_square() && rescaled[items[*index].inputs[0]];
        let mut candidates: Vec<usize> = (0..items.len()).filter(is_square).collect();
        candidates.sort_by_key(|index| std::cmp::Reverse(items[*index].shape.iter().product::<usize>()));
        candidates.truncate(self.most_squares);
        let mut whole = vec![false; items.len()];
        for candidate in candidates {
            whole[candidate] = true;
            let closest = self.closest(&whole)?.filter(|chosen| chosen.error <= FAITHFUL.max(2.0 * usual));
            match closest {
                Some(chosen) => best = chosen,
                None => whole[candidate] = false,
            }
        }
        Ok(best)
    }

    fn structure(&self, squares: &Squares, rounded: &BTreeSet<usize>) -> Structure {
        Structure::new(self.source.items, squares, rounded, self.source.options)
    }

    /// The fewest bits around squares that take sums whole.
    fn narrowest(&self) -> SquareBits {
        let fewest = self.source.options.min_square_bits;
        SquareBits { activations: fewest, weights: fewest, behind: fewest }
    }

    /// The network with the smallest error of those that fit, over all ways to share bits between activations and weights.
    fn closest(&self, whole: &[bool]) -> Result<Option<Chosen>, CompileError> {
        let (options, narrowest) = (self.source.options, self.narrowest());
        let most = [options.activation_bits, options.min_weight_bits];
        let fewest = options.min_square_bits;
        let mut closest = self.fitting(whole, narrowest)?;
        if closest.is_none() {
            return Ok(None);
        }
        for activations in fewest.min(most[0])..=most[0] {
            // The most bits of weights that fit.
            let widths = (fewest.min(most[1])..=most[1]).rev();
            let mut fitting =
                widths.map(|weights| self.fitting(whole, SquareBits { activations, weights, ..narrowest }));
            let Some(network) = fitting.find_map(Result::transpose).transpose()? else { break };
            closest = closest.filter(|closest| closest.error <= network.error).or(Some(network));
        }
        Ok(closest)
    }

    /// The network if it fits. Neither does one in which a join finds no common scale: it has one where all squares are rescaled.
    fn fitting(&self, whole: &[bool], bits: SquareBits) -> Result<Option<Chosen>, CompileError> {
        match self.network(&Squares { whole: whole.to_vec(), bits }) {
            Ok(network) => Ok(Some(network)),
            Err(CompileError::RangeOverflow { .. } | CompileError::UnsupportedOp { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The network with one way to treat squares: where its groups fit no ring as they are, what means are taken off there is rescaled first, then what
    /// layers read with more bits than others, then what is added.
    fn network(&self, squares: &Squares) -> Result<Chosen, CompileError> {
        let mut rounded = BTreeSet::new();
        loop {
            let structure = self.structure(squares, &rounded);
            let chosen = self.of_structure(&structure);
            let Err(CompileError::RangeOverflow { node, .. }) = &chosen else { return chosen };
            let mut more = structure.roundable(self.source.items, node);
            // Where squares of whole sums are offered, a square that fits no ring is one to rescale before.
            if more.is_subset(&rounded) && !self.source.options.squares_of_sums {
                more = structure.fine(self.source.items, node);
            }
            if more.is_subset(&rounded) {
                more = structure.joined(self.source.items, node);
            }
            if more.is_subset(&rounded) {
                return chosen;
            }
            rounded.extend(more);
        }
    }

    /// The network of a structure, with more and more slack, then with larger rings for the groups that overflow; and the error of its scores.
    fn of_structure(&self, structure: &Structure) -> Result<Chosen, CompileError> {
        let mut least = vec![0; structure.groups];
        let earlier = &mut *self.earlier.borrow_mut();
        loop {
            let mut refused = Vec::new();
            for (slack, earlier) in SLACK.into_iter().zip(&mut *earlier) {
                let lowered = lower(&self.source, structure, slack, &least)?;
                let provisional = lowered.network(self.head, None)?;
                let Measured { mut ranges, scores, made } =
                    integer_ranges(&provisional, &self.samples, &self.made, self.tracer, earlier)?;

                provisional.join_ranges(&mut ranges);
                let mut overflows = overflows(&provisional, &ranges);
                if overflows.is_empty() {
                    let network = self.narrowed(&lowered.network(self.head, Some(&ranges))?)?;
                    // Coarse integers may take more bits than the floats that shifts were chosen on.
                    if slack < SLACK[SLACK.len() - 1] && !self.keeps_few(&network) {
                        continue;
                    }
                    let error = self.error(&scores, network.output_scale());
                    return Ok(Chosen { network, scores, made, error });
                }
                // More slack may do for the others, once these have their room.
                let beyond_slack = overflows.iter().any(Overflow::is_beyond_slack);
                overflows.retain(|overflow| !beyond_slack || overflow.is_beyond_slack());
                let place = |overflow: Overflow| {
                    (lowered.group(overflow.node), lowered.ring(overflow.node), overflow.error())
                };
                refused = overflows.into_iter().map(place).collect();
                if beyond_slack {
                    break;
                }
            }
            if refused.is_empty() {
                return Err(refuse_all());
            }
            for (group, ring, error) in refused {
                let next = self.beyond(ring).ok_or(error)?;
                for group in structure.alike(self.source.items, group) {
                    least[group] = least[group].max(next);
                }
            }
        }
    }

    /// The network with what is rescaled in rings of its own, if that is asked for, or else in as small ones as nothing is lost by.
    fn narrowed(&self, network: &Network) -> Result<Network, CompileError> {
        let QuantizationOptions { narrow, kept_bits, .. } = self.source.options;
        if *narrow { network.narrowed(kept_bits.is_some()) } else { network.tightened() }
    }

    /// Whether no rescale keeps more bits than are asked for.
    fn keeps_few(&self, network: &Network) -> bool {
        let asked = self.source.options.kept_bits;
        asked.is_none_or(|most| network.public().lookups().all(|lookup| lookup.kept <= most))
    }

    /// The number of the next larger ring.
    fn beyond(&self, ring: Accumulator) -> Option<usize> {
        let rings = &self.source.options.accumulators;
        let next = 1 + rings.iter().position(|offered| *offered == ring).unwrap_or(0);
        (next < rings.len()).then_some(next)
    }

    /// The root mean square of the scores' error over that of the float scores' distance from their means over the samples; of each
    /// sample, what all scores share does not count where there are several.
    fn error(&self, scores: &[Vec<i128>], scale: f64) -> f64 {
        let float = |number: usize| self.scores[number].iter().map(|score| f64::from(*score));
        let count = self.samples.len() as f64;
        let mut means = vec![0.0; scores.first().map_or(0, Vec::len)];
        for (number, _) in &self.samples {
            means.iter_mut().zip(float(*number)).for_each(|(mean, score)| *mean += score / count);
        }
        let (mut lost, mut spread) = (0.0, 0.0);
        for ((number, _), scores) in self.samples.iter().zip(scores) {
            let errors = float(*number).zip(scores).map(|(score, integer)| *integer as f64 * scale - score);
            lost += variation(&errors.collect::<Vec<_>>());
            spread +=
                variation(&float(*number).zip(&means).map(|(score, mean)| score - mean).collect::<Vec<_>>());
        }
        if spread == 0.0 { f64::INFINITY } else { (lost / spread).sqrt() }
    }
}

/// The sum of squared differences from the mean; of a single value, its square.
fn variation(values: &[f64]) -> f64 {
    let mean = if values.len() > 1 { values.iter().sum::<f64>() / values.len() as f64 } else { 0.0 };
    values.iter().map(|value| (value - mean) * (value - mean)).sum()
}

/// A node without a proof whose calibrated range, doubled, exceeds what its ring allows.
struct Overflow {
    node: usize,
    name: String,
    bound: i128,
    limit: i128,
}

impl Overflow {
    /// Whether more slack for the layers before cannot help.
    fn is_beyond_slack(&self) -> bool {
        self.bound as f64 > SLACK[SLACK.len() - 1] * self.limit as f64
    }

    fn error(self) -> CompileError {
        CompileError::RangeOverflow { node: self.name, bound: self.bound, limit: self.limit }
    }
}

/// Those of a network, in order, up to the first that left its ring: what comes behind follows from wrong numbers.
fn overflows(network: &Network, measured: &[Calibrated]) -> Vec<Overflow> {
    let nodes = network.public().nodes();
    let of_value = |(value, (report, seen)): (usize, (&ValueReport, &Calibrated))| {
        let node = value - 1;
        let largest = seen.high.max(-seen.low);
        let unproved = nodes[node].op.may_grow() && report.evidence == Evidence::Calibrated;
        let (name, bound, limit) = (report.name.clone(), 2 * largest, report.limit);
        (unproved && largest > report.limit / 2).then_some(Overflow { node, name, bound, limit })
    };
    let mut found = Vec::new();
    for overflow in network.values().iter().zip(measured).enumerate().skip(1).filter_map(of_value) {
        let has_left = overflow.bound > 2 * overflow.limit;
        found.push(overflow);
        if has_left {
            break;
        }
    }
    found
}
