//! A client's keys in files: made once, for sessions with any server about any model of the same needs.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use lanner_primitives::Prg;
use lanner_session::executor::ClientPlan;
use lanner_session::requests::OwnKeys;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::hex::hex;
use crate::{Error, ErrorKind, Manifest, Result};

/// What [`keygen`] wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MadeKeys {
    /// The file of the keys, which is secret.
    pub keys: PathBuf,
    /// Its bytes.
    pub keys_bytes: u64,
    /// The file of what a server gets of them.
    pub upload: PathBuf,
    /// Its bytes.
    pub upload_bytes: u64,
    /// Its SHA-256, under which a server keeps it, in hexadecimal.
    pub upload_hash: String,
}

/// Makes keys for sessions about a model, and models of the same needs: a secret file, and beside it, with `.upload` behind its name, what
/// servers get. A file of keys that exists is never written over.
///
/// # Errors
/// [`ErrorKind::Misuse`] if the model's sessions have no keys, or the files cannot be written; [`ErrorKind::Model`] if the model is damaged.
pub fn keygen(manifest: &Manifest, path: &Path) -> Result<MadeKeys> {
    lanner_session::use_all_cores();
    let unwritten = |path: &Path, error: &std::io::Error| {
        Error::new(ErrorKind::Misuse, format!("keys cannot be written ({error})"))
            .at(path.display().to_string())
            .fix("check the folder, or free some space")
    };
    if path.exists() {
        let error = Error::new(ErrorKind::Misuse, "this file exists; lanner does not overwrite keys");
        return Err(error.at(path.display().to_string()).fix("choose another name, or remove it first"));
    }
    let plan = ClientPlan::new(&manifest.network, &manifest.plan)?;
    let mut rng = Prg::from_entropy().map_err(|error| Error::new(ErrorKind::Misuse, error.to_string()))?;
    let (keys, bytes) = OwnKeys::generate(&plan, &mut rng)?;
    let (upload, secret) = (upload_of(path), keys.to_bytes());
    // Keys that are there are complete.
    fs::write(&upload, &bytes).map_err(|error| unwritten(&upload, &error))?;
    let written = lanner_net::create_private(path).and_then(|mut file| {
        let written = file.write_all(&secret).and_then(|()| file.sync_all());
        written.inspect_err(|_| drop(fs::remove_file(path)))
    });
    written.map_err(|error| unwritten(path, &error))?;
    Ok(MadeKeys {
        keys: path.to_owned(),
        keys_bytes: secret.len() as u64,
        upload,
        upload_bytes: bytes.len() as u64,
        upload_hash: hex(keys.hash()),
    })
}

/// The file beside one of keys that a server gets.
pub(crate) fn upload_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".upload");
    name.into()
}

/// Reads a file of keys.
///
/// # Errors
/// [`ErrorKind::Misuse`] if it is none, is damaged, or others may read it.
pub(crate) fn read(path: &Path) -> Result<OwnKeys> {
    let place = path.display().to_string();
    let unread = |error: std::io::Error| {
        let error = Error::new(ErrorKind::Misuse, format!("keys cannot be read ({error})")).at(&place);
        error.fix("name a file that lanner keygen wrote")
    };
    let metadata = fs::metadata(path).map_err(unread)?;
    if lanner_net::is_shared(&metadata) {
        let error = Error::new(ErrorKind::Misuse, "others may read these keys").at(&place);
        return Err(error.fix(format!("run chmod 600 {place}")));
    }
    // Anything larger is no file of keys, whatever it begins with.
    let bytes = if metadata.len() > MAX_BYTES { Vec::new() } else { fs::read(path).map_err(unread)? };
    OwnKeys::from_bytes(&Zeroizing::new(bytes)).map_err(|error| Error::from(error).at(&place))
}

const MAX_BYTES: u64 = 1 << 16;
