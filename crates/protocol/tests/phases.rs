//! What the owner of the key finds in a coefficient-encoded layer's answer: phases that are uniform to their lowest bit, or uniform messages
//! and their flooding, at the outputs' coefficients and nowhere else, and shares that are uniform to both parties. A server whose masks are
//! multiples of `2^w / t`, which hide messages and not their noise, is found by the same test. Chi-square tests under fixed seeds, at a level
//! of `10^-6`.

use std::sync::Arc;

use lanner_bfv::function_privacy::{PhaseModulus, PhaseSealing};
use lanner_bfv::halves::{C0, InputModulus};
use lanner_bfv::{
    Ciphertext, CoefficientEncoder, CoefficientFactor, NoiseBound, ParameterSet, Parameters, PublicKey,
    SecretKey,
};
use lanner_coefficient::cheetah::{Accuracy, ClientLayer, Scheme, ServerLayer, Stacked};
use lanner_primitives::{Ring, Share};
use lanner_step::{Answering, Client, Convolution, Sets, Step};
use lanner_testkit::{check_bits, chi_square_limit, sum_of_three_uniform, uniform_chi_square};
use lanner_wire::{Channel, Kind, pack_bits, packed_len, unpack_bits};

use crate::common::{Party, inputs, keys_alone, rng, run, share, signed, unknown};
use crate::matrices::{product, session};

/// Inputs and outputs: all coefficients of the smaller rings, a quarter of which are sent.
const INPUTS: usize = 4;
const OUTPUTS: usize = 1024;
/// Runs that are judged together.
const RUNS: u8 = 4;

/// A fully connected layer in one ciphertext.
struct Setting {
    parameters: Parameters,
    bits: u32,
    accuracy: Accuracy,
    weights: Vec<i64>,
    /// The client's share and the server's of each input.
    inputs: [Share; 2],
}

/// What came back, and both parties' shares.
struct Answer {
    second: Vec<u8>,
    first: Vec<u8>,
    client: Vec<u64>,
    server: Vec<u64>,
}

/// Who answers.
#[derive(Clone, Copy, PartialEq)]
enum Server {
    /// The layer itself.
    Layer,
    /// Its steps, one by one.
    Steps,
    /// The same with masks that leave the low bits.
    CoarseMasks,
}

impl Setting {
    /// Coefficients in which the outputs are: input `j` is at `j`, its weight for output `m` at `INPUTS (OUTPUTS - m) - 1 - j`.
    fn coefficients() -> Vec<usize> {
        (0..OUTPUTS).map(|m| INPUTS * (OUTPUTS - m) - 1).collect()
    }

    /// That of the outputs' shares.
    fn ring(&self) -> Ring {
        Ring::Pow2(self.bits + self.accuracy.guard())
    }

    fn answer(&self, server: Server, number: u8) -> (Answer, Arc<SecretKey>) {
        let mut channels = Party::pair();
        let (client_rng, server_rng) = (rng(2 * number), rng(2 * number + 1));
        let set = self.parameters.set().unwrap();
        let set_up = keys_alone(set, []);
        let shape = Convolution::fully_connected(INPUTS, OUTPUTS);
        let scheme =
            Scheme::new(&Stacked::try_from(&shape).unwrap(), self.bits, self.accuracy, &self.parameters)
                .unwrap();
        let client = ClientLayer::new(scheme.clone()).unwrap();
        let half = self.half(&scheme);
        let ((key, client), server) = run(
            &mut channels,
            |channel| {
                let mut state = Client::set_up(channel, &set_up, client_rng).unwrap();
                let request = client.request(channel, &mut state).unwrap();
                let (material, _) = client.prepare(channel, &mut state, request, &unknown(1)).unwrap();
                let made = client.online(channel, material, &inputs(&[&self.inputs[0]])).unwrap();
                (state.keys.shared(set).unwrap(), share(made))
            },
            |channel| {
                let mut state = lanner_step::Server::set_up(channel, &set_up, server_rng).unwrap();
                if server == Server::Layer {
                    let layer = Answering(ServerLayer::new(scheme, &self.weights, &[0; OUTPUTS]).unwrap());
                    let (material, _) = layer.prepare(channel, &mut state, (), &unknown(1)).unwrap();
                    let made = layer.online(channel, material, &inputs(&[&self.inputs[1]])).unwrap();
                    return share(made).values().to_vec();
                }
                let key = &state.keys.get(set).unwrap().public;
                self.serve(channel, key, &half, server == Server::CoarseMasks, &mut state.rng)
            },
        );
        let sent = |kind| channels.1.sent_of(kind).concat();
        let client = client.values().to_vec();
        (Answer { second: sent(SECOND_HALF.0), first: sent(OUTPUT.0), client, server }, key)
    }

