//! Masked phases: the arithmetic beside a twin in whole integers, and what the encryption of zero hides.
#![allow(clippy::unwrap_used)]

mod whole;

use lanner_ring::RnsBasis;
use lanner_testkit::{chi_square_limit, sum_of_three_uniform, uniform_chi_square};
use proptest::prelude::*;
use rand_core::SeedableRng;

use self::whole::Whole;
use super::*;
use crate::{CoefficientFactor, ParameterSet};

/// Sets with one, two and three limbs.
fn sets() -> [Parameters; 5] {
    use ParameterSet::{A0, A1, B, C2, C3};
    [A0, C2, C3, A1, B].map(|set| set.parameters().unwrap())
}

/// Moduli of the narrowest, a middle and the widest phases of a set.
fn widths(parameters: &Parameters) -> Vec<PhaseModulus> {
    let fits = |bits: &u32| PhaseModulus::new(parameters, 1, *bits, NoiseBound::fresh(), Masks::Uniform).ok();
    let all: Vec<PhaseModulus> = (1..=widest(parameters)).filter_map(|bits| fits(&bits)).collect();
    assert_eq!(all.last().unwrap().bits, widest(parameters));
    [0, all.len() / 2, all.len() - 1].map(|at| all[at].clone()).to_vec()
}

fn product_of(basis: &RnsBasis) -> Whole {
    basis.moduli().iter().fold(Whole::from(1), |product, q| product.times(q.value()))
}

/// A polynomial of the basis with `x` as its coefficient 3.
fn with_coefficient(basis: &RnsBasis, x: Whole) -> Poly<Coeff> {
    let mut poly = Poly::zero(basis);
    for (limb, q) in poly.limbs_mut().zip(basis.moduli()) {
        limb[3] = x.divided(Whole::from(u128::from(q.value()))).1.low() as u64;
    }
    poly
}

/// Checks all that is computed of a coefficient `x`, reduced modulo the modulus.
fn check(modulus: &PhaseModulus, x: Whole) {
    let full = modulus.parameters.limbs();
    for limbs in 1..=full {
        let basis = modulus.parameters.basis(limbs);
        let q = product_of(&basis);
        let x = x.divided(q).1;
        let poly = with_coefficient(&basis, x);
        check_digits(modulus, &poly, x);
        let negative = q.below(x.plus(x));
        let centred = if negative { x.low().wrapping_sub(q.low()) } else { x.low() };
        assert_eq!(modulus.switch.centred(&poly, 3), centred, "{x:?} modulo {q:?}");
        if limbs == full {
            check_switched(modulus, &poly, x, q);
        }
    }
}

fn check_digits(modulus: &PhaseModulus, poly: &Poly<Coeff>, x: Whole) {
    let digits = &modulus.switch.digits(poly, 3)[..poly.basis().len()];
    let moduli = poly.basis().moduli();
    assert!(digits.iter().zip(moduli).all(|(digit, q)| *digit < q.value()));
    let value = digits.iter().zip(moduli).rev();
    let value = value
        .fold(Whole::from(0), |sum, (digit, q)| sum.times(q.value()).plus(Whole::from(u128::from(*digit))));
    assert_eq!(value, x);
}

/// Half a unit off, and less than a thousandth more.
fn check_switched(modulus: &PhaseModulus, poly: &Poly<Coeff>, x: Whole, q: Whole) {
    check_residue(modulus, modulus.switch.residue(poly, 3, modulus.bits), x, q);
    if modulus.bits <= NARROW {
        check_residue(modulus, u128::from(modulus.switch.residues(poly, modulus.bits)[3]), x, q);
    }
}

fn check_residue(modulus: &PhaseModulus, switched: u128, x: Whole, q: Whole) {
    assert!(switched <= mask(modulus.bits));
    let (below, rest) = x.shifted(modulus.bits).divided(q);
    let up = below.low().wrapping_add(1) & mask(modulus.bits);
    // In units of q / 2048.
    let part = rest.shifted(11).divided(q).0.low();
    let (may_be_below, may_be_up) = (part <= 1025, part >= 1022);
    assert!(
        switched == below.low() && may_be_below || switched == up && may_be_up,
        "{x:?} to {} bits",
        modulus.bits
    );
}

