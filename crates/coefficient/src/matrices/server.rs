//! The server's side of a product of matrices.

use lanner_bfv::function_privacy::PhaseSealing;
use lanner_bfv::halves::{C0, C1};
use lanner_bfv::{BfvError, Ciphertext, CoefficientFactor, PublicKey};
use lanner_primitives::{Prg, Seed, Share, parallel};
use lanner_step::encoding::undecodable;
use lanner_step::{Answer, Asked, Inputs, ProtocolError, Result, Value, in_turns, kind};
use lanner_wire::{Channel, DecodeError, Encode, Reader, Writer};
use zeroize::Zeroizing;

use super::scheme::{Places, Scheme};
use crate::cheetah::{coefficients, scattered};

/// A product as the server runs it.
pub struct ServerProduct {
    scheme: Scheme,
    places: Places,
}

/// One-time material of one run: the client's seeds, its key, and what each answer's blinding and masks are drawn from.
pub struct ServerMaterial {
    announced: Zeroizing<Vec<u8>>,
    key: PublicKey,
    seeds: Vec<Seed>,
}

/// A pair of matrices at the server: what the client sent, and the server's shares as polynomials.
struct Pair {
    ahead: [Vec<Ciphertext>; 2],
    inputs: [Vec<C0>; 2],
    shares: [Vec<CoefficientFactor>; 2],
}

impl ServerProduct {
    /// Lays the product out.
    #[must_use]
    pub fn new(scheme: Scheme) -> Self {
        Self { places: scheme.places(), scheme }
    }

    /// Receives a pair of matrices, and makes what is multiplied.
    fn receive(
        &self,
        channel: &mut dyn Channel,
        halves: &[u8],
        factors: [&Share; 2],
        group: usize,
    ) -> Result<Pair> {
        let Scheme { parameters, inputs: forms, bits, shape, .. } = &self.scheme;
        let mut halves = halves.chunks_exact(C1::ENCODED_LEN);
        let mut pair =
            Pair { ahead: Default::default(), inputs: Default::default(), shares: Default::default() };
        for (side, (form, all)) in forms.iter().zip(&self.places.inputs).enumerate() {
            let size = shape.sides()[side];
            let values = &factors[side].values()[group * size..(group + 1) * size];
            for numbers in in_turns(all.len()) {
                // C -> S: c0 of a part of a matrix
                let receive = |_| channel.receive(kind::LINEAR_INPUT, form.encoded_len(parameters));
                let received = numbers.clone().map(receive).collect::<Result<Vec<_>, _>>()?;
                let tasks = received.into_iter().zip(halves.by_ref()).zip(&all[numbers]);
                let made = parallel::map(tasks, |((bytes, half), places)| {
                    let share = scattered(places, values, parameters.degree());
                    let nothing = vec![0; if side == 0 { 0 } else { parameters.degree() }];
                    // What is added to the left matrix makes its product with the server's right one whole.
                    let added = if side == 0 { &share[..] } else { &nothing[..] };
                    let ahead = C1::from_bytes(half)?.expand(parameters);
                    let input = form.read(parameters, &bytes, added)?;
                    let factor = CoefficientFactor::of_residues(parameters, &share, *bits)?;
                    Ok::<_, ProtocolError>((ahead, input, factor))
                });
                for made in made {
                    let (ahead, input, factor) = made?;
                    pair.ahead[side].push(ahead);
                    pair.inputs[side].push(input);
                    pair.shares[side].push(factor);
                }
            }
        }
        Ok(pair)
    }

