//! One layer in integers: ciphertexts modulo `q`, masked phases modulo `2^w`, the check's masks and equations. What transfers and circuits compute is
//! computed in the clear: labels commit the client to its bits, and nothing else is left of them here.
//!
//! The degree is small and the key's security nil: what is tested is the algebra, and which guesses pass.

use lanner_primitives::Prg;
use rand_core::Rng;

/// The ciphertexts' modulus, a prime.
pub const Q: u64 = (1 << 61) - 1;

/// What the parties agree on.
#[derive(Clone)]
pub struct Model {
    pub degree: usize,
    /// The prime of shares.
    pub p: u64,
    /// Bits of a masked phase.
    pub w: u32,
    /// Bits of the server's masks below those that are sent.
    pub finer: u32,
    /// The masks V, and the side of their box: a multiple of `p`.
    pub masks: usize,
    pub side: u64,
    /// How the masks are joined.
    pub joins: Joins,
    /// Coefficients that the masks leave out: none in the protocol.
    pub uncovered: Vec<usize>,
    /// The weights' polynomial, and the coefficients of the product that are outputs.
    pub weights: Vec<i64>,
    pub outputs: Vec<usize>,
    /// The coefficients that have the input.
    pub places: Vec<usize>,
}

/// How the values of masks become equations.
#[derive(Clone, Copy)]
pub enum Joins {
    /// So many equations, with random factors that the client hears when all is sent.
    Random(usize),
    /// An equation for each mask: the variant that the lemma warns of.
    Apart,
}

/// What a client changes, all else being honest.
#[derive(Clone, Default)]
pub struct Cheat {
    /// What is added to coefficients of `c0`, modulo `q`.
    pub halves: Vec<(usize, u64)>,
    /// What is added to its share of outputs before it commits to it.
    pub commitments: Vec<(usize, u64)>,
    /// Its key and errors are zero.
    pub no_key: bool,
}

/// The client's key, and what the server has of it: `b = -a s + e`.
pub struct Key {
    pub s: Vec<i64>,
    pub a: Vec<u64>,
    pub b: Vec<u64>,
}

/// How a prediction ends.
pub struct Outcome {
    pub passed: bool,
    /// Whether committed outputs and the server's shares add up to the layer's outputs on the committed input.
    pub right: bool,
}

impl Model {
    /// A layer whose every coefficient is an output.
    pub fn new(masks: usize, weights: Vec<i64>) -> Self {
        let degree = weights.len();
        Self {
            degree,
            p: 257,
            w: 40,
            finer: 16,
            masks,
            side: 257 << 16,
            joins: Joins::Random(3),
            uncovered: Vec::new(),
            outputs: (0..degree).collect(),
            places: (0..degree).collect(),
            weights,
        }
    }

    /// One prediction of the input `x`.
    pub fn predict(&self, x: &[u64], cheat: &Cheat, rng: &mut Prg) -> Outcome {
        let (n, p) = (self.degree, self.p);
        // Set-up: the client's key, and b* = -a s + e.
        let a = uniform(n, Q, rng);
        let [s, e] = [(); 2].map(|()| if cheat.no_key { vec![0; n] } else { small(n, rng) });
        let b = add(&negated(&product(&s, &a)), &lifted(&e));
        // The client's ciphertext of its slots.
        let mut slots = vec![0; n];
        self.places.iter().zip(x).for_each(|(place, value)| slots[*place] = value % p);
        let c1 = uniform(n, Q, rng);
        let scaled = self.scaled(&slots);
        let error = if cheat.no_key { vec![0; n] } else { small(n, rng) };
        let mut c0 = add(&add(&negated(&product(&s, &c1)), &lifted(&error)), &scaled);
        for (place, value) in &cheat.halves {
            c0[*place] = (c0[*place] + value) % Q;
        }

        // The server's secrets.
        let masks: Vec<Vec<i64>> = (0..self.masks).map(|_| self.mask(rng)).collect();
        let rows = match self.joins {
            Joins::Random(equations) => equations,
            Joins::Apart => self.masks,
        };
        let beta: Vec<Vec<u64>> = match self.joins {
            Joins::Random(_) => (0..rows).map(|_| uniform(self.masks, p, rng)).collect(),
            Joins::Apart => (0..rows).map(|k| (0..rows).map(|l| u64::from(k == l)).collect()).collect(),
        };
        let chi: Vec<Vec<u64>> = (0..rows).map(|_| uniform(self.outputs.len(), p, rng)).collect();
        // eta = L^T (v - M^T chi), at the input's places.
        let eta = |k: usize, place: usize| {
            let masks = masks.iter().zip(&beta[k]).map(|(mask, beta)| modulo(mask[n - 1 - place], p) * beta);
            let weights = self.outputs.iter().zip(&chi[k]);
            let weights = weights.map(|(o, chi)| modulo(self.weight(*o, place), p) * chi % p);
            (masks.map(|value| value % p).sum::<u64>() + p * n as u64 - weights.sum::<u64>() % p) % p
        };

        // The client's share of each output, and the server's.
        let ciphertext = [c0, c1];
        let own = Key { s, a, b };
        let answers = self.answers(&own, &[(&self.weights, &ciphertext)], &self.outputs, rng);
        let mut committed: Vec<u64> = answers.iter().map(|(share, _)| *share).collect();
        for (output, value) in &cheat.commitments {
            committed[*output] = (committed[*output] + value) % p;
        }
        let right = self.outputs.iter().zip(committed.iter().zip(&answers)).all(|(o, (own, (_, other)))| {
            let sum = (0..n).map(|j| modulo(self.weight(*o, j), p) * slots[j] % p).sum::<u64>();
            (own + other) % p == sum % p
        });
        let checks: Vec<(u64, u64)> =
            masks.iter().map(|mask| self.answers(&own, &[(mask, &ciphertext)], &[n - 1], rng)[0]).collect();

        let passed = (0..rows).all(|k| {
            // What both add up by transfers: chi c + eta x.
            let outputs = chi[k].iter().zip(&committed).map(|(chi, c)| chi * c % p).sum::<u64>();
            let inputs = self.places.iter().map(|place| eta(k, *place) * slots[*place] % p).sum::<u64>();
            let told = beta[k].iter().zip(&checks).map(|(beta, (own, _))| beta * own % p).sum::<u64>();
            let d = (outputs + inputs + p * self.masks as u64 - told) % p;
            // K is what the server added to M slots.
            let added = chi[k].iter().zip(&answers).map(|(chi, (_, share))| chi * ((p - share) % p) % p);
            let shares = beta[k].iter().zip(&checks).map(|(beta, (_, share))| beta * share % p).sum::<u64>();
            d == (added.sum::<u64>() + shares) % p
        });
        Outcome { passed, right }
    }

