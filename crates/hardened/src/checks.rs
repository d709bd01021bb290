//! What both parties compute of the checks.

use lanner_primitives::{Block, Prg, Seed};
use lanner_ring::sample::uniform_below;
use lanner_step::Result;
use lanner_step::encoding::{read_elements, write_elements};
use lanner_wire::{ChannelError, DecodeError, Reader, Writer};
use lanner_yao::labels_to_ring::TERMS;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::scheme::Scheme;

/// `kappa`.
pub(crate) const EQUATIONS: usize = TERMS - 1;

/// An element of each equation.
pub(crate) type Each = [u64; EQUATIONS];

/// `beta`: for each equation what every check is multiplied by.
pub(crate) fn factors(scheme: &Scheme, seed: &Seed) -> [Zeroizing<Vec<u64>>; EQUATIONS] {
    let mut random = Prg::new(seed.clone());
    std::array::from_fn(|_| {
        let mut factors = Zeroizing::new(vec![0; scheme.masks]);
        uniform_below(&scheme.p, &mut factors, &mut random);
        factors
    })
}

/// The sum of checks' values by their factors, for each equation.
pub(crate) fn joined(scheme: &Scheme, factors: &[Zeroizing<Vec<u64>>; EQUATIONS], values: &[u64]) -> Each {
    std::array::from_fn(|k| {
        let products = factors[k].iter().zip(values).map(|(factor, value)| scheme.p.mul(*factor, *value));
        products.fold(0, |sum, product| scheme.p.add(sum, product))
    })
}

/// What the client sends in the end: it says which prediction it is of.
pub(crate) fn hash(salt: Block, all: &Each) -> [u8; 32] {
    let mut digest = Sha256::new().chain_update(b"lanner hardened check").chain_update(salt.to_bytes());
    for value in all {
        digest.update(value.to_le_bytes());
    }
    digest.finalize().into()
}

/// Appends elements of some terms of each of some conversions.
pub(crate) fn write_terms<const N: usize>(scheme: &Scheme, terms: &[[u64; N]], writer: &mut Writer) {
    write_elements(scheme.ring, terms.as_flattened(), writer);
}

/// Reads what [`write_terms`] wrote.
pub(crate) fn read_terms<const N: usize>(
    scheme: &Scheme,
    count: usize,
    reader: &mut Reader<'_>,
) -> Result<Zeroizing<Vec<[u64; N]>>, DecodeError> {
    let elements = read_elements(reader, scheme.ring, count * N)?;
    Ok(Zeroizing::new(elements.as_chunks().0.to_vec()))
}

/// The same of a whole message.
pub(crate) fn all_terms<const N: usize>(
    scheme: &Scheme,
    count: usize,
    bytes: &[u8],
) -> Result<Zeroizing<Vec<[u64; N]>>> {
    let mut reader = Reader::new(bytes);
    let terms = read_terms(scheme, count, &mut reader).map_err(ChannelError::from)?;
    reader.finish().map_err(ChannelError::from)?;
    Ok(terms)
}

/// The terms of the equations, without the conversion's first one.
pub(crate) fn of_equations(terms: &[[u64; TERMS]]) -> Zeroizing<Vec<Each>> {
    Zeroizing::new(terms.iter().map(|[_, rest @ ..]| *rest).collect())
}

/// With a first term of zero in front.
pub(crate) fn with_first(terms: &[Each]) -> Zeroizing<Vec<[u64; TERMS]>> {
    Zeroizing::new(terms.iter().map(|[a, b, c]| [0, *a, *b, *c]).collect())
}

/// Reads a seed.
pub(crate) fn read_seed(reader: &mut Reader<'_>) -> Result<Seed, DecodeError> {
    Ok(Seed::from_bytes(reader.array()?))
}
