//! A client's session.

use std::sync::Arc;

use lanner_net::abreast;
use lanner_plan::{ADDRESSABLE, Ahead};
use lanner_primitives::Prg;
use lanner_process::Mark;
use lanner_step::Party;
use lanner_store::{Material, StoreError};
use lanner_wire::{Channel, ChannelError, Refusal};

use super::queue::Queue;
use super::{
    MAX_PREPARED_BYTES, MAX_TOGETHER, OwnKeys, PREPARED, Request, Shelf, is_ready, most_together, pairing,
    unread, upload,
};
use crate::executor::{ClientPlan, ClientSession, ExecutionError, Measured, Outcome, SetUpPart};

/// Where the bytes of an upload are, if anywhere.
type Uploading = Box<dyn Fn() -> Option<Vec<u8>> + Send>;

/// A client's session. In a child that `fork` made each exchange is [`ExecutionError::OtherProcess`], before anything is sent.
pub struct Requester {
    plan: Arc<ClientPlan>,
    /// The source of the session's randomness, until it is set up.
    rng: Option<Prg>,
    session: Option<ClientSession>,
    prepared: Queue,
    shelf: Option<Shelf>,
    own_keys: Option<(OwnKeys, Uploading)>,
    setup: Measured,
    standing: Standing,
    /// Whether the server cannot use what it keeps.
    kept_fails: bool,
    /// Predictions that the server lets run at once.
    at_once: usize,
    /// Bytes that predictions that run at once may take.
    memory: u64,
    mark: Mark,
}

impl Requester {
    /// A session after its handshake. All randomness of the session comes from `rng`.
    #[must_use]
    pub fn new(plan: Arc<ClientPlan>, rng: Prg) -> Self {
        let prepared = Queue::new(plan.memory().client_material);
        let (rng, setup) = (Some(rng), Measured::of_setup());
        Self {
            plan,
            rng,
            session: None,
            prepared,
            shelf: None,
            own_keys: None,
            setup,
            standing: Standing::InStep,
            kept_fails: false,
            at_once: 1,
            memory: MAX_PREPARED_BYTES,
            mark: Mark::here(),
        }
    }

    /// The same, with at most so many bytes for predictions that run at once, where those of one fit.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// The same, keeping pairings and material for other sessions.
    #[must_use]
    pub fn with_shelf(mut self, shelf: Shelf) -> Self {
        self.shelf = Some(shelf);
        self
    }

    /// The same with keys of one's own, which the server asks for if it has not got them: they are read, or made again where that gives
    /// something else.
    ///
    /// # Errors
    /// [`ExecutionError::OtherKeys`] if they are for models with other needs.
    pub fn with_keys(
        mut self,
        keys: OwnKeys,
        read: impl Fn() -> Option<Vec<u8>> + Send + 'static,
    ) -> Result<Self, ExecutionError> {
        keys.check(&self.plan)?;
        self.own_keys = Some((keys, Box::new(read)));
        Ok(self)
    }

    /// What the set-up took; nothing if there was none.
    #[must_use]
    pub fn setup(&self) -> &Measured {
        &self.setup
    }

    /// Predictions that are prepared in this session and not used.
    #[must_use]
    pub fn prepared(&self) -> usize {
        self.prepared.len()
    }

    /// Predictions for which this party has kept material with this server.
    ///
    /// # Errors
    /// [`ExecutionError::Store`] if the disk fails.
    pub fn stock(&self) -> Result<usize, ExecutionError> {
        match &self.shelf {
            Some(shelf) if shelf.is_paired() => Ok(shelf.available()?.len()),
            _ => Ok(0),
        }
    }

    /// Goes on with a pairing of an earlier session, before the set-up: whether there is one that the server knows, too.
    ///
    /// # Errors
    /// [`ExecutionError::Channel`] if the server does not prove that it made it, or the connection fails; [`ExecutionError::Store`] if the disk
    /// does.
    pub fn resume(&mut self, channel: &mut dyn Channel) -> Result<bool, ExecutionError> {
        self.mark.check(SESSION)?;
        let Some(shelf) = &mut self.shelf else { return Ok(false) };
        if self.session.is_some() || shelf.is_paired() {
            return Ok(shelf.is_paired());
        }
        let offered = pairing::candidates(shelf);
        if offered.is_empty() {
            return Ok(false);
        }
        self.standing.begin()?;
        Request::Resume.send(channel, self.plan.ahead())?;
        let resumed = pairing::offer(channel, shelf, &offered)?;
        self.standing = Standing::InStep;
        Ok(resumed)
    }

