//! Clients with certificates of a model whose clients are checked: one that cheats hears nothing more, is in the journal, and is banned, also from a server that starts again.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use lanner::{
    Client, CompileOptions, Entry, Error, ErrorKind, Excerpt, Line, Model, Server, ServerConfig, SetUpWatch,
    Wanted,
};
use lanner_graph::Graph;
use lanner_net::{
    ClientTls, Identity, Limits, Meter, PeerCertificate, StateDirectory, TcpChannel, Transport, Trust,
};
use lanner_network::{Tensor, Tensors};
use lanner_wire::{Channel, ChannelError, Kind, Refusal, Traffic};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

const GRAPH: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[12]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["relu"]}],"output":"fc2"}"#;

/// The client's hash of what it computed.
const HASH: Kind = Kind(0x9a);

fn sample(seed: usize) -> Vec<f32> {
    (0..12).map(|i| ((i * 37 + seed * 11) % 17) as f32 / 17.0).collect()
}

fn model() -> Model {
    let mut tensors = Tensors::default();
    let shapes: [(&str, &[usize]); 2] = [("w1", &[12, 8]), ("w2", &[8, 3])];
    for (seed, (name, shape)) in shapes.into_iter().enumerate() {
        let weight = |i: usize| ((i * 29 + seed * 7) % 23) as f32 / 23.0 - 0.5;
        let weights = (0..shape.iter().product()).map(weight).collect();
        tensors.insert(name, Tensor::new(shape.to_vec(), weights).unwrap()).unwrap();
    }
    let options = CompileOptions {
        name: "m".to_owned(),
        mode: "hardened".to_owned(),
        output: "logits".to_owned(),
        input_range: Some([0.0, 1.0]),
        ..CompileOptions::default()
    };
    let calibration: Vec<f32> = (0..8).flat_map(sample).collect();
    Model::compile(Graph::from_json(GRAPH).unwrap(), tensors, &calibration, &options).unwrap()
}

/// What a client does with its last message.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    Honest,
    Changed,
    Left,
}

/// A client's connection.
struct Peer {
    channel: TcpChannel,
    last: Last,
}

