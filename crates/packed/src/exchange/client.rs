//! The client's side.

use lanner_bfv::function_privacy::{SealedC0, SealedC1, half_len};
use lanner_bfv::halves::{C1, PreparedDecryption, PreparedEncryption};
use lanner_bfv::{BfvError, Parameters, SecretKey, SlotEncoder};
use lanner_primitives::{Prg, Seed, Share, parallel};
use lanner_step::encoding::undecodable;
use lanner_step::{Client, Inputs, ProtocolError, Step, Value, in_turns, kind};
use lanner_wire::{Channel, DecodeError, Encode, Reader, Writer};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::OfSet;

/// The ciphertexts of a protocol as the client knows them.
struct ClientExchange {
    encoder: SlotEncoder,
    inputs: usize,
    outputs: usize,
    /// Bytes of either half of an output ciphertext.
    half_bytes: usize,
}

/// Encryptions whose second halves were announced; the server's answer is still to be received.
pub struct ClientRequest {
    encryptions: Vec<PreparedEncryption>,
}

/// One-time material of a layer: all of its encryptions and decryptions but the messages.
///
/// It is used up by value and cannot be copied:
///
/// ```compile_fail
/// fn twice(material: lanner_packed::gazelle::ClientMaterial) {
///     let copy = material.clone();
/// }
/// ```
pub struct ClientMaterial {
    encryptions: Vec<PreparedEncryption>,
    decryptions: Vec<PreparedDecryption>,
}

/// The rest of a layer's material, once the input is sent.
pub struct ClientPending {
    decryptions: Vec<PreparedDecryption>,
}

impl ClientMaterial {
    fn encode(&self, writer: &mut Writer) {
        self.encryptions.iter().for_each(|encryption| encryption.encode(writer));
        self.decryptions.iter().for_each(|decryption| decryption.encode(writer));
    }
}

impl ClientExchange {
    /// A given number of input and output ciphertexts modulo `prime`.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the prime does not fit the parameters.
    fn new(
        parameters: &Parameters,
        prime: u64,
        [inputs, outputs]: [usize; 2],
    ) -> Result<Self, ProtocolError> {
        let encoder = SlotEncoder::new(parameters, prime)?;
        let half_bytes = half_len(encoder.modulus())?;
        Ok(Self { encoder, inputs, outputs, half_bytes })
    }

    /// Offline, first half: announces the second halves of the encryptions to come.
    fn request(
        &self,
        channel: &mut dyn Channel,
        key: &SecretKey,
        rng: &mut impl CryptoRng,
    ) -> Result<ClientRequest, ProtocolError> {
        let prepare = |seed: &Seed| key.prepare_encryption(&mut Prg::new(seed.clone()));
        let prepared = parallel::map(parallel::seeds(self.inputs, rng).iter(), prepare);
        let (announced, encryptions): (Vec<_>, Vec<_>) = prepared.into_iter().unzip();
        // C -> S: seeds of c1
        channel.send(kind::LINEAR_SEEDS, &announced.iter().flat_map(C1::to_bytes).collect::<Vec<_>>())?;
        channel.flush()?;
        Ok(ClientRequest { encryptions })
    }

    /// Offline, second half: receives the second halves of the outputs.
    fn receive(
        &self,
        channel: &mut dyn Channel,
        key: &SecretKey,
        request: ClientRequest,
    ) -> Result<ClientMaterial, ProtocolError> {
        let mut decryptions = Vec::with_capacity(self.outputs);
        for numbers in in_turns(self.outputs) {
            // S -> C: second half of an output
            let receive = |_| channel.receive(kind::LINEAR_SECOND_HALF, self.half_bytes);
            let received = numbers.map(receive).collect::<Result<Vec<_>, _>>()?;
            let prepared = parallel::map(received, |bytes| {
                let half = SealedC1::from_bytes(self.encoder.modulus(), &bytes)?;
                key.prepare_decryption(half)
            });
            for decryption in prepared {
                decryptions.push(decryption?);
            }
        }
        Ok(ClientMaterial { encryptions: request.encryptions, decryptions })
    }

