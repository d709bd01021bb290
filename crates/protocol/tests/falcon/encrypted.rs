//! Layers over BFV equal their ideal twin, and send what was foretold.

use lanner_bfv::{ParameterSet, Parameters};
use lanner_packed::falcon::{
    ClientLayer, Packing, ServerLayer, Variant, cheapest, offline_cost, online_cost,
};
use lanner_primitives::{Ring, Share};
use lanner_step::{Answering, Convolution, Sets, Step};

use crate::common::{Party, Session, bytes, edge_share, ideal, inputs, rng, signed, split, unknown};
use crate::falcon::clear::convolution;

const P: u64 = 1_032_193;
const PRIMES: [u64; 4] = [P, 33_538_049, 1_073_692_673, 137_438_822_401];
/// Products in a sum that set A2 has room to hide modulo [`P`].
pub const MOST_TERMS: usize = 254;

/// Runs a layer on given shares; returns the client's share of the output and the server's, and the channels.
pub fn layer(
    packing: &Packing,
    parameters: &Parameters,
    session: &mut Session,
    operands: (&[i64], &[i64]),
    shares: (&Share, &Share),
) -> (Share, Share, (Party, Party)) {
    let known = run_layer(packing, parameters, session, operands, shares, true);
    let later = run_layer(packing, parameters, session, operands, shares, false);
    let sent = |outcome: &(Share, Share, (Party, Party))| {
        let (client, server) = &outcome.2;
        (client.sent.clone(), server.sent.clone())
    };
    assert!(sent(&known) == sent(&later), "messages tell when the server adds its share");
    known
}

/// As [`layer`]; the server knows its share ahead of time or not.
fn run_layer(
    packing: &Packing,
    parameters: &Parameters,
    session: &mut Session,
    operands: (&[i64], &[i64]),
    shares: (&Share, &Share),
    is_known: bool,
) -> (Share, Share, (Party, Party)) {
    let client = ClientLayer::new(packing, parameters).unwrap();
    let server = Answering(ServerLayer::new(packing, parameters, operands.0, operands.1).unwrap());
    let mut channels = Party::pair();
    let (c, s) = session.run(&mut channels, (&client, &server), shares, [1, 2], is_known);
    (c, s, channels)
}

/// One packing on shares at the ring's edges.
fn check(packing: &Packing, parameters: &Parameters) {
    let (shape, prime) = (packing.shape(), packing.prime());
    let (ring, mut rng) = (Ring::Prime(prime), rng(3));
    let weights = signed(shape.weights(), 127, &mut rng);
    let bias = signed(shape.outputs().unwrap(), (prime as i64 - 1) / 2, &mut rng);
    let secrets = signed(shape.inputs(), (prime as i64 - 1) / 2, &mut rng);
    let server = edge_share(ring, secrets.len(), &mut rng);
    let client = split(ring, &secrets, &server);
    let mut session = Session::of(parameters.set().unwrap(), []);
    let (c, s, channels) = layer(packing, parameters, &mut session, (&weights, &bias), (&client, &server));
    let truth = ideal::linear(shape, &weights, &bias, (&client, &server), &mut rng);
    assert_eq!(c.len(), shape.outputs().unwrap());
    assert!(
        c.reveal(&s).unwrap() == truth.0.reveal(&truth.1).unwrap(),
        "{shape:?} {:?} {prime}",
        packing.variant()
    );
    let offline = offline_cost(packing, parameters).unwrap();
    let cost = offline.request.then(offline.answer).then(online_cost(packing, parameters).unwrap());
    assert_eq!(
        [bytes(&channels.0.sent), bytes(&channels.1.sent)],
        [cost.client_bytes(), cost.server_bytes()]
    );
    assert_eq!(cost.rounds(), 2);
}

/// The cheapest packing, and the literal one.
fn check_shape(shape: &Convolution, prime: u64) {
    let sets = Sets::new().unwrap();
    let choice = cheapest(shape, prime, &sets).unwrap();
    let parameters = sets.get(choice.set).unwrap();
    let packing = Packing::new(shape, prime, parameters.degree(), choice.variant).unwrap();
    assert_eq!(packing.operations(), choice.operations);
    check(&packing, parameters);
    check(&Packing::new(shape, prime, packing.slots(), Variant::Literal).unwrap(), parameters);
}

#[test]
fn products_equal_their_twin() {
    for prime in PRIMES {
        check_shape(&Convolution::fully_connected(100, 10), prime);
    }
    check_shape(&Convolution::fully_connected(1, 1), P);
    check_shape(&Convolution::fully_connected(9000, 2), PRIMES[1]);
}

