//! Packed layers over BFV equal their ideal twin, for every layout, with the operations that the layout counts.

use std::cell::Cell;

use lanner_bfv::{Parameters, SlotEncoder};
use lanner_packed::gazelle::packing::{Operations, Packing};
use lanner_packed::gazelle::program::Term;
use lanner_packed::gazelle::scheme::{PackedScheme, evaluate};
use lanner_packed::gazelle::{ClientLayer, EncryptedSlots, ServerLayer, online_cost};
use lanner_primitives::{Ring, Share};
use lanner_step::{Answering, Convolution, Rotation, Samples, Step};

use crate::common::{Party, Session, edge_share, ideal, inputs, rng, rotating, signed, split, unknown};

const PRIMES: [u64; 4] = [1_032_193, 33_538_049, 1_073_692_673, 137_438_822_401];

/// Runs a layer on given shares; returns the client's share of the output and the server's.
fn layer(
    session: &mut Session,
    packing: &Packing,
    prime: u64,
    weights: &[i64],
    bias: &[i64],
    shares: (&Share, &Share),
) -> (Share, Share) {
    let client = ClientLayer::new(packing, &session.parameters, prime).unwrap();
    let server =
        Answering(ServerLayer::new(packing.clone(), &session.parameters, prime, weights, bias).unwrap());
    let outputs = session.run(&mut Party::pair(), (&client, &server), shares, [1, 2], false);
    assert_eq!(outputs.0.len(), packing.shape().outputs().unwrap());
    outputs
}

/// Every layout of a shape, on shares at the ring's edges.
fn check(shape: &Convolution, primes: &[u64]) {
    for packing in &Packing::choices(shape, 8192, Samples::ONE).unwrap() {
        for prime in primes {
            let mut session = Session::of(rotating(*prime), [packing]);
            let (ring, mut rng) = (Ring::Prime(*prime), rng(3));
            let weights = signed(shape.weights(), 127, &mut rng);
            let bias = signed(shape.outputs().unwrap(), (*prime as i64 - 1) / 2, &mut rng);
            let secrets = signed(shape.inputs(), (*prime as i64 - 1) / 2, &mut rng);
            let server = edge_share(ring, secrets.len(), &mut rng);
            let client = split(ring, &secrets, &server);
            let (c, s) = layer(&mut session, packing, *prime, &weights, &bias, (&client, &server));
            let truth = ideal::linear(shape, &weights, &bias, (&client, &server), &mut rng);
            let kernel = packing.kernel();
            assert!(
                c.reveal(&s).unwrap() == truth.0.reveal(&truth.1).unwrap(),
                "{shape:?} {kernel:?} {prime}"
            );
        }
    }
}

fn convolution(channels: [usize; 2], image: [usize; 2], kernel: [usize; 2]) -> Convolution {
    Convolution {
        in_channels: channels[0],
        out_channels: channels[1],
        image,
        kernel,
        strides: [1, 1],
        pads: [0; 4],
        dilations: [1, 1],
        groups: 1,
    }
}

#[test]
fn products_equal_their_twin_in_every_layout() {
    check(&Convolution::fully_connected(1, 1), &PRIMES);
    check(&Convolution::fully_connected(100, 10), &PRIMES);
    check(&Convolution::fully_connected(1024, 40), &PRIMES[..1]);
    // Several input ciphertexts; several output ciphertexts.
    check(&Convolution::fully_connected(9000, 1), &PRIMES[2..3]);
    check(&Convolution::fully_connected(1, 9000), &PRIMES[1..2]);
}

