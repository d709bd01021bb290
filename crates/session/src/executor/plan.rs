//! A plan as one party executes it.

use std::ops::Range;

use lanner_network::{Network, PublicNetwork};
use lanner_plan::{Action, Ahead, BuiltPlan, BuiltStep, Plan, Visit};
use lanner_primitives::Ring;
use lanner_step::{Client, DynStep, Lifetime, Memory, ProtocolError, Server, SetUp, Shared, ValueType};
#[cfg(not(target_family = "wasm"))]
use lanner_store::SharedWeights;
use lanner_wire::Channel;

use super::parts::Parts;
use super::progress::{Progress, SetUpPart, StepProgress};
use super::values::last_reads;
use super::{ExecutionError, Measured, Phase};

/// A plan as one party executes it: its steps, ready to run and shared by all sessions.
pub struct PartyPlan<P> {
    pub(super) set_up: SetUp,
    pub(super) input: (Ring, usize),
    pub(super) steps: Vec<PartyStep<P>>,
    pub(super) visits: Vec<Visit>,
    /// For each visit, the values that nobody reads after it.
    pub(super) last_reads: Vec<Vec<usize>>,
    /// The visits in runs, the same for both parties, and each run in the parts that this one asks for together.
    pub(super) runs: Vec<Vec<Range<usize>>>,
    memory: Memory,
    ahead: Ahead,
    pub(super) progress: Progress,
}

/// The client's side of a plan.
pub type ClientPlan = PartyPlan<Client>;

/// The server's side of a plan: a model that is ready to serve, its weights encoded once.
pub type ServedModel = PartyPlan<Server>;

pub(super) struct PartyStep<P> {
    pub(super) name: String,
    pub(super) node: String,
    pub(super) protocol: &'static str,
    /// How long its material can be kept.
    pub(super) lifetime: Lifetime,
    pub(super) step: Box<dyn DynStep<P>>,
}

impl ClientPlan {
    /// Prepares a plan for a network.
    ///
    /// # Errors
    /// [`ExecutionError::Plan`] or [`ExecutionError::Step`] naming a layer that does not fit.
    pub fn new(network: &PublicNetwork, plan: &Plan) -> Result<Self, ExecutionError> {
        let (built, parts) = (plan.build()?, Parts::public(network));
        // All layers ask before the first receives, so that the offline phase is one round.
        let runs = built.runs()?.into_iter().map(|run| vec![run]).collect();
        Self::of(built, runs, |step| step.built.client(&step.node, &parts))
    }
}

impl ServedModel {
    /// Encodes a network's weights for its plan.
    ///
    /// # Errors
    /// [`ExecutionError::Plan`] or [`ExecutionError::Step`] naming a layer that does not fit the network, or whose ring or
    /// noise does not fit the parameters.
    pub fn new(network: &Network, plan: &Plan) -> Result<Self, ExecutionError> {
        Self::with(network, plan, Shared::default())
    }

    /// As [`Self::new`], with weights that lie in a directory once for all processes that serve the model of this commitment. Whoever is the
    /// first encodes them.
    ///
    /// # Errors
    /// As [`Self::new`]; [`ExecutionError::Store`] if the directory or its file cannot be used.
    #[cfg(not(target_family = "wasm"))]
    pub fn sharing(
        network: &Network,
        plan: &Plan,
        weights: &SharedWeights,
        commitment: &[u8; 32],
    ) -> Result<Self, ExecutionError> {
        weights.of(commitment, |encoded| Self::with(network, plan, Shared::with(encoded)))
    }

    /// Whether its clients are checked, so that they may be any: one that fails is told nothing, and is not to come back.
    #[must_use]
    pub fn is_checked(&self) -> bool {
        self.steps.iter().any(|step| step.protocol == CHECKED)
    }

