//! Coefficient products with masked phases: right shares, uniform phases, and nothing of the weights for the owner of the key.

use lanner_bfv::function_privacy::{CIPHERTEXT_BITS, PhaseModulus, PhaseSealing};
use lanner_bfv::halves::{C0, InputModulus};
use lanner_bfv::{
    BfvError, Ciphertext, CoefficientEncoder, CoefficientFactor, NoiseBound, ParameterSet, Parameters,
    PublicKey, SecretKey,
};
use lanner_primitives::{Prg, Seed};
use rand_core::Rng;

fn rng(number: u8) -> Prg {
    Prg::new(Seed::from_bytes([number; 16]))
}

/// `x w` in `Z[X]/(X^N + 1)` at coefficient `k`, of sparse factors.
fn product(x: &[u64], w: &[(usize, i64)], k: usize) -> i64 {
    let n = x.len();
    let term = |&(place, w): &(usize, i64)| {
        let negate = place > k;
        let value = x[(k + n - place) % n] as i64;
        if negate { -(w * value) } else { w * value }
    };
    w.iter().map(term).fold(0, i64::wrapping_add)
}

struct Run {
    /// What each coefficient is off by.
    off: Vec<i64>,
    sent: usize,
}

/// How shares are made.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Exact,
    Faithful,
    /// With bits of guard, from inputs that are rounded.
    Guarded(u32),
}

/// Inner products of `inputs` encryptions with sparse factors of a given number of taps, opened at every third coefficient.
fn run(parameters: &Parameters, bits: u32, kind: Kind, inputs: usize, taps: usize) -> Run {
    let mut rng = rng(bits as u8);
    let (secret, encoder) =
        (SecretKey::generate(parameters, &mut rng), CoefficientEncoder::new(parameters, 1 << bits).unwrap());
    let public = PublicKey::generate(&secret, &mut rng);
    let (n, mask) = (parameters.degree(), (1_u64 << bits) - 1);
    let norm = (2048.0_f64.powi(2) * (taps * inputs) as f64).sqrt();
    let guard = if let Kind::Guarded(guard) = kind { guard } else { 0 };
    let input = InputModulus::new(parameters, bits, (bits + 22).min(62), [n, 0]).unwrap();
    let noise = match kind {
        Kind::Guarded(_) => input.noise(),
        _ => NoiseBound::fresh(),
    };
    let noise = noise.multiplied_by_norm(norm);
    let modulus = match kind {
        Kind::Exact => PhaseModulus::exact(parameters, bits, n.div_ceil(3), noise),
        Kind::Faithful => PhaseModulus::faithful(parameters, bits, noise),
        Kind::Guarded(guard) => PhaseModulus::guarded(parameters, bits, guard, n.div_ceil(3), noise),
    };
    let modulus = modulus.unwrap();
    let wanted: Vec<usize> = (0..n).step_by(3).collect();
    let (mut expected, mut firsts, mut seconds, mut factors) =
        (vec![0_i64; n], Vec::new(), Vec::new(), Vec::new());
    for _ in 0..inputs {
        let x: Vec<u64> = (0..n).map(|_| rng.next_u64() & mask).collect();
        let w: Vec<(usize, i64)> =
            (0..taps).map(|tap| (tap * 17 % n, (rng.next_u64() % 4096) as i64 - 2048)).collect();
        for (k, sum) in expected.iter_mut().enumerate() {
            *sum = sum.wrapping_add(product(&x, &w, k));
        }
        if let Kind::Guarded(_) = kind {
            let (second, prepared) = secret.prepare_input(&input, &mut rng).unwrap();
            seconds.push(second.expand(parameters));
            let server: Vec<u64> = (0..n).map(|_| rng.next_u64() & mask).collect();
            let client: Vec<u64> =
                x.iter().zip(&server).map(|(x, server)| x.wrapping_sub(*server) & mask).collect();
            let bytes = prepared.encrypt(&client).unwrap();
            assert_eq!(bytes.len(), input.encoded_len());
            firsts.push(C0::from_rounded(&input, &bytes, &server).unwrap());
        } else {
            let (second, prepared) = secret.prepare_encryption(&mut rng);
            seconds.push(second.expand(parameters));
            firsts.push(prepared.encrypt(&encoder.encode(&x).unwrap()).unwrap());
        }
        let mut dense = vec![0; n];
        for (place, w) in &w {
            dense[*place] += *w as i32;
        }
        factors.push(CoefficientFactor::new(parameters, &dense).unwrap());
    }
    let ahead = Ciphertext::inner_product_ahead(&seconds, &factors, norm).unwrap();
    let (second, sealing) =
        PhaseSealing::new(&modulus, &ahead, &public, noise, wanted.len(), &mut rng).unwrap();
    assert_eq!(second.len(), modulus.second_half_len());
    let prepared = secret.prepare_phase(&modulus, &second, &wanted).unwrap();
    let server = sealing.shares();
    let first = sealing.seal(&C0::inner_product(&firsts, &factors, norm).unwrap(), &wanted).unwrap();
    assert_eq!(first.len(), modulus.c0_len(wanted.len()));
    let client = prepared.open(&first).unwrap();
    let off = |(k, (c, s)): (&usize, (&u64, &u64))| {
        let (off, unused) =
            (c.wrapping_add(*s).wrapping_sub((expected[*k] as u64) << guard), 64 - bits - guard);
        ((off << unused) as i64) >> unused
    };
    Run {
        off: wanted.iter().zip(client.iter().zip(server.iter())).map(off).collect(),
        sent: first.len() + second.len(),
    }
}