    /// The server's steps.
    fn serve(
        &self,
        channel: &mut dyn Channel,
        key: &PublicKey,
        half: &InputModulus,
        coarse: bool,
        rng: &mut lanner_primitives::Prg,
    ) -> Vec<u64> {
        let seeds = channel.receive(SEEDS, 16).unwrap();
        let norm = 2048.0 * ((INPUTS * OUTPUTS) as f64).sqrt();
        let noise = match self.accuracy {
            Accuracy::Guarded(_) => half.noise(),
            _ => NoiseBound::fresh().plus_plaintext(),
        };
        let noise = noise.multiplied_by_norm(norm);
        let modulus = match self.accuracy {
            Accuracy::Exact => PhaseModulus::exact(&self.parameters, self.bits, OUTPUTS, noise),
            Accuracy::OffByOne => PhaseModulus::faithful(&self.parameters, self.bits, noise),
            Accuracy::Guarded(guard) => {
                PhaseModulus::guarded(&self.parameters, self.bits, guard, OUTPUTS, noise)
            }
        };
        let factors = [self.factor()];
        let input = lanner_bfv::halves::C1::from_bytes(&seeds).unwrap().expand(&self.parameters);
        let ahead = Ciphertext::inner_product_ahead(&[input], &factors, norm).unwrap();
        let (second, sealing) =
            PhaseSealing::new(&modulus.unwrap(), &ahead, key, noise, OUTPUTS, rng).unwrap();
        channel.send(SECOND_HALF, &second).unwrap();
        let sealing = if coarse { sealing.with_coarse_masks() } else { sealing };
        let shares = sealing.shares();
        let mut coefficients = vec![0; self.parameters.degree()];
        coefficients[..INPUTS].copy_from_slice(self.inputs[1].values());
        let input = if let Accuracy::Guarded(_) = self.accuracy {
            let bytes = channel.receive(INPUT, half.encoded_len()).unwrap();
            C0::from_rounded(half, &bytes, &coefficients).unwrap()
        } else {
            let bytes = channel.receive(INPUT, C0::encoded_len(&self.parameters)).unwrap();
            let mut input = C0::from_bytes(&self.parameters, &bytes).unwrap();
            let encoder = CoefficientEncoder::new(&self.parameters, 1 << self.bits).unwrap();
            input.add_plain(&encoder.encode(&coefficients).unwrap()).unwrap();
            input
        };
        let evaluated = C0::inner_product(&[input], &factors, norm).unwrap();
        channel.send(OUTPUT, &sealing.seal(&evaluated, &Self::coefficients()).unwrap()).unwrap();
        shares.to_vec()
    }

    /// How inputs are rounded, if they are, which their length tells.
    fn half(&self, scheme: &Scheme) -> InputModulus {
        let degree = self.parameters.degree();
        let bits = (scheme.online_cost().client_bytes() - 6) * 8 / degree as u64;
        InputModulus::new(&self.parameters, self.bits, bits.min(62) as u32, [degree, 0]).unwrap()
    }

    fn factor(&self) -> CoefficientFactor {
        let mut polynomial = vec![0; self.parameters.degree()];
        for (m, at) in Self::coefficients().into_iter().enumerate() {
            (0..INPUTS).for_each(|j| polynomial[at - j] = self.weights[m * INPUTS + j] as i32);
        }
        CoefficientFactor::new(&self.parameters, &polynomial).unwrap()
    }

