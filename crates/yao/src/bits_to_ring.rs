//! From XOR-shared bits to an additive share, in one message of one bit per bit.
//!
//! A value is `sum_i 2^i (a_i xor b_i)` (its last term negative in two's complement); the server knows its bits `a_i` ahead of time, the
//! client learns its bits `b_i` online. Since `a xor b = a + b - 2ab`, only the products are missing. Offline, correlated
//! oblivious transfer gives shares `u_i + v_i = a_i r_i` for random choices `r_i` of the client. Online the client sends
//! `e_i = b_i xor r_i`, uniform to the server, and `a_i b_i = a_i e_i + (1 - 2 e_i) a_i r_i` is linear in what each party
//! holds. Neither party learns anything but uniform bits and shares. Semi-honest.

use lanner_primitives::{Bits, Ring, Share, parallel};
use lanner_step::encoding::{read_bits, read_elements, write_bits, write_elements};
use lanner_step::{ProtocolError, Result};
use lanner_wire::{DecodeError, Reader, Writer};
use zeroize::Zeroizing;

/// How a value's bits, least significant first, encode it in the target ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitEncoding {
    /// The target ring.
    pub ring: Ring,
    /// Bits of a value, at least one.
    pub bits: usize,
    /// Whether the last bit's weight is negative (two's complement).
    pub signed: bool,
}

impl BitEncoding {
    /// The weighted sum of each value's terms. They are integers congruent to the ring's elements, over `Z_p` below `8p`: sums are
    /// reduced only where a word ends.
    fn combine(self, values: usize, term: impl Fn(usize) -> u64 + Send + Sync) -> Vec<u64> {
        let ring = self.ring;
        let (one, doublings) = (ring.factor(1), doublings(ring));
        let value = |index: usize| {
            let (first, last) = (index * self.bits, (index + 1) * self.bits - 1);
            let top = one.times(term(last));
            let (mut sum, mut left) = (if self.signed { ring.neg(top) } else { top }, doublings);
            for i in (first..last).rev() {
                if left == 0 {
                    (sum, left) = (one.times(sum), doublings);
                }
                sum = sum.wrapping_add(sum).wrapping_add(term(i));
                left -= 1;
            }
            one.times(sum)
        };
        let mut combined = vec![0; values];
        parallel::for_each(combined.chunks_mut(RUN).enumerate(), |(number, run)| {
            for (index, combined) in (number * RUN..).zip(run) {
                *combined = value(index);
            }
        });
        combined
    }

    /// Number of values that `held` bits encode, if `given` is as many.
    fn values(self, held: usize, given: usize) -> Result<usize> {
        ProtocolError::refuse_if(doublings(self.ring) == 0, "a prime of that many bits in a conversion")?;
        ProtocolError::check_length("masked bits of a conversion", held, given)?;
        ProtocolError::refuse_if(self.bits == 0 || !held.is_multiple_of(self.bits), "bits of a conversion")?;
        Ok(held / self.bits)
    }
}

/// The server's one-time material: its bits and its shares of the products.
pub struct ServerBits {
    bits: Bits,
    products: Zeroizing<Vec<u64>>,
}

/// The client's one-time material: its random choices and its shares of the products.
pub struct ClientBits {
    choices: Bits,
    products: Zeroizing<Vec<u64>>,
}

impl ServerBits {
    /// Takes the server's bits `a` and shares `u` of `a_i r_i`, as many as bits.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if the lengths differ.
    pub fn new(bits: Bits, products: Zeroizing<Vec<u64>>) -> Result<Self> {
        ProtocolError::check_length("products of bits", bits.len(), products.len())?;
        Ok(Self { bits, products })
    }

    /// Appends it; the products are elements of the ring.
    pub(crate) fn encode(&self, ring: Ring, writer: &mut Writer) {
        write_bits(&self.bits, writer);
        write_elements(ring, &self.products, writer);
    }

    /// Reads what [`Self::encode`] wrote of a given number of bits.
    pub(crate) fn decode(reader: &mut Reader<'_>, ring: Ring, count: usize) -> Result<Self, DecodeError> {
        Ok(Self { bits: read_bits(reader, count)?, products: read_elements(reader, ring, count)? })
    }

    /// The server's share, given the client's message `e`.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if the message's length or the encoding does not fit.
    pub fn convert(self, encoding: BitEncoding, masked: &Bits) -> Result<Share> {
        let length = encoding.values(self.bits.len(), masked.len())?;
        let ring = encoding.ring;
        let (minus_one, products) = (ring.largest(), &self.products[..]);
        let term = |i| {
            let (a, e) = (self.bits.get(i), masked.get(i));
            let both = u64::from(a & e).wrapping_neg();
            let minus_product = reflect(ring, products[i], !e).wrapping_add(minus_one & both);
            u64::from(a).wrapping_add(minus_product.wrapping_mul(2))
        };
        Ok(Share::new(ring, encoding.combine(length, term))?)
    }
}

