//! What both parties know of a product: layout, ciphertexts, and the modulus in which answers are sent.

use std::collections::BTreeMap;

use lanner_bfv::function_privacy::{Distance, PhaseModulus};
use lanner_bfv::halves::{C1, InputModulus};
use lanner_bfv::{CoefficientEncoder, NoiseBound, ParameterSet, Parameters};
use lanner_primitives::{Ring, Share};
use lanner_step::{Answers, Convolution, Cost, OfflineCost, ProtocolError, Result, Sets};

use crate::cheetah::{AnswerForm, InputForm, Packing, Place, Stacked};

/// Pairs of matrices `[rows, inner]` and `[inner, columns]`, one pair after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Pairs.
    pub groups: usize,
    /// Rows of the left ones.
    pub rows: usize,
    /// Columns of the left ones and rows of the right ones.
    pub inner: usize,
    /// Columns of the right ones.
    pub columns: usize,
}

/// All that both parties know of a product.
#[derive(Clone, Debug)]
pub struct Scheme {
    pub(super) shape: Shape,
    pub(super) packing: Packing,
    pub(super) parameters: Parameters,
    pub(super) modulus: PhaseModulus,
    /// Of left and of right matrices.
    pub(super) inputs: [InputForm; 2],
    pub(super) bits: u32,
    pub(super) guard: u32,
    pub(super) noise: NoiseBound,
    /// A bound on the 2-norm of the server's shares that one answer is made of.
    pub(super) norm: f64,
}

/// Where the elements of one pair of matrices lie.
pub(super) struct Places {
    /// Of each ciphertext of the left and of the right matrix.
    pub(super) inputs: [Vec<Vec<Place>>; 2],
    /// Of each answer.
    pub(super) outputs: Vec<Vec<Place>>,
}

impl Shape {
    /// Elements of the left matrix of a pair, and of the right one.
    pub(super) const fn sides(self) -> [usize; 2] {
        [self.rows * self.inner, self.inner * self.columns]
    }

    /// Elements of a pair's product.
    pub(super) const fn product(self) -> usize {
        self.rows * self.columns
    }

    /// Elements of all left matrices, all right ones and all products.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if there are none, or more than fit a number.
    pub fn elements(self) -> Result<[usize; 3]> {
        let Self { groups, rows, inner, columns } = self;
        let count = |sides: [usize; 3]| {
            let count = sides.into_iter().try_fold(1_usize, usize::checked_mul);
            count.filter(|count| *count > 0).ok_or(ProtocolError::Parameters("the sides of matrices"))
        };
        Ok([count([groups, rows, inner])?, count([groups, inner, columns])?, count([groups, rows, columns])?])
    }

    /// The layer of kernel 1 that a pair's product is: rows are pixels, the right matrix's columns are filters.
    fn layer(self) -> Result<Stacked> {
        let base = Convolution::fully_connected(self.inner, self.columns);
        Stacked::try_from(&Convolution { image: [self.rows, 1], ..base })
    }
}

impl Scheme {
    /// The parameter sets of products, the smallest first.
    const SETS: [ParameterSet; 4] = [ParameterSet::C1, ParameterSet::C2, ParameterSet::C3, ParameterSet::A2];

    /// The set in which a product sends the fewest bytes, with the scheme there.
    ///
    /// # Errors
    /// As [`Self::new`], where it fails in every set.
    pub fn cheapest(shape: Shape, bits: u32, guard: u32, sets: &Sets) -> Result<(ParameterSet, Self)> {
        let scheme = |set: ParameterSet| Ok((set, Self::new(shape, bits, guard, sets.get(set)?)?));
        let made = Self::SETS.into_iter().map(scheme);
        let (made, refused): (Vec<_>, Vec<_>) = made.partition(Result::is_ok);
        let cheapest = made.into_iter().flatten().min_by_key(|(_, scheme)| scheme.bytes());
        let last = refused.into_iter().filter_map(Result::err).last();
        cheapest.ok_or_else(|| last.unwrap_or(ProtocolError::Parameters("parameter sets")))
    }

    /// A product over `Z_2^bits` whose shares have `guard` bits below theirs.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if the shape is none, or its noise leaves too little room.
    pub fn new(shape: Shape, bits: u32, guard: u32, parameters: &Parameters) -> Result<Self> {
        shape.elements()?;
        let shares = bits.checked_add(guard).filter(|_| bits > 0 && guard > 0);
        if shares.is_none_or(|shares| shares > MOST_BITS) {
            return Err(ProtocolError::Parameters("bits of a product of matrices"));
        }
        let search = Search { parameters, bits, guard };
        let mut widths = BTreeMap::new();
        let mut cheapest = |packing: &Packing| {
            let terms = terms(packing);
            let widths = widths.entry(terms).or_insert_with(|| search.widths(terms));
            widths.iter().map(|widths| (search.bits_of(packing, *widths), *widths)).min()
        };
        let packing = Packing::cheapest(&shape.layer()?, parameters.degree(), AnswerForm::Apart, |packing| {
            cheapest(packing).map(|(cost, _)| cost)
        });
        let narrow = || ProtocolError::Parameters("the noise of a product of matrices");
        let packing = packing.map_err(|_| narrow())?;
        let (_, [input_bits, ..]) = cheapest(&packing).ok_or_else(narrow)?;
        let inputs = [packing.read(), [parameters.degree(), 0]].map(|sent| search.form(input_bits, sent));
        let [left, right] = inputs;
        let inputs = [left?, right?];
        let norm = search.norm(terms(&packing));
        let noise = inputs[0].noise().multiplied_by_norm(norm);
        let modulus = PhaseModulus::guarded(parameters, bits, guard, packing.most_outputs(), noise)?;
        let parameters = parameters.clone();
        Ok(Self { shape, packing, parameters, modulus, inputs, bits, guard, noise, norm })
    }

