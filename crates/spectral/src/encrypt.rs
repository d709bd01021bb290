//! The request: the client encrypts the network's input as the first layer wants it laid out.
//!
//! ```text
//! C                                        S
//! for each prime, for each ciphertext:
//! [x laid out]  -->
//! ```

use std::sync::Arc;

use lanner_bfv::{ParameterSet, Parameters, SecretKey, SeededCiphertext};
use lanner_primitives::{Prg, Ring, Seed, Share};
use lanner_step::{
    BoxedStep, Built, Client, Cost, CotSupply, Encrypted, Inputs, Memory, ModelParts, Needs, Online,
    ProtocolError, Result, Samples, Server, Sets, Spec, StepCost, Unprepared, Value, ValueType, WORD, kind,
};
use lanner_wire::{Channel, Encode};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::evaluate::{InSession, OfSession};
use super::layout::Layout;
use super::needs;
use super::primes::{Primes, product, residue};

/// The ring that the client's input is handed over in: that of no computation, and wider than any input.
pub const INPUT: Ring = Ring::Pow2(40);

/// The encryption of the network's input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encrypt {
    /// Where a sample's elements lie.
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
}

impl Spec for Encrypt {
    fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        self.layout.check(self.samples.slots(self.set.degree()))?;
        ValueType::only_known(inputs, INPUT, self.samples.count() * self.layout.len())?;
        let modulus =
            product(&self.primes).ok_or(ProtocolError::Parameters("the primes of encrypted values"))?;
        Ok(ValueType::Encrypted(Encrypted {
            set: self.set,
            modulus,
            ciphertexts: self.layout.ciphertexts(),
            limbs: self.limbs,
            noise: lanner_bfv::NoiseBound::fresh(),
        }))
    }

    fn build(&self, sets: &Sets) -> Result<Box<dyn Built>> {
        let parameters = sets.get(self.set)?.clone();
        let primes = Primes::new(&parameters, &self.primes)?;
        Ok(Box::new(BuiltEncrypt { spec: self.clone(), parameters, primes: Arc::new(primes) }))
    }
}

/// The encryption with its encoders.
struct BuiltEncrypt {
    spec: Encrypt,
    parameters: Parameters,
    primes: Arc<Primes>,
}

impl BuiltEncrypt {
    /// Bytes of a ciphertext.
    fn bytes(&self) -> Result<usize> {
        Ok(SeededCiphertext::encoded_len_at(&self.parameters, self.spec.limbs)?)
    }

    fn ciphertexts(&self) -> usize {
        self.spec.layout.ciphertexts() * self.spec.primes.len()
    }
}

impl Built for BuiltEncrypt {
    fn needs(&self) -> Result<Needs> {
        Ok(needs(self.spec.set, []))
    }

    fn cost(&self, _: &mut CotSupply) -> Result<StepCost> {
        let bytes = self.bytes()?;
        let online = (0..self.ciphertexts()).fold(Cost::NONE, |cost, _| cost.client(bytes));
        Ok(StepCost { online, ..StepCost::default() })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("input_ciphertexts", self.ciphertexts() as u64)]
    }

    fn memory(&self) -> Result<Memory> {
        let expanded = (2 * self.spec.limbs * self.parameters.degree() * size_of::<u64>()) as u64;
        let all = self.ciphertexts() as u64 * expanded;
        // The slots of all ciphertexts, and what lies in them.
        let slots = self.spec.layout.ciphertexts() as u64 * self.parameters.degree() as u64 * 3 * WORD;
        // The input, which elements that no slot holds are part of, as it is given, shared, revealed and reduced.
        let elements = (self.spec.samples.count() * self.spec.layout.len()) as u64 * 5 * WORD;
        Ok(Memory { working: all, client_working: expanded + slots + elements, ..Memory::default() })
    }

    fn client(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Client> {
        Ok(Box::new(InSession(*self)))
    }

    fn server(self: Box<Self>, _: &str, _: &dyn ModelParts) -> BoxedStep<Server> {
        Ok(Box::new(Online(*self)))
    }
}

/// What the client encrypts with: its key, and the seed of one encryption's randomness.
struct Sealing {
    key: Arc<SecretKey>,
    seed: Seed,
}

impl OfSession<Client> for BuiltEncrypt {
    type Held = Sealing;

    fn hold(&self, client: &mut Client) -> Result<Sealing> {
        let key = client.keys.shared(self.spec.set)?;
        Ok(Sealing { key, seed: Seed::random(&mut client.rng) })
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        Sealing { key, seed }: Sealing,
        inputs: &Inputs,
    ) -> Result<Value> {
        let share = inputs.share()?;
        let input = Zeroizing::new(share.reveal(&Share::zero(INPUT, share.len()))?);
        let (mut rng, layout, samples) = (Prg::new(seed), &self.spec.layout, self.spec.samples);
        for (prime, encoder) in self.spec.primes.iter().zip(self.primes.encoders()) {
            let residue = |x: &i64| residue((*x).into(), *prime);
            let residues: Zeroizing<Vec<u64>> = Zeroizing::new(input.iter().map(residue).collect());
            let packed = Zeroizing::new(layout.pack(samples, &residues));
            for slots in packed.iter() {
                let ciphertext = key.encrypt_at(&encoder.encode(slots)?, self.spec.limbs, &mut rng)?;
                channel.send(kind::SPECTRAL_INPUT, &ciphertext.to_bytes())?;
            }
        }
        Ok(Value::AtPeer)
    }
}

impl Unprepared<Server> for BuiltEncrypt {
    fn online(&self, channel: &mut dyn Channel, _: &Inputs) -> Result<Value> {
        let mut receive = || {
            let bytes = channel.receive(kind::SPECTRAL_INPUT, self.bytes()?)?;
            let ciphertext = SeededCiphertext::from_bytes_at(&self.parameters, self.spec.limbs, &bytes)?;
            Ok(ciphertext.expand())
        };
        let mut of_prime = |_| (0..self.spec.layout.ciphertexts()).map(|_| receive()).collect();
        let ciphertexts = self.spec.primes.iter().map(&mut of_prime).collect::<Result<_>>()?;
        Ok(Value::Encrypted(ciphertexts))
    }
}
