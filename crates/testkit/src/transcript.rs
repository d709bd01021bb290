//! What parties said, kind by kind, and what it must look like.

use std::collections::{BTreeMap, BTreeSet};

use crate::Party;
use crate::uniform::{check_bits, check_points, check_residues};

/// What the messages of one kind are drawn from if they say nothing.
#[derive(Clone, Debug)]
pub enum Domain {
    /// Free bits; values have these widths.
    Bits(Vec<usize>),
    /// A given number of bytes that are free, then blocks of a given number of packed values below each modulus in turn.
    Residues {
        /// Bytes of seeds.
        seed: usize,
        /// Values of a block; the last may have fewer.
        values: usize,
        /// Of at least 17 bits each.
        moduli: Vec<u64>,
    },
    /// Encodings of Ristretto elements.
    Points,
}

/// What each kind of message is drawn from.
pub type Domains = BTreeMap<u16, Domain>;

/// The messages of some runs, by who sent them and by kind.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    said: BTreeMap<(&'static str, u16), Vec<Vec<u8>>>,
}

/// A kind of message that is not what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Who sent it.
    pub party: &'static str,
    /// The kind.
    pub kind: u16,
    /// What is wrong.
    pub what: String,
}

impl Transcript {
    /// All that parties of these names sent.
    #[must_use]
    pub fn of(parties: [(&'static str, &Party); 2]) -> Self {
        let mut transcript = Self::default();
        for (name, party) in parties {
            party.sent.iter().for_each(|(kind, payload)| transcript.note(name, kind.0, payload));
        }
        transcript
    }

    /// Adds a message.
    pub fn note(&mut self, party: &'static str, kind: u16, payload: &[u8]) {
        self.said.entry((party, kind)).or_default().push(payload.to_vec());
    }

    /// Adds the messages of another run.
    pub fn extend(&mut self, other: Self) {
        for (from, messages) in other.said {
            self.said.entry(from).or_default().extend(messages);
        }
    }

    /// Who sent what.
    #[must_use]
    pub fn kinds(&self) -> BTreeSet<(&'static str, u16)> {
        self.said.keys().copied().collect()
    }

    /// What the messages of two runs with the same masks add up to: what would be told without masks.
    ///
    /// # Panics
    /// If the messages' numbers or lengths differ.
    #[must_use]
    pub fn unmasked_by(&self, other: &Self) -> Self {
        assert_eq!(self.kinds(), other.kinds());
        let add = |(a, b): (&Vec<u8>, &Vec<u8>)| {
            assert_eq!(a.len(), b.len());
            a.iter().zip(b).map(|(a, b)| a ^ b).collect()
        };
        let of = |(from, messages): (&(&'static str, u16), &Vec<Vec<u8>>)| {
            assert_eq!(messages.len(), other.said[from].len());
            (*from, messages.iter().zip(&other.said[from]).map(add).collect())
        };
        Self { said: self.said.iter().map(of).collect() }
    }

    /// All kinds that are not uniform in their domain; a kind that has none is one of them.
    #[must_use]
    pub fn faults(&self, domains: &Domains) -> Vec<Fault> {
        let check = |((party, kind), messages): (&(&'static str, u16), &Vec<Vec<u8>>)| {
            let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
            let checked = match domains.get(kind) {
                None => Err("nothing is said of this kind".to_owned()),
                Some(domain) => domain.check(&messages),
            };
            checked.err().map(|what| Fault { party, kind: *kind, what })
        };
        self.said.iter().filter_map(check).collect()
    }
}

impl Domain {
    fn check(&self, messages: &[&[u8]]) -> Result<(), String> {
        match self {
            Self::Bits(widths) => check_bits(messages, widths),
            Self::Points => check_points(messages),
            Self::Residues { seed, values, moduli } => {
                let (seeds, packed): (Vec<&[u8]>, Vec<&[u8]>) =
                    messages.iter().map(|message| message.split_at(*seed)).unzip();
                if *seed > 0 {
                    check_bits(&seeds, &[])?;
                }
                check_blocks(&packed, *values, moduli)
            }
        }
    }
}

fn check_blocks(messages: &[&[u8]], count: usize, moduli: &[u64]) -> Result<(), String> {
    let mut values = vec![Vec::new(); moduli.len()];
    for message in messages {
        let mut rest = *message;
        for limb in (0..moduli.len()).cycle() {
            if rest.is_empty() {
                break;
            }
            let bits = (u64::BITS - moduli[limb].leading_zeros()) as usize;
            let (block, later) = rest.split_at((count * bits).div_ceil(8).min(rest.len()));
            values[limb].extend(unpack(block, bits).take(count));
            rest = later;
        }
    }
    moduli.iter().zip(&values).try_for_each(|(modulus, values)| check_residues(values, *modulus))
}

/// The packed values of a given number of bits that bytes hold whole.
fn unpack(bytes: &[u8], bits: usize) -> impl Iterator<Item = u64> {
    let bit = |i: usize| u64::from(bytes[i / 8] >> (i % 8) & 1);
    (0..8 * bytes.len() / bits)
        .map(move |value| (0..bits).rev().fold(0, |word, i| word << 1 | bit(value * bits + i)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestRng;
    use rand_core::Rng;

    fn random(length: usize, rng: &mut TestRng) -> Vec<u8> {
        let mut bytes = vec![0; length];
        rng.fill_bytes(&mut bytes);
        bytes
    }

    /// A given number of uniform values.
    fn packed(rng: &mut TestRng, modulus: u64) -> Vec<u8> {
        let bits = u64::BITS - modulus.leading_zeros();
        let values = (0..VALUES).map(|_| rng.next_u64() % modulus);
        let coins: Vec<u8> =
            values.flat_map(|value| (0..bits).map(move |i| (value >> i & 1) as u8)).collect();
        coins.chunks(8).map(|coins| coins.iter().rev().fold(0, |byte, coin| byte << 1 | coin)).collect()
    }

    const VALUES: usize = 1600;

    /// A run whose masks are those of `seed`, on a constant input.
    fn run(seed: u64, input: u8) -> Transcript {
        let mut rng = TestRng::new(seed);
        let mut transcript = Transcript::default();
        for kind in [1, 2] {
            let masked: Vec<u8> = random(600, &mut rng).iter().map(|mask| mask ^ input).collect();
            transcript.note("client", kind, &masked);
        }
        transcript
    }

    fn domains() -> Domains {
        [1, 2].map(|kind| (kind, Domain::Bits(vec![16]))).into()
    }

    #[test]
    fn masked_messages_pass_and_without_masks_they_do_not() {
        for input in [0, 0xff] {
            assert_eq!(run(1, input).faults(&domains()), []);
        }
        let kinds: Vec<u16> =
            run(1, 0).unmasked_by(&run(1, 1)).faults(&domains()).iter().map(|f| f.kind).collect();
        assert_eq!(kinds, [1, 2]);
        let mut twice = run(1, 0);
        twice.extend(run(1, 3));
        assert_eq!(twice.faults(&domains()).len(), 2);
    }

    #[test]
    fn a_kind_that_is_not_listed_is_a_fault() {
        let mut transcript = run(1, 0);
        transcript.note("server", 3, &random(600, &mut TestRng::new(9)));
        let faults = transcript.faults(&domains());
        assert_eq!((faults.len(), faults[0].party, faults[0].kind), (1, "server", 3));
    }

    #[test]
    fn blocks_are_read_modulus_by_modulus() {
        let mut rng = TestRng::new(4);
        let moduli = [1_032_193_u64, 114_689];
        let mut transcript = Transcript::default();
        for _ in 0..2 {
            let mut message = random(100, &mut rng);
            for modulus in &moduli {
                message.extend(packed(&mut rng, *modulus));
            }
            transcript.note("client", 1, &message);
        }
        let faults = |moduli: &[u64]| {
            let domain = Domain::Residues { seed: 100, values: VALUES, moduli: moduli.to_vec() };
            transcript.faults(&[(1, domain)].into())
        };
        assert_eq!(faults(&moduli), []);
        assert_eq!(faults(&[moduli[1], moduli[0]]).len(), 1);
        assert_eq!(faults(&[1_032_193 + 2, 114_689]).len(), 0, "a modulus that is close");
        assert_eq!(faults(&[moduli[0] - 50_000, moduli[1]]).len(), 1);
    }
}
