//! Two parties in one test: their channels, keys, and shares.

pub(crate) mod ideal;

use lanner_bfv::{ParameterSet, Parameters, SecretKey};
use lanner_packed::gazelle::packing::Packing;
use lanner_primitives::{Prg, Ring, Seed, Share};
use lanner_step::{ClientKeys, galois_element, receive_keys, send_keys};
use rand_core::Rng;

pub(crate) use lanner_testkit::{Party, run};

/// The generator of a number.
pub(crate) fn rng(number: u8) -> Prg {
    Prg::new(Seed::from_bytes([number; 16]))
}

/// The set of packed layers modulo a prime.
pub(crate) fn rotating(prime: u64) -> ParameterSet {
    if prime > 1 << 29 { ParameterSet::W } else { ParameterSet::B }
}

/// A client's keys for some layers, on both sides.
pub(crate) struct Keys {
    pub(crate) parameters: Parameters,
    pub(crate) secret: SecretKey,
    pub(crate) client: ClientKeys,
}

impl Keys {
    pub(crate) fn new<'p>(packings: impl IntoIterator<Item = &'p Packing>) -> Self {
        Self::of(ParameterSet::B, packings)
    }

    pub(crate) fn of<'p>(set: ParameterSet, packings: impl IntoIterator<Item = &'p Packing>) -> Self {
        let parameters = set.parameters().unwrap();
        let rotations = packings.into_iter().flat_map(Packing::keys);
        let elements: Vec<_> =
            rotations.map(|rotation| galois_element(rotation, parameters.degree()).unwrap().into()).collect();
        let (mut at_client, mut at_server) = Party::pair();
        let secret = send_keys(&mut at_client, &parameters, &elements, &mut rng(200)).unwrap();
        let client = receive_keys(&mut at_server, &parameters, &elements).unwrap();
        Self { parameters, secret, client }
    }
}

/// Shares of signed secrets: the client's is what the mask leaves.
pub(crate) fn split(ring: Ring, secrets: &[i64], server: &Share) -> Share {
    Share::embed(ring, secrets).sub(server).unwrap()
}

/// Shares that hit the edges of the ring: the server's are 0, 1, the middle and the top in turn, and some random ones.
pub(crate) fn edge_share(ring: Ring, length: usize, rng: &mut Prg) -> Share {
    let top = ring.neg(1);
    let edges = [0, 1, top / 2, top / 2 + 1, top];
    let random = Share::random(ring, length, rng);
    let value = |i: usize| if i % 7 < 5 { edges[i % 7] } else { random.values()[i] };
    Share::new(ring, (0..length).map(value).collect()).unwrap()
}

/// Uniform signed integers in `[-bound, bound]`.
pub(crate) fn signed(length: usize, bound: i64, rng: &mut Prg) -> Vec<i64> {
    (0..length).map(|_| (rng.next_u64() % (2 * bound as u64 + 1)) as i64 - bound).collect()
}
