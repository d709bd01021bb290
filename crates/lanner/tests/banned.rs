//! Clients with certificates of a model whose clients are checked: one that cheats hears nothing more, is in the journal, and is banned, also from a server that starts again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lanner::{
    Client, CompileOptions, Entry, Error, ErrorKind, Excerpt, Line, Model, Server, ServerConfig, SetUpWatch,
    Wanted,
};
use lanner_graph::Graph;
use lanner_net::{
    ClientTls, Fingerprint, Identity, Limits, Meter, StateDirectory, TcpChannel, Transport, Trust,
};
use lanner_network::{Tensor, Tensors};
use lanner_wire::{Channel, ChannelError, Kind, Traffic};

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
        assert!(!matches!(received, Err(ChannelError::Refused(_))), "{received:?}");
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

    fn peer_certificate(&self) -> Option<Fingerprint> {
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

/// A folder with the certificates of two clients, which are authorities for themselves alone.
struct World {
    root: tempfile::TempDir,
    model: Arc<Model>,
}

impl World {
    fn new() -> Self {
        let world = Self { root: tempfile::tempdir().unwrap(), model: Arc::new(model()) };
        let certificates: String = ["one", "other"]
            .map(|client| {
                let pem = std::fs::read_to_string(world.identity_file(client)).unwrap();
                pem[pem.find("-----BEGIN CERTIFICATE").unwrap()..].to_owned()
            })
            .concat();
        std::fs::write(world.root.path().join("clients.pem"), certificates).unwrap();
        world
    }

    /// A certificate and its key.
    fn identity_file(&self, client: &str) -> PathBuf {
        let directory = StateDirectory::open(self.root.path().join(client)).unwrap();
        drop(Identity::self_signed(&directory).unwrap());
        directory.path().join("tls-identity.pem")
    }

    fn serve(&self) -> Server {
        let state: &Path = self.root.path();
        let config = ServerConfig {
            client_ca: Some(state.join("clients.pem")),
            insecure_plaintext: false,
            ..ServerConfig::plaintext(state.join("server"))
        };
        let server = Server::new(vec![("m".to_owned(), Arc::clone(&self.model))], config).unwrap();
        server.start().unwrap();
        server
    }

    fn connect(&self, server: &Server, client: &str, last: Last) -> Result<Client, Error> {
        let file = self.identity_file(client);
        let trust = Trust::Pin(server.fingerprint().unwrap().parse().unwrap());
        let tls = ClientTls::new(&trust, Some(Identity::from_files(&file, &file).unwrap())).unwrap();
        let address = server.address().parse().unwrap();
        let mut open = || {
            let channel = TcpChannel::connect(&address, &tls, Limits::default())?;
            Ok(Box::new(Peer { channel, last }) as Box<dyn Line>)
        };
        Client::over(&mut open, &Wanted::default(), &SetUpWatch::default())
    }

    fn fingerprint(&self, client: &str) -> String {
        let file = self.identity_file(client);
        Identity::from_files(&file, &file).unwrap().fingerprint().to_string()
    }
}

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
fn a_server_asks_for_certificates_or_serves_its_owner_alone() {
    let (model, state) = (Arc::new(model()), tempfile::tempdir().unwrap());
    let config = ServerConfig::plaintext(state.path());
    let models = || vec![("m".to_owned(), Arc::clone(&model))];
    let Err(error) = Server::new(models(), config.clone()) else { panic!("it needs no certificate") };
    assert_eq!(error.kind, ErrorKind::Misuse);
    assert!(error.to_string().contains("certificate"), "{error}");
    assert!(Server::new(models(), ServerConfig { own_clients: true, ..config }).is_ok());
}
