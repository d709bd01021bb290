//! Squares over BFV equal their ideal twin, alone and before a layer, and fit where they are said to.

use lanner_bfv::function_privacy::Budget;
use lanner_bfv::{ParameterSet, PlaintextModulus};
use lanner_packed::gazelle::Kernel;
use lanner_packed::gazelle::packing::Packing;
use lanner_packed::square::{self, ServerSquare, Target};
use lanner_primitives::{Ring, Share};
use lanner_ring::Modulus;
use lanner_step::{Answering, Convolution, Step, WeightForm};
use lanner_testkit::{chi_square_limit, uniform_chi_square};

use crate::common::{Party, Session, bytes, edge_share, ideal, inputs, rng, signed, split};

const PRIMES: [u64; 4] = [1_032_193, 33_538_049, 1_073_692_673, 137_438_822_401];

/// Runs squares on given shares; returns both shares of the result and what was sent.
fn square(
    session: &mut Session,
    target: &Target,
    server: &Answering<ServerSquare>,
    prime: u64,
    shares: (&Share, &Share),
) -> ((Share, Share), (Party, Party)) {
    let client = square::ClientSquare::new(target, &session.parameters, prime).unwrap();
    let mut channels = Party::pair();
    let outputs = session.run(&mut channels, (&client, server), shares, [1, 2], true);
    (outputs, channels)
}

/// The squares of secrets in the ring.
fn squares(prime: u64, secrets: &[i64]) -> Vec<i64> {
    let (modulus, ring) = (Modulus::new(prime).unwrap(), Ring::Prime(prime));
    secrets.iter().map(|x| ring.signed(modulus.mul(ring.embed(*x), ring.embed(*x)))).collect()
}

#[test]
fn squares_equal_their_ideal_twin_on_every_pair_of_edges() {
    let mut session = Session::new([]);
    for prime in PRIMES {
        let ring = Ring::Prime(prime);
        let edges = [0, 1, (prime - 1) / 2, prime.div_ceil(2), prime - 1];
        let pairs: Vec<_> = edges.iter().flat_map(|c| edges.iter().map(move |s| (*c, *s))).collect();
        let client = Share::new(ring, pairs.iter().map(|(c, _)| *c).collect()).unwrap();
        let server = Share::new(ring, pairs.iter().map(|(_, s)| *s).collect()).unwrap();
        let target = Target::Shares(pairs.len());
        let layer = Answering(ServerSquare::new(pairs.len(), &session.parameters, prime).unwrap());
        let ((c, s), _) = square(&mut session, &target, &layer, prime, (&client, &server));
        assert_eq!(c.reveal(&s).unwrap(), squares(prime, &client.reveal(&server).unwrap()), "mod {prime}");
    }
}

#[test]
fn squares_take_as_many_ciphertexts_as_they_need() {
    let mut session = Session::new([]);
    let (prime, values) = (PRIMES[1], 10_000);
    let (ring, mut rng) = (Ring::Prime(prime), rng(4));
    let secrets = signed(values, 4000, &mut rng);
    let server = edge_share(ring, values, &mut rng);
    let client = split(ring, &secrets, &server);
    let target = Target::Shares(values);
    assert_eq!(target.ciphertexts(&session.parameters), [4, 2]);
    let layer = Answering(ServerSquare::new(values, &session.parameters, prime).unwrap());
    let ((c, s), channels) = square(&mut session, &target, &layer, prime, (&client, &server));
    assert!(c.reveal(&s).unwrap() == secrets.iter().map(|x| x * x).collect::<Vec<_>>());
    let offline = target.offline_cost(&session.parameters, prime).unwrap();
    let online = target.online_cost(&session.parameters, prime).unwrap();
    let total = offline.request.then(offline.answer).then(online);
    assert_eq!(total.client_bytes(), bytes(&channels.0.sent));
    assert_eq!(total.server_bytes(), bytes(&channels.1.sent));
    assert_eq!(total.rounds(), 2);
}

#[test]
fn a_layer_reads_the_squares_without_another_round() {
    let shapes = [
        // MNIST A, B and a strided convolution.
        Convolution::fully_connected(128, 128),
        Convolution::fully_connected(845, 100),
        Convolution {
            in_channels: 2,
            out_channels: 3,
            image: [14, 14],
            kernel: [3, 3],
            strides: [2, 2],
            pads: [1, 1, 1, 1],
            dilations: [1, 1],
            groups: 1,
        },
    ];
    let rings = [(PRIMES[0], ParameterSet::B), (16_760_833, ParameterSet::W)];
    for (shape, (prime, set)) in shapes.iter().flat_map(|shape| rings.map(|ring| (shape, ring))) {
        let kernel = Kernel::BabyStepGiantStep { baby: 1 };
        let packing = Packing::of(shape, 8192, kernel).unwrap();
        let mut session = Session::of(set, [&packing]);
        let (ring, mut rng) = (Ring::Prime(prime), rng(5));
        let weights = signed(shape.weights(), 127, &mut rng);
        let bias = signed(shape.outputs().unwrap(), 1000, &mut rng);
        let secrets = signed(shape.inputs(), (prime as i64 - 1) / 2, &mut rng);
        let server = edge_share(ring, secrets.len(), &mut rng);
        let client = split(ring, &secrets, &server);
        let layer = Answering(
            ServerSquare::before(
                WeightForm::Evaluation,
                packing.clone(),
                &session.parameters,
                prime,
                weights[..].into(),
                &bias,
            )
            .unwrap(),
        );
        let target = Target::Layer(Box::new(packing));
        let ((c, s), _) = square(&mut session, &target, &layer, prime, (&client, &server));
        let truth = ideal::reduced_convolution(shape, &weights, &bias, ring, &squares(prime, &secrets));
        assert!(c.reveal(&s).unwrap() == truth, "{shape:?} mod {prime}");
    }
}

