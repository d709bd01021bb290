//! What a file of encoded weights holds.
//!
//! Format, in words of 64 bits as the machine has them: a head of [`HEAD`] words, parts that begin at whole lines of 8 words, and an entry of
//! [`ENTRY`] words for each part to the end.
//!
//! | words | head |
//! |---|---|
//! | 0 | [`MAGIC`], which no machine of another byte order takes for its own |
//! | 1 | number of entries |
//! | 2 | where the entries begin |
//! | 3 to 6 | identity |
//! | 7 to 10 | SHA-256 of words 0 to 6 and the entries |
//! | 11 to 15 | 0 |
//!
//! | words | entry |
//! |---|---|
//! | 0 to 3 | name |
//! | 4 to 7 | SHA-256 of its words |
//! | 8, 9 | where it begins, and its number of words |

use std::collections::HashMap;
use std::ops::Range;

use bytemuck::{must_cast, must_cast_slice};
use sha2::{Digest, Sha256};

/// The parts of a file, by their names.
pub struct Contents(HashMap<[u8; 32], Part>);

/// Where a part lies.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) range: Range<usize>,
    pub(super) digest: [u8; 32],
}

impl Contents {
    /// Reads head and entries of a file; none if they are not those of a file of this identity, whole and unchanged. The parts' own words are
    /// not looked at.
    #[must_use]
    pub fn parse(file: &[u64], identity: &[u8; 32]) -> Option<Self> {
        let head: &[u64; HEAD] = file.first_chunk()?;
        let [count, start] = [head[1], head[2]].map(|word| usize::try_from(word).ok());
        let (count, start) = (count?, start?);
        let end = start.checked_add(count.checked_mul(ENTRY)?)?;
        let unused = &head[11..];
        let whole = head[0] == MAGIC
            && unused.iter().all(|word| *word == 0)
            && head[3..7] == words(identity)
            && end == file.len()
            && start >= HEAD;
        if !whole || head[7..11] != words(&digest([&head[..7], &file[start..]])) {
            return None;
        }
        let part = |entry: &[u64]| {
            let [start_of, length] = [entry[8], entry[9]].map(|word| usize::try_from(word).ok());
            let (first, length) = (start_of?, length?);
            let range = first..first.checked_add(length)?;
            let inside = range.start >= HEAD && range.end <= start && range.start.is_multiple_of(LINE);
            let (name, digest) = (bytes(&entry[..4])?, bytes(&entry[4..8])?);
            inside.then_some((name, Part { range, digest }))
        };
        Some(Self(file[start..].chunks_exact(ENTRY).map(part).collect::<Option<_>>()?))
    }

    /// The part of a name.
    pub(super) fn part(&self, name: &[u8; 32]) -> Option<&Part> {
        self.0.get(name)
    }

    /// All parts.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.0.values()
    }
}

/// The words of an entry.
pub(super) fn entry(name: &[u8; 32], part: &Part) -> [u64; ENTRY] {
    let mut entry = [0; ENTRY];
    entry[..4].copy_from_slice(&words(name));
    entry[4..8].copy_from_slice(&words(&part.digest));
    (entry[8], entry[9]) = (part.range.start as u64, part.range.len() as u64);
    entry
}

/// The head of a file whose entries begin at a place.
pub(super) fn head(identity: &[u8; 32], start: usize, entries: &[[u64; ENTRY]]) -> [u64; HEAD] {
    let mut head = [0; HEAD];
    (head[0], head[1], head[2]) = (MAGIC, entries.len() as u64, start as u64);
    head[3..7].copy_from_slice(&words(identity));
    let digest = digest([&head[..7], entries.as_flattened()]);
    head[7..11].copy_from_slice(&words(&digest));
    head
}

/// SHA-256 of words.
pub(super) fn digest<'w>(parts: impl IntoIterator<Item = &'w [u64]>) -> [u8; 32] {
    let digest = parts
        .into_iter()
        .fold(Sha256::new(), |digest, words| digest.chain_update(must_cast_slice::<u64, u8>(words)));
    digest.finalize().into()
}

/// A name or a digest as words.
fn words(bytes: &[u8; 32]) -> [u64; 4] {
    must_cast(*bytes)
}

/// Words as a name or a digest.
fn bytes(words: &[u64]) -> Option<[u8; 32]> {
    words.first_chunk::<4>().map(|words| must_cast(*words))
}

/// `LANNERW1` as bytes of a machine that has the least significant first.
const MAGIC: u64 = u64::from_le_bytes(*b"LANNERW1");
/// Words of the head, two lines.
pub(super) const HEAD: usize = 16;
/// Words of an entry.
pub(super) const ENTRY: usize = 10;
/// Words of a line, at which vectors are loaded.
pub(super) const LINE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: [u8; 32] = [5; 32];

    fn file(entries: &[[u64; ENTRY]], change: impl Fn(&mut [u64; HEAD])) -> Vec<u64> {
        let start = HEAD + 2 * LINE;
        let mut head = head(&IDENTITY, start, entries);
        change(&mut head);
        // With the right digest, so that what is behind it is reached.
        let digest = digest([&head[..7], entries.as_flattened()]);
        head[7..11].copy_from_slice(&words(&digest));
        [&head[..], &[0; 2 * LINE], entries.as_flattened()].concat()
    }

    fn part(start: u64, length: u64) -> [u64; ENTRY] {
        let mut words = entry(&[1; 32], &Part { range: 0..0, digest: [2; 32] });
        (words[8], words[9]) = (start, length);
        words
    }

    #[test]
    fn parts_lie_between_head_and_entries_at_whole_lines() {
        let parse = |start, length| Contents::parse(&file(&[part(start, length)], |_| ()), &IDENTITY);
        let (first, end) = (HEAD as u64, (HEAD + 2 * LINE) as u64);
        for (start, length) in [(first, 0), (first, 16), (first + 8, 8), (first + 8, 1), (end, 0)] {
            assert_eq!(parse(start, length).unwrap().part(&[1; 32]).unwrap().range.len() as u64, length);
        }
        let huge = [u64::MAX, u64::MAX - 7, 1 << 63, 1 << 61];
        let outside = [(0, 8), (8, 8), (first + 1, 1), (first, 17), (first + 8, 9), (end + 8, 0)];
        let outside =
            outside.into_iter().chain(huge.map(|word| (word, 8))).chain(huge.map(|word| (first, word)));
        for (start, length) in outside {
            assert!(parse(start, length).is_none(), "{start} and {length}");
        }
    }

    #[test]
    fn heads_of_other_files_and_huge_numbers_are_refused() {
        let entries = [part(HEAD as u64, 8), part(HEAD as u64 + 8, 8)];
        assert!(Contents::parse(&file(&entries, |_| ()), &IDENTITY).is_some());
        assert!(Contents::parse(&file(&entries, |_| ()), &[6; 32]).is_none());
        for place in (0..7).chain(11..HEAD) {
            for word in [0, 1, 3, 7, 1 << 61, 1 << 63, u64::MAX - 1, u64::MAX] {
                let changed = file(&entries, |head| head[place] = word);
                // What is zero anyway.
                let same = changed == file(&entries, |_| ());
                assert!(same || Contents::parse(&changed, &IDENTITY).is_none(), "{word} at {place}");
            }
        }
        let swapped = file(&entries, |head| head[0] = head[0].swap_bytes());
        assert!(Contents::parse(&swapped, &IDENTITY).is_none());
    }
}
