//! Nonlinear layers over `Z_2^l` by oblivious transfer equal their formulas on edge values, send what they say, and open nothing.

mod functions;
mod random_functions;
mod softmax;

use std::collections::VecDeque;

use lanner_ot::silent::Parameters;
use lanner_primitives::{Prg, Ring, Share};
use lanner_step::{Cost, CotSupply, Function, Party, ProtocolError, Transfers, Windows};
use lanner_transfers::{Layer, Material, Polynomials, Rounding};
use lanner_wire::{DecodeError, Reader, Writer};
use rand_core::Rng;
use sha2::{Digest, Sha256};

use crate::common::{Party as End, edge_share, rng, run, signed, split};

/// Of transfers that the client sends, and the server: not the same, as in a session.
const SETS: [Parameters; 2] = [Parameters::ALL[1], Parameters::ALL[0]];

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

/// One party's share of the outputs, and the length of each message that it sent online.
type Played = (Share, VecDeque<usize>);

/// The outputs of each layer, all run one after the other in one session.
fn outputs(cases: &[Case]) -> Vec<Vec<i64>> {
    run_in(&mut End::pair(), cases)
}

/// The outputs of all layers, run in a session over these channels; checks what each sends.
fn run_in(channels: &mut (End, End), cases: &[Case]) -> Vec<Vec<i64>> {
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
        let mut transfers = Transfers::setup(end, me, SETS, &mut rng).unwrap();
        let mut supply = CotSupply::new(SETS);
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
            let offline = case.layer.offline_cost(&mut supply);
            assert_eq!(sent(end) - before, bytes_of(offline.request.then(offline.answer)));
            let material = decoded(&encoded(&material, &case.layer, me), &case.layer, me).unwrap();
            let (before, first) = (sent(end), end.sent.len());
            let output = case.layer.online(end, me, material, &[share]).unwrap();
            assert_eq!(sent(end) - before, bytes_of(case.layer.online_cost()));
            let messages = end.sent[first..].iter().map(|(_, payload)| payload.len());
            results.push((output, messages.collect::<VecDeque<_>>()));
        }
        results
    };
    let (client_shares, server_shares): (Vec<&Share>, Vec<&Share>) =
        shares.iter().map(|(c, s)| (c, s)).unzip();
    let (client, server) = run(
        channels,
        |end| party(end, Party::Client, 1, client_shares),
        |end| party(end, Party::Server, 2, server_shares),
    );
    let outputs = |((case, client), server): ((&Case, Played), Played)| {
        let mut sent = [client.1, server.1];
        for (party, length) in case.layer.messages() {
            assert_eq!(sent[usize::from(party == Party::Server)].pop_front(), Some(length));
        }
        assert!(sent.iter().all(VecDeque::is_empty));
        client.0.reveal(&server.0).unwrap()
    };
    cases.iter().zip(client).zip(server).map(outputs).collect()
}

fn encoded(material: &Material, layer: &Layer, party: Party) -> Vec<u8> {
    let mut writer = Writer::new();
    material.encode(&mut writer);
    assert!(writer.len() as u64 <= layer.held(party));
    writer.into_bytes()
}

fn decoded(bytes: &[u8], layer: &Layer, party: Party) -> Result<Material, DecodeError> {
    let mut reader = Reader::new(bytes);
    let material = Material::decode(&mut reader, layer, party)?;
    reader.finish().map(|()| material)
}

