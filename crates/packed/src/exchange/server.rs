//! The server's side.

use lanner_bfv::function_privacy::{Budget, Sealing};
use lanner_bfv::halves::{C0, C1};
use lanner_bfv::{BfvError, Blinding, Ciphertext, NoiseBound, Parameters, PublicKey, SlotEncoder};
use lanner_primitives::{Prg, Ring, Seed, Share, parallel};
use lanner_step::{ProtocolError, in_turns, kind};
use lanner_wire::{Channel, Encode, Reader, Writer};
use rand_core::CryptoRng;

/// The ciphertexts of a protocol as the server knows them.
pub(crate) struct ServerExchange {
    parameters: Parameters,
    encoder: SlotEncoder,
    ring: Ring,
    inputs: usize,
    /// The bound on the noise of the outputs.
    noise: NoiseBound,
}

/// Outputs, evaluated, masked and blinded but for the message. They are used up by value.
pub(crate) struct Sealed(Vec<Sealing>);

/// The masks of outputs, slot by slot: what the server's share is made of.
pub(crate) struct Masks(Vec<Share>);

impl Masks {
    pub(crate) fn slots(&self) -> Vec<&[u64]> {
        self.0.iter().map(Share::values).collect()
    }
}

impl Sealed {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        self.0.iter().for_each(|sealing| sealing.encode(writer));
    }

    /// Online: seals and sends the first halves of the outputs.
    pub(crate) fn send(
        self,
        channel: &mut dyn Channel,
        outputs: impl Iterator<Item = Result<C0, ProtocolError>>,
    ) -> Result<(), ProtocolError> {
        for (output, sealing) in outputs.zip(self.0) {
            // S -> C: first half of an output
            channel.send(kind::LINEAR_OUTPUT, &sealing.seal(&output?)?.to_bytes())?;
            // The client decrypts while the next is sealed.
            channel.flush()?;
        }
        Ok(())
    }
}

impl ServerExchange {
    /// A given number of input ciphertexts modulo `prime`, and outputs within a bound on their noise.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the prime or the noise does not fit the parameters.
    pub(crate) fn new(
        parameters: &Parameters,
        prime: u64,
        inputs: usize,
        noise: NoiseBound,
    ) -> Result<Self, ProtocolError> {
        let encoder = SlotEncoder::new(parameters, prime)?;
        // Refused now rather than at the first prediction.
        Budget::new(encoder.modulus(), noise)?;
        Ok(Self { parameters: parameters.clone(), encoder, ring: Ring::Prime(prime), inputs, noise })
    }

    pub(crate) fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    pub(crate) fn encoder(&self) -> &SlotEncoder {
        &self.encoder
    }

    /// Offline: receives the second halves of the inputs.
    pub(crate) fn receive_ahead(&self, channel: &mut dyn Channel) -> Result<Vec<Ciphertext>, ProtocolError> {
        // C -> S: seeds of c1
        let bytes = channel.receive(kind::LINEAR_SEEDS, self.inputs * C1::ENCODED_LEN)?;
        let expand = |seed| Ok(C1::from_bytes(seed)?.expand(&self.parameters));
        parallel::map(bytes.chunks(C1::ENCODED_LEN), expand).into_iter().collect()
    }

    /// Offline: masks and seals the second halves of the outputs.
    pub(crate) fn send_ahead(
        &self,
        channel: &mut dyn Channel,
        key: &PublicKey,
        mut evaluated: impl ExactSizeIterator<Item = Result<Ciphertext, ProtocolError>>,
        rng: &mut impl CryptoRng,
    ) -> Result<(Sealed, Masks), ProtocolError> {
        let mut masks = Vec::with_capacity(evaluated.len());
        let mut sealings = Vec::with_capacity(evaluated.len());
        for numbers in in_turns(evaluated.len()) {
            let seeds = parallel::seeds(numbers.len(), rng);
            let seal = |(seed, output): (&Seed, Result<Ciphertext, ProtocolError>)| {
                self.seal(&output?, key, &mut Prg::new(seed.clone()))
            };
            for sealed in parallel::map(seeds.iter().zip(evaluated.by_ref()), seal) {
                let (bytes, sealing, mask) = sealed?;
                // S -> C: second half of an output
                channel.send(kind::LINEAR_SECOND_HALF, &bytes)?;
                masks.push(mask);
                sealings.push(sealing);
            }
        }
        Ok((Sealed(sealings), Masks(masks)))
    }

    /// Reads what [`Sealed::encode`] wrote of a given number of outputs.
    pub(crate) fn decode(&self, reader: &mut Reader<'_>, outputs: usize) -> Result<Sealed, BfvError> {
        let sealing = |_| Sealing::decode(self.encoder.modulus(), self.noise, reader);
        Ok(Sealed((0..outputs).map(sealing).collect::<Result<_, _>>()?))
    }

    /// Masks and blinds an output: the bytes of its second half, what is kept of it, and its mask.
    fn seal(
        &self,
        output: &Ciphertext,
        key: &PublicKey,
        rng: &mut impl CryptoRng,
    ) -> Result<(Vec<u8>, Sealing, Share), ProtocolError> {
        let mask = Share::random(self.ring, self.encoder.slots(), rng);
        let blinding = Blinding::prepare(self.encoder.modulus(), key, self.noise, rng)?;
        let (half, sealing) = Sealing::new(output, blinding, &self.encoder.encode(mask.values())?)?;
        Ok((half.to_bytes(), sealing, mask))
    }

    /// Online: receives the first half of one input.
    pub(crate) fn receive(&self, channel: &mut dyn Channel) -> Result<C0, ProtocolError> {
        // C -> S: first half of an input
        let bytes = channel.receive(kind::LINEAR_INPUT, C0::encoded_len(&self.parameters))?;
        Ok(C0::from_bytes(&self.parameters, &bytes)?)
    }
}
