//! All that both parties know of a network, made once.

use std::ops::Range;

use lanner_bfv::function_privacy::PhaseModulus;
use lanner_bfv::{NoiseBound, Parameters};
use lanner_gc::Circuit;
use lanner_primitives::{Bits, Ring, Share};
use lanner_ring::{Modulus, RnsBasis};
use lanner_step::{ModelParts, ProtocolError, Result};
use lanner_yao::labels_to_ring::LabelsToRing;
use lanner_yao::{Layer as Circuits, Learnt, Revealed};
use zeroize::Zeroizing;

use crate::form::{Form, Source, SourcesOf};
use crate::linear::{Linear, MOST_WEIGHT, PHASE_BITS};
use crate::spec::{Item, Network, Sum, Term, Told};

/// All that both parties know of a network.
pub struct Scheme {
    pub(crate) parameters: Parameters,
    pub(crate) p: Modulus,
    pub(crate) ring: Ring,
    /// Polynomials modulo the prime.
    pub(crate) basis: RnsBasis,
    pub(crate) low: i64,
    pub(crate) bits: u32,
    /// Elements of the input.
    pub(crate) inputs: usize,
    pub(crate) layers: Vec<Layer>,
    pub(crate) stages: Vec<Stage>,
    /// `lambda`.
    pub(crate) masks: usize,
    pub(crate) check: PhaseModulus,
    pub(crate) check_noise: NoiseBound,
    /// In tests, what the server does otherwise.
    #[cfg(test)]
    pub(crate) early_factors: bool,
    #[cfg(test)]
    pub(crate) wrong: crate::tests::Wrong,
}

/// A linear layer.
pub(crate) struct Layer {
    /// What it reads.
    pub(crate) reads: Form,
    pub(crate) linear: Linear,
}

/// Layers whose ciphertexts are sent together, and the sum of them and of earlier values that is committed then, or told.
pub(crate) struct Stage {
    /// The numbers of the layers.
    pub(crate) layers: Range<usize>,
    pub(crate) sum: Form,
    pub(crate) behind: Behind,
}

impl Stage {
    /// Elements that it makes.
    pub(crate) fn makes(&self) -> usize {
        match &self.behind {
            Behind::Activation(layer) => layer.instances(),
            Behind::Revealed(_) | Behind::Scores => 0,
        }
    }
}

/// What is behind a sum.
pub(crate) enum Behind {
    /// Circuits whose outputs become shares.
    Activation(Circuits),
    /// The circuit whose outputs the client is told.
    Revealed(Revealed),
    /// The client is told the outputs.
    Scores,
}

impl Behind {
    pub(crate) fn circuit(&self) -> Option<&Circuit> {
        match self {
            Self::Activation(layer) => Some(layer.circuit()),
            Self::Revealed(revealed) => Some(revealed.circuit()),
            Self::Scores => None,
        }
    }

    pub(crate) fn instances(&self) -> usize {
        match self {
            Self::Activation(layer) => layer.instances(),
            Self::Revealed(revealed) => revealed.instances(),
            Self::Scores => 0,
        }
    }

    /// The client's bits, which it commits.
    pub(crate) fn wires(&self) -> usize {
        self.circuit().map_or(0, Circuit::evaluator_inputs) * self.instances()
    }

    /// Outputs that become shares.
    pub(crate) fn converted(&self) -> usize {
        match self {
            Self::Activation(layer) => layer.output_bits(),
            Self::Revealed(_) | Self::Scores => 0,
        }
    }

    pub(crate) fn output_bits(&self) -> usize {
        self.circuit().map_or(0, Circuit::outputs) * self.instances()
    }

    /// The elements of the sum that are committed, in order: one comes as often as circuits read it.
    pub(crate) fn elements(&self, outputs: usize) -> Vec<usize> {
        match self {
            Self::Activation(layer) => layer.elements(),
            Self::Revealed(_) => (0..outputs).collect(),
            Self::Scores => Vec::new(),
        }
    }

