//! The portable engine: the reference for the accelerated ones.

use aes::Aes128Enc;
use aes::cipher::array::Array;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use lanner_primitives::{Block, sigma};
use zeroize::Zeroize;

use super::{Engine, GATES_PER_SCHEDULE, Gate, Kernels, ROW, steps};
use crate::circuit::Operand;
use crate::half_gates::{LANES, Lanes, Row};

pub(super) const KERNELS: Kernels = Kernels {
    name: "Portable",
    garble: |group, steps, rows| steps::garble(&mut Portable::new(group.delta), group, steps, rows),
    evaluate: |group, steps, rows| steps::evaluate(&mut Portable::new(Block::ZERO), group, steps, rows),
};

/// The arithmetic of gates through the `aes` crate.
struct Portable {
    delta: Block,
    /// The keys of both halves of each gate.
    keys: [[Block; 2]; GATES_PER_SCHEDULE],
}

impl Portable {
    /// The engine for a delta, which evaluation does not use.
    const fn new(delta: Block) -> Self {
        Self { delta, keys: [[Block::ZERO; 2]; GATES_PER_SCHEDULE] }
    }

    fn zero_labels(&self, slots: &[Lanes], operand: Operand) -> [Block; LANES] {
        let flip = if operand.inverted() { self.delta } else { Block::ZERO };
        slots[operand.slot()].0.map(|label| label ^ flip)
    }
}

impl Drop for Portable {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}

impl Engine for Portable {
    fn schedule(&mut self, tweak: Block, first: u64) {
        for (gate, keys) in (first..).zip(&mut self.keys) {
            for (half, key) in (0..).zip(keys) {
                *key = tweak ^ Block(u128::from(2 * gate + half));
            }
        }
    }

    fn xor(&self, slots: &mut [Lanes], gate: Gate<usize>) {
        let (a, b) = (slots[gate.a].0, slots[gate.b].0);
        slots[gate.out] = Lanes(std::array::from_fn(|lane| a[lane] ^ b[lane]));
    }

    fn garble_and(&self, index: usize, slots: &mut [Lanes], gate: Gate<Operand>, row: &mut Row) {
        let (a0, b0) = (self.zero_labels(slots, gate.a), self.zero_labels(slots, gate.b));
        let [garbler_half, evaluator_half] = self.keys[index].map(Hash::new);
        let (ha0, hb0) = (garbler_half.hash(a0), evaluator_half.hash(b0));
        let ha1 = garbler_half.hash(a0.map(|label| label ^ self.delta));
        let hb1 = evaluator_half.hash(b0.map(|label| label ^ self.delta));
        let out = &mut slots[gate.out].0;
        for lane in 0..LANES {
            let (pa, pb) = (Block::mask(a0[lane].lsb()), Block::mask(b0[lane].lsb()));
            row.garbler[lane] = ha0[lane] ^ ha1[lane] ^ pb & self.delta;
            row.evaluator[lane] = hb0[lane] ^ hb1[lane] ^ a0[lane];
            out[lane] =
                ha0[lane] ^ pa & row.garbler[lane] ^ hb0[lane] ^ pb & (row.evaluator[lane] ^ a0[lane]);
        }
    }

    fn evaluate_and(&self, index: usize, slots: &mut [Lanes], gate: Gate<usize>, row: &[u8; ROW]) {
        let (a, b) = (slots[gate.a].0, slots[gate.b].0);
        let [garbler_half, evaluator_half] = self.keys[index].map(Hash::new);
        let (ha, hb) = (garbler_half.hash(a), evaluator_half.hash(b));
        let row: Row = bytemuck::pod_read_unaligned(row);
        let out = &mut slots[gate.out].0;
        for lane in 0..LANES {
            let (sa, sb) = (Block::mask(a[lane].lsb()), Block::mask(b[lane].lsb()));
            out[lane] = ha[lane] ^ sa & row.garbler[lane] ^ hb[lane] ^ sb & (row.evaluator[lane] ^ a[lane]);
        }
    }
}

/// `H(x, i) = AES_(salt xor i)(sigma(x)) xor sigma(x)` for one `i`.
struct Hash(Aes128Enc);

impl Hash {
    fn new(key: Block) -> Self {
        Self(Aes128Enc::new(&Array(key.to_bytes())))
    }

    fn hash(&self, labels: [Block; LANES]) -> [Block; LANES] {
        let inputs = labels.map(sigma);
        let mut blocks = inputs.map(|x| Array(x.to_bytes()));
        self.0.encrypt_blocks(&mut blocks);
        std::array::from_fn(|lane| Block::from_bytes(blocks[lane].0) ^ inputs[lane])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197, appendix C.1, through the hash: `sigma` of this label is the standard's plaintext.
    #[test]
    fn hash_is_the_standards_cipher_with_feed_forward() {
        let key = Block::from_bytes(std::array::from_fn(|i| i as u8));
        let plaintext = Block::from_bytes(std::array::from_fn(|i| 0x11 * i as u8));
        let (high, low) = (plaintext.0 >> 64, plaintext.0 & u128::from(u64::MAX));
        let label = Block(low << 64 | (high ^ low));
        assert!(sigma(label) == plaintext);
        let ciphertext = Block::from_bytes(0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a_u128.to_be_bytes());
        assert!(Hash::new(key).hash([label; LANES])[5] == ciphertext ^ plaintext);
    }
}
