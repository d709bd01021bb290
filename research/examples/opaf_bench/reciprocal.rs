//! SIRNN's reciprocal, which OPAF has too: a line on each of some segments by one lookup, then Goldschmidt's iterations.
//!
//! As in the library that both papers measured: at scales up to 18 the line alone is close enough, and nothing is iterated. Truncations are exact.

use lanner_primitives::Ring;
use lanner_step::ProtocolError;
use lanner_transfers::blocks::{Driver, Lanes, Task};

use crate::blocks::{Positive, multiply, rows, table, truncate, without_wrap};

/// The reciprocals, and what a task gave that was done beside them.
type Beside<V> = (Positive<V>, Option<V>);

/// Of values from 1 to 2, the latter excluded, with as many fraction bits as the results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reciprocal {
    pub(crate) scale: u32,
    /// Bits of a segment's number.
    place: u32,
    iterations: u32,
}

impl Reciprocal {
    /// The line alone, on so many segments that it is close enough.
    pub(crate) const fn line(scale: u32) -> Self {
        Self { scale, place: (scale - 1) / 2, iterations: 0 }
    }

    /// A line that is right to half of the bits, and one iteration.
    pub(crate) const fn iterated(scale: u32) -> Self {
        Self { scale, place: (scale.div_ceil(2) - 1) / 2, iterations: 1 }
    }

    /// How it goes on behind the line.
    pub(crate) const fn iterations(self) -> &'static str {
        if self.iterations == 0 { "" } else { ", an iteration" }
    }

    /// The reciprocals, modulo `2^(scale + 1)`, of values modulo `2^(scale + 2)`; what another task gives that has the time of a product.
    pub(crate) fn run<D: Driver>(
        self,
        driver: &mut D,
        v: &D::Values,
        beside: Option<Task<D::Values>>,
    ) -> Result<Beside<D::Values>, ProtocolError> {
        let Self { scale, place, .. } = self;
        // Where the value lies between 1 and 2: a segment and a place in it.
        let rest = scale - place;
        let u = v.map(|v| v & ((1 << scale) - 1));
        let (places, carry) = truncate(driver, &u, rest, place)?;
        let e = u.map(|u| u & ((1 << rest) - 1));
        let lines = table(place, self.lines())?;
        let [slope, constant] = rows(driver.turn(vec![Task::Lookup { places, table: lines }])?)?;
        let bits = scale + 4;
        let slope = driver.extend_positive(slope, place + 4, bits)?;
        let mut tasks = vec![
            Task::Multiply { numbers: e, factor: rest, values: slope.clone(), bits },
            Task::Mux { choices: carry, values: slope, bits: bits - rest },
        ];
        tasks.extend(beside);
        let mut given = driver.turn(tasks)?.into_iter();
        let [whole, wrapped] = rows(given.by_ref().take(2).collect())?;
        let other = given.flatten().next();
        let product = without_wrap(&whole, &wrapped, rest, bits);
        let product = driver.extend_positive(product, bits, bits + place)?;
        let ring = Ring::Pow2(bits + place);
        let close = constant.zip_map(&product, |constant, product| {
            ring.sub(ring.embed((constant << (rest + 1)) as i64), product)
        });
        let (values, _) = truncate(driver, &close, place + 3, scale + 1)?;
        let mut w = Positive { values, bits: scale + 1 };
        for _ in 0..self.iterations {
            w = self.iterate(driver, v, &w)?;
        }
        Ok((w, other))
    }

    /// `w (1 + e)` with `e = 1 - v w`.
    fn iterate<D: Driver>(
        self,
        driver: &mut D,
        v: &D::Values,
        w: &Positive<D::Values>,
    ) -> Result<Positive<D::Values>, ProtocolError> {
        let (scale, bits) = (self.scale, self.scale + 2);
        let v = Positive { values: v.clone(), bits };
        let product = multiply(driver, w, &v, 2 * scale + 2)?;
        let (close_to_one, _) = truncate(driver, &product, scale, bits)?;
        let (two, ring) = (driver.public(2 << scale), Ring::Pow2(bits));
        let factor = Positive { values: close_to_one.map(|d| ring.sub(two, d)), bits };
        let product = multiply(driver, w, &factor, 2 * scale + 2)?;
        let (values, _) = truncate(driver, &product, scale, scale + 1)?;
        Ok(Positive { values, bits: scale + 1 })
    }

    /// Slopes and constants of the lines, of which neither is the tangent: they are as far above the reciprocal as below.
    fn lines(self) -> Vec<(u32, Vec<u64>)> {
        let (place, segments) = (self.place, f64::from(1 << self.place));
        let column = |bits: u32, of: &dyn Fn(f64) -> f64| {
            let entry = |j: u32| (of(1.0 + f64::from(j) / segments) * f64::from(bits).exp2()) as u64;
            (bits + 1, (0..1 << place).map(entry).collect())
        };
        let square = |p: f64| p * (p + 1.0 / segments);
        vec![
            column(place + 3, &|p| 1.0 / square(p)),
            column(2 * place + 2, &|p| (0.5 / segments + square(p).sqrt()) / square(p)),
        ]
    }
}
