//! Where there is no disk, there is no stock: nobody can make one.

use crate::{Material, MaterialId, Pairing, PairingId, StoreError};

/// One party's pairings and material, of which there are none here.
pub enum Stock {}

impl Stock {
    /// As where there is a disk.
    ///
    /// # Errors
    /// Never.
    pub fn put(&self, _: PairingId, _: MaterialId, _: Material) -> Result<(), StoreError> {
        match *self {}
    }

    /// As where there is a disk.
    ///
    /// # Errors
    /// Never.
    pub fn take(&self, _: PairingId, _: MaterialId) -> Result<Material, StoreError> {
        match *self {}
    }

    /// As where there is a disk.
    ///
    /// # Errors
    /// Never.
    pub fn discard(&self, _: MaterialId) -> Result<(), StoreError> {
        match *self {}
    }

    /// As where there is a disk.
    ///
    /// # Errors
    /// Never.
    pub fn available(&self, _: PairingId) -> Result<Vec<MaterialId>, StoreError> {
        match *self {}
    }

    /// As where there is a disk.
    ///
    /// # Errors
    /// Never.
    pub fn pair(&self, _: &Pairing, _: Option<Material>) -> Result<(), StoreError> {
        match *self {}
    }

    /// As where there is a disk.
    ///
    /// # Errors
    /// Never.
    pub fn pairing(&self, _: PairingId, _: &[u8; 32]) -> Result<Option<Pairing>, StoreError> {
        match *self {}
    }

    /// As where there is a disk.
    ///
    /// # Errors
    /// Never.
    pub fn pairings_with(&self, _: &str, _: &[u8; 32]) -> Result<Vec<PairingId>, StoreError> {
        match *self {}
    }

    /// As where there is a disk.
    ///
    /// # Errors
    /// Never.
    pub fn touch(&self, _: PairingId) -> Result<(), StoreError> {
        match *self {}
    }

    /// As where there is a disk.
    ///
    /// # Errors
    /// Never.
    pub fn keys(&self, _: PairingId, _: &[u8; 32]) -> Result<Option<Material>, StoreError> {
        match *self {}
    }
}
