//! The `.lanner` file: a zip of `manifest.json` and `weights.safetensors`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use lanner_net::create_private;
use lanner_primitives::Prg;
use safetensors::Dtype;
use safetensors::tensor::{SafeTensors, TensorView};
use zeroize::Zeroizing;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::{Error, ErrorKind, KernelTimes, Result};

const MANIFEST: &str = "manifest.json";
const WEIGHTS: &str = "weights.safetensors";
const MANIFEST_LIMIT: u64 = 64 << 20;
const WEIGHTS_LIMIT: u64 = 4 << 30;
const SALT: &str = "commitment/salt";
const FIXED: &str = "fixed/";
const FLOAT: &str = "float/";
const KERNEL_TIMES: &str = "kernel_times";

/// The parts of a model that are bytes.
pub(crate) struct Contents {
    /// The private manifest's JSON.
    pub(crate) manifest: String,
    /// Integer weights, as safetensors.
    pub(crate) fixed: Zeroizing<Vec<u8>>,
    /// The float graph's weights, as safetensors.
    pub(crate) float: Zeroizing<Vec<u8>>,
    /// The commitment's salt.
    pub(crate) salt: [u8; 32],
    /// By which table of kernel times the plan was chosen, if one was. It stands beside the weights, where versions that do not know it leave it.
    pub(crate) kernel_times: Option<KernelTimes>,
}

impl Contents {
    /// Writes a new file that only its owner may read, and gives it the name when all is written. A file that has the name already is
    /// replaced, never written to, whatever its mode; so is a symbolic link, and what it names stays as it is.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let weights = self.join().map_err(|error| unwritten(path, &error))?;
        let draft = draft(path).map_err(|error| unwritten(path, &error))?;
        let file = create_private(&draft).map_err(|error| unwritten(path, &error))?;
        let written = (|| {
            let mut zip = ZipWriter::new(file);
            let entries: [(&str, &[u8], _); 2] = [
                (MANIFEST, self.manifest.as_bytes(), CompressionMethod::Deflated),
                (WEIGHTS, &weights, CompressionMethod::Stored),
            ];
            for (name, bytes, method) in entries {
                zip.start_file(name, SimpleFileOptions::default().compression_method(method))?;
                zip.write_all(bytes)?;
            }
            zip.finish()?.sync_all()?;
            std::fs::rename(&draft, path)
        })();
        written.map_err(|error| {
            // The draft was never the model's; a failure to remove it adds nothing.
            let _ = std::fs::remove_file(&draft);
            unwritten(path, &error)
        })
    }

    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let mut zip = ZipArchive::new(BufReader::new(file))
            .map_err(|_| damaged(path, &"it is no archive, or part of one is missing"))?;
        // Of two entries of one name, another reader might take the other.
        if zip.len() != 2 || zip.has_duplicate_names() {
            return Err(damaged(path, &format!("it has other entries than {MANIFEST} and {WEIGHTS}")));
        }
        let manifest = entry(&mut zip, MANIFEST, CompressionMethod::Deflated, MANIFEST_LIMIT);
        let manifest = manifest.map_err(|error| damaged(path, &error))?;
        let weights = entry(&mut zip, WEIGHTS, CompressionMethod::Stored, WEIGHTS_LIMIT);
        let weights = Zeroizing::new(weights.map_err(|error| damaged(path, &error))?);
        let manifest = String::from_utf8(manifest).map_err(|error| damaged(path, &error))?;
        Self::split(manifest, &weights).map_err(|error| damaged(path, &error))
    }

    /// One safetensors file of all tensors, under prefixes.
    fn join(&self) -> std::io::Result<Zeroizing<Vec<u8>>> {
        let (fixed, float) = (parse(&self.fixed)?, parse(&self.float)?);
        let prefixed = |prefix: &'static str, tensors: &SafeTensors<'_>| {
            let names = tensors.names().into_iter().map(str::to_owned).collect::<Vec<_>>();
            names.into_iter().map(move |name| (format!("{prefix}{name}"), name)).collect::<Vec<_>>()
        };
        let mut views = Vec::new();
        for (tensors, prefix) in [(&fixed, FIXED), (&float, FLOAT)] {
            for (key, name) in prefixed(prefix, tensors) {
                views.push((key, tensors.tensor(&name).map_err(std::io::Error::other)?));
            }
        }
        let salt =
            TensorView::new(Dtype::U8, vec![self.salt.len()], &self.salt).map_err(std::io::Error::other)?;
        views.push((SALT.to_owned(), salt));
        let told = self.kernel_times.as_ref().map(serde_json::to_string).transpose()?;
        let told = told.map(|text| HashMap::from([(KERNEL_TIMES.to_owned(), text)]));
        safetensors::serialize(views, told).map(Zeroizing::new).map_err(std::io::Error::other)
    }

    fn split(manifest: String, weights: &[u8]) -> std::io::Result<Self> {
        let tensors = parse(weights)?;
        let part = |prefix: &str| {
            let named =
                tensors.iter().filter_map(|(name, view)| Some((name.strip_prefix(prefix)?.to_owned(), view)));
            safetensors::serialize(named, None).map(Zeroizing::new).map_err(std::io::Error::other)
        };
        let salt = tensors.tensor(SALT).map_err(std::io::Error::other)?;
        let salt = salt.data().try_into().map_err(std::io::Error::other)?;
        let (_, header) = SafeTensors::read_metadata(weights).map_err(std::io::Error::other)?;
        let told = header.metadata().as_ref().and_then(|told| told.get(KERNEL_TIMES));
        let kernel_times = told.map(|text| serde_json::from_str(text)).transpose()?;
        Ok(Self { manifest, fixed: part(FIXED)?, float: part(FLOAT)?, salt, kernel_times })
    }
}

