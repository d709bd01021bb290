//! What layers read and what circuits read: public sums of values, and their transposes.

use lanner_ring::Modulus;
use lanner_step::{ProtocolError, Result};
use zeroize::Zeroizing;

use crate::spec::{Map, Term};

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The input, or the elements that the stage before this number makes.
    Elements(usize),
    /// The outputs of a layer.
    Outputs(usize),
}

/// For each element that a node makes, the value and the element that it copies.
pub(crate) type SourcesOf<'a> = dyn Fn(&str) -> Result<Vec<Option<(usize, usize)>>> + 'a;

/// A sum of values times public integers, rearranged.
pub(crate) struct Form {
    parts: Vec<Part>,
    len: usize,
}

struct Part {
    source: Source,
    /// Elements of the value.
    from: usize,
    /// Modulo the prime.
    factor: u64,
    maps: Vec<Placing>,
}

/// Which elements come to each place.
enum Placing {
    /// The sum of these.
    Sums(Vec<Vec<usize>>),
    /// As a node of the network moves one of the values that it reads.
    Moves { node: String, place: usize, from: usize, to: usize, sources: Option<Vec<Option<usize>>> },
}

impl Form {
    /// The sum of terms, of so many elements.
    pub(crate) fn new(
        terms: &[Term],
        sources: &[Source],
        sizes: &[usize],
        len: usize,
        p: &Modulus,
    ) -> Result<Self> {
        let part = |term: &Term| {
            let map = |map: &Map| {
                Ok::<_, ProtocolError>(match map {
                    Map::Summed(windows) => Placing::Sums(windows.groups()?),
                    Map::Moved { node, place, from, to } => Placing::Moves {
                        node: node.clone(),
                        place: *place,
                        from: *from,
                        to: *to,
                        sources: None,
                    },
                })
            };
            let maps = term.maps.iter().map(map).collect::<Result<_>>()?;
            let (source, from) = (sources[term.of], sizes[term.of]);
            Ok(Part { source, from, factor: p.reduce_signed(term.factor), maps })
        };
        Ok(Self { parts: terms.iter().map(part).collect::<Result<_>>()?, len })
    }

    /// A value as it is.
    pub(crate) fn whole(source: Source, len: usize) -> Self {
        Self { parts: vec![Part { source, from: len, factor: 1, maps: Vec::new() }], len }
    }

    /// Elements of the sum.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Reads how nodes move elements.
    pub(crate) fn resolve(&mut self, sources_of: &SourcesOf<'_>) -> Result<()> {
        for map in self.parts.iter_mut().flat_map(|part| &mut part.maps) {
            let Placing::Moves { node, place, from, to, sources } = map else { continue };
            let all = sources_of(node)?;
            ProtocolError::check_length("elements that a node makes", *to, all.len())?;
            let own = |source: &Option<(usize, usize)>| {
                source.filter(|(input, _)| input == place).map(|(_, element)| element)
            };
            let own: Vec<_> = all.iter().map(own).collect();
            let beyond = own.iter().flatten().any(|element| element >= from);
            ProtocolError::refuse_if(beyond, "elements that a node moves")?;
            *sources = Some(own);
        }
        Ok(())
    }

    /// The sum, of values that `values` looks up: each party computes it on its own shares.
    pub(crate) fn of<'v>(
        &self,
        p: &Modulus,
        values: impl Fn(Source) -> Option<&'v [u64]>,
    ) -> Result<Zeroizing<Vec<u64>>> {
        let mut sum = Zeroizing::new(vec![0; self.len]);
        for part in &self.parts {
            // Masks are of layers' outputs alone.
            let Some(value) = values(part.source) else { continue };
            let mut moved = Zeroizing::new(value.to_vec());
            for map in &part.maps {
                moved = map.apply(p, &moved)?;
            }
            let factor = p.shoup(part.factor);
            let terms = sum.iter_mut().zip(moved.iter());
            terms.for_each(|(sum, element)| *sum = p.add(*sum, p.mul_shoup(*element, factor)));
        }
        Ok(sum)
    }

    /// The transpose of [`Self::of`]: passes on what multiplies each element of the values.
    pub(crate) fn transposed(
        &self,
        p: &Modulus,
        multipliers: &[u64],
        mut add: impl FnMut(Source, &[u64]),
    ) -> Result<()> {
        for part in &self.parts {
            let factor = p.shoup(part.factor);
            let scaled = multipliers.iter().map(|multiplier| p.mul_shoup(*multiplier, factor));
            let mut taken = Zeroizing::new(scaled.collect::<Vec<_>>());
            for (number, map) in part.maps.iter().enumerate().rev() {
                let from = match number.checked_sub(1).map(|before| &part.maps[before]) {
                    Some(before) => before.to(),
                    None => part.from,
                };
                taken = map.transposed(p, &taken, from)?;
            }
            add(part.source, &taken);
        }
        Ok(())
    }
}

impl Placing {
    fn to(&self) -> usize {
        match self {
            Self::Sums(groups) => groups.len(),
            Self::Moves { to, .. } => *to,
        }
    }

    fn apply(&self, p: &Modulus, elements: &[u64]) -> Result<Zeroizing<Vec<u64>>> {
        let sum = |group: &Vec<usize>| group.iter().fold(0, |sum, element| p.add(sum, elements[*element]));
        Ok(Zeroizing::new(match self {
            Self::Sums(groups) => groups.iter().map(sum).collect(),
            Self::Moves { sources, .. } => {
                let sources = sources.as_ref().ok_or(UNRESOLVED)?;
                sources.iter().map(|source| source.map_or(0, |element| elements[element])).collect()
            }
        }))
    }

    fn transposed(&self, p: &Modulus, multipliers: &[u64], from: usize) -> Result<Zeroizing<Vec<u64>>> {
        let mut elements = Zeroizing::new(vec![0; from]);
        let mut add = |element: usize, multiplier| elements[element] = p.add(elements[element], multiplier);
        match self {
            Self::Sums(groups) => {
                for (group, multiplier) in groups.iter().zip(multipliers) {
                    for element in group {
                        add(*element, *multiplier);
                    }
                }
            }
            Self::Moves { sources, .. } => {
                for (source, multiplier) in sources.as_ref().ok_or(UNRESOLVED)?.iter().zip(multipliers) {
                    if let Some(element) = source {
                        add(*element, *multiplier);
                    }
                }
            }
        }
        Ok(elements)
    }
}

const UNRESOLVED: ProtocolError = ProtocolError::Missing("how nodes move elements");
