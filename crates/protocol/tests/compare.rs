//! Nonlinear layers over `Z_2^l` by oblivious transfer equal their formulas on edge values, send what they say, and open nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::{Party as End, edge_share, rng, run, signed, split};
use lanner_ot::silent::Parameters;
use lanner_protocol::nonlinear::compare::{Layer, Rounding, Supplies, Transfers};
use lanner_protocol::nonlinear::windows::Windows;
use lanner_protocol::nonlinear::yao::Function;
use lanner_protocol::{Cost, Party};
use lanner_share::{Ring, Share};

const SET: Parameters = Parameters::ALL[0];

struct Case {
    layer: Layer,
    secrets: Vec<i64>,
    from: u32,
    /// The server's shares; none for edge values and random ones.
    server: Option<Vec<u64>>,
}

impl Case {
    fn new(layer: Layer, secrets: Vec<i64>, from: u32) -> Self {
        Self { layer, secrets, from, server: None }
    }
}

/// Runs all layers one after the other in one session; gives each one's outputs and checks what it sent.
fn outputs(cases: &[Case]) -> Vec<Vec<i64>> {
    let mut channels = End::pair();
    let shares: Vec<(Share, Share)> = cases
        .iter()
        .map(|case| {
            let ring = Ring::Pow2(case.from);
            let server = match &case.server {
                Some(values) => Share::new(ring, values.clone()).unwrap(),
                None => edge_share(ring, case.secrets.len(), &mut rng(9)),
            };
            (split(ring, &case.secrets, &server), server)
        })
        .collect();
    let party = |end: &mut End, me: Party, number: u8, shares: Vec<&Share>| {
        let mut rng = rng(number);
        let mut transfers = Transfers::setup(end, me, SET, &mut rng).unwrap();
        let mut supplies = Supplies::new(SET);
        let mut results = Vec::new();
        for (case, share) in cases.iter().zip(shares) {
            let sent = |end: &End| end.sent.iter().map(|(_, payload)| 6 + payload.len() as u64).sum::<u64>();
            let bytes_of = |cost: Cost| match me {
                Party::Client => cost.client_bytes(),
                Party::Server => cost.server_bytes(),
            };
            let before = sent(end);
            let request = case.layer.request(end, &mut transfers).unwrap();
            let material = case.layer.prepare(end, &mut transfers, request, &mut rng).unwrap();
            let offline = case.layer.offline_cost(&mut supplies);
            assert_eq!(sent(end) - before, bytes_of(offline.request.then(offline.answer)));
            let before = sent(end);
            results.push(case.layer.online(end, me, material, share).unwrap());
            assert_eq!(sent(end) - before, bytes_of(case.layer.online_cost()));
        }
        results
    };
    let (client_shares, server_shares): (Vec<&Share>, Vec<&Share>) =
        shares.iter().map(|(c, s)| (c, s)).unzip();
    let (client, server) = run(
        &mut channels,
        |end| party(end, Party::Client, 1, client_shares),
        |end| party(end, Party::Server, 2, server_shares),
    );
    client.iter().zip(&server).map(|(c, s)| c.reveal(s).unwrap()).collect()
}

/// Edge values and random ones of a ring whose values have at most `bits - 2` bits with their sign, before a shift.
fn values(bits: u32, shift: u32, count: usize) -> Vec<i64> {
    let top = (1_i64 << (bits - 2)) - (1 << shift) - 1;
    let (half, one) = ((1 << shift) >> 1, 1 << shift);
    let edges: [i64; 14] =
        [0, 1, -1, half, -half, half - 1, -half - 1, one, -one, one - 1, top, -top, top - 1, 1 - top];
    let mut values: Vec<i64> = edges.into_iter().filter(|x| x.abs() <= top).collect();
    values.extend(signed(count - values.len(), top, &mut rng(bits as u8)));
    values
}

fn rescale(x: i64, shift: u32) -> i64 {
    if shift == 0 { x } else { (x + (1 << (shift - 1))) >> shift }
}

