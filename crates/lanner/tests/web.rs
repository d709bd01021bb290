//! The same server, asked over TCP and from a WebSocket.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use lanner::{Client, ClientConfig, CompileOptions, Error, ErrorKind, Line, Model, Server, ServerConfig};
use lanner::{SetUpWatch, Wanted, WebConfig};
use lanner_graph::Graph;
use lanner_net::{ClientTls, Limits, Pipe, Trust, TunnelChannel};
use lanner_network::{Tensor, Tensors};
use lanner_wire::ChannelError;
use tungstenite::{Message, WebSocket};

/// A WebSocket as a page has one.
struct Page {
    socket: WebSocket<TcpStream>,
    rest: Vec<u8>,
}

impl Page {
    fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        let request = tungstenite::http::Request::builder()
            .uri(format!("ws://{address}/lanner"))
            .header("Host", address)
            .header("Origin", format!("http://{address}"))
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", tungstenite::handshake::client::generate_key());
        let (socket, _) = tungstenite::client(request.body(()).unwrap(), stream).unwrap();
        Self { socket, rest: Vec::new() }
    }
}

impl Pipe for Page {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        let sent =
            bytes.chunks(1 << 18).try_for_each(|part| self.socket.send(Message::binary(part.to_vec())));
        sent.map_err(|_| ChannelError::Disconnected)
    }

    fn receive(&mut self, buffer: &mut [u8], patience: Duration) -> Result<usize, ChannelError> {
        self.socket.get_mut().set_read_timeout(Some(patience)).unwrap();
        while self.rest.is_empty() {
            match self.socket.read() {
                Ok(Message::Binary(bytes)) => self.rest = bytes.to_vec(),
                Ok(Message::Close(_)) | Err(_) => return Err(ChannelError::Disconnected),
                Ok(_) => {}
            }
        }
        let count = buffer.len().min(self.rest.len());
        buffer[..count].copy_from_slice(&self.rest[..count]);
        self.rest.drain(..count);
        Ok(count)
    }
}

const GRAPH: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[12]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["relu"]}],"output":"fc2"}"#;

fn value(index: usize, seed: usize) -> f32 {
    ((index * 7919 + seed * 104_729) % 211) as f32 / 105.5 - 1.0
}

fn sample(seed: usize) -> Vec<f32> {
    (0..12).map(|i| value(i, 10 + seed).abs()).collect()
}

fn model(mode: &str) -> Arc<Model> {
    let mut tensors = Tensors::default();
    for (seed, (name, shape)) in [("w1", [12, 8]), ("w2", [8, 3])].into_iter().enumerate() {
        let weights = (0..shape.iter().product()).map(|i| value(i, seed)).collect();
        tensors.insert(name, Tensor::new(shape.to_vec(), weights).unwrap()).unwrap();
    }
    let options = CompileOptions {
        name: mode.to_owned(),
        mode: mode.to_owned(),
        output: "logits".to_owned(),
        digits: Some(2),
        ..CompileOptions::default()
    };
    let calibration: Vec<f32> = (0..40).flat_map(sample).collect();
    Arc::new(Model::compile(Graph::from_json(GRAPH).unwrap(), tensors, &calibration, &options).unwrap())
}

/// A server under TLS of models in these modes, and the folder of its state.
fn serve(modes: &[&str]) -> (Server, tempfile::TempDir) {
    let state = tempfile::tempdir().unwrap();
    let web = WebConfig { listen: "127.0.0.1:0".to_owned(), ..WebConfig::default() };
    let plaintext = ServerConfig::plaintext(state.path().join("state"));
    let config = ServerConfig { insecure_plaintext: false, web: Some(web), ..plaintext };
    let models = modes.iter().map(|mode| ((*mode).to_owned(), model(mode))).collect();
    let server = Server::new(models, config).unwrap();
    server.start().unwrap();
    (server, state)
}

