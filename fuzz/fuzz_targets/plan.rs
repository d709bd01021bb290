//! The plan that a client makes of a network that a server describes: made or refused. The bytes choose a network of any wiring.
#![no_main]

use lanner_network::FORMAT_VERSION;
use lanner_network::{Policy, PublicNetwork};
use lanner_plan::{Mode, plan};
use lanner_transfers::Rounding;
use lanner_session::executor::ClientPlan;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [first, rest @ ..] = bytes else { return };
    let mode =
        [Mode::Gazelle, Mode::Falcon, Mode::Cheetah(Rounding::Exact), Mode::Cheetah(Rounding::Faithful)]
            [usize::from(first & 3)];
    let probability = Policy::Probability { digits: 2 };
    let policies =
        [Policy::Logits, Policy::Label, Policy::TopK { k: 2 }, probability, Policy::Labels, Policy::Value];
    let policy = policies[usize::from(first >> 2) % policies.len()];
    let Ok(network) = PublicNetwork::from_json(&lanner_testkit::draw_network(rest, FORMAT_VERSION)) else {
        return;
    };
    assert!((0..=network.nodes().len()).all(|value| network.limit(value) >= 0));
    if let Ok(plan) = plan(&network, policy, mode) {
        // What was planned can be built.
        ClientPlan::new(&network, &plan).unwrap();
    }
});
