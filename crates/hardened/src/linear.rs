//! A linear layer: on ciphertexts, and modulo the prime in the clear with its transpose.

use lanner_bfv::function_privacy::PhaseModulus;
use lanner_bfv::halves::C0;
use lanner_bfv::{Ciphertext, CoefficientFactor, GaloisElement, NoiseBound, Parameters};
use lanner_coefficient::cheetah::{AnswerForm, Packing, Place, Stacked};
use lanner_primitives::parallel;
use lanner_ring::{Coeff, Eval, EvalPermutation, Modulus, Poly, RnsBasis};
use lanner_step::{Convolution, ProtocolError, Result};
use zeroize::Zeroizing;

/// What both parties know of a layer.
pub(crate) struct Linear {
    packing: Packing,
    pub(crate) inputs: Vec<Vec<Place>>,
    pub(crate) outputs: Vec<Vec<Place>>,
    /// The coefficients of each answer that are sent.
    pub(crate) wanted: Vec<Vec<usize>>,
    pub(crate) modulus: PhaseModulus,
    pub(crate) noise: NoiseBound,
    norm: f64,
    elements: [usize; 2],
}

/// A layer's weights, ready to multiply.
pub(crate) struct Weights {
    /// Bundle by bundle, answer by answer, input by input.
    filters: Vec<Filter>,
    /// For each output element, modulo the prime.
    pub(crate) bias: Zeroizing<Vec<u64>>,
}

struct Filter {
    factor: CoefficientFactor,
    /// Modulo the prime, and its transpose: the coefficients of `f(1 / X)`.
    plain: Poly<Eval>,
    transposed: Poly<Eval>,
}

/// Vectors modulo the prime, for each of some ciphertexts.
pub(crate) type Residues = Zeroizing<Vec<Vec<u64>>>;

impl Linear {
    pub(crate) fn new(shape: &Convolution, parameters: &Parameters, prime: u64) -> Result<Self> {
        let stacked = Stacked::try_from(shape)?;
        // Second halves of answers take most of the bytes, and inputs not much less.
        let cost = |packing: &Packing| {
            let [inputs, outputs] = packing.ciphertexts();
            Some((3 * inputs + 2 * outputs) * 1024 + packing.products())
        };
        let packing = Packing::cheapest(&stacked, parameters.degree(), AnswerForm::Apart, cost)?;
        let norm = f64::from(MOST_WEIGHT) * (packing.taps() as f64).sqrt();
        let noise = NoiseBound::fresh().plus_plaintext().multiplied_by_norm(norm);
        let modulus = PhaseModulus::prime(parameters, prime, PHASE_BITS, noise)?;
        let outputs = packing.outputs();
        let wanted = outputs.iter().map(|places| places.iter().map(|(place, _)| *place).collect()).collect();
        let (inputs, elements) = (packing.inputs(), packing.elements());
        Ok(Self { packing, inputs, outputs, wanted, modulus, noise, norm, elements })
    }

    /// Elements of the input and of the output.
    pub(crate) const fn elements(&self) -> [usize; 2] {
        self.elements
    }

    /// Polynomials of weights.
    pub(crate) fn factors(&self) -> usize {
        self.packing.factors()
    }

    /// A bound on the square of the norm of the layer, from the 2-norm of all coefficients of its input ciphertexts to the 1-norm of its outputs, in units of the
    /// largest weight's square.
    ///
    /// A coefficient meets at most as many weights as a filter has taps, and as many as there are outputs; together they meet one for each tap of each output.
    pub(crate) fn squared_norm(&self) -> f64 {
        let [inputs, blocks] = self.packing.per_bundle();
        let spreads = self.outputs.len() / blocks;
        let mut sum = 0.0;
        for spread in 0..spreads {
            let bundle = spread % self.packing.bundles();
            for input in 0..inputs {
                let (mut most, mut all) = (0.0, 0.0);
                for block in 0..blocks {
                    let taps = self.packing.filter(bundle, input, block).len();
                    let outputs = self.outputs[spread * blocks + block].len();
                    most += taps.min(outputs) as f64;
                    all += taps as f64 * outputs as f64;
                }
                sum += most * all;
            }
        }
        sum
    }