    /// Reads what [`ClientMaterial::encode`] wrote.
    fn decode(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, BfvError> {
        let modulus = self.encoder.modulus();
        let encryption = |_| PreparedEncryption::decode(modulus.parameters(), reader);
        let encryptions = (0..self.inputs).map(encryption).collect::<Result<_, _>>()?;
        let decryption = |_| PreparedDecryption::decode(modulus, reader);
        let decryptions = (0..self.outputs).map(decryption).collect::<Result<_, _>>()?;
        Ok(ClientMaterial { encryptions, decryptions })
    }

    /// Online: sends the slots of every input.
    fn send(
        &self,
        channel: &mut dyn Channel,
        material: ClientMaterial,
        slots: &[Zeroizing<Vec<u64>>],
    ) -> Result<ClientPending, ProtocolError> {
        for (slots, encryption) in slots.iter().zip(material.encryptions) {
            // C -> S: first half of an input
            let half = encryption.encrypt(&self.encoder.encode(slots)?)?;
            channel.send(kind::LINEAR_INPUT, &half.to_bytes())?;
            // The server reads while the next is encrypted.
            channel.flush()?;
        }
        Ok(ClientPending { decryptions: material.decryptions })
    }

    /// Online: receives the slots of every output.
    fn finish(
        &self,
        channel: &mut dyn Channel,
        pending: ClientPending,
    ) -> Result<Vec<Zeroizing<Vec<u64>>>, ProtocolError> {
        let mut outputs = Vec::with_capacity(self.outputs);
        for decryption in pending.decryptions {
            // S -> C: first half of an output
            let bytes = channel.receive(kind::LINEAR_OUTPUT, self.half_bytes)?;
            let half = SealedC0::from_bytes(self.encoder.modulus(), &bytes)?;
            outputs.push(Zeroizing::new(self.encoder.decode(&decryption.decrypt(&half)?)?));
        }
        Ok(outputs)
    }
}

/// How the elements of a layer's input and output lie in the slots of ciphertexts.
pub trait SlotEncoding: Send + Sync {
    /// The slots of each input ciphertext that carry `share`.
    ///
    /// # Errors
    /// [`ProtocolError::WrongRing`] or [`ProtocolError::Length`] if the share is not one of the layer's input.
    fn pack(&self, share: &Share) -> Result<Vec<Zeroizing<Vec<u64>>>, ProtocolError>;

    /// The share in the slots of the output ciphertexts.
    ///
    /// # Errors
    /// [`ProtocolError::Share`] if a slot is no element of the ring.
    fn unpack(&self, outputs: &[Zeroizing<Vec<u64>>]) -> Result<Share, ProtocolError>;
}

/// A layer on slots as the client knows it, whatever the encoding: its work is the same in all.
pub struct ClientLayer<E> {
    encoding: E,
    exchange: ClientExchange,
}

impl<E: SlotEncoding> ClientLayer<E> {
    /// A layer of a given number of input and output ciphertexts modulo `prime`.
    pub(crate) fn with(
        encoding: E,
        parameters: &Parameters,
        prime: u64,
        ciphertexts: [usize; 2],
    ) -> Result<Self, ProtocolError> {
        Ok(Self { encoding, exchange: ClientExchange::new(parameters, prime, ciphertexts)? })
    }

    /// Offline, first half: announces the second halves of the encryptions to come. All layers may do so before the
    /// first receives.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn request(
        &self,
        channel: &mut dyn Channel,
        key: &SecretKey,
        rng: &mut impl CryptoRng,
    ) -> Result<ClientRequest, ProtocolError> {
        self.exchange.request(channel, key, rng)
    }

    /// Offline, second half: receives the second halves of the outputs, in the order of the requests.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's message is not the one due.
    pub fn receive(
        &self,
        channel: &mut dyn Channel,
        key: &SecretKey,
        request: ClientRequest,
    ) -> Result<ClientMaterial, ProtocolError> {
        self.exchange.receive(channel, key, request)
    }

    /// Online: sends the encrypted share, receives the client's share of the layer's output.
    ///
    /// # Errors
    /// [`ProtocolError::Channel`] if the peer's message is not the one due; [`ProtocolError::WrongRing`] or [`ProtocolError::Length`] if `share` does
    /// not fit.
    pub fn online(
        &self,
        channel: &mut dyn Channel,
        material: ClientMaterial,
        share: &Share,
    ) -> Result<Share, ProtocolError> {
        let pending = self.send(channel, material, share)?;
        self.finish(channel, pending)
    }

    /// The first half of [`Self::online`].
    ///
    /// # Errors
    /// As [`Self::online`].
    pub fn send(
        &self,
        channel: &mut dyn Channel,
        material: ClientMaterial,
        share: &Share,
    ) -> Result<ClientPending, ProtocolError> {
        self.exchange.send(channel, material, &self.encoding.pack(share)?)
    }

    /// The second half of [`Self::online`].
    ///
    /// # Errors
    /// As [`Self::online`].
    pub fn finish(&self, channel: &mut dyn Channel, pending: ClientPending) -> Result<Share, ProtocolError> {
        self.encoding.unpack(&self.exchange.finish(channel, pending)?)
    }
}

impl<E: SlotEncoding> Step<Client> for OfSet<ClientLayer<E>> {
    type Request = ClientRequest;
    type Material = ClientMaterial;

    fn request(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
    ) -> Result<ClientRequest, ProtocolError> {
        self.layer.request(channel, client.keys.get(self.set)?, &mut client.rng)
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        request: ClientRequest,
        _: &Inputs,
    ) -> Result<(ClientMaterial, Option<Value>), ProtocolError> {
        Ok((self.layer.receive(channel, client.keys.get(self.set)?, request)?, None))
    }

    fn encode(&self, material: &ClientMaterial, writer: &mut Writer) {
        material.encode(writer);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, DecodeError> {
        self.layer.exchange.decode(reader).map_err(undecodable)
    }

    fn online(
        &self,
        channel: &mut dyn Channel,
        material: ClientMaterial,
        inputs: &Inputs,
    ) -> Result<Value, ProtocolError> {
        self.layer.online(channel, material, inputs.share()?).map(Value::Shared)
    }
}