#[test]
fn convolutions_equal_their_twin_in_every_layout() {
    check(&convolution([3, 5], [9, 7], [3, 2]), &PRIMES);
    check(
        &Convolution { strides: [2, 2], pads: [1, 1, 2, 2], ..convolution([1, 5], [28, 28], [5, 5]) },
        &PRIMES[..1],
    );
    check(
        &Convolution { strides: [2, 3], pads: [0, 2, 1, 0], ..convolution([2, 3], [10, 11], [3, 4]) },
        &PRIMES[1..2],
    );
    check(&convolution([1, 16], [28, 28], [5, 5]), &PRIMES[2..3]);
    // Several ciphertexts each way.
    check(&convolution([3, 5], [64, 64], [2, 2]), &PRIMES[3..]);
}

#[test]
fn extreme_shares_give_the_same_sums() {
    let shape = Convolution::fully_connected(64, 8);
    let packing = Packing::new(&shape, 8192, 1).unwrap();
    for prime in PRIMES {
        let mut session = Session::of(rotating(prime), [&packing]);
        let ring = Ring::Prime(prime);
        let weights = signed(shape.weights(), (prime as i64 - 1) / 2, &mut rng(4));
        let constant = |value| Share::new(ring, vec![value; 64]).unwrap();
        for (client, server) in
            [(0, 0), (0, prime - 1), (prime - 1, 0), (prime - 1, prime - 1), (prime / 2, 1)]
        {
            let shares = (constant(client), constant(server));
            let (c, s) = layer(&mut session, &packing, prime, &weights, &[0; 8], (&shares.0, &shares.1));
            let (a, b) = ideal::linear(&shape, &weights, &[0; 8], (&shares.0, &shares.1), &mut rng(5));
            assert!(c.reveal(&s).unwrap() == a.reveal(&b).unwrap(), "{client} + {server} mod {prime}");
        }
    }
}

/// A scheme that counts what it is asked for.
struct Counted<S> {
    scheme: S,
    hoisted: Cell<usize>,
    rotations: Cell<usize>,
    products: Cell<usize>,
    sums: Cell<usize>,
}

impl<S: PackedScheme> PackedScheme for Counted<S> {
    type Ciphertext = S::Ciphertext;
    type Unreduced = S::Unreduced;
    type Multiplier = S::Multiplier;
    type Sums = S::Sums;
    type Error = S::Error;

    fn rotate_hoisted(
        &self,
        ciphertext: &S::Ciphertext,
        rotations: &[Rotation],
        visit: impl FnMut(&[S::Unreduced]) -> Result<(), S::Error>,
    ) -> Result<(), S::Error> {
        let moving = rotations.iter().filter(|rotation| **rotation != Rotation::IDENTITY).count();
        self.hoisted.set(self.hoisted.get() + moving);
        self.scheme.rotate_hoisted(ciphertext, rotations, visit)
    }

    fn empty_sums(&self, count: usize) -> Result<S::Sums, S::Error> {
        self.sums.set(self.sums.get() + count);
        self.scheme.empty_sums(count)
    }

    fn multiply_add(
        &self,
        sums: &mut S::Sums,
        rotated: &[S::Unreduced],
        terms: &[&[Term]],
        multipliers: &[S::Multiplier],
    ) -> Result<(), S::Error> {
        self.products.set(self.products.get() + terms.iter().map(|terms| terms.len()).sum::<usize>());
        self.scheme.multiply_add(sums, rotated, terms, multipliers)
    }

    fn open(&self, sums: S::Sums) -> Vec<S::Unreduced> {
        self.scheme.open(sums)
    }

    fn rotate_add(
        &self,
        sum: &mut S::Unreduced,
        ciphertext: &S::Ciphertext,
        rotation: Rotation,
    ) -> Result<(), S::Error> {
        self.rotations.set(self.rotations.get() + 1);
        self.scheme.rotate_add(sum, ciphertext, rotation)
    }

    fn reduce(&self, sum: S::Unreduced) -> S::Ciphertext {
        self.scheme.reduce(sum)
    }

    fn rotate(&self, ciphertext: &S::Ciphertext, rotation: Rotation) -> Result<S::Ciphertext, S::Error> {
        self.rotations.set(self.rotations.get() + 1);
        self.scheme.rotate(ciphertext, rotation)
    }

