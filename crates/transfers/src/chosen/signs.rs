//! The comparisons.

use lanner_step::Result;

use crate::activation::at_least_one;
use crate::driver::{Driver, Program};
use crate::lanes::Lanes;

/// `[x >= 1]` of values over a ring of so many bits, as bits that are shared by sums modulo two.
#[derive(Clone, Debug)]
pub(super) struct Signs {
    pub(super) from: u32,
}

impl Program for Signs {
    fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values> {
        Ok(at_least_one(driver, x, self.from)?.bits(x.count()))
    }
}
