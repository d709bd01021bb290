//! The one bit that a client learns where the model's owner wants it: whether any activation reached its upper bound.

use std::sync::Arc;

use lanner_net::{Entry, Recorded, memory};
use lanner_network::{FixedExecutor, FixedOp, FixedRun, Integers, Network, Policy};
use lanner_plan::{Choices, Limits, Mode, Plan, PlanError, Samples, Saturation, plan, plan_within};
use lanner_quantize::QuantizationOptions;
use lanner_session::executor::{ClientPlan, ClientSession, Outcome, ServedModel, ServerSession};
use lanner_tabula as tabula;
use lanner_transfers::Rounding;

use crate::common::rng;
use crate::executor::run_plan;
use crate::saturated::{compiled, corners};

fn marks(network: &Network) -> Saturation {
    network.saturating().map(|node| network.public().nodes()[node].name.clone()).collect()
}

fn planned(network: &Network, mode: Mode, samples: Samples) -> Plan {
    let choices = Choices { samples, saturation: marks(network), ..mode.into() };
    plan_within(network.public(), Policy::Logits, &choices, &Limits::default()).unwrap()
}

fn over_powers() -> QuantizationOptions {
    QuantizationOptions { saturates: true, ..QuantizationOptions::powers_of_two() }
}

/// Each mode in its rings.
fn modes() -> [(Mode, QuantizationOptions); 4] {
    [
        (Mode::Gazelle, QuantizationOptions::default()),
        (Mode::Falcon, QuantizationOptions::default()),
        (Mode::Cheetah(Rounding::Exact), over_powers()),
        (Mode::Tabula(tabula::Rounding::Exact), QuantizationOptions { narrow: true, ..over_powers() }),
    ]
}

/// An input without a saturated activation and one with the fewest, and what the reference makes of them.
fn inputs(network: &Network) -> [(Vec<i64>, FixedRun); 2] {
    let executor = FixedExecutor::new(network).unwrap();
    let run = |input: Vec<i64>| {
        let truth = executor.run(&input).unwrap();
        (input, truth)
    };
    let mut all: Vec<_> = corners(network).into_iter().map(run).collect();
    all.sort_by_key(|(_, truth)| truth.saturated_count());
    let few = all.into_iter().find(|(_, truth)| truth.saturated_count() > 0).unwrap();
    let none = run(few.0.iter().map(|x| x / 8).collect());
    assert!(!none.1.is_saturated() && few.1.overflow_count() == 0);
    [none, few]
}

/// A network and an input of a mode over primes that saturates, and a plan that says so.
pub(crate) fn example(mode: Mode) -> (Network, Vec<i64>, Plan) {
    let network = compiled(&QuantizationOptions::default());
    let [_, (input, _)] = inputs(&network);
    let plan = planned(&network, mode, Samples::ONE);
    (network, input, plan)
}

fn told<'t>(truth: impl IntoIterator<Item = &'t FixedRun>) -> Outcome {
    let truth: Vec<_> = truth.into_iter().collect();
    Outcome::Saturable {
        scores: truth.iter().flat_map(|run| run.output.clone()).collect(),
        saturated: truth.iter().map(|run| run.is_saturated()).collect(),
    }
}

#[test]
fn the_bit_is_the_references_in_every_mode() {
    for (mode, options) in modes() {
        let network = compiled(&options);
        let plan = planned(&network, mode, Samples::ONE);
        let inputs = inputs(&network);
        let (asked, truth): (Vec<_>, Vec<_>) = inputs.into_iter().unzip();
        let outcomes = run_plan(&network, &plan, &asked);
        let expected: Vec<_> = truth.iter().map(|truth| told([truth])).collect();
        assert_eq!(outcomes, expected, "{mode:?}");
    }
}

#[test]
fn each_sample_of_a_request_has_its_own_bit() {
    let network = compiled(&QuantizationOptions::default());
    let [none, few] = inputs(&network);
    let plan = planned(&network, Mode::Gazelle, Samples::try_from(4).unwrap());
    let request = [&few.0[..], &none.0, &none.0, &few.0].concat();
    let outcomes = run_plan(&network, &plan, &[request]);
    assert_eq!(outcomes, [told([&few.1, &none.1, &none.1, &few.1])]);
}

