//! First halves of coefficient encodings modulo a power of two, at the coefficients that count.
//!
//! A message modulo `2^l` lies in `c0 = -a s + e + (q / 2^l) m`. Modulo `2^b` in place of `q` it is `2^(b-l) m`, exactly, so the client
//! rounds `-a s + e` to `b` bits ahead of time and adds its message when it comes; the server adds its own share, and goes back to `q`:
//!
//! ```text
//! C: y = round(2^b (e - a s) / q) + 2^(b-l) m_C mod 2^b        S: c0 = round(q (y + 2^(b-l) m_S) / 2^b) mod q
//! ```
//!
//! The first rounding adds noise of `q / 2^b` times a fraction, the second a fraction. What is sent is a function of what the whole half
//! would be, so it hides as much. A coefficient that is not sent is read as zero: no product that counts may read it.

use std::ops::Range;

use lanner_primitives::{Prg, Seed};
use lanner_ring::{Coeff, Eval, Poly, Shoup, sample};
use lanner_wire::{Reader, Writer, pack_bits, packed_len, unpack_bits};
use rand_core::CryptoRng;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::{C0, C1};
use crate::switch::{NARROW, PowerSwitch, mask};
use crate::{BfvError, NoiseBound, Parameters, SecretKey};

/// The modulus `2^b` of first halves with messages modulo `2^l`, and the coefficients that are sent of each.
#[derive(Clone, Debug)]
pub struct InputModulus {
    parameters: Parameters,
    message_bits: u32,
    bits: u32,
    /// Coefficients from the first on, and others up to the last.
    sent: [usize; 2],
    switch: PowerSwitch,
    /// `q mod 2^b`.
    residue: u64,
    /// For each limb `2^-b mod q_i`.
    inverses: Vec<Shoup>,
}

/// All of a first half but its message. It serves one message and cannot be cloned.
#[derive(ZeroizeOnDrop)]
pub struct PreparedInput {
    #[zeroize(skip)]
    modulus: InputModulus,
    values: Zeroizing<Vec<u64>>,
}

impl InputModulus {
    /// The most bits `b`.
    pub const MOST_BITS: u32 = 62;

    /// Halves of which the first `sent[0]` coefficients are sent and the last `sent[1]`, or all if those are as many.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] for more than three limbs, or unless `1 <= message_bits <= bits <= 62`.
    pub fn new(
        parameters: &Parameters,
        message_bits: u32,
        bits: u32,
        [head, tail]: [usize; 2],
    ) -> Result<Self, BfvError> {
        if !(1..=bits).contains(&message_bits) || bits > Self::MOST_BITS {
            return Err(BfvError::Mismatch { what: "bits of rounded first halves" });
        }
        let degree = parameters.degree();
        let sent = if head + tail < degree { [head, tail] } else { [degree, 0] };
        let moduli = parameters.moduli();
        let residue = moduli.iter().fold(1_u64, |product, q| product.wrapping_mul(q.value()));
        Ok(Self {
            parameters: parameters.clone(),
            message_bits,
            bits,
            sent,
            switch: PowerSwitch::new(parameters)?,
            residue: residue & mask(bits) as u64,
            inverses: moduli.iter().map(|q| q.shoup(q.inverse(q.reduce(1 << bits)))).collect(),
        })
    }

    /// The noise of an encryption whose first half came so.
    #[must_use]
    pub fn noise(&self) -> NoiseBound {
        NoiseBound::fresh().plus(NoiseBound::rounding_to(&self.parameters, self.bits))
    }

    /// Bytes of a half.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        packed_len(self.count(), self.bits)
    }

    /// Coefficients that are sent.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sent.iter().sum()
    }

    /// Their places.
    fn places(&self) -> [Range<usize>; 2] {
        let degree = self.parameters.degree();
        [0..self.sent[0], degree - self.sent[1]..degree]
    }

    /// A message modulo `2^l` modulo `2^b`.
    const fn scale(&self, message: u64) -> u64 {
        message << (self.bits - self.message_bits)
    }

    /// `round(q y / 2^b)` for every `y` below `2^b`.
    fn lift(&self, values: &[u64]) -> Poly<Coeff> {
        // With r the remainder of least magnitude, q y = 2^b x + r, and q = 0 modulo each limb: x = -r 2^-b. A half is added to -r, and
        // its quotient, which is that of one by two, is taken off.
        let (unused, half) = (64 - self.bits, 1_u64 << (self.bits - 1));
        let shifted = |y: &u64| {
            let remainder = (self.residue.wrapping_mul(*y) << unused) as i64 >> unused;
            half.wrapping_sub(remainder as u64)
        };
        let shifted: Zeroizing<Vec<u64>> = Zeroizing::new(values.iter().map(shifted).collect());
        let mut poly = Poly::zero(&self.parameters.basis(self.parameters.limbs()));
        for ((limb, q), inverse) in poly.limbs_mut().zip(self.parameters.moduli()).zip(&self.inverses) {
            q.reduce_slice(limb, &shifted);
            q.mul_scalar_slice(limb, *inverse);
            let by_two = q.value().div_ceil(2);
            for value in limb {
                *value = q.sub(*value, by_two);
            }
        }
        poly
    }
}

