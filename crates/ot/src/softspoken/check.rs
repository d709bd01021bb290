//! The receiver proves of each batch of transfers that it corrected all trees by the same choices.
//!
//! ```text
//! R                                                    S
//!   31 corrections of 128 transfers more  ---------->    (they hide the sums below, and serve nothing else)
//!   corrections, chunk by chunk           ---------->
//!   chi of each chunk: a hash of all that was said up to its end
//!   u = sum of chi^i x_i,                                w_r = sum of chi^i q_(r,i)
//!   v_r = sum of chi^i t_(r,i)
//!   u, SHA-256(v_0, ..., v_127)           ---------->    SHA-256(w_0 + delta_0 u, ..., w_127 + delta_127 u) is equal,
//!                                                        or the session is over
//! ```
//!
//! The consistency check of section 4 of [Roy22](https://eprint.iacr.org/2022/192). Rows are cut into elements of `GF(2^128)`: `x_i` is block
//! `i` of the choices, `t_(r,i)` and `q_(r,i)` are block `i` of row `r`; `delta_r` is a bit of delta. The universal hash is a polynomial in the chunk's `chi`, of degree 512
//! at most, without a constant term; the 128 transfers more are added as they are, and were said before any `chi`.
//!
//! Corrections of a tree that differ from the others' by `e` move `w_r` by `delta_r` times the sum of `chi^i e_i`. That sum is 0, or what sums of
//! earlier chunks left, for at most 512 values of `chi`: whoever computes one hash finds such a value with probability `2^-119`. Otherwise the
//! receiver guesses the tree's four bits of delta (three of the first's): it passes with probability `2^-4` and has then learnt them. A tree that is
//! wrong in every other's place is the same case.
//!
//! Nobody waits: hashes give the challenges (Fiat-Shamir), as often as a chunk ends, so that no chunk is kept longer than it takes to come.

use lanner_primitives::{Block, TRANSPOSE_ROWS, field_dot, field_powers};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::leaves::{Context, Hash, first_block, hash};
use super::messages::{CHUNK_STRIPES, Choices};
use super::small_field::STRIPE;

/// Bytes of the proof of a batch.
pub(super) const PROOF_BYTES: usize = Block::BYTES + size_of::<Hash>();

/// The rows of which sums are kept: those of the transfers, then one of choices.
pub(super) const ROWS: usize = TRANSPOSE_ROWS + 1;

/// Bits of computational security of the check: a hash is one of the polynomial's roots with this probability.
pub const SECURITY_BITS: u32 = 128 - (CHUNK_STRIPES * STRIPE).ilog2();

/// The sums over a batch.
pub(super) struct Batch {
    said: Hash,
    sums: Zeroizing<[Block; ROWS]>,
}

impl Batch {
    /// A batch of so many transfers from `position` on.
    pub(super) fn new(context: &Context, position: u64, count: usize, choices: Choices) -> Self {
        let shape = [position, count as u64, choices.trees() as u64].map(u64::to_le_bytes);
        let said = hash(b"lanner OT batch", &[context.as_bytes(), shape.as_flattened()]);
        Self { said, sums: Zeroizing::new([Block::ZERO; ROWS]) }
    }

    /// Notes what the hiding transfers were corrected by, and their rows: the first of all.
    pub(super) fn hide(&mut self, corrections: &[Block], rows: &[Block]) {
        self.said = hash(b"lanner OT chunk", &[&self.said, &digest(corrections)]);
        self.add(rows);
    }

    /// Notes the digests of a chunk's corrections, stripe by stripe; returns the powers that its `blocks` blocks are multiplied by.
    pub(super) fn challenge(&mut self, digests: &[Hash], blocks: usize) -> Vec<Block> {
        self.said = hash(b"lanner OT chunk", &[&self.said, digests.as_flattened()]);
        field_powers(first_block(&hash(b"lanner OT challenge", &[&self.said])), blocks)
    }

    /// Adds the sums of some stripe.
    pub(super) fn add(&mut self, sums: &[Block]) {
        self.sums.iter_mut().zip(sums).for_each(|(sum, more)| *sum ^= *more);
    }

