//! The data owner's side of a served model.

use std::sync::Arc;
use std::time::Duration;

use lanner_net::{Excerpt, Limits};
use lanner_primitives::Prg;
use lanner_process::Mark;
use lanner_session::executor::{ClientPlan, Measured, Outcome, Phase};
use lanner_session::handshake::{Agreement, Greeting, HandshakeError, ModelEntry, ModelRequest};
use lanner_session::requests::{MAX_TOGETHER, Requester};
use lanner_wire::{ChannelError, Refusal};
use serde::Deserialize;

use crate::choice::not_served;
use crate::line::Line;
use crate::manifest::parse_commitment;
use crate::prediction::Phases;
use crate::progress::Watch;
use crate::set_up::SetUpWatch;
use crate::{Error, ErrorKind, LimitOptions, Manifest, Prediction, Result};

/// Which model is wanted, and what it may ask of this machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    /// The model's name; none if the server has one model only.
    pub model: Option<String>,
    /// The commitment that it must have.
    pub pin_model: Option<String>,
    /// What the model may ask of this machine.
    pub limits: LimitOptions,
    /// Seconds to wait for the peer.
    pub timeout: Option<f64>,
}

impl Wanted {
    pub(crate) fn request(&self) -> Result<ModelRequest> {
        let pin = self.pin_model.as_deref().map(parse_commitment).transpose()?;
        Ok(ModelRequest { name: self.model.clone().unwrap_or_default(), pin })
    }

    /// What a connection may take.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if the time-out is not possible.
    pub fn connection(&self) -> Result<Limits> {
        limits(self.timeout)
    }
}

/// Both parties agree on a model, and nothing else has happened.
pub(crate) struct Met {
    pub(crate) channel: Box<dyn Line>,
    pub(crate) model: ModelEntry,
    pub(crate) manifest: Manifest,
    pub(crate) agreement: Agreement,
}

impl Met {
    /// Shakes hands over a connection, and over another one to ask what there is if the model is not.
    pub(crate) fn over(
        open: &mut dyn FnMut() -> Result<Box<dyn Line>>,
        request: &ModelRequest,
        limits: LimitOptions,
        watched: &SetUpWatch,
    ) -> Result<Self> {
        let mut channel = open()?;
        watched.connected(channel.meter());
        // Nonces are seen by the server: no secret comes from what makes them.
        let mut public = entropy()?;
        let binding = channel.binding();
        let asked = Greeting::send(&mut *channel, &mut public)
            .and_then(|greeting| greeting.request(&mut *channel, binding, request));
        let welcomed = match asked {
            Err(HandshakeError::Channel(ChannelError::Refused(Refusal::Model))) => {
                drop(channel);
                return Err(not_served(open(), &mut public, request));
            }
            asked => asked?,
        };
        let model = welcomed.model().clone();
        let manifest = read_manifest(welcomed.manifest(), &model.commitment, limits)?;
        let agreement = welcomed.agree(&mut *channel, manifest.identity()?)?;
        Ok(Self { channel, model, manifest, agreement })
    }
}

/// A session with a server: keys are made and sent when it is opened, unless there is kept material to predict with. It belongs to the
/// process that opened it: in a child that `fork` made each call is [`ErrorKind::Misuse`], and nothing is sent, nor when it is dropped.
pub struct Client {
    channel: Box<dyn Line>,
    manifest: Manifest,
    requester: Requester,
    watch: Watch,
    /// Seconds that the online phase of a request last took, with those that ran at the same time counted in turn.
    online: Option<f64>,
    /// Seconds that requests which run together should take at most.
    together_seconds: f64,
    longest_sent: Excerpt,
    mark: Mark,
}

impl Client {
    /// Looks at a model's public half, and ends the session.
    ///
    /// # Errors
    /// As [`Self::over`].
    pub fn look(open: &mut dyn FnMut() -> Result<Box<dyn Line>>, wanted: &Wanted) -> Result<Manifest> {
        let met = Met::over(open, &wanted.request()?, wanted.limits, &SetUpWatch::default())?;
        let Met { mut channel, manifest, .. } = met;
        let plan = Arc::new(ClientPlan::new(&manifest.network, &manifest.plan)?);
        Requester::new(plan, entropy()?).end(&mut *channel)?;
        // That the server closes first is as well.
        let _ = channel.close(Duration::ZERO);
        Ok(manifest)
    }

    /// Shakes hands over a connection that `open` makes, checks the model and does the set-up. A watch tells how far it has come. Nothing is kept
    /// for other sessions.
    ///
    /// # Errors
    /// Those of `open`; [`ErrorKind::Misuse`] if what is wanted is not possible; [`ErrorKind::Transport`] or [`ErrorKind::Peer`] about the server.
    pub fn over(
        open: &mut dyn FnMut() -> Result<Box<dyn Line>>,
        wanted: &Wanted,
        watched: &SetUpWatch,
    ) -> Result<Self> {
        let (mark, wait) = (Mark::here(), wanted.connection()?);
        watched.begin();
        let met = Met::over(open, &wanted.request()?, wanted.limits, watched)?;
        Self::set_up(met, wanted.limits, wait, mark, watched, |requester, _| Ok(requester))
    }

