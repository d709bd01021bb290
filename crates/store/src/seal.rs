//! Authenticated encryption at rest.
//!
//! Whatever is sealed has a key of its own, from the store's key, a random salt and its name: so the nonce is always zero. The salt lies in
//! the index, and is overwritten there when the material is used: what a removed file leaves on the disk opens no more once the index's
//! log has been written over, too.

use hkdf::Hkdf;
use lanner_net::StateDirectory;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::{Material, StoreError};

/// The store's key.
pub(crate) struct StoreKey(Zeroizing<[u8; 32]>);

/// The random part of a key.
pub(crate) type Salt = [u8; 32];

impl StoreKey {
    /// The key in the state directory; a new one where there is none.
    pub(crate) fn open(state: &StateDirectory) -> Result<Self, StoreError> {
        let kept = match state.read(KEY_FILE)? {
            Some(kept) => kept,
            None => state.create_once(KEY_FILE, random()?.as_slice())?,
        };
        let kept = Zeroizing::new(kept);
        let key =
            kept.as_slice().try_into().map_err(|_| StoreError::Key { path: state.path().join(KEY_FILE) })?;
        Ok(Self(Zeroizing::new(key)))
    }

    /// Seals bytes in place under a new salt. `name` is theirs alone.
    pub(crate) fn seal(&self, name: &str, bytes: &mut Material) -> Result<Salt, StoreError> {
        let salt = *random()?;
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        let sealed = self.key(name, &salt).seal_in_place_append_tag(nonce, Aad::empty(), bytes.bytes_mut());
        // More than 64 GB under one key, which no limit allows.
        sealed.map_err(|_| StoreError::Randomness)?;
        Ok(salt)
    }

    /// Opens what [`Self::seal`] made; none if it is anything else.
    pub(crate) fn open_sealed(&self, name: &str, salt: &Salt, mut bytes: Material) -> Option<Material> {
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        let opened = self.key(name, salt).open_in_place(nonce, Aad::empty(), bytes.bytes_mut());
        let length = opened.ok()?.len();
        bytes.bytes_mut().truncate(length);
        Some(bytes)
    }

    fn key(&self, name: &str, salt: &Salt) -> LessSafeKey {
        let hkdf = Hkdf::<Sha256>::new(Some(salt), self.0.as_slice());
        let mut key = Zeroizing::new([0; 32]);
        let expanded = hkdf.expand_multi_info(&[b"lanner sealed ", name.as_bytes()], key.as_mut_slice());
        debug_assert!(expanded.is_ok(), "HKDF-SHA256 gives up to 8160 bytes");
        let unbound = UnboundKey::new(&AES_256_GCM, key.as_slice());
        #[allow(clippy::unwrap_used, reason = "the key has 32 bytes, as AES-256 takes")]
        LessSafeKey::new(unbound.unwrap())
    }
}

fn random() -> Result<Zeroizing<[u8; 32]>, StoreError> {
    let mut bytes = Zeroizing::new([0; 32]);
    SystemRandom::new().fill(bytes.as_mut_slice()).map_err(|_| StoreError::Randomness)?;
    Ok(bytes)
}

const KEY_FILE: &str = "material.key";
