//! Strings as words that mask elements, one for each sample.

use std::ops::Range;

use lanner_primitives::Block;
use lanner_step::encoding::{read_blocks, write_blocks};
use lanner_wire::{DecodeError, Reader, Writer};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::places::Places;
use crate::lanes::{Values, decode, mask};
use crate::matrices::stretch_from;

/// Strings: of one sample the word that each is, of more the whole of it.
pub(super) enum Pads {
    Words(Values),
    Blocks(Zeroizing<Vec<Block>>),
}

impl ZeroizeOnDrop for Pads {}

impl Pads {
    /// Room for so many strings.
    pub(super) fn zeros(places: &Places, count: usize) -> Self {
        if places.width() == 1 {
            Self::Words(Zeroizing::new(vec![0; count]))
        } else {
            Self::Blocks(Zeroizing::new(vec![Block::ZERO; count]))
        }
    }

    /// Parts of so many strings each.
    pub(super) fn parts(&mut self, count: usize) -> Box<dyn Iterator<Item = PadsMut<'_>> + Send + '_> {
        match self {
            Self::Words(words) => Box::new(words.chunks_mut(count).map(PadsMut::Words)),
            Self::Blocks(blocks) => Box::new(blocks.chunks_mut(count).map(PadsMut::Blocks)),
        }
    }

    /// The words of the string at a place, which is string `number` of the layer's. Streams of different strings have no counter in common.
    pub(super) fn fill(&self, place: usize, number: u64, words: &mut Words) {
        let Words { blocks, words } = words;
        match self {
            Self::Words(all) => words[0] = all[place],
            Self::Blocks(all) => {
                let count = blocks.len() as u64;
                match blocks.as_mut_slice() {
                    [block] => *block = all[place],
                    blocks => stretch_from(all[place], number * count, blocks),
                }
                let halves = blocks.iter().flat_map(|block| [block.0 as u64, (block.0 >> 64) as u64]);
                words.iter_mut().zip(halves).for_each(|(word, half)| *word = half);
            }
        }
    }

    /// The words of consecutive strings of the layer's, all of the first sample, then of the next.
    pub(super) fn fill_all(&self, numbers: Range<usize>, words: &mut Words, all: &mut [u64]) {
        if let Self::Words(strings) = self {
            return all.copy_from_slice(&strings[numbers]);
        }
        let count = numbers.len();
        for (at, number) in numbers.enumerate() {
            self.fill(number, number as u64, words);
            all[at..].iter_mut().step_by(count).zip(words.get()).for_each(|(slot, word)| *slot = *word);
        }
    }

    pub(super) fn encode(&self, places: &Places, writer: &mut Writer) {
        match self {
            Self::Words(words) => writer.packed(words, places.bits()),
            Self::Blocks(blocks) => write_blocks(blocks, writer),
        }
    }

    /// Of so many strings.
    pub(super) fn decode(
        places: &Places,
        count: usize,
        reader: &mut Reader<'_>,
    ) -> Result<Self, DecodeError> {
        if places.width() == 1 {
            return Ok(Self::Words(decode(reader, count, places.bits())?));
        }
        Ok(Self::Blocks(read_blocks(reader, count)?))
    }
}

/// Some of the strings, as they are made.
pub(super) enum PadsMut<'p> {
    Words(&'p mut [u64]),
    Blocks(&'p mut [Block]),
}

impl PadsMut<'_> {
    /// Strings from a place on.
    pub(super) fn put(&mut self, places: &Places, first: usize, strings: &[Block]) {
        match self {
            Self::Words(words) => words[first..].iter_mut().zip(strings).for_each(|(word, string)| {
                *word = string.0 as u64 & mask(places.bits());
            }),
            Self::Blocks(blocks) => blocks[first..][..strings.len()].copy_from_slice(strings),
        }
    }
}

/// The words of one string, one for each sample.
pub(super) struct Words {
    blocks: Zeroizing<Vec<Block>>,
    words: Values,
}

impl Words {
    pub(super) fn new(places: &Places) -> Self {
        Self {
            blocks: Zeroizing::new(vec![Block::ZERO; places.width().div_ceil(2)]),
            words: Zeroizing::new(vec![0; places.width()]),
        }
    }

    pub(super) fn get(&self) -> &[u64] {
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use lanner_step::Samples;

    use super::*;

    /// A key that came twice would still not mask two elements alike.
    #[test]
    fn streams_of_different_strings_have_no_counter_in_common() {
        const SAMPLES: usize = 8;
        let samples = Samples::try_from(SAMPLES).unwrap();
        let places = Places::new([3, 5], 62, samples).unwrap();
        let pads = Pads::Blocks(Zeroizing::new(vec![Block(7); places.strings()]));
        let mut words = Words::new(&places);
        let mut all = vec![0; places.strings() * SAMPLES];
        for (all, number) in all.chunks_mut(SAMPLES).zip(0..) {
            pads.fill(number, number as u64, &mut words);
            all.copy_from_slice(words.get());
        }
        let mut distinct = all.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), all.len());
        // Of a row at once: sample by sample.
        let mut row = vec![0; 3 * SAMPLES];
        pads.fill_all(6..9, &mut words, &mut row);
        assert!((0..row.len()).all(|at| row[at] == all[(6 + at % 3) * SAMPLES + at / 3]));
    }
}