impl Channel for Peer {
    fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        let mut payload = payload.to_vec();
        if kind == HASH && self.last == Last::Left {
            return Err(ChannelError::Disconnected);
        }
        if kind == HASH && self.last == Last::Changed {
            payload[0] ^= 1;
        }
        self.channel.send(kind, &payload)
    }

    fn flush(&mut self) -> Result<(), ChannelError> {
        self.channel.flush()
    }

    fn receive_header(&mut self) -> Result<(Kind, usize), ChannelError> {
        let received = self.channel.receive_header();
        // Who cheated, or is banned, hears no reason.
        let is_told = |refusal: &Refusal| *refusal != Refusal::Busy;
        assert!(
            !matches!(&received, Err(ChannelError::Refused(refusal)) if is_told(refusal)),
            "{received:?}"
        );
        received
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

impl Transport for Peer {
    fn binding(&self) -> Option<[u8; 32]> {
        self.channel.binding()
    }

    fn peer_certificate(&self) -> Option<PeerCertificate> {
        self.channel.peer_certificate()
    }

    fn set_stall_limit(&mut self, limit: Duration) {
        self.channel.set_stall_limit(limit);
    }

    fn close(&mut self, patience: Duration) -> Result<(), ChannelError> {
        self.channel.close(patience)
    }
}

impl Line for Peer {
    fn meter(&self) -> Meter {
        self.channel.meter()
    }

    fn take_longest_sent(&mut self) -> Excerpt {
        self.channel.take_longest_sent()
    }
}

/// A folder with an authority, and the clients that it knows.
struct World {
    root: tempfile::TempDir,
    model: Arc<Model>,
    issuer: Issuer<'static, KeyPair>,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        std::fs::write(root.path().join("clients.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        let world = Self { root, model: Arc::new(model()), issuer: Issuer::new(params, key) };
        for client in ["one", "other"] {
            let key = KeyPair::generate().unwrap();
            std::fs::write(world.path(client, "key"), key.serialize_pem()).unwrap();
            world.issue(client, &key);
        }
        world
    }

    fn path(&self, client: &str, what: &str) -> PathBuf {
        self.root.path().join(format!("{client}.{what}"))
    }

    /// Gives a client a certificate of a key.
    fn issue(&self, client: &str, key: &KeyPair) {
        let params = CertificateParams::new(vec![client.to_owned()]).unwrap();
        let certificate = params.signed_by(key, &self.issuer).unwrap();
        std::fs::write(self.path(client, "der"), certificate.der()).unwrap();
        std::fs::write(self.path(client, "crt"), certificate.pem()).unwrap();
    }

    /// Gives a client a new certificate of its key.
    fn issue_again(&self, client: &str) {
        let key = std::fs::read_to_string(self.path(client, "key")).unwrap();
        self.issue(client, &KeyPair::from_pem(&key).unwrap());
    }

    /// Puts another form of a client's certificate in its place, which says the same and is as valid.
    fn change_form(&self, client: &str) {
        let other = other_form(&std::fs::read(self.path(client, "der")).unwrap());
        let text = BASE64_STANDARD.encode(other);
        let pem = format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
        std::fs::write(self.path(client, "crt"), pem).unwrap();
    }

    fn identity(&self, client: &str) -> Identity {
        Identity::from_files(&self.path(client, "crt"), &self.path(client, "key")).unwrap()
    }

    fn serve(&self) -> Server {
        self.serve_within(None)
    }

    /// The same, where clients may be silent for so many seconds.
    fn serve_within(&self, timeout: Option<f64>) -> Server {
        let state: &Path = self.root.path();
        let config = ServerConfig {
            client_ca: Some(state.join("clients.pem")),
            insecure_plaintext: false,
            timeout,
            ..ServerConfig::plaintext(state.join("server"))
        };
        let server = Server::new(vec![("m".to_owned(), Arc::clone(&self.model))], config).unwrap();
        server.start().unwrap();
        server
    }

    fn connect(&self, server: &Server, client: &str, last: Last) -> Result<Client, Error> {
        let trust = Trust::Pin(server.fingerprint().unwrap().parse().unwrap());
        let tls = ClientTls::new(&trust, Some(self.identity(client))).unwrap();
        let address = server.address().parse().unwrap();
        let mut open = || {
            let channel = TcpChannel::connect(&address, &tls, Limits::default())?;
            Ok(Box::new(Peer { channel, last }) as Box<dyn Line>)
        };
        Client::over(&mut open, &Wanted::default(), &SetUpWatch::default())
    }

    fn fingerprint(&self, client: &str) -> String {
        self.identity(client).fingerprint().to_string()
    }
}

/// The other form of a certificate that is signed by ECDSA on P-256: its signature `(r, s)` becomes `(r, n - s)`.
fn other_form(certificate: &[u8]) -> Vec<u8> {
    let (_, content, _) = element(certificate);
    let (_, _, behind) = element(content);
    let (_, _, bits) = element(behind);
    let signed = &content[..content.len() - bits.len()];
    // No bits of the last byte are unused.
    let (_, pair, _) = element(&element(bits).1[1..]);
    let (_, r, behind) = element(pair);
    let (_, s, _) = element(behind);
    let difference = minus(&ORDER, s);
    let pair = encoded(0x30, &[encoded(0x02, r), encoded(0x02, &difference)].concat());
    encoded(0x30, &[signed, &encoded(0x03, &[&[0], &pair[..]].concat())].concat())
}

/// The first element in DER: its tag, its content, and what is behind it.
fn element(bytes: &[u8]) -> (u8, &[u8], &[u8]) {
    let digits = usize::from(bytes[1].saturating_sub(0x80));
    let length = match digits {
        0 => usize::from(bytes[1]),
        _ => bytes[2..2 + digits].iter().fold(0, |length, digit| length << 8 | usize::from(*digit)),
    };
    let (content, behind) = bytes[2 + digits..].split_at(length);
    (bytes[0], content, behind)
}

fn encoded(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut all = vec![tag];
    match content.len() {
        length if length < 0x80 => all.push(length as u8),
        length if length < 0x100 => all.extend([0x81, length as u8]),
        length => all.extend([0x82, (length >> 8) as u8, length as u8]),
    }
    all.extend_from_slice(content);
    all
}

