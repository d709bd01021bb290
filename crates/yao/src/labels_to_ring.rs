//! From the labels of a circuit's outputs to shares modulo a prime, each times secrets of the garbler's: one message ahead of time, none online.
//!
//! For an output `z` the garbler has its zero-label `Z`, delta and multipliers `m_e`; the evaluator will have the active label `Z xor z delta`, whose lowest bit
//! is its colour. `pad(label)_e` is an element made of a hash of the label. Of the two labels of an output, that of colour 0 stands for `pi`, the permute
//! bit. The garbler sends
//!
//! ```text
//! d_e = pad(label of colour 0)_e - pad(label of colour 1)_e + m_e (1 - 2 pi)
//! ```
//!
//! and keeps `m_e pi - pad(label of colour 0)_e`. The evaluator's share is `pad(active label)_e`, plus `d_e` where the colour is 1; their sum is `m_e z`.
//! The evaluator can compute one pad of the two, so `d` is uniform to it, whatever the multipliers; and there is no other message by which it could
//! shift a share, as in [`crate::bits_to_ring`].
//!
//! Four elements come from two blocks, as the four digits below the point of a fraction of 256 bits in base p: together within `2^-150` of uniform for `p < 2^26`.

use lanner_primitives::{Block, Ring, TweakableHash, parallel};
use lanner_step::{ProtocolError, Result};
use zeroize::Zeroizing;

/// The elements that one output is turned into.
pub const TERMS: usize = 4;

/// Elements for each of some outputs.
pub type Terms = Vec<[u64; TERMS]>;

/// What both parties agree on.
pub struct LabelsToRing {
    hash: TweakableHash,
    prime: u64,
    /// The tweak of the first output's first block: others use none from here to twice the outputs.
    first: u128,
}

impl LabelsToRing {
    /// Of a public salt of the garbler's, whose tweaks from `first` on serve these outputs alone.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless the prime has at most 26 bits.
    pub fn new(salt: Block, prime: u64, first: u128) -> Result<Self> {
        if !(3..1 << MOST_BITS).contains(&prime) {
            return Err(ProtocolError::Parameters("a prime of that many bits for labels"));
        }
        Ok(Self { hash: TweakableHash::new(salt), prime, first })
    }

    /// The garbler's part: what it sends, and its shares.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] unless there are multipliers for each label.
    pub fn garbler(
        &self,
        zero_labels: &[Block],
        delta: Block,
        multipliers: &[[u64; TERMS]],
    ) -> Result<(Terms, Zeroizing<Terms>)> {
        ProtocolError::check_length("multipliers of outputs", zero_labels.len(), multipliers.len())?;
        let parts = zero_labels.chunks(AT_ONCE).zip(multipliers.chunks(AT_ONCE)).enumerate();
        let made = parallel::map(parts, |(part, (zero_labels, multipliers))| {
            self.garbler_part(part * AT_ONCE, zero_labels, delta, multipliers)
        });
        let (mut sent, mut shares) =
            (Vec::with_capacity(multipliers.len()), Zeroizing::new(Vec::with_capacity(multipliers.len())));
        for (sent_part, shares_part) in made {
            sent.extend_from_slice(&sent_part);
            shares.extend_from_slice(&shares_part);
        }
        Ok((sent, shares))
    }

    /// [`Self::garbler`] for the outputs from number `start` on.
    fn garbler_part(
        &self,
        start: usize,
        zero_labels: &[Block],
        delta: Block,
        multipliers: &[[u64; TERMS]],
    ) -> (Terms, Zeroizing<Terms>) {
        let ring = Ring::Prime(self.prime);
        // By colours: the label of colour 0 is the zero-label, moved by delta where that has colour 1.
        let of_colour = |colour: bool| {
            let moved = |zero: &Block| *zero ^ (Block::mask(zero.lsb() ^ colour) & delta);
            Zeroizing::new(zero_labels.iter().map(moved).collect::<Vec<_>>())
        };
        let [zeros, ones] = [false, true].map(|colour| self.pads(start, &of_colour(colour)));
        let mut shares = Zeroizing::new(Vec::with_capacity(multipliers.len()));
        let mut sent = Vec::with_capacity(multipliers.len());
        for ((zero_label, terms), (zero, one)) in
            zero_labels.iter().zip(multipliers).zip(zeros.iter().zip(ones.iter()))
        {
            let permute = u64::from(zero_label.lsb()).wrapping_neg();
            let select = |yes: u64, no: u64| (yes & permute) | (no & !permute);
            shares.push(std::array::from_fn(|e| ring.sub(select(terms[e], 0), zero[e])));
            let signed = |e: usize| select(ring.neg(terms[e]), terms[e]);
            sent.push(std::array::from_fn(|e| ring.add(ring.sub(zero[e], one[e]), signed(e))));
        }
        (sent, shares)
    }

