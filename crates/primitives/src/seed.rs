//! Seeds and their derivation by label.

use hkdf::HkdfExtract;
use rand_core::Rng;
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The 16 bytes that a [`crate::Prg`] expands.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Seed([u8; 16]);

impl Seed {
    /// The seed of these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// A uniform seed.
    #[must_use]
    pub fn random<R: Rng + ?Sized>(rng: &mut R) -> Self {
        let mut bytes = [0; 16];
        rng.fill_bytes(&mut bytes);
        Self(bytes)
    }

    /// The bytes of the seed.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The bytes of the seed, to be written.
    #[must_use]
    pub const fn as_bytes_mut(&mut self) -> &mut [u8; 16] {
        &mut self.0
    }
}

/// Which party's messages a seed is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the data owner to the model owner.
    ClientToServer,
    /// From the model owner to the data owner.
    ServerToClient,
}

/// What a seed is for: two seeds of one secret are independent as long as their labels differ in any field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Label<'a> {
    /// The session's identity.
    pub session: [u8; 32],
    /// The layer of the plan, counted from zero.
    pub layer: u32,
    /// The operation inside the layer, by name.
    pub op: &'a str,
    /// The repetition of the operation.
    pub index: u64,
    /// The direction of the messages that the seed serves.
    pub direction: Direction,
}

impl Label<'_> {
    /// An encoding of which no two labels share one: fixed fields first, the name last.
    fn encode(&self) -> Vec<u8> {
        let direction = match self.direction {
            Direction::ClientToServer => 0,
            Direction::ServerToClient => 1,
        };
        let mut bytes = Vec::with_capacity(64 + self.op.len());
        bytes.extend(self.session);
        bytes.extend(self.layer.to_le_bytes());
        bytes.extend(self.index.to_le_bytes());
        bytes.push(direction);
        bytes.extend(self.op.as_bytes());
        bytes
    }
}

/// The seed of a label under a secret: HKDF-SHA256 ([RFC 5869](https://www.rfc-editor.org/rfc/rfc5869)) with the label as
/// `info`.
///
/// `secret` must hold at least 128 bits of min-entropy; it need not be uniform.
#[must_use]
pub fn derive_seed(secret: &[u8], label: &Label) -> Seed {
    let mut extract = HkdfExtract::<Sha256>::new(Some(SALT));
    extract.input_ikm(secret);
    let (_, hkdf) = extract.finalize();
    let mut seed = Seed([0; 16]);
    let expanded = hkdf.expand(&label.encode(), &mut seed.0);
    debug_assert!(expanded.is_ok(), "HKDF-SHA256 gives up to 8160 bytes");
    seed
}

const SALT: &[u8] = b"lanner seed v1";

#[cfg(test)]
mod tests {
    use super::*;

    fn label() -> Label<'static> {
        Label { session: [1; 32], layer: 2, op: "mask", index: 3, direction: Direction::ClientToServer }
    }

    #[test]
    fn every_field_of_the_label_matters() {
        let variants = [
            label(),
            Label { session: [2; 32], ..label() },
            Label { layer: 3, ..label() },
            Label { op: "flood", ..label() },
            Label { index: 4, ..label() },
            Label { direction: Direction::ServerToClient, ..label() },
        ];
        let mut seeds: Vec<_> = variants.iter().map(|l| *derive_seed(b"secret", l).as_bytes()).collect();
        seeds.push(*derive_seed(b"other", &label()).as_bytes());
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 7);
    }

    #[test]
    fn a_vector_made_with_another_hkdf_is_met() {
        let seed = derive_seed(b"secret", &label());
        assert_eq!(u128::from_be_bytes(*seed.as_bytes()), 0x9253_6fa0_60de_9daf_9334_8ffd_fe1f_25eb);
    }
}