    /// A share's elements at all their coefficients.
    pub(crate) fn scatter(&self, share: &[u64]) -> Residues {
        let degree = self.packing.degree();
        let spread = |places: &Vec<Place>| {
            let mut coefficients = vec![0; degree];
            for (place, element) in places {
                coefficients[*place] = share[*element];
            }
            coefficients
        };
        Zeroizing::new(self.inputs.iter().map(spread).collect())
    }

    /// The transpose of [`Self::scatter`].
    pub(crate) fn gather(&self, p: &Modulus, coefficients: &[Vec<u64>]) -> Zeroizing<Vec<u64>> {
        let mut sums = Zeroizing::new(vec![0; self.elements[0]]);
        for (places, coefficients) in self.inputs.iter().zip(coefficients) {
            for (place, element) in places {
                sums[*element] = p.add(sums[*element], coefficients[*place]);
            }
        }
        sums
    }
}

impl Weights {
    /// Transforms weights and biases.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if they do not fit; [`ProtocolError::WrongModel`] for a weight of more than twelve bits.
    pub(crate) fn new(
        linear: &Linear,
        parameters: &Parameters,
        basis: &RnsBasis,
        weights: &[i64],
        bias: &[i64],
    ) -> Result<Self> {
        let packing = &linear.packing;
        ProtocolError::check_length("weights of a linear layer", packing.shape().weights(), weights.len())?;
        ProtocolError::check_length("biases of a linear layer", linear.elements[1], bias.len())?;
        if weights.iter().any(|weight| weight.unsigned_abs() > MOST_WEIGHT.into()) {
            return Err(ProtocolError::WrongModel("a weight has more than twelve bits"));
        }
        let degree = parameters.degree();
        let inverse = GaloisElement::new(2 * degree - 1, degree).map_err(lanner_bfv::BfvError::from)?;
        let inverse = EvalPermutation::new(inverse);
        let [inputs, blocks] = packing.per_bundle();
        let numbers = (0..packing.bundles()).flat_map(|bundle| {
            (0..blocks).flat_map(move |block| (0..inputs).map(move |input| (bundle, input, block)))
        });
        let filter = |(bundle, input, block)| {
            let mut coefficients = Zeroizing::new(vec![0; degree]);
            for (place, weight) in packing.filter(bundle, input, block) {
                coefficients[place] = weights[weight] as i32;
            }
            let plain =
                Poly::from_signed(basis, &coefficients).map_err(lanner_bfv::BfvError::from)?.into_eval();
            let transposed = plain.automorphism(&inverse);
            Ok(Filter { factor: CoefficientFactor::new(parameters, &coefficients)?, plain, transposed })
        };
        let filters = parallel::map(numbers, filter).into_iter().collect::<Result<_>>()?;
        let p = &basis.moduli()[0];
        let bias = Zeroizing::new(bias.iter().map(|bias| p.reduce_signed(*bias)).collect());
        Ok(Self { filters, bias })
    }

    /// The second halves of all answers.
    pub(crate) fn ahead(&self, linear: &Linear, inputs: &[Ciphertext]) -> Result<Vec<Ciphertext>> {
        let one = |(inputs, filters): (&[Ciphertext], &[Filter])| {
            let (inputs, factors) = (refs(inputs), factors(filters));
            Ok(Ciphertext::inner_product_ahead_of(&inputs, &factors, linear.norm)?)
        };
        parallel::map(self.answers(linear, inputs), one).into_iter().collect()
    }

    /// The first halves of all answers.
    pub(crate) fn apply(&self, linear: &Linear, inputs: &[C0]) -> Result<Vec<C0>> {
        let one = |(inputs, filters): (&[C0], &[Filter])| {
            Ok(C0::inner_product_of(&refs(inputs), &factors(filters), linear.norm)?)
        };
        parallel::map(self.answers(linear, inputs), one).into_iter().collect()
    }

