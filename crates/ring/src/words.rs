//! Words that do not change any more: their own, or a part of a region that others hold too.

use std::ops::{Deref, Range};
use std::sync::Arc;

use zeroize::ZeroizeOnDrop;

use crate::Buffer;

/// Memory that is lent for reading: the same words for as long as it lives, aligned as vectors are loaded, to 64 bytes.
pub trait Region: Send + Sync {
    /// All of its words.
    fn words(&self) -> &[u64];
}

/// A part of a region, which keeps the whole.
#[derive(Clone)]
pub struct Extent {
    region: Arc<dyn Region>,
    range: Range<usize>,
}

/// Words that are read alone. What they own is erased when dropped; what they were lent is their region's to erase.
///
/// They may be secret, so there is neither `Debug` nor `==`.
#[derive(Clone)]
pub struct Words(Place);

#[derive(Clone)]
enum Place {
    Own(Buffer),
    Lent(Extent),
}

impl Extent {
    /// The words in that range of a region; none if it has fewer.
    #[must_use]
    pub fn new(region: Arc<dyn Region>, range: Range<usize>) -> Option<Self> {
        region.words().get(range.clone())?;
        Some(Self { region, range })
    }

    /// Splits into parts of `len` words each, a last one of fewer if they do not go up.
    ///
    /// # Panics
    /// If `len` is zero.
    pub fn chunks(&self, len: usize) -> impl Iterator<Item = Self> + '_ {
        assert_ne!(len, 0, "parts of some words");
        let starts = self.range.clone().step_by(len);
        starts.map(move |start| {
            let end = start.saturating_add(len).min(self.range.end);
            Self { region: Arc::clone(&self.region), range: start..end }
        })
    }

    /// Splits behind the first `len` words; none if there are fewer.
    #[must_use]
    pub fn split_at(&self, len: usize) -> Option<[Self; 2]> {
        let middle = self.range.start.checked_add(len).filter(|middle| *middle <= self.range.end)?;
        let part = |range| Self { region: Arc::clone(&self.region), range };
        Some([part(self.range.start..middle), part(middle..self.range.end)])
    }
}

impl Deref for Extent {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.region.words()[self.range.clone()]
    }
}

impl Deref for Words {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match &self.0 {
            Place::Own(words) => words,
            Place::Lent(words) => words,
        }
    }
}

impl From<Buffer> for Words {
    fn from(words: Buffer) -> Self {
        Self(Place::Own(words))
    }
}

impl From<Extent> for Words {
    fn from(words: Extent) -> Self {
        Self(Place::Lent(words))
    }
}

/// What is owned erases itself.
impl ZeroizeOnDrop for Words {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    struct Fixed(Buffer);

    impl Region for Fixed {
        fn words(&self) -> &[u64] {
            &self.0
        }
    }

    fn region() -> Arc<dyn Region> {
        let words: Vec<u64> = (0..24).collect();
        Arc::new(Fixed(Buffer::from(&words[..])))
    }

    #[test]
    fn lent_words_are_those_of_the_region_and_keep_it() {
        let extent = Extent::new(region(), 8..24).unwrap();
        let words = Words::from(extent.clone());
        assert_eq!(words[..], Words::from(Buffer::from(&extent[..]))[..]);
        let copy = words.clone();
        drop((words, extent));
        assert!(copy.iter().copied().eq(8..24));
    }

    #[test]
    fn parts_are_where_they_are_asked_for_and_none_is_outside() {
        let extent = Extent::new(region(), 4..20).unwrap();
        let [first, second] = extent.split_at(6).unwrap();
        assert!(first.iter().copied().eq(4..10) && second.iter().copied().eq(10..20));
        assert!(extent.split_at(17).is_none() && extent.split_at(usize::MAX).is_none());
        let parts: Vec<Extent> = extent.chunks(7).collect();
        assert!(parts.iter().flat_map(|part| part.iter().copied()).eq(4..20));
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [7, 7, 2]);
        assert!(Extent::new(region(), 8..25).is_none());
    }
}