fn apply(function: Function, window: &[i64]) -> i64 {
    let y = window.iter().map(|x| rescale(*x, function.shift)).max().unwrap();
    let y = if function.relu { y.max(0) } else { y };
    function.high.map_or(y, |high| y.min(high))
}

fn function(relu: bool, high: Option<i64>, shift: u32) -> Function {
    Function { relu, slope: None, high, shift }
}

#[test]
fn activations_equal_their_formulas() {
    let mut cases = Vec::new();
    let mut functions = Vec::new();
    for (from, shift, to) in
        [(20, 9, 20), (20, 0, 20), (37, 12, 24), (16, 13, 30), (12, 4, 8), (62, 20, 62), (20, 7, 9)]
    {
        for function in [
            function(true, None, shift),
            function(false, None, shift),
            function(true, Some(0), shift),
            function(true, Some((1 << (from - shift - 3)) - 1), shift),
        ] {
            // Outputs that do not fit the output ring have no meaning.
            let fits = |x: i64| apply(function, &[x]).unsigned_abs() < 1 << (to - 2).min(from - shift - 1);
            let secrets: Vec<i64> = values(from, shift, 130).into_iter().filter(|x| fits(*x)).collect();
            for rounding in [Rounding::Exact, Rounding::Faithful] {
                let windows = Windows::each(secrets.len());
                let layer = Layer::activation(function, &windows, from, to, rounding).unwrap();
                cases.push(Case::new(layer, secrets.clone(), from));
                functions.push((function, rounding));
            }
        }
    }
    for ((case, (function, rounding)), outputs) in cases.iter().zip(functions).zip(outputs(&cases)) {
        assert_eq!(outputs.len(), case.secrets.len());
        for (x, y) in case.secrets.iter().zip(outputs) {
            let expected = apply(function, &[*x]);
            let off = if rounding == Rounding::Exact { 0 } else { i64::from(function.shift > 0) };
            assert!((y - expected).abs() <= off, "{function:?} {rounding:?} of {x}: {y}, not {expected}");
        }
    }
}

#[test]
fn faithful_values_are_one_of_both_neighbours() {
    let secrets = values(20, 6, 1000);
    let layer = |function| {
        let windows = Windows::each(secrets.len());
        Layer::activation(function, &windows, 20, 20, Rounding::Faithful).unwrap()
    };
    let case = |function| Case::new(layer(function), secrets.clone(), 20);
    let out = outputs(&[case(function(false, None, 6)), case(function(true, None, 6))]);
    for (x, (plain, relu)) in secrets.iter().zip(out[0].iter().zip(&out[1])) {
        assert!([x >> 6, (x >> 6) + 1].contains(plain));
        // The ReLU is exact on what truncation gives: never a wrong sign.
        assert!([(x >> 6).max(0), ((x >> 6) + 1).max(0)].contains(relu));
    }
}

/// Every value that a small ring allows, with every share of the server's.
#[test]
fn every_sharing_of_every_value_of_a_small_ring_is_right() {
    let mut cases = Vec::new();
    let mut functions = Vec::new();
    for (from, shift) in [(4, 0), (6, 0), (6, 1), (7, 3), (8, 4)] {
        let top = (1_i64 << (from - 2)) - (1 << shift) - 1;
        let every = (-top..=top).flat_map(|x| (0..1_u64 << from).map(move |share| (x, share)));
        let (secrets, server): (Vec<i64>, Vec<u64>) = every.unzip();
        let left = from - shift;
        let highest = (1 << (left - 2)) - 1;
        for (relu, high) in [(false, None), (true, None), (true, Some(0)), (true, Some(highest))] {
            for (to, rounding) in [
                (left, Rounding::Exact),
                (left + 1, Rounding::Exact),
                (62, Rounding::Exact),
                (from, Rounding::Faithful),
            ] {
                let function = function(relu, high, shift);
                let windows = Windows::each(secrets.len());
                let layer = Layer::activation(function, &windows, from, to, rounding).unwrap();
                cases.push(Case { server: Some(server.clone()), ..Case::new(layer, secrets.clone(), from) });
                functions.push((function, rounding));
            }
        }
    }
    for ((case, (function, rounding)), outputs) in cases.iter().zip(functions).zip(outputs(&cases)) {
        for (x, y) in case.secrets.iter().zip(outputs) {
            // Truncation gives one of both neighbours; what follows is exact on either.
            let bound = |y: i64| apply(Function { shift: 0, ..function }, &[y]);
            let neighbours = [x >> function.shift, (x >> function.shift) + i64::from(function.shift > 0)];
            let right = match rounding {
                Rounding::Exact => y == apply(function, &[*x]),
                Rounding::Faithful => neighbours.map(bound).contains(&y),
            };
            assert!(right, "{function:?} {rounding:?} of {x}: {y}");
        }
    }
}

