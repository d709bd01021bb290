//! The garbled tables as a stream of bytes in chunks of bounded size.
//!
//! The stream has one row for each AND gate of each group of at most sixteen instances, group by group and gate by gate.
//! A row is the garbler's half gates of the group's instances and then the evaluator's. Chunks are of whole rows, each as
//! many as fit [`CHUNK_BYTES`], so both parties know the length of every chunk beforehand.

use bytemuck::{Pod, Zeroable};
use lanner_primitives::Block;

use super::LANES;
use crate::GcError;
use crate::arch::ROW;
use crate::circuit::{Circuit, check_length};

/// The size that no chunk exceeds: 256 KiB.
pub const CHUNK_BYTES: usize = 256 << 10;

/// Bytes of the tables of one AND gate in one instance.
pub const BYTES_PER_AND: usize = 2 * Block::BYTES;

/// The rows of one gate in sixteen lanes.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Row {
    pub(crate) garbler: [Block; LANES],
    pub(crate) evaluator: [Block; LANES],
}

impl Row {
    pub(crate) const ZERO: Self = Self { garbler: [Block::ZERO; LANES], evaluator: [Block::ZERO; LANES] };
}

/// The lengths of the chunks that `instances` instances of a circuit are garbled in, in order.
///
/// They add up to [`Circuit::table_bytes`].
pub fn chunk_lengths(circuit: &Circuit, instances: usize) -> impl Iterator<Item = usize> + use<> {
    let mut full_rows = instances / LANES * circuit.and_count();
    let row = instances % LANES * BYTES_PER_AND;
    let mut rows = if row == 0 { 0 } else { circuit.and_count() };
    std::iter::from_fn(move || {
        let full = full_rows.min(CHUNK_BYTES / ROW);
        full_rows -= full;
        let mut bytes = full * ROW;
        // The rows of the last group begin once no full row is left.
        if full_rows == 0 && row > 0 {
            let count = rows.min((CHUNK_BYTES - bytes) / row);
            rows -= count;
            bytes += count * row;
        }
        (bytes > 0).then_some(bytes)
    })
}

impl Circuit {
    /// Bytes of the tables of `instances` instances: 32 for each AND gate.
    #[must_use]
    pub const fn table_bytes(&self, instances: usize) -> usize {
        BYTES_PER_AND * self.and_count() * instances
    }
}

/// Where the evaluator takes the tables from.
pub trait TableSource {
    /// What a transport may fail with, or what this crate does.
    type Error: From<GcError>;

    /// The next chunk, which is asked for by its length; see [`chunk_lengths`].
    ///
    /// # Errors
    /// If the chunk cannot be had. A chunk of another length is refused by the evaluator.
    fn next_chunk(&mut self, bytes: usize) -> Result<&[u8], Self::Error>;
}

/// Tables that lie in memory, one chunk after the other.
pub struct TablesInMemory<'a> {
    rest: &'a [u8],
}

impl<'a> TablesInMemory<'a> {
    /// The stream of these bytes.
    #[must_use]
    pub const fn new(tables: &'a [u8]) -> Self {
        Self { rest: tables }
    }

    /// Whether every byte was taken.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

impl TableSource for TablesInMemory<'_> {
    type Error = GcError;

    fn next_chunk(&mut self, bytes: usize) -> Result<&[u8], GcError> {
        let short = GcError::Length { what: "garbled tables", expected: bytes, got: self.rest.len() };
        let (chunk, rest) = self.rest.split_at_checked(bytes).ok_or(short)?;
        self.rest = rest;
        Ok(chunk)
    }
}

/// Tables that a function reads chunk by chunk, for instance from a channel.
pub struct TablesFrom<F> {
    fill: F,
    chunk: Vec<u8>,
}

impl<F> TablesFrom<F> {
    /// The stream that `fill` reads: it fills the whole slice it is given.
    #[must_use]
    pub const fn new(fill: F) -> Self {
        Self { fill, chunk: Vec::new() }
    }
}

impl<E: From<GcError>, F: FnMut(&mut [u8]) -> Result<(), E>> TableSource for TablesFrom<F> {
    type Error = E;

    fn next_chunk(&mut self, bytes: usize) -> Result<&[u8], E> {
        self.chunk.resize(bytes, 0);
        (self.fill)(&mut self.chunk)?;
        Ok(&self.chunk)
    }
}

/// Collects rows into chunks and hands full chunks to a sink.
pub(crate) struct ChunkWriter {
    rows: Vec<Row>,
    /// Bytes in use; a multiple of [`ROW`] until the first partial row.
    used: usize,
}

impl ChunkWriter {
    pub(crate) const fn new() -> Self {
        Self { rows: Vec::new(), used: 0 }
    }

    /// The full rows that still fit; at most `wanted` are given space for.
    pub(crate) fn space(&mut self, wanted: usize) -> &mut [Row] {
        let first = self.used.div_ceil(ROW);
        let end = (first + wanted).min(CHUNK_BYTES / ROW);
        if self.rows.len() < end {
            self.rows.resize(end, Row::ZERO);
        }
        &mut self.rows[first..end]
    }

    /// Takes the first `count` rows of the space.
    pub(crate) const fn advance(&mut self, count: usize) {
        self.used += count * ROW;
    }

    /// Adds the first `lanes` lanes of a row, after handing over the chunk if they do not fit.
    pub(crate) fn push<E>(
        &mut self,
        row: &Row,
        lanes: usize,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let half = lanes * Block::BYTES;
        if self.used + 2 * half > CHUNK_BYTES {
            self.flush(sink)?;
        }
        let end = (self.used + 2 * half).div_ceil(ROW);
        if self.rows.len() < end {
            self.rows.resize(end, Row::ZERO);
        }
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.rows);
        let (garbler, evaluator) = bytes[self.used..self.used + 2 * half].split_at_mut(half);
        garbler.copy_from_slice(&Block::slice_as_bytes(&row.garbler)[..half]);
        evaluator.copy_from_slice(&Block::slice_as_bytes(&row.evaluator)[..half]);
        self.used += 2 * half;
        Ok(())
    }

    /// Hands over what is in use, if anything.
    pub(crate) fn flush<E>(&mut self, sink: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if self.used > 0 {
            let bytes: &[u8] = bytemuck::cast_slice(&self.rows);
            sink(&bytes[..self.used])?;
            self.used = 0;
        }
        Ok(())
    }
}

/// Cuts the chunks of a source into rows.
pub(crate) struct ChunkReader<'a, S, I> {
    pub(crate) source: &'a mut S,
    pub(crate) lengths: I,
}

impl<S: TableSource, I: Iterator<Item = usize>> ChunkReader<'_, S, I> {
    /// The next chunk, of the length that it must have.
    pub(crate) fn next(&mut self) -> Result<&[u8], S::Error> {
        let missing = GcError::Length { what: "chunks of garbled tables", expected: 1, got: 0 };
        let expected = self.lengths.next().ok_or(missing)?;
        let chunk = self.source.next_chunk(expected)?;
        check_length("chunk of garbled tables", expected, chunk.len())?;
        Ok(chunk)
    }
}

/// The row of `lanes` lanes that `bytes` begin with, zero in the other lanes.
pub(crate) fn widen(bytes: &[u8], lanes: usize) -> Row {
    let half = lanes * Block::BYTES;
    let mut row = Row::ZERO;
    Block::slice_as_bytes_mut(&mut row.garbler)[..half].copy_from_slice(&bytes[..half]);
    Block::slice_as_bytes_mut(&mut row.evaluator)[..half].copy_from_slice(&bytes[half..2 * half]);
    row
}