    /// The evaluator's shares, given what the garbler sent, whose elements are below the prime.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] unless there is as much as labels.
    pub fn evaluator(&self, active_labels: &[Block], sent: &[[u64; TERMS]]) -> Result<Zeroizing<Terms>> {
        ProtocolError::check_length("corrections of outputs", active_labels.len(), sent.len())?;
        let ring = Ring::Prime(self.prime);
        let parts = active_labels.chunks(AT_ONCE).zip(sent.chunks(AT_ONCE)).enumerate();
        let made = parallel::map(parts, |(part, (active_labels, sent))| {
            let mut shares = self.pads(part * AT_ONCE, active_labels);
            for (share, (label, sent)) in shares.iter_mut().zip(active_labels.iter().zip(sent)) {
                let colour = u64::from(label.lsb()).wrapping_neg();
                *share = std::array::from_fn(|e| ring.add(share[e], sent[e] & colour));
            }
            shares
        });
        let mut shares = Zeroizing::new(Vec::with_capacity(sent.len()));
        for part in &made {
            shares.extend_from_slice(part);
        }
        Ok(shares)
    }

    /// The pads of the labels of outputs from number `start` on.
    fn pads(&self, start: usize, labels: &[Block]) -> Zeroizing<Terms> {
        let first = self.first.wrapping_add(2 * start as u128);
        let mut hashes = [(); 2].map(|()| Zeroizing::new(labels.to_vec()));
        for (number, hashes) in hashes.iter_mut().enumerate() {
            self.hash.hash_in_place(hashes, Block::ZERO, first.wrapping_add(number as u128), 2);
        }
        let pairs = hashes[0].iter().zip(hashes[1].iter());
        Zeroizing::new(pairs.map(|(high, low)| digits([*low, *high], self.prime)).collect())
    }
}

/// Outputs that one thread converts at a time.
const AT_ONCE: usize = 1 << 12;

/// The first digits in base `p` of the fraction whose lower and upper half these are.
fn digits(fraction: [Block; 2], p: u64) -> [u64; TERMS] {
    let mut words = Zeroizing::new([0; 4]);
    for (half, words) in fraction.iter().zip(words.chunks_exact_mut(2)) {
        words[0] = half.0 as u64;
        words[1] = (half.0 >> 64) as u64;
    }
    std::array::from_fn(|_| {
        words.iter_mut().fold(0, |carry, word| {
            let product = u128::from(*word) * u128::from(p) + u128::from(carry);
            *word = product as u64;
            (product >> 64) as u64
        })
    })
}