/// What an exact layer makes of a value, also beyond what values may be: the formula on what is left of it modulo `2^(from - shift)`.
fn wrapped(function: Function, x: i64, from: u32) -> i64 {
    let half = (1 << function.shift) >> 1;
    let left = Ring::Pow2(from).embed(x + half) >> function.shift;
    apply(Function { shift: 0, ..function }, &[Ring::Pow2(from - function.shift).signed(left)])
}

/// Whoever knows its own share must not learn more from a second run: outputs are functions of the value, even of one that the
/// network's limits exclude and an input that nobody calibrated for may reach.
#[test]
fn exact_outputs_do_not_depend_on_the_sharing_whatever_the_value() {
    let (mut cases, mut kinds) = (Vec::new(), Vec::new());
    for (from, shift) in [(5, 0), (7, 2), (8, 3)] {
        let half = 1_i64 << (from - 1);
        let every = (-half..half).flat_map(|x| (0..1_u64 << from).map(move |share| (x, share)));
        let (secrets, server): (Vec<i64>, Vec<u64>) = every.unzip();
        let left = from - shift;
        for (relu, high) in
            [(false, None), (true, None), (true, Some(0)), (true, Some((1 << (left - 2)) - 1))]
        {
            for (to, rounding) in [
                (left, Rounding::Exact),
                (left + 1, Rounding::Exact),
                (30, Rounding::Exact),
                (30, Rounding::Faithful),
            ] {
                let function = function(relu, high, shift);
                let layer =
                    Layer::activation(function, &Windows::each(secrets.len()), from, to, rounding).unwrap();
                cases.push(Case { server: Some(server.clone()), ..Case::new(layer, secrets.clone(), from) });
                kinds.push((function, rounding, to));
            }
        }
    }
    for ((case, (function, rounding, to)), outputs) in cases.iter().zip(kinds).zip(outputs(&cases)) {
        let ring = Ring::Pow2(to);
        let right = |(x, y): (&i64, i64)| ring.embed(y) == ring.embed(wrapped(function, *x, case.from));
        let all_right = case.secrets.iter().zip(outputs).all(right);
        // What drops the carry is what this test would catch.
        let one_way = rounding == Rounding::Exact || function.shift == 0 || function.high == Some(0);
        assert_eq!(all_right, one_way, "{function:?} {rounding:?} from {} to {to} bits", case.from);
    }
}

/// Ties, the ends of the range beside each other, and maxima of one to four values, in every order.
#[test]
fn every_window_of_edge_values_gives_its_largest() {
    let (from, shift) = (20, 7);
    let top = (1_i64 << (from - 2)) - (1 << shift) - 1;
    let edges = [0, -1, 1, 1 << shift, -(1 << shift), top, -top];
    let mut cases = Vec::new();
    for area in 1..=4_u32 {
        let count = edges.len().pow(area);
        let digit = |window: usize, place: u32| edges[window / edges.len().pow(place) % edges.len()];
        let windows = Windows {
            channels: 1,
            image: [count, area as usize],
            kernel: [1, area as usize],
            strides: [1, 1],
            pads: [0; 4],
        };
        let secrets: Vec<i64> = (0..count)
            .flat_map(|window| (0..area).map(move |place| (window, place)))
            .map(|(w, p)| digit(w, p))
            .collect();
        let layer =
            Layer::activation(function(false, None, shift), &windows, from, 14, Rounding::Exact).unwrap();
        cases.push((area as usize, Case::new(layer, secrets, from)));
    }
    let (areas, cases): (Vec<usize>, Vec<Case>) = cases.into_iter().unzip();
    for ((area, case), outputs) in areas.iter().zip(&cases).zip(outputs(&cases)) {
        let windows = case.secrets.chunks(*area);
        let expected: Vec<i64> = windows.map(|window| apply(function(false, None, shift), window)).collect();
        assert_eq!(outputs, expected);
    }
}

