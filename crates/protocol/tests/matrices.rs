//! Products of matrices by encryption: the sums equal the products or one more below their bits, bytes and material are those announced, samples
//! together equal samples alone, and what the client opens is uniform.

use std::collections::BTreeSet;

use lanner_bfv::{ParameterSet, SecretKey};
use lanner_coefficient::matrices::{MatrixProduct, Scheme, Shape};
use lanner_primitives::{Ring, Share, parallel};
use lanner_step::{
    Built, Client, Convolution, CotSupply, Known, Samples, Server, SetUp, Sets, Spec, StepCost, ValueType,
    transfer_sets,
};
use lanner_testkit::{chi_square_limit, uniform_chi_square};

use crate::common::laws::{Case, Model};
use crate::common::{Party as End, edge_share, inputs, rng, run, share, unknown};

pub(crate) fn product([groups, rows, inner, columns]: [usize; 4], bits: u32, guard: u32) -> MatrixProduct {
    // As on two cores, whatever the machine.
    parallel::set_threads(2);
    let shape = Shape { groups, rows, inner, columns };
    let (set, _) = Scheme::cheapest(shape, bits, guard, &Sets::new().unwrap()).unwrap();
    MatrixProduct { groups, rows, inner, columns, bits, guard, set }
}

fn built(spec: &MatrixProduct) -> Box<dyn Built> {
    spec.build(&Sets::new().unwrap()).unwrap()
}

/// One run on the parties' shares of both factors, which keeps to the laws: the parties' shares of the product.
fn outcome(spec: &MatrixProduct, [client, server]: [&[Share; 2]; 2], seed: u8) -> [Share; 2] {
    let model = Model::default();
    let case = Case::new(*spec, &model);
    let StepCost { online, .. } = case.built().cost(&mut CotSupply::new(transfer_sets([0; 2]))).unwrap();
    assert_eq!(online.rounds(), 1);
    case.run([&client.each_ref(), &server.each_ref()], seed).outputs
}

/// The same with a seed of each party's own, with all that both sent and the client's key.
pub(crate) fn session(
    spec: &MatrixProduct,
    shares: [&[Share; 2]; 2],
    seeds: [u8; 2],
) -> ([Share; 2], [End; 2], SecretKey) {
    let (sets, model) = (Sets::new().unwrap(), Model::default());
    let needs = built(spec).needs().unwrap();
    let set_up = SetUp::of(std::slice::from_ref(&needs), needs.transfers, &sets).unwrap();
    let client_step = built(spec).client("product", &model).unwrap();
    let server_step = built(spec).server("product", &model).unwrap();
    let mut channels = End::pair();
    let ((of_client, key), of_server) = run(
        &mut channels,
        |end| {
            let mut client = Client::set_up(end, &set_up, rng(seeds[0])).unwrap();
            let request = client_step.request(end, &mut client).unwrap();
            let (material, _) = client_step.prepare(end, &mut client, request, &unknown(2)).unwrap();
            let made = client_step.online(end, material, &inputs(&shares[0].each_ref())).unwrap();
            (share(made), client.keys.of(sets.get(spec.set).unwrap()).unwrap().copied())
        },
        |end| {
            let mut server = Server::set_up(end, &set_up, rng(seeds[1])).unwrap();
            let request = server_step.request(end, &mut server).unwrap();
            let (material, _) = server_step.prepare(end, &mut server, request, &unknown(2)).unwrap();
            share(server_step.online(end, material, &inputs(&shares[1].each_ref())).unwrap())
        },
    );
    ([of_client, of_server], channels.into(), key)
}

fn drawn(spec: &MatrixProduct, seed: u8) -> [Share; 2] {
    let &MatrixProduct { groups, rows, inner, columns, bits, .. } = spec;
    [groups * rows * inner, groups * inner * columns]
        .map(|len| edge_share(Ring::Pow2(bits), len, &mut rng(seed)))
}

