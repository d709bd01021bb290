//! Serves many clients at once: accepts, admits, runs a thread per session, drains at the end.
//!
//! Threat model: anybody may connect. What a connection can cost before it is a session is bounded (a count of handshakes,
//! a time and a backlog for each), sessions are bounded by their number and by the memory that they keep together, and whatever happens in one (an
//! error, a panic, a stall) ends that one alone. Logs name the session, the peer's address and the error; errors carry no secrets.

mod admission;
mod cause;
mod computations;
mod journal;
mod material;
mod metrics;
mod runs;

use std::error::Error;
use std::net::{SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lanner_net::web::{Door, Visitor};
use lanner_net::{
    AbortHandle, Limits, Listener, NetError, PeerCertificate, ServerTls, TcpChannel, Transport,
};
use lanner_process::Mark;
use lanner_store::StoreError;
use lanner_wire::{Channel, Kind, Refusal, Traffic};
use tracing::{debug, info, info_span, warn};

use admission::{Admission, Slot};
pub use cause::Cause;
pub use computations::ComputedStep;
use journal::End;
pub use journal::{Ending, Entry, Journal};
use material::Budget;
pub use material::{Exhausted, Reservation};
pub use metrics::{Metrics, Snapshot};
pub use runs::{LayerRun, Run, Runs};

use crate::executor::Measured;
use crate::handshake::HandshakeError;

/// What a server does with a client.
pub trait Handler: Send + Sync + 'static {
    /// Serves one session to its end.
    ///
    /// # Errors
    /// Whatever ends it early: it is logged, and the client hears that it was refused, without a reason. It hears that the server is
    /// busy if the error is [`Exhausted`] or [`StoreError::Taken`], and nothing at all if it cheated.
    fn serve(
        &self,
        channel: &mut dyn Transport,
        session: &SessionInfo,
    ) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// What a handler knows about the session that it serves.
pub struct SessionInfo {
    /// Counts connections from one; those that never became sessions among them.
    pub number: u64,
    /// Where the client connects from.
    pub peer: SocketAddr,
    /// The certificate that it shows, if it does.
    pub certificate: Option<PeerCertificate>,
    metrics: Arc<Metrics>,
    material: Arc<Budget>,
    slot: Slot,
    model: OnceLock<String>,
    predictions: AtomicU64,
    start: Instant,
    runs: Mutex<Runs>,
}

impl SessionInfo {
    fn new(shared: &Shared, peer: SocketAddr, certificate: Option<PeerCertificate>, slot: Slot) -> Self {
        Self {
            number: slot.number(),
            peer,
            certificate,
            metrics: Arc::clone(&shared.metrics),
            material: Arc::clone(&shared.material),
            slot,
            model: OnceLock::new(),
            predictions: AtomicU64::default(),
            start: Instant::now(),
            runs: Mutex::default(),
        }
    }

    /// Runs `wait`, which waits for the client's next request: meanwhile the server may stop without anything being lost.
    pub fn while_idle<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.slot.set_idle(true);
        let result = wait();
        self.slot.set_idle(false);
        result
    }

    /// Whether the server stops: a session should end after the prediction that it is serving.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.slot.is_stopping()
    }

    /// Bytes that all sessions together may keep.
    #[must_use]
    pub fn most_kept(&self) -> u64 {
        self.material.limit()
    }

    /// Room for a given number of bytes that the session is to keep, for as long as the reservation lives.
    ///
    /// # Errors
    /// [`Exhausted`] if all sessions together keep as much as they may.
    pub fn reserve(&self, bytes: u64) -> Result<Reservation, Exhausted> {
        self.material.reserve(bytes)
    }

    /// The same for what the session can do without, of one half of all: it waits for nobody, and leaves room for others.
    #[must_use]
    pub fn try_reserve(&self, bytes: u64) -> Option<Reservation> {
        self.material.try_reserve(bytes)
    }

    /// Notes the name of the model that the session is about.
    pub fn is_about(&self, model: &str) {
        self.model.get_or_init(|| model.to_owned());
    }

    /// Counts requests for predictions that were answered, of the model that the session is about.
    pub fn count_predictions(&self, count: u64) {
        self.predictions.fetch_add(count, Ordering::Relaxed);
        self.metrics.count_predictions(self.model(), count);
    }

    /// How long the session has lasted.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Adds what a request took that just ended, and when after the session's begin it began.
    pub fn count_computation(&self, after: Duration, computed: &[Measured]) {
        self.metrics.count_computation(self.model(), computed);
        let seconds = self.elapsed().saturating_sub(after);
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).add(after, seconds, computed);
    }

    /// The name of the model; empty before there is one.
    fn model(&self) -> &str {
        self.model.get().map_or("", String::as_str)
    }

    /// What became of the session, which is over.
    fn entry(&self, end: End, traffic: Traffic) -> Entry {
        let mut entry = Entry::new(self.number, self.peer, end).lasted(self.elapsed(), traffic);
        entry.certificate = self.certificate.map(|certificate| certificate.fingerprint.to_string());
        entry.model = self.model.get().cloned();
        entry.predictions = self.predictions.load(Ordering::Relaxed);
        entry.runs = std::mem::take(&mut self.runs.lock().unwrap_or_else(PoisonError::into_inner));
        entry
    }
}

