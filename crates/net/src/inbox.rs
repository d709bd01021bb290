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

    /// Appends what one read gives, so that the queue has at most `most` bytes. There must be room for one.
    pub(crate) fn fill_from(&mut self, mut source: impl Read, most: usize) -> io::Result<usize> {
        let room = most.saturating_sub(self.len()).min(READ_LENGTH);
        self.make_room(room, most);
        let count = source.read(&mut self.bytes[self.end..self.end + room])?;
        self.end += count;
        Ok(count)
    }

    /// Makes room for as many bytes more. Storage grows by halves, and to no more than what the queue may have.
    fn make_room(&mut self, room: usize, most: usize) {
        if self.len() == 0 && self.bytes.len() > KEPT_LENGTH.min(most) {
            // A backlog was worked off: give its memory back.
            self.bytes = Vec::new();
        }
        if self.bytes.len() - self.end >= room {
            return;
        }
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let needed = self.end + room;
        if self.bytes.len() < needed {
            let length = needed.max((self.bytes.len() + self.bytes.len() / 2).min(most));
            self.bytes.reserve_exact(length - self.bytes.len());
            self.bytes.resize(length, 0);
        }
    }
}

/// Most bytes of one read.
const READ_LENGTH: usize = 1 << 18;
/// Storage above this is released when the queue is empty.
const KEPT_LENGTH: usize = 4 << 20;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const MOST: usize = 1 << 30;

    #[test]
    fn no_more_is_taken_than_the_queue_may_have() {
        let source = vec![7; 10 << 20];
        for most in [1, 1000, 64 << 10, 3 << 20] {
            let mut inbox = Inbox::default();
            let mut rest = source.as_slice();
            while inbox.len() < most {
                assert!(inbox.fill_from(&mut rest, most).unwrap() > 0);
                assert!(inbox.bytes.capacity() <= most);
            }
            assert_eq!((inbox.len(), source.len() - rest.len()), (most, most));
            // Whatever was read before, and how little at a time.
            for _ in 0..2000 {
                inbox.consume(most.min(700));
                while inbox.len() < most && inbox.fill_from(&mut rest, most).unwrap() > 0 {}
                assert!(inbox.len() <= most && inbox.bytes.capacity() <= most);
            }
        }
    }

    #[test]
    fn bytes_come_out_in_the_order_they_came_in_however_they_are_split() {
        let mut inbox = Inbox::default();
        let (mut written, mut read) = (0_u64, 0_u64);
        for step in 0..400_u64 {
            let source: Vec<u8> = (0..step % 97 * 3000).map(|i| ((written + i) % 251) as u8).collect();
            written += inbox.fill_from(source.as_slice(), MOST).unwrap() as u64;
            let take = inbox.len().min((step % 71 * 4000) as usize);
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
        while inbox.fill_from(&mut rest, MOST).unwrap() > 0 {}
        assert_eq!(inbox.len(), source.len());
        inbox.consume(source.len());
        inbox.fill_from(&source[..5], MOST).unwrap();
        assert!(inbox.bytes.len() <= KEPT_LENGTH);
    }
}