impl ClientBits {
    /// Takes the client's choices `r` and shares `v` of `a_i r_i`, as many as choices.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if the lengths differ.
    pub fn new(choices: Bits, products: Zeroizing<Vec<u64>>) -> Result<Self> {
        ProtocolError::check_length("products of bits", choices.len(), products.len())?;
        Ok(Self { choices, products })
    }

    /// As [`ServerBits::encode`].
    pub(crate) fn encode(&self, ring: Ring, writer: &mut Writer) {
        write_bits(&self.choices, writer);
        write_elements(ring, &self.products, writer);
    }

    /// As [`ServerBits::decode`].
    pub(crate) fn decode(reader: &mut Reader<'_>, ring: Ring, count: usize) -> Result<Self, DecodeError> {
        Ok(Self { choices: read_bits(reader, count)?, products: read_elements(reader, ring, count)? })
    }

    /// The client's share of the values whose bits it holds, and the message `e` for the server.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if the lengths do not fit.
    pub fn convert(self, encoding: BitEncoding, bits: &Bits) -> Result<(Share, Bits)> {
        let length = encoding.values(self.choices.len(), bits.len())?;
        let ring = encoding.ring;
        let masked = bits.xor(&self.choices)?;
        let products = &self.products[..];
        let term = |i| {
            let minus_product = reflect(ring, products[i], !masked.get(i));
            u64::from(bits.get(i)).wrapping_add(minus_product.wrapping_mul(2))
        };
        Ok((Share::new(ring, encoding.combine(length, term))?, masked))
    }
}

/// Values that one core takes at a time.
const RUN: usize = 1 << 9;

/// An integer congruent to `x`, or to `-x` if `negate`, without a branch; over `Z_p` at most `p`.
fn reflect(ring: Ring, x: u64, negate: bool) -> u64 {
    let zero = match ring {
        Ring::Prime(p) => p,
        Ring::Pow2(_) => 0,
    };
    let mask = u64::from(negate).wrapping_neg();
    (x ^ mask).wrapping_sub(mask).wrapping_add(zero & mask)
}

/// How often a residue can be doubled, each time with a term below `8p` added, in one word; a word's overflow does no harm modulo a
/// power of two.
const fn doublings(ring: Ring) -> usize {
    match ring {
        Ring::Prime(_) => (u64::BITS - 4).saturating_sub(ring.bits()) as usize,
        Ring::Pow2(_) => usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use lanner_primitives::{Prg, Seed};

    use super::*;

    /// The dealer that correlated oblivious transfer replaces.
    fn deal(ring: Ring, bits: Bits, rng: &mut Prg) -> (ServerBits, ClientBits) {
        let choices = Bits::random(bits.len(), rng);
        let u = Share::random(ring, bits.len(), rng).values().to_vec();
        let products = (0..bits.len()).map(|i| u64::from(bits.get(i) && choices.get(i)));
        let v: Vec<_> = products.zip(&u).map(|(product, u)| ring.sub(product, *u)).collect();
        (ServerBits::new(bits, u.into()).unwrap(), ClientBits::new(choices, v.into()).unwrap())
    }

    #[test]
    fn shares_add_to_the_value_of_the_bits() {
        let mut rng = Prg::new(Seed::from_bytes([1; 16]));
        let primes = [1_032_193, 137_438_822_401, (1 << 55) - 55, (1 << 59) - 55].map(Ring::Prime);
        for ring in primes.into_iter().chain([Ring::Pow2(37), Ring::Pow2(64)]) {
            for signed in [false, true] {
                let encoding = BitEncoding { ring, bits: 13, signed };
                let (a, b) = (Bits::random(13 * 50, &mut rng), Bits::random(13 * 50, &mut rng));
                let bit = |i: usize| i64::from(a.get(i) ^ b.get(i));
                let top = if signed { -(1 << 12) } else { 1 << 12 };
                let value =
                    |v: usize| (0..12).map(|i| bit(13 * v + i) << i).sum::<i64>() + bit(13 * v + 12) * top;
                let truth: Vec<i64> = (0..50).map(value).collect();
                let (server, client) = deal(ring, a.clone(), &mut rng);
                let (client_share, message) = client.convert(encoding, &b).unwrap();
                let server_share = server.convert(encoding, &message).unwrap();
                assert_eq!(server_share.reveal(&client_share).unwrap(), truth);
            }
        }
    }

    #[test]
    fn wrong_lengths_are_refused() {
        let mut rng = Prg::new(Seed::from_bytes([1; 16]));
        let ring = Ring::Prime(1_032_193);
        let (server, client) = deal(ring, Bits::zeros(26), &mut rng);
        assert!(server.convert(BitEncoding { ring, bits: 13, signed: false }, &Bits::zeros(25)).is_err());
        assert!(client.convert(BitEncoding { ring, bits: 12, signed: false }, &Bits::zeros(26)).is_err());
    }
}
