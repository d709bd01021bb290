//! What parties that met keep of it.

use crate::index::{PairingRow, Sealed};
use crate::stock::{OVERHEAD, Opened, now};
use crate::{Material, Pairing, PairingEntry, PairingId, Secret, Stock, StoreError};

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
