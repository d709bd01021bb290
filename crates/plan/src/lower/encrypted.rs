//! What layers take in ciphertexts: a search for plans asks for the same ones again and again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use lanner_bfv::ParameterSet;
use lanner_coefficient::cheetah::{Accuracy, Scheme, Stacked};
use lanner_step::{Convolution, Cost, OfflineCost, ProtocolError, Samples, Sets};

/// A layer over `Z_2^bits` for all samples of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Asked {
    shape: Convolution,
    samples: usize,
    bits: u32,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    /// Answers product by product.
    Apart(Accuracy),
    /// Packed answers with so many bits of guard.
    Packed(u32),
}

/// The cheapest parameter set of a layer, and what it takes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Encrypted {
    pub(super) set: ParameterSet,
    /// See [`Scheme::price`].
    pub(super) price: usize,
    /// See [`Scheme::price_of_keys`]; 0 where answers are apart.
    pub(super) price_of_keys: usize,
    pub(super) offline: OfflineCost,
    pub(super) online: Cost,
}

/// What was found for layers before, whichever network they were of; none where no set has room. It follows from public shapes alone.
static KNOWN: Mutex<Option<HashMap<Asked, Option<Encrypted>>>> = Mutex::new(None);

/// How many layers are remembered: far more than those of a network.
const MOST_KNOWN: usize = 1 << 13;

/// The cheapest set for a layer with answers that are apart; none where no set has room.
///
/// # Errors
/// [`ProtocolError`] where the samples do not fit one layer.
pub(super) fn apart(
    shape: &Convolution,
    samples: Samples,
    bits: u32,
    accuracy: Accuracy,
    sets: &Sets,
) -> Result<Option<Encrypted>, ProtocolError> {
    let asked = Asked { shape: shape.clone(), samples: samples.count(), bits, form: Form::Apart(accuracy) };
    known(asked, || {
        let all = Stacked::new(shape, samples)?;
        Ok(Scheme::cheapest(&all, bits, accuracy, sets)
            .ok()
            .map(|(set, scheme)| Encrypted::new(set, &scheme, 0)))
    })
}

/// As [`apart`], with packed answers.
///
/// # Errors
/// As [`apart`]; [`ProtocolError::NotSetUp`] without the sets.
pub(super) fn packed(
    shape: &Convolution,
    samples: Samples,
    bits: u32,
    guard: u32,
    sets: &Sets,
) -> Result<Option<Encrypted>, ProtocolError> {
    let asked = Asked { shape: shape.clone(), samples: samples.count(), bits, form: Form::Packed(guard) };
    known(asked, || {
        let all = Stacked::new(shape, samples)?;
        let Some((set, scheme)) = Scheme::packed(&all, bits, guard, sets)? else { return Ok(None) };
        Ok(Some(Encrypted::new(set, &scheme, scheme.price_of_keys()?)))
    })
}

/// What is known of a layer, else what `find` finds; the latter's errors are not kept.
fn known(
    asked: Asked,
    find: impl FnOnce() -> Result<Option<Encrypted>, ProtocolError>,
) -> Result<Option<Encrypted>, ProtocolError> {
    let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lock().get_or_insert_default().get(&asked) {
        return Ok(*found);
    }
    let found = find()?;
    let mut all = lock();
    let all = all.get_or_insert_default();
    if all.len() >= MOST_KNOWN {
        all.clear();
    }
    all.insert(asked, found);
    Ok(found)
}

impl Encrypted {
    fn new(set: ParameterSet, scheme: &Scheme, price_of_keys: usize) -> Self {
        let (offline, online) = (scheme.offline_cost(), scheme.online_cost());
        Self { set, price: scheme.price(), price_of_keys, offline, online }
    }

    /// The bytes of a prediction, both ways.
    pub(super) fn bytes(&self) -> u64 {
        self.offline.request.bytes() + self.offline.answer.bytes() + self.online.bytes()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Layers that differ in nothing but what is asked, in turns: each has its own answer, the first time and again.
    #[test]
    fn layers_are_told_apart_by_all_that_prices_follow_from() {
        let sets = Sets::new().unwrap();
        let shapes = [Convolution::fully_connected(64, 10), Convolution::fully_connected(64, 11)];
        for _ in 0..2 {
            for (shape, bits) in shapes.iter().flat_map(|shape| [20, 24].map(|bits| (shape, bits))) {
                let all = Stacked::new(shape, Samples::ONE).unwrap();
                for accuracy in
                    [Accuracy::Exact, Accuracy::OffByOne, Accuracy::Guarded(1), Accuracy::Guarded(3)]
                {
                    let found = apart(shape, Samples::ONE, bits, accuracy, &sets).unwrap().unwrap();
                    let (set, scheme) = Scheme::cheapest(&all, bits, accuracy, &sets).unwrap();
                    assert_eq!((found.set, found.price), (set, scheme.price()));
                    assert_eq!((found.offline, found.online), (scheme.offline_cost(), scheme.online_cost()));
                }
                for guard in [1, 3] {
                    let found = packed(shape, Samples::ONE, bits, guard, &sets).unwrap();
                    let expected = Scheme::packed(&all, bits, guard, &sets).unwrap();
                    let priced =
                        expected.map(|(set, scheme)| (set, scheme.price(), scheme.price_of_keys().unwrap()));
                    assert_eq!(found.map(|found| (found.set, found.price, found.price_of_keys)), priced);
                }
            }
        }
    }

    #[test]
    fn where_no_set_has_room_that_is_remembered_and_errors_are_not() {
        let sets = Sets::new().unwrap();
        let shape = Convolution::fully_connected(1 << 16, 2);
        for _ in 0..2 {
            let found = apart(&shape, Samples::ONE, 60, Accuracy::Exact, &sets).unwrap();
            let all = Stacked::new(&shape, Samples::ONE).unwrap();
            assert_eq!(found.is_some(), Scheme::cheapest(&all, 60, Accuracy::Exact, &sets).is_ok());
            assert!(found.is_none());
        }
        let asked = Asked { shape, samples: 1, bits: 7, form: Form::Packed(9) };
        let failed = known(asked.clone(), || Err(ProtocolError::Parameters("sets")));
        assert!(failed.is_err() && known(asked, || Ok(None)).unwrap().is_none());
    }
}
