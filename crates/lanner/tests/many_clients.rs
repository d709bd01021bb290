//! One server and many clients at once.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use lanner::{Client, ClientConfig, CompileOptions, Error, ErrorKind, Model, Server, ServerConfig};
use lanner_graph::Graph;
use lanner_network::{Tensor, Tensors};
use lanner_session::requests::Unread;

const GRAPH: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,12,12]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":null,"strides":[2,2],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu1","op":"Relu","inputs":["conv"]},
    {"name":"flat","op":"Flatten","inputs":["relu1"]},
    {"name":"fc1","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["flat"]},
    {"name":"relu2","op":"Relu","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w3","bias":null}},"inputs":["relu2"]}],"output":"fc2"}"#;

fn value(index: usize, seed: usize) -> f32 {
    ((index * 7919 + seed * 104_729) % 211) as f32 / 105.5 - 1.0
}

fn sample(seed: usize) -> Vec<f32> {
    (0..144).map(|i| value(i, 10 + seed).abs()).collect()
}

fn model() -> Model {
    let mut tensors = Tensors::default();
    let shapes: [(&str, &[usize]); 3] = [("w1", &[5, 1, 5, 5]), ("w2", &[125, 20]), ("w3", &[20, 10])];
    for (seed, (name, shape)) in shapes.into_iter().enumerate() {
        let weights = (0..shape.iter().product()).map(|i| value(i, seed)).collect();
        tensors.insert(name, Tensor::new(shape.to_vec(), weights).unwrap()).unwrap();
    }
    let options = CompileOptions {
        name: "small".to_owned(),
        mode: "gazelle".to_owned(),
        output: "logits".to_owned(),
        digits: Some(2),
        ..CompileOptions::default()
    };
    let calibration: Vec<f32> = (0..40).flat_map(sample).collect();
    Model::compile(Graph::from_json(GRAPH).unwrap(), tensors, &calibration, &options).unwrap()
}

fn serve(model: &Arc<Model>, max_sessions: usize) -> Server {
    let config = ServerConfig { max_sessions, ..config() };
    let server = Server::new(vec![("small".to_owned(), Arc::clone(model))], config).unwrap();
    server.start().unwrap();
    server
}

fn config() -> ServerConfig {
    ServerConfig { max_sessions: 4, timeout: Some(120.0), ..ServerConfig::plaintext(std::env::temp_dir()) }
}

fn connect(address: &str) -> Result<Client, Error> {
    Client::connect(&ClientConfig { timeout: Some(120.0), ..ClientConfig::plaintext(address) })
}

