//! What a session's ciphertexts may tell of the weights decides the parameters of a plan, and whether there is one.

use lanner_bfv::ParameterSet;
use lanner_network::Policy;
use lanner_plan::{Account, Mode, Plan, PlanError, plan};
use lanner_transfers::Rounding;

use crate::common;

const NARROW: u64 = 1_032_193;
const WIDE: u64 = 137_438_822_401;

/// A fully connected layer, squares of what it makes, and a layer of these, in a ring.
fn squares(modulus: u64) -> String {
    format!(
        r#"{},{{"name":"square","op":"Square","inputs":[1],"shape":[128],"modulus":{modulus}}},{}"#,
        linear("first", 0, 128, modulus),
        linear("second", 2, 10, modulus),
    )
}

fn linear(name: &str, input: usize, outputs: usize, modulus: u64) -> String {
    format!(
        r#"{{"name":"{name}","op":{{"Linear":{{"outputs":{outputs}}}}},"inputs":[{input}],"shape":[{outputs}],"modulus":{modulus}}}"#
    )
}

fn planned(inputs: usize, modulus: u64, nodes: &str, mode: Mode) -> Result<Plan, PlanError> {
    plan(&common::network(&format!("[{inputs}]"), 255, modulus, nodes), Policy::Logits, mode)
}

/// The sets whose keys a plan needs, and its account.
fn sets(plan: &Plan) -> (Vec<ParameterSet>, Account) {
    let built = plan.build().unwrap();
    let keys = built.set_up().unwrap().keys;
    (keys.iter().map(|keys| keys.set).collect(), built.account().unwrap())
}

#[test]
fn layers_that_rotate_take_a_wider_set_where_their_ring_needs_it() {
    for (modulus, set) in [(NARROW, ParameterSet::B), (WIDE, ParameterSet::W)] {
        let plan = planned(784, modulus, &squares(modulus), Mode::Gazelle).unwrap();
        let (found, account) = sets(&plan);
        assert_eq!(found, [set]);
        assert!(account.session_bits() >= 40.0, "{account:?}");
        assert!(account.ciphertext_bits() >= 56.0, "{account:?}");
        // The worst ciphertext over 2^20 predictions is no closer than all of them.
        assert!(account.session_bits() <= account.ciphertext_bits() - 10.0);
    }
}

#[test]
fn every_mode_accounts_for_its_ciphertexts() {
    let nodes = linear("fc", 0, 10, NARROW);
    for mode in [Mode::Gazelle, Mode::Falcon] {
        let (_, account) = sets(&planned(784, NARROW, &nodes, mode).unwrap());
        assert_eq!(account.ciphertexts(), 1);
        assert!((40.0..=account.ciphertext_bits() - 10.0).contains(&account.session_bits()));
    }
    let nodes = linear("fc", 0, 10, 1 << 21);
    let (_, account) = sets(&planned(784, 1 << 21, &nodes, Mode::Cheetah(Rounding::Exact)).unwrap());
    assert_eq!(account.ciphertexts(), 1);
    assert!((46.0..47.0).contains(&account.session_bits()), "{account:?}");
}

#[test]
fn noise_that_no_set_hides_is_refused_by_the_layers_name() {
    let refused = planned(65536, WIDE, &linear("wide", 0, 4096, WIDE), Mode::Gazelle).unwrap_err();
    assert!(matches!(refused, PlanError::Layer { .. }), "{refused}");
    assert!(refused.to_string().contains("node wide"), "{refused}");
    assert!(refused.to_string().contains("hiding the function"), "{refused}");
}