/// Values at which a carry, a borrow or a rounding decides.
fn edges(modulus: &PhaseModulus) -> Vec<Whole> {
    let basis = modulus.parameters.basis(modulus.parameters.limbs());
    let (q, one) = (product_of(&basis), Whole::from(1));
    let half = q.divided(Whole::from(2)).0;
    let mut edges = vec![Whole::from(0), q.minus(one), half];
    // Multiples of products of limbs: digits that are 0 or the largest, and halves of them.
    let mut product = one;
    for limb in basis.moduli() {
        for factor in [1, 2, limb.value() / 2, limb.value() - 1] {
            edges.push(product.times(factor));
            edges.push(product.times(factor).plus(product.divided(Whole::from(2)).0));
        }
        product = product.times(limb.value());
    }
    // Where the switched value goes up by one: at (j + 1/2) q / 2^w.
    for j in [0, 1, mask(modulus.bits) / 2, mask(modulus.bits) - 1, mask(modulus.bits)] {
        let odd = Whole::from(2 * j + 1);
        edges.push(odd.product(q).unshifted(modulus.bits + 1));
    }
    let near = |x: &Whole| [*x, x.plus(one), if *x == Whole::from(0) { *x } else { x.minus(one) }];
    edges.iter().flat_map(near).collect()
}

#[test]
fn edges_are_as_in_whole_integers() {
    for modulus in sets().iter().flat_map(widths) {
        for x in edges(&modulus) {
            check(&modulus, x);
        }
    }
}

proptest! {
    #[test]
    fn coefficients_are_as_in_whole_integers(high in any::<u128>(), low in any::<u128>()) {
        // Each property needs few values of each set: all have the same code.
        for modulus in sets().iter().filter_map(|set| widths(set).pop()) {
            check(&modulus, Whole::from(high).shifted(128).plus(Whole::from(low)));
        }
    }
}

/// A mask and a phase add up to the message in every ring of messages, at the ends of the range of either.
#[test]
fn roundings_of_two_summands_are_off_by_one_at_most() {
    let [.., three] = sets();
    for message_bits in [1, 2, 20, 40, 41] {
        let modulus =
            PhaseModulus::new(&three, message_bits, 112, NoiseBound::fresh(), Masks::Uniform).unwrap();
        let unit = 1_u128 << (112 - message_bits);
        let all = mask(112);
        for message in [0, 1, (1_u128 << message_bits) / 2, (1 << message_bits) - 1] {
            for r in [
                0,
                1,
                unit / 2 - 1,
                unit / 2,
                unit / 2 + 1,
                unit - 1,
                all / 2,
                all / 2 + 1,
                all - unit / 2,
                all,
            ] {
                for noise in [0, 1, unit / 4, all, all - unit / 4] {
                    let phase = (message * unit).wrapping_add(r).wrapping_add(noise) & all;
                    let sum = modulus.round(phase).wrapping_sub(modulus.round(r));
                    let off = sum.wrapping_sub(message as u64).wrapping_add(1) & mask(message_bits) as u64;
                    // Modulo 2 every difference is at most one.
                    assert!(off <= 2 && (noise != 0 || off == 1 & mask(message_bits) as u64));
                }
            }
        }
    }
}