    /// The receiver's proof.
    pub(super) fn prove(&self) -> [u8; PROOF_BYTES] {
        let (rows, choices) = self.sums.split_at(TRANSPOSE_ROWS);
        let mut proof = [0; PROOF_BYTES];
        let (u, v) = proof.split_at_mut(Block::BYTES);
        u.copy_from_slice(&choices[0].to_bytes());
        v.copy_from_slice(&self.digest(rows));
        proof
    }

    /// Whether the sender, whose rows these are, believes the proof.
    pub(super) fn verify(&self, delta: Block, proof: &[u8; PROOF_BYTES]) -> bool {
        let (u, v) = proof.split_at(Block::BYTES);
        let u = Block::from_bytes(std::array::from_fn(|i| u[i]));
        let mut rows = Zeroizing::new([Block::ZERO; TRANSPOSE_ROWS]);
        for (r, (row, sum)) in rows.iter_mut().zip(self.sums.iter()).enumerate() {
            *row = *sum ^ (u & Block::mask(delta.0 >> r & 1 == 1));
        }
        self.digest(&rows[..]).ct_eq(v).into()
    }

    fn digest(&self, rows: &[Block]) -> Hash {
        hash(b"lanner OT proof", &[&self.said, Block::slice_as_bytes(rows)])
    }
}

/// The digest of a stripe's corrections.
pub(super) fn digest(corrections: &[Block]) -> Hash {
    hash(b"lanner OT stripe", &[Block::slice_as_bytes(corrections)])
}

/// The sums of the rows of a stripe, each multiplied by `powers`, which are as many as its blocks.
pub(super) fn sums(powers: &[Block], rows: &[Block]) -> Zeroizing<[Block; ROWS]> {
    let mut sums = Zeroizing::new([Block::ZERO; ROWS]);
    for (sum, row) in sums.iter_mut().zip(rows.chunks_exact(powers.len())) {
        *sum = field_dot(powers, row);
    }
    sums
}

#[cfg(test)]
mod tests {
    use lanner_primitives::Prg;
    use rand_core::SeedableRng;

    use super::*;
    use crate::softspoken::FIELD_BITS;

    /// Blocks of a batch after the hiding one: two chunks of these.
    const CHUNKS: [usize; 2] = [5, 3];

    /// What a receiver may do in a batch: what it adds to the correction of each tree at a place, and to its proof's sums for having guessed.
    #[derive(Clone, Default)]
    struct Cheat {
        /// Tree, block and what is added.
        errors: Vec<(usize, usize, Block)>,
        /// What it guesses of delta.
        guess: Block,
    }

    /// One batch with the check's powers made by `powers` of the real ones. The rows of trees for which `checked` is false are left out.
    fn passes(
        delta: Block,
        cheat: &Cheat,
        powers: impl Fn(Vec<Block>) -> Vec<Block>,
        checked: impl Fn(usize) -> bool,
    ) -> bool {
        let mut rng = Prg::from_seed([3; 16]);
        let context = Context::new(Block(1), b"set-up");
        let [mut receiver, mut sender] = [(); 2].map(|()| Batch::new(&context, 7, 1024, Choices::Given));
        let mut first = 0;
        for (number, blocks) in [1].into_iter().chain(CHUNKS).enumerate() {
            let mut rows = vec![Block::ZERO; ROWS * blocks];
            rng.fill_blocks(&mut rows);
            let (v, x) = rows.split_at(TRANSPOSE_ROWS * blocks);
            let error = |tree: usize, block: usize| {
                let of = cheat.errors.iter().filter(|(t, b, _)| (*t, *b) == (tree, first + block));
                of.fold(Block::ZERO, |sum, (_, _, error)| sum ^ *error)
            };
            let row = |r: usize, block: usize, bit: Block, errors: bool| {
                let error = if errors { error(r / FIELD_BITS, block) } else { Block::ZERO };
                v[r * blocks + block] ^ (if bit.0 >> r & 1 == 1 { error } else { Block::ZERO })
            };
            let places = || (0..TRANSPOSE_ROWS).flat_map(|r| (0..blocks).map(move |block| (r, block)));
            let kept = |(r, _): &(usize, usize)| checked(r / FIELD_BITS);
            let zero = |on: bool, value: Block| if on { value } else { Block::ZERO };
            // The receiver's rows, moved by what it guesses; the sender's, by what delta makes of choices and errors.
            let t: Vec<Block> =
                places().map(|place| zero(kept(&place), row(place.0, place.1, cheat.guess, true))).collect();
            let q = places().map(|place| {
                let chosen = zero(delta.0 >> place.0 & 1 == 1, x[place.1]);
                zero(kept(&place), row(place.0, place.1, delta, true) ^ chosen)
            });
            let q: Vec<Block> = q.collect();
            let t = [&t[..], x].concat();
            let corrections: Vec<Block> = (0..32)
                .flat_map(|tree| (0..blocks).map(move |block| (tree, block)))
                .map(|(tree, block)| error(tree, block))
                .collect();
            if number == 0 {
                receiver.hide(&corrections, &t);
                sender.hide(&corrections, &q);
            } else {
                let digests = [digest(&corrections)];
                let own = powers(receiver.challenge(&digests, blocks));
                receiver.add(&sums(&own, &t)[..]);
                let own = powers(sender.challenge(&digests, blocks));
                sender.add(&sums(&own, &q)[..]);
            }
            first += blocks;
        }
        let proof = receiver.prove();
        let delta = (0..TRANSPOSE_ROWS)
            .filter(|r| checked(r / FIELD_BITS))
            .fold(Block::ZERO, |kept, r| kept ^ Block(delta.0 & 1 << r));
        sender.verify(delta, &proof)
    }

