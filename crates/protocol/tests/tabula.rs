//! Activations by masked openings and comparison keys equal their formulas, send what they say, and open nothing.

mod maxima;
mod stochastic;
mod table;

use lanner_ot::silent::Parameters;
use lanner_primitives::{Ring, Share};
use lanner_step::{Cost, CotSupply, Party, ProtocolError, Transfers};
use lanner_tabula::{Activation, Keyed, Maker, Material, Shape};
use lanner_testkit::{chi_square_limit, uniform_chi_square};
use lanner_wire::{DecodeError, Kind, Reader, Writer};

use crate::common::{Party as End, edge_share, rng, run, signed, split};

const SETS: [Parameters; 2] = [Parameters::ALL[0], Parameters::ALL[0]];
const MASKED_VALUES: Kind = Kind(0x7a);

/// A layer with values over a ring of `from` bits, and the server's shares of them.
struct Case {
    layer: Activation,
    from: u32,
    secrets: Vec<i64>,
    server: Share,
}

fn case(kept: u32, dropped: u32, to: u32, shape: Shape, secrets: Vec<i64>) -> Case {
    let from = kept + dropped + 1;
    let server = edge_share(Ring::Pow2(from), secrets.len(), &mut rng(9));
    Case { layer: Activation::new(secrets.len(), kept, dropped, to, shape).unwrap(), from, secrets, server }
}

/// What a layer makes of a value of `kept + dropped` bits.
fn ideal(kept: u32, dropped: u32, shape: Shape, x: i64) -> i64 {
    let (half, full) = (1 << (kept - 1), 1 << kept);
    let rescaled = ((x + (1 << (dropped - 1))) >> dropped).rem_euclid(full);
    let signed = if rescaled >= half { rescaled - full } else { rescaled };
    match shape {
        Shape::Identity => signed,
        Shape::Relu => signed.max(0),
        Shape::Clip(high) => signed.clamp(0, high as i64),
    }
}

fn restored(layer: &Activation, material: &Material, party: Party) -> Material {
    let mut writer = Writer::new();
    layer.encode(material, &mut writer);
    let bytes = writer.into_bytes();
    assert_eq!(bytes.len() as u64, layer.held());
    let read = |bytes: &[u8]| -> Result<Material, DecodeError> {
        let mut reader = Reader::new(bytes);
        let material = layer.decode(&mut reader, party)?;
        reader.finish().map(|()| material)
    };
    assert!(read(&bytes[1..]).is_err());
    read(&bytes).unwrap()
}

/// Both parties' outputs of all layers, one after the other in one session.
fn outputs(ends: &mut (End, End), cases: &[Case], seed: u8) -> Vec<Vec<i64>> {
    let party = |end: &mut End, me: Party| -> Vec<Share> {
        let rng = &mut rng(seed + me as u8);
        let mut transfers = Transfers::setup(end, me, SETS, rng).unwrap();
        let mut supply = CotSupply::new(SETS);
        let sent = |end: &End| end.sent.iter().map(|(_, payload)| 6 + payload.len() as u64).sum::<u64>();
        let due = |cost: Cost| if me == Party::Client { cost.client_bytes() } else { cost.server_bytes() };
        let run = |Case { layer, from, secrets, server }: &Case| {
            let share = match me {
                Party::Client => split(Ring::Pow2(*from), secrets, server),
                Party::Server => server.clone(),
            };
            let before = sent(end);
            let salt = layer.request(end, me, rng).unwrap();
            let material =
                layer.prepare(&mut Maker { channel: end, transfers: &mut transfers, rng }, salt).unwrap();
            let offline = layer.offline_cost(&mut supply);
            assert_eq!(sent(end) - before, due(offline.request.then(offline.answer)));
            let material = restored(layer, &material, me);
            let before = sent(end);
            let output = layer.online(end, me, material, &share).unwrap();
            assert_eq!(sent(end) - before, due(layer.online_cost()));
            output
        };
        cases.iter().map(run).collect()
    };
    let (client, server) = run(ends, |end| party(end, Party::Client), |end| party(end, Party::Server));
    client.iter().zip(&server).map(|(client, server)| client.reveal(server).unwrap()).collect()
}

#[test]
fn every_value_of_small_widths() {
    let mut cases = Vec::new();
    let mut expected = Vec::new();
    for (kept, dropped) in [(2, 1), (2, 5), (5, 1), (4, 3), (6, 4)] {
        let most = (1 << (kept - 1)) - 1;
        let clips = [0, 1, most / 2, most - 1, most].map(Shape::Clip);
        for shape in [Shape::Identity, Shape::Relu].into_iter().chain(clips) {
            let half = 1 << (kept + dropped - 1);
            // Beyond what is kept, too: what is below the width's power of two counts.
            let secrets: Vec<i64> = (-half - 3..half + 3).collect();
            expected.push(secrets.iter().map(|x| ideal(kept, dropped, shape, *x)).collect::<Vec<_>>());
            cases.push(case(kept, dropped, 20, shape, secrets));
        }
    }
    assert_eq!(outputs(&mut End::pair(), &cases, 1), expected);
}

