//! Which layers of groups transfers compute, and which ciphertexts.

use lanner_network::{Policy, PublicNetwork};
use lanner_plan::{Mode, Plan, plan};
use lanner_tabula as tabula;
use lanner_transfers::Rounding;

use crate::common;

const CHEETAH: Mode = Mode::Cheetah(Rounding::Exact);
const TABULA: Mode = Mode::Tabula(tabula::Rounding::Exact);

/// A layer of blocks on each pixel of a column, with a rescale behind it or without.
fn network(
    [groups, rows, columns]: [usize; 3],
    pixels: usize,
    modulus: u64,
    rescaled: bool,
) -> PublicNetwork {
    let [inputs, outputs] = [columns, rows].map(|side| groups * side);
    let layer = format!(
        r#"{{"name":"blocks","op":{{"Conv2d":{{"out_channels":{outputs},"kernel":[1,1],"strides":[1,1],"pads":[0,0,0,0],"dilations":[1,1],"groups":{groups}}}}},"inputs":[0],"shape":[{outputs},{pixels},1],"modulus":{modulus}}}"#
    );
    let rescale = format!(
        r#"{{"name":"rescale","op":{{"Rescale":{{"shift":6}}}},"inputs":[1],"shape":[{outputs},{pixels},1],"modulus":{modulus}}}"#
    );
    let nodes = if rescaled { format!("{layer},{rescale}") } else { layer };
    common::network(&format!("[{inputs},{pixels},1]"), 255, modulus, &nodes)
}

fn planned(network: &PublicNetwork, mode: Mode) -> (Plan, &'static str) {
    let plan = plan(network, Policy::Logits, mode).unwrap();
    let name = plan.steps().next().unwrap().protocol.name();
    (plan, name)
}

const POWER: u64 = 1 << 24;
const PRIME: u64 = 1_032_193;

#[test]
fn the_fewer_bytes_decide() {
    for (blocks, pixels, of_transfers) in [
        ([49_152, 1, 1], 1, true),
        ([100, 4, 4], 1, true),
        ([64, 1, 1], 16, true),
        // Blocks that fill a ciphertext, pixels that do, and one matrix.
        ([4, 63, 64], 1, false),
        ([4, 1, 1], 2048, false),
        ([1, 4, 4], 1, false),
    ] {
        let network = network(blocks, pixels, POWER, true);
        let [cheetah, tabula] = [CHEETAH, TABULA].map(|mode| planned(&network, mode).1);
        let expected = if of_transfers { ["ot.sparse", "ot.sparse_ahead"] } else { ["cheetah", "delphi"] };
        assert!(cheetah.starts_with(expected[0]) && tabula.starts_with(expected[1]), "{blocks:?}: {cheetah}");
    }
}

/// Of a plan that takes no other transfers these must be worth their set-up: less than one ciphertext each way is not.
#[test]
fn transfers_that_nothing_else_takes_pay_for_their_set_up() {
    let name = |groups| planned(&network([groups, 1, 1], 1, POWER, false), CHEETAH).1;
    assert_eq!([name(64), name(20_000)], ["cheetah.fc", "ot.sparse"]);
}

#[test]
fn a_layer_without_noise_needs_no_guard() {
    let network = network([300, 1, 1], 1, POWER, true);
    let types = planned(&network, CHEETAH).0.build().unwrap().cost().unwrap();
    // No answer: the client alone speaks.
    assert_eq!((types.online[0].server_bytes(), types.online[0].rounds()), (0, 0));
}

#[test]
fn slots_take_a_product_for_each_ciphertext() {
    for mode in [Mode::Gazelle, Mode::Falcon] {
        let network = network([49_152, 1, 1], 1, PRIME, false);
        let (plan, _) = planned(&network, mode);
        let built = plan.build().unwrap();
        let step = &built.steps()[0];
        let count = |name: &str| step.operations().into_iter().find(|(own, _)| *own == name).map(|(_, n)| n);
        assert!(["rotations", "hoisted_rotations"].iter().all(|name| count(name).unwrap_or(0.0) < 0.5));
    }
}

#[test]
fn the_set_up_lists_the_keys_that_such_a_layer_stretches() {
    for (blocks, stretched) in [([300, 1, 1], true), ([1, 4, 4], false)] {
        let plan = planned(&network(blocks, 1, POWER, true), CHEETAH).0;
        let security = plan.build().unwrap().set_up().unwrap().security();
        assert_eq!(security.contains(&("stretched keys", 108)), stretched, "{blocks:?}");
        assert!(security.contains(&("transfers' checks", 119)));
    }
}
