//! Step functions between layers, sums of small integers among them: results equal the reference in every mode, and what is sent is what plans predict.

use std::collections::{BTreeMap, BTreeSet};

use lanner_network::elementwise::FixedClip;
use lanner_network::{
    Accumulator, Calibrated, ConvGeometry, FixedExecutor, FixedNode, FixedOp, GridFactor, Head, InputScale,
    Integers, LinearWeights, Network, NetworkInput, Policy, PublicNetwork,
};
use lanner_plan::{Choices, Designs, Limits, Mode, NodeDesign, Plan, Rings, plan, plan_within};
use lanner_session::executor::{Outcome, together};
use lanner_tabula as tabula;
use lanner_transfers::Rounding;

use crate::executor::{check_exact, near, over, run_plan};

const INPUTS: usize = 5;
/// Comparisons in the first row, and in the second.
const ROWS: [usize; 2] = [12, 8];
const OUTPUTS: usize = 4;

/// What reads the second row of comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Matrix,
    /// Two matrices, each of half of the bits.
    Groups,
    /// A matrix, and a sum of the bits beside it.
    Both,
}

fn weight(index: usize, seed: usize, bound: i64) -> i64 {
    ((index * 7919 + seed * 104_729 + 13) as i64 * 2_654_435_761 % 1_000_003) % (2 * bound + 1) - bound
}

fn weights(outputs: usize, inputs: usize, seed: usize, bound: i64) -> LinearWeights {
    let weights = (0..outputs * inputs).map(|i| weight(i, seed, bound)).collect();
    LinearWeights::new(outputs, weights, (0..outputs).map(|i| weight(i, seed + 1, 40).into()).collect())
}

/// A layer, comparisons, sums of their bits, comparisons of these, and a layer of theirs; in three rings.
fn network(last: Last, rings: [u128; 3]) -> Network {
    let [wide, small, of_leaves] = rings.map(|modulus| Accumulator::from_modulus(modulus).unwrap());
    let (mut nodes, mut layers) = (Vec::new(), BTreeMap::new());
    let mut add = |name: &str, op: FixedOp, inputs: &[usize], shape: &[usize], accumulator: Accumulator| {
        let (inputs, shape) = (inputs.to_vec(), shape.to_vec());
        nodes.push(FixedNode { name: name.to_owned(), op, inputs, shape, accumulator });
        nodes.len()
    };
    let [first, second] = ROWS;
    let half = first / 2;
    let layer = add("layer", FixedOp::Linear { outputs: first, picks: false }, &[0], &[first], wide);
    layers.insert(layer - 1, weights(first, INPUTS, 1, 100));
    let relu = add("relu", FixedOp::Relu, &[layer], &[first], wide);
    let clip = add("clip", FixedOp::Clip(FixedClip { high: 1 }), &[relu], &[first], wide);
    let bits = add("bits", FixedOp::Rescale { shift: 0 }, &[clip], &[first], small);
    let slice = |start: usize| FixedOp::Slice { starts: vec![start], steps: vec![1] };
    let left = add("left", slice(0), &[bits], &[half], small);
    let right = add("right", slice(half), &[bits], &[half], small);
    let sum = add("sum", FixedOp::Add { factors: [1, -1] }, &[left, right], &[half], small);
    let twice = add("twice", FixedOp::Scale { factor: 2 }, &[left], &[half], small);
    let joined = add("joined", FixedOp::Concat { axis: 0 }, &[sum, twice], &[first], small);
    let some = add("some", slice(2), &[joined], &[second], small);
    let moved = add("moved", FixedOp::Bias { bits: 2 }, &[some], &[second], small);
    layers.insert(moved - 1, LinearWeights::bias_alone((0..second).map(|i| [1, 0, -1][i % 3]).collect()));
    let relu = add("relu2", FixedOp::Relu, &[moved], &[second], small);
    let clip = add("clip2", FixedOp::Clip(FixedClip { high: 1 }), &[relu], &[second], small);
    let bits = add("bits2", FixedOp::Rescale { shift: 0 }, &[clip], &[second], of_leaves);
    if last == Last::Groups {
        let image = add("image", FixedOp::Reshape, &[bits], &[second, 1, 1], of_leaves);
        let geometry = ConvGeometry {
            out_channels: OUTPUTS,
            kernel: [1, 1],
            strides: [1, 1],
            pads: [0; 4],
            dilations: [1, 1],
            groups: 2,
        };
        let leaves = add("leaves", FixedOp::Conv2d(geometry), &[image], &[OUTPUTS, 1, 1], of_leaves);
        layers.insert(leaves - 1, weights(OUTPUTS, second / 2, 5, 2000));
        add("flat", FixedOp::Reshape, &[leaves], &[OUTPUTS], of_leaves);
    } else {
        let leaves =
            add("leaves", FixedOp::Linear { outputs: OUTPUTS, picks: false }, &[bits], &[OUTPUTS], of_leaves);
        layers.insert(leaves - 1, weights(OUTPUTS, second, 5, 2000));
        if last == Last::Both {
            let some = add("head", slice(1), &[bits], &[OUTPUTS], of_leaves);
            add("both", FixedOp::Add { factors: [1, 3] }, &[leaves, some], &[OUTPUTS], of_leaves);
        }
    }
    let scale = InputScale::Grid(GridFactor::try_from(0).unwrap());
    let input = NetworkInput {
        name: "x".to_owned(),
        shape: vec![INPUTS],
        scale,
        features: None,
        low: -20,
        high: 20,
        accumulator: wide,
    };
    let seen =
        Calibrated { scale: 1.0, low: 0, high: 0, weight_error: None, function: None, saturates: false };
    let count = nodes.len() + 1;
    let public = PublicNetwork::new(input, nodes, None, Head::Scores).unwrap();
    Network::new(public, layers, &vec![seen; count]).unwrap()
}

