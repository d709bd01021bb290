//! What strangers describe in mode spectral is refused before much is computed, and its rings are refused in other modes.

use std::fmt::Write;

use lanner_network::{Policy, PublicNetwork};
use lanner_plan::{Mode, plan};
use lanner_transfers::Rounding;

/// The primes of a ring of 93 bits.
const RING: &str = "[2147352577,2146959361,2146041857]";

fn network(shape: &str, nodes: &str) -> PublicNetwork {
    let json = format!(
        r#"{{"format_version":7,"input":{{"name":"x","shape":{shape},"scale":{{"grid":0}},"low":0,"high":255,"modulus":{RING}}},"nodes":[{nodes}],"output_scale":0,"head":"scores"}}"#
    );
    PublicNetwork::from_json(&json).unwrap()
}

fn conv(channels: usize, kernel: usize) -> String {
    format!(
        r#"{{"name":"conv","op":{{"Conv2d":{{"out_channels":{channels},"kernel":[{kernel},{kernel}],"strides":[1,1],"pads":[0,0,0,0],"dilations":[1,1],"groups":1}}}},"inputs":[0],"shape":[{channels},1,1],"modulus":{RING}}}"#
    )
}

/// A convolution of one tap a channel over two pixels, and squares.
fn pixel_by_pixel(channels: usize, squares: usize) -> String {
    let (mut nodes, shape) = (conv(channels, 1), format!("[{channels},1,2]"));
    nodes = nodes.replace(&format!("[{channels},1,1]"), &shape);
    for square in 1..=squares {
        let node = format!(
            r#",{{"name":"square{square}","op":"Square","inputs":[{square}],"shape":{shape},"modulus":{RING}}}"#
        );
        nodes.push_str(&node);
    }
    nodes
}

#[test]
fn searches_for_layouts_are_bounded() {
    let mut layers = String::new();
    for layer in 0..4000 {
        let comma = if layer == 0 { "" } else { "," };
        write!(
            layers,
            r#"{comma}{{"name":"fc{layer}","op":{{"Linear":{{"outputs":16}}}},"inputs":[{layer}],"shape":[16],"modulus":{RING}}}"#
        )
        .unwrap();
    }
    // Without bounds, and with layouts of planes for one position, each of these takes minutes to days.
    for (network, is_planned) in [
        (network("[16]", &layers), false),
        (network("[4096,3,3]", &conv(2048, 3)), false),
        (network("[512,3,3]", &conv(512, 3)), true),
        (network("[1,28,28]", &conv(64, 28)), true),
    ] {
        let planned = plan(&network, Policy::Logits, Mode::Spectral);
        assert_eq!(planned.is_ok(), is_planned, "{:?}", planned.err());
    }
}

#[test]
#[ignore = "spends all that a search may take, which is minutes without optimisation"]
fn a_search_that_finds_no_layout_ends() {
    // A ciphertext for each of very many taps, and layers behind that no room is left for.
    let network = network("[200000,1,2]", &pixel_by_pixel(64, 12));
    assert!(plan(&network, Policy::Logits, Mode::Spectral).is_err());
}

#[test]
fn products_of_primes_are_no_rings_of_shares() {
    let network = network("[1,28,28]", &conv(4, 28));
    for mode in [Mode::Gazelle, Mode::Falcon, Mode::Cheetah(Rounding::Exact)] {
        let error = plan(&network, Policy::Logits, mode).unwrap_err().to_string();
        assert!(error.contains("products of primes"), "{error}");
    }
}

#[test]
fn networks_that_are_too_deep_are_refused_by_the_layer_at_which_room_ends() {
    let mut layers = format!(
        r#"{{"name":"fc","op":{{"Linear":{{"outputs":16}}}},"inputs":[0],"shape":[16],"modulus":{RING}}}"#
    );
    for square in 1..=20 {
        write!(
            layers,
            r#",{{"name":"square{square}","op":"Square","inputs":[{square}],"shape":[16],"modulus":{RING}}}"#
        )
        .unwrap();
    }
    let error = plan(&network("[16]", &layers), Policy::Logits, Mode::Spectral).unwrap_err().to_string();
    let fit = (1..20).find(|fit| error.contains(&format!("with {fit} of 20 squares"))).expect(&error);
    assert!(error.contains(&format!("square{}:", fit + 1)), "{error}");
}
