//! The beginning of the longest message that a party sent: what its peer got, to be looked at.

/// The longest message since one was last taken, by its length and its first bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// Bytes of the message.
    pub length: u64,
    /// The first of them, at most [`Excerpt::MOST`].
    pub beginning: Vec<u8>,
}

impl Excerpt {
    /// The most bytes that are kept.
    pub const MOST: usize = 64;

    /// A message was sent. Of messages of one length the first is kept.
    pub(crate) fn note(&mut self, message: &[u8]) {
        let length = message.len() as u64;
        if length > self.length {
            self.length = length;
            self.beginning.clear();
            self.beginning.extend_from_slice(&message[..message.len().min(Self::MOST)]);
        }
    }
}