    /// Sets the session up, with what `furnish` gives it.
    pub(crate) fn set_up(
        mut met: Met,
        limits: LimitOptions,
        wait: Limits,
        mark: Mark,
        watched: &SetUpWatch,
        furnish: impl FnOnce(Requester, &mut Met) -> Result<Requester>,
    ) -> Result<Self> {
        let plan = Arc::new(ClientPlan::new(&met.manifest.network, &met.manifest.plan)?);
        let watch = Watch::new(&plan);
        let requester = Requester::new(Arc::clone(&plan), entropy()?).with_memory(limits.limits().memory);
        let mut requester = furnish(requester, &mut met)?;
        let Met { mut channel, manifest, .. } = met;
        watched.agreed(&plan);
        if requester.stock()? == 0 {
            requester.set_up(&mut *channel)?;
        }
        // Each waits while the server is at work for the others.
        let together_seconds = TOGETHER_SECONDS.min(wait.stall.as_secs_f64() / 2.0);
        let longest_sent = Excerpt::default();
        Ok(Self { channel, manifest, requester, watch, online: None, together_seconds, longest_sent, mark })
    }

    /// The public half of the model.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Makes the material of `count` predictions, before their inputs are known.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if the session would hold too much; [`ErrorKind::Transport`] or [`ErrorKind::Peer`] about the server.
    pub fn prepare(&mut self, count: usize) -> Result<()> {
        self.mark.check(CLIENT)?;
        (0..count).try_for_each(|_| Ok(self.requester.prepare(&mut *self.channel)?))
    }

    /// Makes the material of `count` predictions, which both parties keep until each is used, in this session or another. What it took.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] without a state directory, or if it does not fit; [`ErrorKind::Transport`] or [`ErrorKind::Peer`] about the
    /// server. What was kept before stays.
    pub fn keep(&mut self, count: usize) -> Result<Phases> {
        self.mark.check(CLIENT)?;
        let mut phases = Phases::default();
        for _ in 0..count {
            phases.add(&self.requester.keep(&mut *self.channel)?);
        }
        phases.add([self.requester.setup()]);
        Ok(phases)
    }

    /// Predictions for which this client has kept material with this server.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if the disk fails.
    pub fn stock(&self) -> Result<usize> {
        self.mark.check(CLIENT)?;
        Ok(self.requester.stock()?)
    }

    /// Predicts one sample, flattened row-major: with material that was prepared in this session, else with kept material, else with new.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if the sample does not fit; [`ErrorKind::Transport`] or [`ErrorKind::Peer`] about the server.
    pub fn predict(&mut self, sample: &[f32]) -> Result<Prediction> {
        let mut predictions = self.predict_many(&[sample], 0)?;
        Ok(predictions.remove(0))
    }

    /// What tells how far predictions have come, also while one runs.
    #[must_use]
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// How many samples one [`Self::predict_many`] should have: as many as a request holds, in as many requests as run together within
    /// some seconds. One request as long as nothing is known of them, and where there is kept material.
    ///
    /// # Errors
    /// As [`Self::stock`].
    pub fn together(&mut self) -> Result<usize> {
        self.mark.check(CLIENT)?;
        let request = self.manifest.plan.samples.count();
        if self.requester.prepared() == 0 && self.requester.stock()? > 0
            || !Requester::can_overlap(&mut *self.channel)
        {
            return Ok(request);
        }
        Ok(request * self.fit().min(self.requester.most_together()))
    }

    /// How many requests run together within some seconds; one as long as nothing is known of them.
    fn fit(&self) -> usize {
        let fit = self.online.map_or(1, |seconds| (self.together_seconds / seconds) as usize);
        fit.clamp(1, MAX_TOGETHER)
    }