    /// The outputs of inputs that are known, modulo the prime, without the bias.
    pub(crate) fn clear(
        &self,
        linear: &Linear,
        basis: &RnsBasis,
        coefficients: &[Vec<u64>],
    ) -> Result<Zeroizing<Vec<u64>>> {
        let inputs = transformed(basis, coefficients)?;
        let products = parallel::map(self.answers(linear, &inputs), |(inputs, filters)| {
            sum(basis, inputs.iter().zip(filters.iter().map(|filter| &filter.plain)))
        });
        let mut outputs = Zeroizing::new(vec![0; linear.elements[1]]);
        for (product, places) in products.iter().zip(&linear.outputs) {
            for (place, element) in places {
                outputs[*element] = product.limb(0)[*place];
            }
        }
        Ok(outputs)
    }

    /// The transpose of [`Self::clear`]: what multiplies each coefficient of the inputs, given what multiplies the outputs.
    pub(crate) fn transposed(&self, linear: &Linear, basis: &RnsBasis, outputs: &[u64]) -> Result<Residues> {
        let spread = |places: &Vec<Place>| {
            let mut coefficients = vec![0; basis.degree()];
            for (place, element) in places {
                coefficients[*place] = outputs[*element];
            }
            coefficients
        };
        let spread: Residues = Zeroizing::new(linear.outputs.iter().map(spread).collect());
        let answers = transformed(basis, &spread)?;
        let [inputs, blocks] = linear.packing.per_bundle();
        let bundles = linear.packing.bundles();
        let one = |number: usize| {
            let (spread, input) = (number / inputs, number % inputs);
            let first = (spread % bundles) * blocks * inputs;
            let filters = (0..blocks).map(|block| &self.filters[first + block * inputs + input].transposed);
            let product = sum(basis, answers[spread * blocks..(spread + 1) * blocks].iter().zip(filters));
            product.limb(0).to_vec()
        };
        Ok(Zeroizing::new(parallel::map(0..linear.inputs.len(), one)))
    }

    /// For each answer the inputs that it is made of, and their filters.
    fn answers<'a, T>(
        &'a self,
        linear: &Linear,
        inputs: &'a [T],
    ) -> impl Iterator<Item = (&'a [T], &'a [Filter])> + use<'a, T> {
        let [each, blocks] = linear.packing.per_bundle();
        let bundles = linear.packing.bundles();
        (0..linear.outputs.len()).map(move |number| {
            let (spread, block) = (number / blocks, number % blocks);
            let filters = ((spread % bundles) * blocks + block) * each;
            (&inputs[spread * each..(spread + 1) * each], &self.filters[filters..filters + each])
        })
    }
}

fn refs<T>(all: &[T]) -> Vec<&T> {
    all.iter().collect()
}

fn factors(filters: &[Filter]) -> Vec<&CoefficientFactor> {
    filters.iter().map(|filter| &filter.factor).collect()
}

fn transformed(basis: &RnsBasis, coefficients: &[Vec<u64>]) -> Result<Vec<Poly<Eval>>> {
    let one = |coefficients: &Vec<u64>| {
        let poly = Poly::<Coeff>::from_limbs(basis, coefficients).map_err(lanner_bfv::BfvError::from)?;
        Ok(poly.into_eval())
    };
    coefficients.iter().map(one).collect()
}

fn sum<'a>(basis: &RnsBasis, terms: impl Iterator<Item = (&'a Poly<Eval>, &'a Poly<Eval>)>) -> Poly<Coeff> {
    let mut sum = Poly::<Eval>::zero(basis);
    for (a, b) in terms {
        let mut product = a.clone();
        product.mul_assign(b);
        sum.add_assign(&product);
    }
    sum.into_coeff()
}

/// The largest weight.
pub const MOST_WEIGHT: u32 = 1 << 11;
/// `w`.
pub(crate) const PHASE_BITS: u32 = 87;
