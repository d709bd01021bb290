//! The bits that a precision takes: as few as reach it.
//!
//! One number of bits for all layers is bisected first, on some of the samples, and raised until all samples reach what is asked. Then as
//! many layers as may have one bit less get one less, those with the most elements first, where that makes a prediction cheaper: searched
//! on the samples with the largest errors, and taken if all samples reach what is asked. In networks with products of secrets' matrices it is groups
//! of operators that are alike, and up to four bits. Where nothing is rescaled bits are shared out by
//! layer instead ([`super::allot`]). Everything is deterministic.

use lanner_graph::Graph;
use lanner_network::{CompileError, Field, Network, Precision, PublicNetwork, Reached, Tensors, percent};

use super::allot::Allotment;
use super::bits::{LayerBits, alike, largest_first, one_less, options_for};
use super::calibrate::Samples;
use super::choice::Chosen;
use super::closeness::{Closeness, Measured};
use super::compared::{compares_computed, counts_comparisons};
use super::item::Action;
use super::precision::Aim;
use super::prepared::{Part, Prepared, samples_within};
use super::trace::{Calibration, Watched};
use super::trees::TreeGraph;
use super::{QuantizationOptions, check};

/// Products of weights and activations that an attempt may take, and the fewest and the most samples that it is made on.
const PRODUCTS: u64 = 8_000_000_000;
const BESIDE_PRODUCTS: u64 = PRODUCTS / 8;
const FEWEST_SAMPLES: usize = 4;
const MOST_SAMPLES: usize = 48;

/// The products of a sample, and the weights, with which a network is small enough to look at layers one by one.
const SMALL: usize = 250_000_000;
const FEW_WEIGHTS: usize = 1 << 22;

/// How many samples decide which layers have one bit less, and how many such choices are checked on all.
const WORST_SAMPLES: usize = 16;
const CHECKS: usize = 2;

/// The fewest bits where computed values are compared: scores tell of a flipped comparison, and nothing of one that is about to flip on other inputs.
const FEWEST_OF_COMPARED: u32 = 13;

/// The same where comparisons decide alone, as votes do.
const FEWEST_OF_VOTES: u32 = Precision::MOST_BITS;

/// The products of weights and activations with which items that are alike are looked at, and the most bits that they may have less.
const ALIKE_PRODUCTS: u64 = 40_000_000_000;
const MOST_LESS: u32 = 4;
const MOST_CHECKS: usize = 6;

/// With fewer bits than these for want of room, samples that run away are set aside.
const USUAL_BITS: u32 = 8;

/// What a mode makes of a network: the bytes that a prediction takes.
pub type Cost<'c> = dyn Fn(&PublicNetwork) -> Result<u64, NoRoom> + 'c;

/// Why a mode has no room for a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// The node that it has no room for.
    pub node: String,
    /// Why, for people.
    pub reason: String,
    /// What to do about it; empty where nothing can be suggested.
    pub fix: String,
}

