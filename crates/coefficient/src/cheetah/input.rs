//! How a layer's inputs are sent: first halves modulo `q` in whole, or rounded and where they count.

use lanner_bfv::halves::{C0, C1, InputModulus, PreparedEncryption, PreparedInput};
use lanner_bfv::{BfvError, CoefficientEncoder, NoiseBound, Parameters, SecretKey};
use lanner_primitives::{Prg, Seed, parallel};
use lanner_step::{ProtocolError, Result, kind};
use lanner_wire::{Channel, Encode, Reader, Writer};

/// The form of a layer's inputs.
#[derive(Clone, Debug)]
pub(crate) enum InputForm {
    /// In whole.
    Whole(CoefficientEncoder),
    /// Modulo a power of two.
    Rounded(InputModulus),
}

/// An input but for its message. It serves one.
pub(crate) enum Prepared {
    Whole(PreparedEncryption),
    Rounded(PreparedInput),
}

impl InputForm {
    /// The noise of an input that both parties have added their shares to.
    pub(crate) fn noise(&self) -> NoiseBound {
        match self {
            // The scale of the client's message is rounded once, that of the server's once more.
            Self::Whole(_) => NoiseBound::fresh().plus_plaintext(),
            Self::Rounded(modulus) => modulus.noise(),
        }
    }

    /// Bytes of an input's first half.
    pub(crate) fn encoded_len(&self, parameters: &Parameters) -> usize {
        match self {
            Self::Whole(_) => C0::encoded_len(parameters),
            Self::Rounded(modulus) => modulus.encoded_len(),
        }
    }

    /// The client's preparation of an input.
    pub(crate) fn prepare(&self, key: &SecretKey, rng: &mut Prg) -> Result<(C1, Prepared), BfvError> {
        Ok(match self {
            Self::Whole(_) => {
                let (half, prepared) = key.prepare_encryption(rng);
                (half, Prepared::Whole(prepared))
            }
            Self::Rounded(modulus) => {
                let (half, prepared) = key.prepare_input(modulus, rng)?;
                (half, Prepared::Rounded(prepared))
            }
        })
    }

    /// Reads what [`Prepared::encode`] wrote.
    pub(crate) fn decode(
        &self,
        parameters: &Parameters,
        reader: &mut Reader<'_>,
    ) -> Result<Prepared, BfvError> {
        Ok(match self {
            Self::Whole(_) => Prepared::Whole(PreparedEncryption::decode(parameters, reader)?),
            Self::Rounded(modulus) => Prepared::Rounded(PreparedInput::decode(modulus, reader)?),
        })
    }

    /// The bytes of the first half of the encryption of coefficients.
    pub(crate) fn encrypt(&self, prepared: Prepared, message: &[u64]) -> Result<Vec<u8>> {
        match (self, prepared) {
            (Self::Whole(encoder), Prepared::Whole(prepared)) => {
                Ok(prepared.encrypt(&encoder.encode(message)?)?.to_bytes())
            }
            (Self::Rounded(_), Prepared::Rounded(prepared)) => Ok(prepared.encrypt(message)?),
            _ => Err(ProtocolError::WrongMaterial("material of inputs of another form")),
        }
    }

    /// The server's input: what the client sent, and the server's share.
    pub(crate) fn read(&self, parameters: &Parameters, bytes: &[u8], share: &[u64]) -> Result<C0> {
        match self {
            Self::Whole(encoder) => {
                let mut input = C0::from_bytes(parameters, bytes)?;
                input.add_plain(&encoder.encode(share)?)?;
                Ok(input)
            }
            Self::Rounded(modulus) => Ok(C0::from_rounded(modulus, bytes, share)?),
        }
    }
}

impl Prepared {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        match self {
            Self::Whole(prepared) => prepared.encode(writer),
            Self::Rounded(prepared) => prepared.encode(writer),
        }
    }
}

/// Prepares so many encryptions, each by a generator of its own, and announces their second halves.
pub(crate) fn announce(
    channel: &mut dyn Channel,
    count: usize,
    rng: &mut Prg,
    prepare: impl Fn(usize, &mut Prg) -> Result<(C1, Prepared), BfvError> + Sync,
) -> Result<Vec<Prepared>, ProtocolError> {
    let seeds = parallel::seeds(count, rng);
    let prepare = |(index, seed): (usize, &Seed)| prepare(index, &mut Prg::new(seed.clone()));
    let prepared = parallel::map(seeds.iter().enumerate(), prepare);
    let prepared = prepared.into_iter().collect::<Result<Vec<_>, _>>()?;
    let (announced, encryptions): (Vec<_>, Vec<_>) = prepared.into_iter().unzip();
    // C -> S: seeds of c1
    channel.send(kind::LINEAR_SEEDS, &announced.iter().flat_map(C1::to_bytes).collect::<Vec<_>>())?;
    channel.flush()?;
    Ok(encryptions)
}