    /// Set-up, unless it was done: with one's own keys; else with those of the pairing if the server has them, with new ones otherwise.
    ///
    /// # Errors
    /// [`ExecutionError`] if the peer's messages are not the ones due, or the connection fails.
    pub fn set_up(&mut self, channel: &mut dyn Channel) -> Result<(), ExecutionError> {
        let ended = self.set_up_in_turn(channel);
        self.heed(ended)
    }

    fn set_up_in_turn(&mut self, channel: &mut dyn Channel) -> Result<(), ExecutionError> {
        self.mark.check(SESSION)?;
        if self.session.is_some() {
            return Ok(());
        }
        self.standing.begin()?;
        let rng = self.rng.take().ok_or(ExecutionError::Broken)?;
        let plan = Arc::clone(&self.plan);
        let mut setup = Measured::of_setup();
        let (session, cost) = match self.known_keys(channel, &mut setup)? {
            Known::Both(keys) => ClientSession::setup_again(channel, plan, &keys, rng)?,
            Known::Here(keys) => {
                Request::SetUp.send(channel, plan.ahead())?;
                ClientSession::setup_with(channel, plan, &keys, rng)?
            }
            Known::Nowhere => {
                Request::SetUp.send(channel, plan.ahead())?;
                ClientSession::setup(channel, plan, rng)?
            }
        };
        setup.join(&cost);
        (self.session, self.setup) = (Some(session), setup);
        self.standing = Standing::InStep;
        Ok(())
    }

    /// Keys that there are before the set-up, and whether the server goes on with them.
    fn known_keys(&self, channel: &mut dyn Channel, setup: &mut Measured) -> Result<Known, ExecutionError> {
        if let Some((keys, read)) = &self.own_keys {
            let offer = |channel: &mut dyn Channel| upload::offer(channel, keys, &self.plan, read);
            let offered = self.plan.set_up_part(SetUpPart::Keys, setup, channel, offer)?;
            return Ok(if offered { Known::Both(keys.seed()) } else { Known::Here(keys.seed()) });
        }
        // Damaged keys serve nobody: new ones do.
        let kept = self.shelf.as_ref().filter(|shelf| shelf.is_paired()).and_then(|shelf| shelf.keys().ok());
        let Some(keys) = kept.flatten() else { return Ok(Known::Nowhere) };
        Request::SetUpAgain.send(channel, self.plan.ahead())?;
        Ok(if is_ready(channel)? { Known::Both(keys) } else { Known::Nowhere })
    }

    /// Makes the material of one prediction.
    ///
    /// # Errors
    /// [`ExecutionError::Mismatch`] if a session would hold more than [`MAX_PREPARED`](super::MAX_PREPARED) or
    /// [`MAX_PREPARED_BYTES`](super::MAX_PREPARED_BYTES); [`ExecutionError::TooMuchAhead`] if this party would hold more
    /// than its memory; [`ChannelError::Refused`] with [`Refusal::Material`] if the server would; as [`Self::set_up`].
    pub fn prepare(&mut self, channel: &mut dyn Channel) -> Result<(), ExecutionError> {
        let ended = self.prepare_in_turn(channel);
        self.heed(ended)
    }

    fn prepare_in_turn(&mut self, channel: &mut dyn Channel) -> Result<(), ExecutionError> {
        self.mark.check(SESSION)?;
        self.check_whole()?;
        if !self.prepared.has_room() {
            return Err(ExecutionError::Mismatch {
                what: "more prepared predictions than a session may hold",
            });
        }
        self.set_up(channel)?;
        self.standing.begin()?;
        Request::Prepare.send(channel, self.plan.ahead())?;
        self.prepared.put(made_by(&mut self.session)?.prepare(channel)?);
        self.standing = Standing::InStep;
        Ok(())
    }

    /// Predicts, with material made in this session, earlier or now.
    ///
    /// # Errors
    /// [`ExecutionError::Mismatch`] if the input has another length; as [`Self::prepare`].
    pub fn predict(
        &mut self,
        channel: &mut dyn Channel,
        input: &[i64],
    ) -> Result<(Outcome, Vec<Measured>), ExecutionError> {
        let ended = self.predict_in_turn(channel, input);
        self.heed(ended)
    }