#[test]
fn the_budget_decides_what_is_fused() {
    let [narrow, wide] = [ParameterSet::B, ParameterSet::W].map(|set| set.parameters().unwrap());
    let packing = Packing::new(&Convolution::fully_connected(845, 100), 8192, 4).unwrap();
    let layer = Target::Layer(Box::new(packing.clone()));
    for (parameters, prime, fused) in [
        (&narrow, 1_032_193, true),
        (&narrow, 4_079_617, false),
        (&wide, 4_079_617, true),
        (&wide, 33_538_049, true),
        (&wide, 268_369_921, false),
    ] {
        assert_eq!(layer.fits(parameters, prime).unwrap(), fused, "fused mod {prime}");
        let weights = vec![1; 84_500];
        let server = ServerSquare::before(
            WeightForm::Evaluation,
            packing.clone(),
            parameters,
            prime,
            weights[..].into(),
            &[0; 100],
        );
        assert_eq!(server.is_ok(), fused);
    }
    // Shared first, squares fit every ring.
    for (parameters, prime) in [&narrow, &wide].into_iter().flat_map(|set| PRIMES.map(|prime| (set, prime))) {
        assert!(Target::Shares(10).fits(parameters, prime).unwrap(), "shared mod {prime}");
    }
    let small = Packing::new(&Convolution::fully_connected(128, 128), 8192, 1).unwrap();
    let small = Target::Layer(Box::new(small));
    assert!(!small.fits(&narrow, 4_079_617).unwrap() && small.fits(&wide, 33_538_049).unwrap());
}

/// The noise that the client could look for is below what the flooding hides, by the statistical margin, at its worst.
#[test]
fn the_flooding_covers_both_products() {
    let parameters = ParameterSet::W.parameters().unwrap();
    let packing = Packing::new(&Convolution::fully_connected(128, 128), 8192, 1).unwrap();
    let target = Target::Layer(Box::new(packing));
    let noise = target.noise(&parameters, PRIMES[1]).unwrap();
    let modulus = PlaintextModulus::new(&parameters, PRIMES[1]).unwrap();
    let budget = Budget::new(&modulus, noise).unwrap();
    let dropped = parameters.log2_modulus(parameters.limbs()) - parameters.log2_modulus(budget.flood_limbs());
    let left = noise.deviation().log2() - dropped;
    assert!(f64::from(budget.flood_bits()) >= left + 13.0 / 2.0 + 56.0);
}

#[test]
fn transcripts_do_not_depend_on_shares_and_what_is_decrypted_is_uniform() {
    let mut session = Session::new([]);
    let prime = PRIMES[0];
    let ring = Ring::Prime(prime);
    let layer = Answering(ServerSquare::new(8192, &session.parameters, prime).unwrap());
    let lengths = |party: &Party| party.sent.iter().map(|(k, b)| (k.0, b.len())).collect::<Vec<_>>();
    let mut seen = Vec::new();
    for value in [0, 1, prime - 1] {
        let shares = (Share::zero(ring, 8192), Share::new(ring, vec![value; 8192]).unwrap());
        let ((c, _), channels) =
            square(&mut session, &Target::Shares(8192), &layer, prime, (&shares.0, &shares.1));
        let mut bins = [0; 64];
        c.values().iter().for_each(|value| bins[(value * 64 / prime) as usize] += 1);
        assert!(uniform_chi_square(&bins) < chi_square_limit(63));
        seen.push((lengths(&channels.0), lengths(&channels.1)));
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn shares_that_do_not_fit_are_refused() {
    let mut session = Session::new([]);
    let layer = Answering(ServerSquare::new(5, &session.parameters, PRIMES[0]).unwrap());
    let (_, mut at_server) = Party::pair();
    for share in [Share::zero(Ring::Prime(PRIMES[0]), 4), Share::zero(Ring::Prime(PRIMES[1]), 5)] {
        assert!(layer.prepare(&mut at_server, &mut session.server, (), &inputs(&[&share])).is_err());
    }
}
