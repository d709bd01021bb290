//! One way to compute a function, on all inputs and against the clock.

use lanner_primitives::{Prg, Ring, Seed, Share};
use lanner_transfers::Layer;
use lanner_transfers::blocks::Program;

use crate::two_parties::{Failure, measure};

/// Values: the paper's.
pub(crate) const VALUES: usize = 1 << 14;

/// Ways to share an input: see [`Way::share`].
const SHARINGS: usize = 7;

/// Of the inputs at scale 16 so many count as one.
const STRIDE: usize = 9;

/// What is computed, of integers in a range that have `scale` fraction bits, like the results.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) of: fn(f64) -> f64,
    pub(crate) scale: u32,
    /// The first and the last.
    pub(crate) inputs: [i64; 2],
}

impl Function {
    pub(crate) fn new(name: &'static str, of: fn(f64) -> f64, scale: u32, [from, to]: [i64; 2]) -> Self {
        Self { name, of, scale, inputs: [from << scale, (to << scale) - 1] }
    }

    /// In units of the result's last place.
    pub(crate) fn exact(&self, x: i64) -> f64 {
        let unit = f64::from(self.scale).exp2();
        (self.of)(x as f64 / unit) * unit
    }
}

/// How its inputs are shared, and how far its results may be off.
pub(crate) struct Way<'w> {
    pub(crate) name: &'w str,
    pub(crate) ring: Ring,
    /// Added to inputs.
    pub(crate) offset: i64,
    /// Units of the result's last place.
    pub(crate) within: f64,
}

/// What came of it.
pub(crate) struct Trial {
    /// The largest error.
    pub(crate) ulp: f64,
    /// The part of the inputs whose result depends on how they are shared.
    pub(crate) depending: f64,
    /// The fastest run, in milliseconds, offline and online.
    pub(crate) times: [f64; 2],
    /// Bytes of both parties in one run.
    pub(crate) bytes: f64,
}

impl Trial {
    /// Runs on all inputs, as often as there are ways to share them.
    pub(crate) fn run<P: Program + Sync>(
        function: &Function,
        way: &Way<'_>,
        layer: &Layer<P>,
    ) -> Result<Self, Failure> {
        let [from, to] = function.inputs;
        let stride = if function.scale > 12 { STRIDE } else { 1 };
        let all: Vec<i64> = (from..=to).step_by(stride).collect();
        let (mut shares, mut inputs) = (Vec::new(), Vec::new());
        for part in all.chunks(VALUES) {
            let filled: Vec<i64> = part.iter().copied().cycle().take(VALUES).collect();
            for sharing in 0..SHARINGS {
                shares.push(way.share(&filled, sharing)?);
                inputs.push(filled.clone());
            }
        }
        let measured = measure(layer, &shares)?;
        let error = |(x, y): (&i64, &i64)| (*y as f64 - function.exact(*x)).abs();
        let errors = inputs.iter().flatten().zip(measured.outputs.iter().flatten()).map(error);
        let ulp = errors.fold(0.0, f64::max);
        if ulp > way.within {
            return Err(format!("{} by {}: {ulp} units off", function.name, way.name).into());
        }
        let parts = measured.outputs.chunks(SHARINGS);
        let depends =
            |outputs: &[Vec<i64>], i: usize| outputs.iter().any(|of_sharing| of_sharing[i] != outputs[0][i]);
        let depending =
            parts.map(|outputs| (0..VALUES).filter(|i| depends(outputs, *i)).count()).sum::<usize>();
        let fastest = |times: &Vec<f64>| times.iter().copied().fold(f64::INFINITY, f64::min);
        Ok(Self {
            ulp,
            depending: depending as f64 / (all.len().div_ceil(VALUES) * VALUES) as f64,
            times: measured.times.each_ref().map(fastest),
            bytes: measured.bytes,
        })
    }
}

impl Way<'_> {
    /// The shares of the client and the server: twice at random, then all of it with one party, a small random one with either, or half with each.
    fn share(&self, inputs: &[i64], sharing: usize) -> Result<[Share; 2], Failure> {
        let moved: Vec<i64> =
            inputs.iter().map(|x| self.ring.signed(self.ring.embed(x + self.offset))).collect();
        let all = Share::embed(self.ring, &moved);
        let random =
            |ring| Share::random(ring, inputs.len(), &mut Prg::new(Seed::from_bytes([sharing as u8; 16])));
        let small: Vec<i64> = random(Ring::Pow2(8)).values().iter().map(|x| *x as i64).collect();
        let server = match sharing {
            2 => Share::embed(self.ring, &vec![0; inputs.len()]),
            3 => all.clone(),
            4 => Share::embed(self.ring, &small),
            5 => all.sub(&Share::embed(self.ring, &small))?,
            6 => Share::embed(self.ring, &moved.iter().map(|x| x / 2).collect::<Vec<_>>()),
            _ => random(self.ring),
        };
        Ok([all.sub(&server)?, server])
    }
}