    /// Sends a pair's answers, and adds what hides them to the server's shares.
    fn answer(
        &self,
        channel: &mut dyn Channel,
        pair: &Pair,
        key: &PublicKey,
        seeds: &[Seed],
        values: &mut [u64],
    ) -> Result<()> {
        let Scheme { modulus, noise, norm, .. } = &self.scheme;
        for numbers in in_turns(seeds.len()) {
            let made = parallel::map(numbers.clone(), |number| {
                let (wanted, rng) = (&self.places.outputs[number], &mut Prg::new(seeds[number].clone()));
                let factors = self.beside(&pair.shares, number, true);
                let ahead = self.beside(&pair.ahead, number, false);
                let evaluated = Ciphertext::inner_product_ahead_of(&ahead, &factors, *norm)?;
                let (second, sealing) =
                    PhaseSealing::new(modulus, &evaluated, key, *noise, wanted.len(), rng)?;
                let shares = sealing.shares();
                let inputs = self.beside(&pair.inputs, number, false);
                let evaluated = C0::inner_product_of(&inputs, &factors, *norm)?;
                Ok::<_, ProtocolError>((second, sealing.seal(&evaluated, &coefficients(wanted))?, shares))
            });
            for (made, number) in made.into_iter().zip(numbers) {
                let (second, first, shares) = made?;
                // S -> C: c1 of an answer, and its c0 where it holds a product
                channel.send(kind::LINEAR_SECOND_HALF, &second)?;
                channel.send(kind::LINEAR_OUTPUT, &first)?;
                for ((_, element), share) in self.places.outputs[number].iter().zip(shares.iter()) {
                    values[*element] = *share;
                }
            }
            channel.flush()?;
        }
        Ok(())
    }

    /// What an answer is made of: parts of the left matrix and of the right one, or the right one's first, which are what multiplies them.
    fn beside<'t, T>(&self, [left, right]: &'t [Vec<T>; 2], answer: usize, is_crossed: bool) -> Vec<&'t T> {
        let [in_blocks, out_blocks] = self.scheme.packing.per_bundle();
        let (tile, block) = (answer / out_blocks, answer % out_blocks);
        let left = &left[tile * in_blocks..(tile + 1) * in_blocks];
        let right = &right[block * in_blocks..(block + 1) * in_blocks];
        let [first, second] = if is_crossed { [right, left] } else { [left, right] };
        first.iter().chain(second).collect()
    }

    /// Answers of all pairs.
    fn answers(&self) -> usize {
        self.scheme.shape.groups * self.places.outputs.len()
    }

    /// Bytes of the seeds of all pairs.
    fn announced_len(&self) -> usize {
        let of_pair: usize = self.places.inputs.iter().map(Vec::len).sum();
        self.scheme.shape.groups * of_pair * C1::ENCODED_LEN
    }

    fn read(&self, reader: &mut Reader<'_>) -> Result<ServerMaterial, BfvError> {
        let announced = Zeroizing::new(reader.bytes(self.announced_len())?.to_vec());
        let key = PublicKey::decode(&self.scheme.parameters, reader)?;
        let seed = |_| Ok::<_, BfvError>(Seed::from_bytes(reader.array()?));
        Ok(ServerMaterial { announced, key, seeds: (0..self.answers()).map(seed).collect::<Result<_, _>>()? })
    }
}

impl Answer for ServerProduct {
    type Material = ServerMaterial;

    fn prepare(&self, Asked { channel, server, .. }: Asked<'_>) -> Result<(ServerMaterial, Option<Value>)> {
        let key = server.keys.of(&self.scheme.parameters)?.public.clone();
        // C -> S: seeds of c1
        let announced = channel.receive(kind::LINEAR_SEEDS, self.announced_len())?;
        let seeds = (0..self.answers()).map(|_| Seed::random(&mut server.rng)).collect();
        Ok((ServerMaterial { announced: Zeroizing::new(announced), key, seeds }, None))
    }

    fn encode(&self, material: &ServerMaterial, writer: &mut Writer) {
        writer.bytes(&material.announced);
        material.key.encode(writer);
        material.seeds.iter().for_each(|seed| writer.bytes(seed.as_bytes()));
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<ServerMaterial, DecodeError> {
        self.read(reader).map_err(undecodable)
    }

    fn online(&self, channel: &mut dyn Channel, material: ServerMaterial, inputs: &Inputs) -> Result<Value> {
        let ServerMaterial { announced, key, seeds } = material;
        let factors = self.scheme.factors(&inputs.shares()?)?;
        let (size, outputs) = (self.scheme.shape.product(), self.places.outputs.len());
        let mut values = Zeroizing::new(vec![0_u64; self.scheme.shape.groups * size]);
        let halves = announced.chunks_exact(self.announced_len() / self.scheme.shape.groups);
        for (group, (halves, seeds)) in halves.zip(seeds.chunks_exact(outputs)).enumerate() {
            let pair = self.receive(channel, halves, factors, group)?;
            let values = &mut values[group * size..(group + 1) * size];
            self.answer(channel, &pair, &key, seeds, values)?;
        }
        Ok(Value::Shared(Share::new(self.scheme.ring(), std::mem::take(&mut values))?))
    }
}
