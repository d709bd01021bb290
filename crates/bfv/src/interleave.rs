//! Several ciphertexts of which few coefficients are wanted, as one with all of these: ring packing after
//! [CDKS20](https://eprint.iacr.org/2020/015), section 3.
//!
//! Of each of `p` ciphertexts, `p` a power of two, the coefficients at `r`, `r + p`, `r + 2p`, ... are wanted. In the result those of ciphertext `k`
//! are at `k`, `k + p`, `k + 2p`, ...:
//!
//! ```text
//! x_k       = X^-r p^-1 (ciphertext k)                                                at multiples of p
//! pack(x)   = x_0                                                                     for one
//! pack(x)   = (a + X^s b) + phi_s(a - X^s b), a = pack(x_0, x_2, ...), b = pack(x_1, x_3, ...)
//! ```
//!
//! with `s` the distance of neighbours in `x`, 1 at the end, and `phi_s` the automorphism `X -> X^(N/s + 1)`, which takes `X^(i s)` to itself for
//! even `i` and to its negative for odd ones, and a power of `X` that is no multiple of `s` to another such. So what is wanted of both is doubled, what
//! lies at the others of these places falls out, and `p` doublings undo the factor `p^-1` modulo `q`, exactly. Coefficients that nobody wants hold
//! anything.
//!
//! Each step of the second line is a key switching with noise of its own. Where coefficients are wanted, later steps double it as they double the message, and mix it with
//! nothing, so [`Interleaving::noise`] counts a step of depth `j` with `2^j`. First halves alone need no key ([`Interleaving::halves`]).

use lanner_ring::{Eval, EvalPermutation, GaloisElement, Poly};

use crate::halves::C0;
use crate::{BfvError, Ciphertext, EvaluationKeys, Evaluator, NoiseBound, Parameters};

/// The packing of up to `p` ciphertexts, prepared.
#[derive(Clone)]
pub struct Interleaving {
    evaluator: Evaluator,
    count: usize,
    /// `X^-r p^-1`.
    entry: Poly<Eval>,
    /// For each distance `s = 1, 2, 4, ...` below `p`.
    levels: Vec<Level>,
}

#[derive(Clone)]
struct Level {
    element: GaloisElement,
    permutation: EvalPermutation,
    /// `X^s`.
    shift: Poly<Eval>,
}

/// What is packed: whole ciphertexts, or first halves.
trait Part: Sized {
    fn scale(&mut self, factor: &Poly<Eval>);
    /// `(self + X^s other) + phi(self - X^s other)`; the other is zero if there is none.
    fn join(self, other: Option<Self>, level: &Level, with: &impl Switch<Self>) -> Result<Self, BfvError>;
}

/// What applies an automorphism.
trait Switch<T> {
    fn switch(&self, part: &T, level: &Level) -> Result<T, BfvError>;
}

/// By keys.
struct Keyed<'a>(&'a Evaluator, &'a EvaluationKeys);

/// Of first halves, which takes none.
struct Keyless;

impl Interleaving {
    /// The packing of up to `count` ciphertexts, of each of which the coefficients are wanted that are `first` modulo `count`.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] unless `count` is a power of two from 2 to `N` and `first` is below it.
    pub fn new(parameters: &Parameters, count: usize, first: usize) -> Result<Self, BfvError> {
        let degree = parameters.degree();
        if !count.is_power_of_two() || count < 2 || count > degree || first >= count {
            return Err(BfvError::Mismatch { what: "the number of ciphertexts that are packed" });
        }
        let basis = parameters.basis(parameters.limbs());
        let power = |exponent: usize| {
            let mut coefficients = vec![0; degree];
            coefficients[exponent % degree] = if exponent < degree { 1 } else { -1 };
            Ok::<_, BfvError>(Poly::from_signed(&basis, &coefficients)?.into_eval())
        };
        let mut entry = power((2 * degree - first) % (2 * degree))?;
        for (limb, q) in entry.limbs_mut().zip(parameters.moduli()) {
            q.mul_scalar_slice(limb, q.shoup(q.inverse(q.reduce(count as u64))));
        }
        let level = |(s, element): (usize, GaloisElement)| {
            Ok(Level { element, permutation: EvalPermutation::new(element), shift: power(s)? })
        };
        let distances = (0..).map(|level| 1 << level);
        let elements = Self::elements(degree, count)?;
        let levels = distances.zip(elements).map(level).collect::<Result<_, BfvError>>()?;
        Ok(Self { evaluator: Evaluator::new(parameters), count, entry, levels })
    }

    /// The automorphisms whose keys [`Self::ciphertexts`] needs.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] if there is no such automorphism of the degree.
    pub fn elements(degree: usize, count: usize) -> Result<Vec<GaloisElement>, BfvError> {
        let distances = std::iter::successors(Some(1), |s| Some(2 * s)).take_while(|s| *s < count);
        distances.map(|s| Ok(GaloisElement::new(degree / s + 1, degree)?)).collect()
    }

