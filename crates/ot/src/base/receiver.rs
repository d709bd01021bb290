use curve25519_dalek::ristretto::RistrettoPoint;
use lanner_primitives::{Bits, Block};
use lanner_wire::Channel;
use rand_core::CryptoRng;
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

use super::messages::{PAIR, POINT, decode_sender_point, hash_to_point, key, random_point, random_scalar};
use crate::{OtError, kind};

/// Receives one transfer for each choice: returns key `choices[i]` of every pair.
///
/// # Errors
/// Any failure of the channel; [`lanner_wire::ChannelError::Malformed`] if a point does not decode or is the identity.
pub fn receive<R: CryptoRng + ?Sized>(
    channel: &mut dyn Channel,
    choices: &Bits,
    rng: &mut R,
) -> Result<Zeroizing<Vec<Block>>, OtError> {
    let count = choices.len();
    let scalars: Vec<_> = (0..count).map(|_| random_scalar(rng)).collect();
    let mut own = Vec::with_capacity(count * PAIR);
    for (index, (b, choice)) in scalars.iter().zip(choices.iter()).enumerate() {
        own.extend(blind(index as u64, &RistrettoPoint::mul_base(b), choice, rng));
    }
    channel.send(kind::BASE_RECEIVER, &own)?;

    let points = channel.receive(kind::BASE_SENDER, count * POINT)?;
    let mut keys = Zeroizing::new(Vec::with_capacity(count));
    let transfers = points.chunks_exact(POINT).zip(own.chunks_exact(PAIR));
    for (index, (((sender, pair), b), choice)) in transfers.zip(&scalars).zip(choices.iter()).enumerate() {
        let shared = decode_sender_point(sender)? * **b;
        keys.push(key(index as u64, sender, pair, u8::from(choice), &shared));
    }
    Ok(keys)
}

/// `(R_0, R_1)` of one transfer; takes the same time for either choice.
fn blind<R: CryptoRng + ?Sized>(index: u64, b: &RistrettoPoint, choice: bool, rng: &mut R) -> [u8; PAIR] {
    let other = random_point(rng);
    let chosen = b - hash_to_point(index, u8::from(choice), &other);
    let choice = Choice::from(u8::from(choice));
    let r0 = RistrettoPoint::conditional_select(&chosen, &other, choice);
    let r1 = RistrettoPoint::conditional_select(&other, &chosen, choice);
    let (r0, r1) = (r0.compress().to_bytes(), r1.compress().to_bytes());
    std::array::from_fn(|i| if i < POINT { r0[i] } else { r1[i - POINT] })
}
