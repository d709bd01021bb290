//! Keys that a client makes before it meets a server, for all sessions with models of one need.

use lanner_primitives::{Prg, Seed};
use lanner_step::Client;
use lanner_store::Material;
use lanner_wire::{DecodeError, Reader, Writer};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::executor::{ClientPlan, ExecutionError};

/// A client's keys: what the secret ones are made from, and the hash of what a server gets of them. Bound to no model and no server.
pub struct OwnKeys {
    seed: Seed,
    /// `SetUp::keys_identity` of what they are for.
    identity: [u8; 32],
    /// That in words.
    described: String,
    /// Of the upload.
    hash: [u8; 32],
}

impl OwnKeys {
    /// Makes keys for a model, and those like it, and what is to be uploaded of them.
    ///
    /// # Errors
    /// [`ExecutionError::NoKeys`] if its sessions have none.
    pub fn generate(plan: &ClientPlan, rng: &mut Prg) -> Result<(Self, Vec<u8>), ExecutionError> {
        let needs = plan.set_up();
        if needs.keys.is_empty() {
            return Err(ExecutionError::NoKeys);
        }
        let (seed, identity, described) = (Seed::random(rng), needs.keys_identity()?, needs.keys_described());
        let upload = upload(plan, &seed)?;
        let hash = Sha256::digest(&upload).into();
        Ok((Self { seed, identity, described, hash }, upload))
    }

    /// Checks that they are for a model like this one.
    ///
    /// # Errors
    /// [`ExecutionError::OtherKeys`] if they are not.
    pub fn check(&self, plan: &ClientPlan) -> Result<(), ExecutionError> {
        let needs = plan.set_up();
        if needs.keys.is_empty() {
            return Err(ExecutionError::NoKeys);
        }
        if needs.keys_identity()? == self.identity {
            return Ok(());
        }
        let (have, need) = (self.described.clone(), needs.keys_described());
        let need = if need == have { "others of these sizes".to_owned() } else { need };
        Err(ExecutionError::OtherKeys { have, need })
    }

    /// The hash of what is uploaded.
    #[must_use]
    pub const fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// Whether these bytes are what is uploaded.
    pub(super) fn uploads(&self, bytes: &[u8]) -> bool {
        Sha256::digest(bytes)[..] == self.hash
    }

    /// What is uploaded, made again.
    pub(super) fn upload(&self, plan: &ClientPlan) -> Result<Vec<u8>, ExecutionError> {
        let bytes = upload(plan, &self.seed)?;
        if self.uploads(&bytes) { Ok(bytes) } else { Err(OTHERWISE_MADE) }
    }

    /// What a session has that has these keys.
    pub(super) fn seed(&self) -> Material {
        Material::new(self.seed.as_bytes().to_vec())
    }

    /// The bytes of a file, as secret as the keys.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut writer = Writer::new();
        writer.bytes(MAGIC);
        writer.u32(VERSION);
        writer.bytes(self.seed.as_bytes());
        writer.bytes(&self.identity);
        writer.bytes(&self.hash);
        writer.prefixed(self.described.as_bytes());
        let mut bytes = Zeroizing::new(writer.into_bytes());
        let sum = Sha256::digest(&bytes);
        bytes.extend_from_slice(&sum);
        bytes
    }

    /// Reads what [`Self::to_bytes`] writes.
    ///
    /// # Errors
    /// [`ExecutionError::KeysVersion`] if another release wrote it, [`ExecutionError::DamagedKeys`] if it is anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ExecutionError> {
        let damaged = || ExecutionError::DamagedKeys { what: "a damaged file of keys" };
        if !bytes.starts_with(MAGIC) {
            return Err(ExecutionError::DamagedKeys { what: "no file of keys" });
        }
        let (content, sum) = bytes.split_last_chunk::<32>().ok_or_else(damaged)?;
        let mut reader = Reader::new(content.get(MAGIC.len()..).ok_or_else(damaged)?);
        if let Ok(theirs) = reader.u32()
            && theirs != VERSION
        {
            return Err(ExecutionError::KeysVersion { ours: VERSION, theirs });
        }
        if Sha256::digest(content)[..] != *sum {
            return Err(damaged());
        }
        let mut read = || -> Result<Self, DecodeError> {
            Ok(Self {
                seed: Seed::from_bytes(reader.array()?),
                identity: reader.array()?,
                hash: reader.array()?,
                described: reader.text(MAX_DESCRIPTION)?.to_owned(),
            })
        };
        let keys = read().map_err(|_| damaged())?;
        reader.finish().map_err(|_| damaged())?;
        Ok(keys)
    }
}

fn upload(plan: &ClientPlan, seed: &Seed) -> Result<Vec<u8>, ExecutionError> {
    let needs = plan.set_up();
    let mut writer = Writer::with_capacity(needs.encoded_keys_len()?);
    Client::write_keys(needs, seed, &mut writer)?;
    Ok(writer.into_bytes())
}

/// The seed of these keys makes another upload here than where they were made.
const OTHERWISE_MADE: ExecutionError =
    ExecutionError::DamagedKeys { what: "a file of keys of a release that makes others of them" };
const MAGIC: &[u8] = b"lanner keys\r\n";
const VERSION: u32 = 1;
/// Bytes of the description: of fewer than there are parameter sets.
const MAX_DESCRIPTION: usize = 1024;
