//! The parameters of a layer: ciphertexts, and the modulus in which outputs are sent.

use std::collections::BTreeMap;

use lanner_bfv::function_privacy::PhaseModulus;
use lanner_bfv::halves::{C1, InputModulus};
use lanner_bfv::{CoefficientEncoder, EvaluationKeys, Interleaving, NoiseBound, ParameterSet, Parameters};
use lanner_primitives::{Ring, Share};
use lanner_step::{Answers, Cost, EvaluationNeeds, KeyUse, OfflineCost, ProtocolError, Result, Sets};
use serde::{Deserialize, Serialize};

use super::input::InputForm;
use super::packing::{AnswerForm, Packing};
use super::price::{self, Price, whole};
use super::stacked::Stacked;

/// How often the sum of both shares differs from the layer's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accuracy {
    /// But for a probability of `2^-64` for each ciphertext, never.
    Exact,
    /// By one at most, for one value in some hundreds. Which ones depends on weights and on noise that the client knows a part of, so no
    /// result may be made of such a sum.
    OffByOne,
    /// The layer's value `m` comes as `2^g m` or `2^g m + 1` modulo `2^(l+g)`, `g` being at least 1. Which of both depends on masks and noise,
    /// so the low `g` bits must be dropped, exactly, before a result is made of it: what is left is `m` and never off.
    Guarded(u32),
}

/// All that both parties know of a layer.
#[derive(Clone, Debug)]
pub struct Scheme {
    pub(super) packing: Packing,
    pub(super) parameters: Parameters,
    pub(super) modulus: PhaseModulus,
    pub(super) inputs: InputForm,
    pub(super) bits: u32,
    pub(super) guard: u32,
    pub(super) noise: NoiseBound,
    /// A bound on the 2-norm of the filters of one output ciphertext.
    pub(super) norm: f64,
    /// Roughly nanoseconds of a prediction.
    cost: usize,
}

impl Accuracy {
    /// Bits below a value's own that its shares have.
    #[must_use]
    pub const fn guard(self) -> u32 {
        match self {
            Self::Exact | Self::OffByOne => 0,
            Self::Guarded(bits) => bits,
        }
    }

    /// The parameter sets of its layers, the smallest first.
    const fn sets(self) -> &'static [ParameterSet] {
        match self {
            Self::Exact => &[ParameterSet::A1, ParameterSet::A2, ParameterSet::B],
            Self::OffByOne => &[ParameterSet::A0, ParameterSet::A1],
            Self::Guarded(_) => &[ParameterSet::C1, ParameterSet::C2, ParameterSet::C3, ParameterSet::A2],
        }
    }
}

impl Scheme {
    /// The cheapest parameter set for such a layer, with the scheme there.
    ///
    /// # Errors
    /// As [`Self::new`], where it fails in every set.
    pub fn cheapest(
        layer: &Stacked,
        bits: u32,
        accuracy: Accuracy,
        sets: &Sets,
    ) -> Result<(ParameterSet, Self)> {
        let scheme = |set: &ParameterSet| Ok((*set, Self::new(layer, bits, accuracy, sets.get(*set)?)?));
        let (made, refused): (Vec<_>, Vec<_>) = accuracy.sets().iter().map(scheme).partition(Result::is_ok);
        let cheapest = made.into_iter().flatten().min_by_key(|(_, scheme)| scheme.cost);
        let last = refused.into_iter().filter_map(Result::err).last();
        cheapest.ok_or_else(|| last.unwrap_or(ProtocolError::Parameters("parameter sets")))
    }

    /// The cheapest scheme for such a layer with [packed answers](Interleaving); none where no set has room for the noise, or no two products go into one
    /// answer.
    ///
    /// # Errors
    /// [`ProtocolError::NotSetUp`] without the sets.
    pub fn packed(
        layer: &Stacked,
        bits: u32,
        guard: u32,
        sets: &Sets,
    ) -> Result<Option<(ParameterSet, Self)>> {
        let mut cheapest: Option<(ParameterSet, Self)> = None;
        for set in PACKED {
            let Ok(scheme) = Self::new(layer, bits, Accuracy::Guarded(guard), sets.get(set)?) else {
                continue;
            };
            if cheapest.as_ref().is_none_or(|(_, other)| scheme.cost < other.cost) {
                cheapest = Some((set, scheme));
            }
        }
        Ok(cheapest)
    }

