//! Whether values that must say nothing are uniform: bits, residues, group elements. Each statistic is taken at a level of `10^-6`, so these
//! are for fixed seeds.

use std::collections::BTreeSet;

use crate::statistics::{chi_square_limit, uniform_chi_square};

/// Checks that the bits of messages are fair coins and that no mask comes twice: the bytes; the bits at each position of values of the
/// given `widths` and of bytes; the same of each value added to its neighbour; the bytes of every two messages of one length added.
///
/// # Errors
/// What is not uniform, or that there is too little to judge.
pub fn check_bits(messages: &[&[u8]], widths: &[usize]) -> Result<(), String> {
    check_bytes(messages.concat().iter().copied())?;
    for width in widths.iter().copied().chain([8]) {
        check_positions(messages, width, 0)?;
        check_positions(messages, width, width)?;
    }
    check_pairs(messages)
}

/// Checks that values below `modulus`, of at least 17 bits, are uniform in their high bits and in their low ones, and so are the
/// differences of neighbours.
///
/// # Errors
/// What is not uniform, or that there is too little to judge.
pub fn check_residues(values: &[u64], modulus: u64) -> Result<(), String> {
    if let Some(value) = values.iter().find(|value| **value >= modulus) {
        return Err(format!("{value} is not below {modulus}"));
    }
    let difference = |pair: &[u64]| (pair[1] + (modulus - pair[0])) % modulus;
    let differences: Vec<u64> = values.windows(2).map(difference).collect();
    for (what, values) in [("values", values), ("differences of neighbours", &differences)] {
        let bins: usize = if values.len() < MANY * 64 { 16 } else { 64 };
        let (mut high, mut low) = (vec![0; bins], vec![0; bins]);
        for value in values {
            high[(u128::from(*value) * bins as u128 / u128::from(modulus)) as usize] += 1;
            low[*value as usize % bins] += 1;
        }
        check_counts(&high, &format!("the high bits of {what}"))?;
        check_counts(&low, &format!("the low bits of {what}"))?;
    }
    Ok(())
}

/// Checks that encodings of Ristretto elements, 32 bytes each, are uniform but for the lowest bit and the highest, which are zero.
///
/// # Errors
/// What is not uniform, or that there is too little to judge.
pub fn check_points(messages: &[&[u8]]) -> Result<(), String> {
    let bytes = messages.concat();
    let (points, rest) = bytes.as_chunks::<32>();
    if !rest.is_empty() || points.iter().any(|point| point[0] & 1 != 0 || point[31] & 0x80 != 0) {
        return Err("an element that is not encoded as it must be".to_owned());
    }
    check_bytes(points.iter().flat_map(|point| &point[1..31]).copied())?;
    let free = |counts: Vec<[u64; 2]>| counts[1..255].to_vec();
    check_coins(&free(positions(messages, 256, 0)), "free bit")?;
    check_coins(&free(positions(messages, 256, 256)), "free bit, neighbours added,")
}

/// Chi-square over all values of a byte, or over halves of bytes where there are few.
fn check_bytes(bytes: impl Iterator<Item = u8> + Clone) -> Result<(), String> {
    let mut counts = [0; 256];
    bytes.clone().for_each(|byte| counts[usize::from(byte)] += 1);
    if counts.iter().sum::<u64>() >= (MANY * counts.len()) as u64 {
        return check_counts(&counts, "bytes");
    }
    let mut halves = [0; 16];
    bytes.flat_map(|byte| [byte & 15, byte >> 4]).for_each(|half| halves[usize::from(half)] += 1);
    check_counts(&halves, "halves of bytes")
}

fn check_positions(messages: &[&[u8]], width: usize, lag: usize) -> Result<(), String> {
    let added = if lag > 0 { ", neighbours added," } else { "" };
    check_coins(&positions(messages, width, lag), &format!("bit of {width}{added}"))
}

/// How often the bit at each position of values of `width` bits is 0 and 1, added to the bit `lag` places on if that is not zero.
fn positions(messages: &[&[u8]], width: usize, lag: usize) -> Vec<[u64; 2]> {
    let mut counts = vec![[0; 2]; width];
    for message in messages {
        let bit = |i: usize| message[i / 8] >> (i % 8) & 1;
        let mut position = 0;
        for i in 0..(8 * message.len()).saturating_sub(lag) {
            let added = if lag > 0 { bit(i) ^ bit(i + lag) } else { bit(i) };
            counts[position][usize::from(added)] += 1;
            position = if position + 1 == width { 0 } else { position + 1 };
        }
    }
    counts
}

fn check_coins(counts: &[[u64; 2]], what: &str) -> Result<(), String> {
    counts.iter().enumerate().try_for_each(|(at, counts)| check_counts(counts, &format!("{what} {at}")))
}

