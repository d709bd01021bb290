//! A session belongs to the process that has it: a child that `fork` made sends nothing in it.

use std::sync::Arc;

use lanner_net::memory;
use lanner_network::{FixedExecutor, Policy};
use lanner_plan::{Mode, plan};
use lanner_quantize::QuantizationOptions;
use lanner_session::executor::{
    ClientPlan, ClientSession, ExecutionError, Outcome, ServedModel, ServerSession,
};
use lanner_session::requests::{Request, Requester, Responder};
use lanner_testkit::{alone, in_a_fork};
use lanner_transfers::Rounding;
use lanner_wire::Channel;

use crate::common::{network, rng};

const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[12]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["relu"]}],"output":"fc2"}"#;
const SHAPES: [(&str, &[usize]); 2] = [("w1", &[12, 8]), ("w2", &[8, 4])];

fn is_others<T>(result: &Result<T, ExecutionError>) -> bool {
    matches!(result, Err(ExecutionError::OtherProcess(_)))
}

#[test]
fn a_child_begins_no_exchange_and_the_parent_goes_on() {
    alone(|| {
        let (network, samples) = network(JSON, &SHAPES, 12, &QuantizationOptions::powers_of_two());
        let plan = plan(network.public(), Policy::Label, Mode::Cheetah(Rounding::Exact)).unwrap();
        let input = network.public().input().quantize(&samples[0]).unwrap();
        let (mut at_client, mut at_server) = memory::pair();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let model = Arc::new(ServedModel::new(&network, &plan).unwrap());
                let mut service = Responder::new(model, rng(1));
                loop {
                    match Responder::receive(&mut at_server).unwrap() {
                        Request::End => break,
                        request => service.answer(&mut at_server, request).unwrap(),
                    }
                }
                let refused = || is_others(&service.answer(&mut at_server, Request::Prepare));
                assert!(in_a_fork(refused));
            });
            let client_plan = Arc::new(ClientPlan::new(network.public(), &plan).unwrap());
            let mut requester = Requester::new(client_plan, rng(2));
            let channel = &mut at_client;
            let refuses_all = |requester: &mut Requester, channel: &mut memory::MemoryChannel| {
                let before = channel.traffic();
                in_a_fork(|| {
                    let input = input.as_slice();
                    is_others(&requester.set_up(channel))
                        && is_others(&requester.prepare(channel))
                        && is_others(&requester.predict(channel, input))
                        && is_others(&requester.predict_together(channel, &[input], 0))
                        && is_others(&requester.keep(channel))
                        && is_others(&requester.predict_kept(channel, input))
                        && is_others(&requester.resume(channel))
                        && channel.traffic() == before
                })
            };
            // Before there is anything but the generator, and with masks that are prepared.
            assert!(refuses_all(&mut requester, channel));
            requester.prepare(channel).unwrap();
            requester.prepare(channel).unwrap();
            assert!(refuses_all(&mut requester, channel));
            let expected = Outcome::Label(FixedExecutor::new(&network).unwrap().run(&input).unwrap().label());
            for _ in 0..2 {
                let (outcome, _) = requester.predict(channel, &input).unwrap();
                assert_eq!(outcome, expected);
            }
            let mut ending = Some(requester);
            assert!(in_a_fork(|| is_others(&ending.take().unwrap().end(channel))));
            ending.unwrap().end(channel).unwrap();
        });
    });
}

#[test]
fn material_is_used_in_no_child_of_the_process_that_made_it() {
    alone(|| {
        let (network, samples) = network(JSON, &SHAPES, 12, &QuantizationOptions::powers_of_two());
        let plan = plan(network.public(), Policy::Label, Mode::Cheetah(Rounding::Exact)).unwrap();
        let input = network.public().input().quantize(&samples[0]).unwrap();
        let (mut at_client, mut at_server) = memory::pair();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let model = Arc::new(ServedModel::new(&network, &plan).unwrap());
                let mut session = ServerSession::setup(&mut at_server, model, rng(1)).unwrap();
                let mut made = Some(session.prepare(&mut at_server).unwrap());
                assert!(in_a_fork(|| {
                    is_others(&session.prepare(&mut at_server))
                        && is_others(&session.predict(&mut at_server, made.take().unwrap()))
                }));
                session.predict(&mut at_server, made.unwrap()).unwrap();
            });
            let client_plan = Arc::new(ClientPlan::new(network.public(), &plan).unwrap());
            let (mut session, _) = ClientSession::setup(&mut at_client, client_plan, rng(2)).unwrap();
            let mut made = Some(session.prepare(&mut at_client).unwrap());
            let before = at_client.traffic();
            assert!(in_a_fork(|| {
                is_others(&session.prepare(&mut at_client))
                    && is_others(&session.predict(&mut at_client, made.take().unwrap(), &input))
                    && at_client.traffic() == before
            }));
            session.predict(&mut at_client, made.unwrap(), &input).unwrap();
        });
    });
}
