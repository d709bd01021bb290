//! All that both parties know of a network, made once.

use lanner_bfv::function_privacy::PhaseModulus;
use lanner_bfv::{NoiseBound, Parameters};
use lanner_gc::Circuit;
use lanner_primitives::{Bits, Ring, Share};
use lanner_ring::{Modulus, RnsBasis};
use lanner_step::{ProtocolError, Result, Windows};
use lanner_yao::labels_to_ring::LabelsToRing;
use lanner_yao::{Layer as Circuits, Revealed};
use zeroize::Zeroizing;

use crate::linear::{Linear, MOST_WEIGHT, PHASE_BITS};
use crate::spec::{Network, Told};

/// All that both parties know of a network.
pub struct Scheme {
    pub(crate) parameters: Parameters,
    pub(crate) p: Modulus,
    pub(crate) ring: Ring,
    /// Polynomials modulo the prime.
    pub(crate) basis: RnsBasis,
    pub(crate) low: i64,
    pub(crate) bits: u32,
    pub(crate) layers: Vec<Stage>,
    /// `lambda`.
    pub(crate) masks: usize,
    pub(crate) check: PhaseModulus,
    pub(crate) check_noise: NoiseBound,
    /// In tests, what the server does otherwise.
    #[cfg(test)]
    pub(crate) early_factors: bool,
}

/// A linear layer, and the circuits behind it.
pub(crate) struct Stage {
    /// The elements whose sums the layer reads, for each of its inputs; none where it reads the elements themselves.
    summed: Option<Vec<Vec<usize>>>,
    /// Elements in front of it.
    elements: usize,
    pub(crate) linear: Linear,
    pub(crate) behind: Behind,
}

impl Stage {
    /// What the layer reads of the elements in front of it: each party computes it on its own share.
    pub(crate) fn read(&self, p: &Modulus, elements: &[u64]) -> Zeroizing<Vec<u64>> {
        let Some(summed) = &self.summed else { return Zeroizing::new(elements.to_vec()) };
        let sum = |group: &Vec<usize>| group.iter().fold(0, |sum, element| p.add(sum, elements[*element]));
        Zeroizing::new(summed.iter().map(sum).collect())
    }

    /// The transpose of [`Self::read`].
    pub(crate) fn read_transposed(&self, p: &Modulus, inputs: Zeroizing<Vec<u64>>) -> Zeroizing<Vec<u64>> {
        let Some(summed) = &self.summed else { return inputs };
        let mut elements = Zeroizing::new(vec![0; self.elements]);
        for (group, input) in summed.iter().zip(inputs.iter()) {
            for element in group {
                elements[*element] = p.add(elements[*element], *input);
            }
        }
        elements
    }
}

/// What is behind a linear layer.
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

    /// The outputs of the layer before that are committed, in order: one comes as often as circuits read it.
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
        let last = network.layers.len().checked_sub(1);
        let last = last.ok_or(ProtocolError::Parameters("a hardened network without layers"))?;
        let (mut layers, mut elements) = (Vec::with_capacity(last + 1), None);
        for (number, layer) in network.layers.iter().enumerate() {
            let linear = Linear::new(&layer.shape, &parameters, prime)?;
            let [inputs, outputs] = linear.elements();
            let read = layer.inputs();
            if let Some(elements) = elements {
                ProtocolError::check_length("inputs of a layer", read, elements)?;
            }
            let summed = layer.summed.as_ref().map(Windows::groups).transpose()?;
            if let Some(summed) = &summed {
                ProtocolError::check_length("sums that a layer reads", inputs, summed.len())?;
            }
            let behind = match (&layer.activation, number == last) {
                (Some(activation), false) => {
                    ProtocolError::check_length("windows", outputs, activation.windows.inputs())?;
                    Behind::Activation(Circuits::new(activation.function, &activation.windows, ring, ring)?)
                }
                (None, true) => match network.told {
                    Told::Scores => Behind::Scores,
                    Told::Label => Behind::Revealed(Revealed::label(outputs, ring)?),
                    Told::TopK(k) => Behind::Revealed(Revealed::top_k(outputs, k, ring)?),
                    Told::Positive => Behind::Revealed(Revealed::positive(outputs, ring)?),
                },
                _ => return Err(ProtocolError::Parameters("an activation behind each layer but the last")),
            };
            elements = Some(behind.instances());
            layers.push(Stage { summed, elements: read, linear, behind });
        }
        let squared: f64 = layers.iter().map(|stage| stage.linear.squared_norm()).sum();
        let norm_bits = squared.log2() / 2.0 + f64::from(MOST_WEIGHT).log2();
        ProtocolError::refuse_if(norm_bits > MOST_NORM_BITS, "layers whose norm is above 2^33")?;
        let ciphertexts: usize = layers.iter().map(|stage| stage.linear.inputs.len()).sum();
        let check_noise = NoiseBound::fresh().multiplied_by_norm(norm_of_masks(ciphertexts, &parameters));
        let check = PhaseModulus::prime(&parameters, prime, PHASE_BITS, check_noise)?;
        let values: usize = layers.iter().map(|stage| stage.linear.elements()[1]).sum();
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
            layers,
            check,
            check_noise,
            #[cfg(test)]
            early_factors: false,
        })
    }

    /// A bound on the 2-norm of a mask's coefficients.
    pub(crate) fn check_norm(&self) -> f64 {
        norm_of_masks(self.ciphertexts(), &self.parameters)
    }

    /// Elements of the input.
    pub(crate) fn inputs(&self) -> usize {
        self.layers[0].elements
    }

    /// Bits of the input.
    pub(crate) fn input_bits(&self) -> usize {
        self.inputs() * self.bits as usize
    }

    /// Input ciphertexts of all layers.
    pub(crate) fn ciphertexts(&self) -> usize {
        self.layers.iter().map(|stage| stage.linear.inputs.len()).sum()
    }

    /// Transfers of a prediction.
    pub(crate) fn transfers(&self) -> usize {
        self.input_bits() + self.layers.iter().map(|stage| stage.behind.wires()).sum::<usize>()
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