/// The products in the clear, one pair after the other, modulo the ring.
fn expected(spec: &MatrixProduct, [client, server]: [&[Share; 2]; 2]) -> Vec<u64> {
    let &MatrixProduct { groups, rows, inner, columns, bits, .. } = spec;
    let ring = Ring::Pow2(bits);
    let secret = |side: usize, at: usize| ring.add(client[side].values()[at], server[side].values()[at]);
    let mut all = Vec::new();
    for group in 0..groups {
        for row in 0..rows {
            for column in 0..columns {
                let term = |k: usize| {
                    let left = secret(0, (group * rows + row) * inner + k);
                    left.wrapping_mul(secret(1, (group * inner + k) * columns + column))
                };
                let sum = (0..inner).map(term).fold(0_u64, u64::wrapping_add);
                all.push(sum & ((1 << bits) - 1));
            }
        }
    }
    all
}

fn check(spec: &MatrixProduct, shares: [&[Share; 2]; 2], seed: u8) {
    let [client, server] = outcome(spec, shares, seed);
    let ring = Ring::Pow2(spec.bits + spec.guard);
    assert_eq!([client.ring(), server.ring()], [ring; 2]);
    let sums = client.values().iter().zip(server.values()).map(|(a, b)| ring.add(*a, *b));
    for (at, (sum, product)) in sums.zip(expected(spec, shares)).enumerate() {
        let below = ring.sub(sum, product << spec.guard);
        assert!(below <= 1, "{spec:?}: element {at} is off by {below}");
    }
}

#[test]
fn sums_are_the_products_or_one_more_below_their_bits() {
    for (number, (sides, bits, guard)) in (0..).zip([
        ([1, 1, 1, 1], 16, 1),
        ([2, 5, 3, 7], 20, 2),
        ([1, 1, 70, 3], 24, 1),
        ([3, 17, 1, 5], 26, 4),
        ([1, 40, 1, 1], 18, 1),
        ([2, 24, 33, 20], 27, 1),
        ([1, 48, 64, 48], 30, 1),
        ([1, 9, 130, 6], 36, 2),
        ([1, 16, 16, 16], 41, 1),
    ]) {
        let spec = product(sides, bits, guard);
        let shares = [drawn(&spec, number), drawn(&spec, 50 + number)];
        check(&spec, [&shares[0], &shares[1]], 100 + 2 * number);
    }
}

#[test]
fn shares_at_the_edges_multiply() {
    let spec = product([2, 4, 6, 3], 24, 1);
    let constant = |value: i64| [48, 36].map(|len| Share::embed(Ring::Pow2(24), &vec![value; len]));
    let edges = [0, 1, -1, 1 << 23, (1 << 23) - 1].map(constant);
    for (client, server) in edges.iter().zip(edges.iter().cycle().skip(2)) {
        check(&spec, [client, server], 7);
    }
}

#[test]
fn samples_are_more_pairs() {
    let spec = product([2, 3, 4, 5], 22, 1);
    let both = spec.of_samples(Samples::try_from(2).unwrap()).unwrap();
    assert_eq!(both, MatrixProduct { groups: 4, ..spec });
    let ring = Ring::Pow2(22);
    let typed = |len: usize, ring: Ring| ValueType::shared(ring, len, Known::SERVER);
    let made = both.infer(&[typed(48, ring), typed(80, ring)]).unwrap();
    assert_eq!(made, ValueType::shared(Ring::Pow2(23), 60, Known::NOBODY));
    assert!(both.infer(&[typed(48, ring)]).is_err());
    assert!(both.infer(&[typed(48, ring), typed(79, ring)]).is_err());
    assert!(both.infer(&[typed(48, ring), typed(80, Ring::Pow2(21))]).is_err());
}

#[test]
fn what_is_no_product_is_refused_before_anything_is_built() {
    let spec = product([1, 2, 2, 2], 20, 1);
    let sets = Sets::new().unwrap();
    for wrong in [
        MatrixProduct { groups: 0, ..spec },
        MatrixProduct { rows: usize::MAX, inner: 2, ..spec },
        MatrixProduct { bits: 0, ..spec },
        MatrixProduct { bits: u32::MAX, guard: 2, ..spec },
        MatrixProduct { guard: u32::MAX, ..spec },
        MatrixProduct { guard: 0, ..spec },
        MatrixProduct { bits: 60, ..spec },
        MatrixProduct { bits: 44, set: ParameterSet::C1, ..spec },
    ] {
        assert!(wrong.build(&sets).is_err(), "{wrong:?}");
    }
    assert_eq!(MatrixProduct { groups: usize::MAX, rows: 9, ..spec }.work().window_elements, u64::MAX);
}

