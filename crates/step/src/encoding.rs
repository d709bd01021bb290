//! What material is written and read with: parts whose lengths the step knows, so that no length is in the bytes.

use lanner_bfv::BfvError;
use lanner_primitives::{Bits, Block, Ring, Share};
use lanner_wire::{DecodeError, Reader, Writer};
use zeroize::Zeroizing;

/// Appends bits, whose number the reader knows.
pub fn write_bits(bits: &Bits, writer: &mut Writer) {
    writer.bytes(&Zeroizing::new(bits.to_bytes()));
}

/// `count` bits.
///
/// # Errors
/// [`DecodeError::Truncated`] if fewer bytes are left; [`DecodeError::Invalid`] if padding is set.
pub fn read_bits(reader: &mut Reader<'_>, count: usize) -> Result<Bits, DecodeError> {
    let bytes = reader.bytes(Bits::byte_len(count))?;
    Bits::from_bytes(count, bytes).map_err(|_| DecodeError::Invalid { what: "bit padding" })
}

/// Appends blocks, whose number the reader knows.
pub fn write_blocks(blocks: &[Block], writer: &mut Writer) {
    writer.bytes(Block::slice_as_bytes(blocks));
}

/// `count` blocks.
///
/// # Errors
/// [`DecodeError::Truncated`] if fewer bytes are left.
pub fn read_blocks(reader: &mut Reader<'_>, count: usize) -> Result<Zeroizing<Vec<Block>>, DecodeError> {
    let bytes = reader.bytes(count.saturating_mul(Block::BYTES))?;
    let mut blocks = Zeroizing::new(vec![Block::ZERO; count]);
    Block::slice_as_bytes_mut(&mut blocks).copy_from_slice(bytes);
    Ok(blocks)
}

/// Appends elements of a ring, whose number the reader knows.
pub fn write_elements(ring: Ring, elements: &[u64], writer: &mut Writer) {
    writer.packed(elements, ring.bits());
}

/// `count` elements of a ring.
///
/// # Errors
/// [`DecodeError::Truncated`] if fewer bytes are left; [`DecodeError::Invalid`] for what is no element.
pub fn read_elements(
    reader: &mut Reader<'_>,
    ring: Ring,
    count: usize,
) -> Result<Zeroizing<Vec<u64>>, DecodeError> {
    let elements = Zeroizing::new(reader.packed(count, ring.bits())?);
    if elements.iter().all(|element| ring.contains(*element)) {
        Ok(elements)
    } else {
        Err(DecodeError::Invalid { what: "element of a ring" })
    }
}

/// Appends a share, whose ring and length the reader knows.
pub fn write_share(share: &Share, writer: &mut Writer) {
    write_elements(share.ring(), share.values(), writer);
}

/// A share of `count` elements.
///
/// # Errors
/// As [`read_elements`].
pub fn read_share(reader: &mut Reader<'_>, ring: Ring, count: usize) -> Result<Share, DecodeError> {
    let mut elements = read_elements(reader, ring, count)?;
    Share::new(ring, std::mem::take(&mut *elements))
        .map_err(|_| DecodeError::Invalid { what: "element of a ring" })
}

/// Why parts of encryptions do not decode.
#[allow(clippy::needless_pass_by_value, reason = "what `map_err` hands over")]
#[must_use]
pub fn undecodable(error: BfvError) -> DecodeError {
    match error {
        BfvError::Decode(error) => error,
        _ => DecodeError::Invalid { what: "part of an encryption" },
    }
}