/// How connections are secured.
#[derive(Clone)]
pub enum Security {
    /// TLS 1.3.
    Tls(ServerTls),
    /// None: everything can be read and changed on the way.
    InsecurePlaintext,
}

/// How a server serves.
#[derive(Clone)]
pub struct ServerOptions {
    /// How connections are secured.
    pub security: Security,
    /// Sessions at once; others are told that the server is busy.
    pub max_sessions: usize,
    /// Bytes of material, keys and unread bytes that all sessions together may keep; who wants more is told that the server is busy.
    pub max_material: u64,
    /// What a connection may take.
    pub limits: Limits,
}

/// How browsers come in.
pub struct Web {
    /// What they meet.
    pub door: Door,
    /// Where they connect; none if that is where all clients do, and the door shows no certificate of its own.
    pub listener: Option<Listener>,
}

/// What is known of a server that was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Busy sessions that were cut.
    pub cut: usize,
    /// The counters, with what was served while the server stopped.
    pub metrics: Snapshot,
}

/// A server that runs until it is stopped or dropped. A child that `fork` made has none of its threads, and serves nobody.
pub struct Server {
    address: SocketAddr,
    web_address: Option<SocketAddr>,
    shared: Arc<Shared>,
    accepting: Mutex<Vec<JoinHandle<()>>>,
    mark: Mark,
}

struct Shared {
    options: ServerOptions,
    door: Option<Door>,
    handler: Box<dyn Handler>,
    admission: Arc<Admission>,
    material: Arc<Budget>,
    metrics: Arc<Metrics>,
    journal: Arc<Journal>,
}

impl Server {
    /// Starts serving.
    ///
    /// # Errors
    /// [`NetError::Listen`] if no thread can be started.
    pub fn start(
        listener: Listener,
        options: ServerOptions,
        handler: impl Handler,
    ) -> Result<Self, NetError> {
        Self::start_with_web(listener, None, options, handler)
    }

    /// The same, for browsers too.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with_web(
        listener: Listener,
        web: Option<Web>,
        options: ServerOptions,
        handler: impl Handler,
    ) -> Result<Self, NetError> {
        let address = listener.address();
        let (door, beside) = web.map_or((None, None), |web| (Some(web.door), web.listener));
        let web_address = door.as_ref().map(|_| beside.as_ref().map_or(address, Listener::address));
        let admission = Admission::new(options.max_sessions);
        let material = Budget::new(options.max_material);
        let shared = Arc::new(Shared {
            options,
            door,
            handler: Box::new(handler),
            admission: Arc::new(admission),
            material: Arc::new(material),
            metrics: Arc::default(),
            journal: Arc::default(),
        });
        let start = |(listener, from): (Listener, Entrance)| {
            let (shared, address) = (Arc::clone(&shared), listener.address());
            let accept = move || accept_all(&listener, from, &shared);
            let spawned = thread::Builder::new().name("accept".into()).spawn(accept);
            spawned.map_err(|source| NetError::Listen { address: address.to_string(), source })
        };
        let all = if beside.is_none() && shared.door.is_some() { Entrance::Either } else { Entrance::Native };
        let entrances = [Some((listener, all)), beside.map(|listener| (listener, Entrance::Web))];
        let accepting = entrances.into_iter().flatten().map(start).collect::<Result<_, _>>();
        if accepting.is_err() {
            // The one that runs already sees it.
            shared.admission.stop();
        }
        let accepting = Mutex::new(accepting?);
        Ok(Self { address, web_address, shared, accepting, mark: Mark::here() })
    }

    /// Where clients connect.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where browsers connect, if they may.
    #[must_use]
    pub const fn web_address(&self) -> Option<SocketAddr> {
        self.web_address
    }

    /// The counters so far.
    #[must_use]
    pub fn metrics(&self) -> Snapshot {
        let Shared { material, admission, metrics, .. } = &*self.shared;
        Snapshot { material: material.held(), under_way: admission.sessions(), ..metrics.snapshot() }
    }

    /// What was computed for each step of each model so far.
    #[must_use]
    pub fn computed(&self) -> Vec<ComputedStep> {
        self.shared.metrics.computed()
    }

    /// What became of connections; it can be read after the server stopped, too.
    #[must_use]
    pub fn journal(&self) -> Arc<Journal> {
        Arc::clone(&self.shared.journal)
    }

    /// Accepts no more clients, ends sessions whose client has been silent for a second, lets the others finish what they
    /// serve for at most `grace`, then cuts the rest. Meanwhile it can be asked for its counters. In a child that `fork` made it does nothing.
    #[must_use = "a session that was cut is a prediction lost"]
    pub fn stop(&self, grace: Duration) -> Stopped {
        let cut = self.end(grace);
        Stopped { cut, metrics: self.metrics() }
    }

    fn end(&self, grace: Duration) -> usize {
        if !self.mark.is_here() {
            return 0;
        }
        self.shared.admission.stop();
        let accepting = std::mem::take(&mut *self.accepting.lock().unwrap_or_else(PoisonError::into_inner));
        for accepting in accepting {
            if accepting.join().is_err() {
                warn!("the accepting thread panicked");
            }
        }
        let cut = self.shared.admission.drain(Instant::now() + grace);
        info!(cut, "stopped");
        cut
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let accepting = self.accepting.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !self.mark.is_here() {
            // To let go of a thread that is not there is not allowed.
            std::mem::forget(std::mem::take(accepting));
        } else if !accepting.is_empty() {
            let _ = self.end(Duration::ZERO);
        }
    }
}