/// Compiles a graph with the fewest bits that reach a precision, or with those asked for.
///
/// `options` say which rings there are and what an input may be; their bits do not count. `cost` is what a mode makes of a network: the
/// bytes that a prediction takes, or why it has no room for it. A network that it has no room for with any number of
/// bits is returned as it is.
///
/// # Errors
/// As [`super::compile`], [`CompileError::Precision`] where a precision that is demanded is missed, [`CompileError::Unproved`] where proofs are
/// demanded and one is missed, and [`CompileError::Tracing`] where traces were not to be had, whatever was found without them.
pub fn compile_to<'c>(
    graph: &Graph,
    tensors: &Tensors,
    calibration: impl Into<Calibration<'c>>,
    options: &QuantizationOptions,
    aim: Aim,
    cost: &Cost<'_>,
) -> Result<Network, CompileError> {
    let (options, calibration) = (check(options)?, calibration.into());
    check_aim(aim.precision)?;
    if let Some(trees) = TreeGraph::of(graph, tensors)? {
        return trees.network(calibration.samples, &options, Some(aim));
    }
    let watched = Watched::new(calibration.tracer);
    let calibration = Calibration { tracer: &watched, ..calibration };
    let prepared = Prepared::new(graph, tensors, calibration, &options)?.widened(&options, PRODUCTS)?;
    let prepared = prepared.beside(&options, aim.told, BESIDE_PRODUCTS)?;
    let searched = |prepared: &Prepared<'_>| {
        let found = watched.unless_failed(search(prepared, &options, aim, cost));
        if options.commits && !is_enough(&found) {
            // One layer may be what leaves all of them few bits.
            let options = QuantizationOptions { spares_weights: true, ..options.clone() };
            return closer(found, watched.unless_failed(search(prepared, &options, aim, cost)));
        }
        if !options.saturates || options.proves || is_enough(&found) {
            return found;
        }
        // Proofs may ask for more than there is room for.
        let options = QuantizationOptions { saturates: false, ..options.clone() };
        closer(found, watched.unless_failed(search(prepared, &options, aim, cost)))
    };
    let mut found = searched(&prepared);
    // And so may what was made.
    let serves = found.as_ref().is_ok_and(|found| found.serves_samples);
    if !is_enough(&found)
        && !serves
        && let Some(narrow) = prepared.narrow()
    {
        let again = searched(&narrow);
        found = if found.is_ok() && !is_enough(&again) { found } else { again };
    }
    let network = found?.network;
    let unproved = network.unproved().next().map(|value| value.name.clone());
    match unproved.filter(|_| options.proves) {
        Some(node) => Err(CompileError::Unproved { node }),
        None => Ok(network),
    }
}

/// Whether a search found what is asked.
fn is_enough(found: &Result<Outcome, CompileError>) -> bool {
    found.as_ref().is_ok_and(|found| !found.falls_short)
}

/// What is asked, else what is closer to it, else the later of two refusals.
fn closer(
    first: Result<Outcome, CompileError>,
    second: Result<Outcome, CompileError>,
) -> Result<Outcome, CompileError> {
    match (first, second) {
        (Ok(first), Ok(second)) if second.falls_short && first.error <= second.error => Ok(first),
        (Ok(first), Err(_)) => Ok(first),
        (_, second) => second,
    }
}

/// What a search ends with.
struct Outcome {
    network: Network,
    /// The largest error of a score on the samples.
    error: f64,
    /// Whether it misses the precision, or the mode has no room for it.
    falls_short: bool,
    /// Whether only inputs beside the samples miss the precision: then the most bits serve these best.
    serves_samples: bool,
}

/// As [`compile_to`], of what is prepared.
fn search(
    prepared: &Prepared<'_>,
    options: &QuantizationOptions,
    aim: Aim,
    cost: &Cost<'_>,
) -> Result<Outcome, CompileError> {
    let mut outcome = Err(crate::options::refuse_all());
    for kept in prepared.kept() {
        let part = prepared.part(kept, options)?;
        let closeness =
            Closeness::new(&prepared.observed.scores, prepared.output_shape(), &part.samples, aim);
        let are_votes = counts_comparisons(&part.items, prepared.output());
        let closeness = closeness.rounded_to(options.output_unit).of_votes(are_votes);
        let all = part.samples.iter().chain(&part.made).copied().collect();
        let of_made = (!part.made.is_empty()).then(|| {
            Closeness::new(&prepared.observed.scores, prepared.output_shape(), &all, aim)
                .rounded_to(options.output_unit)
                .of_votes(are_votes)
        });
        let most = Precision::MOST_BITS;
        let fewest = match compares_computed(&part.items) {
            true if are_votes => FEWEST_OF_VOTES,
            true => FEWEST_OF_COMPARED,
            false => Precision::FEWEST_BITS,
        };
        let search = Search { part: &part, options, closeness, of_made, cost, fewest, most, limit: None };
        outcome = search.run(aim.precision).map(|found| found.with_set_aside(part.set_aside));
        if !is_narrow(&outcome) {
            break;
        }
    }
    let Found { best, limit } = outcome?;
    let on_samples = best.measured.on_samples.unwrap_or(best.measured.reached);
    let falls_short = !best.is_met() || best.cost == u64::MAX;
    let serves_samples = prepared.is_beside() && on_samples.is_met() && best.cost < u64::MAX;
    if falls_short && serves_samples {
        let network = best.network.with_reached(on_samples).with_made(0, prepared.made());
        return Ok(Outcome { network, error: best.measured.reached.error, falls_short, serves_samples });
    }
    let reached = best.measured.reached;
    if aim.demanded && !reached.is_met() {
        let (bits, asked) = (best.bits, aim.precision.to_string().into());
        let reason = why_no_more(bits, limit.as_ref());
        let room = limit.as_ref().map(|limit| limit.fix.clone()).filter(|fix| !fix.is_empty());
        let fix = room.unwrap_or_else(|| next_step(&reached, prepared.covers_little(options)));
        let node = limit.map(|limit| limit.node).filter(|node| !node.is_empty());
        let node = node.unwrap_or_else(|| coarsest(&best.network));
        let fix = format!(
            "{fix}; `lanner debug` shows which layer loses precision, and {} compiles the model as it is",
            Field::ALLOW_IMPRECISE
        );
        let lost = reached.labels_lost.try_into().unwrap_or(u32::MAX);
        let reached = percent(reached.error).into();
        let (limit, fix) = (reason.into(), fix.into());
        return Err(CompileError::Precision { node, bits, asked, reached, lost, limit, fix });
    }
    let network = best.network.with_reached(reached).with_made(prepared.made(), prepared.given_up());
    Ok(Outcome { network, error: reached.error, falls_short, serves_samples: false })
}