/// The largest integers behind a bound are counted and told, whether the bound cut them or not.
#[test]
fn what_reaches_its_bound_is_told_as_the_reference_counts_it() {
    let network = compiled(&QuantizationOptions::default());
    let plan = planned(&network, Mode::Gazelle, Samples::ONE);
    let executor = FixedExecutor::new(&network).unwrap();
    let nodes = network.public().nodes();
    // By how much the value that goes furthest is below where its bound would cut it; and whether one is cut.
    let room = |input: &Vec<i64>| {
        let mut values = vec![i128::MIN; nodes.len() + 1];
        let largest = |integers: Integers<'_>| integers.to_vec().into_iter().max().unwrap();
        executor.trace(input, |value, integers| values[value] = largest(integers)).unwrap();
        let bounds = network.saturating().map(|node| match &nodes[node].op {
            FixedOp::Clip(clip) => i128::from(clip.high) - values[nodes[node].inputs[0]],
            _ => panic!("{} is no bound", nodes[node].name),
        });
        bounds.min().unwrap()
    };
    // Up to a corner by one element and one integer at a time.
    let all = corners(&network);
    let high = network.public().input().high;
    let steps = (1..=high).flat_map(|level| (0..16).map(move |element| (level, element)));
    let scaled = all.iter().take(4).flat_map(|corner| {
        steps.clone().map(|(level, element)| -> Vec<i64> {
            let of = |(place, x): (usize, &i64)| (*x).min(level - i64::from(place > element));
            corner.iter().enumerate().map(of).collect()
        })
    });
    let runs = scaled.map(|input| (room(&input), executor.run(&input).unwrap(), input));
    // Of each kind the one nearest to where it ends.
    let mut nearest: [Option<(i128, FixedRun, Vec<i64>)>; 3] = [None, None, None];
    for (room, truth, input) in runs {
        let kind = match (room < 0, truth.is_saturated()) {
            (_, false) => 0,
            (false, true) => 1,
            (true, true) => 2,
        };
        if nearest[kind].as_ref().is_none_or(|(other, ..)| room.abs() < other.abs()) {
            nearest[kind] = Some((room, truth, input));
        }
    }
    let asked = nearest.map(Option::unwrap);
    assert_eq!(asked.each_ref().map(|(_, truth, _)| truth.is_saturated()), [false, true, true]);
    let told = asked.each_ref().map(|(_, truth, _)| told([truth]));
    assert_eq!(run_plan(&network, &plan, &asked.map(|(.., input)| input)), told);
}

/// One session with seeds of its own: what the client learns, and the kinds and lengths of all messages.
fn asked(network: &Network, plan: &Plan, input: &[i64], seed: u8) -> (Outcome, Vec<Entry>) {
    let model = Arc::new(ServedModel::new(network, plan).unwrap());
    let client_plan = Arc::new(ClientPlan::new(network.public(), plan).unwrap());
    let (client, mut server) = memory::pair();
    std::thread::scope(|scope| {
        let serving = scope.spawn(move || {
            let mut session = ServerSession::setup(&mut server, model, rng(seed)).unwrap();
            let prepared = session.prepare(&mut server).unwrap();
            session.predict(&mut server, prepared).unwrap();
        });
        let mut client = Recorded::new(client);
        let mut session = ClientSession::setup(&mut client, client_plan, rng(seed + 100)).unwrap().0;
        let prepared = session.prepare(&mut client).unwrap();
        let outcome = session.predict(&mut client, prepared, input).unwrap().0;
        serving.join().unwrap();
        (outcome, client.into_parts().1)
    })
}