/// Who comes in at a listener.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entrance {
    Native,
    Web,
    /// Either of them, which the first bytes tell.
    Either,
}

fn accept_all(listener: &Listener, from: Entrance, shared: &Arc<Shared>) {
    while !shared.admission.is_stopping() {
        match listener.accept(ACCEPT_PATIENCE) {
            Ok(Some((stream, peer))) => start_session(shared, from, stream, peer),
            Ok(None) => {}
            Err(error) => {
                // Too many open files, for one: sessions that end give them back.
                warn!(%error, "cannot accept");
                thread::sleep(ACCEPT_PATIENCE);
            }
        }
    }
}

/// Gives a connection its thread; one that cannot have it is closed.
fn start_session(shared: &Arc<Shared>, from: Entrance, stream: TcpStream, peer: SocketAddr) {
    let abort = match AbortHandle::of(&stream) {
        Ok(abort) => abort,
        Err(error) => return warn!(%peer, %error, "cannot serve"),
    };
    let slot = match shared.admission.knock(abort) {
        Ok(slot) => slot,
        Err(number) => {
            let end = End::because(Ending::Busy, Cause::Connections, "too many connections at once");
            shared.metrics.count_refused();
            shared.journal.add(Entry::new(number, peer, end));
            return debug!(number, %peer, "too many connections at once");
        }
    };
    let shared = Arc::clone(shared);
    let spawned = thread::Builder::new().name(format!("session-{}", slot.number())).spawn(move || {
        let number = slot.number();
        let _span = info_span!("session", number).entered();
        if catch_unwind(AssertUnwindSafe(|| admit(&shared, from, stream, peer, slot))).is_err() {
            shared.metrics.count_failure();
            let end = End::because(Ending::Failed, Cause::Panic, "the session's thread panicked");
            shared.journal.add(Entry::new(number, peer, end));
            warn!(%peer, "the session's thread panicked");
        }
    });
    if let Err(error) = spawned {
        warn!(%peer, %error, "no thread for a session");
    }
}

/// The life of a connection.
fn admit(shared: &Shared, from: Entrance, stream: TcpStream, peer: SocketAddr, slot: Slot) {
    let mut channel = match secured(shared, from, stream) {
        Ok(Some(channel)) => channel,
        // It got a file of the page.
        Ok(None) => return debug!(%peer, "a page's file"),
        Err(error) => {
            shared.metrics.count_failed_handshake();
            let end = End::because(Ending::NoConnection, Cause::of_connection(&error), error.to_string());
            shared.journal.add(Entry::new(slot.number(), peer, end));
            return info!(%peer, %error, "no connection");
        }
    };
    if !slot.enter() {
        shared.metrics.count_refused();
        let end = End::because(Ending::Busy, Cause::Sessions, "all sessions are taken");
        shared.journal.add(Entry::new(slot.number(), peer, end));
        info!(%peer, "busy");
        return refuse(&mut channel, Refusal::Busy);
    }
    let session = SessionInfo::new(shared, peer, channel.peer_certificate(), slot);
    shared.metrics.count_session();
    let (end, farewell) = run(shared, &mut channel, &session);
    // A client that lingers holds up nobody's session.
    session.slot.leave();
    shared.journal.add(session.entry(end, channel.traffic()));
    match farewell {
        Farewell::Refusal(refusal) => refuse(&mut channel, refusal),
        // That the client left first is no failure.
        Farewell::Close => drop(channel.close(CLOSE_PATIENCE)),
        Farewell::Silence => {}
    }
    let traffic = channel.traffic();
    shared.metrics.count_traffic(traffic);
    info!(%peer, sent = traffic.sent, received = traffic.received, "session ended");
}

