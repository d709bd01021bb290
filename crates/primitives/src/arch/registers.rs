//! What kernels need of registers that hold blocks, whatever their width.

use super::wide::RoundKeys;
use crate::Block;

/// An instruction set whose registers hold whole blocks. A value of it shows that the machine has the
/// instructions; the kernels over it are inlined into functions that the compiler may use them in.
///
/// Words have 64 bits. All of it takes the same time whatever the blocks are.
pub(super) trait Registers: Copy {
    type Register: Copy;
    /// Blocks of a register.
    const LANES: usize;

    /// A block in every lane.
    fn spread(self, block: Block) -> Self::Register;
    /// At most [`Self::LANES`] blocks, and zeros.
    fn load(self, blocks: &[Block]) -> Self::Register;
    /// Writes as many lanes as there are blocks, at most [`Self::LANES`].
    fn store(self, blocks: &mut [Block], register: Self::Register);
    /// The words of a register, the lower one of each block first; zeros if there are fewer.
    fn load_words(self, words: &[u64]) -> Self::Register;
    /// Writes the words of a register, if there is room for them.
    fn store_words(self, words: &mut [u64], register: Self::Register);

    fn xor(self, a: Self::Register, b: Self::Register) -> Self::Register;
    fn and(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The sums of the words, each modulo `2^64`.
    fn add(self, a: Self::Register, b: Self::Register) -> Self::Register;

    /// [`sigma`](crate::sigma) of every block.
    fn sigma(self, x: Self::Register) -> Self::Register;
    /// Ones in the blocks whose lowest bit is one, zeros in the others.
    fn where_odd(self, x: Self::Register) -> Self::Register;
    /// Ones in the words of which the other word of the block has its highest bit, zeros in the others.
    fn where_other_is_high(self, x: Self::Register) -> Self::Register;
    /// Ones in the blocks whose words are equal, zeros in the others. All blocks have two equal words.
    fn where_equal(self, a: Self::Register, b: Self::Register) -> Self::Register;

    /// The lower words of the blocks of `a`, then of those of `b`.
    fn low_words(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// Bit `bit` of each word.
    fn bits_of(self, words: Self::Register, bit: u32) -> u64;
    /// Of every product of an integer of 32 bits with `count`, which is below `2^28`, 16 times the upper 32 bits.
    fn byte_places(self, integers: Self::Register, count: u32) -> Self::Register;
}

/// Registers with instructions for AES-128.
pub(super) trait Rounds: Registers {
    /// A round: rows shifted, bytes substituted, columns mixed, the key added.
    fn round(self, state: Self::Register, key: Self::Register) -> Self::Register;
    /// The last round, in which no columns are mixed.
    fn last_round(self, state: Self::Register, key: Self::Register) -> Self::Register;
}

/// Registers with AES-128 on many at once: by [`Rounds`], or by other instructions.
pub(super) trait Cipher: Registers {
    /// A schedule as the encryption takes it.
    type Keys;

    /// The round keys of a schedule, for every lane.
    fn keys(self, keys: &RoundKeys) -> Self::Keys;
    /// The encryptions of registers, each with the other register at its place added.
    fn encrypt<const COUNT: usize>(
        self,
        keys: &Self::Keys,
        state: [Self::Register; COUNT],
        added: [Self::Register; COUNT],
    ) -> [Self::Register; COUNT];
}

/// The sum of the lanes.
#[inline(always)]
pub(super) fn sum_of_lanes<S: Registers>(set: S, register: S::Register) -> Block {
    let mut lanes = [Block::ZERO; MAX_LANES];
    set.store(&mut lanes[..S::LANES], register);
    lanes.into_iter().fold(Block::ZERO, |sum, block| sum ^ block)
}

/// Blocks of the widest register.
pub(super) const MAX_LANES: usize = 4;
