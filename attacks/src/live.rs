//! The same peers over sockets, against the façade's own server and client.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lanner::{Client, ClientConfig, Server, ServerConfig, Snapshot, WebConfig};
use lanner_net::{Limits, TcpChannel};
use lanner_primitives::Prg;
use lanner_session::handshake::{Greeting, ModelEntry, ModelRequest, Offer, answer};
use lanner_wire::{Channel, ChannelError, Kind, Refusal, Traffic};

use crate::models::Subject;
use crate::mutation::{Attack, Mutation};
use crate::script::{End, Frame, bytes_of};
use crate::session::{Conversation, Party, Victim};
use crate::verdict::Failure;
use crate::web::relay;

/// A server of some models on loopback.
pub struct Target {
    server: Server,
    secure: bool,
    /// Where its peers connect.
    address: String,
}

/// How a server parted from a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// It said that it refuses, and why.
    Refused(Refusal),
    /// It closed the connection without another word.
    Closed,
}

impl Target {
    /// Serves models without TLS; a peer may be silent for `timeout` seconds.
    #[must_use]
    pub fn plaintext(subjects: &[&Subject], timeout: f64) -> Self {
        Self::start(subjects, timeout, None, None)
    }

    /// The same, to which every peer comes through `web::relay`.
    #[must_use]
    pub fn behind_web_sockets(subjects: &[&Subject], timeout: f64) -> Self {
        let web = WebConfig {
            listen: "127.0.0.1:0".to_owned(),
            origins: Vec::new(),
            missing_origin: true,
            names: Vec::new(),
            cert: None,
            key: None,
        };
        let target = Self::start(subjects, timeout, None, Some(web));
        let address = relay(target.server.web_address().unwrap());
        Self { address, ..target }
    }

    /// Serves models with TLS; `state` is a directory for the server's key.
    #[must_use]
    pub fn secure(subjects: &[&Subject], timeout: f64, state: &Path) -> Self {
        Self::start(subjects, timeout, Some(state), None)
    }

    fn start(subjects: &[&Subject], timeout: f64, state: Option<&Path>, web: Option<WebConfig>) -> Self {
        let models =
            subjects.iter().map(|subject| (subject.model.manifest().name.clone(), subject.model.clone()));
        let config = ServerConfig {
            listen: "127.0.0.1:0".to_owned(),
            tls_cert: None,
            tls_key: None,
            client_ca: None,
            ban_after: None,
            state_dir: state.map(Path::to_owned).unwrap_or_default(),
            max_sessions: MAX_SESSIONS,
            max_material: None,
            max_stock: None,
            max_keys: None,
            share_weights: None,
            timeout: Some(timeout),
            idle: None,
            own_clients: true,
            insecure_plaintext: state.is_none(),
            web,
        };
        let server = Server::new(models.collect(), config).unwrap();
        server.start().unwrap();
        Self { address: server.address(), server, secure: state.is_some() }
    }

