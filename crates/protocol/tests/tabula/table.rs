//! Tables by point keys are the function of every value that is kept, whether keys are expanded before or when they are read.

use lanner_ot::silent::Parameters;
use lanner_primitives::{Block, Ring, Share};
use lanner_step::{Cost, CotSupply, Party, Transfers};
use lanner_tabula::{Keyed, Maker, Table, TableLookup};
use lanner_transfers::{Factors, Polynomials};
use lanner_wire::{Reader, Writer};

use super::{End, check_uniform, edge_share, rng, run, split};

const SETS: [Parameters; 2] = [Parameters::ALL[0]; 2];

/// Both parties' outputs; material is written and read again, and what is sent is what is said.
fn outputs(ends: &mut (End, End), spec: &Table, secrets: &[i64], server: &Share) -> Vec<i64> {
    let step = TableLookup::new(spec).unwrap();
    let party = |end: &mut End, me: Party| {
        let rng = &mut rng(50 + me as u8);
        let mut transfers = Transfers::setup(end, me, SETS, rng).unwrap();
        let sent = |end: &End| end.sent.iter().map(|(_, payload)| 6 + payload.len() as u64).sum::<u64>();
        let due = |cost: Cost| if me == Party::Client { cost.client_bytes() } else { cost.server_bytes() };
        let before = sent(end);
        let material =
            step.prepare(&mut Maker { channel: end, transfers: &mut transfers, rng }, Block(5)).unwrap();
        let offline = step.offline_cost(&mut CotSupply::new(SETS));
        let salt = if me == Party::Client { 6 + Block::BYTES as u64 } else { 0 };
        assert_eq!(sent(end) - before + salt, due(offline.request.then(offline.answer)));
        let mut writer = Writer::new();
        step.encode(&material, &mut writer);
        let bytes = writer.into_bytes();
        assert_eq!(bytes.len() as u64, step.held());
        assert!(step.decode(&mut Reader::new(&bytes[..bytes.len() - 1]), me).is_err());
        let material = step.decode(&mut Reader::new(&bytes), me).unwrap();
        let share = if me == Party::Client { split(server.ring(), secrets, server) } else { server.clone() };
        let before = sent(end);
        let output = step.online(end, me, material, &share).unwrap();
        assert_eq!(sent(end) - before, due(step.online_cost()));
        output
    };
    let (client, server) = run(ends, |end| party(end, Party::Client), |end| party(end, Party::Server));
    client.reveal(&server).unwrap()
}

fn functions() -> [Polynomials; 3] {
    let of = |low, bits, polynomials: &[&[i64]], shift, factors| Polynomials {
        low,
        bits,
        polynomials: polynomials.iter().map(|of| of.to_vec()).collect(),
        shift,
        factors,
    };
    let factors = Factors { values: vec![-9, 300, 2, 1], shift: 4 };
    [
        of(-8, 4, &[&[0, 1], &[40, -3]], 1, None),
        of(-4, 3, &[&[700, -33, 5]], 3, None),
        of(-8, 4, &[&[20, 7], &[3, -9]], 0, Some(factors)),
    ]
}

#[test]
fn every_value_that_is_kept() {
    for function in functions() {
        // The last has a domain as large as what is left.
        for (from, shift, to, expanded) in
            [(10, 3, 20, false), (10, 3, 20, true), (9, 2, 40, false), (12, 7, 12, true), (8, 4, 33, false)]
        {
            let whole = from - shift == function.bits;
            if from - shift < function.bits || (whole && function.low != -1 << (function.bits - 1)) {
                continue;
            }
            let most = 1_i64 << (from - if whole { 1 } else { 2 });
            let half = 1 << (shift - 1);
            let secrets: Vec<i64> = (-most..most - half).collect();
            let server = edge_share(Ring::Pow2(from), secrets.len(), &mut rng(8));
            let spec = Table { values: secrets.len(), from, shift, function: function.clone(), to, expanded };
            let expected: Vec<i64> =
                secrets.iter().map(|x| function.at((x + half) >> shift).unwrap()).collect();
            assert_eq!(outputs(&mut End::pair(), &spec, &secrets, &server), expected, "{spec:?}");
        }
    }
}

