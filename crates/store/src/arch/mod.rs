//! Files as memory: mapped where the system does so, else read.

#[cfg(unix)]
mod mapped;
#[cfg(any(not(unix), test))]
mod portable;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use lanner_ring::Region;

/// Words of a file, by their numbers, that nobody may write any more. The first lies at a whole line of 64 bytes.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] for no words, or more than the file has; any failure of the system.
pub(crate) fn region(file: &File, words: &Range<usize>) -> io::Result<Arc<dyn Region>> {
    #[cfg(unix)]
    return Ok(Arc::new(mapped::Mapped::new(file, words)?));
    #[cfg(not(unix))]
    Ok(Arc::new(portable::Read::new(file, words)?))
}

/// Where words begin in a file, in bytes, and how many bytes they are.
///
/// # Errors
/// As [`region`].
fn place(file: &File, words: &Range<usize>) -> io::Result<(u64, usize)> {
    let [start, end] =
        [words.start, words.end].map(|word| (word as u64).checked_mul(size_of::<u64>() as u64));
    match (start, end) {
        (Some(start), Some(end)) if start < end && end <= file.metadata()?.len() => {
            Ok((start, (end - start) as usize))
        }
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "no words of the file")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn mapped_words_are_those_that_are_read() {
        let bytes: Vec<u8> =
            (0..8 * 70_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let file = file(&bytes);
        for words in [0..1, 0..8, 8..9, 504..512, 512..1025, 8..70_000, 69_992..70_000] {
            let (mapped, read) =
                (region(&file, &words).unwrap(), portable::Read::new(&file, &words).unwrap());
            assert!(mapped.words() == read.words());
            let expected = &bytes[8 * words.start..8 * words.end];
            assert!(bytemuck::must_cast_slice::<u64, u8>(mapped.words()) == expected);
            assert!(mapped.words().as_ptr().addr().is_multiple_of(64));
        }
    }

    #[test]
    fn what_is_not_in_the_file_is_refused() {
        let file = file(&[1; 8 * 100 + 7]);
        let outside =
            [(0, 0), (8, 8), (8, 0), (0, 101), (104, 105), (0, usize::MAX), (usize::MAX - 7, usize::MAX)];
        for words in outside.map(|(start, end)| start..end) {
            assert_eq!(region(&file, &words).err().unwrap().kind(), io::ErrorKind::InvalidData);
            assert_eq!(portable::Read::new(&file, &words).err().unwrap().kind(), io::ErrorKind::InvalidData);
        }
        assert_eq!(region(&file, &(0..100)).unwrap().words(), [u64::MAX / 255; 100]);
    }
}