    /// The phases of a sum of products at some places, masked: the client's roundings and the server's shares.
    pub fn answers(
        &self,
        key: &Key,
        terms: &[(&[i64], &[Vec<u64>; 2])],
        places: &[usize],
        rng: &mut Prg,
    ) -> Vec<(u64, u64)> {
        let n = self.degree;
        let u = small(n, rng);
        let mut half = |half: usize, zero: &[u64]| {
            let hidden = add(&product(&u, zero), &lifted(&small(n, rng)));
            terms.iter().fold(hidden, |sum, (factor, halves)| add(&sum, &product(factor, &halves[half])))
        };
        let [first, second] = [half(0, &key.b), half(1, &key.a)];
        let sent: Vec<u64> =
            second.iter().map(|c| divided(u128::from(*c) << self.w, Q.into()) % (1 << self.w)).collect();
        let decrypted = product_modulo(&key.s, &sent, 1 << self.w);
        let answer = |place: &usize| {
            let mask = u128::from(rng.next_u64()) % (1 << (self.w + self.finer));
            let value = (u128::from(first[*place]) << (self.w + self.finer)) + mask * u128::from(Q);
            let sent = divided_wide(value, u128::from(Q) << self.finer) % (1 << self.w);
            let phase = (sent + decrypted[*place]) % (1 << self.w);
            let own = divided(u128::from(phase) * u128::from(self.p), 1 << self.w) % self.p;
            let other = divided(mask * u128::from(self.p), 1 << (self.w + self.finer)) % self.p;
            (own, (self.p - other) % self.p)
        };
        places.iter().map(answer).collect()
    }

    /// `round(q m / p)` of each message.
    pub fn scaled(&self, slots: &[u64]) -> Vec<u64> {
        slots.iter().map(|m| divided(u128::from(*m) * u128::from(Q), self.p.into())).collect()
    }

    /// The integer that a coefficient of the input is multiplied by for a coefficient of the product.
    pub fn weight(&self, output: usize, place: usize) -> i64 {
        if place <= output {
            self.weights[output - place]
        } else {
            -self.weights[self.degree + output - place]
        }
    }

    pub fn mask(&self, rng: &mut Prg) -> Vec<i64> {
        let coefficient = |_| (rng.next_u64() % self.side) as i64 - (self.side / 2) as i64;
        let mut mask: Vec<i64> = (0..self.degree).map(coefficient).collect();
        self.uncovered.iter().for_each(|place| mask[self.degree - 1 - place] = 0);
        mask
    }
}

/// `value / by`, to the nearest, halves up.
fn divided(value: u128, by: u128) -> u64 {
    divided_wide(value, by)
}

fn divided_wide(value: u128, by: u128) -> u64 {
    ((value + by / 2) / by) as u64
}

pub fn modulo(value: i64, p: u64) -> u64 {
    value.rem_euclid(p as i64) as u64
}

pub fn uniform(count: usize, below: u64, rng: &mut Prg) -> Vec<u64> {
    (0..count).map(|_| ((u128::from(rng.next_u64()) * u128::from(below)) >> 64) as u64).collect()
}

/// Keys and errors: uniform in -1, 0, 1.
pub fn small(count: usize, rng: &mut Prg) -> Vec<i64> {
    uniform(count, 3, rng).iter().map(|value| *value as i64 - 1).collect()
}

pub fn lifted(values: &[i64]) -> Vec<u64> {
    values.iter().map(|value| modulo(*value, Q)).collect()
}

pub fn negated(values: &[u64]) -> Vec<u64> {
    values.iter().map(|value| (Q - value) % Q).collect()
}

pub fn add(a: &[u64], b: &[u64]) -> Vec<u64> {
    a.iter().zip(b).map(|(a, b)| (a + b) % Q).collect()
}

/// Modulo `X^n + 1` and `q`.
pub fn product(factor: &[i64], c: &[u64]) -> Vec<u64> {
    product_modulo(factor, c, Q)
}

fn product_modulo(factor: &[i64], c: &[u64], modulus: u64) -> Vec<u64> {
    let n = c.len();
    let mut out = vec![0_i128; n];
    for (i, factor) in factor.iter().enumerate().filter(|(_, factor)| **factor != 0) {
        for (j, c) in c.iter().enumerate() {
            let term = i128::from(*factor) * i128::from(*c) % i128::from(modulus);
            if i + j < n {
                out[i + j] += term;
            } else {
                out[i + j - n] -= term;
            }
        }
    }
    out.iter().map(|value| value.rem_euclid(i128::from(modulus)) as u64).collect()
}
