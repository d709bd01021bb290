//! What each party keeps of one prepared prediction until it is used.

/// Bytes that each party keeps of one prepared prediction, to within small change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The client's: prepared encryptions and decryptions, garbled tables, labels, products.
    pub client: u64,
    /// The server's: prepared sealings, products.
    pub server: u64,
}

impl std::iter::Sum for Held {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, held| Self {
            client: sum.client + held.client,
            server: sum.server + held.server,
        })
    }
}

/// Bytes of an element of a ring, of a label.
pub(crate) const WORD: u64 = 8;
pub(crate) const LABEL: u64 = 16;