/// A name in the same folder that nobody has or foresees.
fn draft(path: &Path) -> std::io::Result<PathBuf> {
    let mut number = [0; 8];
    Prg::from_entropy().map_err(std::io::Error::other)?.fill_bytes(&mut number);
    Ok(path.with_file_name(format!(".lanner-{:016x}.partial", u64::from_le_bytes(number))))
}

fn parse(bytes: &[u8]) -> std::io::Result<SafeTensors<'_>> {
    SafeTensors::deserialize(bytes).map_err(std::io::Error::other)
}

/// Reads an entry that is stored as [`Contents::write`] stores it: what may be large is not compressed, so that a small file
/// cannot become much.
fn entry<R: Read + std::io::Seek>(
    zip: &mut ZipArchive<R>,
    name: &str,
    method: CompressionMethod,
    limit: u64,
) -> std::io::Result<Vec<u8>> {
    let entry = zip.by_name(name)?;
    if entry.compression() != method {
        return Err(std::io::Error::other(format!("{name} is compressed by {}", entry.compression())));
    }
    let mut bytes = Vec::new();
    let read = entry.take(limit + 1).read_to_end(&mut bytes)?;
    if read as u64 > limit {
        return Err(std::io::Error::other(format!("{name} is larger than {limit} bytes")));
    }
    Ok(bytes)
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    let error = Error::new(ErrorKind::Model, format!("the file cannot be read: {error}"));
    error.at(path.display().to_string()).fix("check the path, and who may read the file")
}

fn unwritten(path: &Path, error: &dyn std::fmt::Display) -> Error {
    let error = Error::new(ErrorKind::Model, format!("the file cannot be written: {error}"));
    error
        .at(path.display().to_string())
        .fix("check that its folder is there, that you may write to it, and that there is room")
}

fn damaged(path: &Path, error: &dyn std::fmt::Display) -> Error {
    let error =
        Error::new(ErrorKind::Model, format!("this is not a .lanner file, or it is damaged: {error}"));
    error.at(path.display().to_string()).fix("compile the model again")
}