const POWERS: [u128; 3] = [1 << 22, 1 << 16, 1 << 32];
const PRIMES: [u128; 3] = [1_032_193, 114_689, 268_369_921];

/// Inputs on the network's grid, zeros among them.
fn samples() -> Vec<Vec<f32>> {
    let unit =
        1.0 / network(Last::Matrix, POWERS).public().input().quantize(&[1.0; INPUTS]).unwrap()[0] as f32;
    (0..4).map(|s| (0..INPUTS).map(|i| weight(i, 100 * s, 20) as f32 * unit).collect()).collect()
}

const CHEETAH: Mode = Mode::Cheetah(Rounding::Exact);
const TABULA: Mode = Mode::Tabula(tabula::Rounding::Exact);

fn protocols(plan: &Plan) -> Vec<&'static str> {
    plan.steps().map(|step| step.protocol.name()).collect()
}

fn count(plan: &Plan, name: &str) -> usize {
    protocols(plan).iter().filter(|other| **other == name).count()
}

#[test]
fn steps_in_front_of_a_matrix_equal_the_reference() {
    check_exact(&network(Last::Matrix, POWERS), &samples(), &over(Rings::PowersOfTwo));
}

#[test]
fn steps_in_front_of_groups_equal_the_reference() {
    check_exact(&network(Last::Groups, POWERS), &samples(), &over(Rings::PowersOfTwo));
}

#[test]
fn steps_that_several_read_equal_the_reference() {
    check_exact(&network(Last::Both, POWERS), &samples(), &[CHEETAH]);
}

#[test]
fn steps_over_primes_equal_the_reference() {
    check_exact(&network(Last::Groups, PRIMES), &samples(), &over(Rings::Primes));
}

/// Nothing is rescaled by more than no bits, so that modes that round otherwise are exact, too.
#[test]
fn steps_are_exact_however_a_mode_rounds() {
    let network = network(Last::Matrix, POWERS);
    let (executor, public) = (FixedExecutor::new(&network).unwrap(), network.public());
    let input = public.input().quantize(&samples()[1]).unwrap();
    let label = Outcome::Label(executor.run(&input).unwrap().label());
    for mode in near() {
        let plan = plan(public, Policy::Label, mode).unwrap();
        assert_eq!(run_plan(&network, &plan, std::slice::from_ref(&input)), std::slice::from_ref(&label));
    }
}

