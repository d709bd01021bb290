//! One party's session: its state, and the walks over the plan.

use std::ops::Range;
use std::sync::Arc;

use lanner_plan::{Action, Visit};
use lanner_primitives::{Prg, Seed, Share};
use lanner_process::Mark;
use lanner_step as protocol;
use lanner_step::{
    AnyState, Client, Inputs, KeyedClient, Keys, Outcome, PartyState, ProtocolError, Server, SetUp, Value,
};
use lanner_store::Material;
use lanner_wire::{Channel, Writer};

use super::clock::{Measured, Phase};
use super::plan::{PartyPlan, PartyStep};
use super::progress::SetUpPart;
use super::values::{Values, move_around};
use super::{ClientPlan, ExecutionError, ServedModel};

/// One party's state of a session, which belongs to the process that set it up.
pub struct Session<P> {
    plan: Arc<PartyPlan<P>>,
    state: P,
    mark: Mark,
}

/// The client's session.
pub type ClientSession = Session<Client>;

/// The server's session.
pub type ServerSession = Session<Server>;

/// One-time material of one prediction, and what making it took.
pub struct Prepared {
    /// Of each visit of the plan; none where a loop only moves values.
    pub(super) materials: Vec<Option<AnyState>>,
    pub(super) costs: Vec<Measured>,
    /// The process that made it, or took it from a stock: a copy of that one has it, too.
    pub(super) mark: Mark,
}

impl Prepared {
    /// What making it took, step by step.
    #[must_use]
    pub fn costs(&self) -> &[Measured] {
        &self.costs
    }
}

/// A client's keys of an earlier session, as the server holds them.
pub struct ClientKeys(Keys<protocol::ClientKeys>);

impl ClientSession {
    /// Set-up: makes and sends the keys and prepares oblivious transfer. All randomness of the session comes from `rng`.
    ///
    /// # Errors
    /// [`ExecutionError::Setup`] if the peer's messages are not the ones due.
    pub fn setup(
        channel: &mut dyn Channel,
        plan: Arc<ClientPlan>,
        rng: Prg,
    ) -> Result<(Self, Measured), ExecutionError> {
        Self::measured(channel, plan, |channel, needs| KeyedClient::new(channel, needs, rng))
    }

    /// The same with the keys of another session, what [`Session::keys`] is there, which are sent again.
    ///
    /// # Errors
    /// As [`Self::setup_again`].
    pub fn setup_with(
        channel: &mut dyn Channel,
        plan: Arc<ClientPlan>,
        keys: &Material,
        rng: Prg,
    ) -> Result<(Self, Measured), ExecutionError> {
        let seed = key_seed(keys)?;
        Self::measured(channel, plan, |channel, needs| KeyedClient::with(channel, needs, seed, rng))
    }

    /// The same with the keys of an earlier session: what [`Session::keys`] was then. The server does the same.
    ///
    /// # Errors
    /// [`ExecutionError::OtherMaterial`] if they are none; as [`Self::setup`].
    pub fn setup_again(
        channel: &mut dyn Channel,
        plan: Arc<ClientPlan>,
        keys: &Material,
        rng: Prg,
    ) -> Result<(Self, Measured), ExecutionError> {
        let seed = key_seed(keys)?;
        Self::measured(channel, plan, |_, needs| KeyedClient::again(needs, seed, rng))
    }

    fn measured(
        channel: &mut dyn Channel,
        plan: Arc<ClientPlan>,
        make_keys: impl FnOnce(&mut dyn Channel, &SetUp) -> Result<KeyedClient, ProtocolError>,
    ) -> Result<(Self, Measured), ExecutionError> {
        let (needs, mut cost) = (&plan.set_up, Measured::of_setup());
        let keyed = plan.set_up_part(SetUpPart::Keys, &mut cost, channel, |channel| {
            let keyed = make_keys(channel, needs)?;
            // Nothing is due from the server, which may as well have the keys now.
            channel.flush()?;
            Ok::<_, ExecutionError>(keyed)
        })?;
        let state = plan.set_up_part(SetUpPart::Transfers, &mut cost, channel, |channel| {
            let state = keyed.prepare_transfers(channel, needs)?;
            channel.flush()?;
            Ok::<_, ExecutionError>(state)
        })?;
        Ok((Self { plan, state, mark: Mark::here() }, cost))
    }