    fn with(network: &Network, plan: &Plan, shared: Shared) -> Result<Self, ExecutionError> {
        lanner_plan::check_sums(network, plan)?;
        let (built, parts) = (plan.build()?, Parts::private(network, shared));
        // Layer by layer: while one is answered, the requests of the next arrive.
        let by_visits = |run: Range<usize>| run.map(|visit| visit..visit + 1).collect();
        let runs = built.runs()?.into_iter().map(by_visits).collect();
        Self::of(built, runs, |step| step.built.server(&step.node, &parts))
    }
}

impl ClientPlan {
    /// Checks the length of an input.
    ///
    /// # Errors
    /// [`ExecutionError::Mismatch`] if it is another.
    pub(crate) fn check_input(&self, input: &[i64]) -> Result<(), ExecutionError> {
        if input.len() == self.input.1 {
            Ok(())
        } else {
            Err(ExecutionError::Mismatch { what: "the input's length" })
        }
    }
}

impl<P> PartyPlan<P> {
    /// What the session's keys and transfers are.
    #[must_use]
    pub const fn set_up(&self) -> &SetUp {
        &self.set_up
    }

    fn of(
        built: BuiltPlan,
        runs: Vec<Vec<Range<usize>>>,
        make: impl Fn(BuiltStep) -> Result<Box<dyn DynStep<P>>, ProtocolError>,
    ) -> Result<Self, ExecutionError> {
        let (set_up, memory, ahead) = (built.set_up()?, built.memory()?, built.ahead()?);
        let ValueType::Shared { ring, len, .. } = built.input() else {
            return Err(ExecutionError::Mismatch { what: "the input's type" });
        };
        let (steps, visits) = built.into_parts();
        let make = |step: BuiltStep| {
            let (name, node) = (step.name.clone(), step.node.clone());
            let (protocol, lifetime) = (step.protocol, step.needs()?.material);
            let step = make(step).map_err(ExecutionError::step(&name))?;
            Ok(PartyStep { name, node, protocol, lifetime, step })
        };
        let steps = steps.into_iter().map(make).collect::<Result<Vec<_>, ExecutionError>>()?;
        let last_reads = last_reads(&visits);
        let progress = Progress::new(steps.len());
        Ok(Self { set_up, input: (ring, len), steps, visits, last_reads, runs, memory, ahead, progress })
    }

    /// Measures a part of a set-up, into `cost` as well.
    pub(crate) fn set_up_part<T>(
        &self,
        part: SetUpPart,
        cost: &mut Measured,
        channel: &mut dyn Channel,
        work: impl FnOnce(&mut dyn Channel) -> T,
    ) -> T {
        self.progress.visit(part as usize, cost, channel, work)
    }

    /// How far the set-up's parts have come, over all sessions that share this plan.
    #[must_use]
    pub fn set_up_progress(&self) -> Vec<StepProgress> {
        self.progress.set_up()
    }

    /// How far all steps have come, those of the offline phase first: over all predictions of all sessions that share this plan.
    #[must_use]
    pub fn progress(&self) -> Vec<StepProgress> {
        let mut visits = vec![0_u64; self.steps.len()];
        for visit in &self.visits {
            if let Action::Step(number) = visit.action {
                visits[number] += 1;
            }
        }
        let steps = self.steps.iter().enumerate();
        let visits = &visits;
        let of = |phase| {
            steps.clone().map(move |(number, PartyStep { name, protocol, .. })| {
                let read = self.progress.read(number, phase);
                StepProgress { name: name.clone(), protocol, visits: visits[number], ..read }
            })
        };
        of(Phase::Offline).chain(of(Phase::Online)).collect()
    }

    /// What the parties keep.
    #[must_use]
    pub const fn memory(&self) -> Memory {
        self.memory
    }

    /// How far one party may be ahead of the other.
    #[must_use]
    pub const fn ahead(&self) -> &Ahead {
        &self.ahead
    }
}

/// The protocol of networks whose client is checked.
const CHECKED: &str = "hardened.network";
