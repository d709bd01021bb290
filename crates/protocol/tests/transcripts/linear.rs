//! Linear layers: keys, ciphertexts and what comes back. What its key opens is in `phases`.

use lanner_bfv::{ParameterSet, Parameters, PublicKey, SecretKey};
use lanner_coefficient::cheetah::{self, Accuracy, Scheme, Stacked};
use lanner_coefficient::delphi;
use lanner_packed::gazelle;
use lanner_packed::gazelle::packing::Packing;
use lanner_primitives::{Prg, Ring, Share};
use lanner_step::{Convolution, Sets, galois_element, receive_keys, send_keys};
use lanner_testkit::{Domain, Domains, Transcript};

use crate::common::{Party as End, rng, run};
use crate::matrices::{product, session};
use crate::transcripts::{EXTREMES, Edge, Shares, check_masks, check_uniform, kinds, transcript};

const P: u64 = 1_032_193;
/// Few ciphertexts: keys are large enough.
const INPUTS: usize = 64;
const OUTPUTS: usize = 32;

fn shape() -> Convolution {
    Convolution::fully_connected(INPUTS, OUTPUTS)
}

/// A session of a layer by coefficients, with what each party does behind the keys.
fn by_coefficients(
    number: u8,
    client: impl FnOnce(&mut End, &SecretKey, &mut Prg) + Send,
    server: impl FnOnce(&mut End, &PublicKey, &mut Prg) + Send,
) -> Transcript {
    let parameters = scheme().parameters().clone();
    let mut channels = End::pair();
    run(
        &mut channels,
        |channel| {
            let rng = &mut rng(2 * number);
            let key = send_keys(channel, &parameters, &[], rng).unwrap();
            client(channel, &key, rng);
        },
        |channel| {
            let key = receive_keys(channel, &parameters, &[]).unwrap().public;
            server(channel, &key, &mut rng(2 * number + 1));
        },
    );
    transcript(&channels)
}

/// By coefficients, with the largest weights, of the layers of a protocol.
macro_rules! layers {
    ($protocol:ident, $number:expr, $shares:expr) => {{
        let ring = Ring::Pow2(BITS);
        let client = $protocol::ClientLayer::new(scheme()).unwrap();
        let server = $protocol::ServerLayer::new(scheme(), &[2047; INPUTS * OUTPUTS], &[0; OUTPUTS]).unwrap();
        by_coefficients(
            $number,
            |channel, key, rng| {
                let request = client.request(channel, key, rng).unwrap();
                let material = client.receive(channel, key, request).unwrap();
                client.online(channel, material, &$shares.client.share(ring, INPUTS)).unwrap();
            },
            |channel, key, rng| {
                let material = server.prepare(channel, key, rng).unwrap();
                server.online(channel, material, &$shares.server.share(ring, INPUTS)).unwrap();
            },
        )
    }};
}

/// By coefficients.
fn coefficients(number: u8, shares: Shares) -> Transcript {
    layers!(cheetah, number, shares)
}

/// By coefficients ahead of time, and in the clear on a difference.
pub fn split(number: u8, shares: Shares) -> Transcript {
    layers!(delphi, number, shares)
}

/// By rotations, with the largest weights.
fn rotations(number: u8, shares: Shares) -> Transcript {
    let (ring, parameters) = (Ring::Prime(P), gazelle::parameters().unwrap());
    let packing = Packing::new(&shape(), parameters.degree(), 1).unwrap();
    let element = |rotation| galois_element(rotation, parameters.degree()).unwrap().into();
    let elements: Vec<_> = packing.keys().into_iter().map(element).collect();
    let client = gazelle::ClientLayer::new(&packing, &parameters, P).unwrap();
    let weights = vec![(P as i64 - 1) / 2; INPUTS * OUTPUTS];
    let server = gazelle::ServerLayer::new(packing, &parameters, P, &weights, &[0; OUTPUTS]).unwrap();
    let mut channels = End::pair();
    run(
        &mut channels,
        |channel| {
            let rng = &mut rng(2 * number);
            let key = send_keys(channel, &parameters, &elements, rng).unwrap();
            let request = client.request(channel, &key, rng).unwrap();
            let material = client.receive(channel, &key, request).unwrap();
            client.online(channel, material, &shares.client.share(ring, INPUTS)).unwrap();
        },
        |channel| {
            let keys = receive_keys(channel, &parameters, &elements).unwrap();
            let material = server.offline(channel, &keys, &mut rng(2 * number + 1)).unwrap();
            server.online(channel, material, &shares.server.share(ring, INPUTS)).unwrap();
        },
    );
    transcript(&channels)
}

