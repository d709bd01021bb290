//! What the formulas of both papers are made of: the library's moves.

use std::sync::Arc;

use lanner_primitives::Ring;
use lanner_step::ProtocolError;
use lanner_transfers::blocks::{Driver, Lanes, Table, Task, carry};

/// Values that are not negative, shared modulo `2^bits`, all below half of that.
#[derive(Clone)]
pub(crate) struct Positive<V> {
    pub(crate) values: V,
    pub(crate) bits: u32,
}

/// `2^bits - 1`.
pub(crate) const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// The only row that each of some moves gives.
pub(crate) fn rows<V, const N: usize>(given: Vec<Vec<V>>) -> Result<[V; N], ProtocolError> {
    let rows: Vec<V> = given.into_iter().flatten().collect();
    rows.try_into().map_err(|_| ProtocolError::Missing("the results of moves"))
}

/// Whether values that are shared modulo `2^bits` are negative, in words: one comparison.
pub(crate) fn sign<D: Driver>(driver: &mut D, x: &D::Values, bits: u32) -> Result<D::Values, ProtocolError> {
    let below = bits - 1;
    let carry = carry(driver, x.map(|x| x & mask(below)), below)?;
    Ok(carry.zip_map(&x.map(|x| x >> below).words(), |carry, top| carry ^ top))
}

/// `floor(x / 2^drop)` modulo `2^left`, exact, of values shared modulo `2^(drop + left)`; and the carry of what was dropped, in words.
pub(crate) fn truncate<D: Driver>(
    driver: &mut D,
    x: &D::Values,
    drop: u32,
    left: u32,
) -> Result<(D::Values, D::Values), ProtocolError> {
    let carry = carry(driver, x.map(|x| x & mask(drop)), drop)?;
    let carried = driver.bits_to_values(&carry.bits(x.count()), left)?;
    let ring = Ring::Pow2(left);
    Ok((x.zip_map(&carried, |x, carry| ring.embed(((x >> drop) + carry) as i64)), carry))
}

/// `x + [c] y` for shared bits in words, modulo `2^bits`.
pub(crate) fn add_where<D: Driver>(
    driver: &mut D,
    x: &D::Values,
    choices: D::Values,
    y: D::Values,
    bits: u32,
) -> Result<D::Values, ProtocolError> {
    let [chosen] = rows(driver.turn(vec![Task::Mux { choices, values: y, bits }])?)?;
    Ok(x.zip_map(&chosen, |x, y| Ring::Pow2(bits).add(x & mask(bits), y)))
}

/// The products with numbers modulo `2^factor`, of those with both shares of them and those with the carry of both.
pub(crate) fn without_wrap<V: Lanes>(product: &V, wrapped: &V, factor: u32, bits: u32) -> V {
    let ring = Ring::Pow2(bits);
    product.zip_map(wrapped, |product, wrapped| ring.sub(product, ring.embed((wrapped << factor) as i64)))
}

/// The products of two values each, modulo `2^to`, and below half of that: the numbers' carry as a bit, the others in a wider ring, then one
/// product with both shares of the numbers and one with their carry.
pub(crate) fn multiply<D: Driver>(
    driver: &mut D,
    x: &Positive<D::Values>,
    y: &Positive<D::Values>,
    to: u32,
) -> Result<D::Values, ProtocolError> {
    // Positive values wrap where either share has its top bit.
    let [top_x, top_y] = [x, y].map(|x| x.values.map(|share| share >> (x.bits - 1)));
    let both = |mine: &D::Values, bits: u32| Task::Products { mine: mine.clone(), factor: 1, bits };
    let [both_x, both_y] = rows(driver.turn(vec![both(&top_x, 1), both(&top_y, to - y.bits)])?)?;
    let choices = top_x.zip_map(&both_x, |top, both| (top ^ both) & 1).words();
    let wraps = top_y.zip_map(&both_y, u64::wrapping_sub);
    let ring = Ring::Pow2(to);
    let from = y.bits;
    let values = y.values.zip_map(&wraps, |y, wraps| ring.sub(y, ring.embed((wraps << from) as i64)));
    let whole =
        Task::Multiply { numbers: x.values.clone(), factor: x.bits, values: values.clone(), bits: to };
    let [product, wrapped] =
        rows(driver.turn(vec![whole, Task::Mux { choices, values, bits: to - x.bits }])?)?;
    Ok(without_wrap(&product, &wrapped, x.bits, to))
}

/// A public table of columns, each with the bits of its entries.
pub(crate) fn table(place_bits: u32, columns: Vec<(u32, Vec<u64>)>) -> Result<Arc<Table>, ProtocolError> {
    Table::new(place_bits, columns).map(Arc::new)
}