    /// What another session needs to have the same keys.
    #[must_use]
    pub fn keys(&self) -> Material {
        Material::new(self.state.key_seed().as_bytes().to_vec())
    }

    /// As [`ClientPlan::predict`].
    ///
    /// # Errors
    /// As [`ClientPlan::predict`].
    pub fn predict(
        &mut self,
        channel: &mut dyn Channel,
        prepared: Prepared,
        input: &[i64],
    ) -> Result<(Outcome, Vec<Measured>), ExecutionError> {
        self.plan.predict(channel, prepared, input)
    }

    /// One prediction whose material is made run by run, each just before it is used. Returns as [`ClientPlan::predict`].
    ///
    /// # Errors
    /// As [`ClientPlan::predict`] and [`Self::prepare`].
    pub fn predict_unprepared(
        &mut self,
        channel: &mut dyn Channel,
        input: &[i64],
    ) -> Result<(Outcome, Vec<Measured>), ExecutionError> {
        self.plan.check_input(input)?;
        let (ring, _) = self.plan.input;
        let (outcome, costs) = self.predict_by_runs(channel, Share::embed(ring, input))?;
        Ok((revealed(outcome)?, costs))
    }
}

impl ServerSession {
    /// Set-up: receives the client's keys and prepares oblivious transfer. All randomness of the session comes from `rng`.
    ///
    /// # Errors
    /// [`ExecutionError::Setup`] if the peer's messages are not the ones due.
    pub fn setup(
        channel: &mut dyn Channel,
        model: Arc<ServedModel>,
        rng: Prg,
    ) -> Result<Self, ExecutionError> {
        let state = Server::set_up(channel, &model.set_up, rng)?;
        Ok(Self { plan: model, state, mark: Mark::here() })
    }

    /// The same with the keys of an earlier session, which [`Self::read_keys`] read.
    ///
    /// # Errors
    /// As [`Self::setup`].
    pub fn setup_again(
        channel: &mut dyn Channel,
        model: Arc<ServedModel>,
        keys: ClientKeys,
        rng: Prg,
    ) -> Result<Self, ExecutionError> {
        let state = Server::set_up_again(channel, &model.set_up, keys.0, rng)?;
        Ok(Self { plan: model, state, mark: Mark::here() })
    }

    /// Reads what [`Session::keys`] was in a session of a model of the same needs, or what a client uploads.
    ///
    /// # Errors
    /// [`ExecutionError::Setup`] if it is anything else.
    pub fn read_keys(model: &ServedModel, keys: &[u8]) -> Result<ClientKeys, ExecutionError> {
        Ok(ClientKeys(Server::read_keys(keys, &model.set_up)?))
    }

    /// What another session needs to have the same keys.
    #[must_use]
    pub fn keys(&self) -> Material {
        let mut writer = Writer::new();
        self.state.write_keys(&mut writer);
        Material::new(writer.into_bytes())
    }

    /// As [`ServedModel::predict`].
    ///
    /// # Errors
    /// As [`ServedModel::predict`].
    pub fn predict(
        &mut self,
        channel: &mut dyn Channel,
        prepared: Prepared,
    ) -> Result<Vec<Measured>, ExecutionError> {
        self.plan.predict(channel, prepared)
    }

    /// One prediction whose material is made run by run, each just before it is used. Returns the cost of every step.
    ///
    /// # Errors
    /// As [`ServedModel::predict`] and [`Self::prepare`].
    pub fn predict_unprepared(&mut self, channel: &mut dyn Channel) -> Result<Vec<Measured>, ExecutionError> {
        let (ring, len) = self.plan.input;
        Ok(self.predict_by_runs(channel, Share::zero(ring, len))?.1)
    }
}