fn check_aim(precision: Precision) -> Result<(), CompileError> {
    let refuse = |value, allowed| Err(CompileError::Option { option: "precision", value, allowed });
    match precision {
        Precision::Bits(bits) if !(Precision::FEWEST_BITS..=Precision::MOST_BITS).contains(&bits) => {
            refuse(u64::from(bits), "6..=16 bits")
        }
        Precision::Error(error) if !(error > 0.0 && error < 1.0) => {
            refuse((100.0 * error) as u64, "percentages between 0 and 100")
        }
        _ => Ok(()),
    }
}

/// Whether rings have no room for the usual bits.
fn is_narrow(outcome: &Result<Found, CompileError>) -> bool {
    let is_overflow = |error: &CompileError| matches!(error, CompileError::RangeOverflow { .. });
    match outcome {
        Ok(Found { best, limit }) => {
            let limit = limit.as_ref().and_then(|limit| limit.error.as_deref());
            best.bits < USUAL_BITS && !best.is_met() && limit.is_some_and(is_overflow)
        }
        Err(error) => is_overflow(error),
    }
}

/// Why a network has no more bits than these.
fn why_no_more(bits: u32, limit: Option<&Refusal>) -> String {
    match limit {
        _ if bits == Precision::MOST_BITS => "the largest number that lanner offers".to_owned(),
        Some(Refusal { error: Some(error), .. }) => format!("with {}: {error}", bits + 1),
        Some(Refusal { reason, .. }) => format!("the mode has no room for {}: {reason}", bits + 1),
        None => format!("{} to {bits} were tried", Precision::FEWEST_BITS),
    }
}

/// What helps most against an error that is too large.
fn next_step(reached: &Reached, is_sparse: bool) -> String {
    let enough = EASIER.into_iter().find(|easier| reached.labels_lost == 0 && reached.error <= *easier);
    match enough {
        _ if is_sparse => {
            format!(
                "if columns differ in magnitude, omit {}: each column then gets its own range",
                Field::INPUT_RANGE
            )
        }
        _ if reached.samples < FEW_SAMPLES => format!("pass {FEW_SAMPLES} samples or more"),
        Some(easier) => format!("ask for {}", Field::PRECISION.set_to(percent(easier))),
        None => "normalise the weights of this layer".to_owned(),
    }
}

/// Precisions that are named where a finer one is missed.
const EASIER: [f64; 3] = [0.01, 0.02, 0.05];

/// With fewer samples than these, more are asked for first.
const FEW_SAMPLES: usize = 32;

/// The layer whose weights lose the most.
fn coarsest(network: &Network) -> String {
    let layers = network.values().iter().filter_map(|value| Some((value.weights?.error, &value.name)));
    layers.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name.clone()).unwrap_or_default()
}

/// Gives the group from which a bit was taken last its bit back.
fn give_back(less: &mut [u32], taken: &mut Vec<&Vec<usize>>) {
    taken.pop().into_iter().flatten().for_each(|item| less[*item] -= 1);
}

