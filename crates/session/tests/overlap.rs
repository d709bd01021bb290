//! Predictions that run together, while others are prepared.

use std::net::TcpListener;
use std::sync::Arc;

use lanner_net::{Limits, TcpChannel, memory};
use lanner_network::{FixedExecutor, Network, Policy};
use lanner_plan::{Mode, Plan, plan};
use lanner_session::executor::{ClientPlan, ExecutionError, Measured, Outcome, Phase, ServedModel};
use lanner_session::requests::{MAX_TOGETHER, Request, Requester, Responder, Room};
use lanner_tabula as tabula;
use lanner_transfers::Rounding;
use lanner_wire::Channel;

use crate::common::{in_rings_of, network, rng};

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

/// What a server does with a request to predict and prepare at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Server {
    /// Both.
    Roomy,
    /// It prepares nothing, since other sessions have the memory.
    Full,
    /// It predicts, and leaves in the middle of the preparation.
    Leaving,
}

impl World {
    fn of(mode: Mode) -> Self {
        let options = in_rings_of(mode);
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
        let (mut client, server_channel) = tcp();
        std::thread::scope(|scope| {
            scope.spawn(move || self.serve(server_channel, server));
            let answer = ask(&mut self.requester(), &mut client);
            drop(client);
            answer
        })
    }

    fn requester(&self) -> Requester {
        Requester::new(Arc::new(ClientPlan::new(self.network.public(), &self.plan).unwrap()), rng(1))
    }

    fn serve(&self, mut channel: impl Channel, server: Server) {
        let model = Arc::new(ServedModel::new(&self.network, &self.plan).unwrap());
        let mut service = Responder::new(model, rng(2));
        let room = if server == Server::Roomy {
            Room::MOST
        } else {
            Room { preparations: 0, at_once: 1, whole: u64::MAX }
        };
        while let Ok(request) = Responder::receive(&mut channel) {
            if request == Request::End {
                return;
            }
            if server == Server::Leaving && matches!(request, Request::Together { .. }) {
                // Its lanes' first halves alone: the client waits for the rest of the preparation in vain.
                service.answer(&mut channel, Request::Predict).unwrap_err();
                return;
            }
            service.answer_within(&mut channel, request, room).unwrap();
        }
    }
}

/// A client's and a server's end of a connection.
fn tcp() -> (TcpChannel, TcpChannel) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string().parse().unwrap();
    let client = TcpChannel::connect_insecure_plaintext(&address, Limits::default()).unwrap();
    (client, TcpChannel::insecure_plaintext(listener.accept().unwrap().0, Limits::default()).unwrap())
}

fn bytes_and_rounds(costs: &[Measured], phase: Phase) -> (u64, u64) {
    let steps = costs.iter().filter(|cost| cost.phase == phase);
    steps.fold((0, 0), |(bytes, rounds), Measured { traffic, .. }| {
        (bytes + traffic.sent + traffic.received, rounds + traffic.rounds)
    })
}

/// All inputs, as many at once as may be, and the cost of each.
fn predict_all(
    world: &World,
    together: usize,
    requester: &mut Requester,
    channel: &mut dyn Channel,
) -> Vec<Vec<Measured>> {
    let (mut costs, mut done) = (Vec::new(), 0);
    while done < world.inputs.len() {
        let (left, now) = (world.inputs.len() - done, requester.most_together());
        let now = now.min(together).min(left);
        let inputs: Vec<&[i64]> = world.inputs[done..done + now].iter().map(Vec::as_slice).collect();
        let predicted = requester.predict_together(channel, &inputs, (left - now).min(together)).unwrap();
        let (outcomes, cost): (Vec<Outcome>, Vec<_>) = predicted.into_iter().unzip();
        assert_eq!(outcomes, world.outcomes[done..done + now]);
        costs.extend(cost);
        done += now;
    }
    costs
}

#[test]
fn results_bytes_and_rounds_are_those_of_one_after_the_other() {
    for mode in MODES {
        let world = World::of(mode);
        let phases = |costs: &Vec<Measured>| {
            [Phase::Offline, Phase::Online].map(|phase| bytes_and_rounds(costs, phase))
        };
        let alone = world.session(Server::Roomy, |requester, channel| {
            let predict = |input: &Vec<i64>| phases(&requester.predict(channel, input).unwrap().1);
            world.inputs.iter().map(predict).collect::<Vec<_>>()
        });
        for together in [1, 3, MAX_TOGETHER] {
            let costs = world.session(Server::Roomy, |requester, channel| {
                predict_all(&world, together, requester, channel)
            });
            // The requests themselves are nobody's bytes where phases run at once.
            let request = Request::cost().bytes();
            let mut expected = alone.clone();
            for (number, [offline, online]) in expected.iter_mut().enumerate() {
                online.0 -= request;
                // The first is prepared alone.
                offline.0 -= if number > 0 { request } else { 0 };
            }
            assert_eq!(costs.iter().map(phases).collect::<Vec<_>>(), expected, "{mode:?} {together}");
        }
    }
}

#[test]
fn what_is_prepared_meanwhile_serves_any_prediction_once() {
    let world = World::of(Mode::Cheetah(Rounding::Exact));
    world.session(Server::Roomy, |requester, channel| {
        requester.prepare(channel).unwrap();
        for (number, (input, expected)) in world.inputs.iter().zip(&world.outcomes).enumerate() {
            let outcome = match number % 3 {
                0 => requester.predict_together(channel, &[input], 2).unwrap().remove(0).0,
                _ => requester.predict(channel, input).unwrap().0,
            };
            assert_eq!(outcome, *expected);
            assert_eq!(requester.prepared(), 2 - number % 3);
        }
    });
}