    /// How many key switchings `parts` ciphertexts take.
    #[must_use]
    pub fn switches(count: usize, parts: usize) -> usize {
        let distances = std::iter::successors(Some(1), |s| Some(2 * s)).take_while(|s| *s < count);
        distances.map(|s| s.min(parts)).sum()
    }

    /// The noise of wanted coefficients, by a bound on that of all that are packed.
    #[must_use]
    pub fn noise(parameters: &Parameters, count: usize, noise: NoiseBound) -> NoiseBound {
        // Steps of depth 0, 1, ...: 1 + 2 + ... + count / 2, as bounds of deviations add up.
        noise.plus(NoiseBound::NONE.switched_key(parameters).times(count - 1))
    }

    /// Packs ciphertexts with all limbs; those that lack of the count are zero.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] for none, for more than the count, or for ciphertexts of other parameters; those of [`Evaluator::apply`].
    pub fn ciphertexts(&self, parts: Vec<Ciphertext>, keys: &EvaluationKeys) -> Result<Ciphertext, BfvError> {
        let bound = largest(parts.iter().map(Ciphertext::noise));
        let mut packed = self.pack(parts, &Keyed(&self.evaluator, keys))?;
        packed.noise = Self::noise(&self.evaluator.parameters, self.count, bound);
        Ok(packed)
    }

    /// Packs first halves of ciphertexts, without what the key switchings of [`Self::ciphertexts`] add to them.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] for none, for more than the count, or for halves of other parameters.
    pub fn halves(&self, parts: Vec<C0>) -> Result<C0, BfvError> {
        let bound = largest(parts.iter().map(|part| part.noise));
        let mut packed = self.pack(parts, &Keyless)?;
        packed.noise = bound;
        Ok(packed)
    }

    fn pack<T: Part>(&self, mut parts: Vec<T>, with: &impl Switch<T>) -> Result<T, BfvError> {
        if parts.len() > self.count {
            return Err(BfvError::Length { expected: self.count, got: parts.len() });
        }
        for part in &mut parts {
            part.scale(&self.entry);
        }
        let packed = join_all(parts, &self.levels, with)?;
        packed.ok_or(BfvError::Mismatch { what: "the number of ciphertexts that are packed" })
    }
}

/// `pack(x)`, of neighbours at the distance of the first level; none of nothing.
fn join_all<T: Part>(parts: Vec<T>, levels: &[Level], with: &impl Switch<T>) -> Result<Option<T>, BfvError> {
    let Some((level, levels)) = levels.split_first() else { return Ok(parts.into_iter().next()) };
    let (mut even, mut odd) = (Vec::new(), Vec::new());
    for (number, part) in parts.into_iter().enumerate() {
        if number % 2 == 0 { &mut even } else { &mut odd }.push(part);
    }
    let Some(a) = join_all(even, levels, with)? else { return Ok(None) };
    let b = join_all(odd, levels, with)?;
    a.join(b, level, with).map(Some)
}

fn largest(bounds: impl Iterator<Item = NoiseBound>) -> NoiseBound {
    bounds.fold(NoiseBound::NONE, |a, b| if a.deviation() < b.deviation() { b } else { a })
}

impl Part for Ciphertext {
    fn scale(&mut self, factor: &Poly<Eval>) {
        self.c0.mul_assign(factor);
        self.c1.mul_assign(factor);
    }

    fn join(
        mut self,
        other: Option<Self>,
        level: &Level,
        with: &impl Switch<Self>,
    ) -> Result<Self, BfvError> {
        let mut difference = self.clone();
        if let Some(mut other) = other {
            other.scale(&level.shift);
            difference.c0.sub_assign(&other.c0);
            difference.c1.sub_assign(&other.c1);
            self.c0.add_assign(&other.c0);
            self.c1.add_assign(&other.c1);
        }
        let switched = with.switch(&difference, level)?;
        self.c0.add_assign(&switched.c0);
        self.c1.add_assign(&switched.c1);
        Ok(self)
    }
}

impl Part for C0 {
    fn scale(&mut self, factor: &Poly<Eval>) {
        self.c0.mul_assign(factor);
    }

    fn join(
        mut self,
        other: Option<Self>,
        level: &Level,
        with: &impl Switch<Self>,
    ) -> Result<Self, BfvError> {
        let mut difference = self.clone();
        if let Some(mut other) = other {
            other.scale(&level.shift);
            difference.c0.sub_assign(&other.c0);
            self.c0.add_assign(&other.c0);
        }
        self.c0.add_assign(&with.switch(&difference, level)?.c0);
        Ok(self)
    }
}

impl Switch<Ciphertext> for Keyed<'_> {
    fn switch(&self, part: &Ciphertext, level: &Level) -> Result<Ciphertext, BfvError> {
        self.0.apply(part, level.element, self.1)
    }
}

impl Switch<C0> for Keyless {
    fn switch(&self, part: &C0, level: &Level) -> Result<C0, BfvError> {
        Ok(C0 { c0: part.c0.automorphism(&level.permutation), noise: part.noise })
    }
}