/// An attempt that rings have room for.
pub(super) struct Candidate {
    network: Network,
    /// Of all layers, or one more than of those that have fewer; the fewest where each has its own.
    bits: u32,
    measured: Measured,
    /// Bytes of a prediction.
    pub(super) cost: u64,
}

impl Candidate {
    pub(super) fn is_met(&self) -> bool {
        self.measured.reached.is_met()
    }

    /// Whether what is asked is met with a quarter to spare, for inputs whose scores have a smaller range than those of samples.
    fn is_met_well(&self) -> bool {
        let reached = &self.measured.reached;
        let most = if let Precision::Error(asked) = reached.asked { 0.75 * asked } else { f64::INFINITY };
        reached.is_met() && reached.error <= most
    }
}

/// Why there is no network with so many bits.
pub(super) struct Refusal {
    pub(super) node: String,
    /// Why rings have no room.
    pub(super) error: Option<Box<CompileError>>,
    /// Why the mode has none, and what to do about that; empty where rings have none.
    reason: String,
    fix: String,
    /// What rings have room for, and the mode has not.
    pub(super) refused: Option<Box<Candidate>>,
}

impl From<CompileError> for Refusal {
    fn from(error: CompileError) -> Self {
        let node = match &error {
            CompileError::RangeOverflow { node, .. }
            | CompileError::UnsupportedOp { node, .. }
            | CompileError::Unproved { node } => node.clone(),
            CompileError::Network { place, .. } => place.clone(),
            _ => String::new(),
        };
        Self { node, error: Some(Box::new(error)), reason: String::new(), fix: String::new(), refused: None }
    }
}

impl Refusal {
    /// Of a mode, for a reason about which nothing can be done.
    pub(super) fn of_mode(node: String, reason: &str) -> Self {
        Self { node, error: None, reason: reason.to_owned(), fix: String::new(), refused: None }
    }
}

/// The best network, and why there is none with more bits, if that was seen.
pub(super) struct Found {
    pub(super) best: Candidate,
    pub(super) limit: Option<Refusal>,
}

impl Found {
    fn with_set_aside(mut self, set_aside: usize) -> Self {
        self.best.network = self.best.network.with_set_aside(set_aside);
        self
    }
}

impl TryFrom<Refusal> for Found {
    type Error = CompileError;

    /// What the mode has no room for is left for it to refuse.
    fn try_from(refusal: Refusal) -> Result<Self, CompileError> {
        match refusal {
            Refusal { refused: Some(candidate), .. } => Ok(Self { best: *candidate, limit: None }),
            Refusal { error, .. } => Err(error.map_or_else(crate::options::refuse_all, |error| *error)),
        }
    }
}

pub(super) struct Search<'a> {
    pub(super) part: &'a Part<'a>,
    pub(super) options: &'a QuantizationOptions,
    closeness: Closeness<'a>,
    /// The same for what was made, held against the samples and one another.
    of_made: Option<Closeness<'a>>,
    cost: &'a Cost<'a>,
    /// The fewest bits that are tried.
    fewest: u32,
    /// The most bits that are not known to be too many.
    most: u32,
    /// Why more are.
    limit: Option<Refusal>,
}

impl<'a> Search<'a> {
    /// The cheapest network found that is what is asked, else the one with the most bits.
    fn run(mut self, precision: Precision) -> Result<Found, CompileError> {
        let all = self.part.samples.clone();
        if let Precision::Bits(bits) = precision {
            return self
                .attempt(bits, &self.no_less(), &all)
                .map_or_else(Found::try_from, |best| Ok(Found { best, limit: None }));
        }
        if let Some(found) = self.by_layer(precision)? {
            return Ok(found);
        }
        let some = self.spread(1)?;
        let mut found = self.fewest_bits(&some);
        while found.is_err() && self.fewest > Precision::FEWEST_BITS {
            // Rings have no room for so many.
            self.fewest -= 1;
            found = self.fewest_bits(&some);
        }
        let mut bits = match found {
            Ok(candidate) => candidate.bits,
            Err(refusal) => return Found::try_from(refusal),
        };
        loop {
            match self.attempt(bits, &self.no_less(), &all) {
                Ok(best) if best.is_met() => {
                    return Ok(Found { best: self.with_fewer(best), limit: None });
                }
                Ok(best) if bits == self.most => return Ok(Found { best, limit: self.limit }),
                Ok(_) => bits += 1,
                Err(refusal) if bits == Precision::FEWEST_BITS => return Found::try_from(refusal),
                Err(refusal) => {
                    (bits, self.most) = (bits - 1, bits - 1);
                    self.limit = Some(refusal);
                }
            }
        }
    }

