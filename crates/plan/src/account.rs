//! What the ciphertexts of a session may tell of the weights, all together.

use lanner_bfv::function_privacy::Distance;
use lanner_step::Answers;

use crate::PlanError;

/// How far the ciphertexts that a client receives may be from ones that do not depend on the weights but by their messages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    ciphertexts: u64,
    worst: Distance,
    prediction: Distance,
}

impl Account {
    /// Predictions that the account is made for.
    pub const PREDICTIONS: u64 = 1 << 20;

    /// Their distance is at most `2^-40`.
    pub const BITS: f64 = 40.0;

    /// The account of the steps of one prediction.
    pub(crate) fn of(steps: impl IntoIterator<Item = Answers>) -> Self {
        steps.into_iter().fold(Self::default(), |account, Answers { ciphertexts, each }| Self {
            ciphertexts: account.ciphertexts.saturating_add(ciphertexts),
            worst: if each > account.worst { each } else { account.worst },
            prediction: account.prediction.and(each.times(ciphertexts)),
        })
    }

    /// Ciphertexts of one prediction.
    #[must_use]
    pub fn ciphertexts(&self) -> u64 {
        self.ciphertexts
    }

    /// The worst of them is within `2^-bits`; infinite where all masks are uniform.
    #[must_use]
    pub fn ciphertext_bits(&self) -> f64 {
        self.worst.bits()
    }

    /// All of [`Self::PREDICTIONS`] predictions together are within `2^-bits`.
    #[must_use]
    pub fn session_bits(&self) -> f64 {
        self.prediction.times(Self::PREDICTIONS).bits()
    }

    /// # Errors
    /// [`PlanError::Distance`] if the distance of a session is more than `2^-40`.
    pub(crate) fn check(&self) -> Result<(), PlanError> {
        let bits = self.session_bits();
        if bits >= Self::BITS {
            return Ok(());
        }
        Err(PlanError::Distance { ciphertexts: self.ciphertexts, bits })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::float_cmp)] // Powers of two are exact.
mod tests {
    use super::*;

    fn answers(ciphertexts: u64, bits: f64) -> Answers {
        Answers { ciphertexts, each: Distance::of_bits(bits) }
    }

    #[test]
    fn squares_of_distances_add_up_over_a_session() {
        let account = Account::of([answers(4, 60.0)]);
        assert_eq!((account.ciphertexts(), account.ciphertext_bits()), (4, 60.0));
        // 2^22 ciphertexts: the root is 2^11.
        assert_eq!(account.session_bits(), 49.0);
        // 4 at 2^-60 are 64 at 2^-62: 2^-114 is twice 2^-115.
        let account = Account::of([answers(4, 60.0), Answers::default(), answers(64, 62.0)]);
        assert_eq!((account.ciphertexts(), account.ciphertext_bits()), (68, 60.0));
        assert_eq!(account.session_bits(), 48.5);
    }

    #[test]
    fn uniform_masks_tell_nothing() {
        let account = Account::of([Answers { ciphertexts: 97, each: Distance::NONE }]);
        assert_eq!((account.ciphertexts(), account.session_bits()), (97, f64::INFINITY));
        assert!(account.check().is_ok());
    }

    #[test]
    fn a_session_beyond_two_to_the_minus_forty_is_refused() {
        let check = |ciphertexts, bits| Account::of([answers(ciphertexts, bits)]).check();
        assert!(check(4096, 56.0).is_ok());
        assert!(check(1, 50.0).is_ok());
        // A deliberately small flooding, and one ciphertext too many.
        assert!(check(1, 49.9).is_err());
        let refused = check(4097, 56.0).unwrap_err();
        assert!(matches!(refused, PlanError::Distance { ciphertexts: 4097, bits } if bits < 40.0));
        assert!(refused.to_string().contains("4097 ciphertexts"), "{refused}");
    }
}
