//! Predictions of which each is prepared while the one before it runs.
#![allow(clippy::unwrap_used)]

mod common;

use std::net::TcpListener;
use std::sync::Arc;

use lanner_graph::{FixedExecutor, Network, Policy, QuantizationOptions};
use lanner_net::{Limits, TcpChannel, memory};
use lanner_plan::{Mode, Plan, plan};
use lanner_protocol::nonlinear::ot_nonlinear::Rounding;
use lanner_protocol::nonlinear::tabula;
use lanner_session::executor::{ClientPlan, ExecutionError, Outcome, Phase, ServedModel, StepCost};
use lanner_session::requests::{Request, Requester, Responder};
use lanner_wire::Channel;

use common::{network, rng};

const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,6,6]}],"nodes":[
    {"name":"conv","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["conv"]},
    {"name":"flat","op":"Flatten","inputs":["relu"]},
    {"name":"fc","op":{"MatMul":{"weight":"w2","bias":"b2"}},"inputs":["flat"]}],"output":"fc"}"#;
const SHAPES: [(&str, &[usize]); 4] = [("w1", &[2, 1, 3, 3]), ("b1", &[2]), ("w2", &[72, 4]), ("b2", &[4])];

const MODES: [Mode; 4] =
    [Mode::Gazelle, Mode::Falcon, Mode::Cheetah(Rounding::Exact), Mode::Tabula(tabula::Rounding::Exact)];

struct World {
    network: Network,
    plan: Plan,
    inputs: Vec<Vec<i64>>,
    outcomes: Vec<Outcome>,
}

/// What a server does with a request to predict and prepare.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Server {
    /// Both.
    Roomy,
    /// It predicts alone, since other sessions have the memory.
    Full,
    /// It predicts, and leaves in the middle of the preparation.
    Leaving,
}

impl World {
    fn of(mode: Mode) -> Self {
        let options = match mode {
            Mode::Gazelle | Mode::Falcon => QuantizationOptions::default(),
            _ => QuantizationOptions::powers_of_two(),
        };
        let (network, samples) = network(JSON, &SHAPES, 36, &options);
        let plan = plan(network.public(), Policy::Label, mode).unwrap();
        let inputs: Vec<_> =
            samples.iter().map(|sample| network.public().input().quantize(sample).unwrap()).collect();
        let executor = FixedExecutor::new(&network).unwrap();
        let outcomes = inputs.iter().map(|input| Outcome::Label(executor.run(input).unwrap().label()));
        Self { outcomes: outcomes.collect(), plan, inputs, network }
    }

    /// One session over TCP, of which the client asks what it wants.
    fn session<T>(&self, server: Server, ask: impl FnOnce(&mut Requester, &mut dyn Channel) -> T) -> T {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string().parse().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                self.serve(
                    TcpChannel::insecure_plaintext(listener.accept().unwrap().0, Limits::default()).unwrap(),
                    server,
                )
            });
            let mut channel = TcpChannel::connect_insecure_plaintext(&address, Limits::default()).unwrap();
            let answer = ask(&mut self.requester(), &mut channel);
            drop(channel);
            answer
        })
    }

    fn requester(&self) -> Requester {
        Requester::new(Arc::new(ClientPlan::new(self.network.public(), &self.plan).unwrap()), rng(1))
    }

    fn serve(&self, mut channel: impl Channel, server: Server) {
        let model = Arc::new(ServedModel::new(&self.network, &self.plan).unwrap());
        let mut service = Responder::new(model, rng(2));
        while let Ok(request) = Responder::receive(&mut channel) {
            if request == Request::End {
                return;
            }
            if request == Request::PredictAndPrepare && server == Server::Leaving {
                // Its lanes' first halves alone: the client waits for the rest of the preparation in vain.
                service.answer_within(&mut channel, Request::Predict, true).unwrap_err();
                return;
            }
            service.answer_within(&mut channel, request, server == Server::Roomy).unwrap();
        }
    }
}

