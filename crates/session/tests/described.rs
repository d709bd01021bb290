//! A client plans the network that a server describes, whatever it is: planned or refused, never a panic.

use std::cell::Cell;

use lanner_network::FORMAT_VERSION;
use lanner_network::{Policy, PublicNetwork};
use lanner_plan::{Mode, plan};
use lanner_session::executor::ClientPlan;
use lanner_testkit::draw_network;
use lanner_transfers::Rounding;
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, TestRunner};

/// Every mode, and every policy.
const PLANNED: [(Mode, Policy); 8] = [
    (Mode::Gazelle, Policy::Logits),
    (Mode::Falcon, Policy::Logits),
    (Mode::Cheetah(Rounding::Exact), Policy::Logits),
    (Mode::Cheetah(Rounding::Faithful), Policy::Label),
    (Mode::Gazelle, Policy::Label),
    (Mode::Gazelle, Policy::Labels),
    (Mode::Gazelle, Policy::TopK { k: 2 }),
    (Mode::Gazelle, Policy::Probability { digits: 2 }),
];

/// In how many ways a described network is planned.
fn planned(json: &str) -> usize {
    let Ok(network) = PublicNetwork::from_json(json) else { return 0 };
    assert!((0..=network.nodes().len()).all(|value| network.limit(value) >= 0));
    let plans = PLANNED.into_iter().filter_map(|(mode, policy)| plan(&network, policy, mode).ok());
    plans.filter(|plan| ClientPlan::new(&network, plan).is_ok()).count()
}

#[test]
fn networks_of_any_wiring_and_shape_are_planned_or_refused() {
    let (drawn, sound) = (Cell::new(0), Cell::new(0));
    let config = Config { failure_persistence: None, ..Config::with_cases(300) };
    let draws = vec(any::<u8>(), 40..200);
    TestRunner::new(config)
        .run(&draws, |bytes| {
            let plans = planned(&draw_network(&bytes, FORMAT_VERSION));
            drawn.set(drawn.get() + 1);
            sound.set(sound.get() + usize::from(plans > 0));
            Ok(())
        })
        .unwrap();
    // Else the test would say nothing about the planner.
    assert!(5 * sound.get() > drawn.get(), "{} of {} are sound", sound.get(), drawn.get());
}
