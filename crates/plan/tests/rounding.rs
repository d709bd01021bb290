//! What a plan over powers of two rounds, and which results may show it.

use lanner_coefficient::cheetah::Accuracy;
use lanner_coefficient::delphi;
use lanner_network::{Policy, PublicNetwork};
use lanner_plan::{Mode, Plan, PlanError, plan};
use lanner_protocol::Protocol;
use lanner_tabula as tabula;
use lanner_transfers::Rounding;

use crate::common;

const POLICIES: [Policy; 7] = [
    Policy::Label,
    Policy::LabelMap { places: 2 },
    Policy::Labels,
    Policy::Probability { digits: 2 },
    Policy::TopK { k: 2 },
    Policy::Logits,
    Policy::Value,
];

/// Nodes on an input of 16 values, each the operator, the values that it reads, and its number of elements, modulo 2^20.
fn network(nodes: &[(&str, &[usize], usize)]) -> PublicNetwork {
    let node = |(number, (op, inputs, count)): (usize, &(&str, &[usize], usize))| {
        format!(r#"{{"name":"n{number}","op":{op},"inputs":{inputs:?},"shape":[{count}],"modulus":1048576}}"#)
    };
    let nodes: Vec<String> = nodes.iter().enumerate().map(node).collect();
    common::network("[16]", 255, 1 << 20, &nodes.join(","))
}

const WIDE: &str = r#"{"Linear":{"outputs":16}}"#;
const SCORES: &str = r#"{"Linear":{"outputs":4}}"#;
const RESCALE: &str = r#"{"Rescale":{"shift":8}}"#;
const RELU: &str = r#""Relu""#;

/// Two layers in a row, one on a shortcut that the result takes as it is, one behind an activation alone.
fn networks() -> [PublicNetwork; 3] {
    [
        network(&[(WIDE, &[0], 16), (RELU, &[1], 16), (RESCALE, &[2], 16), (SCORES, &[3], 4)]),
        network(&[
            (WIDE, &[0], 16),
            (RESCALE, &[1], 16),
            (SCORES, &[2], 4),
            (SCORES, &[0], 4),
            (r#"{"Add":{"factors":[1,1]}}"#, &[3, 4], 4),
        ]),
        network(&[(WIDE, &[0], 16), (RESCALE, &[1], 16), (SCORES, &[2], 4), (RELU, &[3], 4)]),
    ]
}

fn accuracies(plan: &Plan) -> Vec<Accuracy> {
    let layers = plan.steps().filter_map(|step| match &step.protocol {
        Protocol::CheetahLinear(layer) | Protocol::DelphiLinear(delphi::Linear(layer)) => {
            Some(layer.accuracy)
        }
        _ => None,
    });
    layers.collect()
}

fn roundings(plan: &Plan) -> Vec<Rounding> {
    let activations = plan.steps().filter_map(|step| match &step.protocol {
        Protocol::RingActivation(activation) => Some(activation.rounding),
        _ => None,
    });
    activations.collect()
}

#[test]
fn nothing_in_an_exact_plan_is_off_by_one() {
    for (network, policy) in networks().iter().flat_map(|network| POLICIES.map(|policy| (network, policy))) {
        let plan = plan(network, policy, Mode::Cheetah(Rounding::Exact)).unwrap();
        assert!(accuracies(&plan).iter().all(|accuracy| *accuracy != Accuracy::OffByOne));
        assert!(!roundings(&plan).is_empty());
        assert!(roundings(&plan).iter().all(|rounding| *rounding == Rounding::Exact));
    }
}

#[test]
fn sums_that_a_result_is_made_of_are_never_off_in_a_faithful_plan_either() {
    use Accuracy::{Exact, Guarded};
    let expected: [&[Accuracy]; 3] =
        [&[Guarded(1), Guarded(1)], &[Guarded(1), Guarded(2), Guarded(2)], &[Guarded(1), Exact]];
    for (network, expected) in networks().iter().zip(expected) {
        for rounding in [Rounding::Faithful, Rounding::Exact] {
            let plan = plan(network, Policy::Label, Mode::Cheetah(rounding)).unwrap();
            assert_eq!(accuracies(&plan), expected);
        }
    }
}

const SUM: &str = r#"{"Add":{"factors":[1,5]}}"#;
const SQUARE: &str = r#""Square""#;

/// A layer, an activation, and a sum of more layers and what they read, which a rescale ends.
fn shortcut(sum: &str, layers: usize) -> PublicNetwork {
    let mut nodes: Vec<(&str, Vec<usize>, usize)> = vec![(WIDE, vec![0], 16), (RESCALE, vec![1], 16)];
    for layer in 0..layers {
        let last = nodes.len();
        nodes.push((WIDE, vec![2], 16));
        nodes.push((sum, vec![last + 1, if layer == 0 { 2 } else { last }], 16));
    }
    nodes.push((RELU, vec![nodes.len()], 16));
    nodes.push((RESCALE, vec![nodes.len()], 16));
    nodes.push((SCORES, vec![nodes.len()], 4));
    let nodes: Vec<_> = nodes.iter().map(|(op, inputs, count)| (*op, &inputs[..], *count)).collect();
    network(&nodes)
}

/// The bits that each rescale drops, and the rings that they are dropped in.
fn rescales(plan: &Plan) -> Vec<(u32, u32)> {
    let rescales = plan.steps().filter_map(|step| match &step.protocol {
        Protocol::RingActivation(activation) => Some((activation.function.shift, activation.from)),
        _ => None,
    });
    rescales.collect()
}

#[test]
fn a_rescale_drops_the_guard_of_all_that_was_added() {
    use Accuracy::{Exact, Guarded};
    let once = r#"{"Add":{"factors":[1,1]}}"#;
    let check = |network: &PublicNetwork, expected: &[Accuracy], dropped: &[(u32, u32)], lifts: usize| {
        let plan = plan(network, Policy::Label, Mode::Cheetah(Rounding::Exact)).unwrap();
        assert_eq!(accuracies(&plan), expected);
        assert_eq!(rescales(&plan), dropped);
        let lifted = plan.steps().filter(|step| matches!(step.protocol, Protocol::Lift(_)));
        assert_eq!(lifted.count(), lifts);
    };
    let [one, two, three] = [1, 2, 3].map(Guarded);
    // What is read on the shortcut has no guard: it is lifted.
    check(&shortcut(SUM, 1), &[one, one, one], &[(9, 21), (9, 21)], 1);
    // What the server adds takes the guard along.
    let biased = network(&[
        (WIDE, &[0], 16),
        (r#"{"Bias":{"bits":12}}"#, &[1], 16),
        (RELU, &[2], 16),
        (RESCALE, &[3], 16),
        (SCORES, &[4], 4),
    ]);
    check(&biased, &[one, one], &[(9, 21)], 0);
    let plan_of_biased = plan(&biased, Policy::Label, Mode::Cheetah(Rounding::Exact)).unwrap();
    let guards = plan_of_biased.steps().filter_map(|step| match &step.protocol {
        Protocol::Bias(bias) => Some(bias.guard),
        _ => None,
    });
    assert_eq!(guards.collect::<Vec<_>>(), [1]);
    // Two layers leave 2, for which there are two bits; and four leave 4, for which there are three.
    check(&shortcut(once, 2), &[one, two, two, one], &[(9, 21), (10, 22)], 1);
    check(&shortcut(once, 4), &[one, three, three, three, three, one], &[(9, 21), (11, 23)], 1);
    // A factor of five is taken three times.
    check(&shortcut(SUM, 4), &[one, Exact, Exact, Exact, Exact, one], &[(9, 21), (8, 20)], 0);
}

#[test]
fn layers_whose_sums_are_read_otherwise_have_no_guard() {
    use Accuracy::{Exact, Guarded, OffByOne};
    let last = Guarded(1);
    let below_zero = r#"{"Add":{"factors":[-1,1]}}"#;
    for (network, rounding, expected) in [
        (
            network(&[(WIDE, &[0], 16), (SQUARE, &[1], 16), (RESCALE, &[2], 16), (SCORES, &[3], 4)]),
            Rounding::Exact,
            [Exact, last],
        ),
        (
            network(&[(WIDE, &[0], 16), (SQUARE, &[1], 16), (RESCALE, &[2], 16), (SCORES, &[3], 4)]),
            Rounding::Faithful,
            [OffByOne, last],
        ),
        (
            network(&[(WIDE, &[0], 16), (below_zero, &[1, 0], 16), (RESCALE, &[2], 16), (SCORES, &[3], 4)]),
            Rounding::Exact,
            [Exact, last],
        ),
        (network(&[(WIDE, &[0], 16), (RELU, &[1], 16), (SCORES, &[2], 4)]), Rounding::Exact, [Exact, last]),
    ] {
        let plan = plan(&network, Policy::Label, Mode::Cheetah(rounding)).unwrap();
        assert_eq!(accuracies(&plan), expected);
    }
}

/// The guard that what tells the result drops.
fn dropped_at_the_end(plan: &Plan) -> u32 {
    let guards = plan.steps().filter_map(|step| match &step.protocol {
        Protocol::DropGuard(drop) => Some(drop.guard),
        Protocol::YaoArgMax(circuit) => Some(circuit.guard),
        Protocol::YaoPositive(circuit) => Some(circuit.guard),
        Protocol::YaoTopK(circuit) => Some(circuit.guard),
        Protocol::Softmax(circuit) => Some(circuit.guard),
        _ => None,
    });
    guards.sum()
}

#[test]
fn every_result_is_told_without_its_guard() {
    for (network, guard) in networks().iter().zip([1, 2, 0]) {
        for policy in POLICIES {
            let plan = plan(network, policy, Mode::Cheetah(Rounding::Exact)).unwrap();
            assert_eq!(dropped_at_the_end(&plan), guard, "{}", policy.name());
            let opened = matches!(policy, Policy::Logits | Policy::Value);
            let drops = plan.steps().filter(|step| matches!(step.protocol, Protocol::DropGuard(_)));
            assert_eq!(drops.count(), usize::from(opened && guard > 0));
            // Only what is opened was flooded, or what an activation without a rescale reads.
            assert_eq!(plan.build().unwrap().account().unwrap().ciphertext_bits().is_infinite(), guard > 0);
        }
    }
}

/// One layer whose sums are opened: transfers for its guard alone are worth their set-up only where it is large.
#[test]
fn transfers_of_the_result_alone_pay_for_their_set_up() {
    let layer = |outputs: usize| {
        let op = format!(r#"{{"Linear":{{"outputs":{outputs}}}}}"#);
        let network = network(&[(&op, &[0], outputs)]);
        accuracies(&plan(&network, Policy::Logits, Mode::Cheetah(Rounding::Exact)).unwrap())
    };
    assert_eq!(layer(4), [Accuracy::Exact]);
    assert_eq!(layer(1 << 15), [Accuracy::Guarded(1)]);
}

#[test]
fn plans_that_are_not_exact_reveal_labels_alone() {
    let stochastic = Mode::Tabula(tabula::Rounding::Stochastic);
    let modes = [Mode::Cheetah(Rounding::Faithful), stochastic];
    let each = |mode| POLICIES.map(|policy| (policy, mode));
    for (network, (policy, mode)) in networks()
        .iter()
        .flat_map(|network| modes.into_iter().flat_map(each).map(move |which| (network, which)))
    {
        let planned = plan(network, policy, mode);
        if policy == Policy::Label {
            assert!(mode == stochastic || roundings(&planned.unwrap()).contains(&Rounding::Faithful));
            continue;
        }
        let refusal = planned.unwrap_err();
        assert!(matches!(refusal, PlanError::Policy { policy: name, .. } if name == policy.name()));
        // Labels of places are labels already.
        let advises = matches!(policy, Policy::LabelMap { .. }) || refusal.fix().contains("label");
        assert!(refusal.fix().contains("exact rounding") && advises);
    }
}

/// How each lookup of a plan rounds.
fn lookups(plan: &Plan) -> Vec<tabula::Rounding> {
    let lookups = plan.steps().filter_map(|step| match &step.protocol {
        Protocol::TabulaLookup(lookup) => Some(lookup.rounding),
        _ => None,
    });
    lookups.collect()
}

/// What a stochastic rescale takes has no guard, since it would move what is added; and what the result is made of is rescaled exactly.
#[test]
fn the_last_rescale_of_a_stochastic_plan_is_exact() {
    use Accuracy::Guarded;
    use tabula::Rounding::{Exact, Stochastic};
    let planned =
        |network: &PublicNetwork, rounding| plan(network, Policy::Label, Mode::Tabula(rounding)).unwrap();
    let deep = network(&[
        (WIDE, &[0], 16),
        (RELU, &[1], 16),
        (RESCALE, &[2], 16),
        (WIDE, &[3], 16),
        (RELU, &[4], 16),
        (RESCALE, &[5], 16),
        (WIDE, &[6], 16),
        (RESCALE, &[7], 16),
        (SCORES, &[8], 4),
    ]);
    let of_deep = planned(&deep, Stochastic);
    assert_eq!(lookups(&of_deep), [Stochastic, Stochastic, Exact]);
    assert_eq!(accuracies(&of_deep), [Accuracy::Exact, Accuracy::Exact, Guarded(1), Guarded(1)]);
    assert_eq!(lookups(&planned(&deep, Exact)), [Exact; 3]);
    assert_eq!(accuracies(&planned(&deep, Exact)), [Guarded(1); 4]);
    for network in networks() {
        let both = [Exact, Stochastic].map(|rounding| planned(&network, rounding).items);
        assert_eq!(both[0], both[1]);
    }
    // A value that the result reads on a shortcut, too, is in it.
    let through = network(&[
        (WIDE, &[0], 16),
        (RESCALE, &[1], 16),
        (WIDE, &[2], 16),
        (RESCALE, &[3], 16),
        (r#"{"Add":{"factors":[1,1]}}"#, &[2, 4], 16),
        (SCORES, &[5], 4),
    ]);
    assert_eq!(lookups(&planned(&through, Stochastic)), [Exact; 2]);
}
