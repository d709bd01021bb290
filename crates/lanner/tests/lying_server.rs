//! A client against servers that lie about the model or answer too late.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lanner::{Client, ClientConfig, CompileOptions, ErrorKind, Manifest, Model};
use lanner_graph::Graph;
use lanner_net::{Limits, Listener, Transport};
use lanner_network::{Tensor, Tensors};
use lanner_primitives::Prg;
use lanner_session::executor::ServedModel;
use lanner_session::handshake::{ModelEntry, Offer, answer};
use lanner_session::requests::{Request, Responder};
use lanner_session::server_loop::{Handler, Security, Server, ServerOptions, SessionInfo};

const GRAPH: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[20]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]}],"output":"fc1"}"#;

fn sample(seed: usize) -> Vec<f32> {
    (0..20).map(|i| (i * 37 + seed * 11) as f32 % 17.0 / 17.0).collect()
}

fn model(seed: usize, output: &str) -> Model {
    let weights = (0..60).map(|i| ((i * 29 + seed * 7) % 23) as f32 / 23.0 - 0.5).collect();
    let mut tensors = Tensors::default();
    tensors.insert("w1", Tensor::new(vec![20, 3], weights).unwrap()).unwrap();
    let options = CompileOptions {
        name: "m".to_owned(),
        mode: "gazelle".to_owned(),
        output: output.to_owned(),
        digits: Some(2),
        classes: Some(["benign", "malignant", "unclear"].map(str::to_owned).to_vec()),
        ..CompileOptions::default()
    };
    let calibration: Vec<f32> = (0..8).flat_map(sample).collect();
    Model::compile(Graph::from_json(GRAPH).unwrap(), tensors, &calibration, &options).unwrap()
}

/// Serves `model` under a manifest of its choice, and waits once before it answers a request.
struct Liar {
    offer: Offer,
    served: Arc<ServedModel>,
    wait: Mutex<Option<(Request, Duration)>>,
}

impl Liar {
    fn new(model: &Model, manifest: &Manifest, wait: Option<(Request, Duration)>) -> Self {
        let commitment = manifest.commitment_bytes().unwrap();
        let offer = Offer {
            model: ModelEntry { name: "m".to_owned(), commitment },
            parameters: commitment,
            manifest: manifest.to_json().unwrap().into_bytes(),
        };
        let served = Arc::new(ServedModel::new(model.network(), &model.manifest().plan).unwrap());
        Self { offer, served, wait: Mutex::new(wait) }
    }

    fn start(self) -> Server {
        let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let options = ServerOptions {
            security: Security::InsecurePlaintext,
            max_sessions: 2,
            max_material: u64::MAX,
            limits: Limits::default(),
        };
        Server::start(listener, options, self).unwrap()
    }
}

impl Handler for Liar {
    fn serve(
        &self,
        channel: &mut dyn Transport,
        _: &SessionInfo,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let binding = channel.binding();
        let (offers, mut rng) = (std::slice::from_ref(&self.offer), Prg::from_entropy()?);
        answer(channel, binding, offers, &mut rng)?;
        let mut service = Responder::new(Arc::clone(&self.served), rng);
        loop {
            let request = Responder::receive(channel)?;
            let wait = self.wait.lock().unwrap().take_if(|(when, _)| *when == request);
            if let Some((_, time)) = wait {
                std::thread::sleep(time);
            }
            if request == Request::End {
                return Ok(());
            }
            service.answer(channel, request)?;
        }
    }
}

fn config(server: &Server, pin_model: Option<String>, timeout: Option<f64>) -> ClientConfig {
    ClientConfig { pin_model, timeout, ..ClientConfig::plaintext(server.address().to_string()) }
}

#[test]
fn a_copied_commitment_over_another_model_is_refused() {
    let pin = model(1, "label").manifest().commitment.clone();
    let other = model(2, "logits");
    let mut forged = other.manifest().clone();
    forged.classes = Some(["malignant", "benign", "unclear"].map(str::to_owned).to_vec());
    forged.commitment.clone_from(&pin);
    let server = Liar::new(&other, &forged, None).start();
    let refusal = Client::connect(&config(&server, Some(pin), None)).err().unwrap();
    assert_eq!(refusal.kind, ErrorKind::Peer);
    assert!(refusal.what.contains("commitment"), "{refusal}");
}

#[test]
fn after_a_late_answer_the_session_gives_none_at_all() {
    let honest = model(1, "logits");
    for late in [Request::Prepare, Request::Predict] {
        let wait = Some((late, Duration::from_secs(3)));
        let server = Liar::new(&honest, honest.manifest(), wait).start();
        let mut client = Client::connect(&config(&server, None, Some(1.0))).unwrap();
        assert_eq!(client.predict(&sample(1)).unwrap_err().kind, ErrorKind::Transport);
        std::thread::sleep(Duration::from_secs(3));
        let refusal = client.predict(&sample(2)).unwrap_err();
        assert!(refusal.what.contains("out of step"), "{late:?}: {refusal}");
    }
}

#[test]
fn an_honest_server_is_believed() {
    let honest = model(1, "logits");
    let server = Liar::new(&honest, honest.manifest(), None).start();
    let pin = Some(honest.manifest().commitment.clone());
    let mut client = Client::connect(&config(&server, pin, None)).unwrap();
    let prediction = client.predict(&sample(3)).unwrap();
    assert_eq!(prediction.integers.as_ref(), honest.fixed(&sample(3)).unwrap().scores.first());
    assert!(prediction.class_name.is_some());
    client.close().unwrap();
}