    /// The ring of both factors' shares.
    #[must_use]
    pub const fn input_ring(&self) -> Ring {
        Ring::Pow2(self.bits)
    }

    /// The ring of the products' shares.
    #[must_use]
    pub const fn ring(&self) -> Ring {
        Ring::Pow2(self.bits + self.guard)
    }

    /// The factors that `shares` are.
    pub(super) fn factors<'s>(&self, shares: &[&'s Share]) -> Result<[&'s Share; 2]> {
        let &[left, right] = shares else {
            return Err(ProtocolError::WrongInput("there must be two factors"));
        };
        let [lefts, rights, _] = self.shape.elements()?;
        for (share, elements) in [(left, lefts), (right, rights)] {
            ProtocolError::check_share(
                "a factor of a product of matrices",
                share,
                self.input_ring(),
                elements,
            )?;
        }
        Ok([left, right])
    }

    /// Ciphertexts of a pair's left and right matrix, and answers.
    #[must_use]
    pub fn ciphertexts(&self) -> [usize; 3] {
        let [left, outputs] = self.packing.ciphertexts();
        [left, self.packing.factors(), outputs]
    }

    /// Products of a ciphertext by a polynomial, of all pairs.
    #[must_use]
    pub fn products(&self) -> usize {
        2 * self.packing.products() * self.shape.groups
    }

    /// Where the elements of a pair lie, counted from the pair's first.
    pub(super) fn places(&self) -> Places {
        let Shape { rows, inner, columns, .. } = self.shape;
        let moved = |places: Vec<Place>, of: &dyn Fn(usize) -> usize| -> Vec<Place> {
            places.into_iter().map(|(at, element)| (at, of(element))).collect()
        };
        // A layer has one channel after the other, with its rows, and one filter after the other, with its channels.
        let left = |element: usize| element % rows * inner + element / rows;
        let right = |element: usize| element % inner * columns + element / inner;
        let product = |element: usize| element % rows * columns + element / rows;
        let [in_blocks, out_blocks] = self.packing.per_bundle();
        let filters = (0..out_blocks)
            .flat_map(|output| (0..in_blocks).map(move |input| (input, output)))
            .map(|(input, output)| moved(self.packing.filter(0, input, output), &right));
        Places {
            inputs: [
                self.packing.inputs().into_iter().map(|places| moved(places, &left)).collect(),
                filters.collect(),
            ],
            outputs: self.packing.outputs().into_iter().map(|places| moved(places, &product)).collect(),
        }
    }

    /// The ciphertexts that the client receives: none tells anything, whatever their number.
    pub(super) fn answers(&self) -> Answers {
        let [_, _, outputs] = self.ciphertexts();
        Answers { ciphertexts: (self.shape.groups * outputs) as u64, each: Distance::NONE }
    }

    pub(super) fn offline_cost(&self) -> OfflineCost {
        let [left, right, _] = self.ciphertexts();
        let seeds = self.shape.groups * (left + right) * C1::ENCODED_LEN;
        OfflineCost { request: Cost::NONE.client(seeds), answer: Cost::NONE }
    }

    pub(super) fn online_cost(&self) -> Cost {
        let [left, right, _] = self.ciphertexts();
        let (second, mut cost) = (self.modulus.second_half_len(), Cost::NONE);
        for _ in 0..self.shape.groups {
            for (form, count) in self.inputs.iter().zip([left, right]) {
                let length = form.encoded_len(&self.parameters);
                cost = (0..count).fold(cost, |cost, _| cost.client(length));
            }
        }
        let replies = self.packing.outputs();
        for _ in 0..self.shape.groups {
            for wanted in &replies {
                cost = cost.server(second).server(self.modulus.c0_len(wanted.len()));
            }
        }
        cost
    }

    /// Bytes of the online phase, without frames.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let [left, right, outputs] = self.ciphertexts();
        let [of_left, of_right] = [0, 1].map(|side| self.inputs[side].encoded_len(&self.parameters));
        let firsts = outputs * self.modulus.c0_len(self.packing.most_outputs());
        let answers = outputs * self.modulus.second_half_len() + firsts;
        self.shape.groups * (left * of_left + right * of_right + answers)
    }
}

