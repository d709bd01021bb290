//! Products of matrices by encryption: the sums equal the products or one more below their bits, bytes and material are those announced, samples
//! together equal samples alone, and what the client opens is uniform.

use lanner_bfv::ParameterSet;
use lanner_coefficient::matrices::{MatrixProduct, Scheme, Shape};
use lanner_primitives::{Ring, Share, parallel};
use lanner_step::{
    Built, Convolution, CotSupply, Known, Samples, Sets, Spec, StepCost, ValueType, transfer_sets,
};
use lanner_testkit::{chi_square_limit, uniform_chi_square};

use crate::common::laws::{Case, Model};
use crate::common::{edge_share, rng};

fn product([groups, rows, inner, columns]: [usize; 4], bits: u32, guard: u32) -> MatrixProduct {
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
        MatrixProduct { bits: 0, guard: 0, ..spec },
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