#[test]
fn wide_values_at_the_edges() {
    let mut cases = Vec::new();
    let mut expected = Vec::new();
    for (kept, dropped, to) in [(10, 12, 24), (12, 12, 41), (14, 6, 14), (16, 2, 62), (4, 16, 30)] {
        let most = (1_i64 << (kept + dropped - 1)) - 1;
        let mut secrets = vec![0, 1, -1, most, -most, -most - 1, 1 << dropped, -(1 << dropped)];
        let half = 1 << (dropped - 1);
        secrets.extend([half, half - 1, -half, -half - 1, most - half, most - half + 1]);
        secrets.extend(signed(300, most, &mut rng(kept as u8)));
        let clips = [kept - 2, kept - 1].map(|bits| Shape::Clip((1 << bits) - 1));
        for shape in [Shape::Identity, Shape::Relu].into_iter().chain(clips) {
            let ring = Ring::Pow2(to);
            let of = |x: &i64| ring.signed(ring.embed(ideal(kept, dropped, shape, *x)));
            expected.push(secrets.iter().map(of).collect::<Vec<_>>());
            cases.push(case(kept, dropped, to, shape, secrets.clone()));
        }
    }
    assert_eq!(outputs(&mut End::pair(), &cases, 5), expected);
}

/// One query a thousand times: what a client sees of it, and what comes out, does not depend on the shares.
#[test]
fn repeated_queries_give_one_result() {
    let secrets = [-77, -1, 0, 39, 40, 41, 1023].map(|x| vec![x; 143]).concat();
    let expected: Vec<i64> = secrets.iter().map(|x| ideal(6, 5, Shape::Relu, *x)).collect();
    let mut cases: Vec<Case> = (0..1).map(|_| case(6, 5, 30, Shape::Relu, secrets.clone())).collect();
    cases[0].server = Share::random(Ring::Pow2(12), secrets.len(), &mut rng(77));
    assert_eq!(outputs(&mut End::pair(), &cases, 7), [expected]);
}

/// Every opened number is uniform, whatever the values and the shares.
#[test]
fn what_is_opened_is_uniform() {
    for (value, share) in [(0, 0), (200, 0), (-256, 511), (255, 1)] {
        let (kept, dropped, count) = (5, 4, 4000);
        let mut case = case(kept, dropped, 20, Shape::Relu, vec![value; count]);
        case.server = Share::new(Ring::Pow2(10), vec![share; count]).unwrap();
        let mut ends = End::pair();
        outputs(&mut ends, &[case], 3);
        check_uniform(&ends, count, &format!("{value} {share}"));
    }
}

/// The numbers that both parties open, of 9 bits and of 5, are uniform.
fn check_uniform(ends: &(End, End), count: usize, what: &str) {
    const BUCKETS: usize = 32;
    for (sent, numbers) in [(&ends.0, vec![9, 5]), (&ends.1, vec![9])] {
        for (message, bits) in sent.sent_of(MASKED_VALUES.0).iter().zip(numbers) {
            let opened = Reader::new(message).packed(count, bits).unwrap();
            let mut counts = vec![0; BUCKETS];
            for number in opened {
                counts[(number >> (bits - 5)) as usize] += 1;
            }
            assert!(uniform_chi_square(&counts) < chi_square_limit(BUCKETS - 1), "{what} {bits}: {counts:?}");
        }
    }
}

/// The paper opens a wide share under a mask of few bits: its high bits are the value's own. The test above would find it.
#[test]
fn an_opening_that_is_not_reduced_would_be_found() {
    let (value, mask_bits) = (200_u64, 5);
    let mut counts = vec![0; 32];
    (0..4000_u64).for_each(|i| counts[((value + i * 7919 % (1 << mask_bits)) >> 4 & 31) as usize] += 1);
    assert!(uniform_chi_square(&counts) > chi_square_limit(31));
}

#[test]
fn widths_out_of_range_are_refused() {
    let refused = |values, kept, dropped, to| {
        matches!(Activation::new(values, kept, dropped, to, Shape::Relu), Err(ProtocolError::Parameters(_)))
    };
    assert!(!refused(1, 10, 12, 24));
    for (values, kept, dropped, to) in [
        (0, 10, 12, 24),
        (1, 1, 12, 24),
        (1, 17, 12, 24),
        (1, 10, 0, 24),
        (1, 10, 17, 24),
        (1, 10, 12, 63),
        (1, 10, 12, 9),
    ] {
        assert!(refused(values, kept, dropped, to), "{values} {kept} {dropped} {to}");
    }
    let clip = |high| Activation::new(1, 10, 12, 24, Shape::Clip(high));
    assert!(clip(511).is_ok() && clip(512).is_err() && clip(u64::MAX).is_err());
}