#[test]
fn a_layer_that_alone_reads_a_step_goes_with_it() {
    for (last, chosen) in [(Last::Matrix, 1), (Last::Groups, 1), (Last::Both, 0)] {
        let network = network(last, POWERS);
        let planned = |mode| plan(network.public(), Policy::Logits, mode).unwrap();
        let (cheetah, tabula) = (planned(CHEETAH), planned(TABULA));
        assert_eq!(count(&cheetah, "ot.chosen"), chosen, "{last:?}");
        assert_eq!(count(&cheetah, "ot.activation"), 2 - chosen, "{last:?}");
        // Of no bits that are dropped there is no lookup.
        assert_eq!(
            [count(&tabula, "ot.chosen"), count(&tabula, "ot.activation")],
            [chosen, 2 - chosen],
            "{last:?}"
        );
    }
}

/// What the samples choose among: zeros and ones, in both rows.
#[test]
fn both_values_of_a_step_occur() {
    let network = network(Last::Matrix, POWERS);
    let (executor, public) = (FixedExecutor::new(&network).unwrap(), network.public());
    for name in ["bits", "bits2"] {
        let value = 1 + public.nodes().iter().position(|node| node.name == name).unwrap();
        let mut found = BTreeSet::new();
        for sample in samples() {
            let input = public.input().quantize(&sample).unwrap();
            let keep = |at: usize, values: Integers<'_>| {
                if at == value {
                    found.extend(values.to_vec());
                }
            };
            executor.trace(&input, keep).unwrap();
        }
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [0, 1], "{name}");
    }
}

/// In mode auto a step of a circuit and the layer behind it are apart.
#[test]
fn a_design_of_circuits_keeps_them_apart() {
    let network = network(Last::Matrix, POWERS);
    let unit = samples();
    let input = network.public().input().quantize(&unit[1]).unwrap();
    let expected = FixedExecutor::new(&network).unwrap().run(&input).unwrap().output;
    for (design, chosen) in [
        (None, 1),
        (Some(("relu2", NodeDesign::Gazelle)), 0),
        (Some(("relu2", NodeDesign::Tabula)), 1),
        (Some(("leaves", NodeDesign::Tabula)), 1),
    ] {
        let designs: Designs = design.map(|(name, design)| (name.to_owned(), design)).into_iter().collect();
        let choices = Choices { designs, ..Mode::Auto.into() };
        let plan = plan_within(network.public(), Policy::Logits, &choices, &Limits::default()).unwrap();
        assert_eq!(count(&plan, "ot.chosen"), chosen, "{design:?}");
        let (outcome, _) = together(&network, &plan, &input).unwrap();
        assert_eq!(outcome, Outcome::Logits(expected.clone()), "{design:?}");
    }
}

/// What both make together has the layer's name, and is the layer's value.
#[test]
fn what_is_made_together_is_the_layers() {
    let network = network(Last::Matrix, POWERS);
    let plan = plan(network.public(), Policy::Logits, CHEETAH).unwrap();
    let input = network.public().input().quantize(&samples()[2]).unwrap();
    let (_, made) = together(&network, &plan, &input).unwrap();
    let names: BTreeSet<&str> = made.iter().map(|made| made.name.as_str()).collect();
    assert!(names.contains("bits") && !names.contains("bits2"));
    let leaves = made.iter().find(|made| made.name == "leaves").unwrap();
    assert_eq!(leaves.protocol, "ot.chosen");
    let integers: Vec<i128> = leaves.integers.iter().map(|x| (*x).into()).collect();
    assert_eq!(integers, FixedExecutor::new(&network).unwrap().run(&input).unwrap().output);
}
