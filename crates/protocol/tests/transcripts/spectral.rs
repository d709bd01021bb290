//! A layer on ciphertexts: the request, and the response, whose noise and other slots tell of the weights unless they are hidden.

use std::sync::Arc;

use lanner_bfv::{NoiseBound, ParameterSet, Parameters};
use lanner_primitives::Share;
use lanner_spectral::{Encrypt, INPUT, Linear, Program, Reveal, Search};
use lanner_step::{Built, Client, Convolution, Inputs, Samples, Server, SetUp, Sets, Spec, Value};
use lanner_testkit::{Domain, Domains, Transcript};

use crate::common::laws::Model;
use crate::common::{Party as End, rng, run};
use crate::transcripts::{EXTREMES, Shares, check_uniform, transcript};

const PRIME: u64 = 2_147_352_577;
const SET: ParameterSet = ParameterSet::L;
const LIMBS: usize = 3;
const INPUTS: usize = 2;
const OUTPUTS: usize = 2;

/// Request, layer and response.
fn steps(sets: &Sets) -> [Box<dyn Built>; 3] {
    let shape = Convolution::fully_connected(INPUTS, OUTPUTS);
    let mut chain = Program::chain(&[shape], SET.degree(), &mut Search::default()).unwrap();
    let program = Arc::new(chain.remove(0));
    let (from, to) = (program.from().clone(), program.to().clone());
    let encrypt =
        Encrypt { layout: from, samples: Samples::ONE, primes: vec![PRIME], set: SET, limbs: LIMBS };
    let linear = Linear::new(&program, Samples::ONE, &[PRIME], SET, [LIMBS; 2]);
    let parameters = SET.parameters().unwrap();
    let noise: NoiseBound = program.noise(NoiseBound::fresh(), &parameters, &[PRIME], LIMBS);
    let (samples, noise_bits) = (Samples::ONE, noise.bits());
    let reveal = Reveal { layout: to, samples, primes: vec![PRIME], set: SET, limbs: LIMBS, noise_bits };
    [encrypt.build(sets).unwrap(), linear.build(sets).unwrap(), reveal.build(sets).unwrap()]
}

/// A whole prediction. The client's share is the input, modulo as many bits as it is handed over with.
pub fn session(number: u8, shares: Shares) -> Transcript {
    let sets = Sets::new().unwrap();
    let needs: Vec<_> = steps(&sets).iter().map(|step| step.needs().unwrap()).collect();
    let set_up = SetUp::of(&needs, [0, 0], &sets).unwrap();
    let mut channels = End::pair();
    /// Both phases of all steps.
    macro_rules! party {
        ($state:ident, $side:ident, $channel:expr, $seed:expr, $input:expr) => {{
            let mut state = $state::set_up($channel, &set_up, rng($seed)).unwrap();
            let model = Model::new(vec![(PRIME as i64 - 1) / 2; INPUTS * OUTPUTS], vec![0; OUTPUTS]);
            let mut value = std::rc::Rc::new(Value::Shared($input));
            for step in steps(&sets) {
                let step = step.$side("fc", &model).unwrap();
                let inputs = Inputs::new(vec![Some(value)]);
                let request = step.request($channel, &mut state).unwrap();
                let (material, _) = step.prepare($channel, &mut state, request, &inputs).unwrap();
                value = std::rc::Rc::new(step.online($channel, material, &inputs).unwrap());
            }
        }};
    }
    let input = shares.client.share(INPUT, INPUTS);
    run(
        &mut channels,
        |channel| party!(Client, client, channel, 2 * number, input),
        |channel| party!(Server, server, channel, 2 * number + 1, Share::zero(INPUT, INPUTS)),
    );
    transcript(&channels)
}

fn moduli(parameters: &Parameters, limbs: usize) -> Vec<u64> {
    parameters.moduli()[..limbs].iter().map(lanner_ring::Modulus::value).collect()
}

#[test]
fn requests_and_responses_are_uniform_whatever_the_input() {
    let parameters = SET.parameters().unwrap();
    let residues = |seed, moduli: Vec<u64>| Domain::Residues { seed, values: SET.degree(), moduli };
    let special = parameters.special().unwrap().value();
    let digit = [moduli(&parameters, LIMBS), vec![special]].concat();
    let wire = moduli(&parameters, 1);
    let domains: Domains = [
        (0x30, residues(16, moduli(&parameters, parameters.limbs()))),
        (0x31, residues(16, digit)),
        (0x80, residues(16, moduli(&parameters, LIMBS))),
        (0x81, residues(0, wire)),
    ]
    .into();
    check_uniform(session, &domains, &EXTREMES[1..3]);
}