/// One query asked again and again teaches the same bit, and no message's kind or length depends on it.
#[test]
fn a_query_asked_again_teaches_the_same_bit() {
    let network = compiled(&QuantizationOptions::default());
    let plan = planned(&network, Mode::Gazelle, Samples::ONE);
    let mut transcripts = Vec::new();
    for (input, truth) in inputs(&network) {
        for seed in 1..5 {
            let (outcome, transcript) = asked(&network, &plan, &input, seed);
            assert_eq!(outcome, told([&truth]));
            transcripts.push(transcript);
        }
    }
    assert!(transcripts.iter().all(|transcript| transcript == &transcripts[0]));
}

/// Of each step the server opens one bit to the client, the last circuit's: all others' outputs stay shared.
#[test]
fn one_bit_is_revealed_whatever_saturates() {
    for (mode, options) in modes() {
        let network = compiled(&options);
        let with = planned(&network, mode, Samples::ONE);
        let without = plan(network.public(), Policy::Logits, mode).unwrap();
        assert!(marks(&network).len() > 1);
        let revealing = |plan: &Plan| -> Vec<&'static str> {
            let built = plan.build().unwrap();
            let reveals =
                built.steps().iter().filter(|step| step.types.1 == lanner_step::ValueType::Revealed);
            reveals.map(|step| step.protocol).collect()
        };
        assert_eq!(revealing(&without), ["share.reveal"]);
        assert_eq!(revealing(&with), ["yao.positive", "share.reveal"]);
        // Before them, both plans are the same, and what is not asked for is not written.
        let common = without.items.len() - 1;
        assert_eq!(without.items[..common], with.items[..common]);
        assert!(!serde_json::to_string(&without).unwrap().contains("saturation"));
    }
}

/// A party of a model without the bit hears so by an error, and nobody waits.
#[test]
fn parties_of_different_plans_fail() {
    let network = compiled(&QuantizationOptions::default());
    let with = planned(&network, Mode::Gazelle, Samples::ONE);
    let without = plan(network.public(), Policy::Logits, Mode::Gazelle).unwrap();
    let input = corners(&network).swap_remove(0);
    for [clients, servers] in [[&with, &without], [&without, &with]] {
        let model = Arc::new(ServedModel::new(&network, servers).unwrap());
        let client_plan = Arc::new(ClientPlan::new(network.public(), clients).unwrap());
        let (mut client, mut server) = memory::pair();
        let input = &input;
        std::thread::scope(|scope| {
            let serving = scope.spawn(move || {
                let mut session = ServerSession::setup(&mut server, model, rng(1))?;
                let prepared = session.prepare(&mut server)?;
                session.predict(&mut server, prepared)
            });
            let asking = scope.spawn(move || {
                let mut session = ClientSession::setup(&mut client, client_plan, rng(2))?.0;
                let prepared = session.prepare(&mut client)?;
                session.predict(&mut client, prepared, input)
            });
            assert!(serving.join().unwrap().is_err());
            assert!(asking.join().unwrap().is_err());
        });
    }
}

#[test]
fn plans_refuse_the_bit_where_it_is_none() {
    let network = compiled(&QuantizationOptions::default());
    let refused =
        |policy, choices: Choices| match plan_within(network.public(), policy, &choices, &Limits::default())
            .unwrap_err()
        {
            PlanError::Saturation { reason, .. } => reason,
            other => panic!("{other}"),
        };
    let choices = |mode: Mode| Choices { saturation: marks(&network), ..mode.into() };
    for policy in [Policy::Label, Policy::Labels, Policy::TopK { k: 1 }, Policy::Probability { digits: 2 }] {
        assert!(refused(policy, choices(Mode::Gazelle)).contains(policy.name()));
    }
    assert!(refused(Policy::Logits, choices(Mode::Spectral)).contains("spectral"));
    let other = network.public().nodes().iter().find(|node| !matches!(node.op, FixedOp::Clip(_))).unwrap();
    for name in [other.name.clone(), "nobody".to_owned()] {
        let saturation = marks(&network).into_iter().chain([name]).collect();
        let choices = Choices { saturation, ..Mode::Gazelle.into() };
        assert!(refused(Policy::Logits, choices).contains("no upper bound"));
    }
}
