//! Rings say how wide weights may be, to the compiler and to the layers alike; and there are parameters with room for them.

use lanner_coefficient::cheetah::Scheme;
use lanner_network::{Accumulator, Policy};
use lanner_plan::{Mode, plan};
use lanner_transfers::Rounding;

use crate::common;

#[test]
fn the_compiler_and_the_layers_allow_the_same_weights() {
    for ring in Accumulator::powers_of_two() {
        assert_eq!(ring.weight_bits(), Scheme::weight_bits(ring.bits()));
        assert!((12..=16).contains(&ring.weight_bits()));
    }
}

#[test]
fn every_ring_has_parameters_with_room_for_its_weights() {
    for ring in Accumulator::powers_of_two() {
        let modulus = ring.modulus() as u64;
        let layer = format!(
            r#"{{"name":"fc","op":{{"Linear":{{"outputs":10}}}},"inputs":[0],"shape":[10],"modulus":{modulus}}}"#
        );
        let network = common::network("[4096]", 255, modulus, &layer);
        let planned = plan(&network, Policy::Label, Mode::Cheetah(Rounding::Exact)).unwrap();
        let account = planned.build().unwrap().account().unwrap();
        assert!(account.ciphertext_bits() >= 56.0 && account.session_bits() >= 40.0, "{ring:?}: {account:?}");
    }
}
