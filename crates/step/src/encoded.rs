//! Encoded weights outside of the process that multiplies with them.

use std::fmt::Debug;
use std::ops::Deref;

use lanner_bfv::{Encoded, Parameters};
use lanner_ring::Modulus;

use super::shared::{EncodedWeights, Shared, key};
use crate::ProtocolError;

/// The weights of a layer, from which its factors are made where they do not lie ready.
#[derive(Clone, Copy)]
pub struct LayerWeights<'m> {
    weights: &'m [i64],
    shared: Option<&'m Shared>,
}

impl<'m> LayerWeights<'m> {
    /// Weights of a layer whose factors may lie where its model's steps share them.
    #[must_use]
    pub const fn shared(weights: &'m [i64], shared: &'m Shared) -> Self {
        Self { weights, shared: Some(shared) }
    }

    /// Factors that lie ready for a purpose, which says all that they depend on but the weights; else those that are made now, `count` of them.
    ///
    /// # Errors
    /// Those of `make`; as [`Self::ready`].
    pub fn encoded_by<F: Encoded>(
        &self,
        purpose: &dyn Debug,
        form: &F::Form,
        count: usize,
        make: impl FnOnce() -> Result<Vec<F>, ProtocolError>,
    ) -> Result<Vec<F>, ProtocolError> {
        if let Some(ready) = self.ready(purpose, form, count)? {
            return Ok(ready);
        }
        let made = make()?;
        self.put(purpose, &made);
        // Once they lie there, they need not lie here.
        Ok(self.ready(purpose, form, count)?.unwrap_or(made))
    }

    /// Factors that lie ready; none unless there are `count`.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] if the words are not those of the form.
    fn ready<F: Encoded>(
        &self,
        purpose: &dyn Debug,
        form: &F::Form,
        count: usize,
    ) -> Result<Option<Vec<F>>, ProtocolError> {
        let length = F::length(form);
        let words = self.encoded().and_then(|encoded| encoded.get(&key(purpose, self.weights)));
        let Some(words) = words.filter(|words| length > 0 && length.checked_mul(count) == Some(words.len()))
        else {
            return Ok(None);
        };
        Ok(Some(words.chunks(length).map(|words| F::over(form, words)).collect::<Result<_, _>>()?))
    }

    /// Puts factors where those who come later find them, if there is such a place.
    fn put<F: Encoded>(&self, purpose: &dyn Debug, factors: &[F]) {
        if let Some(encoded) = self.encoded() {
            encoded.put(&key(purpose, self.weights), &mut factors.iter().flat_map(F::words));
        }
    }

    fn encoded(&self) -> Option<&'m dyn EncodedWeights> {
        self.shared.and_then(Shared::encoded)
    }
}

impl<'m> From<&'m [i64]> for LayerWeights<'m> {
    fn from(weights: &'m [i64]) -> Self {
        Self { weights, shared: None }
    }
}

impl Deref for LayerWeights<'_> {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        self.weights
    }
}

/// The moduli of parameters, on which factors depend: those of the limbs, and then the special one.
#[must_use]
pub fn moduli(parameters: &Parameters) -> Vec<u64> {
    parameters.moduli().iter().chain(parameters.special()).map(Modulus::value).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::HashMap;
    use std::rc::Rc;
    use std::sync::Arc;

    use lanner_bfv::{CoefficientFactor, ParameterSet, Parameters};
    use lanner_ring::{Buffer, Extent, Region};

    use super::*;

    struct Kept(Buffer);

    impl Region for Kept {
        fn words(&self) -> &[u64] {
            &self.0
        }
    }

    #[derive(Default)]
    struct InMemory(RefCell<HashMap<[u8; 32], Vec<u64>>>);

    impl EncodedWeights for InMemory {
        fn get(&self, name: &[u8; 32]) -> Option<Extent> {
            let words = self.0.borrow().get(name)?.clone();
            Extent::new(Arc::new(Kept(Buffer::from(&words[..]))), 0..words.len())
        }

        fn put(&self, name: &[u8; 32], parts: &mut dyn Iterator<Item = &[u64]>) {
            self.0.borrow_mut().insert(*name, parts.flatten().copied().collect());
        }
    }

    fn factors(
        parameters: &Parameters,
        weights: LayerWeights<'_>,
        purpose: u32,
        count: usize,
    ) -> (Vec<CoefficientFactor>, bool) {
        let made = Cell::new(false);
        let make = || {
            made.set(true);
            let factor = |number| {
                let coefficients = vec![weights[0] as i32 + number as i32; parameters.degree()];
                Ok(CoefficientFactor::new(parameters, &coefficients)?)
            };
            (0..count).map(factor).collect()
        };
        (weights.encoded_by(&purpose, parameters, count, make).unwrap(), made.get())
    }

    fn words(factors: &[CoefficientFactor]) -> Vec<u64> {
        factors.iter().flat_map(Encoded::words).flatten().copied().collect()
    }

    #[test]
    fn factors_are_made_once_and_are_the_same_wherever_they_lie() {
        let parameters = ParameterSet::A1.parameters().unwrap();
        let encoded = Rc::new(InMemory::default());
        let shared = Shared::with(encoded.clone());
        let kept = |weights| LayerWeights::shared(weights, &shared);
        let (alone, _) = factors(&parameters, (&[5, 6][..]).into(), 1, 3);
        let (first, made) = factors(&parameters, kept(&[5, 6]), 1, 3);
        assert!(made && words(&first) == words(&alone));
        let (again, made) = factors(&parameters, kept(&[5, 6]), 1, 3);
        assert!(!made && words(&again) == words(&alone));
        // Other weights, purposes and numbers of factors are other factors.
        assert!(factors(&parameters, kept(&[5, 7]), 1, 3).1);
        assert!(factors(&parameters, kept(&[5, 6]), 2, 3).1);
        assert!(factors(&parameters, kept(&[5, 6]), 1, 2).1);
    }
}
