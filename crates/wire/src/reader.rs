//! Reads fields of bytes that a peer wrote: bounded, strict, never a panic.

use crate::DecodeError;
use crate::bits::{packed_len, unpack_bits};

/// Reads little-endian fields from the front of a byte slice.
///
/// Nothing is allocated for a length before that many bytes are known to be there.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader of all of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes not read yet.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// [`DecodeError::Trailing`] if bytes are left.
    pub const fn finish(self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing { left }),
        }
    }

    /// The next `length` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if fewer are left.
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let Some((field, rest)) = self.rest.split_at_checked(length) else {
            return Err(DecodeError::Truncated { needed: length, left: self.rest.len() });
        };
        self.rest = rest;
        Ok(field)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let Some((field, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(DecodeError::Truncated { needed: N, left: self.rest.len() });
        };
        self.rest = rest;
        Ok(*field)
    }

    /// The next byte.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] at the end.
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(u8::from_le_bytes)
    }

    /// The next two bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if fewer are left.
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_le_bytes)
    }

    /// The next four bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if fewer are left.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next eight bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if fewer are left.
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    /// The next sixteen bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if fewer are left.
    pub fn u128(&mut self) -> Result<u128, DecodeError> {
        self.array().map(u128::from_le_bytes)
    }

    /// The next byte as a truth value.
    ///
    /// # Errors
    /// [`DecodeError::Invalid`] unless it is 0 or 1.
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Invalid { what: "truth value" }),
        }
    }

    /// A four-byte count.
    ///
    /// # Errors
    /// [`DecodeError::TooLong`] if it is over `limit`.
    pub fn count(&mut self, limit: usize) -> Result<usize, DecodeError> {
        let length = self.u32()? as usize;
        if length > limit {
            return Err(DecodeError::TooLong { length, limit });
        }
        Ok(length)
    }

    /// Bytes behind their four-byte length.
    ///
    /// # Errors
    /// [`DecodeError::TooLong`] if the length is over `limit`; [`DecodeError::Truncated`] if fewer bytes are left.
    pub fn prefixed(&mut self, limit: usize) -> Result<&'a [u8], DecodeError> {
        let length = self.count(limit)?;
        self.bytes(length)
    }

    /// UTF-8 text behind its four-byte length in bytes.
    ///
    /// # Errors
    /// As [`Reader::prefixed`]; [`DecodeError::Invalid`] if it is not UTF-8.
    pub fn text(&mut self, limit: usize) -> Result<&'a str, DecodeError> {
        let bytes = self.prefixed(limit)?;
        std::str::from_utf8(bytes).map_err(|_| DecodeError::Invalid { what: "UTF-8 text" })
    }

    /// `count` values of `bits` bits each; see [`unpack_bits`].
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if fewer bytes are left; [`DecodeError::Invalid`] if padding is set.
    pub fn packed(&mut self, count: usize, bits: u32) -> Result<Vec<u64>, DecodeError> {
        let field = self.bytes(packed_len(count, bits))?;
        unpack_bits(field, count, bits)
    }
}
