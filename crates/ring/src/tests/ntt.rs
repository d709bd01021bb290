//! The transform computes products in `Z_q[X]/(X^n + 1)`, in the documented order, on every backend.

use super::common::{PRIMES, backends, random, schoolbook};
use crate::{Modulus, Ntt, RingError, is_prime};

#[test]
fn product_of_transforms_is_negacyclic_product() {
    for q in PRIMES {
        for n in [8, 16, 32, 64, 256] {
            for modulus in backends(q) {
                let ntt = Ntt::new(&modulus, n).unwrap();
                let (mut a, mut b) = (random(q, n, 1), random(q, n, 2));
                let expected = schoolbook(q, &a, &b);
                ntt.forward(&mut a);
                ntt.forward(&mut b);
                modulus.mul_assign_slice(&mut a, &b);
                ntt.inverse(&mut a);
                assert_eq!(a, expected, "q = {q}, n = {n}, {:?}", modulus.backend());
            }
        }
    }
}

#[test]
fn slots_are_values_at_bit_reversed_odd_powers() {
    let n = 64;
    for q in PRIMES {
        let modulus = Modulus::new(q).unwrap();
        let ntt = Ntt::new(&modulus, n).unwrap();
        let a = random(q, n, 3);
        let mut values = a.clone();
        ntt.forward(&mut values);
        for (i, value) in values.iter().enumerate() {
            let point = modulus.pow(ntt.root(), 2 * ((i as u64).reverse_bits() >> 58) + 1);
            let horner = a.iter().rev().fold(0, |sum, c| modulus.add(modulus.mul(sum, point), *c));
            assert_eq!(*value, horner);
        }
    }
}

#[test]
fn every_backend_equals_the_portable_one() {
    for q in PRIMES {
        for n in [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384] {
            if !(q - 1).is_multiple_of(2 * n as u64) {
                continue;
            }
            let alternating: Vec<_> = (0..n).map(|i| if i % 2 == 0 { q - 1 } else { 0 }).collect();
            for input in [vec![0; n], vec![q - 1; n], alternating, random(q, n, 4), random(q, n, 5)] {
                let results: Vec<_> = backends(q)
                    .map(|modulus| {
                        let ntt = Ntt::new(&modulus, n).unwrap();
                        let (mut forward, mut inverse) = (input.clone(), input.clone());
                        ntt.forward(&mut forward);
                        ntt.inverse(&mut inverse);
                        let mut back = forward.clone();
                        ntt.inverse(&mut back);
                        assert_eq!(back, input, "q = {q}, n = {n}, {:?}", modulus.backend());
                        (forward, inverse)
                    })
                    .collect();
                assert!(results.iter().all(|result| *result == results[0]), "q = {q}, n = {n}");
            }
        }
    }
}

#[test]
fn roots_and_order_are_fixed() {
    // Both parties derive them, so a change breaks the wire. Values from the definition, in Python:
    //   g, psi = 2, 1
    //   while pow(psi, n, q) != q - 1: psi = pow(g, (q - 1) // (2 * n), q); g += 1
    //   [sum((j + 1) * pow(psi, (2 * rev(i) + 1) * j, q) for j in range(n)) % q for i in range(n)]
    let roots = [
        (7681, 8, 7154),
        (114_689, 8192, 2187),
        (1_125_899_903_827_969, 4096, 585_883_673_656_934),
        (1_125_899_903_827_969, 8192, 988_397_239_582_577),
    ];
    for (q, n, root) in roots {
        assert_eq!(Ntt::new(&Modulus::new(q).unwrap(), n).unwrap().root(), root);
    }
    let mut values = [1, 2, 3, 4, 5, 6, 7, 8];
    Ntt::new(&Modulus::new(7681).unwrap(), 8).unwrap().forward(&mut values);
    assert_eq!(values, [5766, 2182, 4669, 4218, 6216, 2324, 4178, 1179]);
}

#[test]
fn lengths_and_primes_without_a_root_are_refused() {
    let modulus = Modulus::new(7681).unwrap();
    for n in [0, 4, 48, 131_072] {
        assert_eq!(Ntt::new(&modulus, n).err(), Some(RingError::Degree { n }));
    }
    assert_eq!(Ntt::new(&modulus, 512).err(), Some(RingError::NoRoot { q: 7681, n: 512 }));
    assert_eq!(Ntt::new(&Modulus::new(2).unwrap(), 8).err(), Some(RingError::NoRoot { q: 2, n: 8 }));
}

#[test]
fn lazy_ranges_hold_for_every_shape_of_prime() {
    // The bounds depend on the fraction of 2^52 / q: take primes all over the last octaves that the kernels accept.
    let n = 256;
    for eighths in 8..32 {
        let start: u64 = (1 << 47) / 4 * eighths / 512 * 512 + 1;
        let q = (start..).step_by(512).find(|q| is_prime(*q)).unwrap();
        for input in [vec![q - 1; n], random(q, n, eighths), random(q, n, !eighths)] {
            assert_backends_agree(q, &input);
        }
    }
}

#[test]
fn values_have_room_up_to_the_edges() {
    // Reductions are left out as long as sums stay below 2^52: primes on both sides of each bound, with the largest inputs.
    for n in [64_u64, 256, 4096, 8192, 16384] {
        let step = 2 * n;
        let levels = u64::from(n.ilog2());
        for edge in [n, 16, 2 * levels + 1, 4] {
            let start = (1 << 52) / edge / step * step + 1;
            let below = (1..1 << 12).map(|k| start - k * step).find(|q| is_prime(*q)).unwrap();
            let above = (1..1 << 12).map(|k| start + k * step).find(|q| is_prime(*q)).unwrap();
            for q in [below, above] {
                let alternating: Vec<_> = (0..n).map(|i| if i % 2 == 0 { q - 1 } else { 0 }).collect();
                for input in [vec![q - 1; n as usize], alternating, random(q, n as usize, edge)] {
                    assert_backends_agree(q, &input);
                }
            }
        }
    }
}

/// That both transforms of `input` are the same on every backend.
fn assert_backends_agree(q: u64, input: &[u64]) {
    let transforms = backends(q).map(|modulus| {
        let ntt = Ntt::new(&modulus, input.len()).unwrap();
        let (mut forward, mut inverse) = (input.to_vec(), input.to_vec());
        ntt.forward(&mut forward);
        ntt.inverse(&mut inverse);
        (forward, inverse)
    });
    let transforms: Vec<_> = transforms.collect();
    assert!(transforms.iter().all(|pair| *pair == transforms[0]), "q = {q}, n = {}", input.len());
}