fn bytes_and_rounds(costs: &[StepCost], phase: Phase) -> (u64, u64) {
    let steps = costs.iter().filter(|cost| cost.phase == phase);
    steps.fold((0, 0), |(bytes, rounds), StepCost { traffic, .. }| {
        (bytes + traffic.sent + traffic.received, rounds + traffic.rounds)
    })
}

#[test]
fn results_bytes_and_rounds_are_those_of_one_after_the_other() {
    for mode in MODES {
        let world = World::of(mode);
        let predict = |overlapping: bool| {
            world.session(Server::Roomy, |requester, channel| {
                let predictions = world.inputs.iter().zip(&world.outcomes).map(|(input, expected)| {
                    let (outcome, costs) = if overlapping {
                        requester.predict_and_prepare(channel, input).unwrap()
                    } else {
                        requester.predict(channel, input).unwrap()
                    };
                    assert_eq!(outcome, *expected);
                    assert_eq!(requester.prepared(), usize::from(overlapping));
                    [Phase::Offline, Phase::Online].map(|phase| bytes_and_rounds(&costs, phase))
                });
                predictions.collect::<Vec<_>>()
            })
        };
        // The requests themselves are nobody's bytes where two phases run at once.
        let request = Request::cost().bytes();
        let mut expected = predict(false);
        for (number, [offline, online]) in expected.iter_mut().enumerate() {
            online.0 -= request;
            offline.0 -= if number > 0 { request } else { 0 };
        }
        assert_eq!(predict(true), expected, "{mode:?}");
    }
}

#[test]
fn what_is_prepared_meanwhile_serves_any_prediction_once() {
    let world = World::of(Mode::Cheetah(Rounding::Exact));
    world.session(Server::Roomy, |requester, channel| {
        requester.prepare(channel).unwrap();
        for (number, (input, expected)) in world.inputs.iter().zip(&world.outcomes).enumerate() {
            let predicted = match number % 3 {
                0 => requester.predict_and_prepare(channel, input),
                _ => requester.predict(channel, input),
            };
            assert_eq!(predicted.unwrap().0, *expected);
            assert_eq!(requester.prepared(), usize::from(number % 3 == 0));
        }
    });
}

#[test]
fn a_server_without_room_predicts_and_prepares_nothing() {
    let world = World::of(Mode::Cheetah(Rounding::Exact));
    world.session(Server::Full, |requester, channel| {
        for (input, expected) in world.inputs.iter().zip(&world.outcomes) {
            assert_eq!(requester.predict_and_prepare(channel, input).unwrap().0, *expected);
            assert_eq!(requester.prepared(), 0);
        }
    });
}

#[test]
fn where_a_channel_cannot_be_shared_one_follows_the_other() {
    let world = World::of(Mode::Cheetah(Rounding::Exact));
    let (mut client, server) = memory::pair();
    std::thread::scope(|scope| {
        scope.spawn(|| world.serve(server, Server::Roomy));
        let mut requester = world.requester();
        for (input, expected) in world.inputs.iter().zip(&world.outcomes) {
            assert_eq!(requester.predict_and_prepare(&mut client, input).unwrap().0, *expected);
        }
        assert_eq!(requester.prepared(), 0);
        requester.end(&mut client).unwrap();
    });
}

#[test]
fn a_server_that_leaves_is_told_and_the_session_is_over() {
    let world = World::of(Mode::Cheetah(Rounding::Exact));
    world.session(Server::Leaving, |requester, channel| {
        let error = requester.predict_and_prepare(channel, &world.inputs[0]).unwrap_err();
        assert!(!matches!(error, ExecutionError::Broken), "{error}");
        let error = requester.predict(channel, &world.inputs[0]).unwrap_err();
        assert!(matches!(error, ExecutionError::Broken), "{error}");
    });
}