    /// `HOST:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.clone()
    }

    /// The server itself.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Waits until the server's counts are these: a peer sees its connection close before the server has counted it.
    ///
    /// # Panics
    /// If they are not after half a minute.
    pub fn wait_for(&self, is_so: impl Fn(&Snapshot) -> bool) {
        let start = Instant::now();
        loop {
            let stats = self.server.stats();
            if is_so(&stats) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{stats:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// What a client of this server is configured with.
    #[must_use]
    pub fn config(&self, subject: &Subject) -> ClientConfig {
        let pin = self.server.fingerprint().map(str::to_owned);
        ClientConfig {
            insecure_plaintext: !self.secure,
            pin,
            model: Some(subject.model.manifest().name.clone()),
            ..ClientConfig::plaintext(self.address())
        }
    }

    /// An honest client asks for a prediction, which must be right.
    pub fn check_serving(&self, subject: &Subject) {
        let mut client = Client::connect(&self.config(subject)).unwrap();
        let prediction = client.predict(&subject.sample).unwrap();
        match &prediction.integers {
            Some(values) => assert_eq!(values, &subject.scores),
            None => assert_eq!(prediction.label.unwrap(), lanner_network::arg_max(&subject.scores)),
        }
        client.close().unwrap();
    }

    /// A client that shakes hands honestly, then sends these bytes whatever it hears. Returns how the server parted from it.
    #[must_use]
    pub fn cheat(&self, subject: &Subject, bytes: &[u8], end: End) -> Farewell {
        let (_channel, raw) = self.shake_hands(subject);
        exchange(raw, bytes, end)
    }

    /// A client that is honest up to one message. Returns how the server parted from it, and whether the client saw no reason to leave before.
    #[must_use]
    pub fn face(&self, subject: &Subject, client: &Cheater) -> (Farewell, bool) {
        let (channel, raw) = self.shake_hands(subject);
        client.play(channel, raw)
    }

    /// A client that follows the protocol to its end, then sends these bytes and leaves. Returns how the server parted from it.
    #[must_use]
    pub fn outstay(&self, subject: &Subject, bytes: &[u8]) -> Farewell {
        let (mut channel, mut socket) = self.shake_hands(subject);
        Conversation::session(subject).party(Victim::Client)(&mut channel).unwrap();
        say(&mut socket, bytes);
        let _ = socket.shutdown(Shutdown::Write);
        parting(&mut channel)
    }

    /// A client's channel after the handshake, and its socket.
    fn shake_hands(&self, subject: &Subject) -> (TcpChannel, TcpStream) {
        let stream = TcpStream::connect(self.address()).unwrap();
        let raw = stream.try_clone().unwrap();
        let mut channel = TcpChannel::insecure_plaintext(stream, patient()).unwrap();
        let greeting = Greeting::send(&mut channel, &mut Prg::from_entropy().unwrap()).unwrap();
        let request = ModelRequest { name: subject.model.manifest().name.clone(), pin: None };
        let welcomed = greeting.request(&mut channel, None, &request).unwrap();
        let parameters = welcomed.model().commitment;
        let _agreement = welcomed.agree(&mut channel, parameters).unwrap();
        channel.flush().unwrap();
        (channel, raw)
    }

    /// A client that sends these bytes from the first on.
    #[must_use]
    pub fn shout(&self, bytes: &[u8], end: End) -> Farewell {
        exchange(TcpStream::connect(self.address()).unwrap(), bytes, end)
    }
}

/// A party that follows the protocol up to one of its messages. Checks find a peer whose messages are of another session at once, so that what
/// comes after them must be attacked by one of the same session.
pub struct Cheater {
    party: Party,
    index: usize,
    attack: Attack,
    /// Bytes that it says before the message, and what it says instead, if the message differs in nothing but that.
    before: usize,
    content: Option<Vec<u8>>,
}

impl Cheater {
    /// The peer of `victim` in a conversation of which `frames` are a record, and which changes message `index`; none if it cannot be changed
    /// in this way. After other content it goes on; otherwise it says what is in the record, and ends.
    #[must_use]
    pub fn of(
        conversation: &Conversation,
        victim: Victim,
        frames: &[Frame],
        index: usize,
        mutation: Mutation,
    ) -> Option<Self> {
        let attack = Attack::on(frames, index, mutation, conversation)?;
        let party = conversation.party(match victim {
            Victim::Client => Victim::Server,
            Victim::Server => Victim::Client,
        });
        // Kinds and lengths are those of any other session.
        let before = bytes_of(&frames[..index]).len();
        let body = || attack.bytes[before..][HEADER..][..frames[index].payload.len()].to_vec();
        let content = matches!(mutation, Mutation::Content(_)).then(body);
        Some(Self { party, index, attack, before, content })
    }

    /// What it does, and how its victim must end.
    #[must_use]
    pub const fn attack(&self) -> &Attack {
        &self.attack
    }

    /// Plays the party over a channel, which is this socket's. Returns how the peer parted from it, and whether it saw no reason to leave before.
    fn play(&self, channel: TcpChannel, mut socket: TcpStream) -> (Farewell, bool) {
        let mut line = Line { channel, cheater: self, said: 0, is_cut: false, refusal: None };
        let failure = (self.party)(&mut line).err();
        let Line { mut channel, is_cut, refusal, .. } = line;
        if let Some(refusal) = refusal {
            return (Farewell::Refused(refusal), true);
        }
        if is_cut {
            say(&mut socket, &self.attack.bytes[self.before..]);
        }
        if self.attack.end == End::Departure || (failure.is_some() && !is_cut) {
            let _ = socket.shutdown(Shutdown::Write);
        }
        (parting(&mut channel), failure.is_none() || is_cut)
    }
}

/// The channel of a party that cheats.
struct Line<'a> {
    channel: TcpChannel,
    cheater: &'a Cheater,
    said: usize,
    /// Whether the party has come to the message that it does not send.
    is_cut: bool,
    refusal: Option<Refusal>,
}

impl Line<'_> {
    fn noted<T>(&mut self, outcome: Result<T, ChannelError>) -> Result<T, ChannelError> {
        if let Err(ChannelError::Refused(refusal)) = &outcome {
            self.refusal = Some(*refusal);
        }
        outcome
    }
}

impl Channel for Line<'_> {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        let is_due = self.said == self.cheater.index;
        self.said += 1;
        let outcome = match &self.cheater.content {
            _ if !is_due => self.channel.send(kind, payload),
            Some(content) => self.channel.send(kind, content),
            None => {
                self.is_cut = true;
                self.channel.flush().and(Err(ChannelError::Disconnected))
            }
        };
        self.noted(outcome)
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        let outcome = self.channel.flush();
        self.noted(outcome)
    }

    fn receive_header(&mut self) -> Result<(Kind, usize), ChannelError> {
        let outcome = self.channel.receive_header();
        self.noted(outcome)
    }

    fn receive_body(&mut self, buffer: &mut [u8]) -> Result<(), ChannelError> {
        self.channel.receive_body(buffer)
    }

    fn traffic(&self) -> Traffic {
        self.channel.traffic()
    }

    fn allow_ahead(&mut self, bytes: usize) {
        self.channel.allow_ahead(bytes);
    }
}

