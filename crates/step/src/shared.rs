//! What several steps of a model have alike, kept once.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;

use lanner_ring::Extent;
use sha2::{Digest, Sha256};

/// Weights that are ready to multiply, by what they were made of, while a model's steps are made: a loop takes the same at each of its turns.
#[derive(Default)]
pub struct Shared {
    made: RefCell<HashMap<[u8; 32], Arc<dyn Any + Send + Sync>>>,
    encoded: Option<Rc<dyn EncodedWeights>>,
}

impl Shared {
    /// What steps share that have their factors from there, or put them there.
    #[must_use]
    pub fn with(encoded: Rc<dyn EncodedWeights>) -> Self {
        Self { made: RefCell::default(), encoded: Some(encoded) }
    }

    /// What was made of these weights for this purpose before, else what is made now.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get_or<T: Any + Send + Sync, E>(
        &self,
        purpose: &impl Debug,
        weights: &[i64],
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let key = key(purpose, weights);
        let known = self.made.borrow().get(&key).cloned();
        if let Some(known) = known.and_then(|known| known.downcast().ok()) {
            return Ok(known);
        }
        let made = Arc::new(make()?);
        self.made.borrow_mut().insert(key, made.clone());
        Ok(made)
    }

    /// Where factors lie outside of the process, if they do.
    pub(super) fn encoded(&self) -> Option<&dyn EncodedWeights> {
        self.encoded.as_deref()
    }
}

/// Words of factors, by a name that follows from the weights and from what is made of them.
pub trait EncodedWeights {
    /// The words under a name, if they are there.
    fn get(&self, name: &[u8; 32]) -> Option<Extent>;

    /// Puts the words that were made for a name, one part after the other. They may be there from now on.
    fn put(&self, name: &[u8; 32], parts: &mut dyn Iterator<Item = &[u64]>);
}

/// Names what is made of weights for a purpose.
pub(super) fn key(purpose: &(impl Debug + ?Sized), weights: &[i64]) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(format!("{purpose:?}").as_bytes());
    // No purpose ends like this, and the number of weights follows from it.
    digest.update([0]);
    for weight in weights {
        digest.update(weight.to_le_bytes());
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_weights_for_the_same_purpose_are_kept_once() {
        let shared = Shared::default();
        let made = |purpose: u32, weights: &[i64]| {
            shared.get_or(&purpose, weights, || Ok::<_, ()>(weights.to_vec())).unwrap()
        };
        let first = made(1, &[2, -3]);
        assert!(Arc::ptr_eq(&first, &made(1, &[2, -3])));
        for other in [made(2, &[2, -3]), made(1, &[2, 3]), made(1, &[2])] {
            assert!(!Arc::ptr_eq(&first, &other));
        }
        assert_eq!(*first, [2, -3]);
        let refused = shared.get_or(&3, &[], || Err::<u8, _>("refused"));
        assert_eq!(refused.unwrap_err(), "refused");
    }
}