impl SecretKey {
    /// Prepares an encryption, whose second half is to be announced and whose first half will be rounded.
    ///
    /// # Errors
    /// [`BfvError::Mismatch`] for other parameters.
    pub fn prepare_input(
        &self,
        modulus: &InputModulus,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(C1, PreparedInput), BfvError> {
        let parameters = self.parameters();
        parameters.check_same(&modulus.parameters)?;
        let basis = parameters.basis(parameters.limbs());
        let seed = Seed::random(rng);
        let mut product: Poly<Eval> = sample::uniform(&basis, &mut Prg::new(seed.clone()));
        self.multiply(&mut product);
        let mut body = sample::error(&basis, rng);
        body.sub_assign(&product.into_coeff());
        let mut values = Zeroizing::new(Vec::with_capacity(modulus.count()));
        if modulus.bits <= NARROW {
            let all = modulus.switch.residues(&body, modulus.bits);
            modulus.places().into_iter().for_each(|range| values.extend_from_slice(&all[range]));
        } else {
            let residue = |i| modulus.switch.residue(&body, i, modulus.bits) as u64;
            values.extend(modulus.places().into_iter().flatten().map(residue));
        }
        Ok((C1::of(seed), PreparedInput { modulus: modulus.clone(), values }))
    }
}

impl PreparedInput {
    /// The bytes of the first half of the encryption of `N` coefficients modulo `2^l`, those that are not sent being zero.
    ///
    /// # Errors
    /// [`BfvError::Length`] unless there are `N`.
    pub fn encrypt(mut self, message: &[u64]) -> Result<Vec<u8>, BfvError> {
        let (expected, got) = (self.modulus.parameters.degree(), message.len());
        if expected != got {
            return Err(BfvError::Length { expected, got });
        }
        let [head, tail] = self.modulus.places();
        let sent = message[head].iter().chain(&message[tail]);
        for (value, message) in self.values.iter_mut().zip(sent) {
            *value = value.wrapping_add(self.modulus.scale(*message));
        }
        Ok(pack_bits(&self.values, self.modulus.bits))
    }

    /// Appends it. The bytes serve one message, as it does, and tell who has them that message.
    pub fn encode(&self, writer: &mut Writer) {
        writer.bytes(&Zeroizing::new(pack_bits(&self.values, self.modulus.bits)));
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// [`BfvError::Decode`] if bytes are missing or padding is set.
    pub fn decode(modulus: &InputModulus, reader: &mut Reader<'_>) -> Result<Self, BfvError> {
        let bytes = reader.bytes(modulus.encoded_len())?;
        let values = Zeroizing::new(unpack_bits(bytes, modulus.count(), modulus.bits)?);
        Ok(Self { modulus: modulus.clone(), values })
    }
}

impl C0 {
    /// The half that [`PreparedInput::encrypt`] sent, with `N` more coefficients modulo `2^l` added to its message.
    ///
    /// # Errors
    /// [`BfvError::Decode`] unless the bytes are a half's; [`BfvError::Length`] unless there are `N` coefficients.
    pub fn from_rounded(modulus: &InputModulus, bytes: &[u8], more: &[u64]) -> Result<Self, BfvError> {
        let (expected, got) = (modulus.parameters.degree(), more.len());
        if expected != got {
            return Err(BfvError::Length { expected, got });
        }
        let sent = unpack_bits(bytes, modulus.count(), modulus.bits)?;
        let mut values = Zeroizing::new(vec![0_u64; expected]);
        let [head, tail] = modulus.places();
        let (first, last) = sent.split_at(head.len());
        values[head].copy_from_slice(first);
        values[tail].copy_from_slice(last);
        let mask = mask(modulus.bits) as u64;
        for (value, more) in values.iter_mut().zip(more) {
            *value = value.wrapping_add(modulus.scale(*more)) & mask;
        }
        let noise = NoiseBound::rounding_to(&modulus.parameters, modulus.bits);
        Ok(Self { c0: modulus.lift(&values).into_eval(), noise })
    }
}
