//! Material on disk between sessions: used once, whatever ends in between.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::sync::Arc;

use lanner_graph::{FixedExecutor, Network, Policy, QuantizationOptions};
use lanner_net::{StateDirectory, memory};
use lanner_plan::{Mode, Plan, plan};
use lanner_protocol::nonlinear::ot_nonlinear::Rounding;
use lanner_session::executor::{ClientPlan, ExecutionError, Outcome, ServedModel};
use lanner_session::requests::{Request, Requester, Responder};
use lanner_session::store::{Capacity, FileStore, MaterialId, Store, StoreError};
use lanner_wire::{Channel, ChannelError, Refusal};
use tempfile::TempDir;

use common::{network, rng};

const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,6,6]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["conv"]},
    {"name":"flat","op":"Flatten","inputs":["relu"]},
    {"name":"fc","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["flat"]}],"output":"fc"}"#;
const SHAPES: [(&str, &[usize]); 4] = [("w1", &[2, 1, 3, 3]), ("b1", &[2]), ("w2", &[72, 4]), ("b2", &[4])];

/// A model, an input and its label, and both parties' directories.
struct World {
    network: Network,
    plan: Plan,
    inputs: Vec<Vec<i64>>,
    labels: Vec<Outcome>,
    root: TempDir,
}

/// What a party brings to a session: its store, and what it takes the model to be.
type Brings = Option<(Arc<dyn Store>, [u8; 32])>;

const MODEL: [u8; 32] = [5; 32];

impl World {
    fn new() -> Self {
        let (network, samples) = network(JSON, &SHAPES, 36, &QuantizationOptions::powers_of_two());
        let plan = plan(network.public(), Policy::Label, Mode::Cheetah(Rounding::Exact)).unwrap();
        let inputs: Vec<_> =
            samples.iter().map(|sample| network.public().input().quantize(sample).unwrap()).collect();
        let executor = FixedExecutor::new(&network).unwrap();
        let labels = inputs.iter().map(|input| Outcome::Label(executor.run(input).unwrap().label()));
        Self { labels: labels.collect(), plan, inputs, network, root: tempfile::tempdir().unwrap() }
    }

    fn open(directory: &Path) -> Arc<dyn Store> {
        let state = StateDirectory::open(directory).unwrap();
        Arc::new(FileStore::open(&state, Capacity::default()).unwrap())
    }

    /// The stores as they are on disk: for nobody but the next session.
    fn stores(&self) -> [Arc<dyn Store>; 2] {
        ["client", "server"].map(|party| Self::open(&self.root.path().join(party)))
    }

    /// What both bring who remember everything.
    fn bring(&self) -> [Brings; 2] {
        self.stores().map(|store| Some((store, MODEL)))
    }

    /// One session between parties that are made anew, which ends well; its number makes its transcript.
    fn session<T>(
        &self,
        number: u8,
        [client, server]: [Brings; 2],
        ask: impl FnOnce(&mut Requester, &mut dyn Channel) -> T,
    ) -> T {
        let (transcript, mut channels) = ([number; 32], memory::pair());
        std::thread::scope(|scope| {
            let serving = scope.spawn(move || {
                let model = Arc::new(ServedModel::new(&self.network, &self.plan).unwrap());
                let channel = &mut channels.1;
                let mut service = Responder::start(channel, transcript, model, rng(2 * number)).unwrap();
                if let Some((store, identity)) = server {
                    service = service.with_store(store, identity);
                }
                loop {
                    match Responder::receive(channel).unwrap() {
                        Request::End => break,
                        request => service.answer(channel, request).unwrap(),
                    }
                }
            });
            let plan = Arc::new(ClientPlan::new(self.network.public(), &self.plan).unwrap());
            let channel = &mut channels.0;
            let mut requester = Requester::start(channel, transcript, plan, rng(2 * number + 1)).unwrap();
            if let Some((store, identity)) = client {
                requester = requester.with_store(store, identity);
            }
            let answer = ask(&mut requester, channel);
            requester.end(channel).unwrap();
            serving.join().unwrap();
            answer
        })
    }

    /// Keeps the material of a given number of predictions in one session.
    fn keep(&self, number: u8, brings: [Brings; 2], count: usize) -> Vec<MaterialId> {
        self.session(number, brings, |requester, channel| {
            (0..count).map(|_| requester.keep(channel).unwrap()).collect()
        })
    }

    /// A session is of use: it predicts with material of its own.
    fn check_usable(&self, requester: &mut Requester, channel: &mut dyn Channel) {
        let (label, _) = requester.predict(channel, &self.inputs[0]).unwrap();
        assert_eq!(label, self.labels[0]);
    }
}

fn is_refused<T>(result: &Result<T, ExecutionError>) -> bool {
    matches!(result, Err(ExecutionError::Channel(ChannelError::Refused(Refusal::Material))))
}

fn is_absent<T>(result: &Result<T, ExecutionError>) -> bool {
    matches!(result, Err(ExecutionError::Store(StoreError::Absent { .. })))
}

#[test]
fn what_was_kept_serves_once_after_both_have_restarted() {
    let world = World::new();
    let kept = world.keep(1, world.bring(), 2);
    assert!(world.stores().iter().all(|store| store.held().pieces == 2));

    // In another order, with another prediction between.
    world.session(2, world.bring(), |requester, channel| {
        for (id, sample) in kept.iter().rev().zip(1..) {
            let (label, costs) = requester.predict_kept(channel, *id, &world.inputs[sample]).unwrap();
            assert_eq!(label, world.labels[sample]);
            assert!(costs.iter().any(|step| step.traffic.sent > 0));
            world.check_usable(requester, channel);
        }
        assert!(is_absent(&requester.predict_kept(channel, kept[0], &world.inputs[0])));
        world.check_usable(requester, channel);
    });
    assert!(world.stores().iter().all(|store| store.held().pieces == 0));
    world.session(3, world.bring(), |requester, channel| {
        assert!(is_absent(&requester.predict_kept(channel, kept[1], &world.inputs[0])));
    });
}

#[test]
fn what_one_party_took_before_it_died_serves_nobody() {
    let world = World::new();
    let kept = world.keep(1, world.bring(), 2);
    // The server dies with the first, the client with the second, before a byte is sent.
    let [client, server] = world.stores();
    drop((server.take(kept[0]).unwrap(), client.take(kept[1]).unwrap()));
    drop((client, server));
    world.session(2, world.bring(), |requester, channel| {
        assert!(is_refused(&requester.predict_kept(channel, kept[0], &world.inputs[0])));
        assert!(is_absent(&requester.predict_kept(channel, kept[0], &world.inputs[0])), "asked for once");
        assert!(is_absent(&requester.predict_kept(channel, kept[1], &world.inputs[0])));
        world.check_usable(requester, channel);
    });
}

#[test]
fn a_name_is_given_once() {
    let world = World::new();
    world.keep(1, world.bring(), 1);
    // The same transcript again, which no handshake gives.
    world.session(1, world.bring(), |requester, channel| {
        assert!(is_refused(&requester.keep(channel)));
        world.check_usable(requester, channel);
    });
}

#[test]
fn who_has_no_store_keeps_nothing() {
    let world = World::new();
    let [client, server] = world.bring();
    world.session(1, [None, server], |requester, channel| {
        assert!(matches!(requester.keep(channel), Err(ExecutionError::NoStore)));
        world.check_usable(requester, channel);
    });
    world.session(2, [client, None], |requester, channel| {
        assert!(is_refused(&requester.keep(channel)));
        world.check_usable(requester, channel);
    });
}

#[test]
fn a_full_store_refuses_and_the_session_goes_on() {
    let world = World::new();
    let [client, _] = world.bring();
    let state = StateDirectory::open(world.root.path().join("server")).unwrap();
    let full: Arc<dyn Store> =
        Arc::new(FileStore::open(&state, Capacity { pieces: 1, bytes: 1 << 30 }).unwrap());
    world.session(1, [client, Some((full, MODEL))], |requester, channel| {
        let id = requester.keep(channel).unwrap();
        assert!(is_refused(&requester.keep(channel)));
        let (label, _) = requester.predict_kept(channel, id, &world.inputs[0]).unwrap();
        assert_eq!(label, world.labels[0]);
        requester.keep(channel).unwrap();
    });
}

#[test]
fn material_of_another_model_is_refused() {
    let world = World::new();
    let kept = world.keep(1, world.bring(), 2);
    let [client, server] = world.stores();
    world.session(2, [Some((client, MODEL)), Some((server, [6; 32]))], |requester, channel| {
        assert!(is_refused(&requester.predict_kept(channel, kept[0], &world.inputs[0])));
        world.check_usable(requester, channel);
    });
    let [client, server] = world.stores();
    world.session(3, [Some((client, [6; 32])), Some((server, MODEL))], |requester, channel| {
        let error = requester.predict_kept(channel, kept[1], &world.inputs[0]).err().unwrap();
        assert!(matches!(error, ExecutionError::OtherMaterial { what: "plan" }), "{error}");
    });
}

#[test]
fn an_input_of_another_length_costs_no_material() {
    let world = World::new();
    let kept = world.keep(1, world.bring(), 1);
    world.session(2, world.bring(), |requester, channel| {
        let error = requester.predict_kept(channel, kept[0], &[1, 2, 3]).err().unwrap();
        assert!(matches!(error, ExecutionError::Mismatch { .. }), "{error}");
        requester.predict_kept(channel, kept[0], &world.inputs[0]).unwrap();
    });
}