    /// The sums modulo the ring of the inputs, above the guard.
    fn expected(&self) -> Vec<u64> {
        let ring = Ring::Pow2(self.bits);
        let x = self.inputs[0].add(&self.inputs[1]).unwrap();
        let sum = |weights: &[i64]| {
            let terms = weights.iter().zip(x.values()).map(|(w, x)| ring.factor(ring.embed(*w)).times(*x));
            terms.fold(0, |sum, term| ring.add(sum, term))
        };
        self.weights.chunks(INPUTS).map(|weights| sum(weights) << self.accuracy.guard()).collect()
    }
}

const INPUT: Kind = Kind(0x40);
const OUTPUT: Kind = Kind(0x41);
const SEEDS: Kind = Kind(0x42);
const SECOND_HALF: Kind = Kind(0x43);

/// What the owner of the key computes from an answer.
struct View {
    /// `w`.
    bits: u32,
    /// `c0 + c1 s` at the outputs' coefficients.
    phases: Vec<u128>,
    /// `c1 s` at the others, of which no `c0` comes.
    others: Vec<u128>,
}

impl View {
    /// Of an answer with products at these coefficients.
    fn of([second, first]: [&[u8]; 2], wanted: Vec<usize>, key: &SecretKey) -> Self {
        let degree = key.parameters().degree();
        let bits = (8 * second.len() / degree) as u32;
        // Nothing but the outputs' coefficients is sent, and of them no more than the high bits.
        let first_bits = (first.len() * 8 / wanted.len()) as u32;
        assert_eq!(first.len() * 8, wanted.len() * first_bits as usize);
        let c0 = unpack_wide(first, wanted.len(), first_bits);
        let c0 = c0.iter().map(|c0| c0 << (bits - first_bits));
        let products = multiply(&unpack_wide(second, degree, bits), &ternary(key));
        let mask = (1 << bits) - 1;
        let phases = c0.zip(&wanted).map(|(c0, at)| c0.wrapping_add(products[*at]) & mask).collect();
        let used: std::collections::BTreeSet<usize> = wanted.into_iter().collect();
        let others = (0..degree).filter(|at| !used.contains(at)).map(|at| products[at] & mask).collect();
        Self { bits, phases, others }
    }
}

/// The secret, as its owner can read it out: what a second half of a single constant decrypts to.
fn ternary(key: &SecretKey) -> Vec<i8> {
    let parameters = key.parameters();
    let degree = parameters.degree();
    let modulus = PhaseModulus::faithful(parameters, 4, NoiseBound::fresh()).unwrap();
    let bits = modulus.c0_len(8) as u32;
    let mut second = vec![0; degree];
    second[0] = 1 << (bits - 4);
    let coefficients: Vec<usize> = (0..degree).collect();
    let prepared = key.prepare_phase(&modulus, &pack_bits(&second, bits), &coefficients).unwrap();
    let shares = prepared.open(&pack_bits(&vec![0; degree], bits)).unwrap();
    let signed: Vec<i8> = shares.iter().map(|s| if *s < 8 { *s as i8 } else { *s as i8 - 16 }).collect();
    assert!(signed.iter().all(|s| s.abs() <= 1));
    signed
}

/// The product by a ternary polynomial modulo `X^N + 1`, and modulo `2^128`.
fn multiply(a: &[u128], s: &[i8]) -> Vec<u128> {
    let n = a.len();
    let mut product = vec![0_u128; 2 * n];
    for (i, s) in s.iter().enumerate() {
        let sums = product[i..i + n].iter_mut().zip(a);
        match s {
            1 => sums.for_each(|(sum, a)| *sum = sum.wrapping_add(*a)),
            -1 => sums.for_each(|(sum, a)| *sum = sum.wrapping_sub(*a)),
            _ => {}
        }
    }
    (0..n).map(|i| product[i].wrapping_sub(product[n + i])).collect()
}

/// Values of up to 112 bits: the low 56 bits of all, then the others'.
fn unpack_wide(bytes: &[u8], count: usize, bits: u32) -> Vec<u128> {
    let (low, high) = bytes.split_at(packed_len(count, bits.min(56)));
    let low = unpack_bits(low, count, bits.min(56)).unwrap();
    let high = if bits > 56 { unpack_bits(high, count, bits - 56).unwrap() } else { vec![0; count] };
    low.iter().zip(&high).map(|(low, high)| u128::from(*low) | u128::from(*high) << 56).collect()
}