/// Shares add up to the guarded message or one more, whatever the mask and whatever noise there may be, and no wider noise is accepted.
#[test]
fn guarded_shares_are_one_of_two_neighbours_whatever_noise_there_may_be() {
    let parameters = ParameterSet::C1.parameters().unwrap();
    let noise = NoiseBound::fresh().multiplied_by_norm(2f64.powi(14));
    let (message_bits, guard) = (26, 2);
    let modulus = PhaseModulus::guarded(&parameters, message_bits, guard, 1024, noise).unwrap();
    let PhaseModulus { bits, first_bits, .. } = modulus;
    assert!(first_bits < bits && first_bits >= message_bits + guard);
    let unit = 1_u128 << (bits - message_bits - guard);
    let largest = switched(&parameters, noise, bits).infinity(2048).ceil() as u128;
    let all = mask(bits);
    for message in [0, 1, (1_u128 << message_bits) / 2, (1 << message_bits) - 1] {
        for r in [0, 1, unit / 2 - 1, unit / 2, unit / 2 + 1, unit - 1, all / 2, all - unit / 2, all - 1, all]
        {
            for e in [0, 1, largest / 2, largest, all, all - largest / 2, (all - largest) + 1] {
                let first = (message << (bits - message_bits)).wrapping_add(r).wrapping_add(e);
                let sent = (first.wrapping_add(modulus.centre()) & all) >> (bits - first_bits);
                let client = modulus.round(sent << (bits - first_bits));
                let off = u128::from(client.wrapping_sub(modulus.round(r))).wrapping_sub(message << guard);
                assert!(off & mask(message_bits + guard) <= 1, "{message} + {r} + {e}");
            }
        }
    }
    let wide = NoiseBound::fresh().multiplied_by_norm(2f64.powi(20));
    assert!(matches!(
        PhaseModulus::guarded(&parameters, message_bits, guard, 1024, wide),
        Err(BfvError::Budget { .. })
    ));
}

#[test]
fn flooded_masks_round_to_uniform_messages_whatever_noise_there_may_be() {
    let parameters = ParameterSet::A1.parameters().unwrap();
    let modulus = PhaseModulus::exact(&parameters, 6, 4096, NoiseBound::fresh()).unwrap();
    let (unit, width) = (1_u128 << (modulus.bits - 6), f64::from(modulus.flood_bits()).exp2());
    let mut random = Prg::from_seed([8; 16]);
    let (mut messages, mut floods) = ([0; 64], [0; 64]);
    for r in modulus.draw(1 << 16, &mut random).iter().copied() {
        let message = modulus.round(r);
        for noise in [unit / 8 - 1, (unit / 8 - 1).wrapping_neg()] {
            assert_eq!(modulus.round(r.wrapping_add(noise) & mask(modulus.bits)), message);
        }
        messages[message as usize] += 1;
        let flood = r.wrapping_sub(u128::from(message) * unit) & mask(modulus.bits);
        let flood = flood.wrapping_sub((flood >> (modulus.bits - 1)) << modulus.bits) as i128 as f64 / width;
        floods[(sum_of_three_uniform(flood) * 64.0).min(63.0) as usize] += 1;
    }
    assert!(uniform_chi_square(&messages) < chi_square_limit(63));
    assert!(uniform_chi_square(&floods) < chi_square_limit(63));
}

#[test]
fn wide_values_come_back_and_bits_beyond_them_are_refused() {
    for bits in [1, 55, 56, 57, 111, 112] {
        for count in [0, 1, 3, 8] {
            let values: Vec<u128> = (0..count).map(|i| mask(bits).wrapping_sub(i)).collect();
            let values: Vec<u128> = values.iter().map(|value| value & mask(bits)).collect();
            let bytes = pack_wide(&values, bits);
            assert_eq!(bytes.len(), wide_len(values.len(), bits));
            assert_eq!(unpack_wide(&bytes, values.len(), bits).unwrap(), values);
            for length in (0..bytes.len()).chain([bytes.len() + 1]) {
                let mut changed = bytes.clone();
                changed.resize(length, 0);
                assert!(
                    unpack_wide(&changed, values.len(), bits).is_err(),
                    "{length} of {} bytes",
                    bytes.len()
                );
            }
        }
    }
}

