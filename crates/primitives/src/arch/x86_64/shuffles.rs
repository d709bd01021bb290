//! Orders of the 32-bit integers of each block.

/// The words of each block swapped.
pub(super) const SWAP: i32 = 0b01_00_11_10;
/// In each word twice the upper integer of the block's other word.
pub(super) const OTHER_HIGH: i32 = 0b01_01_11_11;