fn over_web(server: &Server, pin: &str, wanted: &Wanted) -> Result<Client, Error> {
    let address = server.web_address().unwrap();
    let tls = ClientTls::new(&Trust::Pin(pin.parse()?), None)?;
    let mut open = || {
        let page = Page::open(&address);
        let channel = TunnelChannel::connect(page, &"localhost".parse()?, &tls, Limits::default())?;
        Ok(Box::new(channel) as Box<dyn Line>)
    };
    Client::over(&mut open, wanted, &SetUpWatch::default())
}

fn over_tcp(server: &Server, model: &str) -> Client {
    let pin = Some(server.fingerprint().unwrap().to_owned());
    let plaintext = ClientConfig::plaintext(server.address());
    let config = ClientConfig { insecure_plaintext: false, pin, model: Some(model.to_owned()), ..plaintext };
    Client::connect(&config).unwrap()
}

#[test]
fn a_page_and_a_program_get_the_same_from_one_server_at_once() {
    const MODES: [&str; 2] = ["cheetah", "gazelle"];
    let (server, _state) = serve(&MODES);
    let pin = server.fingerprint().unwrap().to_owned();
    for mode in MODES {
        let wanted = Wanted { model: Some(mode.to_owned()), ..Wanted::default() };
        let (mut page, mut program) = (over_web(&server, &pin, &wanted).unwrap(), over_tcp(&server, mode));
        assert_eq!(page.manifest(), program.manifest());
        for seed in 0..2 {
            let (one, other) =
                (page.predict(&sample(seed)).unwrap(), program.predict(&sample(seed)).unwrap());
            assert_eq!(one.integers, other.integers);
            assert!(one.integers.is_some());
            // Message for message the same, but for what a WebSocket's frames add.
            assert_eq!(one.phases.online.rounds, other.phases.online.rounds);
            let told =
                [&one, &other].map(|told| told.layers.iter().map(|layer| layer.name.clone()).collect());
            let [one, other]: [Vec<String>; 2] = told;
            assert_eq!(one, other);
        }
        page.close().unwrap();
        program.close().unwrap();
    }
}

#[test]
fn what_a_page_wants_is_checked_as_a_programs() {
    let (server, _state) = serve(&["cheetah"]);
    let pin = server.fingerprint().unwrap();
    let other = format!("sha256:{}", "0".repeat(64));
    let error = over_web(&server, &other, &Wanted::default()).err().unwrap();
    assert!(error.what.contains("not the pinned"), "{error}");
    let wanted = Wanted { pin_model: Some("0".repeat(64)), ..Wanted::default() };
    let error = over_web(&server, pin, &wanted).err().unwrap();
    assert!(error.what.contains("not the pinned"), "{error}");
    let wanted = Wanted { model: Some("other".to_owned()), ..Wanted::default() };
    let error = over_web(&server, pin, &wanted).err().unwrap();
    assert_eq!(
        (error.kind, error.what.as_str()),
        (ErrorKind::Peer, "the server has no model other; it has cheetah")
    );
}

#[test]
fn a_look_at_a_model_is_a_session_that_ends_well() {
    let (server, _state) = serve(&["cheetah"]);
    let address = server.web_address().unwrap();
    let tls = ClientTls::new(&Trust::Pin(server.fingerprint().unwrap().parse().unwrap()), None).unwrap();
    let mut open = || {
        let channel =
            TunnelChannel::connect(Page::open(&address), &"localhost".parse()?, &tls, Limits::default())?;
        Ok(Box::new(channel) as Box<dyn Line>)
    };
    let manifest = Client::look(&mut open, &Wanted::default()).unwrap();
    assert_eq!(manifest.name, "cheetah");
    server.stop(2.0).unwrap();
    let (entries, _) = server.journal();
    let endings: Vec<_> = entries.iter().map(|entry| (entry.ending, entry.predictions)).collect();
    assert_eq!(endings, [(lanner_session::server_loop::Ending::Done, 0)], "{entries:?}");
}