/// A difference of positive numbers, as DER has them.
fn minus(larger: &[u8; 32], smaller: &[u8]) -> Vec<u8> {
    let (mut difference, mut borrow) = (vec![0], 0);
    for index in (0..32).rev() {
        let from_end = 32 - index;
        let digit = smaller.len().checked_sub(from_end).map_or(0, |at| smaller[at]);
        let digit = i32::from(larger[index]) - i32::from(digit) - borrow;
        borrow = i32::from(digit < 0);
        difference.insert(1, digit.rem_euclid(256) as u8);
    }
    while difference.len() > 1 && difference[0] == 0 && difference[1] < 0x80 {
        difference.remove(0);
    }
    difference
}

/// The order of P-256.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa,
    0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

/// The next entries of a server's journal.
fn entries(server: &Server, count: usize) -> Vec<Entry> {
    let mut all = Vec::new();
    while all.len() < count {
        all.extend(server.journal().0);
        std::thread::sleep(Duration::from_millis(5));
    }
    all
}

fn cause(entry: &Entry) -> String {
    serde_json::to_value(entry.cause).unwrap().as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_client_that_cheats_is_banned_from_servers_that_start_again_too() {
    let world = World::new();
    let server = world.serve();
    let expected = world.model.fixed(&sample(1)).unwrap().scores.remove(0);
    // A session that was there before, and one that breaks off before its check, which is no cheat.
    let mut beside = world.connect(&server, "one", Last::Honest).unwrap();
    assert!(world.connect(&server, "one", Last::Left).unwrap().predict(&sample(1)).is_err());
    assert_eq!(beside.predict(&sample(1)).unwrap().integers.as_ref(), Some(&expected));
    let mut cheater = world.connect(&server, "one", Last::Changed).unwrap();
    assert_eq!(cheater.predict(&sample(1)).unwrap_err().kind, ErrorKind::Transport);
    assert!(beside.predict(&sample(1)).is_err());
    let found = entries(&server, 3);
    let causes: Vec<_> = found.iter().map(cause).collect();
    assert_eq!(causes, ["unchecked", "cheating", "cheating"]);
    let one = world.fingerprint("one");
    assert!(found.iter().all(|entry| entry.certificate.as_deref() == Some(one.as_str())), "{found:?}");
    drop(server);

    let again = world.serve();
    assert!(world.connect(&again, "one", Last::Honest).is_err());
    let found = entries(&again, 1);
    assert_eq!(cause(&found[0]), "cheating");
    assert!(found[0].reason.contains("banned"), "{}", found[0].reason);
    let mut other = world.connect(&again, "other", Last::Honest).unwrap();
    assert_eq!(other.predict(&sample(1)).unwrap().integers.as_ref(), Some(&expected));
    assert_eq!(again.stats().failures, 1);
}

#[test]
fn a_ban_is_of_the_key_in_whatever_form_or_certificate() {
    let world = World::new();
    let server = world.serve();
    let first = world.fingerprint("one");
    world.change_form("one");
    let second = world.fingerprint("one");
    world.change_form("other");
    world.issue_again("other");
    assert_ne!(first, second);
    // TLS lets the other form in.
    let mut cheater = world.connect(&server, "one", Last::Changed).unwrap();
    assert!(cheater.predict(&sample(1)).is_err());
    world.issue_again("one");
    let third = world.fingerprint("one");
    assert!(first != third && second != third);
    assert!(world.connect(&server, "one", Last::Honest).is_err());
    let shown: Vec<_> = entries(&server, 2).into_iter().map(|entry| entry.certificate.unwrap()).collect();
    assert_eq!(shown, [second.clone(), third]);
    // The file has the name of the key, and the certificates that cheated are in it.
    let file = std::fs::read_dir(world.root.path().join("server/convictions")).unwrap().next();
    let content = std::fs::read_to_string(file.unwrap().unwrap().path()).unwrap();
    assert!(content.ends_with(&format!(" {second}\n")), "{content}");
    assert!(world.connect(&server, "other", Last::Honest).unwrap().predict(&sample(1)).is_ok());
}

#[test]
fn a_client_that_is_served_elsewhere_for_long_hears_that_the_server_is_busy() {
    let world = World::new();
    let server = world.serve_within(Some(4.0));
    let mut client = world.connect(&server, "one", Last::Honest).unwrap();
    client.predict(&sample(1)).unwrap();
    // As another server with the same state directory does.
    let file = std::fs::read_dir(world.root.path().join("server/convictions")).unwrap().next();
    let elsewhere = std::fs::File::open(file.unwrap().unwrap().path()).unwrap();
    elsewhere.lock().unwrap();
    let begun = Instant::now();
    assert_eq!(client.predict(&sample(1)).unwrap_err().kind, ErrorKind::Busy);
    assert!(begun.elapsed() >= Duration::from_secs(2));
    let entry = entries(&server, 1).remove(0);
    assert_eq!(
        (serde_json::to_value(entry.ending).unwrap(), cause(&entry)),
        ("busy".into(), "turn".to_owned())
    );
    elsewhere.unlock().unwrap();
    world.connect(&server, "one", Last::Honest).unwrap().predict(&sample(1)).unwrap();
}

#[test]
fn a_file_of_authorities_has_no_client_s_own_certificate_where_clients_are_banned() {
    let world = World::new();
    let directory = StateDirectory::open(world.root.path().join("self-signed")).unwrap();
    let own = Identity::self_signed(&directory).unwrap().fingerprint().to_string();
    let authority = std::fs::read_to_string(world.root.path().join("clients.pem")).unwrap();
    let identity = std::fs::read_to_string(directory.path().join("tls-identity.pem")).unwrap();
    let path = world.root.path().join("both.pem");
    std::fs::write(&path, authority + &identity[identity.find("-----BEGIN CERTIFICATE").unwrap()..]).unwrap();
    let config = |ban_after| ServerConfig {
        client_ca: Some(path.clone()),
        insecure_plaintext: false,
        ban_after,
        ..ServerConfig::plaintext(world.root.path().join("server"))
    };
    let hardened = vec![("m".to_owned(), Arc::clone(&world.model))];
    for (models, ban_after) in [(hardened, None), (Vec::new(), Some(NonZeroU32::MIN))] {
        let Err(error) = Server::new(models, config(ban_after)) else { panic!("it bans nobody for long") };
        let said = error.to_string();
        assert!(["both.pem", "certificate 2 of 2", &own].iter().all(|what| said.contains(what)), "{said}");
        assert!(error.fix.contains("authority"), "{error:?}");
    }
    // Where nobody is banned, it says who is let in.
    assert!(Server::new(Vec::new(), config(None)).is_ok());
}

#[test]
fn a_server_of_its_own_clients_serves_nobody_after_one_that_cheats() {
    let world = World::new();
    let config =
        ServerConfig { own_clients: true, ..ServerConfig::plaintext(world.root.path().join("server")) };
    let server = Server::new(vec![("m".to_owned(), Arc::clone(&world.model))], config).unwrap();
    server.start().unwrap();
    let address = server.address().parse().unwrap();
    let connect = |last| {
        let mut open = || {
            let channel = TcpChannel::connect_insecure_plaintext(&address, Limits::default())?;
            Ok(Box::new(Peer { channel, last }) as Box<dyn Line>)
        };
        Client::over(&mut open, &Wanted::default(), &SetUpWatch::default())
    };
    let mut beside = connect(Last::Honest).unwrap();
    beside.predict(&sample(1)).unwrap();
    assert!(connect(Last::Left).unwrap().predict(&sample(1)).is_err());
    beside.predict(&sample(1)).unwrap();
    assert!(connect(Last::Changed).unwrap().predict(&sample(1)).is_err());
    assert!(beside.predict(&sample(1)).is_err());
    assert!(connect(Last::Honest).is_err());
    let causes: Vec<_> = entries(&server, 4).iter().map(cause).collect();
    assert_eq!(causes, ["unchecked", "cheating", "cheating", "cheating"]);
}

#[test]
fn a_server_asks_for_certificates_or_serves_its_owner_alone() {
    let (model, state) = (Arc::new(model()), tempfile::tempdir().unwrap());
    let config = ServerConfig::plaintext(state.path());
    let models = || vec![("m".to_owned(), Arc::clone(&model))];
    let Err(error) = Server::new(models(), config.clone()) else { panic!("it needs no certificate") };
    assert_eq!(error.kind, ErrorKind::Misuse);
    assert!(error.to_string().contains("certificate"), "{error}");
    assert!(Server::new(models(), ServerConfig { own_clients: true, ..config }).is_ok());
}