#[test]
fn convolutions_equal_their_twin() {
    for prime in PRIMES {
        check_shape(&convolution([3, 5], [9, 7], [3, 2]), prime);
    }
    let strided =
        Convolution { strides: [2, 2], pads: [1, 1, 2, 2], ..convolution([1, 5], [28, 28], [5, 5]) };
    check_shape(&strided, PRIMES[1]);
    check_shape(&Convolution { groups: 6, pads: [1; 4], ..convolution([6, 12], [10, 10], [3, 3]) }, P);
    check_shape(&Convolution { dilations: [2, 3], ..convolution([2, 3], [12, 14], [3, 3]) }, P);
    check_shape(&convolution([1, 2], [100, 70], [3, 3]), PRIMES[2]);
}

#[test]
fn sums_of_several_ciphertexts_equal_their_twin_in_both_sets() {
    let sets = Sets::new().unwrap();
    let shape = Convolution { pads: [1; 4], ..convolution([40, 3], [16, 16], [3, 3]) };
    for set in [ParameterSet::A2, ParameterSet::B] {
        for copies in [1, 2] {
            let parameters = sets.get(set).unwrap();
            let packing = Packing::new(&shape, P, parameters.degree(), Variant::Folded { copies }).unwrap();
            assert!(packing.terms() > 1);
            check(&packing, parameters);
        }
    }
}

#[test]
fn a_sum_of_more_products_than_can_be_hidden_is_refused() {
    let sets = Sets::new().unwrap();
    let a2 = sets.get(ParameterSet::A2).unwrap();
    let hides = |terms| {
        let shape = Convolution::fully_connected(8192 * terms, 1);
        let packing = Packing::new(&shape, P, 8192, Variant::Folded { copies: 1 }).unwrap();
        assert_eq!(packing.terms(), terms);
        ServerLayer::new(&packing, a2, &vec![0; shape.weights()], &[0]).is_ok()
    };
    assert!(hides(MOST_TERMS));
    assert!(!hides(MOST_TERMS + 1));
}

#[test]
fn a_layer_that_does_not_fit_is_refused() {
    let sets = Sets::new().unwrap();
    let shape = Convolution::fully_connected(4, 4);
    let packing = |slots| Packing::new(&shape, P, slots, Variant::Folded { copies: 4 }).unwrap();
    let (a1, a2) = (sets.get(ParameterSet::A1).unwrap(), sets.get(ParameterSet::A2).unwrap());
    let new = |parameters, weights: &[i64], bias: &[i64]| {
        ServerLayer::new(&packing(8192), parameters, weights, bias).is_ok()
    };
    assert!(new(a2, &[0; 16], &[0; 4]));
    assert!(!new(a2, &[0; 15], &[0; 4]));
    assert!(!new(a2, &[0; 16], &[0; 3]));
    assert!(!new(a1, &[0; 16], &[0; 4]), "the slots of another degree");
    assert!(ClientLayer::new(&packing(4096), a2).is_err());
    // No room for the noise of products of 30 bits.
    let shape = Convolution::fully_connected(8192, 1);
    let packing = Packing::new(&shape, PRIMES[2], 8192, Variant::Folded { copies: 1 }).unwrap();
    assert!(ServerLayer::new(&packing, a2, &vec![0; shape.weights()], &[0]).is_err());
    // A share of another ring.
    let packing = Packing::new(&Convolution::fully_connected(4, 4), P, 8192, Variant::Literal).unwrap();
    let client = ClientLayer::new(&packing, a2).unwrap();
    let server = Answering(ServerLayer::new(&packing, a2, &[1; 16], &[0; 4]).unwrap());
    let Session { client: mut at_home, server: mut serving, .. } = Session::of(ParameterSet::A2, []);
    let (mut at_client, mut at_server) = Party::pair();
    drop(client.request(&mut at_client, &mut at_home).unwrap());
    let other = inputs(&[&Share::zero(Ring::Prime(PRIMES[1]), 4)]);
    assert!(server.prepare(&mut at_server, &mut serving, (), &other).is_err());
    let request = client.request(&mut at_client, &mut at_home).unwrap();
    server.prepare(&mut at_server, &mut serving, (), &unknown(1)).unwrap();
    let (material, _) = client.prepare(&mut at_client, &mut at_home, request, &unknown(1)).unwrap();
    assert!(client.online(&mut at_client, material, &other).is_err());
}