/// Whether values of a given number of bits are uniform at every bit.
fn check_wide(values: &[u128], bits: u32) -> Result<(), String> {
    let parts = [(0, bits.min(48)), (48, bits.saturating_sub(48))];
    parts.into_iter().filter(|(_, bits)| *bits > 0).try_for_each(|(shift, bits)| {
        let words: Vec<u64> = values.iter().map(|value| (value >> shift) as u64).collect();
        check_bits(&[&pack_bits(&words, bits)], &[bits as usize])
    })
}

/// Whether masked phases of uniform messages in units of `2^shift` are as they ought to be: uniform altogether, or with the law of a flooding around them, whose
/// low bits are uniform.
fn check_phases(phases: &[u128], bits: u32, shift: u32, accuracy: Accuracy) -> Result<(), String> {
    if accuracy != Accuracy::Exact {
        check_wide(phases, bits)?;
        return check_wide(phases, shift);
    }
    let unit = 1_u128 << shift;
    let messages = phases.iter().map(|phase| phase.wrapping_add(unit / 2) & ((1 << bits) - 1));
    let rests = messages.clone().map(|phase| (phase & (unit - 1)) as f64 - (unit / 2) as f64);
    let mut laws = [0; 64];
    // A flooding is a sum of three uniform integers below a quarter of the unit.
    rests.for_each(|rest| {
        let law = sum_of_three_uniform(rest / (unit / 4) as f64);
        laws[(law * 64.0).min(63.0) as usize] += 1;
    });
    let found = uniform_chi_square(&laws);
    if found > chi_square_limit(63) {
        return Err(format!("the law of the flooding: {found}"));
    }
    check_wide(&messages.map(|phase| phase >> shift).collect::<Vec<_>>(), bits - shift)?;
    check_wide(phases, shift - 2)
}

/// Runs a layer and judges phases, the coefficients between them, second halves, and both parties' shares.
fn check(setting: &Setting, server: Server) -> Result<(), String> {
    let (mut phases, mut others, mut bits) = (Vec::new(), Vec::new(), 0);
    let (mut clients, mut servers, mut seconds) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..RUNS {
        let (answer, key) = setting.answer(server, number);
        let view = View::of([&answer.second, &answer.first], Setting::coefficients(), &key);
        let ring = setting.ring();
        let shares = setting.bits + setting.accuracy.guard();
        let shift = view.bits - shares;
        // The phases are the ones that the client rounds, and the shares are right.
        let half = if let Accuracy::Guarded(_) = setting.accuracy { 0 } else { 1 << (shift - 1) };
        let round = |phase: &u128| (((phase + half) >> shift) as u64) & ring.neg(1);
        assert!(view.phases.iter().map(round).eq(answer.client.iter().copied()));
        let off = |((c, s), y): ((&u64, &u64), &u64)| ring.signed(ring.sub(ring.add(*c, *s), *y));
        let may_be = match setting.accuracy {
            Accuracy::Exact => 0..=0,
            Accuracy::OffByOne => -1..=1,
            Accuracy::Guarded(_) => 0..=1,
        };
        let expected = setting.expected();
        let mut off = answer.client.iter().zip(&answer.server).zip(&expected).map(off);
        assert!(off.all(|off| may_be.contains(&off)));
        bits = view.bits;
        phases.extend(view.phases);
        others.extend(view.others);
        clients.extend(answer.client);
        servers.extend(answer.server);
        seconds.push(answer.second);
    }
    let within = |what: &str, judged: Result<(), String>| judged.map_err(|fault| format!("{what}: {fault}"));
    let shares = setting.bits + setting.accuracy.guard();
    let share = |values: &[u64]| check_bits(&[&pack_bits(values, shares)], &[shares as usize]);
    within("phases", check_phases(&phases, bits, bits - shares, setting.accuracy))?;
    within("coefficients that are not sent", check_wide(&others, bits))?;
    within("second halves", check_bits(&seconds.iter().map(Vec::as_slice).collect::<Vec<_>>(), &[]))?;
    within("the client's share", share(&clients))?;
    within("the server's share", share(&servers))
}

