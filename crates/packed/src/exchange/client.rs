//! The client's side.

use lanner_bfv::function_privacy::{SealedC0, SealedC1, half_len};
use lanner_bfv::halves::{C1, PreparedDecryption, PreparedEncryption};
use lanner_bfv::{BfvError, Parameters, SlotEncoder};
use lanner_primitives::{Prg, Seed, Share, parallel};
use lanner_step::encoding::undecodable;
use lanner_step::{Client, Inputs, Result, Step, Value, in_turns, kind};
use lanner_wire::{Channel, DecodeError, Encode, Reader, Writer};
use zeroize::Zeroizing;

/// How the elements of a layer's input and output lie in the slots of ciphertexts.
pub trait SlotEncoding: Send + Sync {
    /// The slots of each input ciphertext that carry `share`.
    ///
    /// # Errors
    /// [`lanner_step::ProtocolError::WrongRing`] or [`lanner_step::ProtocolError::Length`] if the share is not one of the layer's input.
    fn pack(&self, share: &Share) -> Result<Vec<Zeroizing<Vec<u64>>>>;

    /// The share in the slots of the output ciphertexts.
    ///
    /// # Errors
    /// [`lanner_step::ProtocolError::Share`] if a slot is no element of the ring.
    fn unpack(&self, outputs: &[Zeroizing<Vec<u64>>]) -> Result<Share>;
}

/// A layer on slots as the client knows it, whatever the encoding: its work is the same in all.
pub struct ClientLayer<E> {
    encoding: E,
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

impl<E: SlotEncoding> ClientLayer<E> {
    /// A layer of a given number of input and output ciphertexts modulo `prime`.
    pub(crate) fn with(
        encoding: E,
        parameters: &Parameters,
        prime: u64,
        [inputs, outputs]: [usize; 2],
    ) -> Result<Self> {
        let encoder = SlotEncoder::new(parameters, prime)?;
        let half_bytes = half_len(encoder.modulus())?;
        Ok(Self { encoding, encoder, inputs, outputs, half_bytes })
    }

    /// The first half of what it does online: sends its encrypted share of the input.
    ///
    /// # Errors
    /// [`lanner_step::ProtocolError::WrongRing`] or [`lanner_step::ProtocolError::Length`] if `share` does not fit; those of the channel.
    pub fn send(
        &self,
        channel: &mut dyn Channel,
        material: ClientMaterial,
        share: &Share,
    ) -> Result<ClientPending> {
        for (slots, encryption) in self.encoding.pack(share)?.iter().zip(material.encryptions) {
            // C -> S: first half of an input
            let half = encryption.encrypt(&self.encoder.encode(slots)?)?;
            channel.send(kind::LINEAR_INPUT, &half.to_bytes())?;
            // The server reads while the next is encrypted.
            channel.flush()?;
        }
        Ok(ClientPending { decryptions: material.decryptions })
    }

    /// The second half: receives its share of the layer's output.
    ///
    /// # Errors
    /// [`lanner_step::ProtocolError::Channel`] if the peer's message is not the one due.
    pub fn finish(&self, channel: &mut dyn Channel, pending: ClientPending) -> Result<Share> {
        let mut outputs = Vec::with_capacity(self.outputs);
        for decryption in pending.decryptions {
            // S -> C: first half of an output
            let bytes = channel.receive(kind::LINEAR_OUTPUT, self.half_bytes)?;
            let half = SealedC0::from_bytes(self.encoder.modulus(), &bytes)?;
            outputs.push(Zeroizing::new(self.encoder.decode(&decryption.decrypt(&half)?)?));
        }
        self.encoding.unpack(&outputs)
    }

    fn parameters(&self) -> &Parameters {
        self.encoder.modulus().parameters()
    }

    fn read(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, BfvError> {
        let encryption = |_| PreparedEncryption::decode(self.parameters(), reader);
        let encryptions = (0..self.inputs).map(encryption).collect::<Result<_, _>>()?;
        let decryption = |_| PreparedDecryption::decode(self.encoder.modulus(), reader);
        let decryptions = (0..self.outputs).map(decryption).collect::<Result<_, _>>()?;
        Ok(ClientMaterial { encryptions, decryptions })
    }
}

impl<E: SlotEncoding> Step<Client> for ClientLayer<E> {
    type Request = ClientRequest;
    type Material = ClientMaterial;

    fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<ClientRequest> {
        let key = client.keys.of(self.parameters())?;
        let prepare = |seed: &Seed| key.prepare_encryption(&mut Prg::new(seed.clone()));
        let prepared = parallel::map(parallel::seeds(self.inputs, &mut client.rng).iter(), prepare);
        let (announced, encryptions): (Vec<_>, Vec<_>) = prepared.into_iter().unzip();
        // C -> S: seeds of c1
        channel.send(kind::LINEAR_SEEDS, &announced.iter().flat_map(C1::to_bytes).collect::<Vec<_>>())?;
        channel.flush()?;
        Ok(ClientRequest { encryptions })
    }

    fn prepare(
        &self,
        channel: &mut dyn Channel,
        client: &mut Client,
        request: ClientRequest,
        _: &Inputs,
    ) -> Result<(ClientMaterial, Option<Value>)> {
        let key = client.keys.of(self.parameters())?;
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
        Ok((ClientMaterial { encryptions: request.encryptions, decryptions }, None))
    }

    fn encode(&self, material: &ClientMaterial, writer: &mut Writer) {
        material.encryptions.iter().for_each(|encryption| encryption.encode(writer));
        material.decryptions.iter().for_each(|decryption| decryption.encode(writer));
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, DecodeError> {
        self.read(reader).map_err(undecodable)
    }

    fn online(&self, channel: &mut dyn Channel, material: ClientMaterial, inputs: &Inputs) -> Result<Value> {
        let pending = self.send(channel, material, inputs.share()?)?;
        self.finish(channel, pending).map(Value::Shared)
    }
}