/// What the client has at the end is its share: with the server's secrets at their extremes it is as uniform as with zeros.
#[test]
fn what_the_client_opens_is_uniform_whatever_the_server_has() {
    let spec = product([4, 32, 16, 32], 20, 1);
    let ring = Ring::Pow2(20);
    let zeros = [4 * 32 * 16; 2].map(|len| Share::embed(ring, &vec![0; len]));
    for value in [0, -1, 1 << 19, 12_345] {
        let server = [4 * 32 * 16; 2].map(|len| Share::embed(ring, &vec![value; len]));
        let [client, _] = outcome(&spec, [&zeros, &server], 60);
        for shift in [0, 7, 13] {
            let mut counts = vec![0; 256];
            client.values().iter().for_each(|share| counts[(share >> shift & 0xff) as usize] += 1);
            assert!(uniform_chi_square(&counts) < chi_square_limit(255), "{value}, bits from {shift} on");
        }
    }
}

/// The blinding of an answer is all of a second half where the server's shares are zero: it is drawn anew for each answer and in each run, as are
/// the masks, and so are the client's second halves.
#[test]
fn each_ciphertext_is_hidden_by_randomness_of_its_own() {
    let spec = product([2, 96, 70, 40], 30, 1);
    let zeros = [2 * 96 * 70, 2 * 70 * 40].map(|len| Share::zero(Ring::Pow2(30), len));
    let sent = |seeds| {
        let (_, [client, server], _) = session(&spec, [&zeros, &zeros], seeds);
        let announced = client.sent_of(0x42).concat();
        let of_client: Vec<Vec<u8>> = announced.chunks(16).map(<[u8]>::to_vec).collect();
        let of_server =
            [0x43, 0x41].map(|kind| server.sent_of(kind).iter().map(|sent| sent.to_vec()).collect());
        (of_client, of_server)
    };
    let (of_client, of_server): (Vec<Vec<u8>>, [Vec<Vec<u8>>; 2]) = sent([20, 21]);
    let (_, other_server) = sent([20, 22]);
    let (other_client, _) = sent([23, 21]);
    let [second, first] = of_server;
    let [other_second, other_first] = other_server;
    assert!(second.len() > 2 && of_client.len() > 4, "several of each pair");
    for [one, other] in [[of_client, other_client], [second, other_second], [first, other_first]] {
        assert_eq!(one.len(), other.len());
        let different: BTreeSet<&Vec<u8>> = one.iter().chain(&other).collect();
        assert_eq!(different.len(), one.len() + other.len());
    }
}

#[test]
fn a_head_of_attention_sends_a_tenth_of_what_transfers_send() {
    let [rows, inner, columns, bits] = [128, 64, 128, 26];
    let spec = product([1, rows, inner, columns], bits as u32, 1);
    let supply = &mut CotSupply::new(transfer_sets([0; 2]));
    let StepCost { offline, online } = built(&spec).cost(supply).unwrap();
    let transfers = rows * inner * columns * bits * (bits + 1) / 8;
    let sent = offline.request.client_bytes() + online.bytes();
    assert!(sent * 10 < transfers as u64, "{sent} of {transfers}");
}

#[test]
fn a_row_by_a_column_is_laid_out_too() {
    // A layer of one pixel, as a fully connected one.
    assert_eq!(Convolution::fully_connected(3, 2).weight_index(1, 2, [0, 0]), 5);
    let spec = product([1, 1, 300, 1], 24, 1);
    let shares = [drawn(&spec, 3), drawn(&spec, 4)];
    check(&spec, [&shares[0], &shares[1]], 9);
}