#[test]
fn exact_shares_are_exact() {
    for (set, bits, inputs, taps) in [
        (ParameterSet::A1, 16, 1, 1),
        (ParameterSet::A1, 20, 3, 9),
        (ParameterSet::A2, 30, 12, 108),
        (ParameterSet::B, 41, 12, 108),
    ] {
        let run = run(&set.parameters().unwrap(), bits, Kind::Exact, inputs, taps);
        assert!(run.off.iter().all(|off| *off == 0), "{bits} bits");
    }
}

#[test]
fn guarded_shares_are_the_message_or_one_more_below_its_bits() {
    for (set, bits, guard) in [
        (ParameterSet::C1, 16, 1),
        (ParameterSet::C1, 24, 1),
        (ParameterSet::C2, 27, 2),
        (ParameterSet::C3, 30, 1),
        (ParameterSet::C3, 40, 3),
        (ParameterSet::A2, 37, 1),
    ] {
        let run = run(&set.parameters().unwrap(), bits, Kind::Guarded(guard), 12, 108);
        assert!(run.off.iter().all(|off| (0..=1).contains(off)), "{bits} bits");
        assert!([0, 1].iter().all(|off| run.off.contains(off)), "{bits} bits");
    }
}

/// What is read where nothing was sent is zero, and what was sent is as in a half that was sent in whole.
#[test]
fn coefficients_that_are_not_sent_do_not_count() {
    let parameters = ParameterSet::C1.parameters().unwrap();
    let n = parameters.degree();
    let secret = SecretKey::generate(&parameters, &mut rng(1));
    let message: Vec<u64> = (0..n as u64).map(|i| i * 40503 % (1 << 20)).collect();
    let half = |sent| {
        let modulus = InputModulus::new(&parameters, 20, 44, sent).unwrap();
        let (_, prepared) = secret.prepare_input(&modulus, &mut rng(2)).unwrap();
        (modulus, prepared.encrypt(&message).unwrap())
    };
    let ((whole, all), (part, some)) = (half([n, 0]), half([600, 200]));
    assert_eq!([whole.count(), part.count()], [n, 800]);
    assert_eq!([all.len(), some.len()], [n * 44 / 8, 800 * 44 / 8]);
    assert_eq!(some, [&all[..600 * 44 / 8], &all[(n - 200) * 44 / 8..]].concat());
    assert_eq!(half([n / 2, n / 2]).1, all);
    for wrong in [&some[1..], &[], &[some.as_slice(), &[0]].concat()] {
        assert!(matches!(C0::from_rounded(&part, wrong, &message), Err(BfvError::Decode(_))));
    }
    assert!(matches!(C0::from_rounded(&part, &some, &message[1..]), Err(BfvError::Length { .. })));
    for (message_bits, bits) in [(0, 20), (21, 20), (20, 63)] {
        let refused = InputModulus::new(&parameters, message_bits, bits, [n, 0]);
        assert!(matches!(refused, Err(BfvError::Mismatch { .. })));
    }
}

#[test]
fn faithful_shares_are_off_by_one_at_most_and_rarely() {
    for (set, bits) in
        [(ParameterSet::A0, 16), (ParameterSet::A0, 20), (ParameterSet::A1, 37), (ParameterSet::B, 41)]
    {
        let parameters = set.parameters().unwrap();
        let faithful = run(&parameters, bits, Kind::Faithful, 12, 108);
        assert!(faithful.off.iter().all(|off| off.abs() <= 1), "{bits} bits");
        let wrong = faithful.off.iter().filter(|off| **off != 0).count();
        assert!(wrong < faithful.off.len() / 20, "{wrong} of {}", faithful.off.len());
        assert!(faithful.sent < 10 * parameters.degree());
    }
}

