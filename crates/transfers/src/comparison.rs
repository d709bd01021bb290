//! Comparisons of whole numbers: leaves, then a tree of products that joins them.

use lanner_step::{ProtocolError, Result};

use super::driver::{Driver, Part, Task, only, xor};
use super::lanes::Lanes;
use super::moves::{Move, leaves};

/// What is told of a block: whether the first party's is less, and whether both are equal.
type Told<V> = [V; 2];

/// Blocks of one comparison, the lowest first.
struct Tree<V> {
    blocks: Vec<Told<V>>,
    /// Whether it is asked if all are equal.
    equality: bool,
}

impl<V: Lanes> Tree<V> {
    /// Neighbouring blocks, and whether it matters if both are equal: of the lowest it often does not.
    fn pairs(&self) -> impl Iterator<Item = (&[Told<V>; 2], bool)> {
        let (pairs, _) = self.blocks.as_chunks();
        pairs.iter().enumerate().map(|(number, pair)| (pair, self.equality || number > 0))
    }
}

/// Whether the complement of the first party's number is less than each of the second's, and whether both are equal, in words: part by
/// part, way by way. Of a part without `equality` the latter means nothing.
///
/// # Errors
/// As [`Driver::turn`].
pub fn compare<D: Driver>(driver: &mut D, parts: Vec<Part<D::Values>>) -> Result<Vec<Told<D::Values>>> {
    let mut trees: Vec<Tree<D::Values>> = Vec::new();
    let firsts: Vec<usize> = parts
        .iter()
        .map(|part| {
            let of_ways = part.numbers.iter().map(|_| Tree { blocks: Vec::new(), equality: part.equality });
            trees.extend(of_ways);
            trees.len() - part.numbers.len()
        })
        .collect();
    let task = Task::Leaves(parts);
    let Move::Leaves { parts, .. } = task.step() else { return Ok(Vec::new()) };
    let mut told = only(driver.turn(vec![task])?)?.into_iter();
    let mut next = || told.next().ok_or(ProtocolError::Missing("the leaves of a comparison"));
    for leaf in leaves(parts) {
        for way in 0..leaf.ways {
            let less = next()?;
            let equal = if leaf.told == 2 { next()? } else { less.clone() };
            trees[firsts[leaf.part] + way].blocks.push([less, equal]);
        }
    }
    while trees.iter().any(|tree| tree.blocks.len() > 1) {
        join(driver, &mut trees)?;
    }
    Ok(trees.into_iter().flat_map(|tree| tree.blocks).collect())
}

/// Joins neighbouring blocks of all trees, of which the higher decides: `less = less_h xor (equal_h and less_l)`.
fn join<D: Driver>(driver: &mut D, trees: &mut [Tree<D::Values>]) -> Result<()> {
    // Those whose equality matters come first: they have a second product with the same bit.
    let pairs = || trees.iter().flat_map(Tree::pairs);
    let ordered =
        || [true, false].into_iter().flat_map(|both| pairs().filter(move |(_, needed)| *needed == both));
    let gather = |of: &mut dyn Iterator<Item = &D::Values>| D::Values::concat(&of.collect::<Vec<_>>());
    let equal_high = gather(&mut ordered().map(|([_, [_, equal]], _)| equal));
    let less_low = gather(&mut ordered().map(|([[less, _], _], _)| less));
    let both = pairs().filter(|(_, needed)| *needed).count();
    let equal_low = gather(&mut ordered().take(both).map(|([[_, equal], _], _)| equal));
    let others = if both > 0 { vec![less_low, equal_low] } else { vec![less_low] };
    let products = driver.bit_products(equal_high, others)?;
    let words = trees[0].blocks[0][0].count();
    let product = |of: usize, at: usize| products[of].range(at * words..(at + 1) * words);
    let (mut with, mut without) = (0..both, both..);
    for tree in trees {
        let mut joined: Vec<Told<D::Values>> = Vec::new();
        for ([_, [less, _]], needed) in tree.pairs() {
            let at = if needed { with.next() } else { without.next() }.unwrap_or_default();
            let less = less.zip_map(&product(0, at), xor);
            let equal = if needed { product(1, at) } else { less.clone() };
            joined.push([less, equal]);
        }
        // An odd one is left over.
        joined.extend(tree.blocks.drain(..).skip(2 * joined.len()));
        tree.blocks = joined;
    }
    Ok(())
}

/// `[a + b >= 2^bits]`, in words, for each `a` of the client's and `b` of the server's, both of a given number of bits.
///
/// # Errors
/// As [`Driver::turn`].
pub fn carry<D: Driver>(driver: &mut D, mine: D::Values, bits: u32) -> Result<D::Values> {
    let parts = vec![Part { numbers: vec![mine], bits, equality: false }];
    let [less, _] = only(compare(driver, parts)?)?;
    Ok(less)
}
