//! A model's file as its owner loads it, or is given it: a model, or an error.
//!
//! Bytes that begin as an archive are one; others are the manifest's length, the manifest and the weights, which are put into an archive
//! here, as its check sums would keep changed ones from being read.
#![no_main]

use std::fs;
use std::io::{Cursor, Write};
use std::path::PathBuf;
use std::sync::LazyLock;

use lanner::Model;
use libfuzzer_sys::fuzz_target;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// In memory, where the system has such a place.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = PathBuf::from("/dev/shm");
    let folder = if folder.is_dir() { folder } else { std::env::temp_dir() };
    folder.join(format!("lanner-fuzz-{}.lanner", std::process::id()))
});

fuzz_target!(|bytes: &[u8]| {
    let archive = if bytes.starts_with(b"PK") { Some(bytes.to_vec()) } else { archive(bytes) };
    let Some(archive) = archive else { return };
    fs::write(&*FILE, archive).unwrap();
    let _ = Model::load(&FILE);
    fs::remove_file(&*FILE).unwrap();
});

fn archive(bytes: &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (manifest, weights) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let parts =
        [("manifest.json", manifest, CompressionMethod::Deflated), ("weights.safetensors", weights, CompressionMethod::Stored)];
    for (name, content, method) in parts {
        writer.start_file(name, SimpleFileOptions::default().compression_method(method)).ok()?;
        writer.write_all(content).ok()?;
    }
    Some(writer.finish().ok()?.into_inner())
}