/// The product of two shared matrices.
fn matrices(number: u8, shares: Shares) -> Transcript {
    let spec = product([1, ROWS, ROWS, ROWS], BITS, 1);
    let of = |edge: Edge| [ROWS * ROWS; 2].map(|len| edge.share(Ring::Pow2(BITS), len));
    let (client, server) = (of(shares.client), of(shares.server));
    let (_, channels, _) = session(&spec, [&client, &server], [2 * number, 2 * number + 1]);
    transcript(&channels.into())
}

/// Rows and columns of square matrices.
const ROWS: usize = 12;

const BITS: u32 = 24;

fn scheme() -> Scheme {
    let sets = Sets::new().unwrap();
    Scheme::new(
        &Stacked::try_from(&shape()).unwrap(),
        BITS,
        Accuracy::Exact,
        sets.get(ParameterSet::A1).unwrap(),
    )
    .unwrap()
}

/// The bits of a value of the masked phases: what eight of them take in bytes.
fn phase_bits() -> usize {
    let outputs = scheme().online_cost().server_bytes() as usize - HEADER;
    8 * outputs / OUTPUTS
}

const HEADER: usize = 6;

fn moduli(parameters: &Parameters) -> Vec<u64> {
    parameters.moduli().iter().map(lanner_ring::Modulus::value).collect()
}

fn of_coefficients() -> Domains {
    let (scheme, wide) = (scheme(), phase_bits());
    // Values of more than 56 bits come in two parts.
    let output = kinds::bits(&[wide.min(56), wide.saturating_sub(56).max(8)]);
    // Keys of no rotation are a seed alone.
    let parameters = scheme.parameters();
    kinds::of_linear(parameters.degree(), &moduli(parameters), kinds::bits(&[]), &output, BITS as usize)
}

#[test]
fn layers_by_coefficients_are_uniform_whatever_the_shares() {
    check_uniform(coefficients, &of_coefficients(), &EXTREMES);
}

#[test]
fn layers_that_are_encrypted_ahead_are_uniform_whatever_the_shares() {
    check_uniform(split, &of_coefficients(), &EXTREMES);
    check_masks(split, &of_coefficients(), &[("client", 0x44)]);
}

#[test]
fn products_of_matrices_are_uniform_whatever_the_shares() {
    let spec = product([1, ROWS, ROWS, ROWS], BITS, 1);
    let parameters = spec.set.parameters().unwrap();
    let zeros = [ROWS * ROWS; 2].map(|len| Share::zero(Ring::Pow2(BITS), len));
    let (_, [client, server], _) = session(&spec, [&zeros, &zeros], [0, 1]);
    // What is sent of a whole half, and of an answer's first, tells the bits of a coefficient.
    let width = |message: &[u8], values: usize| kinds::bits(&[8 * message.len() / values]);
    let whole = client.sent_of(0x40).into_iter().max_by_key(|half| half.len()).unwrap();
    let mut domains: Domains =
        kinds::of_linear(parameters.degree(), &moduli(&parameters), kinds::bits(&[]), &kinds::bits(&[]), 8);
    domains.extend([
        (0x40, width(whole, parameters.degree())),
        (0x41, width(server.sent_of(0x41)[0], ROWS * ROWS)),
        (0x43, width(server.sent_of(0x43)[0], parameters.degree())),
    ]);
    check_uniform(matrices, &domains, &EXTREMES);
    check_masks(matrices, &domains, &[("client", 0x40)]);
}

#[test]
fn layers_by_rotations_are_uniform_whatever_the_shares() {
    let parameters = gazelle::parameters().unwrap();
    let (degree, limbs) = (parameters.degree(), moduli(&parameters));
    let residues = |seed, moduli: Vec<u64>| Domain::Residues { seed, values: degree, moduli };
    let special = parameters.special().map(lanner_ring::Modulus::value);
    let evaluation = residues(16, limbs.iter().copied().chain(special).collect());
    let domains: Domains = kinds::of_linear(degree, &limbs, evaluation, &residues(0, vec![limbs[0]]), 8);
    check_uniform(rotations, &domains, &EXTREMES[2..4]);
}
