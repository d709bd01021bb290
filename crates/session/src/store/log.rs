//! The log of a store: which material was put and which was consumed.
//!
//! A header of eight bytes of magic and four of version, then records of one length, little-endian: kind (1), name (16),
//! length of the material (8), digest of the material (16), checksum (16). The checksum covers the record's place
//! in the log, so that records cannot move, and the digests are truncated SHA-256.

use lanner_wire::{DecodeError, Reader, Writer};
use sha2::{Digest, Sha256};

use super::{MaterialId, StoreError};

/// A fact about material.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// It was kept, with this length and digest.
    Put(MaterialId, Piece),
    /// It is not to be handed out again.
    Consumed(MaterialId),
}

/// What the log knows about the bytes of material.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) length: u64,
    pub(super) digest: [u8; 16],
}

impl Piece {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { length: bytes.len() as u64, digest: truncated(Sha256::digest(bytes).into()) }
    }
}

/// What a log says.
pub(super) struct Content {
    pub(super) records: Vec<Record>,
    pub(super) end: End,
}

/// How a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With a whole record.
    Clean,
    /// Within a record: the one being written when the machine stopped. All before it were durable by then.
    Torn,
    /// With a record that was never written so: what else is lost cannot be known.
    Garbled,
}

pub(super) fn header() -> Vec<u8> {
    let mut writer = Writer::new();
    writer.bytes(MAGIC);
    writer.u32(VERSION);
    writer.into_bytes()
}

/// The bytes of the record with number `position`.
pub(super) fn encode(record: &Record, position: u64) -> Vec<u8> {
    let (kind, id, piece) = match record {
        Record::Put(id, piece) => (PUT, id, *piece),
        Record::Consumed(id) => (CONSUMED, id, Piece { length: 0, digest: [0; 16] }),
    };
    let mut writer = Writer::with_capacity(RECORD_LENGTH);
    writer.u8(kind);
    writer.bytes(id.as_bytes());
    writer.u64(piece.length);
    writer.bytes(&piece.digest);
    let checksum = checksum(writer.as_bytes(), position);
    writer.bytes(&checksum);
    writer.into_bytes()
}

/// Reads a log as far as it can be trusted. An empty or half-written header is a torn, empty log.
pub(super) fn parse(bytes: &[u8]) -> Result<Content, StoreError> {
    let header = header();
    let Some((start, body)) = bytes.split_at_checked(header.len()) else {
        let end = if header.starts_with(bytes) { End::Torn } else { End::Garbled };
        return Ok(Content { records: Vec::new(), end });
    };
    if start[..MAGIC.len()] != *MAGIC {
        return Ok(Content { records: Vec::new(), end: End::Garbled });
    }
    if start != header {
        let theirs = Reader::new(&start[MAGIC.len()..]).u32().unwrap_or(0);
        return Err(StoreError::Version { ours: VERSION, theirs });
    }
    let mut records = Vec::new();
    let mut chunks = body.chunks_exact(RECORD_LENGTH);
    for (chunk, position) in chunks.by_ref().zip(0..) {
        match decode(chunk, position) {
            Ok(record) => records.push(record),
            Err(_) => return Ok(Content { records, end: End::Garbled }),
        }
    }
    let end = if chunks.remainder().is_empty() { End::Clean } else { End::Torn };
    Ok(Content { records, end })
}

fn decode(bytes: &[u8], position: u64) -> Result<Record, DecodeError> {
    let mut reader = Reader::new(bytes);
    let fields = reader.bytes(RECORD_LENGTH - CHECKSUM_LENGTH)?;
    if reader.bytes(CHECKSUM_LENGTH)? != checksum(fields, position) {
        return Err(DecodeError::Invalid { what: "checksum" });
    }
    let mut reader = Reader::new(fields);
    let kind = reader.u8()?;
    let id = MaterialId::from_bytes(reader.array()?);
    let piece = Piece { length: reader.u64()?, digest: reader.array()? };
    match kind {
        PUT => Ok(Record::Put(id, piece)),
        CONSUMED => Ok(Record::Consumed(id)),
        _ => Err(DecodeError::Invalid { what: "kind of record" }),
    }
}

fn checksum(fields: &[u8], position: u64) -> [u8; CHECKSUM_LENGTH] {
    let hash = Sha256::new_with_prefix(fields).chain_update(position.to_le_bytes());
    truncated(hash.finalize().into())
}

fn truncated(digest: [u8; 32]) -> [u8; 16] {
    std::array::from_fn(|i| digest[i])
}

const MAGIC: &[u8] = b"lnr-used";
const VERSION: u32 = 1;
const PUT: u8 = 1;
const CONSUMED: u8 = 2;
const CHECKSUM_LENGTH: usize = 16;
const RECORD_LENGTH: usize = 1 + 16 + 8 + 16 + CHECKSUM_LENGTH;