    fn predict_in_turn(
        &mut self,
        channel: &mut dyn Channel,
        input: &[i64],
    ) -> Result<(Outcome, Vec<Measured>), ExecutionError> {
        self.mark.check(SESSION)?;
        if self.prepared.len() == 0 {
            if !self.prepares() {
                return self.predict_unprepared_in_turn(channel, input);
            }
            self.prepare(channel)?;
        }
        let material = self.prepared.take()?;
        self.standing.begin()?;
        Request::Predict.send(channel, self.plan.ahead())?;
        let predicted = self.plan.predict(channel, material, input)?;
        self.at_once = self.at_once.min(self.prepared.len()).max(1);
        self.standing = Standing::InStep;
        Ok(predicted)
    }

    /// Whether [`Self::predict`] has a prediction's material made as a whole where none is prepared, and not run by run.
    #[must_use]
    pub fn prepares(&self) -> bool {
        !self.plan.memory().is_by_runs()
    }

    /// Checks that a prediction's material may be held as a whole: what limits say of a plan may count it run by run.
    fn check_whole(&self) -> Result<(), ExecutionError> {
        let (memory, most) = (self.plan.memory(), self.memory.min(ADDRESSABLE));
        let bytes = memory.of_client_prepared();
        if memory.is_by_runs() && bytes > most {
            return Err(ExecutionError::TooMuchAhead { bytes, most });
        }
        Ok(())
    }

    /// Predicts with material that is made run by run, each just before it is used.
    ///
    /// # Errors
    /// [`ExecutionError::Mismatch`] if the input has another length; as [`Self::set_up`].
    pub fn predict_unprepared(
        &mut self,
        channel: &mut dyn Channel,
        input: &[i64],
    ) -> Result<(Outcome, Vec<Measured>), ExecutionError> {
        let ended = self.predict_unprepared_in_turn(channel, input);
        self.heed(ended)
    }

    fn predict_unprepared_in_turn(
        &mut self,
        channel: &mut dyn Channel,
        input: &[i64],
    ) -> Result<(Outcome, Vec<Measured>), ExecutionError> {
        self.mark.check(SESSION)?;
        self.plan.check_input(input)?;
        self.set_up(channel)?;
        self.standing.begin()?;
        Request::PredictUnprepared.send(channel, self.plan.ahead())?;
        let predicted = made_by(&mut self.session)?.predict_unprepared(channel, input)?;
        self.standing = Standing::InStep;
        Ok(predicted)
    }

    /// Whether predictions can [run together](Self::predict_together) over a channel.
    #[must_use]
    pub fn can_overlap(channel: &mut dyn Channel) -> bool {
        channel.divisible().is_some()
    }

    /// How many predictions may run together now: one, or as many of those that are prepared as fit in the memory of both parties.
    #[must_use]
    pub fn most_together(&self) -> usize {
        self.fitting().min(self.at_once).min(self.prepared.len()).max(1)
    }

    /// How many predictions fit in this party's memory at once, and in what a session may take of the other's.
    fn fitting(&self) -> usize {
        most_together(&self.plan.memory(), self.memory)
    }

    /// Predicts at once, one prediction for each input, and meanwhile prepares `next` others, or as many as there is room for.
    ///
    /// # Errors
    /// [`ExecutionError::Mismatch`] if there are no inputs, more than [`Self::most_together`], or one has another length, or if the channel
    /// cannot be shared; as [`Self::prepare`]. A preparation that fails when the predictions are over takes nothing from them: the next
    /// exchange tells it. One that fails before ends them too.
    pub fn predict_together(
        &mut self,
        channel: &mut dyn Channel,
        inputs: &[&[i64]],
        next: usize,
    ) -> Result<Vec<(Outcome, Vec<Measured>)>, ExecutionError> {
        let ended = self.predict_together_in_turn(channel, inputs, next);
        self.heed(ended)
    }