#[test]
fn wide_tables_at_their_edges() {
    let [_, function, _] = functions();
    for (from, shift, to) in [(25, 12, 24), (23, 12, 41)] {
        let most = 1_i64 << (from - 2);
        let mut secrets: Vec<i64> = (0..90).map(|i| (i * 7919 * 517) % (2 * most) - most).collect();
        secrets.extend([0, 1, -1, -most, most - (1 << shift)]);
        let server = edge_share(Ring::Pow2(from), secrets.len(), &mut rng(8));
        let spec =
            Table { values: secrets.len(), from, shift, function: function.clone(), to, expanded: false };
        let rescaled = |x: &i64| function.at((x + (1 << (shift - 1))) >> shift).unwrap();
        let expected: Vec<i64> = secrets.iter().map(rescaled).collect();
        assert_eq!(outputs(&mut End::pair(), &spec, &secrets, &server), expected);
    }
}

/// `x` where it is not negative, else the fraction of it to the nearest: whatever the slope and wherever a sum lies, ties and both ends included.
#[test]
fn slopes_below_zero() {
    for (numerator, slope) in [(0, 0), (1, 1), (1, 3), (51, 9), (511, 9), (65_535, 16)] {
        for (kept, shift) in [(3, 4), (8, 3), (11, 5)] {
            let low = -1_i64 << (kept - 1);
            let polynomials = vec![vec![numerator * low, numerator], vec![0, 1 << slope]];
            let function = Polynomials { low, bits: kept, polynomials, shift: slope, factors: None };
            let (most, half) = (1_i64 << (kept + shift - 1), 1 << (shift - 1));
            // All but what rounds beyond the largest that is kept.
            let secrets: Vec<i64> =
                if kept < 11 { (-most..most - half).collect() } else { around(most, shift) };
            let leaky = |x: &i64| {
                let u = (x + half) >> shift;
                let below = (2 * numerator * u + (1 << slope)).div_euclid(2 << slope);
                if u < 0 { below } else { u }
            };
            let expected: Vec<i64> = secrets.iter().map(leaky).collect();
            let from = kept + shift + 1;
            let server = edge_share(Ring::Pow2(from), secrets.len(), &mut rng(8));
            let spec = Table { values: secrets.len(), from, shift, function, to: 20, expanded: false };
            assert_eq!(outputs(&mut End::pair(), &spec, &secrets, &server), expected, "{numerator} {spec:?}");
        }
    }
}

/// Both ends, and ties and their neighbours near the ends and zero.
fn around(most: i64, shift: u32) -> Vec<i64> {
    let half = 1 << (shift - 1);
    let ties = (0..40).flat_map(|unit| {
        let tie = (unit << shift) + half;
        [-most + tie, most - tie - 2 * half, tie, -tie]
    });
    let all = ties.flat_map(|tie| [tie - 1, tie, tie + 1]).chain([-most, most - half - 1, 0, -1, 1]);
    all.filter(|x| (-most..most - half).contains(x)).collect()
}

#[test]
fn what_tables_open_is_uniform() {
    let count = 4000;
    let [function, ..] = functions();
    for (value, share) in [(0, 0), (-64, 1023), (63, 1)] {
        let server = Share::new(Ring::Pow2(10), vec![share; count]).unwrap();
        let spec =
            Table { values: count, from: 10, shift: 4, function: function.clone(), to: 20, expanded: false };
        let mut ends = End::pair();
        outputs(&mut ends, &spec, &vec![value; count], &server);
        check_uniform(&ends, count, &format!("{value} {share}"));
    }
}

#[test]
fn tables_that_are_too_large_or_none_are_refused() {
    let [function, ..] = functions();
    let of = |values, from, shift, to| {
        TableLookup::new(&Table { values, from, shift, function: function.clone(), to, expanded: false })
            .is_ok()
    };
    assert!(of(1, 21, 8, 20) && of(1, 12, 8, 62));
    for (values, from, shift, to) in [
        (0, 21, 8, 20),
        (1, 22, 8, 20),
        (1, 11, 8, 20),
        (1, 13, 0, 20),
        (1, 30, 17, 20),
        (1, 21, 8, 1),
        (1, 21, 8, 63),
    ] {
        assert!(!of(values, from, shift, to), "{values} {from} {shift} {to}");
    }
}