/// The most bits of a prime.
const MOST_BITS: u32 = 26;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lanner_gc::{CircuitBuilder, Evaluator, Garbler, GcError, TablesInMemory, Wire};
    use lanner_primitives::{Bits, Prg};
    use rand_core::{Rng, SeedableRng};

    use super::*;

    const PRIME: u64 = 1_032_193;

    fn conversion(first: u128) -> LabelsToRing {
        LabelsToRing::new(Block(77), PRIME, first).unwrap()
    }

    /// Outputs of every kind: of gates, inverted, constant, known to the garbler, repeated, an input itself, and an input inverted.
    #[test]
    fn shares_of_every_kind_of_output_add_up_to_its_multiples() {
        let mut builder = CircuitBuilder::new();
        let (x, y, known) = (builder.evaluator_input(), builder.evaluator_input(), builder.garbler_input());
        let (both, masked) = (builder.and(x, y), builder.xor(x, known));
        let outputs = [both, !both, Wire::ZERO, Wire::ONE, known, !known, both, x, !x, masked, !masked];
        let circuit = builder.build(&outputs).unwrap();
        let mut rng = Prg::from_seed([1; 16]);
        let instances = 40;
        let delta = Block::random(&mut rng).with_lsb(true);
        let mut inputs = vec![Block::ZERO; 2 * instances];
        rng.fill_blocks(&mut inputs);
        let bits = Bits::random(2 * instances, &mut rng);
        let known = Bits::random(instances, &mut rng);
        let mut zeros = vec![Block::ZERO; outputs.len() * instances];
        let mut tables = Vec::new();
        Garbler::new(&circuit, delta, Block(5), 0)
            .unwrap()
            .garble_with_labels(instances, &inputs, &known, &mut zeros, &mut |chunk: &[u8]| {
                tables.extend_from_slice(chunk);
                Ok::<_, GcError>(())
            })
            .unwrap();
        let labels: Vec<Block> =
            inputs.iter().zip(bits.iter()).map(|(zero, bit)| *zero ^ (Block::mask(bit) & delta)).collect();
        let mut active = vec![Block::ZERO; zeros.len()];
        Evaluator::new(&circuit, Block(5), 0)
            .evaluate_with_labels(instances, &labels, &mut active, &mut TablesInMemory::new(&tables))
            .unwrap();

        let multipliers: Terms = (0..zeros.len())
            .map(|i| [1, (1 << (i % 12)) % PRIME, rng.next_u64() % PRIME, PRIME - 1])
            .collect();
        let (sent, own) = conversion(9).garbler(&zeros, delta, &multipliers).unwrap();
        let other = conversion(9).evaluator(&active, &sent).unwrap();
        for instance in 0..instances {
            let given = [bits.get(2 * instance), bits.get(2 * instance + 1)];
            let clear = circuit.evaluate_clear(&given, &[known.get(instance)]).unwrap();
            for (j, value) in clear.iter().enumerate() {
                let i = instance * outputs.len() + j;
                for e in 0..TERMS {
                    let expected = if *value { multipliers[i][e] } else { 0 };
                    assert!(own[i][e] < PRIME && other[i][e] < PRIME && sent[i][e] < PRIME);
                    assert_eq!((own[i][e] + other[i][e]) % PRIME, expected, "output {j}, term {e}");
                }
            }
        }
        assert!(conversion(9).garbler(&zeros, delta, &multipliers[1..]).is_err());
        assert!(conversion(9).evaluator(&active, &sent[1..]).is_err());
    }

    /// Equal labels at different places, and under other tweaks, have unrelated pads: circuits hash sixteen instances' labels under one key.
    #[test]
    fn equal_labels_have_pads_of_their_own_at_every_place() {
        let pads = [9, 11, 1 << 100].map(|first| conversion(first).pads(0, &[Block(3); 16]));
        let mut seen: Vec<_> = pads[0].iter().chain(pads[2].iter()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 32);
        // Tweaks that overlap would give the same: it is the caller who keeps them apart.
        assert!(pads[0][1] == pads[1][0]);
    }

    #[test]
    fn digits_are_those_of_the_fraction() {
        let ones = digits([Block::ONES; 2], PRIME);
        assert_eq!(ones, [PRIME - 1; 4]);
        assert_eq!(digits([Block::ZERO; 2], PRIME), [0; 4]);
        // A half, and 2^-20 in base 1024.
        assert_eq!(digits([Block::ZERO, Block(1 << 127)], 10), [5, 0, 0, 0]);
        assert_eq!(digits([Block::ZERO, Block(1 << 108)], 1024), [0, 1, 0, 0]);
        assert_eq!(digits([Block(1), Block::ZERO], 1024), [0; 4]);
    }

    /// What the evaluator sees does not depend on the multipliers: uniform digits for the greatest and the least.
    #[test]
    fn what_is_sent_is_uniform() {
        const CELLS: u64 = 16;
        let mut rng = Prg::from_seed([2; 16]);
        let small = LabelsToRing::new(Block(8), 257, 0).unwrap();
        for multiplier in [0, 1, 256] {
            let mut labels = vec![Block::ZERO; 4096];
            rng.fill_blocks(&mut labels);
            let delta = Block::random(&mut rng).with_lsb(true);
            let (sent, _) = small.garbler(&labels, delta, &vec![[multiplier; TERMS]; labels.len()]).unwrap();
            for e in 0..TERMS {
                let mut counts = [0_u64; CELLS as usize];
                // 0 to 255 in sixteen cells of sixteen.
                sent.iter()
                    .filter(|terms| terms[e] < 256)
                    .for_each(|terms| counts[(terms[e] / CELLS) as usize] += 1);
                let statistic = lanner_testkit::uniform_chi_square(&counts);
                let limit = lanner_testkit::chi_square_limit(CELLS as usize - 1);
                assert!(statistic < limit, "multiplier {multiplier}, term {e}: {statistic}");
            }
        }
    }
}
