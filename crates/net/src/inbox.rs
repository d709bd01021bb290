//! Bytes that came from the peer and were not used yet.

use std::io::{self, Read};

/// A queue of bytes in one piece.
#[derive(Default)]
pub(crate) struct Inbox {
    /// Initialised storage; the queue is `bytes[start..end]`.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    pub(crate) const fn len(&self) -> usize {
        self.end - self.start
    }

    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Removes `count` bytes from the front.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start += count.min(self.len());
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Appends what one read gives.
    pub(crate) fn fill_from(&mut self, mut source: impl Read) -> io::Result<usize> {
        self.make_room();
        let count = source.read(&mut self.bytes[self.end..])?;
        self.end += count;
        Ok(count)
    }

    fn make_room(&mut self) {
        if self.len() == 0 && self.bytes.len() > KEPT_LENGTH {
            // A backlog was worked off: give its memory back.
            self.bytes = Vec::new();
        }
        if self.bytes.len() - self.end >= READ_LENGTH {
            return;
        }
        if self.start >= self.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.bytes.len() - self.end < READ_LENGTH {
            let length = (self.end + READ_LENGTH).max(self.bytes.len() + self.bytes.len() / 2);
            self.bytes.resize(length, 0);
        }
    }
}

/// Least room offered to one read.
const READ_LENGTH: usize = 1 << 18;
/// Storage above this is released when the queue is empty.
const KEPT_LENGTH: usize = 4 << 20;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_the_order_they_came_in_however_they_are_split() {
        let mut inbox = Inbox::default();
        let (mut written, mut read) = (0_u64, 0_u64);
        for step in 0..2000_u64 {
            let source: Vec<u8> = (0..step % 977 * 300).map(|i| ((written + i) % 251) as u8).collect();
            written += inbox.fill_from(source.as_slice()).unwrap() as u64;
            let take = inbox.len().min((step % 701 * 400) as usize);
            assert!(
                inbox.filled()[..take].iter().enumerate().all(|(i, b)| *b == ((read + i as u64) % 251) as u8)
            );
            inbox.consume(take);
            read += take as u64;
        }
        assert_eq!(inbox.len() as u64, written - read);
    }

    #[test]
    fn memory_of_a_backlog_is_given_back() {
        let mut inbox = Inbox::default();
        let source = vec![1; 20 << 20];
        let mut rest = source.as_slice();
        while inbox.fill_from(&mut rest).unwrap() > 0 {}
        assert_eq!(inbox.len(), source.len());
        inbox.consume(source.len());
        inbox.fill_from(&source[..5]).unwrap();
        assert!(inbox.bytes.len() <= KEPT_LENGTH);
    }
}