#[test]
fn noise_that_does_not_fit_is_refused() {
    let small = ParameterSet::A0.parameters().unwrap();
    let noise = |norm| NoiseBound::fresh().multiplied_by_norm(norm);
    assert!(PhaseModulus::faithful(&small, 20, noise(2f64.powi(17))).is_ok());
    assert!(matches!(PhaseModulus::faithful(&small, 20, noise(2f64.powi(28))), Err(BfvError::Budget { .. })));
    let exact = |set: ParameterSet, bits, norm| {
        let parameters = set.parameters().unwrap();
        let modulus = PhaseModulus::exact(&parameters, bits, parameters.degree(), noise(norm));
        modulus.map(|modulus| modulus.distance(parameters.degree(), noise(norm)).bits())
    };
    let refused = |result| matches!(result, Err(BfvError::Budget { .. }));
    assert!(refused(exact(ParameterSet::A0, 20, 1.0)));
    // A layer of 4096 taps at the edges of each set: noise that is hidden, and a bit less of hiding.
    let norm = 2f64.powi(17);
    for (set, bits) in [(ParameterSet::A1, 21), (ParameterSet::A2, 35), (ParameterSet::B, 41)] {
        assert!(exact(set, bits, norm).unwrap() >= CIPHERTEXT_BITS);
    }
    assert!(refused(exact(ParameterSet::A1, 22, norm)));
    assert!(refused(exact(ParameterSet::A2, 36, norm)));
    // The same with taps of 16 bits in place of 12.
    let wide = 2f64.powi(21);
    let most = |set| (1..=41).rev().find(|bits| exact(set, *bits, wide).is_ok());
    assert_eq!([ParameterSet::A2, ParameterSet::B].map(most), [Some(32), Some(41)]);
    assert!(refused(exact(ParameterSet::B, 41, 2f64.powi(80))));
    let three = ParameterSet::B.parameters().unwrap();
    assert!(matches!(PhaseModulus::faithful(&three, 46, noise(1.0)), Err(BfvError::Mismatch { .. })));
}

/// The most weights of an output of which sums are guarded, each as large as its bits allow.
#[test]
fn guarded_sums_have_room_for_the_weights_of_their_rings() {
    let most = |set: ParameterSet, bits, weight_bits: i32| {
        let parameters = set.parameters().unwrap();
        let whole = parameters.log2_modulus(parameters.limbs()) as u32;
        let input = InputModulus::new(&parameters, bits, whole.min(InputModulus::MOST_BITS), [4096, 0]);
        let noise = input.unwrap().noise();
        let fits = |taps: &i32| {
            let noise = noise.multiplied_by_norm(2f64.powi(weight_bits - 1) * f64::from(*taps).sqrt());
            PhaseModulus::guarded_widths(&parameters, bits + 1, 1024, noise).is_some()
        };
        (0..=13).map(|log| 1 << log).filter(fits).max()
    };
    for (set, bits, weight_bits, taps) in [
        (ParameterSet::C1, 26, 12, Some(1 << 10)),
        (ParameterSet::C1, 25, 12, Some(1 << 13)),
        (ParameterSet::C1, 28, 14, Some(1)),
        (ParameterSet::C2, 27, 13, Some(1 << 13)),
        (ParameterSet::C2, 28, 14, Some(1 << 8)),
        (ParameterSet::C3, 36, 16, Some(1 << 13)),
    ] {
        assert_eq!(most(set, bits, weight_bits), taps, "{set:?}, {bits} bits");
    }
}

#[test]
fn bytes_of_other_lengths_are_refused() {
    let parameters = ParameterSet::A0.parameters().unwrap();
    let secret = SecretKey::generate(&parameters, &mut rng(1));
    let modulus = PhaseModulus::faithful(&parameters, 20, NoiseBound::fresh()).unwrap();
    let bytes = vec![0; modulus.second_half_len()];
    for wrong in [&bytes[1..], &[], &[bytes.as_slice(), &[0]].concat()] {
        assert!(matches!(secret.prepare_phase(&modulus, wrong, &[0]), Err(BfvError::Decode(_))));
    }
    let open =
        |bytes: &[u8], second: &[u8]| secret.prepare_phase(&modulus, second, &[0, 1]).unwrap().open(bytes);
    assert!(open(&[0; 8], &bytes).is_ok());
    assert!(open(&[0; 7], &bytes).is_err() && open(&[0; 9], &bytes).is_err());
}

