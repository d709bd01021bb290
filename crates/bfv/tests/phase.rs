//! Coefficient products with masked phases: right shares, uniform phases, and nothing of the weights for the owner of the key.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use lanner_bfv::function_privacy::{CIPHERTEXT_BITS, PhaseModulus, PhaseSealing};
use lanner_bfv::halves::C0;
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

/// Inner products of `inputs` encryptions with sparse factors of a given number of taps, opened at every third coefficient.
fn run(parameters: &Parameters, bits: u32, exact: bool, inputs: usize, taps: usize) -> Run {
    let mut rng = rng(bits as u8);
    let (secret, encoder) =
        (SecretKey::generate(parameters, &mut rng), CoefficientEncoder::new(parameters, 1 << bits).unwrap());
    let public = PublicKey::generate(&secret, &mut rng);
    let (n, mask) = (parameters.degree(), (1_u64 << bits) - 1);
    let norm = (2048.0_f64.powi(2) * (taps * inputs) as f64).sqrt();
    let noise = NoiseBound::fresh().multiplied_by_norm(norm);
    let modulus = if exact {
        PhaseModulus::exact(parameters, bits, n.div_ceil(3), noise).unwrap()
    } else {
        PhaseModulus::faithful(parameters, bits, noise).unwrap()
    };
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
        let (second, prepared) = secret.prepare_encryption(&mut rng);
        seconds.push(second.expand(parameters));
        firsts.push(prepared.encrypt(&encoder.encode(&x).unwrap()).unwrap());
        let mut dense = vec![0; n];
        for (place, w) in &w {
            dense[*place] += w;
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
        let off = c.wrapping_add(*s).wrapping_sub(expected[*k] as u64) & mask;
        ((off << (64 - bits)) as i64) >> (64 - bits)
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
        let run = run(&set.parameters().unwrap(), bits, true, inputs, taps);
        assert!(run.off.iter().all(|off| *off == 0), "{bits} bits");
    }
}

#[test]
fn faithful_shares_are_off_by_one_at_most_and_rarely() {
    for (set, bits) in
        [(ParameterSet::A0, 16), (ParameterSet::A0, 20), (ParameterSet::A1, 37), (ParameterSet::B, 41)]
    {
        let parameters = set.parameters().unwrap();
        let faithful = run(&parameters, bits, false, 12, 108);
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
    assert!(matches!(PhaseModulus::faithful(&three, 42, noise(1.0)), Err(BfvError::Mismatch { .. })));
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
    let halves = |weight: i64, rng: &mut Prg| {
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