    fn delta() -> Block {
        Block::random(&mut Prg::from_seed([5; 16])).with_lsb(true)
    }

    fn same(powers: Vec<Block>) -> Vec<Block> {
        powers
    }

    #[test]
    fn one_flipped_bit_passes_only_with_the_trees_bits_of_delta() {
        let delta = delta();
        assert!(passes(delta, &Cheat::default(), same, |_| true));
        for (tree, block, bit) in [(0, 1, 5), (1, 4, 127), (31, 8, 0), (17, 0, 64)] {
            let bits = delta.0 >> (FIELD_BITS * tree) & 15;
            for guess in 0..16 {
                let errors = vec![(tree, block, Block(1 << bit))];
                let cheat = Cheat { errors, guess: Block(guess << (FIELD_BITS * tree)) };
                // One of the sixteen guesses; a check of one bit would let half of them pass.
                assert_eq!(passes(delta, &cheat, same, |_| true), guess == bits, "tree {tree}");
            }
        }
    }

    #[test]
    fn errors_that_add_up_to_nothing_pass_a_constant_challenge_alone() {
        // In one chunk, in both, and with the hiding block, which no power is multiplied by.
        for blocks in [[1, 2], [2, 7], [0, 3]] {
            let errors = blocks.map(|block| (9, block, Block(1 << 77))).to_vec();
            let cheat = Cheat { errors, guess: Block::ZERO };
            let mut delta = delta();
            delta.0 |= 1 << 37;
            assert!(!passes(delta, &cheat, same, |_| true));
            assert!(passes(delta, &cheat, |powers| vec![Block(1); powers.len()], |_| true));
        }
    }

    #[test]
    fn a_check_without_one_tree_would_let_any_correction_pass_there() {
        let mut delta = delta();
        delta.0 |= 1 << 37;
        let cheat = Cheat { errors: vec![(9, 2, Block(1))], guess: Block::ZERO };
        assert!(!passes(delta, &cheat, same, |_| true));
        assert!(passes(delta, &cheat, same, |tree| tree != 9));
    }

    #[test]
    fn proofs_are_of_their_batch_and_of_every_byte() {
        let context = Context::new(Block(1), b"set-up");
        let batch = |position, count, choices| Batch::new(&context, position, count, choices);
        let one = batch(0, 100, Choices::Given);
        let proof = one.prove();
        assert!(one.verify(delta(), &proof));
        for other in
            [batch(1, 100, Choices::Given), batch(0, 101, Choices::Given), batch(0, 100, Choices::Random)]
        {
            assert!(!other.verify(delta(), &proof));
        }
        for byte in 0..PROOF_BYTES {
            let mut proof = proof;
            proof[byte] ^= 1;
            assert!(!one.verify(Block(u128::MAX), &proof), "byte {byte}");
        }
    }
}
