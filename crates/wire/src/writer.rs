//! Appends fields, little-endian, without padding.

use zeroize::Zeroize;

use crate::bits::{pack_bits_into, packed_len};

/// Appends fields to a byte vector; the inverse of [`Reader`](crate::Reader).
///
/// It may hold secrets: memory that it outgrows is erased, and so is what is left in it when it is dropped. The owner of what
/// [`Writer::into_bytes`] gives erases that.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty writer.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// An empty writer with room for `capacity` bytes.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { bytes: Vec::with_capacity(capacity) }
    }

    /// Appends one byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    /// Appends two bytes.
    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends four bytes.
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends sixteen bytes.
    pub fn u128(&mut self, value: u128) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends one byte, 0 or 1.
    pub fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// Appends bytes whose number the reader knows.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a four-byte count.
    ///
    /// # Panics
    /// If `count` is 2^32 or more: no message is that long.
    pub fn count(&mut self, count: usize) {
        assert!(u32::try_from(count).is_ok(), "a count of {count} does not fit its four bytes");
        self.u32(count as u32);
    }

    /// Appends a four-byte length, then the bytes.
    ///
    /// # Panics
    /// If the length is 2^32 or more.
    pub fn prefixed(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.bytes(bytes);
    }

    /// Appends a four-byte length, then the text in UTF-8.
    ///
    /// # Panics
    /// If the length is 2^32 or more.
    pub fn text(&mut self, text: &str) {
        self.prefixed(text.as_bytes());
    }

    /// Appends `values`, each `< 2^bits`, as [`pack_bits`](crate::pack_bits) lays them out.
    ///
    /// # Panics
    /// If `bits` is not in `1..=64`.
    pub fn packed(&mut self, values: &[u64], bits: u32) {
        self.reserve(packed_len(values.len(), bits));
        pack_bits_into(values, bits, &mut self.bytes);
    }

    /// Makes room, so that no vector grows by itself and leaves a copy behind.
    fn reserve(&mut self, added: usize) {
        let needed = self.bytes.len() + added;
        if needed > self.bytes.capacity() {
            let mut larger = Vec::with_capacity(needed.max(2 * self.bytes.capacity()));
            larger.extend_from_slice(&self.bytes);
            self.bytes.zeroize();
            self.bytes = larger;
        }
    }

    /// Bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What was written so far.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Everything written.
    #[must_use]
    pub fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}
