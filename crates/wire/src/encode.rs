//! Types with one canonical wire form.

use crate::{DecodeError, Reader, Writer};

/// A type that has one wire form.
pub trait Encode {
    /// Appends the wire form.
    fn encode(&self, writer: &mut Writer);

    /// The wire form alone.
    fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        writer.into_bytes()
    }
}

/// A type that its wire form determines. Decoding accepts exactly what [`Encode`] writes.
pub trait Decode: Sized {
    /// Reads one value from the front.
    ///
    /// # Errors
    /// Any [`DecodeError`].
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// Reads one value that takes all of `bytes`.
    ///
    /// # Errors
    /// Any [`DecodeError`]; [`DecodeError::Trailing`] if bytes are left.
    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let value = Self::decode(&mut reader)?;
        reader.finish()?;
        Ok(value)
    }
}
