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
}

/// Runs all layers one after the other in one session; gives each one's outputs and checks what it sent.
fn outputs(cases: &[Case]) -> Vec<Vec<i64>> {
    let mut channels = End::pair();
    let shares: Vec<(Share, Share)> = cases
        .iter()
        .map(|case| {
            let ring = Ring::Pow2(case.from);
            let server = edge_share(ring, case.secrets.len(), &mut rng(9));
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
                cases.push(Case { layer, secrets: secrets.clone(), from });
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
    let case = |function| Case { layer: layer(function), secrets: secrets.clone(), from: 20 };
    let out = outputs(&[case(function(false, None, 6)), case(function(true, None, 6))]);
    for (x, (plain, relu)) in secrets.iter().zip(out[0].iter().zip(&out[1])) {
        assert!([x >> 6, (x >> 6) + 1].contains(plain));
        // The ReLU is exact on what truncation gives: never a wrong sign.
        assert!([(x >> 6).max(0), ((x >> 6) + 1).max(0)].contains(relu));
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
        cases.push(Case { layer, secrets, from: 20 });
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
        cases.push(Case { layer: Layer::square(secrets.len(), bits).unwrap(), secrets, from: bits });
    }
    for (case, outputs) in cases.iter().zip(outputs(&cases)) {
        assert!(case.secrets.iter().zip(outputs).all(|(x, y)| x * x == y));
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
    assert!(layer(function(true, None, 0), 20, 63).is_err());
    assert!(layer(function(false, Some(3), 0), 20, 20).is_err());
    assert!(layer(function(true, Some(-1), 0), 20, 20).is_err());
    assert!(layer(function(true, Some(1 << 19), 0), 20, 20).is_err());
    assert!(Layer::square(1, 63).is_err());
}
