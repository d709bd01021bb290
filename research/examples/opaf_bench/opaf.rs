//! OPAF's exponentials, sigmoid and tanh ([FXXWW24](https://arxiv.org/abs/2403.00239), algorithms 1 to 4).
//!
//! Each party makes exponentials of its own share, moved by 0, 1 or 2 halves of the ring; their products are what `exp(x)` is where the shares'
//! sum is that much too large. They are rounded down before they are multiplied, so that **the result depends on the shares**, of which a party
//! knows one: a bench of it, no protocol of the library's. The last truncation rounds to nearest and is exact, like those of the reciprocal.
//! Exponentials are the processor's, whose time depends on the share.

use lanner_primitives::Ring;
use lanner_step::ProtocolError;
use lanner_transfers::blocks::{self as library, Driver, Lanes, Task, carry};

use crate::blocks::{add_where, mask, rows, sign, truncate};
use crate::reciprocal::Reciprocal;

/// `exp(x / 2^input)` with `scale` fraction bits, for values over `2^bits`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exp {
    pub(crate) input: u32,
    pub(crate) scale: u32,
    pub(crate) bits: u32,
    /// Fraction bits of the parties' exponentials.
    pub(crate) inner: u32,
}

impl Exp {
    /// Bits of the integer part of the largest exponential.
    fn integer_bits(self) -> u32 {
        let largest = f64::from(1_u32 << (self.bits - 1 - self.input));
        (largest * std::f64::consts::LOG2_E).ceil() as u32
    }

    /// Bits of the products of parties' exponentials that a function takes, with a sign.
    pub(crate) fn products_bits(self, program: Program) -> u32 {
        let integer = if matches!(program, Program::Exp) { self.integer_bits() } else { 1 };
        2 * self.inner + integer + 1
    }

    /// Products of both parties' exponentials, each of its share less so many halves of the ring, modulo `2^bits`.
    fn products<V: Lanes>(self, x: &V, halves: u32, bits: u32) -> Task<V> {
        // Below 1 where two halves are taken off, else up to the largest.
        let factor = self.inner + if halves == 2 { 1 } else { self.integer_bits() };
        let [unit, inner] = [self.input, self.inner].map(|scale| f64::from(scale).exp2());
        let offset = f64::from(halves) * f64::from(self.bits - 1).exp2();
        // What is larger is not chosen.
        let own = |x: u64| (((x as f64 - offset) / unit).exp() * inner) as u64 & mask(factor);
        Task::Products { mine: x.map(own), factor, bits }
    }

    /// Rounded to `scale` fraction bits and `left` bits.
    fn round<D: Driver>(self, driver: &mut D, x: &D::Values, left: u32) -> Result<D::Values, ProtocolError> {
        let drop = 2 * self.inner - self.scale;
        let (half, ring) = (driver.public(1 << (drop - 1)), Ring::Pow2(drop + left));
        Ok(truncate(driver, &x.map(|x| ring.add(x, half)), drop, left)?.0)
    }

    /// Of values that are all negative: those below 1, modulo `2^(scale + 2)`.
    fn negative<D: Driver>(self, driver: &mut D, x: &D::Values) -> Result<D::Values, ProtocolError> {
        let bits = self.products_bits(Program::NegativeExp);
        // Shares of a negative number wrap where both have their top bits.
        let top = x.map(|x| x >> (self.bits - 1));
        let tasks = vec![
            self.products(x, 1, bits),
            self.products(x, 2, bits),
            Task::Products { mine: top, factor: 1, bits: 1 },
        ];
        let [one, two, wrap] = rows(driver.turn(tasks)?)?;
        let difference = two.zip_map(&one, |two, one| Ring::Pow2(bits).sub(two, one));
        let chosen = add_where(driver, &one, wrap.words(), difference, bits)?;
        self.round(driver, &chosen, self.scale + 2)
    }

    /// Bits of the results.
    pub(crate) fn to(self) -> u32 {
        self.scale + self.integer_bits() + 1
    }

    /// Of all values, modulo `2^to`.
    fn all<D: Driver>(self, driver: &mut D, x: &D::Values) -> Result<D::Values, ProtocolError> {
        let (below, bits) = (self.bits - 1, self.products_bits(Program::Exp));
        let top = x.map(|x| x >> below);
        let mut tasks: Vec<_> = (0..3).map(|halves| self.products(x, halves, bits)).collect();
        tasks.push(Task::Products { mine: top.clone(), factor: 1, bits: 1 });
        let [none, one, two, both] = rows(driver.turn(tasks)?)?;
        let (top, both) = (top.words(), both.words());
        let carry = carry(driver, x.map(|x| x & mask(below)), below)?;
        // Halves that the sum is too large by: none if neither top bit nor the carry is set, two if all are.
        let given = driver.bit_products(carry.clone(), vec![top.clone(), both.clone()])?;
        let [with_either, all] = rows(vec![given])?;
        let single =
            [&carry, &both, &with_either].into_iter().fold(top, |sum, bits| sum.zip_map(bits, |a, b| a ^ b));
        let ring = Ring::Pow2(bits);
        let less = |x: &D::Values| x.zip_map(&none, |x, none| ring.sub(x, none));
        let mux = |choices: D::Values, values: D::Values| Task::Mux { choices, values, bits };
        let [first, second] = rows(driver.turn(vec![mux(single, less(&one)), mux(all, less(&two))])?)?;
        let sum = first.zip_map(&second, |first, second| ring.add(first, second));
        let chosen = none.zip_map(&sum, |none, sum| ring.add(none, sum));
        self.round(driver, &chosen, self.to())
    }

    /// `sigmoid(x)`, modulo `2^(scale + 1)`.
    fn sigmoid<D: Driver>(self, driver: &mut D, x: &D::Values) -> Result<D::Values, ProtocolError> {
        let Self { bits, scale, .. } = self;
        let negative = sign(driver, x, bits)?;
        // x where it is negative, else -x - 1, which is a unit off: sums of both parties' shares.
        let (ring, one) = (Ring::Pow2(bits), driver.public(1));
        let opposite = x.map(|x| ring.neg(ring.add(x, one)));
        let twice = x.map(|x| ring.add(ring.add(x, x), one));
        let x = add_where(driver, &opposite, negative.clone(), twice, bits)?;
        let e = self.negative(driver, &x)?;
        let (one, ring) = (driver.public(1 << scale), Ring::Pow2(scale + 2));
        let v = e.map(|e| ring.add(e, one));
        let (w, _) = Reciprocal::line(scale).run(driver, &v, None)?;
        let ring = Ring::Pow2(w.bits);
        let complement = w.values.map(|w| ring.sub(one, ring.add(w, w)));
        add_where(driver, &w.values, negative, complement, w.bits)
    }
}

/// What is made of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Program {
    Exp,
    /// Of values that are all negative.
    NegativeExp,
    Sigmoid,
    /// `2 sigmoid(x) - 1`, with a fraction bit less.
    Tanh,
}

/// A function in the paper's way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opaf {
    pub(crate) program: Program,
    pub(crate) exp: Exp,
}

impl library::Program for Opaf {
    fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values, ProtocolError> {
        match self.program {
            Program::Exp => self.exp.all(driver, x),
            Program::NegativeExp => self.exp.negative(driver, x),
            Program::Sigmoid => self.exp.sigmoid(driver, x),
            Program::Tanh => {
                let bits = self.exp.scale + 1;
                let half = driver.public(1 << (self.exp.scale - 1));
                Ok(self.exp.sigmoid(driver, x)?.map(|y| Ring::Pow2(bits).sub(y, half)))
            }
        }
    }
}