#[test]
fn pools_give_the_largest_of_each_window() {
    let pool = |kernel: usize, strides: usize, pads: [usize; 4]| Windows {
        channels: 2,
        image: [6, 7],
        kernel: [kernel; 2],
        strides: [strides; 2],
        pads,
    };
    let mut cases = Vec::new();
    let mut expected = Vec::new();
    for (windows, relu) in
        [(pool(2, 2, [0; 4]), true), (pool(3, 2, [1, 1, 1, 1]), false), (pool(3, 1, [0; 4]), true)]
    {
        let secrets = signed(84, (1 << 18) - (1 << 8) - 1, &mut rng(5));
        let function = function(relu, None, 7);
        let layer = Layer::activation(function, &windows, 20, 20, Rounding::Exact).unwrap();
        let groups = windows.filled_groups().unwrap();
        let window = |group: &Vec<usize>| group.iter().map(|i| secrets[*i]).collect::<Vec<_>>();
        expected.push(groups.iter().map(|group| apply(function, &window(group))).collect::<Vec<_>>());
        cases.push(Case::new(layer, secrets, 20));
    }
    assert_eq!(outputs(&cases), expected);
}

#[test]
fn squares_are_squares() {
    let mut cases = Vec::new();
    for bits in [20, 37, 62] {
        let root = 1_i64 << (bits / 2 - 2);
        let mut secrets = vec![0, 1, -1, root, -root, root - 1];
        secrets.extend(signed(70, root, &mut rng(3)));
        cases.push(Case::new(Layer::square(secrets.len(), bits).unwrap(), secrets, bits));
    }
    // Every sharing of every value, whose squares wrap around.
    for bits in [2, 5] {
        let (half, size) = (1_i64 << (bits - 1), 1_u64 << bits);
        let (secrets, server): (Vec<i64>, Vec<u64>) =
            (-half..half).flat_map(|x| (0..size).map(move |share| (x, share))).unzip();
        let layer = Layer::square(secrets.len(), bits).unwrap();
        cases.push(Case { server: Some(server), ..Case::new(layer, secrets, bits) });
    }
    for (case, outputs) in cases.iter().zip(outputs(&cases)) {
        let ring = Ring::Pow2(case.from);
        assert!(case.secrets.iter().zip(outputs).all(|(x, y)| ring.embed(x * x) == ring.embed(y)));
    }
}

#[test]
fn a_relu_layer_takes_few_rounds() {
    let windows = Windows::each(100);
    let layer = |windows, shift| {
        Layer::activation(function(true, None, shift), windows, 20, 20, Rounding::Faithful).unwrap()
    };
    assert!(layer(&windows, 8).online_cost().rounds() <= 6);
    let pool = Windows { channels: 1, image: [20, 20], kernel: [2, 2], strides: [2, 2], pads: [0; 4] };
    assert!(layer(&pool, 8).online_cost().rounds() <= 14);
}

#[test]
fn layers_that_do_not_fit_are_refused() {
    let each = Windows::each(3);
    let layer = |function, from, to| Layer::activation(function, &each, from, to, Rounding::Exact);
    assert!(layer(function(true, None, 18), 20, 20).is_err());
    assert!(layer(function(true, None, 0), 63, 20).is_err());
    assert!(layer(function(true, None, u32::MAX), 20, 20).is_err());
    assert!(layer(function(true, None, 0), 20, 63).is_err());
    assert!(layer(function(false, Some(3), 0), 20, 20).is_err());
    assert!(layer(function(true, Some(-1), 0), 20, 20).is_err());
    assert!(layer(function(true, Some(1 << 19), 0), 20, 20).is_err());
    assert!(Layer::square(1, 63).is_err());
}