impl<P: PartyState> Session<P> {
    /// Offline: makes the material of one prediction.
    ///
    /// # Errors
    /// [`ExecutionError::Step`] naming the layer; [`ExecutionError::OtherProcess`] in a child that `fork` made.
    pub fn prepare(&mut self, channel: &mut dyn Channel) -> Result<Prepared, ExecutionError> {
        self.mark.check(SESSION)?;
        let mut known = self.plan.known();
        let mut costs = self.plan.costs(Phase::Offline);
        let mut materials = Vec::with_capacity(self.plan.visits.len());
        for run in 0..self.plan.runs.len() {
            materials.extend(self.prepare_run(channel, run, &mut known, &mut costs)?);
        }
        channel.flush()?;
        Ok(Prepared { materials, costs, mark: Mark::here() })
    }

    /// Both phases of one prediction, run by run: what the plan makes in the end, as this party holds it, and the cost of every step in both phases.
    fn predict_by_runs(
        &mut self,
        channel: &mut dyn Channel,
        input: Share,
    ) -> Result<(Option<Value>, Vec<Measured>), ExecutionError> {
        self.mark.check(SESSION)?;
        let (mut known, mut values) = (self.plan.known(), Values::new(Some(input)));
        let [mut offline, mut online] = [Phase::Offline, Phase::Online].map(|phase| self.plan.costs(phase));
        let mut first = 0;
        for run in 0..self.plan.runs.len() {
            let materials = self.prepare_run(channel, run, &mut known, &mut offline)?;
            channel.flush()?;
            let visits = first..first + materials.len();
            first = visits.end;
            self.plan.online_of(channel, visits, materials, &mut values, &mut online, &mut |_, _| ())?;
            channel.flush()?;
        }
        offline.append(&mut online);
        Ok((values.into_last(), offline))
    }

    /// Offline: the material of a run's visits, given what is known ahead of time of the values before it.
    fn prepare_run(
        &mut self,
        channel: &mut dyn Channel,
        run: usize,
        known: &mut Values,
        costs: &mut [Measured],
    ) -> Result<Vec<Option<AnyState>>, ExecutionError> {
        let Self { plan, state, .. } = self;
        let mut materials = Vec::new();
        for part in &plan.runs[run] {
            let mut requests = Vec::with_capacity(part.len());
            for visit in &plan.visits[part.clone()] {
                let request = plan.step_of(visit).map(|(number, step)| {
                    let request = |channel: &mut dyn Channel| step.step.request(channel, state);
                    plan.progress
                        .add(number, &mut costs[number], channel, request)
                        .map_err(ExecutionError::step(&step.name))
                });
                requests.push(request.transpose()?);
            }
            for (number, request) in part.clone().zip(requests) {
                let visit = &plan.visits[number];
                let inputs = known.read(visit, &plan.last_reads[number]);
                let Some(((number, step), request)) = plan.step_of(visit).zip(request) else {
                    known.write(visit, known_part(visit.action, &inputs)?);
                    materials.push(None);
                    continue;
                };
                let prepare = |channel: &mut dyn Channel| step.step.prepare(channel, state, request, &inputs);
                let made = plan.progress.visit(number, &mut costs[number], channel, prepare);
                let (material, share) = made.map_err(ExecutionError::step(&step.name))?;
                known.write(visit, share);
                materials.push(Some(material));
            }
        }
        Ok(materials)
    }
}

impl ClientPlan {
    /// Online: one prediction with its material, which is used up whatever happens.
    ///
    /// Returns the outcome and the cost of every step in both phases.
    ///
    /// # Errors
    /// [`ExecutionError::Mismatch`] if the input has another length; [`ExecutionError::Step`] naming the layer;
    /// [`ExecutionError::OtherProcess`] in a child that `fork` made of the process that has the material.
    pub fn predict(
        &self,
        channel: &mut dyn Channel,
        prepared: Prepared,
        input: &[i64],
    ) -> Result<(Outcome, Vec<Measured>), ExecutionError> {
        self.check_input(input)?;
        let (ring, _) = self.input;
        prepared.mark.check(MATERIAL)?;
        let Prepared { materials, mut costs, .. } = prepared;
        let (outcome, online) = self.online(channel, materials, Share::embed(ring, input), |_, _| ())?;
        costs.extend(online);
        Ok((revealed(outcome)?, costs))
    }
}