/// Sends bytes beside a channel. The peer may have closed already: what it said is still to be read.
fn say(socket: &mut TcpStream, bytes: &[u8]) {
    socket.set_nonblocking(false).unwrap();
    let _ = socket.write_all(bytes);
    socket.set_nonblocking(true).unwrap();
}

/// Listens until the peer has parted.
fn parting(channel: &mut TcpChannel) -> Farewell {
    loop {
        let heard =
            channel.receive_header().and_then(|(_, length)| channel.receive_body(&mut vec![0; length]));
        match heard {
            Ok(()) => {}
            Err(ChannelError::Refused(refusal)) => return Farewell::Refused(refusal),
            Err(ChannelError::TimedOut) => panic!("the peer has not parted after {PATIENCE:?}"),
            // A connection that is reset has ended too.
            Err(_) => return Farewell::Closed,
        }
    }
}

/// What an honest server offers of a model.
#[must_use]
pub fn offer(subject: &Subject) -> Offer {
    let manifest = subject.model.manifest();
    let commitment = manifest.commitment_bytes().unwrap();
    Offer {
        model: ModelEntry { name: manifest.name.clone(), commitment },
        parameters: commitment,
        manifest: manifest.to_json().unwrap().into_bytes(),
    }
}

/// A server for one client, which makes this offer, then sends these bytes whatever it hears. Returns where it listens.
#[must_use]
pub fn impostor(offer: Offer, bytes: Vec<u8>, end: End) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let raw = stream.try_clone().unwrap();
        let mut channel = TcpChannel::insecure_plaintext(stream, Limits::default()).unwrap();
        // A client that refuses the offer has nothing more to be told.
        if answer(&mut channel, None, &[offer], &mut Prg::from_entropy().unwrap()).is_ok() {
            let _ = exchange(raw, &bytes, end);
        }
    });
    address
}

/// A server for one client, which makes this offer, then is honest up to one message. Returns where it listens, and, once its client is gone, whether it
/// saw no reason to leave before.
#[must_use]
pub fn cheating_server(offer: Offer, server: Cheater) -> (String, JoinHandle<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let raw = stream.try_clone().unwrap();
        let mut channel = TcpChannel::insecure_plaintext(stream, patient()).unwrap();
        answer(&mut channel, None, &[offer], &mut Prg::from_entropy().unwrap()).unwrap();
        server.play(channel, raw).1
    });
    (address, serving)
}

/// As [`impostor`], for a server that says these bytes from the first on.
#[must_use]
pub fn shouter(bytes: Vec<u8>, end: End) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || exchange(listener.accept().unwrap().0, &bytes, end));
    address
}

/// Runs a party over a socket, against a peer that sends these bytes whatever it hears and then ends. Returns how the party failed.
#[must_use]
pub fn suffer(party: &Party, bytes: &[u8], end: End) -> Option<Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut channel =
        TcpChannel::insecure_plaintext(listener.accept().unwrap().0, Limits::default()).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || exchange(peer, bytes, end));
        let failure = party(&mut channel).err();
        // Only then does the peer hear that nothing more comes.
        drop(channel);
        failure
    })
}

/// Sends bytes, ends, and listens until the peer has parted.
fn exchange(mut stream: TcpStream, bytes: &[u8], end: End) -> Farewell {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The peer may have closed already: what it said is still to be read.
    let _ = stream.write_all(bytes);
    if end == End::Departure {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut heard = Vec::new();
    // A connection that is reset has ended too.
    let ended = stream.read_to_end(&mut heard);
    let waiting = |error: &std::io::Error| matches!(error.kind(), std::io::ErrorKind::WouldBlock);
    assert!(!ended.is_err_and(|error| waiting(&error)), "the peer has not parted after {PATIENCE:?}");
    farewell(&heard)
}

/// The last of the frames that were heard.
fn farewell(mut heard: &[u8]) -> Farewell {
    while let Some((header, rest)) = heard.split_first_chunk::<6>() {
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let Some((body, rest)) = rest.split_at_checked(length) else { break };
        if (Kind(u16::from_le_bytes([header[4], header[5]])), rest.is_empty()) == (Kind::REFUSED, true) {
            return Farewell::Refused(Refusal::from_code(body[0]));
        }
        heard = rest;
    }
    Farewell::Closed
}

/// More than attack at once.
const MAX_SESSIONS: usize = 64;

/// A cheat's own limits: it waits for as long as its victim may.
fn patient() -> Limits {
    let mut limits = Limits::default();
    (limits.connect, limits.handshake, limits.stall) = (PATIENCE, PATIENCE, PATIENCE);
    limits
}

/// Longer than any time limit of a server under test.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of a message's header.
const HEADER: usize = 6;
