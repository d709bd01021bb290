//! The product of primes that a network without rescales takes: the cheapest in which it is as precise as asked.

use lanner_network::{Accumulator, CompileError};

use super::allot::{Allotment, Allotted};
use super::calibrate::Samples;
use super::search::{Candidate, Found, Refusal, Search};
use super::{QuantizationOptions, refuse_all};

/// Bits above twice the largest calibrated integer, as far as there are: other inputs make larger ones.
const SPARE: [f64; 3] = [2.0, 1.0, 0.0];

impl Search<'_> {
    /// The network in the cheapest ring, of the fewest primes if several cost the same, and of those the largest; else, where none is as precise
    /// as asked, the network in the largest.
    pub(super) fn in_cheapest_ring(&self, allotment: &Allotment, asked: f64) -> Result<Found, CompileError> {
        let rings = &self.options.accumulators;
        let most = rings.iter().map(|ring| factors(*ring)).max().unwrap_or(0);
        let (mut best, mut refused) = (None, None);
        for count in 1..=most {
            let mut within = best.as_ref().map_or(u64::MAX, |best: &Candidate| best.cost.saturating_sub(1));
            for ring in rings.iter().copied().filter(|ring| factors(*ring) == count) {
                match self.precise(ring, allotment, asked, within) {
                    Ok(Precise::Met(candidate)) => {
                        within = candidate.cost;
                        best = Some(*candidate);
                    }
                    Ok(Precise::Missed) => {}
                    // Larger primes cost no less.
                    Ok(Precise::Dear) => break,
                    Err(refusal) => {
                        refused = Some(refusal);
                        break;
                    }
                }
            }
        }
        match (best, refused) {
            (Some(best), _) => Ok(Found { best, limit: None }),
            (None, Some(refusal)) => refusal.try_into(),
            (None, None) => self.most_precise(allotment),
        }
    }

    /// The network in a ring, if it is as precise as asked and costs at most so much.
    fn precise(
        &self,
        ring: Accumulator,
        allotment: &Allotment,
        asked: f64,
        within: u64,
    ) -> Result<Precise, Refusal> {
        let (all, some) = (&self.part.samples, self.spread(1)?);
        for spare in SPARE {
            // What is this far off on the average is farther off somewhere.
            let Some(allotted) = allotted(allotment, ring, spare).filter(|found| found.error <= asked) else {
                continue;
            };
            let attempt = |samples| self.measured(&one_ring(self.options, ring), &allotted, samples);
            let Ok(candidate) = attempt(&some) else { continue };
            if !candidate.is_met() {
                continue;
            }
            let cost = self.priced(candidate)?.cost;
            if cost > within {
                return Ok(Precise::Dear);
            }
            if let Ok(mut candidate) = attempt(all)
                && candidate.is_met()
            {
                candidate.cost = cost;
                return Ok(Precise::Met(Box::new(candidate)));
            }
        }
        Ok(Precise::Missed)
    }

    /// The network in the largest ring, as precise as that makes it.
    fn most_precise(&self, allotment: &Allotment) -> Result<Found, CompileError> {
        let mut refused = Refusal::from(refuse_all());
        for ring in self.options.accumulators.iter().rev() {
            for allotted in SPARE.iter().rev().filter_map(|spare| allotted(allotment, *ring, *spare)) {
                match self.measured(&one_ring(self.options, *ring), &allotted, &self.part.samples) {
                    Ok(candidate) => {
                        let node = self.part.items[allotted.fewest.0].name.clone();
                        return match self.priced(candidate) {
                            Ok(best) => Ok(Found {
                                best,
                                limit: Some(Refusal::of_mode(node, "there is no larger ring")),
                            }),
                            Err(refusal) => refusal.try_into(),
                        };
                    }
                    Err(refusal) => refused = refusal,
                }
            }
        }
        refused.try_into()
    }

    /// The network with these bits, whatever it costs.
    fn measured(
        &self,
        options: &QuantizationOptions,
        allotted: &Allotted,
        samples: &Samples<'_>,
    ) -> Result<Candidate, Refusal> {
        self.unpriced(options, &allotted.layers, allotted.fewest.1, samples)
    }
}

/// What a ring makes of a network.
enum Precise {
    /// As precise as asked.
    Met(Box<Candidate>),
    Missed,
    /// More than it may cost.
    Dear,
}

/// The bits that a ring has room for twice the largest calibrated integer and so many bits more.
fn allotted(allotment: &Allotment, ring: Accumulator, spare: f64) -> Option<Allotted> {
    allotment.finest((ring.limit(0) as f64).log2() - 1.0 - spare)
}

/// The same with one ring alone.
fn one_ring(options: &QuantizationOptions, ring: Accumulator) -> QuantizationOptions {
    QuantizationOptions { accumulators: vec![ring], ..options.clone() }
}

/// How many primes a ring's modulus is the product of.
fn factors(ring: Accumulator) -> usize {
    ring.factors().map_or(1, <[u64]>::len)
}