    fn predict_together_in_turn(
        &mut self,
        channel: &mut dyn Channel,
        inputs: &[&[i64]],
        next: usize,
    ) -> Result<Vec<(Outcome, Vec<Measured>)>, ExecutionError> {
        self.mark.check(SESSION)?;
        if inputs.is_empty() || inputs.len() > self.most_together() {
            return Err(ExecutionError::Mismatch { what: "as many predictions at once" });
        }
        if !Self::can_overlap(channel) {
            return Err(ExecutionError::Mismatch { what: "a channel of one lane" });
        }
        inputs.iter().try_for_each(|input| self.plan.check_input(input))?;
        if self.prepared.len() == 0 {
            self.prepare(channel)?;
        }
        let preparations = next.min(self.prepared.room()).min(self.fitting()) as u8;
        let materials = self.prepared.take_for(inputs.len())?;
        self.standing.begin()?;
        Request::Together { predictions: inputs.len() as u8, preparations }
            .send(channel, self.plan.ahead())?;
        let channel = channel.divisible().ok_or(ExecutionError::Broken)?;
        let (plan, session) = (&self.plan, made_by(&mut self.session)?);
        let predict = |(material, input)| move |lane: &mut dyn Channel| plan.predict(lane, material, input);
        let prepare = |lane: &mut dyn Channel| {
            let mut counts = [0; 2];
            lane.receive_into(PREPARED, &mut counts)?;
            let [count, at_once] = counts;
            if count > preparations || !(1..=MAX_TOGETHER).contains(&at_once.into()) {
                return Err(ChannelError::Malformed { what: "number of preparations" }.into());
            }
            let prepared = (0..count).map(|_| session.prepare(lane));
            Ok((prepared.collect::<Result<Vec<_>, ExecutionError>>()?, at_once))
        };
        let predictions = materials.into_iter().zip(inputs.iter().copied()).map(predict).collect();
        let most_kept = unread::kept(plan.ahead(), inputs.len() as u8, preparations, Party::Client);
        let (predicted, prepared) = abreast(channel, most_kept, predictions, prepare)?;
        self.standing = match prepared {
            Ok((prepared, at_once)) => {
                for made in prepared {
                    self.prepared.put(made);
                }
                self.at_once = at_once.into();
                Standing::InStep
            }
            Err(error) => Standing::Failed(error),
        };
        Ok(predicted)
    }

    /// Makes the material of one prediction, which both parties keep for any later session. A pairing is made where there is none yet. What
    /// it took is returned.
    ///
    /// # Errors
    /// [`ExecutionError::NoStore`] without [`Self::with_shelf`]; [`ExecutionError::NotKept`] naming a layer whose material serves
    /// this session alone; [`ChannelError::Refused`] with [`Refusal::Material`] if the server cannot keep it, after which the session goes
    /// on; [`ExecutionError::Store`] if only this party cannot; as [`Self::set_up`].
    pub fn keep(&mut self, channel: &mut dyn Channel) -> Result<Vec<Measured>, ExecutionError> {
        let ended = self.keep_in_turn(channel);
        self.heed(ended)
    }

    fn keep_in_turn(&mut self, channel: &mut dyn Channel) -> Result<Vec<Measured>, ExecutionError> {
        self.mark.check(SESSION)?;
        self.check_whole()?;
        self.plan.check_kept()?;
        if self.shelf.is_none() {
            return Err(ExecutionError::NoStore);
        }
        self.resume(channel)?;
        self.set_up(channel)?;
        let Self { plan, session, shelf, standing, .. } = self;
        let (Some(shelf), session) = (shelf, made_by(session)?) else { return Err(ExecutionError::NoStore) };
        if !shelf.is_paired() {
            ask(channel, standing, plan.ahead(), Request::Pair)?;
            *standing = Standing::InStep;
            shelf.pair(Some(session.keys()))?;
        }
        ask(channel, standing, plan.ahead(), Request::Keep)?;
        let (id, made) = (shelf.next(), session.prepare(channel)?);
        let costs = made.costs().to_vec();
        await_ready(channel, standing)?;
        *standing = Standing::InStep;
        shelf.put(id, made, plan)?;
        Ok(costs)
    }