    /// The evaluation keys that pack answers: none where they are not packed.
    ///
    /// # Errors
    /// None for a scheme that was made.
    pub(crate) fn key_uses(&self) -> Result<EvaluationNeeds> {
        let elements = Interleaving::elements(self.parameters.degree(), self.packing.packed())?;
        Ok(elements.into_iter().map(|element| (KeyUse::Power(element.exponent()), usize::MAX)).collect())
    }

    /// Roughly the nanoseconds of a prediction on a line of 400 megabits a second, the set-up apart.
    #[must_use]
    pub fn price(&self) -> usize {
        let bytes = self.offline_cost().answer.bytes() + self.online_cost().bytes();
        price::of_bytes(bytes as usize) + price::of_work(&self.parameters, &self.packing)
    }

    /// The same of what a set-up sends for its [automorphisms](Interleaving::elements).
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] where the parameters have no keys.
    pub fn price_of_keys(&self) -> Result<usize> {
        let keys = Interleaving::elements(self.parameters.degree(), self.packing.packed())?;
        Ok(price::of_bytes(EvaluationKeys::encoded_len(&self.parameters, &keys)?))
    }

    /// A layer over `Z_2^bits` whose weights have at most [`Scheme::weight_bits`] bits with their sign.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if the shape does not fit; [`ProtocolError::Bfv`] if its noise leaves too little room.
    pub fn new(layer: &Stacked, bits: u32, accuracy: Accuracy, parameters: &Parameters) -> Result<Self> {
        if let Accuracy::Guarded(guard) = accuracy {
            return Self::guarded(layer, bits, guard, parameters);
        }
        let packing =
            Packing::cheapest(layer, parameters.degree(), AnswerForm::Apart, |packing| Some(whole(packing)))?;
        let norm = Self::norm(bits, packing.taps());
        let inputs = InputForm::Whole(CoefficientEncoder::new(parameters, 1 << bits)?);
        let noise = inputs.noise().multiplied_by_norm(norm);
        let modulus = match accuracy {
            Accuracy::OffByOne => PhaseModulus::faithful(parameters, bits, noise)?,
            _ => PhaseModulus::exact(parameters, bits, packing.most_outputs(), noise)?,
        };
        let (parameters, cost) = (parameters.clone(), whole(&packing));
        Ok(Self { packing, parameters, modulus, inputs, bits, guard: 0, noise, norm, cost })
    }

    /// Layout and widths of coefficients together: more taps make more noise, which takes wider ones.
    fn guarded(layer: &Stacked, bits: u32, guard: u32, parameters: &Parameters) -> Result<Self> {
        let form = if parameters.special().is_some() { AnswerForm::Packed } else { AnswerForm::Apart };
        let price = Price::new(parameters, layer.elements()[1], form);
        let mut widths = BTreeMap::new();
        let mut cheapest = |packing: &Packing| {
            let widths = widths
                .entry((packing.taps(), packing.packed()))
                .or_insert_with(|| widths_of(parameters, bits, guard, packing));
            price.cheapest(packing, widths)
        };
        let packing = Packing::cheapest(layer, parameters.degree(), form, |packing| {
            cheapest(packing).map(|(cost, _)| cost)
        });
        let packing = packing.map_err(|_| ProtocolError::Parameters("the noise of a layer"))?;
        let (cost, [input_bits, ..]) =
            cheapest(&packing).ok_or(ProtocolError::Parameters("the noise of a layer"))?;
        let inputs = InputForm::Rounded(InputModulus::new(parameters, bits, input_bits, packing.read())?);
        let norm = Self::norm(bits, packing.taps());
        let noise = answered(parameters, &packing, inputs.noise().multiplied_by_norm(norm));
        let modulus = PhaseModulus::guarded(parameters, bits, guard, packing.most_outputs(), noise)?;
        let parameters = parameters.clone();
        Ok(Self { packing, parameters, modulus, inputs, bits, guard, noise, norm, cost })
    }

    /// The largest 2-norm of a given number of weights.
    fn norm(bits: u32, taps: usize) -> f64 {
        f64::from(1 << (Self::weight_bits(bits) - 1)) * (taps as f64).sqrt()
    }

    /// The ring of its inputs' shares.
    #[must_use]
    pub fn input_ring(&self) -> Ring {
        Ring::Pow2(self.bits)
    }

    /// Checks that a share is one of its inputs.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] otherwise.
    pub(crate) fn check_input(&self, share: &Share) -> Result<()> {
        let elements = self.packing.elements()[0];
        ProtocolError::check_share("input share of a linear layer", share, self.input_ring(), elements)
    }

    /// The ring of its outputs' shares.
    #[must_use]
    pub fn ring(&self) -> Ring {
        Ring::Pow2(self.bits + self.guard)
    }

    /// Bits of a weight of a layer over `Z_2^bits`, sign included. Wider weights make more noise, which takes a wider phase to hide, and the
    /// ring is all that a client knows of them: narrow ones have no room for more than 12 bits beside those of activations.
    #[must_use]
    pub const fn weight_bits(bits: u32) -> u32 {
        match bits {
            ..=26 => 12,
            27..=29 => bits - 14,
            _ => 16,
        }
    }

    /// The parameters of its ciphertexts.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// How the layer is spread over ciphertexts.
    #[must_use]
    pub fn packing(&self) -> &Packing {
        &self.packing
    }

    /// The ciphertexts that the client receives.
    #[must_use]
    pub fn answers(&self) -> Answers {
        let [_, outputs] = self.packing.ciphertexts();
        let each = self.modulus.distance(self.packing.most_outputs(), self.noise);
        Answers { ciphertexts: outputs as u64, each }
    }

    /// The cost of the offline phase.
    #[must_use]
    pub fn offline_cost(&self) -> OfflineCost {
        let [inputs, outputs] = self.packing.ciphertexts();
        let second = self.modulus.second_half_len();
        OfflineCost {
            request: Cost::NONE.client(inputs * C1::ENCODED_LEN),
            answer: (0..outputs).fold(Cost::NONE, |cost, _| cost.server(second)),
        }
    }

    /// The cost of the online phase.
    #[must_use]
    pub fn online_cost(&self) -> Cost {
        self.input_cost().then(self.output_cost())
    }

    /// The cost of what the client sends online.
    pub(crate) fn input_cost(&self) -> Cost {
        let [inputs, _] = self.packing.ciphertexts();
        let input = self.inputs.encoded_len(&self.parameters);
        (0..inputs).fold(Cost::NONE, |cost, _| cost.client(input))
    }

    /// The cost of what the server answers online.
    pub(crate) fn output_cost(&self) -> Cost {
        let replies = self.packing.outputs();
        replies.iter().fold(Cost::NONE, |cost, wanted| cost.server(self.modulus.c0_len(wanted.len())))
    }
}