    pub(crate) fn evaluator_bits(&self, share: &Share) -> Result<Bits> {
        match self {
            Self::Activation(layer) => layer.evaluator_bits(share),
            Self::Revealed(revealed) => revealed.evaluator_bits(share),
            Self::Scores => Ok(Bits::zeros(0)),
        }
    }

    pub(crate) fn garbler_bits(&self, share: &Share) -> Result<Bits> {
        match self {
            Self::Activation(layer) => layer.garbler_bits(share),
            Self::Revealed(revealed) => revealed.garbler_bits(share),
            Self::Scores => Ok(Bits::zeros(0)),
        }
    }
}

impl Scheme {
    /// Lays a network out.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless layers fit one another and the prime, and the norm of all is within what the check is proved for; [`ProtocolError::Bfv`]
    /// and [`ProtocolError::Gc`] for parameters that have no room, or no circuits.
    pub fn new(network: &Network) -> Result<Self> {
        let parameters = network.set.parameters()?;
        let (ring, prime) = (Ring::Prime(network.prime), network.prime);
        ProtocolError::refuse_if(!(MIN_PRIME..MAX_PRIME).contains(&prime), "a prime of 20 to 25 bits")?;
        let fits = (1..=ring.bits() - 2).contains(&network.bits);
        ProtocolError::refuse_if(!fits, "bits of the input of a hardened network")?;
        let half = prime as i64 / 2;
        let fits = network.low >= -half && network.low <= half - (1 << network.bits);
        ProtocolError::refuse_if(!fits, "the range of the input of a hardened network")?;
        let basis = RnsBasis::new(parameters.degree(), &[prime]).map_err(lanner_bfv::BfvError::from)?;
        let p = basis.moduli()[0];
        let sizes = network.sizes()?;
        let (mut layers, mut stages) = (Vec::new(), Vec::new());
        // Where each value is: the input, activations' elements, and what layers make that have none.
        let mut sources = vec![Source::Elements(0)];
        let mut first = 0;
        for (number, item) in network.layers.iter().enumerate() {
            let form = |terms: &[Term], len: usize| Form::new(terms, &sources, &sizes, len, &p);
            let is_last = number + 1 == network.layers.len();
            let sum = match item {
                Item::Layer(layer) => {
                    let linear = Linear::new(&layer.shape, &parameters, prime)?;
                    let reads = form(&layer.terms(number), linear.elements()[0])?;
                    let outputs = linear.elements()[1];
                    layers.push(Layer { reads, linear });
                    let made = Source::Outputs(layers.len() - 1);
                    if layer.activation.is_none() && !is_last {
                        sources.push(made);
                        continue;
                    }
                    Form::whole(made, outputs)
                }
                Item::Sum(Sum { terms, activation, .. }) => {
                    // Windows read all that is added.
                    let len = activation.as_ref().map_or(sizes[number + 1], |read| read.windows.inputs());
                    form(terms, len)?
                }
            };
            let behind = match item.activation() {
                Some(activation) => {
                    Behind::Activation(Circuits::new(activation.function, &activation.windows, ring, ring)?)
                }
                None => revealed(network.told, sum.len(), ring)?.map_or(Behind::Scores, Behind::Revealed),
            };
            stages.push(Stage { layers: first..layers.len(), sum, behind });
            first = layers.len();
            sources.push(Source::Elements(stages.len()));
        }
        ProtocolError::refuse_if(layers.is_empty(), "a hardened network without layers")?;
        let squared: f64 = layers.iter().map(|layer| layer.linear.squared_norm()).sum();
        let norm_bits = squared.log2() / 2.0 + f64::from(MOST_WEIGHT).log2();
        ProtocolError::refuse_if(norm_bits > MOST_NORM_BITS, "layers whose norm is above 2^33")?;
        let ciphertexts: usize = layers.iter().map(|layer| layer.linear.inputs.len()).sum();
        let check_noise = NoiseBound::fresh().multiplied_by_norm(norm_of_masks(ciphertexts, &parameters));
        let check = PhaseModulus::prime(&parameters, prime, PHASE_BITS, check_noise)?;
        let values: usize = layers.iter().map(|layer| layer.linear.elements()[1]).sum();
        let fails = honest_failure(prime, ciphertexts * parameters.degree(), values, &parameters);
        ProtocolError::refuse_if(
            -fails.log2() < HONEST_BITS,
            "layers for which honest clients fail their check",
        )?;
        Ok(Self {
            low: network.low,
            bits: network.bits,
            masks: MASKS,
            parameters,
            p,
            ring,
            basis,
            inputs: sizes[0],
            layers,
            stages,
            check,
            check_noise,
            #[cfg(test)]
            early_factors: false,
            #[cfg(test)]
            wrong: crate::tests::Wrong::Nothing,
        })
    }