    /// Where nothing is rescaled: the network with bits by layer.
    fn by_layer(&self, precision: Precision) -> Result<Option<Found>, CompileError> {
        let Precision::Error(asked) = precision else { return Ok(None) };
        if self.options.rescales {
            return Ok(None);
        }
        let samples = self.spread(Allotment::runs(self.part))?;
        let allotment = Allotment::measure(self.part, self.options, &self.closeness, &samples)?;
        allotment.map(|allotment| self.in_cheapest_ring(&allotment, asked)).transpose()
    }

    /// Samples to run so many times each, evenly spread.
    pub(super) fn spread(&self, runs: usize) -> Result<Samples<'a>, CompileError> {
        let all = &self.part.samples;
        let count = samples_within(PRODUCTS, runs * self.part.products()?);
        let count = count.clamp(FEWEST_SAMPLES, MOST_SAMPLES).min(all.len());
        Ok((0..count).map(|index| all[index * all.len() / count]).collect())
    }

    /// The network with the fewest bits, the same for all layers, that is what is asked; else the one with the most.
    fn fewest_bits(&mut self, samples: &Samples<'a>) -> Result<Candidate, Refusal> {
        // Below `low` what is asked is missed; at `high` it is not, or there is no room.
        let (mut low, mut high) = (self.fewest, self.most + 1);
        let (mut met, mut missed) = (None, None);
        while low < high {
            let bits = u32::midpoint(low, high);
            match self.attempt(bits, &self.no_less(), samples) {
                Ok(candidate) if candidate.is_met() => (high, met) = (bits, Some(candidate)),
                Ok(candidate) => (low, missed) = (bits + 1, Some(candidate)),
                Err(refusal) => {
                    (high, met) = (bits, None);
                    self.most = bits - 1;
                    self.limit = Some(refusal);
                }
            }
        }
        let nothing = || crate::options::refuse_all().into();
        met.or(missed).ok_or_else(|| self.limit.take().unwrap_or_else(nothing))
    }

    /// The same with one bit less for as many layers as may have it, if that is cheaper.
    fn with_fewer(&self, best: Candidate) -> Candidate {
        let bits = best.bits;
        if self.fewest > Precision::FEWEST_BITS {
            // What is compared would lose them without a sign of it in the scores.
            return best;
        }
        if self.part.items.iter().any(|item| matches!(item.action, Action::MatrixProduct { .. })) {
            return self.with_less_alike(best);
        }
        let is_small = self.part.products().is_ok_and(|products| products <= SMALL)
            && self.part.weights().is_ok_and(|weights| weights <= FEW_WEIGHTS);
        if bits == Precision::FEWEST_BITS || !is_small {
            return best;
        }
        let all = &self.part.samples;
        let worst = &best.measured.worst[..WORST_SAMPLES.min(all.len())];
        let some: Samples<'a> = all.iter().filter(|(number, _)| worst.contains(number)).copied().collect();
        // One less for all layers is taken to miss what is asked.
        let (mut fewer, mut more) = (0, largest_first(&self.part.items).len());
        let with = |fewer: usize, samples: &Samples<'a>| {
            self.attempt(bits, &one_less(&self.part.items, fewer), samples).ok()
        };
        while fewer + 1 < more {
            let middle = usize::midpoint(fewer, more);
            let meets = with(middle, &some).is_some_and(|candidate| candidate.is_met());
            if meets { fewer = middle } else { more = middle }
        }
        let checked = (1..=fewer).rev().take(CHECKS).filter_map(|fewer| with(fewer, all));
        let met = checked.filter(Candidate::is_met).find(|candidate| candidate.cost < best.cost);
        met.unwrap_or(best)
    }

    /// The same with fewer bits for items that are alike, group by group, as long as the precision is met with a quarter to spare, if that is
    /// cheaper.
    fn with_less_alike(&self, best: Candidate) -> Candidate {
        let (options, all) = (options_for(best.bits, self.options), &self.part.samples);
        let Ok(products) = self.part.products() else { return best };
        let groups = alike(&self.part.items);
        let count = samples_within(ALIKE_PRODUCTS, groups.len() * products).min(WORST_SAMPLES);
        if count == 0 {
            return best;
        }
        let numbered = |numbers: &[usize]| -> Samples<'a> {
            all.iter().filter(|(number, _)| numbers.contains(number)).copied().collect()
        };
        let mut worst = best.measured.worst[..count.min(all.len())].to_vec();
        let meets = |less: &[u32], worst: &[usize]| {
            let layers = LayerBits::with_less(&options, less);
            let found = self.unpriced(&options, &layers, best.bits, &numbered(worst));
            found.is_ok_and(|candidate| candidate.is_met_well())
        };
        let (mut less, mut taken) = (self.no_less(), Vec::new());
        let mut open: Vec<_> = groups.iter().collect();
        for _ in 0..MOST_LESS {
            // A group that cannot have one bit less is not asked again.
            open.retain(|&group| {
                for item in group {
                    less[*item] += 1;
                }
                taken.push(group);
                let is_met = meets(&less, &worst);
                if !is_met {
                    give_back(&mut less, &mut taken);
                }
                is_met
            });
        }
        // What some samples meet, others may miss: these join, and the bits that were taken last are given back.
        for _ in 0..MOST_CHECKS {
            let Ok(candidate) = self.attempt(best.bits, &less, all) else { break };
            if candidate.is_met_well() {
                return if candidate.cost < best.cost { candidate } else { best };
            }
            worst.extend(candidate.measured.worst.first());
            give_back(&mut less, &mut taken);
            while !taken.is_empty() && !meets(&less, &worst) {
                give_back(&mut less, &mut taken);
            }
        }
        best
    }

    fn no_less(&self) -> Vec<u32> {
        vec![0; self.part.items.len()]
    }

    /// The network with so many bits, less those for each item, on these samples.
    fn attempt(&self, bits: u32, less: &[u32], samples: &Samples<'a>) -> Result<Candidate, Refusal> {
        let options = options_for(bits, self.options);
        let layers = LayerBits::with_less(&options, less);
        let found = self.priced(self.unpriced(&options, &layers, bits, samples)?);
        match found {
            // A mode may have no room for rings that are large enough for proofs.
            Err(refusal) if options.saturates && !options.proves => {
                let options = QuantizationOptions { saturates: false, ..options };
                let found = self.unpriced(&options, &layers, bits, samples);
                found.and_then(|found| self.priced(found)).map_err(|_| refusal)
            }
            found => found,
        }
    }

    /// The network with these bits by layer on these samples, as if it cost nothing.
    pub(super) fn unpriced(
        &self,
        options: &QuantizationOptions,
        layers: &LayerBits,
        bits: u32,
        samples: &Samples<'_>,
    ) -> Result<Candidate, Refusal> {
        let less = if layers.are_uniform() { "" } else { ", fewer in some layers" };
        self.part.tell(&format!("calibrating: {bits} bits{less}, {} samples", samples.len()));
        let Chosen { network, scores, made, .. } = self.part.choose(options, layers, samples.clone())?;
        // There is no larger ring for a proof: fewer bits may have one.
        if let Some(value) = network.unproved().next().filter(|_| options.proves && options.commits) {
            return Err(CompileError::Unproved { node: value.name.clone() }.into());
        }
        let mut measured = self.closeness.measure(samples, &scores, network.output_scale());
        if let Some(closeness) = &self.of_made {
            let of_made = closeness.measure(&self.part.made, &made, network.output_scale());
            measured.on_samples = Some(measured.reached);
            measured.reached = measured.reached.with_made(&of_made.reached);
        }
        Ok(Candidate { network, bits, measured, cost: 0 })
    }

    /// The same with what it costs.
    pub(super) fn priced(&self, candidate: Candidate) -> Result<Candidate, Refusal> {
        match (self.cost)(candidate.network.public()) {
            Ok(cost) => Ok(Candidate { cost, ..candidate }),
            Err(NoRoom { node, reason, fix }) => {
                let refused = Some(Box::new(Candidate { cost: u64::MAX, ..candidate }));
                Err(Refusal { fix, refused, ..Refusal::of_mode(node, &reason) })
            }
        }
    }
}