/// Coefficients of the server's shares that one answer is made of: the filters' and the input's.
fn terms(packing: &Packing) -> usize {
    let inner = packing.shape().in_channels;
    packing.taps() + inner * packing.rows()
}

/// The search for layout and widths together.
struct Search<'p> {
    parameters: &'p Parameters,
    bits: u32,
    guard: u32,
}

impl Search<'_> {
    /// The largest 2-norm of a given number of centred elements.
    fn norm(&self, terms: usize) -> f64 {
        f64::from(self.bits - 1).exp2() * (terms as f64).sqrt()
    }

    /// The bits of a coefficient of an input, of a second half and of an output that go together, for answers of so many terms.
    fn widths(&self, terms: usize) -> Vec<[u32; 3]> {
        let (norm, count) = (self.norm(terms), self.parameters.degree() / 2);
        let whole = self.parameters.log2_modulus(self.parameters.limbs()).ceil() as u32;
        let widths = |input_bits: u32| {
            let input = if input_bits > InputModulus::MOST_BITS {
                NoiseBound::fresh().plus_plaintext()
            } else {
                NoiseBound::fresh().plus(NoiseBound::rounding_to(self.parameters, input_bits))
            };
            let noise = input.multiplied_by_norm(norm);
            let shares = self.bits + self.guard;
            let [second, first] = PhaseModulus::guarded_widths(self.parameters, shares, count, noise)?;
            Some([input_bits, second, first])
        };
        let rounded = self.bits..=InputModulus::MOST_BITS.min(whole);
        // The fewer bits, the more noise. In whole, an input has all of them.
        let mut found: Vec<_> = rounded.rev().map_while(widths).collect();
        found.extend(widths(whole).filter(|_| whole > InputModulus::MOST_BITS));
        found
    }

    fn bits_of(&self, packing: &Packing, [input, second, first]: [u32; 3]) -> usize {
        let degree = self.parameters.degree();
        let ([inputs, outputs], filters) = (packing.ciphertexts(), packing.factors());
        let read = if input > InputModulus::MOST_BITS {
            degree
        } else {
            packing.read().iter().sum::<usize>().min(degree)
        };
        let sent = (inputs * read + filters * degree) * input as usize;
        sent + outputs * (degree * second as usize + packing.most_outputs() * first as usize)
    }

    fn form(&self, input_bits: u32, sent: [usize; 2]) -> Result<InputForm> {
        Ok(if input_bits > InputModulus::MOST_BITS {
            InputForm::Whole(CoefficientEncoder::new(self.parameters, 1 << self.bits)?)
        } else {
            InputForm::Rounded(InputModulus::new(self.parameters, self.bits, input_bits, sent)?)
        })
    }
}

/// The most bits of a share of a product, its guard included.
const MOST_BITS: u32 = 45;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// For every layout that the search takes: the noise bound counts all of the server's elements that an answer is made of, and what an answer reads
    /// of the left matrix is sent.
    #[test]
    fn an_answer_reads_what_is_sent_and_no_more_elements_than_its_noise_is_bounded_for() {
        let sets = Sets::new().unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for sides in [
            [1, 1, 1],
            [1, 300, 1],
            [1, 5000, 1],
            [3, 1, 5],
            [17, 33, 29],
            [40, 64, 90],
            [300, 1, 2],
            [1, 65, 65],
        ] {
            let [rows, inner, columns] = sides;
            for (bits, guard) in [(4, 1), (16, 4), (24, 1), (27, 2), (36, 1), (41, 4)] {
                let shape = Shape { groups: 1, rows, inner, columns };
                let (set, scheme) = Scheme::cheapest(shape, bits, guard, &sets).unwrap();
                seen.insert(set);
                check(&scheme);
            }
        }
        assert!(seen.len() > 1);
    }

    fn check(scheme: &Scheme) {
        let Places { inputs: [left, right], outputs } = scheme.places();
        let ([in_blocks, out_blocks], degree) = (scheme.packing.per_bundle(), scheme.parameters.degree());
        let [head, tail] = scheme.packing.read();
        let largest = f64::from(scheme.bits - 1).exp2();
        for (answer, wanted) in outputs.iter().enumerate() {
            let (tile, block) = (answer / out_blocks, answer % out_blocks);
            let of =
                |all: &[Vec<Place>], first: usize| all[first * in_blocks..(first + 1) * in_blocks].concat();
            let (pixels, filters) = (of(&left, tile), of(&right, block));
            let norm = largest * ((pixels.len() + filters.len()) as f64).sqrt();
            assert!(norm <= scheme.norm * (1.0 + 1e-9), "{:?}: {norm} of {}", scheme.shape, scheme.norm);
            // The first answer and the last ones have the layouts of all.
            if answer == 0 || answer + 1 == outputs.len() {
                for (at, (place, _)) in
                    wanted.iter().flat_map(|(at, _)| filters.iter().map(move |filter| (at, filter)))
                {
                    let from = (at + degree - place) % degree;
                    assert!(from < head || from + tail >= degree, "{:?}: {from}", scheme.shape);
                }
            }
        }
    }
}