#[test]
fn a_server_without_room_predicts_and_prepares_nothing() {
    let world = World::of(Mode::Cheetah(Rounding::Exact));
    world.session(Server::Full, |requester, channel| {
        predict_all(&world, 3, requester, channel);
        assert_eq!(requester.prepared(), 0);
    });
}

#[test]
fn as_many_run_at_once_as_are_prepared_and_the_server_lets() {
    let world = World::of(Mode::Cheetah(Rounding::Exact));
    let input = world.inputs[0].as_slice();
    world.session(Server::Roomy, |requester, channel| {
        (0..3).for_each(|_| requester.prepare(channel).unwrap());
        // The server has not said that more may.
        assert_eq!((requester.prepared(), requester.most_together()), (3, 1));
        requester.predict_together(channel, &[input], 1).unwrap();
        assert_eq!((requester.prepared(), requester.most_together()), (3, 3));
        let error = requester.predict_together(channel, &[input; 4], 0).unwrap_err();
        assert!(matches!(error, ExecutionError::Mismatch { .. }), "{error}");
        requester.predict_together(channel, &[input; 3], 0).unwrap();
        assert_eq!((requester.prepared(), requester.most_together()), (0, 1));
    });
    // Where the client has memory for one, no others run beside it.
    world.session(Server::Roomy, |_, channel| {
        let mut requester = world.requester().with_memory(1);
        requester.prepare(channel).unwrap();
        requester.predict_together(channel, &[input], MAX_TOGETHER).unwrap();
        assert_eq!((requester.prepared(), requester.most_together()), (1, 1));
    });
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_sent() {
    let world = World::of(Mode::Cheetah(Rounding::Exact));
    let input = world.inputs[0].as_slice();
    world.session(Server::Roomy, |requester, channel| {
        for inputs in [vec![], vec![input; MAX_TOGETHER + 1], vec![input, &input[1..]]] {
            let error = requester.predict_together(channel, &inputs, 1).unwrap_err();
            assert!(matches!(error, ExecutionError::Mismatch { .. }), "{error}");
        }
        assert_eq!(channel.traffic().sent, 0);
        predict_all(&world, 2, requester, channel);
    });
    // A channel in memory has one lane.
    let (mut client, server) = memory::pair();
    std::thread::scope(|scope| {
        scope.spawn(|| world.serve(server, Server::Roomy));
        let mut requester = world.requester();
        assert!(!Requester::can_overlap(&mut client));
        let error = requester.predict_together(&mut client, &[input], 1).unwrap_err();
        assert!(matches!(error, ExecutionError::Mismatch { .. }), "{error}");
        assert_eq!(requester.predict(&mut client, input).unwrap().0, world.outcomes[0]);
        requester.end(&mut client).unwrap();
    });
}

#[test]
fn a_server_that_leaves_is_told_and_the_session_is_over() {
    let world = World::of(Mode::Cheetah(Rounding::Exact));
    world.session(Server::Leaving, |requester, channel| {
        let error = requester.predict_together(channel, &[&world.inputs[0]], 1).unwrap_err();
        assert!(!matches!(error, ExecutionError::Broken), "{error}");
        let error = requester.predict(channel, &world.inputs[0]).unwrap_err();
        assert!(matches!(error, ExecutionError::Broken), "{error}");
    });
}

#[test]
fn a_client_that_asks_for_more_than_was_prepared_is_refused() {
    let world = World::of(Mode::Cheetah(Rounding::Exact));
    let model = Arc::new(ServedModel::new(&world.network, &world.plan).unwrap());
    for (predictions, preparations) in [(0, 1), (1, 1), (9, 0), (1, 200)] {
        let (mut client, mut server) = tcp();
        let mut service = Responder::new(Arc::clone(&model), rng(2));
        let request = Request::Together { predictions, preparations };
        let error = service.answer(&mut server, request).unwrap_err();
        assert!(!matches!(error, ExecutionError::Broken), "{error}");
        drop(server);
        assert!(client.receive_header().is_err());
    }
}

/// Run by run, between predictions with material, and before anything was set up; an input of another length costs nothing.
#[test]
fn what_is_not_prepared_is_predicted_beside_what_is() {
    for mode in [Mode::Cheetah(Rounding::Exact), Mode::Falcon] {
        let world = World::of(mode);
        let outcomes = world.session(Server::Roomy, |requester, channel| {
            assert!(requester.prepares(), "little material is made as a whole");
            let first = requester.predict_unprepared(channel, &world.inputs[0]).unwrap().0;
            assert!(requester.predict_unprepared(channel, &[0]).is_err());
            requester.prepare(channel).unwrap();
            let second = requester.predict_unprepared(channel, &world.inputs[1]).unwrap().0;
            assert_eq!(requester.prepared(), 1, "it leaves what is prepared");
            let third = requester.predict(channel, &world.inputs[2]).unwrap().0;
            [first, second, third]
        });
        assert_eq!(outcomes[..], world.outcomes[..3]);
    }
}

#[test]
fn nothing_is_predicted_before_the_set_up() {
    let world = World::of(Mode::Falcon);
    let model = Arc::new(ServedModel::new(&world.network, &world.plan).unwrap());
    let (_client, mut server) = memory::pair();
    let mut service = Responder::new(model, rng(2));
    assert!(service.answer(&mut server, Request::PredictUnprepared).is_err());
}