/// The second half of a product by one weight is, without the encryption of zero, the client's own `c1` times that weight.
#[test]
fn second_halves_hide_the_weights() {
    let parameters = ParameterSet::A0.parameters().unwrap();
    let mut rng = rng(5);
    let secret = SecretKey::generate(&parameters, &mut rng);
    let public = PublicKey::generate(&secret, &mut rng);
    let (second, _) = secret.prepare_encryption(&mut rng);
    let noise = NoiseBound::fresh().multiplied_by_norm(8.0);
    let modulus = PhaseModulus::faithful(&parameters, 20, noise).unwrap();
    let halves = |weight: i32, rng: &mut Prg| {
        let mut coefficients = vec![0; parameters.degree()];
        coefficients[0] = weight;
        let factors = [CoefficientFactor::new(&parameters, &coefficients).unwrap()];
        let ahead = Ciphertext::inner_product_ahead(&[second.expand(&parameters)], &factors, 8.0).unwrap();
        PhaseSealing::new(&modulus, &ahead, &public, noise, 4, rng).unwrap().0
    };
    let (a, b, c) = (halves(3, &mut rng), halves(3, &mut rng), halves(5, &mut rng));
    // Two runs with one weight differ in as many bits as runs with two weights: half.
    let distance = |a: &[u8], b: &[u8]| a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
    let half = 8 * a.len() as u32 / 2;
    let deviation = (f64::from(half) / 2.0).sqrt();
    for other in [&b, &c] {
        assert!(f64::from(distance(&a, other).abs_diff(half)) < 6.0 * deviation);
    }
}

/// A layer modulo a prime: shares add up to the outputs, and what the server sends of both halves is in the modulus.
fn prime_shares(prime: u64, bits: u32, taps: usize) -> (Vec<i64>, usize) {
    let (parameters, mut rng) = (ParameterSet::B.parameters().unwrap(), rng(bits as u8));
    let secret = SecretKey::generate(&parameters, &mut rng);
    let encoder = CoefficientEncoder::new(&parameters, prime).unwrap();
    let public = PublicKey::generate(&secret, &mut rng);
    let n = parameters.degree();
    let norm = 2048.0 * (taps as f64).sqrt();
    let noise = NoiseBound::fresh().multiplied_by_norm(norm);
    let modulus = PhaseModulus::prime(&parameters, prime, bits, noise).unwrap();
    let x: Vec<u64> = (0..n).map(|_| rng.next_u64() % prime).collect();
    let w: Vec<(usize, i64)> =
        (0..taps).map(|tap| (tap * 17 % n, (rng.next_u64() % 4096) as i64 - 2048)).collect();
    let mut dense = vec![0; n];
    for (place, w) in &w {
        dense[*place] += *w as i32;
    }
    let factors = [CoefficientFactor::new(&parameters, &dense).unwrap()];
    let (second, prepared) = secret.prepare_encryption(&mut rng);
    let first = prepared.encrypt(&encoder.encode(&x).unwrap()).unwrap();
    let ahead = Ciphertext::inner_product_ahead(&[second.expand(&parameters)], &factors, norm).unwrap();
    let wanted: Vec<usize> = (0..n).collect();
    let (second, sealing) = PhaseSealing::new(&modulus, &ahead, &public, noise, n, &mut rng).unwrap();
    // Kept material is the same.
    let mut writer = lanner_wire::Writer::new();
    sealing.encode(&mut writer);
    let bytes = writer.into_bytes();
    let sealing = PhaseSealing::decode(&modulus, noise, n, &mut lanner_wire::Reader::new(&bytes)).unwrap();
    let prepared = secret.prepare_phase(&modulus, &second, &wanted).unwrap();
    let server = sealing.shares();
    let first = sealing.seal(&C0::inner_product(&[first], &factors, norm).unwrap(), &wanted).unwrap();
    assert_eq!([first.len(), second.len()], [modulus.c0_len(n), modulus.second_half_len()]);
    let client = prepared.open(&first).unwrap();
    let off = |(k, (c, s)): (usize, (&u64, &u64))| {
        assert!(*c < prime && *s < prime);
        let off = ((c + s) as i64 - product(&x, &w, k)).rem_euclid(prime as i64);
        if off > prime as i64 / 2 { off - prime as i64 } else { off }
    };
    (client.iter().zip(server.iter()).enumerate().map(off).collect(), first.len() + second.len())
}

#[test]
fn shares_modulo_a_prime_add_up_to_the_outputs() {
    let (off, sent) = prime_shares(1_032_193, 87, 108);
    assert!(off.iter().all(|off| *off == 0));
    assert_eq!(sent, 2 * 8192 * 87 / 8);
}

/// In a modulus that is too narrow shares are off by one, as often as noise and roundings are a part of a step.
#[test]
fn shares_modulo_a_prime_carry_in_a_narrow_modulus() {
    let (off, _) = prime_shares(1_032_193, 30, 1);
    let count = off.iter().filter(|off| **off != 0).count();
    assert!(off.iter().all(|off| off.abs() <= 1));
    // A mean error of some tens of 2^-10 steps.
    assert!((20..600).contains(&count), "{count}");
}
