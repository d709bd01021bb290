//! Files as memory: mapped where the system does so, else read.

#[cfg(unix)]
mod mapped;
#[cfg(any(not(unix), test))]
mod portable;

use std::fs::File;
use std::io;
use std::sync::Arc;

use lanner_ring::Region;

/// The words of a file. It has some, in whole numbers, and nobody may write to it any more.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if its length is none of whole words; any failure of the system.
pub(crate) fn region(file: &File) -> io::Result<Arc<dyn Region>> {
    #[cfg(unix)]
    return Ok(Arc::new(mapped::Mapped::new(file)?));
    #[cfg(not(unix))]
    Ok(Arc::new(portable::Read::new(file)?))
}

/// # Errors
/// [`io::ErrorKind::InvalidData`] unless so many bytes are words, and some.
fn check_words(bytes: usize) -> io::Result<()> {
    if bytes > 0 && bytes.is_multiple_of(size_of::<u64>()) {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "not a whole number of words"))
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
        for words in [1, 8, 511, 512, 513, 70_000] {
            let bytes: Vec<u8> =
                (0..8 * words as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
            let file = file(&bytes);
            let (region, read) = (region(&file).unwrap(), portable::Read::new(&file).unwrap());
            assert_eq!(region.words().len(), words);
            assert!(region.words() == read.words());
            assert!(bytemuck::must_cast_slice::<u64, u8>(region.words()) == bytes);
            assert!(region.words().as_ptr().addr().is_multiple_of(64));
        }
    }

    #[test]
    fn what_is_no_whole_number_of_words_is_refused() {
        for length in [0, 1, 7, 9, 4097] {
            let file = file(&vec![1; length]);
            assert_eq!(region(&file).err().unwrap().kind(), io::ErrorKind::InvalidData);
            assert_eq!(portable::Read::new(&file).err().unwrap().kind(), io::ErrorKind::InvalidData);
        }
    }
}
