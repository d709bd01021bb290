//! How functions and products of two values are planned.

use lanner_network::elementwise::FixedFunction;
use lanner_network::{Policy, PublicNetwork};
use lanner_plan::{Mode, Plan, plan};
use lanner_protocol::Protocol;
use lanner_tabula as tabula;
use lanner_transfers::{End, Rounding};

use crate::common;

const CHEETAH: Mode = Mode::Cheetah(Rounding::Exact);

/// A network of nodes of 16 elements, each the operator, the values that it reads, and the modulus.
fn network(nodes: &[(&str, &[usize], u64)]) -> PublicNetwork {
    let node = |(number, (op, inputs, modulus)): (usize, &(&str, &[usize], u64))| {
        format!(r#"{{"name":"n{number}","op":{op},"inputs":{inputs:?},"shape":[16],"modulus":{modulus}}}"#)
    };
    let modulus = nodes[0].2;
    let nodes: Vec<String> = nodes.iter().enumerate().map(node).collect();
    common::network("[16]", 255, modulus, &nodes.join(","))
}

const LAYER: &str = r#"{"Linear":{"outputs":16}}"#;
const RESCALE: &str = r#"{"Rescale":{"shift":6}}"#;
const LINES: &str =
    r#"{"Function":{"low":-512,"bits":10,"polynomials":[[0,1],[512,0],[512,1],[1024,-1]],"shift":2}}"#;
const MUL: &str = r#""Mul""#;

fn names(network: &PublicNetwork, mode: Mode) -> (Plan, Vec<&'static str>) {
    let plan = plan(network, Policy::Logits, mode).unwrap();
    let names = plan.steps().map(|step| step.protocol.name()).collect();
    (plan, names)
}

#[test]
fn a_function_takes_the_rescale_before_it_along_with_its_guard() {
    let (large, small) = (1 << 20, 1 << 16);
    let network = network(&[(LAYER, &[0], large), (RESCALE, &[1], small), (LINES, &[2], small)]);
    let (plan, names) = names(&network, CHEETAH);
    assert_eq!(names, ["cheetah.fc", "ot.function", "share.reveal"]);
    let function = plan.steps().find_map(|step| match &step.protocol {
        Protocol::RingFunction(function) => Some((function.from, function.shift, function.to)),
        _ => None,
    });
    assert_eq!(function, Some((21, 7, 16)));
}

/// An absolute value is never below 0: what a function of it is compared with is its domain's upper end alone. Of what only looks like one both are.
#[test]
fn functions_of_absolute_values_are_compared_with_one_end() {
    const NEGATED: &str = r#"{"Scale":{"factor":-1}}"#;
    const SIZE: &str = r#"{"Add":{"factors":[2,1]}}"#;
    const OF_SIZES: &str =
        r#"{"Function":{"low":0,"bits":9,"polynomials":[[0,1],[512,0],[512,1],[1024,-1]],"shift":2}}"#;
    const WIDE: &str = r#"{"Rescale":{"shift":0}}"#;
    let (large, small, tiny) = (1 << 24, 1 << 20, 1 << 14);
    let within = |nodes: &[(&str, &[usize], u64)]| -> Vec<Option<End>> {
        let (plan, _) = names(&network(nodes), CHEETAH);
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
        let of_step = |step: &lanner_plan::Step| match &step.protocol {
            Protocol::RingFunction(function) => Some(function.within),
            _ => None,
        };
        plan.steps().filter_map(of_step).collect()
    };
    let rescale = r#"{"Rescale":{"shift":10}}"#;
    let begin = [(LAYER, &[0][..], large), (rescale, &[1], tiny), (r#""Relu""#, &[2], tiny)];
    let back = [(WIDE, &[3][..], small), (r#""Narrow""#, &[4], tiny)];
    let nodes = |part: usize, rest: &[(&'static str, Vec<usize>, u64)]| {
        let rest: Vec<(&str, &[usize], u64)> =
            rest.iter().map(|(op, inputs, ring)| (*op, &inputs[..], *ring)).collect();
        let until = if part == 3 { 0 } else { 2 };
        within(&[&begin[..], &back[..until], &rest].concat())
    };
    let end = |sum: usize| {
        [(OF_SIZES, vec![sum], tiny), (r#"{"Add":{"factors":[1,1]}}"#, vec![sum + 1, sum], tiny)]
    };
    // By the positive part as it is, and by that which comes back from a wide ring.
    for part in [3, 5] {
        let rest =
            [vec![(NEGATED, vec![2], tiny), (SIZE, vec![part, part + 1], tiny)], end(part + 2).to_vec()]
                .concat();
        assert_eq!(nodes(part, &rest), [Some(End::Low)]);
        // The value itself, twice, less its positive part.
        let other =
            [vec![(NEGATED, vec![part], tiny), (SIZE, vec![2, part + 1], tiny)], end(part + 2).to_vec()]
                .concat();
        assert_eq!(nodes(part, &other), [None]);
    }
}

/// A value is narrowed with the guard that it has, and looked up, or compared, in the ring that is left.
#[test]
fn a_narrow_value_is_looked_up_in_its_own_ring() {
    let (large, narrow, small) = (1 << 24, 1 << 20, 1 << 16);
    let network = network(&[
        (LAYER, &[0], large),
        (r#""Narrow""#, &[1], narrow),
        (r#""Relu""#, &[2], narrow),
        (RESCALE, &[3], small),
    ]);
    let (plan, names) = names(&network, Mode::Tabula(tabula::Rounding::Exact));
    assert_eq!(names, ["delphi.fc", "local.narrow", "tabula.lookup", "share.reveal"]);
    let rings = |plan: &Plan| -> Vec<[u32; 2]> {
        let of_step = |step: &lanner_plan::Step| match &step.protocol {
            Protocol::Narrow(narrow) => Some([narrow.from, narrow.to]),
            Protocol::TabulaLookup(lookup) => Some([lookup.from, lookup.shift]),
            Protocol::RingActivation(activation) => Some([activation.from, activation.function.shift]),
            _ => None,
        };
        plan.steps().filter_map(of_step).collect()
    };
    assert_eq!(rings(&plan), [[25, 21], [21, 7]]);
    assert_eq!(rings(&lanner_plan::plan(&network, Policy::Logits, CHEETAH).unwrap()), [[25, 21], [21, 7]]);
    let lookups: Vec<_> =
        network.lookups().map(|lookup| (lookup.first, lookup.kept, lookup.dropped)).collect();
    assert_eq!(lookups, [(2, 13, 6)]);
}

#[test]
fn mode_tabula_has_tables_of_functions_of_few_bits() {
    let ring = 1 << 20;
    let tabula = Mode::Tabula(tabula::Rounding::Exact);
    let of = |shift: u32| {
        let rescale = format!(r#"{{"Rescale":{{"shift":{shift}}}}}"#);
        let network = network(&[(LAYER, &[0], ring), (&rescale, &[1], ring), (LINES, &[2], ring)]);
        let (plan, names) = names(&network, tabula);
        plan.build().unwrap();
        (names[1], plan)
    };
    let (name, plan) = of(8);
    assert_eq!(name, "tabula.table");
    let table = plan.steps().find_map(|step| match &step.protocol {
        Protocol::TabulaTable(table) => Some((table.from, table.shift, table.to, table.expanded)),
        _ => None,
    });
    assert_eq!(table, Some((21, 9, 20, false)));
    // 13 bits with their sign are more than a table's, and a function without a rescale has all of the ring's.
    assert_eq!(of(6).0, "ot.function");
    let (_, names) = names(&network(&[(LAYER, &[0], ring), (LINES, &[1], ring)]), tabula);
    assert_eq!(names[1], "ot.function");
}

/// A maximum does not take the rescale from the table behind it.
#[test]
fn a_pool_before_a_table_is_taken_alone() {
    let ring = 1 << 20;
    let leaky = r#"{"Function":{"low":-512,"bits":10,"polynomials":[[-512,1],[0,8]],"shift":3}}"#;
    let node = |name: &str, op: &str, input: usize, shape: &str| {
        format!(r#"{{"name":"{name}","op":{op},"inputs":[{input}],"shape":{shape},"modulus":{ring}}}"#)
    };
    let pool = r#"{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}}"#;
    let planned = |shift: u32, mode| {
        let rescale = format!(r#"{{"Rescale":{{"shift":{shift}}}}}"#);
        let nodes = [(pool, 0), (rescale.as_str(), 1), (leaky, 2)];
        let nodes = nodes.map(|(op, input)| node(&format!("n{input}"), op, input, "[1,4,4]"));
        let network = common::network("[1,8,8]", 255, ring, &nodes.join(","));
        let (plan, names) = names(&network, mode);
        plan.build().unwrap();
        names
    };
    let tabula = Mode::Tabula(tabula::Rounding::Exact);
    assert_eq!(planned(8, tabula), ["ot.activation", "tabula.table", "share.reveal"]);
    // Too many bits for a table.
    assert_eq!(planned(5, tabula), ["ot.activation", "tabula.lookup", "ot.function", "share.reveal"]);
    assert_eq!(planned(8, CHEETAH), ["ot.activation", "ot.function", "share.reveal"]);
}

/// What a step's polynomials are at an integer is what the network's are, in the domain, beyond it, and with factors.
#[test]
fn functions_in_the_clear_are_the_networks() {
    let factors = r#","factors":{"values":[3,-5,70,1],"shift":5}"#;
    for (low, polynomials, shift, factors) in [
        (-512, "[[0,1],[512,0],[512,1],[1024,-1]]", 2, ""),
        (-100, "[[7,-9,3,-1],[1000,0,-2,1]]", 4, ""),
        (5, "[[77],[-3]]", 0, ""),
        (-512, "[[40,-3,1],[9,9,-1]]", 3, factors),
    ] {
        let json =
            format!(r#"{{"low":{low},"bits":10,"polynomials":{polynomials},"shift":{shift}{factors}}}"#);
        let function: FixedFunction = serde_json::from_str(&json).unwrap();
        let polynomials = lanner_plan::polynomials(&function);
        for x in (-3000..3000).chain([i64::MIN / 4, i64::MAX / 4]) {
            assert_eq!(polynomials.at(x).unwrap(), function.at(x), "{json} {x}");
        }
    }
}

#[test]
fn what_else_is_read_is_rescaled_alone() {
    let ring = 1 << 20;
    let nodes: [(&str, &[usize], u64); 4] =
        [(LAYER, &[0], ring), (RESCALE, &[1], ring), (LINES, &[2], ring), (MUL, &[2, 3], ring)];
    let (_, names) = names(&network(&nodes), CHEETAH);
    assert_eq!(names, ["cheetah.fc", "ot.activation", "ot.function", "ot.product", "share.reveal"]);
}

#[test]
fn modes_over_primes_go_there_and_back() {
    let (large, small) = (16_760_833, 1_032_193);
    let nodes: [(&str, &[usize], u64); 4] =
        [(LAYER, &[0], large), (RESCALE, &[1], small), (LINES, &[2], small), (MUL, &[3, 3], small)];
    for mode in [Mode::Gazelle, Mode::Falcon] {
        let (plan, names) = names(&network(&nodes[..3]), mode);
        assert_eq!(
            names[1..],
            ["yao.activation", "ot.function", "share.reshare", "yao.activation", "share.reveal"]
        );
        plan.build().unwrap();
        let (_, names) = self::names(&network(&nodes), mode);
        let product = [
            "share.reshare",
            "yao.activation",
            "yao.activation",
            "ot.product",
            "share.reshare",
            "yao.activation",
        ];
        assert_eq!(names[5..11], product);
    }
}

/// Whatever a foreign manifest says of a function, it is refused or planned.
#[test]
fn no_function_of_a_foreign_manifest_is_too_much() {
    const RING: u64 = 1 << 37;
    let lows = [i64::MIN, -1 << 40, -512, 0, i64::MAX];
    let bits = [0, 1, 10, 20, 21, u32::MAX];
    let shifts = [0, 1, 13, 58, 59, 64, u32::MAX];
    let list = |values: Vec<Vec<i64>>| format!("{values:?}");
    let polynomials = [
        list(vec![]),
        list(vec![vec![]; 2]),
        list(vec![vec![3, 1]; 3]),
        list(vec![vec![-7, 1], vec![1 << 30, -1]]),
        list(vec![vec![i64::MIN, i64::MAX, i64::MIN, i64::MAX]]),
        list(vec![vec![1, 2, 3, 4, 5]; 2]),
        list(vec![vec![(1 << 58) - 1]; 256]),
        list(vec![vec![5]; 512]),
    ];
    let factors =
        |values: Vec<i64>, shift: u32| format!(r#","factors":{{"values":{values:?},"shift":{shift}}}"#);
    let factors = [
        String::new(),
        factors(vec![], 0),
        factors(vec![1], 0),
        factors(vec![4, -9], 3),
        factors(vec![4, -9], u32::MAX),
        factors(vec![i64::MIN, i64::MAX], 58),
        factors(vec![1 << 40; 4], 45),
        factors(vec![1; 512], 0),
        r#","factors":{"values":[1,2],"shift":1,"more":2}"#.to_owned(),
    ];
    let (mut planned, mut refused) = (0, 0);
    for (low, bits) in lows.iter().flat_map(|low| bits.map(|bits| (low, bits))) {
        for (shift, polynomials) in
            shifts.iter().flat_map(|shift| polynomials.iter().map(move |p| (shift, p)))
        {
            for factors in &factors {
                let function = format!(
                    r#"{{"name":"f","op":{{"Function":{{"low":{low},"bits":{bits},"polynomials":{polynomials},"shift":{shift}{factors}}}}},"inputs":[0],"shape":[16],"modulus":{RING}}}"#
                );
                let Ok(network) = common::read("[16]", 255, RING, &function) else {
                    refused += 1;
                    continue;
                };
                plan(&network, Policy::Logits, CHEETAH).unwrap().build().unwrap();
                planned += 1;
            }
        }
    }
    assert!(planned > 50 && refused > 1000, "{planned} {refused}");
}