    /// A bound on the 2-norm of a mask's coefficients.
    pub(crate) fn check_norm(&self) -> f64 {
        norm_of_masks(self.ciphertexts(), &self.parameters)
    }

    /// Reads how nodes move elements, without which terms that they move cannot be computed.
    ///
    /// # Errors
    /// [`ProtocolError::WrongModel`] or [`ProtocolError::Length`] if they move others.
    pub(crate) fn resolve(&mut self, model: &dyn ModelParts) -> Result<()> {
        self.resolve_by(&|node| model.sources(node))
    }

    pub(crate) fn resolve_by(&mut self, sources: &SourcesOf<'_>) -> Result<()> {
        let reads = self.layers.iter_mut().map(|layer| &mut layer.reads);
        let mut forms = reads.chain(self.stages.iter_mut().map(|stage| &mut stage.sum));
        forms.try_for_each(|form| form.resolve(sources))
    }

    /// Bits of the input.
    pub(crate) fn input_bits(&self) -> usize {
        self.inputs * self.bits as usize
    }

    /// Input ciphertexts of all layers.
    pub(crate) fn ciphertexts(&self) -> usize {
        self.layers.iter().map(|layer| layer.linear.inputs.len()).sum()
    }

    /// Transfers of a prediction.
    pub(crate) fn transfers(&self) -> usize {
        self.input_bits() + self.stages.iter().map(|stage| stage.behind.wires()).sum::<usize>()
    }

    /// The layers of a stage.
    pub(crate) fn layers_of(&self, stage: &Stage) -> &[Layer] {
        &self.layers[stage.layers.clone()]
    }

    /// Input ciphertexts of a stage's layers.
    pub(crate) fn ciphertexts_of(&self, stage: &Stage) -> usize {
        self.layers_of(stage).iter().map(|layer| layer.linear.inputs.len()).sum()
    }

    /// Whether the last ciphertexts are those of this stage.
    pub(crate) fn ends_ciphertexts(&self, stage: &Stage) -> bool {
        !stage.layers.is_empty() && stage.layers.end == self.layers.len()
    }

    /// What the bits of a layer's outputs stand for.
    pub(crate) fn weights_of(&self, layer: &Circuits) -> Vec<u64> {
        let encoding = layer.encoding();
        let mut weights: Vec<u64> = (0..encoding.bits).map(|bit| self.p.pow(2, bit as u64)).collect();
        if let Some(top) = weights.last_mut().filter(|_| encoding.signed) {
            *top = self.p.neg(*top);
        }
        weights
    }

    /// What the bits of a share stand for.
    pub(crate) fn powers(&self, bits: usize) -> Vec<u64> {
        (0..bits).map(|bit| self.p.pow(2, bit as u64)).collect()
    }

    /// A share in the network's ring.
    pub(crate) fn share(&self, mut elements: Zeroizing<Vec<u64>>) -> Result<Share> {
        Ok(Share::new(self.ring, std::mem::take(&mut elements))?)
    }
}

