//! The largest of shared values, and where it is: in groups of some, of which all pairs are compared at once, level by level.
//!
//! ```text
//! c_ij = [x_j > x_i]             for all i < j of a group: comparisons
//! w_i = AND not c_ij AND c_ji    over all others of the group: a tree of products of bits
//! x = sum w_i x_i, and k = sum w_i k_i of the indices: multiplexers
//! ```
//!
//! Of equal values the first one wins, in a group and so of all: a group's values stand next to each other.

use lanner_primitives::Ring;
use lanner_step::{Party, ProtocolError, Result};

use super::driver::{Driver, Task, only};
use super::lanes::Lanes;
use super::scale::Scale;

/// The values of a group: as many pairs more than values as rounds fewer than by twos.
const GROUP: usize = 8;

/// As many values are one group: another level takes more than their pairs.
const LAST_GROUP: usize = 12;

/// Values that are left of a tournament, and the indices of those that they are.
struct Left<V> {
    values: V,
    indices: V,
}

/// How values are compared: in groups of `size` that stand next to each other, the last of which may have fewer.
struct Groups {
    count: usize,
    size: usize,
}

impl Groups {
    const fn new(count: usize) -> Self {
        Self { count, size: if count <= LAST_GROUP { count } else { GROUP } }
    }

    /// All pairs of a group's values, the first of each the one in front.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let end = move |i: usize| self.count.min((i / self.size + 1) * self.size);
        (0..self.count).flat_map(move |i| (i + 1..end(i)).map(move |j| (i, j)))
    }

    /// For each other place of a group, where what tells of each value and the one there is in a list: what tells of pairs, of pairs the other way
    /// round, and last what is true.
    fn opponents(&self) -> Vec<Vec<usize>> {
        let pairs = self.pairs().count();
        let mut opponents = vec![vec![2 * pairs; self.count]; self.size - 1];
        for (number, (i, j)) in self.pairs().enumerate() {
            // Of the second the pair itself tells, of the first its opposite; its own place is left out.
            opponents[i % self.size][j] = number;
            opponents[j % self.size - 1][i] = pairs + number;
        }
        opponents
    }

    /// For each place of a group, the values there, one of each group; `count` where there is none.
    fn places(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        let starts = move || (0..self.count).step_by(self.size);
        (0..self.size).map(move |place| starts().map(|start| self.count.min(start + place)).collect())
    }
}

/// The largest of values shared modulo `2^bits`, the differences of which have a sign there, and its index modulo `2^index_bits`: the first of equal ones.
pub(super) fn largest<D: Driver>(
    driver: &mut D,
    values: &D::Values,
    [bits, index_bits]: [u32; 2],
) -> Result<[D::Values; 2]> {
    let indices: Vec<D::Values> = (0..values.count())
        .map(|index| {
            let share = driver.public(index as u64);
            values.range(index..index + 1).map(|_| share)
        })
        .collect();
    let indices = D::Values::concat(&indices.iter().collect::<Vec<_>>());
    let mut left = Left { values: values.clone(), indices };
    while left.values.count() > 1 {
        left = level(driver, left, [bits, index_bits])?;
    }
    Ok([left.values, left.indices])
}

/// The largest of each group.
fn level<D: Driver>(
    driver: &mut D,
    Left { values, indices }: Left<D::Values>,
    [bits, index_bits]: [u32; 2],
) -> Result<Left<D::Values>> {
    let groups = Groups::new(values.count());
    let wins = wins(driver, &values, bits, &groups)?;
    let choices = || wins.clone();
    let tasks = vec![
        Task::Mux { choices: choices(), values, bits },
        Task::Mux { choices: choices(), values: indices, bits: index_bits },
    ];
    let mut kept = driver.turn(tasks)?.into_iter().zip([bits, index_bits]).map(|(kept, bits)| {
        let kept = only(kept)?;
        let none = kept.range(0..1).map(|_| 0);
        let all = D::Values::concat(&[&kept, &none]);
        let sum = |sum: D::Values, part: D::Values| sum.zip_map(&part, |a, b| Ring::Pow2(bits).add(a, b));
        groups.places().map(|at| all.gather(&at)).reduce(sum).ok_or_else(missing)
    });
    let mut next = || kept.next().ok_or_else(missing)?;
    Ok(Left { values: next()?, indices: next()? })
}

/// Whether each value is the largest of its group, in words.
fn wins<D: Driver>(driver: &mut D, values: &D::Values, bits: u32, groups: &Groups) -> Result<D::Values> {
    let (first, second): (Vec<usize>, Vec<usize>) = groups.pairs().unzip();
    let (ring, one) = (Ring::Pow2(bits), driver.public(1));
    let above = values.gather(&second).zip_map(&values.gather(&first), |b, a| ring.sub(ring.sub(b, a), one));
    let larger = Scale { from: bits, shift: 0 }.not_negative(driver, &above)?;
    let smaller = driver.complement(&larger).bits(first.len());
    let larger = larger.bits(first.len());
    let truth = u64::from(driver.party() == Party::Client);
    let all = D::Values::concat(&[&larger, &smaller, &values.range(0..1).map(|_| truth)]);
    let mut told: Vec<D::Values> =
        groups.opponents().iter().map(|opponent| all.gather(opponent).words()).collect();
    while told.len() > 1 {
        let spare = if told.len().is_multiple_of(2) { None } else { told.pop() };
        let (a, b) = told.split_at(told.len() / 2);
        let [a, b] = [a, b].map(|rows| D::Values::concat(&rows.iter().collect::<Vec<_>>()));
        let both = only(driver.bit_products(a, vec![b])?)?;
        let words = both.count() / (told.len() / 2);
        told = (0..told.len() / 2).map(|row| both.range(row * words..(row + 1) * words)).collect();
        told.extend(spare);
    }
    only(told)
}

fn missing() -> ProtocolError {
    ProtocolError::Missing("values to find the largest of")
}
