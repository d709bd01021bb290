//! The client's side of a product of matrices.

use lanner_bfv::{BfvError, SecretKey};
use lanner_primitives::{Prg, Ring, Share, parallel};
use lanner_step::encoding::undecodable;
use lanner_step::{Client, Inputs, ProtocolError, Result, Step, Value, in_turns, kind};
use lanner_wire::{Channel, DecodeError, Reader, Writer};
use zeroize::Zeroizing;

use super::scheme::{Places, Scheme, Shape};
use crate::cheetah::{Prepared, announce, coefficients, scattered};

/// A product as the client runs it.
pub struct ClientProduct {
    scheme: Scheme,
    places: Places,
}

/// Encryptions whose second halves were announced, pair by pair: of the left matrix, then of the right one.
pub struct ClientRequest(Vec<Prepared>);

/// One-time material of one run, and the key that opens the answers.
pub struct ClientMaterial {
    key: SecretKey,
    encryptions: Vec<Prepared>,
}

impl ClientProduct {
    /// Lays the product out.
    #[must_use]
    pub fn new(scheme: Scheme) -> Self {
        Self { places: scheme.places(), scheme }
    }

    fn send(
        &self,
        channel: &mut dyn Channel,
        encryptions: Vec<Prepared>,
        factors: [&Share; 2],
    ) -> Result<()> {
        let mut encryptions = encryptions.into_iter();
        for group in 0..self.scheme.shape.groups {
            for (side, factor) in factors.iter().enumerate() {
                let size = self.scheme.shape.sides()[side];
                let values = &factor.values()[group * size..(group + 1) * size];
                for (places, encryption) in self.places.inputs[side].iter().zip(encryptions.by_ref()) {
                    let message = scattered(places, values, self.scheme.parameters.degree());
                    // C -> S: c0 of a part of a matrix
                    channel
                        .send(kind::LINEAR_INPUT, &self.scheme.inputs[side].encrypt(encryption, &message)?)?;
                }
            }
        }
        Ok(channel.flush()?)
    }

    /// Adds what the server's answers give to the shares.
    fn open(&self, channel: &mut dyn Channel, key: &SecretKey, values: &mut [u64]) -> Result<()> {
        let (modulus, ring, outputs) = (&self.scheme.modulus, self.scheme.ring(), &self.places.outputs);
        let size = self.scheme.shape.product();
        for numbers in in_turns(self.scheme.shape.groups * outputs.len()) {
            let mut received = Vec::with_capacity(numbers.len());
            for number in numbers.clone() {
                let count = outputs[number % outputs.len()].len();
                // S -> C: c1 of an answer, and its c0 where it holds a product
                let second = channel.receive(kind::LINEAR_SECOND_HALF, modulus.second_half_len())?;
                received.push((number, second, channel.receive(kind::LINEAR_OUTPUT, modulus.c0_len(count))?));
            }
            let opened = parallel::map(received, |(number, second, first)| {
                let wanted = &outputs[number % outputs.len()];
                let phase = key.prepare_phase(modulus, &second, &coefficients(wanted))?;
                Ok::<_, ProtocolError>((number, phase.open(&first)?))
            });
            for opened in opened {
                let (number, shares) = opened?;
                let (group, wanted) = (number / outputs.len(), &outputs[number % outputs.len()]);
                for ((_, element), share) in wanted.iter().zip(shares.iter()) {
                    let value = &mut values[group * size + element];
                    *value = ring.add(*value, *share);
                }
            }
        }
        Ok(())
    }

    /// Which matrix each ciphertext of a pair is of.
    fn forms(&self) -> Vec<usize> {
        let sides = self.places.inputs.iter().enumerate();
        sides.flat_map(|(side, ciphertexts)| std::iter::repeat_n(side, ciphertexts.len())).collect()
    }

    fn read(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, BfvError> {
        let parameters = &self.scheme.parameters;
        let key = SecretKey::decode(parameters, reader)?;
        let forms = self.forms();
        let read = |index: usize| self.scheme.inputs[forms[index % forms.len()]].decode(parameters, reader);
        let encryptions = (0..self.scheme.shape.groups * forms.len()).map(read);
        Ok(ClientMaterial { key, encryptions: encryptions.collect::<Result<_, _>>()? })
    }
}

impl Step<Client> for ClientProduct {
    type Request = ClientRequest;
    type Material = ClientMaterial;

    fn request(&self, channel: &mut dyn Channel, client: &mut Client) -> Result<ClientRequest> {
        let key = client.keys.of(&self.scheme.parameters)?;
        let forms = self.forms();
        let count = self.scheme.shape.groups * forms.len();
        let prepare = |index: usize, rng: &mut Prg| {
            let side: usize = forms[index % forms.len()];
            self.scheme.inputs[side].prepare(key, rng)
        };
        announce(channel, count, &mut client.rng, prepare).map(ClientRequest)
    }

    fn prepare(
        &self,
        _: &mut dyn Channel,
        client: &mut Client,
        ClientRequest(encryptions): ClientRequest,
        _: &Inputs,
    ) -> Result<(ClientMaterial, Option<Value>)> {
        let key = client.keys.of(&self.scheme.parameters)?.copied();
        Ok((ClientMaterial { key, encryptions }, None))
    }

    fn encode(&self, material: &ClientMaterial, writer: &mut Writer) {
        material.key.encode(writer);
        material.encryptions.iter().for_each(|encryption| encryption.encode(writer));
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ClientMaterial, DecodeError> {
        self.read(reader).map_err(undecodable)
    }

    fn online(&self, channel: &mut dyn Channel, material: ClientMaterial, inputs: &Inputs) -> Result<Value> {
        let factors = self.scheme.factors(&inputs.shares()?)?;
        self.send(channel, material.encryptions, factors)?;
        let mut values = own_products(self.scheme.shape, factors, self.scheme.guard);
        self.open(channel, &material.key, &mut values)?;
        Ok(Value::Shared(Share::new(self.scheme.ring(), std::mem::take(&mut values))?))
    }
}

/// The products of a party's own shares, `2^guard` times, modulo any power of two: the ring's sums cut them.
fn own_products(shape: Shape, [left, right]: [&Share; 2], guard: u32) -> Zeroizing<Vec<u64>> {
    let [of_left, of_right] = shape.sides();
    let pairs = left.values().chunks_exact(of_left).zip(right.values().chunks_exact(of_right));
    let products = parallel::map(pairs, |(left, right)| {
        let mut products = Zeroizing::new(vec![0_u64; shape.product()]);
        for (row, sums) in left.chunks_exact(shape.inner).zip(products.chunks_exact_mut(shape.columns)) {
            for (x, line) in row.iter().zip(right.chunks_exact(shape.columns)) {
                sums.iter_mut().zip(line).for_each(|(sum, y)| *sum = sum.wrapping_add(x.wrapping_mul(*y)));
            }
        }
        products
    });
    let mut all = Zeroizing::new(Vec::with_capacity(shape.groups * shape.product()));
    let Ring::Pow2(bits) = left.ring() else { return all };
    let mask = (1_u64 << bits) - 1;
    for products in products {
        all.extend(products.iter().map(|product| (product & mask) << guard));
    }
    all
}
