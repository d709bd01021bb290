//! The data owner's side of a served model.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lanner_net::{
    Address, ClientTls, Excerpt, Fingerprint, Identity, Limits, Proxy, TcpChannel, Transport, Trust,
};
use lanner_network::Field;
use lanner_primitives::Prg;
use lanner_process::Mark;
use lanner_session::executor::{ClientPlan, Measured, Outcome, Phase};
use lanner_session::handshake::{Greeting, HandshakeError, ModelRequest};
use lanner_session::requests::{MAX_TOGETHER, Meeting, Requester, Shelf};
use lanner_step::Party;
use lanner_store::{Limits as StockLimits, Stock, StoreError};
use lanner_wire::{ChannelError, Refusal};
use serde::Deserialize;

use crate::choice::not_served;
use crate::keys;
use crate::manifest::parse_commitment;
use crate::prediction::Phases;
use crate::progress::Watch;
use crate::set_up::SetUpWatch;
use crate::{Error, ErrorKind, LimitOptions, Manifest, Prediction, Result};

/// Where to connect, whom to trust.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientConfig {
    /// `HOST` or `HOST:PORT`.
    pub address: String,
    /// The model's name; none if the server has one model only.
    pub model: Option<String>,
    /// The fingerprint of the server's certificate.
    pub pin: Option<String>,
    /// A PEM file of authorities, instead of a pin.
    pub ca: Option<PathBuf>,
    /// The client's own certificate, for servers that ask for one.
    pub cert: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// The commitment of the model that is expected.
    pub pin_model: Option<String>,
    /// No TLS: both sides must say so.
    #[serde(default)]
    pub insecure_plaintext: bool,
    /// The URL of the HTTP proxy on the way to the server, or `none`; without it what the environment's `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
    #[serde(default)]
    pub proxy: Option<String>,
    /// Seconds to wait for the peer.
    pub timeout: Option<f64>,
    /// What the server's model may ask of this machine.
    #[serde(default)]
    pub limits: LimitOptions,
    /// Where pairings and material are kept for other sessions; without it none are.
    #[serde(default)]
    pub state_dir: Option<PathBuf>,
    /// A file that [`keygen`](crate::keygen) wrote: the session's keys, which a server is sent once. Without it each session makes its own.
    #[serde(default)]
    pub keys: Option<PathBuf>,
}

impl ClientConfig {
    /// Without TLS, for a server that has one model, whichever it is. The other ways differ from this one in some fields.
    #[must_use]
    pub fn plaintext(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            model: None,
            pin: None,
            ca: None,
            cert: None,
            key: None,
            pin_model: None,
            insecure_plaintext: true,
            proxy: None,
            timeout: None,
            limits: LimitOptions::default(),
            state_dir: None,
            keys: None,
        }
    }
}

/// A session with a server: keys are made and sent when it is opened, unless there is kept material to predict with. It belongs to the
/// process that opened it: in a child that `fork` made each call is [`ErrorKind::Misuse`], and nothing is sent, nor when it is dropped.
pub struct Client {
    channel: TcpChannel,
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
    /// Connects, shakes hands, checks the model and does the set-up.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if nothing says whom to trust, or the keys do not fit the model; [`ErrorKind::Transport`] or [`ErrorKind::Peer`] about the server.
    pub fn connect(config: &ClientConfig) -> Result<Self> {
        Self::connect_watched(config, &SetUpWatch::default())
    }

    /// The same, with a watch that tells how far it has come.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_watched(config: &ClientConfig, watched: &SetUpWatch) -> Result<Self> {
        let mark = Mark::here();
        lanner_session::use_all_cores();
        watched.begin();
        let address: Address = config.address.parse()?;
        let pin = config.pin_model.as_deref().map(parse_commitment).transpose()?;
        let keys = config.keys.as_deref().map(keys::read).transpose()?;
        let wait = limits(config.timeout)?;
        let stock = config.state_dir.as_deref().map(stock).transpose()?;
        let mut channel = open(config, &address)?;
        watched.connected(channel.meter());
        // Nonces are seen by the server: no secret comes from what makes them.
        let (mut public, rng) = (entropy()?, entropy()?);
        let request = ModelRequest { name: config.model.clone().unwrap_or_default(), pin };
        let binding = channel.binding();
        let asked = Greeting::send(&mut channel, &mut public)?.request(&mut channel, binding, &request);
        let welcomed = match asked {
            Err(HandshakeError::Channel(ChannelError::Refused(Refusal::Model))) => {
                drop(channel);
                return Err(not_served(open(config, &address), &mut public, &request));
            }
            asked => asked?,
        };
        let model = welcomed.model().clone();
        let manifest = read_manifest(welcomed.manifest(), &model.commitment, config.limits)?;
        let agreement = welcomed.agree(&mut channel, manifest.identity()?)?;
        let plan = Arc::new(ClientPlan::new(&manifest.network, &manifest.plan)?);
        let watch = Watch::new(&plan);
        let mut requester = Requester::new(Arc::clone(&plan), rng).with_memory(config.limits.limits().memory);
        if let Some((path, keys)) = config.keys.as_deref().zip(keys) {
            let upload = keys::upload_of(path);
            let with_keys = requester.with_keys(keys, move || std::fs::read(&upload).ok());
            requester = with_keys.map_err(|error| Error::from(error).at(path.display().to_string()))?;
        }
        if let Some(stock) = stock {
            let meeting = Meeting::new(&agreement, &model, peer_of(config, &address), None);
            requester = requester.with_shelf(Shelf::new(stock, meeting));
            requester.resume(&mut channel)?;
        }
        watched.agreed(&plan);
        if requester.stock()? == 0 {
            requester.set_up(&mut channel)?;
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
        (0..count).try_for_each(|_| Ok(self.requester.prepare(&mut self.channel)?))
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
            phases.add(&self.requester.keep(&mut self.channel)?);
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
            || !Requester::can_overlap(&mut self.channel)
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
        let next = follow.div_ceil(batch).min(self.fit()).saturating_sub(left);
        let inputs: Vec<&[i64]> = inputs.iter().map(|input| input.as_slice()).collect();
        drop(self.channel.take_longest_sent());
        let predicted = match inputs.as_slice() {
            [input] if next == 0 || !Requester::can_overlap(&mut self.channel) => {
                vec![self.predict_one(input)?]
            }
            [input] => match self.predict_kept(input)? {
                Some(predicted) => vec![predicted],
                None => self.requester.predict_together(&mut self.channel, &inputs, next)?,
            },
            inputs => self.requester.predict_together(&mut self.channel, inputs, next)?,
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
            None => Ok(self.requester.predict(&mut self.channel, input)?),
        }
    }