/// No weights, the largest and random ones, on inputs that are zero, whose shares are at the ends of the ring, and random.
fn settings() -> Vec<Setting> {
    let sets = Sets::new().unwrap();
    let mut settings = Vec::new();
    for (set, bits, accuracy) in [
        (ParameterSet::A0, 20, Accuracy::OffByOne),
        (ParameterSet::C3, 26, Accuracy::Guarded(1)),
        (ParameterSet::A1, 22, Accuracy::Exact),
        (ParameterSet::A2, 30, Accuracy::Exact),
        (ParameterSet::B, 41, Accuracy::Exact),
    ] {
        let ring = Ring::Pow2(bits);
        let constant = |value: u64| Share::new(ring, vec![value; INPUTS]).unwrap();
        let random = |number| Share::random(ring, INPUTS, &mut rng(number));
        for (weights, inputs) in [
            (vec![0; INPUTS * OUTPUTS], [constant(0), constant(0)]),
            (vec![2047; INPUTS * OUTPUTS], [constant(ring.neg(1)), constant(ring.neg(1))]),
            (signed(INPUTS * OUTPUTS, 2047, &mut rng(99)), [random(98), random(97)]),
        ] {
            settings.push(Setting {
                parameters: sets.get(set).unwrap().clone(),
                bits,
                accuracy,
                weights,
                inputs,
            });
        }
    }
    settings
}

#[test]
fn phases_and_shares_are_uniform_whatever_the_weights() {
    for setting in settings() {
        assert_eq!(check(&setting, Server::Layer), Ok(()));
    }
}

#[test]
fn masks_that_leave_the_low_bits_are_found() {
    for setting in settings() {
        assert_eq!(check(&setting, Server::Steps), Ok(()));
        let fault = check(&setting, Server::CoarseMasks).unwrap_err();
        assert!(fault.starts_with("phases"), "{fault}");
    }
}

/// What the client finds in the answer of a product of matrices whose server has shares at the end of the ring: no noise, and nothing where no product is.
#[test]
fn phases_of_products_of_matrices_are_uniform_whatever_the_shares() {
    let (rows, inner, columns, bits) = (16, 4, 16, 20);
    let spec = product([1, rows, inner, columns], bits, 1);
    let ring = Ring::Pow2(bits);
    let of = |value: u64| [rows, columns].map(|side| Share::new(ring, vec![value; side * inner]).unwrap());
    // Row y of X and column m of Y meet at `(inner (columns - m) - 1) rows + y`.
    let place = |m: usize, y: usize| (inner * (columns - m) - 1) * rows + y;
    let wanted: Vec<usize> = (0..columns).flat_map(|m| (0..rows).map(move |y| place(m, y))).collect();
    for shares in [[0, 0], [0, 1 << (bits - 1)], [ring.neg(1); 2]] {
        let [client, server] = shares.map(of);
        let (mut phases, mut others, mut width) = (Vec::new(), Vec::new(), 0);
        for number in 0..4 * RUNS {
            let ([share, _], [_, answer], key) =
                session(&spec, [&client, &server], [2 * number, 2 * number + 1]);
            let [second, first] = [SECOND_HALF, OUTPUT].map(|kind| answer.sent_of(kind.0));
            assert_eq!([second.len(), first.len()], [1; 2]);
            let view = View::of([second[0], first[0]], wanted.clone(), &key);
            // They are the ones that the client's share is made of, beside its own product.
            let own = ring.factor(shares[0]).times(ring.factor(shares[0]).times(inner as u64)) << spec.guard;
            let to = Ring::Pow2(bits + spec.guard);
            let high = |phase: &u128| to.add((phase >> (view.bits - bits - spec.guard)) as u64, own);
            let by_rows = (0..rows * columns).map(|at| view.phases[at % columns * rows + at / columns]);
            assert!(by_rows.map(|phase| high(&phase)).eq(share.values().iter().copied()));
            width = view.bits;
            phases.extend(view.phases);
            others.extend(view.others);
        }
        let guarded = Accuracy::Guarded(spec.guard);
        assert_eq!(check_phases(&phases, width, width - bits - spec.guard, guarded), Ok(()), "{shares:?}");
        assert_eq!(check_wide(&others, width), Ok(()), "{shares:?}");
    }
}
