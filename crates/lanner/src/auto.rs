//! The network and the plan of a model: those of its mode, or in mode `auto` the best of all modes for what its owner wants.

use lanner_graph::{Graph, equalised};
use lanner_network::{CompileError, Field, Network, Policy, PublicNetwork, Tensors};
use lanner_plan::{
    CHECKING, Choices, Design, Limits, Mode, Plan, PlanError, Prices, Rings, Saturation, TRIED, check_sums,
    choose, plan_within, promise,
};
use lanner_quantize::{Calibration, NoRoom, compile, compile_to};

use crate::modes::names;
use crate::{CompileOptions, Error, ErrorKind, Result};

/// By how many doublings channels are raised at most where a precision is missed: fewer first, for what is raised costs bits of the weights behind it.
const DOUBLINGS: [u32; 2] = [2, 4];

/// What a search for bits comes to.
type Found = std::result::Result<Network, CompileError>;

/// A float graph to be compiled.
pub(crate) struct Job<'j> {
    pub(crate) graph: &'j Graph,
    pub(crate) tensors: &'j Tensors,
    pub(crate) calibration: Calibration<'j>,
    pub(crate) options: &'j CompileOptions,
}

/// The mode in whose rings any network is computed.
const USUAL: Mode = TRIED[0];

/// Of two rings that are worth the same to within a twentieth, the usual mode's are taken.
const FAVOUR: f64 = 0.95;

/// What a job comes to.
pub(crate) struct Done {
    pub(crate) network: Network,
    pub(crate) plan: Plan,
    /// The weights that the network was made of, where its channels were equalised for it.
    pub(crate) equalised: Option<Tensors>,
}

