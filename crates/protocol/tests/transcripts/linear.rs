//! Linear layers: keys, ciphertexts and what comes back. What its key opens is in `phases`.

use lanner_bfv::{ParameterSet, Parameters};
use lanner_coefficient::cheetah::{self, Accuracy, Scheme, Stacked};
use lanner_coefficient::delphi;
use lanner_packed::gazelle;
use lanner_packed::gazelle::packing::Packing;
use lanner_primitives::{Ring, Share};
use lanner_step::{Answering, Client, Convolution, Server, SetUp, Sets, Step};
use lanner_testkit::{Domain, Domains, Transcript};

use crate::common::{Party as End, inputs, keys_alone, rng, run, unknown};
use crate::matrices;
use crate::transcripts::{EXTREMES, Edge, Shares, check_masks, check_uniform, kinds, transcript};

const P: u64 = 1_032_193;
/// Few ciphertexts: keys are large enough.
const INPUTS: usize = 64;
const OUTPUTS: usize = 32;

fn shape() -> Convolution {
    Convolution::fully_connected(INPUTS, OUTPUTS)
}

/// A session of a layer on both parties' shares.
fn session(
    number: u8,
    set_up: &SetUp,
    (client, server): (impl Step<Client>, impl Step<Server>),
    shares: Shares,
    ring: Ring,
) -> Transcript {
    let mut channels = End::pair();
    run(
        &mut channels,
        |channel| {
            let mut state = Client::set_up(channel, set_up, rng(2 * number)).unwrap();
            let request = client.request(channel, &mut state).unwrap();
            let (material, _) = client.prepare(channel, &mut state, request, &unknown(1)).unwrap();
            client.online(channel, material, &inputs(&[&shares.client.share(ring, INPUTS)])).unwrap();
        },
        |channel| {
            let mut state = Server::set_up(channel, set_up, rng(2 * number + 1)).unwrap();
            let request = server.request(channel, &mut state).unwrap();
            let (material, _) = server.prepare(channel, &mut state, request, &unknown(1)).unwrap();
            server.online(channel, material, &inputs(&[&shares.server.share(ring, INPUTS)])).unwrap();
        },
    );
    transcript(&channels)
}

/// The largest weights of a layer by coefficients.
const LARGEST: [i64; INPUTS * OUTPUTS] = [2047; INPUTS * OUTPUTS];

/// By coefficients.
fn coefficients(number: u8, shares: Shares) -> Transcript {
    let server = Answering(cheetah::ServerLayer::new(scheme(), &LARGEST, &[0; OUTPUTS]).unwrap());
    let layers = (cheetah::ClientLayer::new(scheme()).unwrap(), server);
    session(number, &keys_alone(ParameterSet::A1, []), layers, shares, Ring::Pow2(BITS))
}

/// By coefficients ahead of time, and in the clear on a difference.
pub fn split(number: u8, shares: Shares) -> Transcript {
    let server = Answering(delphi::ServerLayer::new(scheme(), &LARGEST, &[0; OUTPUTS]).unwrap());
    let layers = (delphi::ClientLayer::new(scheme()).unwrap(), server);
    session(number, &keys_alone(ParameterSet::A1, []), layers, shares, Ring::Pow2(BITS))
}

/// By rotations, with the largest weights.
fn rotations(number: u8, shares: Shares) -> Transcript {
    let parameters = gazelle::parameters().unwrap();
    let packing = Packing::new(&shape(), parameters.degree(), 1).unwrap();
    let set_up = keys_alone(ParameterSet::B, [&packing]);
    let client = gazelle::ClientLayer::new(&packing, &parameters, P).unwrap();
    let weights = vec![(P as i64 - 1) / 2; INPUTS * OUTPUTS];
    let server =
        Answering(gazelle::ServerLayer::new(packing, &parameters, P, &weights, &[0; OUTPUTS]).unwrap());
    session(number, &set_up, (client, server), shares, Ring::Prime(P))
}

/// The product of two shared matrices.
fn products(number: u8, shares: Shares) -> Transcript {
    let spec = matrices::product([1, ROWS, ROWS, ROWS], BITS, 1);
    let of = |edge: Edge| [ROWS * ROWS; 2].map(|len| edge.share(Ring::Pow2(BITS), len));
    let (client, server) = (of(shares.client), of(shares.server));
    let (_, channels, _) = matrices::session(&spec, [&client, &server], [2 * number, 2 * number + 1]);
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
    let spec = matrices::product([1, ROWS, ROWS, ROWS], BITS, 1);
    let parameters = spec.set.parameters().unwrap();
    let zeros = [ROWS * ROWS; 2].map(|len| Share::zero(Ring::Pow2(BITS), len));
    let (_, [client, server], _) = matrices::session(&spec, [&zeros, &zeros], [0, 1]);
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
    check_uniform(products, &domains, &EXTREMES);
    check_masks(products, &domains, &[("client", 0x40)]);
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