/// Edge values and random ones that a ring allows before a shift, if no differences of them are taken.
fn values(bits: u32, shift: u32, count: usize) -> Vec<i64> {
    let top = (1_i64 << (bits - 1)) - (1 << shift) - 1;
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
    Function { relu, high, shift, ..Function::IDENTITY }
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
            function(true, Some((1 << (from - shift - 1)) - 1), shift),
            // Bounds with zeros below, which share a part of their comparisons.
            function(true, Some(3 << (from - shift - 3)), shift),
            function(true, Some((5 << (from - shift)) >> 6), shift),
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
        let top = (1_i64 << (from - 1)) - (1 << shift) - 1;
        let every = (-top..=top).flat_map(|x| (0..1_u64 << from).map(move |share| (x, share)));
        let (secrets, server): (Vec<i64>, Vec<u64>) = every.unzip();
        let left = from - shift;
        let highest = (1 << (left - 1)) - 1;
        for (relu, high) in
            [(false, None), (true, None), (true, Some(0)), (true, Some(highest / 2)), (true, Some(highest))]
        {
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

/// Every value of a ring but the lowest, with every share of the server's, in every ring that it may go to.
#[test]
fn step_functions_are_right_in_every_small_ring() {
    let step = function(true, Some(1), 0);
    let mut cases = Vec::new();
    for from in 2..=8 {
        let top = (1_i64 << (from - 1)) - 1;
        let every = (-top..=top).flat_map(|x| (0..1_u64 << from).map(move |share| (x, share)));
        let (secrets, server): (Vec<i64>, Vec<u64>) = every.unzip();
        for to in (2..=8).chain((from == 4).then_some(62)) {
            let windows = Windows::each(secrets.len());
            let layer = Layer::activation(step, &windows, from, to, Rounding::Exact).unwrap();
            cases.push(Case { server: Some(server.clone()), ..Case::new(layer, secrets.clone(), from) });
        }
    }
    for from in [12, 26, 41, 62] {
        let secrets = values(from, 0, 130);
        let layer = Layer::activation(step, &Windows::each(130), from, 4, Rounding::Faithful).unwrap();
        cases.push(Case::new(layer, secrets, from));
    }
    for (case, outputs) in cases.iter().zip(outputs(&cases)) {
        let expected: Vec<i64> = case.secrets.iter().map(|x| i64::from(*x >= 1)).collect();
        assert_eq!(outputs, expected, "from {} bits", case.from);
    }
}

#[test]
fn a_step_function_is_one_comparison() {
    let windows = Windows::each(64);
    let bytes = |high, from| {
        let function = function(true, Some(high), 0);
        let layer = Layer::activation(function, &windows, from, 4, Rounding::Exact).unwrap();
        (layer.online_cost().bytes(), layer.moves().count())
    };
    // A leaf of three bits, whose reply has eight, and a bit as a value of which three are sent; frames.
    assert_eq!(bytes(1, 4), (64 * (3 + 8 + 1 + 3) / 8 + 4 * 6, 2));
    assert!(bytes(1, 26).0 < bytes(2, 26).0 * 2 / 3);
    // Of windows maxima come first, and a ring of two bits has no other functions.
    let pair = Windows { channels: 1, image: [2, 2], kernel: [1, 2], strides: [1, 2], pads: [0; 4] };
    let layer = |windows: &Windows, high, from| {
        Layer::activation(function(true, Some(high), 0), windows, from, 4, Rounding::Exact)
    };
    assert!(
        layer(&windows, 1, 2).is_ok() && layer(&windows, 1, 1).is_err() && layer(&windows, 0, 2).is_err()
    );
    assert!(layer(&pair, 1, 2).is_err() && layer(&pair, 1, 3).is_ok());
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
    // Of the last two there are bounds with zeros enough below for a part that both of their comparisons share.
    for (from, shift) in [(5, 0), (7, 2), (8, 3), (8, 0), (8, 1)] {
        let half = 1_i64 << (from - 1);
        let every = (-half..half).flat_map(|x| (0..1_u64 << from).map(move |share| (x, share)));
        let (secrets, server): (Vec<i64>, Vec<u64>) = every.unzip();
        let left = from - shift;
        let plain = [(false, None), (true, None), (true, Some(0)), (true, Some((1 << (left - 2)) - 1))];
        let with_zeros = [32, 64, 96].into_iter().filter(|high| high >> (left - 1) == 0);
        let with_zeros: Vec<_> = with_zeros.map(|high| (true, Some(high))).collect();
        for (relu, high) in if left < 7 { plain.to_vec() } else { with_zeros } {
            let all = [
                (30, Rounding::Exact),
                (left, Rounding::Exact),
                (left + 1, Rounding::Exact),
                (30, Rounding::Faithful),
            ];
            for (to, rounding) in if left < 7 { &all[..] } else { &all[..1] }.iter().copied() {
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
fn a_dropped_guard_leaves_what_was_above_it() {
    let (mut cases, mut guards) = (Vec::new(), Vec::new());
    for (bits, guard) in [(37, 1), (20, 1), (24, 2), (30, 3), (45, 4)] {
        let secrets = values(bits + guard, guard, 150);
        cases.push(Case::new(Layer::drop_guard(secrets.len(), bits, guard).unwrap(), secrets, bits + guard));
        guards.push(guard);
    }
    // Every sharing of every value.
    for (bits, guard) in [(4, 1), (3, 2), (2, 3)] {
        let (half, size) = (1_i64 << (bits + guard - 1), 1_u64 << (bits + guard));
        let (secrets, server): (Vec<i64>, Vec<u64>) =
            (-half..half).flat_map(|x| (0..size).map(move |share| (x, share))).unzip();
        let layer = Layer::drop_guard(secrets.len(), bits, guard).unwrap();
        cases.push(Case { server: Some(server), ..Case::new(layer, secrets, bits + guard) });
        guards.push(guard);
    }
    for ((case, guard), outputs) in cases.iter().zip(guards).zip(outputs(&cases)) {
        assert!(case.secrets.iter().zip(outputs).all(|(x, y)| x >> guard == y), "{guard} of {}", case.from);
    }
}

/// One transfer of the server's for each value where the guard is one bit, a choice and what it chooses; else a comparison and a product.
#[test]
fn a_dropped_guard_takes_what_its_protocol_says() {
    for (guard, transfers, messages, bits) in [(1, [0, 1], 2, 1 + 30), (2, [1, 2], 4, 2 + 4 + 1 + 29)] {
        let layer = Layer::drop_guard(64, 30, guard).unwrap();
        let found = [Party::Client, Party::Server].map(|party| layer.transfers(party) / 64);
        let bytes: usize = layer.messages().map(|(_, bytes)| bytes).sum();
        assert_eq!((found, layer.messages().count(), bytes / 8), (transfers, messages, bits));
    }
}

/// A function of some windows, and how it is computed.
type Activation = (Function, Windows, u32, u32, Rounding);

/// A random one that there is a layer for.
fn random_activation(rng: &mut Prg) -> (Activation, Layer) {
    loop {
        let mut below = |limit: u32| (rng.next_u64() % u64::from(limit)) as u32;
        let (from, to) = (3 + below(60), 2 + below(61));
        let (shift, relu) = (below(from), below(3) > 0);
        let high = (relu && below(2) > 0).then(|| i64::from(below(1 << 20)));
        let mut size = |limit| [0; 2].map(|_| 1 + below(limit) as usize);
        let (image, kernel, strides) = (size(5), size(3), size(3));
        let pads = [0; 4].map(|_| below(3) as usize);
        let windows = Windows { channels: 8, image, kernel, strides, pads };
        let rounding = if below(3) > 0 { Rounding::Exact } else { Rounding::Faithful };
        let function = function(relu, high, shift);
        if let Ok(layer) = Layer::activation(function, &windows, from, to, rounding) {
            return ((function, windows, from, to, rounding), layer);
        }
    }
}

#[test]
fn random_layers_are_right_and_make_the_moves_that_were_counted() {
    let mut rng = rng(17);
    let (activations, mut cases): (Vec<Activation>, Vec<Case>) = (0..60)
        .map(|_| {
            let (activation, layer) = random_activation(&mut rng);
            let (Function { shift, .. }, windows, from, ..) = activation;
            let top = ((1_i64 << (from - 2)) - (1 << shift) - 1).max(0);
            (activation, Case::new(layer, signed(windows.inputs(), top, &mut rng), from))
        })
        .unzip();
    for bits in [2, 11, 40, 62] {
        cases.push(Case::new(Layer::square(24, bits).unwrap(), vec![1; 24], bits));
        let from = bits.min(58) + 3;
        cases.push(Case::new(Layer::drop_guard(24, from - 3, 3).unwrap(), vec![1; 24], from));
    }
    let found = outputs(&cases);
    for (activation, (case, outputs)) in activations.iter().zip(cases.iter().zip(&found)) {
        let (function, windows, _, to, rounding) = activation;
        let groups = windows.filled_groups().unwrap();
        assert_eq!(outputs.len(), groups.len());
        for (group, y) in groups.iter().zip(outputs) {
            let window: Vec<i64> = group.iter().map(|i| case.secrets[*i]).collect();
            let off = Ring::Pow2(*to).signed(Ring::Pow2(*to).embed(y - apply(*function, &window)));
            let bound = i64::from(*rounding == Rounding::Faithful && function.shift > 0);
            assert!(off.abs() <= bound, "{activation:?}: {y} of {window:?}");
        }
    }
}

/// Every message of a session of all kinds of layers, under fixed seeds.
#[test]
fn messages_have_their_known_digest() {
    let pool = Windows { channels: 2, image: [5, 6], kernel: [3, 3], strides: [2, 1], pads: [1; 4] };
    let layers = [
        Layer::activation(function(true, Some(100), 9), &pool, 20, 24, Rounding::Exact),
        Layer::activation(function(false, None, 7), &pool, 37, 20, Rounding::Faithful),
        Layer::activation(function(true, None, 0), &Windows::each(60), 16, 16, Rounding::Exact),
        Layer::activation(function(true, Some(96), 9), &Windows::each(60), 20, 24, Rounding::Exact),
        Layer::square(60, 23),
    ];
    let bits = [20, 37, 16, 20, 23];
    let case = |(layer, from): (_, u32)| Case::new(Result::unwrap(layer), values(from - 1, 9, 60), from);
    let cases: Vec<Case> = layers.into_iter().zip(bits).map(case).collect();
    let mut channels = End::pair();
    run_in(&mut channels, &cases);
    let mut hash = Sha256::new();
    for (kind, payload) in [channels.0, channels.1].into_iter().flat_map(|end| end.sent) {
        hash.update(kind.0.to_le_bytes());
        hash.update((payload.len() as u64).to_le_bytes());
        hash.update(payload);
    }
    let digest = u128::from_be_bytes(hash.finalize()[..16].try_into().unwrap());
    assert_eq!(digest, 0x3beb_ed75_a076_4eef_dd39_becc_d810_85f2, "the messages' digest is {digest:x}");
}

/// Transfers that the client and the server send, messages, and bits online, for each value: counted by hand.
#[test]
fn layers_take_what_their_protocols_say() {
    let (relu, clip, plain) = ((true, None), (true, Some(63)), (false, None));
    let shared = (true, Some(3 << 8));
    let rows = [
        // 36 bits in 12 leaves, 11 joins, a selection in both directions; 4 levels of joins.
        (relu, [37, 0, 37], [11 + 1, 36 + 11 + 1], 2 + 4 * 2 + 3, 354),
        (relu, [16, 0, 16], [3 + 1, 15 + 3 + 1], 2 + 2 * 2 + 3, 159),
        // 11 and 13 bits in 4 leaves each, 3 joins each, one of both parts; the selection with a bit as a value; a wider ring.
        (relu, [25, 11, 25], [7 + 1, 24 + 7 + 1 + 2], 2 + 3 * 2 + 3 + 2, 246),
        // Two trees of the upper part, 3 joins more; products with the bound's bit; its bit as a value, too.
        (clip, [25, 11, 25], [3 + 6 + 1 + 1 + 1 + 3, 24 + 3 + 6 + 1 + 1 + 1], 2 + 3 * 2 + 2 + 3 + 2, 368),
        // The same with 8 bits below the bound, which both trees share: 2 leaves and a join, for each tree 2 leaves of 5 bits and a join, and a join of both
        // with what they share. The bound's bit is a value of 6 bits.
        (
            shared,
            [25, 11, 25],
            [3 + 1 + 2 + 2 + 1 + 1 + 1, 24 + 3 + 1 + 2 + 2 + 1 + 1 + 1 + 3],
            2 + 4 * 2 + 2 + 3 + 2,
            306,
        ),
        // All 14 upper bits: 4 leaves, twice 3 joins and one of both, the carry and the wrap as values.
        (plain, [25, 11, 25], [7 + 1, 25 + 7 + 1], 2 + 3 * 2 + 2, 241),
        (plain, [25, 11, 14], [3 + 1, 11 + 3], 2 + 2 * 2 + 2, 87),
    ];
    for ((relu, high), [from, shift, to], transfers, messages, bits) in rows {
        let (values, function) = (64, function(relu, high, shift));
        let layer = Layer::activation(function, &Windows::each(values), from, to, Rounding::Exact).unwrap();
        let found = [Party::Client, Party::Server].map(|party| layer.transfers(party) / values);
        let bytes: usize = layer.messages().map(|(_, bytes)| bytes).sum();
        assert_eq!((found, layer.messages().count(), 8 * bytes / values), (transfers, messages, bits));
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
    let exact = Layer::activation(function(true, None, 11), &windows, 25, 25, Rounding::Exact).unwrap();
    assert_eq!(exact.online_cost().rounds(), 4);
}

/// Material for one run of each layer, encoded: the client's and the server's.
fn prepared(layers: &[Layer]) -> [Vec<Vec<u8>>; 2] {
    let prepare = |end: &mut End, me: Party, number: u8| {
        let mut rng = rng(number);
        let mut transfers = Transfers::setup(end, me, SETS, &mut rng).unwrap();
        let material = |layer: &Layer| {
            let request = layer.request(end, &mut transfers).unwrap();
            encoded(&layer.prepare(end, &mut transfers, request, &mut rng).unwrap(), layer, me)
        };
        layers.iter().map(material).collect()
    };
    let (client, server) =
        run(&mut End::pair(), |end| prepare(end, Party::Client, 1), |end| prepare(end, Party::Server, 2));
    [client, server]
}

#[test]
fn damaged_material_is_refused_or_what_its_bytes_say() {
    let function = function(true, Some(3), 5);
    let activation = |count| Layer::activation(function, &Windows::each(count), 17, 15, Rounding::Exact);
    let lines = Polynomials { low: 0, bits: 5, polynomials: vec![vec![9, -3]; 4], shift: 1, factors: None };
    let lines = Layer::function(&lines, 3, 9, 9, 0).unwrap();
    let layers = [activation(3).unwrap(), activation(67).unwrap(), Layer::square(3, 7).unwrap(), lines];
    for (party, prepared) in [Party::Client, Party::Server].into_iter().zip(prepared(&layers)) {
        let mut refused = 0;
        for (layer, bytes) in layers.iter().zip(prepared) {
            for length in 0..bytes.len() {
                let shorter = decoded(&bytes[..length], layer, party);
                assert!(matches!(shorter, Err(DecodeError::Truncated { .. })));
            }
            let longer = decoded(&[&bytes[..], &[0]].concat(), layer, party);
            assert!(matches!(longer, Err(DecodeError::Trailing { left: 1 })));
            for bit in 0..8 * bytes.len() {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                match decoded(&damaged, layer, party) {
                    Ok(material) => assert_eq!(encoded(&material, layer, party), damaged),
                    Err(error) => {
                        assert!(matches!(error, DecodeError::Invalid { .. }));
                        refused += 1;
                    }
                }
            }
        }
        assert!(refused > 0);
    }
}

#[test]
fn material_of_another_layer_is_refused() {
    let layers = [(3, 20), (4, 20), (3, 21)].map(|(values, bits)| Layer::square(values, bits).unwrap());
    let refused = |end: &mut End, me: Party| {
        let mut transfers = Transfers::setup(end, me, SETS, &mut rng(1)).unwrap();
        let share = Share::zero(Ring::Pow2(20), 3);
        layers.clone().map(|layer| {
            let request = layer.request(end, &mut transfers).unwrap();
            let material = layer.prepare(end, &mut transfers, request, &mut rng(2)).unwrap();
            matches!(layers[0].online(end, me, material, &[&share]), Err(ProtocolError::WrongMaterial(_)))
        })
    };
    let (client, server) =
        run(&mut End::pair(), |end| refused(end, Party::Client), |end| refused(end, Party::Server));
    assert_eq!([client, server], [[false, true, true]; 2]);
}

#[test]
fn requests_of_another_layer_are_refused() {
    let relu = |values| {
        Layer::activation(function(true, None, 5), &Windows::each(values), 17, 15, Rounding::Exact).unwrap()
    };
    let refused = |end: &mut End, me: Party| {
        let mut transfers = Transfers::setup(end, me, SETS, &mut rng(1)).unwrap();
        [relu(70), Layer::square(3, 7).unwrap()].map(|other| {
            let request = other.request(end, &mut transfers).unwrap();
            let made = relu(3).prepare(end, &mut transfers, request, &mut rng(2));
            matches!(made, Err(ProtocolError::WrongMaterial(_)))
        })
    };
    let (client, server) =
        run(&mut End::pair(), |end| refused(end, Party::Client), |end| refused(end, Party::Server));
    assert_eq!([client, server], [[true; 2]; 2]);
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
    assert!(Layer::square(0, 20).is_err());
    for (values, bits, guard) in [(0, 20, 1), (1, 1, 1), (1, 20, 0), (1, 61, 2), (1, 20, u32::MAX)] {
        assert!(Layer::drop_guard(values, bits, guard).is_err());
    }
}