impl Job<'_> {
    /// The network and its plan.
    ///
    /// # Errors
    /// As [`Model::compile`](crate::Model::compile); in mode `auto`, what mode `cheetah` refuses if no mode takes the graph, or of modes that check clients the first one.
    pub(crate) fn run(&self) -> Result<Done> {
        let (mode, tell) = (self.options.mode()?, self.calibration.tell);
        if !self.options.is_auto() {
            tell("calibrating");
            let (network, equalised) = self.network(mode)?;
            tell("planning");
            let (policy, limits) = (self.options.policy()?, self.options.limits.limits());
            let plan = plan_within(network.public(), policy, &self.choices(mode)?, &limits)?;
            check_sums(&network, &plan)?;
            let plan = self.revealing(plan, &network)?;
            return Ok(Done { network, plan, equalised });
        }
        tell("comparing modes");
        let prices = self.options.prices()?;
        let promising = self.promising(&prices)?;
        tell("calibrating");
        let mut refused = None;
        for mode in promising {
            let done = self.network(mode).and_then(|(network, equalised)| {
                let plan = self.best(mode, &network, &prices)?;
                check_sums(&network, &plan)?;
                Ok(Done { plan: self.revealing(plan, &network)?, network, equalised })
            });
            match done {
                Ok(done) => return Ok(done),
                // Where networks are not traced, another mode is no answer.
                Err(error) if error.kind == ErrorKind::Transport => return Err(error),
                // What the usual mode says is said of all.
                Err(error) if mode == self.usual() || refused.is_none() => refused = Some(error),
                Err(_) => {}
            }
        }
        let refused = refused.unwrap_or_else(|| Error::new(ErrorKind::Unsupported, "no mode takes it"));
        Err(self.explained(refused))
    }

    /// The mode that is tried whatever it promises.
    const fn usual(&self) -> Mode {
        if self.options.checks_clients() { CHECKING[0] } else { USUAL }
    }

    /// What is refused, and that it is for the clients' sake.
    fn explained(&self, mut error: Error) -> Error {
        if self.options.checks_clients() && error.kind == ErrorKind::Unsupported {
            let against = Field::AGAINST;
            error.what = format!(
                "{}, and {against} leaves mode {} alone",
                error.what,
                names(Design::checks_clients).join(" and ")
            );
            // No other mode is left to compile for.
            error.fix = format!(
                "change it, or leave {against} out where every client has a reason to follow the protocol"
            );
        }
        error
    }

    /// The modes whose rings are tried, the best first by what they make of the first sample: the search for bits takes long, and most of what
    /// differs between rings does not depend on it.
    fn promising(&self, prices: &Prices) -> Result<Vec<Mode>> {
        let length: usize = self.graph.inputs[0].shape.iter().product();
        let samples = self.calibration.samples;
        let sample = &samples[..length.min(samples.len())];
        let modes = self.modes()?;
        // One that checks clients is not held against another.
        if self.options.checks_clients() && modes.len() == 1 {
            return Ok(modes);
        }
        let mut found: Vec<(Mode, f64)> = Vec::new();
        for (number, mode) in (1..).zip(&modes) {
            let mode = *mode;
            (self.calibration.tell)(&format!(
                "comparing modes: {}, {number} of {}",
                mode.name(),
                modes.len()
            ));
            let rings = self.options.quantization(mode)?;
            // What is refused of one sample may be taken with all; but no mode but the usual one is tried for that.
            let network = compile(self.graph, self.tensors, sample, &rings).map_err(Error::from);
            if let Ok([price, _]) = network.and_then(|network| self.promise(mode, &network, prices)) {
                found.push((mode, if mode == self.usual() { FAVOUR * price } else { price }));
            }
        }
        found.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        if found.iter().all(|(mode, _)| *mode != self.usual()) {
            found.push((self.usual(), f64::INFINITY));
        }
        Ok(found.into_iter().map(|(mode, _)| mode).collect())
    }

    /// The modes in whose rings networks are tried.
    fn modes(&self) -> Result<Vec<Mode>> {
        if self.options.checks_clients() {
            return Ok(CHECKING.to_vec());
        }
        // No other policy lets the client see scores, and where values stay encrypted nothing is proved of all inputs.
        let encrypts = self.options.policy()? == Policy::Logits && !self.options.proved_ranges;
        let is_tried = |mode: &Mode| {
            let design = mode.design();
            (encrypts || design.is_interactive()) && self.options.batch <= design.most_samples
        };
        Ok(TRIED.into_iter().filter(is_tried).collect())
    }

    /// All nodes in one mode.
    fn choices(&self, mode: Mode) -> Result<Choices> {
        Ok(Choices { samples: self.options.samples(mode)?, ..mode.into() })
    }

    /// The network with the bits that the precision takes, in the rings of a mode; and the weights that it is of, where it misses the precision with the
    /// job's own and comes closer with equalised ones.
    fn network(&self, mode: Mode) -> Result<(Network, Option<Tensors>)> {
        let policy = self.options.policy()?;
        let (found, equal) = self.closest(mode, self.searched(mode, self.tensors)?)?;
        Ok((if policy.needs_scale() { found? } else { found?.without_public_output_scale() }, equal))
    }

    /// What a search found, or, where it misses the precision, what is found with equalised channels and comes closer.
    fn closest(&self, mode: Mode, found: Found) -> Result<(Found, Option<Tensors>)> {
        let error = |found: &Found| match found {
            Ok(network) => network.reached().filter(|reached| !reached.is_met()).map(|reached| reached.error),
            Err(CompileError::Precision { .. }) => Some(f64::INFINITY),
            Err(_) => None,
        };
        // Where nothing is rescaled, squares lie between layers, which let no factor through.
        let Some(missed_by) = error(&found).filter(|_| mode.design().rings != Rings::Products) else {
            return Ok((found, None));
        };
        let (mut best, mut least) = ((found, None), missed_by);
        for doublings in DOUBLINGS {
            let Some(equal) = equalised(self.graph, self.tensors, self.calibration.samples, doublings)?
            else {
                break;
            };
            (self.calibration.tell)(&format!("calibrating: channels equalised by {doublings} doublings"));
            let again = self.searched(mode, &equal)?;
            match error(&again) {
                Some(error) if error < least => (best, least) = ((again, Some(equal)), error),
                None if again.is_ok() => return Ok((again, Some(equal))),
                _ => {}
            }
        }
        Ok(best)
    }

    /// What the search for bits finds for such weights.
    fn searched(&self, mode: Mode, tensors: &Tensors) -> Result<Found> {
        let (policy, limits) = (self.options.policy()?, self.options.limits.limits());
        let choices = self.choices(mode)?;
        let no_room = |error: PlanError| NoRoom {
            node: error.place().to_owned(),
            reason: error.to_string(),
            fix: error.fix().into_owned(),
        };
        let cost = |network: &PublicNetwork| bytes(network, policy, &choices, &limits).map_err(no_room);
        let (rings, aim) = (self.options.quantization(mode)?, self.options.aim(mode, policy));
        Ok(compile_to(self.graph, tensors, self.calibration, &rings, aim, &cost))
    }

    /// The best plan for a network in the rings of a mode.
    fn best(&self, mode: Mode, network: &Network, prices: &Prices) -> Result<Plan> {
        let (public, policy, limits) =
            (network.public(), self.options.policy()?, self.options.limits.limits());
        let choices = self.choices(mode)?;
        Ok(if mode.design().rings == Rings::PowersOfTwo {
            choose(public, policy, choices.samples, &limits, prices)?.0
        } else {
            plan_within(public, policy, &choices, &limits)?
        })
    }

    /// The same plan with the steps after which the client knows whether activations saturated, where it is to learn that.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if none can, or sums that are not proved may wrap instead: then a client would take a wrong result for a right one.
    fn revealing(&self, plan: Plan, network: &Network) -> Result<Plan> {
        if !self.options.reveal_saturation {
            return Ok(plan);
        }
        let public = network.public();
        let refused = |what: String| {
            Err(Error::new(ErrorKind::Unsupported, what).at("reveal_saturation").fix(without()))
        };
        let name = |node: usize| public.nodes()[node].name.clone();
        let saturation: Saturation = network.saturating().map(name).collect();
        if saturation.is_empty() {
            let mode = plan.mode.name();
            return refused(format!("no activation of this network can saturate in mode {mode}"));
        }
        let mut unproved = network.unproved();
        if let Some(first) = unproved.next() {
            let what = format!(
                "{} values may leave their rings, `{}` first, and no bit would reveal that",
                1 + unproved.count(),
                first.name
            );
            return refused(what);
        }
        let choices = Choices { saturation, ..plan.choices() };
        Ok(plan_within(public, plan.policy, &choices, &self.options.limits.limits())?)
    }

    /// What such a plan is worth, about.
    fn promise(&self, mode: Mode, network: &Network, prices: &Prices) -> Result<[f64; 2]> {
        let (public, policy, limits) =
            (network.public(), self.options.policy()?, self.options.limits.limits());
        let choices = self.choices(mode)?;
        if mode.design().rings == Rings::PowersOfTwo {
            return Ok(promise(public, policy, choices.samples, &limits, prices)?);
        }
        let built = plan_within(public, policy, &choices, &limits)?.build()?;
        Ok(prices.objective.price(&built.estimate(&prices.kernels, prices.link)?))
    }
}

fn without() -> String {
    let (saturation, ranges) = (Field::REVEAL_SATURATION, Field::PROVED_RANGES);
    format!("compile without {saturation}, with mode gazelle, falcon or tabula, or with {ranges}")
}

/// The bytes that a prediction takes, both ways, its offline phase included.
fn bytes(
    network: &PublicNetwork,
    policy: Policy,
    choices: &Choices,
    limits: &Limits,
) -> std::result::Result<u64, PlanError> {
    let cost = plan_within(network, policy, choices, limits)?.build()?.cost()?;
    let all = [cost.offline_total(), cost.online_total()];
    Ok(all.iter().map(|cost| cost.client_bytes() + cost.server_bytes()).sum())
}
