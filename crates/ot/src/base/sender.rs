use curve25519_dalek::ristretto::RistrettoPoint;
use lanner_primitives::Block;
use lanner_wire::Channel;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::messages::{PAIR, POINT, decode_point, hash_to_point, key, random_scalar};
use crate::{OtError, kind};

/// Sends `count` transfers: returns the key pairs, uniform to a receiver but for the key it chose of each.
///
/// # Errors
/// Any failure of the channel; [`lanner_wire::ChannelError::Malformed`] if a point does not decode.
pub fn send<R: CryptoRng + ?Sized>(
    channel: &mut dyn Channel,
    count: usize,
    rng: &mut R,
) -> Result<Zeroizing<Vec<[Block; 2]>>, OtError> {
    let scalars: Vec<_> = (0..count).map(|_| random_scalar(rng)).collect();
    let mut own = Vec::with_capacity(count * POINT);
    for a in &scalars {
        own.extend(RistrettoPoint::mul_base(a).compress().to_bytes());
    }
    channel.send(kind::BASE_SENDER, &own)?;

    let pairs = channel.receive(kind::BASE_RECEIVER, count * PAIR)?;
    let mut keys = Zeroizing::new(Vec::with_capacity(count));
    let transfers = scalars.iter().zip(own.chunks_exact(POINT)).zip(pairs.chunks_exact(PAIR));
    for (index, ((a, sender), pair)) in transfers.enumerate() {
        let index = index as u64;
        let r = [decode_point(&pair[..POINT])?, decode_point(&pair[POINT..])?];
        let k0 = (r[0] + hash_to_point(index, 0, &r[1])) * **a;
        let k1 = (r[1] + hash_to_point(index, 1, &r[0])) * **a;
        keys.push([key(index, sender, pair, 0, &k0), key(index, sender, pair, 1, &k1)]);
    }
    Ok(keys)
}