/// The sets of [packed answers](Interleaving).
const PACKED: [ParameterSet; 2] = [ParameterSet::C4, ParameterSet::C5];

/// The noise of an answer, by that of its products.
fn answered(parameters: &Parameters, packing: &Packing, products: NoiseBound) -> NoiseBound {
    match packing.packed() {
        1 => products,
        packed => Interleaving::noise(parameters, packed, products),
    }
}

/// The bits of a coefficient of an input, of a second half and of an output that a layout may have together: those of all with as many taps.
fn widths_of(parameters: &Parameters, bits: u32, guard: u32, packing: &Packing) -> Vec<[u32; 3]> {
    let (norm, count) = (Scheme::norm(bits, packing.taps()), parameters.degree() / 2);
    let widths = |input_bits: u32| {
        let input = NoiseBound::fresh().plus(NoiseBound::rounding_to(parameters, input_bits));
        let noise = answered(parameters, packing, input.multiplied_by_norm(norm));
        let [second, first] = PhaseModulus::guarded_widths(parameters, bits + guard, count, noise)?;
        Some([input_bits, second, first])
    };
    let widest = InputModulus::MOST_BITS.min(parameters.log2_modulus(parameters.limbs()) as u32);
    // The fewer bits, the more noise.
    (bits..=widest).rev().map_while(widths).collect()
}
