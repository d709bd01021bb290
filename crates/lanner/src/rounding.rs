//! Which rounding a model of mode cheetah gets where its owner leaves the choice open: `docs/numerics.md`, the choice of rounding.

use lanner_graph::{FixedExecutor, Network, Policy};
use lanner_primitives::{Prg, Seed};
use lanner_protocol::nonlinear::ot_nonlinear::Rounding;
use serde::{Deserialize, Serialize};

use crate::Result;

/// Fewer samples say too little.
const LEAST_SAMPLES: usize = 32;

/// What faithful rounding, emulated, did to the labels of the calibration samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Trial {
    /// Samples within the input's range.
    samples: usize,
    /// The first of them whose label changed.
    changed: Option<usize>,
}

impl Trial {
    /// Compares labels, or as many of the best classes as the policy reveals in order, sample by sample.
    ///
    /// # Errors
    /// None for a checked network.
    pub(crate) fn run(network: &Network, policy: Policy, calibration: &[f32]) -> Result<Self> {
        let best = if let Policy::TopK { k } = policy { k as usize } else { 1 };
        let executor = FixedExecutor::new(network)?;
        // A model compiled again is the same.
        let mut prg = Prg::new(Seed::from_bytes(*b"rounding's trial"));
        let mut draw = || {
            let mut word = [0; 8];
            prg.fill_bytes(&mut word);
            u64::from_le_bytes(word)
        };
        let mut trial = Self { samples: 0, changed: None };
        for sample in calibration.chunks_exact(network.public().input().len().max(1)) {
            // Calibration may have set a sample with values far from all others aside.
            let Ok(exact) = executor.run_real(sample) else { continue };
            let changed = exact.best(best) != executor.run_faithful(sample, &mut draw)?.best(best);
            trial.changed = changed.then_some(trial.samples);
            trial.samples += 1;
            if changed {
                break;
            }
        }
        Ok(trial)
    }

    pub(crate) const fn rounding(self) -> Rounding {
        match self.changed {
            None if self.samples >= LEAST_SAMPLES => Rounding::Faithful,
            _ => Rounding::Exact,
        }
    }

    /// What was chosen and why, for people.
    pub(crate) fn reason(self) -> String {
        match self.changed {
            Some(index) => {
                format!("exact: faithful rounding changed the label of calibration sample {index}")
            }
            None if self.samples < LEAST_SAMPLES => {
                format!("exact: {} calibration samples are fewer than {LEAST_SAMPLES}", self.samples)
            }
            None => format!("faithful: labels of all {} calibration samples stay", self.samples),
        }
    }
}

/// Why a model rounds as it does: a trial's reason, or that its owner asked for it.
pub(crate) fn reason(rounding: Rounding, trial: Option<Trial>) -> String {
    trial.map_or_else(
        || match rounding {
            Rounding::Exact => "exact: as asked".to_owned(),
            Rounding::Faithful => "faithful: as asked".to_owned(),
        },
        Trial::reason,
    )
}
