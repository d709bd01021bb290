//! The response: the server sends the scores, with nothing else in their ciphertexts.
//!
//! ```text
//! C                                        S
//! for each prime:
//!               <--  [scores in their slots, uniform values in all others], sealed
//! ```
//!
//! The other slots hold sums of parts of the network, which would tell of its weights. Sealing adds a fresh encryption of zero and floods the
//! noise, which depends on all that was multiplied: see [`lanner_bfv::function_privacy`].

use std::sync::Arc;

use lanner_bfv::function_privacy::Budget;
use lanner_bfv::{
    Blinding, NoiseBound, ParameterSet, Parameters, Plaintext, SealedCiphertext, SecretKey, SlotEncoder, seal,
};
use lanner_primitives::{Ring, Share};
use lanner_step::{
    Answers, BoxedStep, Built, Client, Cost, CotSupply, Inputs, Memory, ModelParts, Needs, Outcome,
    ProtocolError, Result, Samples, Server, Sets, Spec, StepCost, Value, ValueType, kind,
};
use lanner_wire::{Channel, Encode};
use serde::{Deserialize, Serialize};

use super::evaluate::{InSession, OfSession};
use super::layout::Layout;
use super::primes::{Primes, product};
use super::{ciphertext_bytes, needs};

/// The disclosure of all scores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reveal {
    /// Where a sample's scores lie.
    pub layout: Layout,
    /// How many samples lie in them.
    #[serde(default, skip_serializing_if = "Samples::is_one")]
    pub samples: Samples,
    /// The plaintext moduli.
    pub primes: Vec<u64>,
    /// The parameter set.
    pub set: ParameterSet,
    /// Limbs of the ciphertexts.
    pub limbs: usize,
    /// The deviation of their noise is below `2^noise_bits`, whatever the weights.
    pub noise_bits: u32,
}

impl Reveal {
    fn noise(&self) -> NoiseBound {
        NoiseBound::of_bits(self.noise_bits)
    }
}

impl Spec for Reveal {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        self.layout.check(self.samples.slots(self.set.degree()))?;
        let input = ValueType::only_encrypted(inputs)?;
        let fits = (input.set, input.ciphertexts, input.limbs)
            == (self.set, self.layout.ciphertexts(), self.limbs)
            && Some(input.modulus) == product(&self.primes)
            && input.noise <= self.noise();
        if fits { Ok(ValueType::Revealed) } else { Err(ProtocolError::WrongInput("the scores of a network")) }
    }

    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>> {
        let parameters = sets.get(self.set)?.clone();
        let primes = Primes::new(&parameters, &self.primes)?;
        let budget = |encoder: &SlotEncoder| Budget::at(encoder.modulus(), self.noise(), self.limbs);
        let budgets = primes.encoders().iter().map(budget).collect::<Result<_, _>>()?;
        Ok(Box::new(BuiltReveal { spec: self.clone(), parameters, primes, budgets }))
    }
}

/// The disclosure with its encoders, and how each prime's ciphertexts are sealed.
struct BuiltReveal {
    spec: Reveal,
    parameters: Parameters,
    primes: Primes,
    budgets: Vec<Budget>,
}

impl BuiltReveal {
    fn ciphertexts(&self) -> usize {
        self.spec.layout.ciphertexts()
    }
}

impl Built for BuiltReveal {
    fn needs(&self) -> Result<Needs> {
        Ok(needs(self.spec.set, []))
    }

    fn cost(&self, _: &mut CotSupply) -> Result<StepCost> {
        let mut online = Cost::NONE;
        for encoder in self.primes.encoders() {
            let bytes = SealedCiphertext::encoded_len(encoder.modulus())?;
            online = (0..self.ciphertexts()).fold(online, |cost, _| cost.server(bytes));
        }
        Ok(StepCost { online, ..StepCost::default() })
    }

    fn answers(&self) -> Result<Answers> {
        let ciphertexts = (self.ciphertexts() * self.budgets.len()) as u64;
        let farthest = self.budgets.iter().map(|budget| budget.distance());
        let each = farthest.reduce(|a, b| if a > b { a } else { b }).unwrap_or_default();
        Ok(Answers { ciphertexts, each })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("output_ciphertexts", (self.ciphertexts() * self.budgets.len()) as u64)]
    }

    fn memory(&self) -> Result<Memory> {
        let count = (self.ciphertexts() * self.budgets.len()) as u64;
        // An encryption of zero, the flooding, and the mask.
        let each = 2 * ciphertext_bytes(&self.parameters, self.spec.limbs);
        Ok(Memory { server_material: count * each, client_working: each, ..Memory::default() })
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(InSession(*self)))
    }

    fn server(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(Box::new(InSession(*self)))
    }
}

/// What hides one ciphertext's noise, and all slots of it but those of scores.
struct Cover {
    blinding: Blinding,
    mask: Plaintext,
}

impl OfSession<Server> for BuiltReveal {
    /// By prime.
    type Held = Vec<Vec<Cover>>;

    fn hold(&self, server: &mut Server) -> Result<Self::Held> {
        let Server { keys, rng, .. } = server;
        let public = &keys.get(self.spec.set)?.public;
        let mut cover = |encoder: &SlotEncoder, results: &[bool]| {
            let (modulus, noise) = (encoder.modulus(), self.spec.noise());
            let blinding = Blinding::prepare_at(modulus, public, noise, self.spec.limbs, rng)?;
            let mut slots = Share::random(Ring::Prime(modulus.value()), results.len(), rng).values().to_vec();
            slots
                .iter_mut()
                .zip(results)
                .filter(|(_, is_result)| **is_result)
                .for_each(|(slot, _)| *slot = 0);
            Ok(Cover { blinding, mask: encoder.encode(&slots)? })
        };
        let results = self.spec.layout.occupied_by(self.spec.samples);
        let of_prime = |encoder| results.iter().map(|results| cover(encoder, results)).collect();
        self.primes.encoders().iter().map(of_prime).collect()
    }

    fn online(&self, channel: &mut dyn Channel, covers: Self::Held, inputs: &Inputs) -> Result<Value> {
        for (ciphertexts, covers) in inputs.encrypted()?.iter().zip(covers) {
            for (ciphertext, Cover { blinding, mask }) in ciphertexts.iter().zip(covers) {
                channel.send(kind::SPECTRAL_OUTPUT, &seal(ciphertext, blinding, &mask)?.to_bytes())?;
            }
        }
        Ok(Value::AtPeer)
    }
}

impl OfSession<Client> for BuiltReveal {
    type Held = Arc<SecretKey>;

    fn hold(&self, client: &mut Client) -> Result<Arc<SecretKey>> {
        client.keys.shared(self.spec.set)
    }

    fn online(&self, channel: &mut dyn Channel, key: Arc<SecretKey>, _: &Inputs) -> Result<Value> {
        let mut residues = Vec::with_capacity(self.primes.encoders().len());
        for encoder in self.primes.encoders() {
            let modulus = encoder.modulus();
            let mut slots = Vec::with_capacity(self.ciphertexts());
            for _ in 0..self.ciphertexts() {
                let bytes =
                    channel.receive(kind::SPECTRAL_OUTPUT, SealedCiphertext::encoded_len(modulus)?)?;
                let sealed = SealedCiphertext::from_bytes(modulus, &bytes)?;
                slots.push(encoder.decode(&key.decrypt_sealed(&sealed)?)?);
            }
            residues.push(self.spec.layout.unpack_samples(self.spec.samples, &slots));
        }
        Ok(Value::Revealed(Outcome::Logits(self.primes.recombine(&residues))))
    }
}