/// Waits until a count of the server's is there.
fn wait_for(server: &Server, condition: impl Fn(&lanner::Snapshot) -> bool) {
    while !condition(&server.stats()) {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn twenty_clients_at_once_get_their_own_results_and_one_more_is_turned_away() {
    const CLIENTS: usize = 20;
    let model = Arc::new(model());
    let server = serve(&model, CLIENTS);
    let (address, everyone) = (server.address(), Barrier::new(CLIENTS + 1));
    thread::scope(|scope| {
        for seed in 0..CLIENTS {
            let (address, everyone, model) = (&address, &everyone, &model);
            scope.spawn(move || {
                let mut client = connect(address).unwrap();
                everyone.wait();
                // The one too many is turned away.
                everyone.wait();
                let values = client.predict(&sample(seed)).unwrap().integers.unwrap();
                let truth = model.fixed(&sample(seed)).unwrap();
                assert_eq!((values, truth.overflows), (truth.scores[0].clone(), 0));
                everyone.wait();
                client.close().unwrap();
            });
        }
        everyone.wait();
        let refusal = connect(&address).err().unwrap();
        assert!(refusal.to_string().contains("busy"), "{refusal}");
        everyone.wait();
        // All sessions are open until everybody has a result.
        everyone.wait();
    });
    server.stop(30.0).unwrap();
    let stats = server.stats();
    assert_eq!((stats.sessions, stats.predictions), (CLIENTS as u64, CLIENTS as u64));
    assert_eq!((stats.refused, stats.failures), (1, 0));
}

#[test]
fn clients_share_the_memory_for_material() {
    let model = Arc::new(model());
    let built = model.manifest().plan.build().unwrap();
    let (memory, each) = (built.memory().unwrap(), built.memory().unwrap().server_material);
    // Backlog and keys.
    let session = Unread::of(&built.ahead().unwrap()).session + memory.session;
    let sent_keys = built.set_up().unwrap().encoded_keys_len().unwrap() as u64;
    let least = session + each.max(sent_keys);
    let serve = |max_material| {
        let config = ServerConfig { max_material: Some(max_material), ..config() };
        Server::new(vec![("small".to_owned(), Arc::clone(&model))], config)
    };
    let error = serve(least - 1).err().unwrap();
    assert!(error.kind == ErrorKind::Misuse && error.what.contains(&least.to_string()), "{error}");
    let server = serve(2 * (session + each)).unwrap();
    server.start().unwrap();
    let address = server.address();
    let mut first = connect(&address).unwrap();
    first.prepare(2).unwrap();
    assert_eq!(server.stats().material, session + 2 * each);
    // The first has all there is: with a prediction it makes room for one.
    let error = connect(&address).unwrap().predict(&sample(1)).err().unwrap();
    assert!(error.kind == ErrorKind::Busy && error.to_string().contains("busy"), "{error}");
    first.predict(&sample(1)).unwrap();
    wait_for(&server, |stats| stats.material == session + each);
    let mut second = connect(&address).unwrap();
    second.predict(&sample(2)).unwrap();
    second.prepare(1).unwrap();
    // Without a word.
    drop(first);
    wait_for(&server, |stats| stats.material == session + each);
    second.prepare(1).unwrap();
    second.close().unwrap();
    wait_for(&server, |stats| stats.material == 0);
    let stats = server.stats();
    assert_eq!((stats.predictions, stats.refused), (2, 1));
}

#[test]
fn sessions_have_room_for_their_keys_and_for_what_clients_send_ahead() {
    let model = Arc::new(model());
    let built = model.manifest().plan.build().unwrap();
    let (memory, backlog) = (built.memory().unwrap(), Unread::of(&built.ahead().unwrap()).session);
    let keys = memory.session;
    assert!(keys > 0 && memory.server_material < keys + backlog);
    let sent_keys = built.set_up().unwrap().encoded_keys_len().unwrap() as u64;
    // All that one session with a prediction takes, and the backlog of another, but not its keys.
    let max_material = keys + memory.server_material.max(sent_keys) + 2 * backlog;
    let config = ServerConfig { max_material: Some(max_material), ..config() };
    let server = Server::new(vec![("small".to_owned(), Arc::clone(&model))], config).unwrap();
    server.start().unwrap();
    let address = server.address();
    let mut first = connect(&address).unwrap();
    assert_eq!(server.stats().material, keys + backlog);
    first.prepare(1).unwrap();
    let error = connect(&address).err().unwrap();
    assert!(error.kind == ErrorKind::Busy, "{error}");
    wait_for(&server, |stats| {
        stats.refused == 1 && stats.material == keys + backlog + memory.server_material
    });
    first.predict(&sample(1)).unwrap();
    first.close().unwrap();
    wait_for(&server, |stats| stats.material == 0);
    connect(&address).unwrap().predict(&sample(2)).unwrap();
}

/// A client that comes back is not told that it is refused: that would be the end of its prediction, not only of its session.
#[test]
fn a_session_that_was_idle_for_long_ends_without_a_refusal() {
    let model = Arc::new(model());
    let config = ServerConfig { timeout: Some(30.0), idle: Some(1.5), ..config() };
    let server = Server::new(vec![("small".to_owned(), model)], config).unwrap();
    server.start().unwrap();
    let mut client = connect(&server.address()).unwrap();
    client.predict(&sample(1)).unwrap();
    wait_for(&server, |stats| stats.material == 0);
    let error = client.predict(&sample(2)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Transport, "{error}");
    let stats = server.stats();
    assert_eq!((stats.predictions, stats.refused, stats.failures), (1, 0, 0));
}

#[test]
fn what_is_served_while_the_server_stops_is_counted() {
    let model = Arc::new(model());
    let server = serve(&model, 4);
    let address = server.address();
    let clients = [1, 2, 3].map(|seed| {
        let mut client = connect(&address).unwrap();
        // Predicts until the server has stopped.
        thread::spawn(move || {
            (0..u32::MAX).take_while(|_| client.predict(&sample(seed)).is_ok()).count() as u64
        })
    });
    wait_for(&server, |stats| stats.predictions >= 3);
    let before = server.stats().predictions;
    server.stop(60.0).unwrap();
    let stats = server.stats();
    let served: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    assert_eq!(stats.predictions, served, "{before} before the stop");
    assert!(stats.bytes_sent > 0 && stats.bytes_received > 0);
    assert_eq!(server.stats(), stats, "nothing changes after the stop");
}
