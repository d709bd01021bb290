//! Parties that met, and what they keep of it.

use serde::Serialize;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::index::{PairingRow, Sealed};
use crate::stock::{OVERHEAD, Opened, now};
use crate::{Material, PairingId, Stock, StoreError};

/// What both parties of a pairing know, and nobody else: it proves in a later session who made the pairing.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Secret(pub [u8; 32]);

/// A client and a server that met over a model, as one of them keeps it.
pub struct Pairing {
    /// The name that both gave it.
    pub id: PairingId,
    /// What proves it.
    pub secret: Secret,
    /// What material is for: plan, parameters and weights. See `Manifest::identity`.
    pub model: [u8; 32],
    /// The model's name, for people.
    pub model_name: String,
    /// With whom: the server's fingerprint or address, the client's address.
    pub peer: String,
    /// The fingerprint of the client's certificate, where the server asked for one: only its owner may use the pairing then.
    pub certificate: Option<String>,
}

/// A pairing as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PairingEntry {
    /// Its name, as 32 hexadecimal digits.
    pub id: String,
    /// Which part this party plays: `client` or `server`.
    pub party: &'static str,
    /// The model's name.
    pub model: String,
    /// The model's identity, as 64 hexadecimal digits.
    pub commitment: String,
    /// With whom.
    pub peer: String,
    /// The fingerprint of the client's certificate, if it had one.
    pub certificate: Option<String>,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// When it was last used.
    pub used: u64,
    /// Predictions for which material is kept.
    pub predictions: u64,
    /// Bytes kept: of material and of keys.
    pub bytes: u64,
}

impl Stock {
    /// All pairings in the state directory, of both parties, the last used first.
    ///
    /// # Errors
    /// [`StoreError`] if the disk fails.
    pub fn entries(&self) -> Result<Vec<PairingEntry>, StoreError> {
        self.read(Vec::new, |opened| opened.index(|index| index.entries(now())))
    }

    /// Keeps a pairing, with the keys that set-up made: what the peer sent, or what one's own are made from.
    ///
    /// # Errors
    /// [`StoreError::Full`] if it does not fit; [`StoreError`] if the disk fails.
    pub fn pair(&self, pairing: &Pairing, keys: Option<Material>) -> Result<(), StoreError> {
        let key_bytes = keys.as_ref().map_or(0, |keys| keys.as_bytes().len() as u64) + OVERHEAD;
        let opened = self.open_for(key_bytes)?;
        self.tidy(&opened)?;
        opened.index(|index| self.check_room(index, pairing.id, key_bytes))?;
        let mut secret = Material::new(pairing.secret.0.to_vec());
        let salt = opened.key.seal(&self.name("pairing", pairing.id), &mut secret)?;
        let name = self.name("keys", pairing.id);
        let write = |mut keys: Material| {
            let salt = opened.key.seal(&name, &mut keys)?;
            opened.files.write(&name, keys.as_bytes())?;
            Ok::<_, StoreError>(salt)
        };
        let sealed = Sealed { secret: secret.as_bytes().to_vec(), salt, keys: keys.map(write).transpose()? };
        let added = opened.index(|index| index.add_pairing(self.party, pairing, &sealed, key_bytes, now()));
        if added.is_err() {
            opened.files.remove(&name);
        }
        added
    }

    /// The pairing of a name over a model; none if there is no such, or it was revoked.
    ///
    /// # Errors
    /// [`StoreError::DamagedPairing`] if it is damaged; [`StoreError`] if the disk fails.
    pub fn pairing(&self, id: PairingId, model: &[u8; 32]) -> Result<Option<Pairing>, StoreError> {
        self.read(
            || None,
            |opened| {
                let row = opened.index(|index| index.pairing(self.party, id, model))?;
                let Some(PairingRow { sealed, model_name, peer, certificate }) = row else { return Ok(None) };
                let Sealed { secret, salt, .. } = sealed;
                let secret = opened.key.open_sealed(&self.name("pairing", id), &salt, Material::new(secret));
                let secret = secret.ok_or(StoreError::DamagedPairing)?;
                let secret = Secret(secret.as_bytes().try_into().map_err(|_| StoreError::DamagedPairing)?);
                Ok(Some(Pairing { id, secret, model: *model, model_name, peer, certificate }))
            },
        )
    }

    /// The names of all pairings with a peer over a model, the last used first.
    ///
    /// # Errors
    /// [`StoreError`] if the disk fails.
    pub fn pairings_with(&self, peer: &str, model: &[u8; 32]) -> Result<Vec<PairingId>, StoreError> {
        self.read(Vec::new, |opened| opened.index(|index| index.pairings_with(self.party, peer, model)))
    }

    /// Notes that a pairing is in use: idle ones are forgotten some day.
    ///
    /// # Errors
    /// [`StoreError`] if the disk fails.
    pub fn touch(&self, id: PairingId) -> Result<(), StoreError> {
        self.read(|| (), |opened| opened.index(|index| index.touch(self.party, id, now())))
    }

    /// The keys of a pairing, if any are kept.
    ///
    /// # Errors
    /// [`StoreError::DamagedPairing`] if they are damaged: they are forgotten then. [`StoreError`] if the disk fails.
    pub fn keys(&self, id: PairingId, model: &[u8; 32]) -> Result<Option<Material>, StoreError> {
        self.read(
            || None,
            |opened| {
                let row = opened.index(|index| index.pairing(self.party, id, model))?;
                let Some(salt) = row.and_then(|row| row.sealed.keys) else { return Ok(None) };
                let name = self.name("keys", id);
                let sealed = opened.files.read(&name)?.map(Material::new);
                let keys = sealed.and_then(|sealed| opened.key.open_sealed(&name, &salt, sealed));
                if keys.is_none() {
                    opened.files.remove(&name);
                    opened.index(|index| index.forget_keys(self.party, id))?;
                    return Err(StoreError::DamagedPairing);
                }
                Ok(keys)
            },
        )
    }

    /// Forgets a pairing and all that was made with it; whether there was one.
    ///
    /// # Errors
    /// [`StoreError`] if the disk fails.
    pub fn revoke(&self, id: PairingId) -> Result<bool, StoreError> {
        self.read(|| false, |opened| self.forget(opened, id))
    }

    /// Forgets a pairing with all its files.
    pub(crate) fn forget(&self, opened: &Opened, id: PairingId) -> Result<bool, StoreError> {
        let names = opened.index(|index| index.of_pairing(self.party, id))?;
        let removed = opened.index(|index| index.remove_pairing(self.party, id))?;
        for name in names {
            opened.files.remove(&self.name("material", name));
        }
        opened.files.remove(&self.name("keys", id));
        Ok(removed)
    }
}
