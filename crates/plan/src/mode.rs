//! What a mode is, as a value: a file for each.
//!
//! The planner, the compiler and reports ask a [`Design`] instead of naming modes. `docs/adding-a-mode.md` walks through one.

mod auto;
mod cheetah;
mod design;
mod falcon;
mod gazelle;
mod hardened;
mod kind;
mod spectral;
mod tabula;

use lanner_transfers::Rounding;
use serde::{Deserialize, Serialize};

pub use self::auto::NodeDesign;
pub use self::design::{Between, Design, Inexact, Layer, Rings, Rules};
pub(crate) use self::kind::Kind;

/// Which published design the layers follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// GAZELLE: packed BFV layers and garbled circuits.
    Gazelle,
    /// FALCON: layers in the frequency domain, garbled circuits.
    Falcon,
    /// Cheetah: coefficient-encoded layers over powers of two, oblivious transfer between them.
    Cheetah(Rounding),
    /// Tabula: layers split so that the online phase is plaintext arithmetic, openings under masks between them, over powers of two.
    Tabula(lanner_tabula::Rounding),
    /// Falcon spectral: the server computes a network of sums and products on ciphertexts, modulo some primes.
    Spectral,
    /// Hardened: layers modulo one prime and garbled circuits, for clients that may deviate.
    Hardened,
    /// The planner's choice: each node follows one of the [`NodeDesign`]s over powers of two, all exact.
    Auto,
}

/// Every mode, in the order in which they are listed, and beside each the way of rounding that is not exact.
pub const MODES: [Mode; 9] = [
    Mode::Gazelle,
    Mode::Falcon,
    Mode::Cheetah(Rounding::Exact),
    Mode::Cheetah(Rounding::Faithful),
    Mode::Tabula(lanner_tabula::Rounding::Exact),
    Mode::Tabula(lanner_tabula::Rounding::Stochastic),
    Mode::Auto,
    Mode::Spectral,
    Mode::Hardened,
];

/// The modes in whose rings mode `auto` tries networks: first those of powers of two, which mixtures have, and of them the one that takes any network.
pub const TRIED: [Mode; 5] = [
    Mode::Cheetah(Rounding::Exact),
    Mode::Tabula(lanner_tabula::Rounding::Exact),
    Mode::Falcon,
    Mode::Gazelle,
    Mode::Spectral,
];

/// The modes that check what clients do, among which mode `auto` chooses where they must be checked.
pub const CHECKING: [Mode; 1] = [Mode::Hardened];

impl Mode {
    /// What is the same of all its plans.
    #[must_use]
    pub const fn design(self) -> &'static Design {
        match self {
            Self::Gazelle => &gazelle::DESIGN,
            Self::Falcon => &falcon::DESIGN,
            Self::Cheetah(_) => &cheetah::DESIGN,
            Self::Tabula(_) => &tabula::DESIGN,
            Self::Spectral => &spectral::DESIGN,
            Self::Hardened => &hardened::DESIGN,
            Self::Auto => &auto::DESIGN,
        }
    }

    /// The mode's name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.design().name
    }

    /// Whether every result is the reference's.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        !matches!(self, Self::Cheetah(Rounding::Faithful) | Self::Tabula(lanner_tabula::Rounding::Stochastic))
    }

    /// How it rounds, if not exactly.
    #[must_use]
    pub const fn inexact(self) -> Option<&'static Inexact> {
        if self.is_exact() { None } else { self.design().inexact.as_ref() }
    }

    /// How transfers rescale values.
    pub(crate) const fn rounding(self) -> Rounding {
        if let Self::Cheetah(rounding) = self { rounding } else { Rounding::Exact }
    }

    /// How lookups rescale values.
    pub(crate) const fn lookup_rounding(self) -> lanner_tabula::Rounding {
        if let Self::Tabula(rounding) = self { rounding } else { lanner_tabula::Rounding::Exact }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_has_one_name_on_the_command_line_and_in_plans() {
        for mode in MODES {
            let written = serde_json::to_value(mode).unwrap();
            let name = written.as_object().and_then(|object| object.keys().next());
            assert_eq!(name.map(String::as_str).or(written.as_str()), Some(mode.name()));
            assert_eq!(
                MODES.iter().filter(|other| other.is_exact() && other.name() == mode.name()).count(),
                1
            );
            assert_eq!(mode.is_exact(), mode.inexact().is_none());
        }
    }

    #[test]
    fn mixtures_are_held_against_modes_of_one_ring_that_take_any_network() {
        assert!(TRIED[..2].iter().all(|mode| mode.design().rings == Rings::PowersOfTwo));
        assert!(TRIED.iter().all(|mode| mode.is_exact() && MODES.contains(mode)));
    }

    #[test]
    fn modes_that_check_clients_are_chosen_where_they_must_be_and_else_nowhere() {
        let checking = MODES.into_iter().filter(|mode| mode.design().checks_clients());
        assert_eq!(checking.collect::<Vec<_>>(), CHECKING);
        assert!(TRIED.iter().all(|mode| !mode.design().checks_clients()));
    }
}