/// The owner of the key looks for the weight that takes its own second half to the one that came back.
#[test]
fn weights_show_in_second_halves_without_the_encryption_of_zero_and_not_with_it() {
    let parameters = ParameterSet::A0.parameters().unwrap();
    let mut rng = Prg::from_seed([7; 16]);
    let secret = SecretKey::generate(&parameters, &mut rng);
    let public = PublicKey::generate(&secret, &mut rng);
    let noise = NoiseBound::fresh().multiplied_by_norm(8.0);
    let modulus = PhaseModulus::faithful(&parameters, 20, noise).unwrap();
    let input = secret.prepare_encryption(&mut rng).0.expand(&parameters);
    let times = |weight: i32| {
        let mut coefficients = vec![0; parameters.degree()];
        coefficients[0] = weight;
        let factor = [CoefficientFactor::new(&parameters, &coefficients).unwrap()];
        Ciphertext::inner_product_ahead(std::slice::from_ref(&input), &factor, 8.0).unwrap()
    };
    let looks_like = |bytes: &[u8], weight: i32| {
        let guess = times(weight).c1.into_coeff();
        let sent = unpack_wide(bytes, parameters.degree(), modulus.bits).unwrap();
        let near = |(i, sent): (usize, &u128)| {
            let guessed = modulus.switch.residue(&guess, i, modulus.bits);
            let distance = sent.wrapping_sub(guessed).wrapping_add(1) & mask(modulus.bits);
            distance <= 2
        };
        sent.iter().enumerate().filter(|pair| near(*pair)).count() > parameters.degree() / 2
    };
    let evaluated = times(5);
    let basis = evaluated.c1.basis();
    let zero = Blind { first: Poly::zero(basis), second: Poly::zero(basis), error: Poly::zero(basis) };
    let (broken, _) = PhaseSealing::blinded(&modulus, &evaluated, zero, noise, 1, &mut rng).unwrap();
    let (sealed, _) = PhaseSealing::new(&modulus, &evaluated, &public, noise, 1, &mut rng).unwrap();
    for weight in -8..8 {
        assert_eq!(looks_like(&broken, weight), weight == 5);
        assert!(!looks_like(&sealed, weight));
    }
}

/// Shares modulo a prime, of messages 0, in the middle and at the end, from coefficients and masks at every edge: their sum is the message where the rest of the
/// phase does not carry, and the shares' own arithmetic is that of whole integers.
#[test]
fn shares_modulo_a_prime_are_the_roundings_of_whole_integers() {
    let parameters = ParameterSet::B.parameters().unwrap();
    let mut rng = Prg::from_seed([21; 16]);
    for p in [257, 1_032_193, (1 << 26) - 5] {
        for bits in [60, 87, 88] {
            let modulus = PhaseModulus::prime(&parameters, p, bits, NoiseBound::fresh()).unwrap();
            let mut masks = vec![0, 1, mask(bits + FINER), mask(bits + FINER) - 1, 1 << (bits + FINER - 1)];
            masks.extend(modulus.draw(200, &mut rng).iter());
            for mask_of in masks {
                // round(p r / 2^(w + 24)), in halves of words.
                let whole = Whole::from(mask_of).times(p).plus(Whole::from(1 << (bits + FINER - 1)));
                let rounded = whole.divided(Whole::from(1 << (bits + FINER))).0.low() as u64 % p;
                assert_eq!(modulus.share_of_mask(mask_of), (p - rounded) % p, "{p}, {mask_of}");
            }
            for phase in [0, 1, mask(bits), 1 << (bits - 1), mask(bits) / u128::from(p)] {
                let whole = Whole::from(phase).times(p).plus(Whole::from(1 << (bits - 1)));
                let rounded = whole.divided(Whole::from(1 << bits)).0.low() as u64 % p;
                assert_eq!(modulus.round(phase), rounded);
            }
        }
    }
    for (p, bits) in [(1 << 26, 87), (257, 89)] {
        assert!(PhaseModulus::prime(&parameters, p, bits, NoiseBound::fresh()).is_err());
    }
}
