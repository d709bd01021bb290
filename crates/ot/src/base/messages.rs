//! Points on the wire and the random oracles over them.

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use lanner_primitives::Block;
use lanner_wire::ChannelError;
use rand_core::CryptoRng;
use sha2::{Digest, Sha256, Sha512};
use zeroize::Zeroizing;

/// The bytes of a point on the wire.
pub(super) const POINT: usize = 32;

/// The bytes that one transfer's receiver sends: `R_0 || R_1`.
pub(super) const PAIR: usize = 2 * POINT;

/// Decodes a point; only the canonical encoding of a group element is accepted.
pub(super) fn decode_point(bytes: &[u8]) -> Result<RistrettoPoint, ChannelError> {
    let compressed = CompressedRistretto::from_slice(bytes).ok();
    compressed.and_then(|c| c.decompress()).ok_or(ChannelError::Malformed { what: "base OT point" })
}

/// Decodes the sender's point, which must not be the identity: it would make every key public.
pub(super) fn decode_sender_point(bytes: &[u8]) -> Result<RistrettoPoint, ChannelError> {
    let point = decode_point(bytes)?;
    if point.is_identity() {
        return Err(ChannelError::Malformed { what: "base OT point" });
    }
    Ok(point)
}

/// A uniform scalar.
pub(super) fn random_scalar<R: CryptoRng + ?Sized>(rng: &mut R) -> Zeroizing<Scalar> {
    let mut wide = Zeroizing::new([0; 64]);
    rng.fill_bytes(&mut *wide);
    Zeroizing::new(Scalar::from_bytes_mod_order_wide(&wide))
}

/// A uniform group element whose logarithm nobody knows.
pub(super) fn random_point<R: CryptoRng + ?Sized>(rng: &mut R) -> RistrettoPoint {
    let mut wide = Zeroizing::new([0; 64]);
    rng.fill_bytes(&mut *wide);
    RistrettoPoint::from_uniform_bytes(&wide)
}

/// The random oracle `H_side` into the group, for transfer `index`.
pub(super) fn hash_to_point(index: u64, side: u8, point: &RistrettoPoint) -> RistrettoPoint {
    let hash = Sha512::new()
        .chain_update(b"lanner base ot: to point")
        .chain_update(index.to_le_bytes())
        .chain_update([side])
        .chain_update(point.compress().as_bytes());
    RistrettoPoint::from_uniform_bytes(&hash.finalize().into())
}

/// The random oracle `K` into keys: of transfer `index`, its transcript, the side and the shared point.
pub(super) fn key(index: u64, sender: &[u8], pair: &[u8], side: u8, shared: &RistrettoPoint) -> Block {
    let hash = Sha256::new()
        .chain_update(b"lanner base ot: key")
        .chain_update(index.to_le_bytes())
        .chain_update([side])
        .chain_update(sender)
        .chain_update(pair)
        .chain_update(shared.compress().as_bytes());
    let digest: Zeroizing<[u8; 32]> = Zeroizing::new(hash.finalize().into());
    let (low, _) = digest.split_at(Block::BYTES);
    Block::from_bytes(std::array::from_fn(|i| low[i]))
}