impl ServedModel {
    /// Online: one prediction with its material, which is used up whatever happens. Returns the cost of every step.
    ///
    /// # Errors
    /// [`ExecutionError::Step`] naming the layer; [`ExecutionError::OtherProcess`] in a child that `fork` made of the process that has the
    /// material.
    pub fn predict(
        &self,
        channel: &mut dyn Channel,
        prepared: Prepared,
    ) -> Result<Vec<Measured>, ExecutionError> {
        prepared.mark.check(MATERIAL)?;
        let (ring, len) = self.input;
        let (_, costs) = self.online(channel, prepared.materials, Share::zero(ring, len), |_, _| ())?;
        channel.flush()?;
        Ok(costs)
    }
}

impl<P: PartyState> PartyPlan<P> {
    /// Online: what the plan makes in the end, as this party holds it, and the cost of every step. `made` sees what each visit makes.
    pub(super) fn online(
        &self,
        channel: &mut dyn Channel,
        materials: Vec<Option<AnyState>>,
        input: Share,
        mut made: impl FnMut(&Visit, &Value),
    ) -> Result<(Option<Value>, Vec<Measured>), ExecutionError> {
        let mut costs = self.costs(Phase::Online);
        let mut values = Values::new(Some(input));
        self.online_of(channel, 0..self.visits.len(), materials, &mut values, &mut costs, &mut made)?;
        Ok((values.into_last(), costs))
    }

    /// Online: some visits, given the values before them.
    fn online_of(
        &self,
        channel: &mut dyn Channel,
        visits: Range<usize>,
        materials: Vec<Option<AnyState>>,
        values: &mut Values,
        costs: &mut [Measured],
        made: &mut impl FnMut(&Visit, &Value),
    ) -> Result<(), ExecutionError> {
        for (number, material) in visits.zip(materials) {
            let visit = &self.visits[number];
            let inputs = values.read(visit, &self.last_reads[number]);
            let value = match self.step_of(visit).zip(material) {
                None => move_around(visit.action, &inputs)?,
                Some(((number, step), material)) => {
                    let online = |channel: &mut dyn Channel| step.step.online(channel, material, &inputs);
                    let made = self.progress.visit(number, &mut costs[number], channel, online);
                    made.map_err(ExecutionError::step(&step.name))?
                }
            };
            made(visit, &value);
            values.write(visit, Some(value));
        }
        Ok(())
    }
}

impl<P: PartyState> PartyPlan<P> {
    /// What is known ahead of time: of the input, zero where the other party has it.
    fn known(&self) -> Values {
        let (ring, len) = self.input;
        Values::new(P::INPUT_IS_KNOWN.then(|| Share::zero(ring, len)))
    }
}

impl<P> PartyPlan<P> {
    /// The step that is visited, and its number.
    pub(super) fn step_of(&self, visit: &Visit) -> Option<(usize, &PartyStep<P>)> {
        match visit.action {
            Action::Step(number) => Some((number, &self.steps[number])),
            Action::Slice { .. } | Action::Join => None,
        }
    }

    /// Nothing yet for every step.
    pub(super) fn costs(&self, phase: Phase) -> Vec<Measured> {
        self.steps.iter().map(|step| Measured::none(&step.name, step.protocol, phase)).collect()
    }
}

/// What the client is told in the end.
fn revealed(value: Option<Value>) -> Result<Outcome, ExecutionError> {
    match value {
        Some(Value::Revealed(outcome)) => Ok(outcome),
        _ => Err(ExecutionError::Mismatch { what: "a plan without an output" }),
    }
}

const SESSION: &str = "the session";
const MATERIAL: &str = "the material of a prediction";

/// What a client's keys are made from.
fn key_seed(keys: &Material) -> Result<Seed, ExecutionError> {
    let seed = keys.as_bytes().try_into().map_err(|_| ExecutionError::OtherMaterial { what: "form" })?;
    Ok(Seed::from_bytes(seed))
}

/// What a loop makes of what is known ahead of time.
fn known_part(action: Action, inputs: &Inputs) -> Result<Option<Value>, ProtocolError> {
    inputs.complete().then(|| move_around(action, inputs)).transpose()
}