    /// Predicts with the oldest kept material that both parties have; none if they have none, this party has no memory for it, or the server
    /// cannot use what it has in this session. What is tried is gone from this party's stock, and from the server's, unless that cannot use it.
    ///
    /// # Errors
    /// [`ExecutionError::Mismatch`] if the input has another length; [`ExecutionError::Store`] if the disk fails; [`ExecutionError`] if the
    /// peer's messages are not the ones due, or the connection fails.
    pub fn predict_kept(
        &mut self,
        channel: &mut dyn Channel,
        input: &[i64],
    ) -> Result<Option<(Outcome, Vec<Measured>)>, ExecutionError> {
        self.mark.check(SESSION)?;
        let is_held = self.check_whole().is_ok();
        let Self { plan, shelf, standing, kept_fails, .. } = self;
        plan.check_input(input)?;
        if *kept_fails || !is_held {
            return Ok(None);
        }
        let Some(shelf) = shelf.as_mut().filter(|shelf| shelf.is_paired()) else { return Ok(None) };
        for id in shelf.available()? {
            // A session that goes on no more takes nothing from the stock.
            standing.begin()?;
            *standing = Standing::InStep;
            let material = match shelf.take(id, plan) {
                // Another process was faster, or it is lost: the next may do.
                Err(
                    ExecutionError::Store(StoreError::Absent { .. } | StoreError::Damaged { .. })
                    | ExecutionError::OtherMaterial { .. }
                    | ExecutionError::Material(_),
                ) => continue,
                taken => taken?,
            };
            standing.begin()?;
            Request::PredictKept(id).send(channel, plan.ahead())?;
            match is_ready(channel) {
                Ok(true) => {}
                Ok(false) => {
                    *standing = Standing::InStep;
                    continue;
                }
                Err(ChannelError::Refused(Refusal::Storage)) => {
                    (*standing, *kept_fails) = (Standing::InStep, true);
                    break;
                }
                Err(error) => return Err(error.into()),
            }
            let predicted = plan.predict(channel, material, input)?;
            *standing = Standing::InStep;
            return Ok(Some(predicted));
        }
        Ok(None)
    }

    /// Passes an exchange's end on. After a check that no honest server fails, the session's secrets, what is prepared, and all material kept of its
    /// pairing are gone.
    fn heed<T>(&mut self, ended: Result<T, ExecutionError>) -> Result<T, ExecutionError> {
        let beside = matches!(&self.standing, Standing::Failed(error) if error.is_dishonest());
        if beside || ended.as_ref().is_err_and(ExecutionError::is_dishonest) {
            self.session = None;
            self.prepared.clear();
            self.shelf.iter().for_each(Shelf::destroy);
        }
        ended
    }

    /// Ends the session.
    ///
    /// # Errors
    /// [`ExecutionError::Channel`] if the connection fails.
    pub fn end(self, channel: &mut dyn Channel) -> Result<(), ExecutionError> {
        self.mark.check(SESSION)?;
        Request::End.send(channel, self.plan.ahead())?;
        Ok(channel.flush()?)
    }
}

const SESSION: &str = "the session";

/// Whether the parties are at the same place.
enum Standing {
    /// They are.
    InStep,
    /// An exchange failed half-way: old messages may lie in the channel.
    OutOfStep,
    /// So did one whose error nobody has heard yet.
    Failed(ExecutionError),
}

impl Standing {
    /// An exchange counts as failed until it has succeeded.
    fn begin(&mut self) -> Result<(), ExecutionError> {
        match std::mem::replace(self, Self::OutOfStep) {
            Self::InStep => Ok(()),
            Self::OutOfStep => Err(ExecutionError::Broken),
            Self::Failed(error) => Err(error),
        }
    }
}

/// Who has the keys of a session before it is set up.
enum Known {
    Both(Material),
    Here(Material),
    Nowhere,
}

/// The session that set-up made.
fn made_by(session: &mut Option<ClientSession>) -> Result<&mut ClientSession, ExecutionError> {
    session.as_mut().ok_or(ExecutionError::Broken)
}

/// Begins an exchange that the server may refuse.
fn ask(
    channel: &mut dyn Channel,
    standing: &mut Standing,
    ahead: &Ahead,
    request: Request,
) -> Result<(), ExecutionError> {
    standing.begin()?;
    request.send(channel, ahead)?;
    await_ready(channel, standing)
}

/// Waits until the server goes on. If it does not, the exchange is at its end, and none is broken.
fn await_ready(channel: &mut dyn Channel, standing: &mut Standing) -> Result<(), ExecutionError> {
    if is_ready(channel)? {
        return Ok(());
    }
    *standing = Standing::InStep;
    Err(ChannelError::Refused(Refusal::Material).into())
}