    /// One request with kept material, if there is some, and none was prepared in this session.
    fn predict_kept(&mut self, input: &[i64]) -> Result<Option<(Outcome, Vec<Measured>)>> {
        match self.requester.prepared() {
            0 => Ok(self.requester.predict_kept(&mut self.channel, input)?),
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
        Ok(self.requester.end(&mut self.channel)?)
    }
}

const CLIENT: &str = "this client";

/// A generator that the operating system seeds.
fn entropy() -> Result<Prg> {
    Prg::from_entropy().map_err(|error| Error::new(ErrorKind::Misuse, error.to_string()))
}

/// What a request took since its input was given.
fn online_seconds(costs: &[Measured]) -> f64 {
    costs.iter().filter(|cost| cost.phase == Phase::Online).map(|cost| cost.seconds).sum()
}

/// What is kept in a state directory. One whose disk fails is as good as none until something is to be kept.
fn stock(state_dir: &Path) -> Result<Arc<Stock>> {
    let stock = Stock::new(state_dir, Party::Client, StockLimits::default());
    match stock.held() {
        Err(error @ StoreError::Inherited { .. }) => Err(error.into()),
        _ => Ok(Arc::new(stock)),
    }
}

/// Where a client finds its pairings with a server again.
fn peer_of(config: &ClientConfig, address: &Address) -> String {
    match &config.pin {
        Some(pin) => pin.parse::<Fingerprint>().map_or_else(|_| pin.clone(), |pin| pin.to_string()),
        None if config.insecure_plaintext => format!("{address} without TLS"),
        None => address.to_string(),
    }
}

/// The proxy on the way to a server.
fn proxy_of(config: &ClientConfig, address: &Address) -> Result<Option<Proxy>> {
    Ok(match config.proxy.as_deref() {
        Some("none") => None,
        Some(url) => Some(url.parse()?),
        None => Proxy::of_environment(address, |name| std::env::var(name).ok())?,
    })
}

/// A connection to the server, if it is the one that is trusted.
pub(crate) fn open(config: &ClientConfig, address: &Address) -> Result<TcpChannel> {
    let limits = limits(config.timeout)?;
    let proxy = proxy_of(config, address)?;
    if config.insecure_plaintext {
        if config.pin.is_some() || config.ca.is_some() || config.cert.is_some() || config.key.is_some() {
            let error = Error::new(ErrorKind::Misuse, "a pin and certificates mean nothing without TLS");
            return Err(error.fix(format!("leave {} or the others out", Field::INSECURE_PLAINTEXT)));
        }
        return Ok(TcpChannel::connect_insecure_plaintext_through(proxy.as_ref(), address, limits)?);
    }
    let trust = match (&config.pin, &config.ca) {
        (Some(pin), None) => Trust::Pin(pin.parse()?),
        (None, Some(ca)) => Trust::Authorities(ca.clone()),
        (Some(_), Some(_)) => {
            let error = Error::new(ErrorKind::Misuse, "both a pin and a CA file are given");
            return Err(error.fix(format!("give {} or {}", Field::PIN, Field::CA)));
        }
        (None, None) => {
            let error = Error::new(ErrorKind::Misuse, "nothing says which server to trust");
            return Err(error.fix(format!(
                "give {} with the fingerprint that the server printed, or {}",
                Field::PIN,
                Field::CA
            )));
        }
    };
    let identity = match (&config.cert, &config.key) {
        (Some(cert), Some(key)) => Some(Identity::from_files(cert, key)?),
        (None, None) => None,
        _ => {
            let what = format!("{} and {} belong together", Field::CERT, Field::KEY);
            return Err(Error::new(ErrorKind::Misuse, what).fix("give both"));
        }
    };
    let tls = ClientTls::new(&trust, identity)?;
    Ok(TcpChannel::connect_through(proxy.as_ref(), address, &tls, limits)?)
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

fn read_manifest(bytes: &[u8], commitment: &[u8; 32], limits: LimitOptions) -> Result<Manifest> {
    let malformed = |what: String| {
        Error::new(ErrorKind::Peer, format!("the server's public half of the model is not usable: {what}"))
            .fix("use the same release on both sides")
    };
    let text = std::str::from_utf8(bytes).map_err(|error| malformed(error.to_string()))?;
    let manifest = Manifest::within(text, limits).map_err(|error| malformed(error.what))?;
    if manifest.commitment_bytes().map_err(|error| malformed(error.what))? != *commitment {
        return Err(malformed("its commitment is not the one announced".to_owned()));
    }
    Ok(manifest)
}