/// The circuits on the last sums, whose outputs the client learns.
fn revealed(told: Told, scores: usize, ring: Ring) -> Result<Option<Revealed>> {
    let revealed = match told {
        Told::Scores => return Ok(None),
        Told::Label => Revealed::label(scores, ring),
        Told::TopK(k) => Revealed::top_k(scores, k, ring),
        Told::Positive => Revealed::positive(scores, ring),
        Told::Probability(probability) => probability.circuit(scores, ring.into()),
        Told::LabelAt(places) => {
            let classes = scores.checked_div(places).unwrap_or(0);
            ProtocolError::check_length("scores of all places", classes * places, scores)?;
            Revealed::label(classes, ring)?.at(places)
        }
    };
    revealed.map(Some)
}

/// How likely an honest client fails at most: by noise that a mask makes carry, of so many coefficients, or by roundings of so many outputs and the checks.
fn honest_failure(prime: u64, coefficients: usize, outputs: usize, parameters: &Parameters) -> f64 {
    let (p, q) = ((prime as f64).log2(), parameters.log2_modulus(parameters.limbs()));
    let noise = f64::from(SIDE_BITS) + p + (coefficients as f64).log2() / 2.0 + 2.0 - q;
    let carries = MASKS as f64 / 12_f64.sqrt() * noise.exp2();
    carries + (outputs + MASKS) as f64 * (p + ROUNDED_BITS - f64::from(PHASE_BITS)).exp2()
}

fn norm_of_masks(ciphertexts: usize, parameters: &Parameters) -> f64 {
    f64::from(SIDE_BITS - 1).exp2() * ((ciphertexts * parameters.degree()) as f64).sqrt()
}

/// The exclusive bound of the sums that circuits read alike modulo a prime of b bits, whether a client commits c or c + p, where both have b bits:
/// `2p - 3 * 2^(b-1) - 2^(d-1)`, the last term missing if nothing is dropped.
///
/// # Errors
/// [`ProtocolError::Parameters`] if there are none.
pub fn bound(prime: u64, dropped: u32) -> Result<u64> {
    let half = 1_u64 << (Ring::Prime(prime).bits() - 1);
    let rounding = if dropped == 0 { 0 } else { 1 << (dropped - 1) };
    let bound = (2 * prime).checked_sub(3 * half).and_then(|bound| bound.checked_sub(rounding));
    bound
        .filter(|bound| *bound > 0)
        .ok_or(ProtocolError::Parameters("a prime whose residues have few representatives"))
}

/// Tweaks of hashes, none of which comes twice in a prediction: conversions take theirs in an order that both parties know.
pub(crate) struct Tweaks {
    salt: lanner_primitives::Block,
    prime: u64,
    next: u128,
}

impl Tweaks {
    pub(crate) fn new(scheme: &Scheme, salt: lanner_primitives::Block) -> Self {
        Self { salt, prime: scheme.p.value(), next: 0 }
    }

    /// The conversion of so many labels.
    pub(crate) fn take(&mut self, labels: usize) -> Result<LabelsToRing> {
        let conversion = LabelsToRing::new(self.salt, self.prime, self.next)?;
        self.next += 2 * labels as u128;
        Ok(conversion)
    }
}

/// `lambda`.
pub(crate) const MASKS: usize = 128;
/// `log2 H`.
pub(crate) const SIDE_BITS: u32 = 70;
/// The largest norm for which what a client learns by being caught is within the claim.
const MOST_NORM_BITS: f64 = 33.0;
const MIN_PRIME: u64 = 1 << 19;
const MAX_PRIME: u64 = 1 << 25;
/// An honest client fails its check with a probability of 2^-35 at most.
const HONEST_BITS: f64 = 35.0;
/// `log2` of a key's products with what a rounding leaves out: 2^8, as the page has it.
const ROUNDED_BITS: f64 = 8.0;