/// The channel of a connection; none if a browser asked for a file, and has it.
fn secured(shared: &Shared, from: Entrance, stream: TcpStream) -> Result<Option<TcpChannel>, NetError> {
    let ServerOptions { security, limits, .. } = &shared.options;
    let is_web = match from {
        Entrance::Native => false,
        Entrance::Web => true,
        Entrance::Either => Door::is_wanted(&stream, *limits)?,
    };
    let door = shared.door.as_ref().filter(|_| is_web);
    let channel = match (door, security) {
        (None, Security::Tls(tls)) => TcpChannel::accept(stream, tls, *limits),
        (None, Security::InsecurePlaintext) => TcpChannel::insecure_plaintext(stream, *limits),
        (Some(door), security) => match (door.answer(stream, *limits)?, security) {
            (Visitor::Gone, _) => return Ok(None),
            (Visitor::Line(line), Security::Tls(tls)) => TcpChannel::accept_web(*line, tls, *limits),
            (Visitor::Line(line), Security::InsecurePlaintext) => {
                TcpChannel::insecure_plaintext_web(*line, *limits)
            }
        },
    };
    channel.map(Some)
}

/// What a client hears at the end of its session.
enum Farewell {
    /// That it is refused.
    Refusal(Refusal),
    /// No more than the end: it has what it came for, or heard already why not.
    Close,
    /// Not even that: it failed a check that no honest client fails, and the connection is gone.
    Silence,
}

/// Runs the handler; whatever it does stays within its session. Returns how it ended, and what the client is to hear of it.
fn run(shared: &Shared, channel: &mut TcpChannel, session: &SessionInfo) -> (End, Farewell) {
    let peer = &session.peer;
    info!(%peer, "session");
    let failed = match catch_unwind(AssertUnwindSafe(|| shared.handler.serve(channel, session))) {
        Ok(Ok(())) => return (End::done(), Farewell::Close),
        // A session that was cut while it waited has lost nothing.
        Ok(Err(error)) if session.is_stopping() && Cause::of_session(&*error) != Cause::Cheating => {
            info!(%peer, %error, "session ended by the stop");
            let end = End { ending: Ending::Stopped, cause: None, reason: error.to_string() };
            return (end, Farewell::Refusal(Refusal::Refused));
        }
        Ok(Err(error)) if is_busy(&*error) => {
            shared.metrics.count_refused();
            info!(%peer, %error, "busy");
            let end = End::because(Ending::Busy, Cause::of_session(&*error), error.to_string());
            return (end, Farewell::Refusal(Refusal::Busy));
        }
        Ok(Err(error)) => {
            warn!(%peer, %error, "session failed");
            let cause = Cause::of_session(&*error);
            let farewell = if error.downcast_ref().is_some_and(HandshakeError::is_told) {
                Farewell::Close
            } else if cause == Cause::Cheating {
                Farewell::Silence
            } else if cause == Cause::Material {
                Farewell::Refusal(Refusal::Material)
            } else {
                Farewell::Refusal(Refusal::Refused)
            };
            (End::because(Ending::Failed, cause, error.to_string()), farewell)
        }
        Err(_) => {
            warn!(%peer, "session panicked");
            let end = End::because(Ending::Failed, Cause::Panic, "the session panicked");
            (end, Farewell::Refusal(Refusal::Refused))
        }
    };
    shared.metrics.count_failure();
    failed
}

/// Whether a session ends because there is no room for it now.
fn is_busy(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    error.is::<Exhausted>() || matches!(error.downcast_ref(), Some(StoreError::Taken { .. }))
}

/// Tells a client that it is refused. It may be gone: that changes nothing.
fn refuse(channel: &mut TcpChannel, refusal: Refusal) {
    channel.set_stall_limit(CLOSE_PATIENCE);
    let _ = channel.send(Kind::REFUSED, &[refusal.code()]).and_then(|()| channel.close(CLOSE_PATIENCE));
}

/// How often the accepting thread looks whether it should stop.
const ACCEPT_PATIENCE: Duration = Duration::from_millis(50);
/// How long a client that is told something at the end may take to read it.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);