/// Messages of one length, two by two: with a mask in common they add up to what it masks. Short ones must differ.
fn check_pairs(messages: &[&[u8]]) -> Result<(), String> {
    let mut told = BTreeSet::new();
    if let Some(message) = messages.iter().find(|message| message.len() >= SALT && !told.insert(**message)) {
        return Err(format!("a message of {} bytes comes twice", message.len()));
    }
    for (second, message) in messages.iter().enumerate() {
        let others = messages[..second].iter().filter(|first| first.len() == message.len());
        for first in others.filter(|_| message.len() >= LONG) {
            let added = first.iter().zip(*message).map(|(a, b)| a ^ b);
            check_bytes(added).map_err(|fault| format!("two messages added: {fault}"))?;
        }
    }
    Ok(())
}

fn check_counts(counts: &[u64], what: &str) -> Result<(), String> {
    let (total, limit) = (counts.iter().sum::<u64>(), chi_square_limit(counts.len() - 1));
    if total < (FEW * counts.len()) as u64 {
        return Err(format!("{what}: too few to judge, {total}"));
    }
    let statistic = uniform_chi_square(counts);
    if statistic < limit {
        Ok(())
    } else {
        Err(format!("{what}: chi-square {statistic:.0}, limit {limit:.0}"))
    }
}

/// Values for each outcome below which nothing is judged, and from which finer outcomes are.
const FEW: usize = 8;
const MANY: usize = 20;
/// Bytes of messages that must differ, and of those that are judged two by two.
const SALT: usize = 8;
const LONG: usize = FEW * 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestRng;
    use rand_core::Rng;

    fn random(length: usize, seed: u64) -> Vec<u8> {
        let mut bytes = vec![0; length];
        TestRng::new(seed).fill_bytes(&mut bytes);
        bytes
    }

    #[test]
    fn random_bits_pass() {
        for (length, messages) in [(16, 8), (100, 4), (10_000, 2)] {
            let messages: Vec<Vec<u8>> = (0..messages).map(|seed| random(length, seed)).collect();
            let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
            let widths: &[usize] = if length < 100 { &[] } else { &[11, 20] };
            assert_eq!(check_bits(&messages, widths), Ok(()));
        }
    }

    #[test]
    fn one_bit_of_a_value_that_is_not_masked_is_found() {
        let mut message = random(20_000, 1);
        for value in 0..160_000 / 37 {
            let bit = 37 * value + 5;
            message[bit / 8] &= !(1 << (bit % 8));
        }
        let fault = check_positions(&[&message], 37, 0).unwrap_err();
        assert!(fault.starts_with("bit of 37 5:"), "{fault}");
        assert!(check_bits(&[&message], &[37]).is_err());
    }

    #[test]
    fn masks_that_come_twice_are_found() {
        let (mask, other) = (random(5000, 1), random(5000, 2));
        let masked = |bit: u8| mask.iter().map(|byte| byte ^ bit).collect::<Vec<u8>>();
        assert_eq!(check_bits(&[&masked(1), &other], &[]), Ok(()));
        assert!(check_bits(&[&masked(1), &masked(2)], &[]).is_err());
        assert!(check_bits(&[&masked(1), &masked(1)], &[]).is_err());
        let neighbours: Vec<u8> = mask.iter().flat_map(|byte| [*byte, byte ^ 9]).collect();
        assert!(check_bits(&[&neighbours], &[]).is_err());
    }

    #[test]
    fn residues_are_judged_at_both_ends_and_by_their_neighbours() {
        let mut rng = TestRng::new(1);
        let modulus = 1_032_193;
        let values: Vec<u64> = (0..4000).map(|_| rng.next_u64() % modulus).collect();
        assert_eq!(check_residues(&values, modulus), Ok(()));
        let with =
            |change: &dyn Fn(u64) -> u64| values.iter().map(|value| change(*value)).collect::<Vec<u64>>();
        assert!(check_residues(&with(&|value| value & !1), modulus).is_err());
        assert!(check_residues(&with(&|value| value / 2), modulus).is_err());
        assert!(check_residues(&with(&|value| value + 1), modulus / 2).is_err());
        let neighbours: Vec<u64> = values.iter().flat_map(|value| [*value, (value + 3) % modulus]).collect();
        assert!(check_residues(&neighbours, modulus).is_err());
    }

    #[test]
    fn too_little_is_not_judged() {
        assert!(check_bits(&[&random(15, 1)], &[]).is_err());
        assert!(check_bits(&[&random(100, 1)], &[200]).is_err());
        assert!(check_residues(&[5; 3], 1 << 20).is_err());
        assert!(check_bits(&[], &[]).is_err());
    }
}