    fn add(&self, sum: &mut S::Ciphertext, other: &S::Ciphertext) -> Result<(), S::Error> {
        self.scheme.add(sum, other)
    }
}

fn measured(packing: &Packing, parameters: &Parameters) -> Operations {
    let session = Session::new([packing]);
    let encoder = SlotEncoder::new(parameters, PRIMES[0]).unwrap();
    let slots = vec![1; packing.slots()];
    let multipliers: Vec<_> =
        (0..packing.multipliers()).map(|_| encoder.multiplier(&slots).unwrap()).collect();
    let encrypt =
        |_| session.secret().encrypt(&encoder.encode(&slots).unwrap(), &mut rng(6)).unwrap().expand();
    let inputs: Vec<_> = (0..packing.operations().input_ciphertexts).map(encrypt).collect();
    let count = || Cell::new(0);
    let scheme = EncryptedSlots::new(parameters, &session.keys().evaluation);
    let counted = Counted { scheme, hoisted: count(), rotations: count(), products: count(), sums: count() };
    let outputs = evaluate(&counted, packing, &multipliers, &inputs).unwrap();
    Operations {
        hoisted_rotations: counted.hoisted.get(),
        rotations: counted.rotations.get(),
        multiplications: counted.products.get(),
        sums: counted.sums.get(),
        input_ciphertexts: inputs.len(),
        output_ciphertexts: outputs.len(),
    }
}

#[test]
fn operations_are_the_counted_ones() {
    let parameters = lanner_packed::gazelle::parameters().unwrap();
    let shapes = [
        Convolution::fully_connected(2048, 1),
        Convolution::fully_connected(1024, 16),
        Convolution::fully_connected(9000, 2),
        Convolution { strides: [2, 2], pads: [1, 1, 2, 2], ..convolution([1, 5], [28, 28], [5, 5]) },
        convolution([16, 16], [12, 12], [2, 2]),
    ];
    for shape in shapes {
        for packing in Packing::choices(&shape, parameters.degree(), Samples::ONE).unwrap() {
            assert_eq!(
                measured(&packing, &parameters),
                packing.operations(),
                "{shape:?} {:?}",
                packing.kernel()
            );
            assert!(online_cost(&packing, &parameters, PRIMES[0]).is_ok());
        }
    }
}

#[test]
fn a_layer_that_does_not_fit_is_refused() {
    let parameters = lanner_packed::gazelle::parameters().unwrap();
    let shape = Convolution::fully_connected(4, 4);
    let packing = Packing::new(&shape, 8192, 1).unwrap();
    let new = |prime, weights: &[i64], bias: &[i64]| {
        ServerLayer::new(packing.clone(), &parameters, prime, weights, bias).map(drop)
    };
    assert!(new(PRIMES[0], &[0; 15], &[0; 4]).is_err());
    assert!(new(PRIMES[0], &[0; 16], &[0; 3]).is_err());
    assert!(new(PRIMES[0] + 2, &[0; 16], &[0; 4]).is_err());
    let client = ClientLayer::new(&packing, &parameters, PRIMES[0]).unwrap();
    let Session { client: mut at_home, server: mut serving, .. } = Session::new([&packing]);
    let (mut at_client, mut at_server) = Party::pair();
    let server =
        Answering(ServerLayer::new(packing.clone(), &parameters, PRIMES[0], &[1; 16], &[0; 4]).unwrap());
    let request = client.request(&mut at_client, &mut at_home).unwrap();
    server.prepare(&mut at_server, &mut serving, (), &unknown(1)).unwrap();
    let (material, _) = client.prepare(&mut at_client, &mut at_home, request, &unknown(1)).unwrap();
    let share = Share::zero(Ring::Prime(PRIMES[1]), 4);
    assert!(client.online(&mut at_client, material, &inputs(&[&share])).is_err(), "another ring");
}