    /// Predicts 1 to [`Self::together`] samples, as [`Self::predict`] does one, with as many requests at once as they take. Where other samples
    /// `follow`, material for their requests is made meanwhile.
    ///
    /// # Errors
    /// As [`Self::predict`]; [`ErrorKind::Misuse`] if there are more, or none.
    pub fn predict_many(&mut self, samples: &[&[f32]], follow: usize) -> Result<Vec<Prediction>> {
        self.mark.check(CLIENT)?;
        let batch = self.manifest.plan.samples.count();
        let requests = samples.chunks(batch).map(|together| self.manifest.request(together));
        let inputs = requests.collect::<Result<Vec<_>>>()?;
        // Enough for those that run together next, and no more: what is prepared takes its share of the connection from them.
        let left = self.requester.prepared().saturating_sub(inputs.len());
        let wanted = if self.requester.prepares() { follow.div_ceil(batch) } else { 0 };
        let next = wanted.min(self.fit()).saturating_sub(left);
        let inputs: Vec<&[i64]> = inputs.iter().map(|input| input.as_slice()).collect();
        drop(self.channel.take_longest_sent());
        let predicted = match inputs.as_slice() {
            [input] if next == 0 || !Requester::can_overlap(&mut *self.channel) => {
                vec![self.predict_one(input)?]
            }
            [input] => match self.predict_kept(input)? {
                Some(predicted) => vec![predicted],
                None => self.requester.predict_together(&mut *self.channel, &inputs, next)?,
            },
            inputs => self.requester.predict_together(&mut *self.channel, inputs, next)?,
        };
        self.longest_sent = self.channel.take_longest_sent();
        let slowest = predicted.iter().map(|(_, costs)| online_seconds(costs)).reduce(f64::max);
        self.online = slowest.map(|seconds| seconds / predicted.len() as f64);
        let (manifest, setup) = (&self.manifest, self.requester.setup());
        let told =
            predicted.into_iter().zip(samples.chunks(batch)).flat_map(|((outcome, costs), together)| {
                Prediction::of_request(manifest, outcome, together.len(), setup, &costs)
            });
        Ok(told.collect())
    }

    /// One request: with material that was prepared in this session, else with kept material, else with new.
    fn predict_one(&mut self, input: &[i64]) -> Result<(Outcome, Vec<Measured>)> {
        match self.predict_kept(input)? {
            Some(predicted) => Ok(predicted),
            None => Ok(self.requester.predict(&mut *self.channel, input)?),
        }
    }

    /// One request with kept material, if there is some, and none was prepared in this session.
    fn predict_kept(&mut self, input: &[i64]) -> Result<Option<(Outcome, Vec<Measured>)>> {
        match self.requester.prepared() {
            0 => Ok(self.requester.predict_kept(&mut *self.channel, input)?),
            _ => Ok(None),
        }
    }

    /// The beginning of the longest message that the last [`Self::predict_many`] sent: what the server got, as it is under TLS.
    #[must_use]
    pub const fn longest_sent(&self) -> &Excerpt {
        &self.longest_sent
    }

    /// Ends the session.
    ///
    /// # Errors
    /// [`ErrorKind::Transport`] if the connection is already gone.
    pub fn close(mut self) -> Result<()> {
        self.mark.check(CLIENT)?;
        Ok(self.requester.end(&mut *self.channel)?)
    }
}

const CLIENT: &str = "this client";

/// A generator that the operating system seeds.
pub(crate) fn entropy() -> Result<Prg> {
    Prg::from_entropy().map_err(|error| Error::new(ErrorKind::Misuse, error.to_string()))
}

/// What a request took since its input was given.
fn online_seconds(costs: &[Measured]) -> f64 {
    costs.iter().filter(|cost| cost.phase == Phase::Online).map(|cost| cost.seconds).sum()
}

/// The limits of a connection with a time-out in seconds.
pub(crate) fn limits(timeout: Option<f64>) -> Result<Limits> {
    let mut limits = Limits::default();
    if let Some(seconds) = timeout {
        if !(seconds > 0.0 && seconds <= LONGEST_TIMEOUT) {
            let error = Error::new(ErrorKind::Misuse, format!("a time-out of {seconds} s is not possible"));
            return Err(error.fix("give more than 0 and at most a day"));
        }
        limits.stall = Duration::from_secs_f64(seconds);
        limits.connect = limits.connect.min(limits.stall);
        limits.handshake = limits.handshake.min(limits.stall);
    }
    Ok(limits)
}

/// Seconds that requests which run together should take at most: what is lost when they fail.
const TOGETHER_SECONDS: f64 = 10.0;
/// A day, in seconds.
const LONGEST_TIMEOUT: f64 = 86_400.0;

/// How the remedy begins of what goes beyond a limit of this machine, and goes on where an option raises it.
const SMALLER: &str = "use a smaller network";
const RAISE: &str = ", or raise the limit with ";

fn read_manifest(bytes: &[u8], commitment: &[u8; 32], limits: LimitOptions) -> Result<Manifest> {
    let malformed = |what: String| {
        Error::new(ErrorKind::Peer, format!("the server's public half of the model is not usable: {what}"))
            .fix("use the same release on both sides")
    };
    let text = std::str::from_utf8(bytes).map_err(|error| malformed(error.to_string()))?;
    let manifest = Manifest::within(text, limits).map_err(|error| {
        let Some(more) = error.fix.strip_prefix(SMALLER) else { return malformed(error.what) };
        let fix = more.strip_prefix(RAISE).map_or_else(
            || "ask the server's owner for a smaller model".to_owned(),
            |option| format!("raise the limit with {option}, or ask the server's owner for a smaller model"),
        );
        Error::new(ErrorKind::Peer, error.what).fix(fix)
    })?;
    if manifest.commitment_bytes().map_err(|error| malformed(error.what))? != *commitment {
        return Err(malformed("its commitment is not the one announced".to_owned()));
    }
    Ok(manifest)
}
