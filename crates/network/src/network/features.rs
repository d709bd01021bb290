//! Features of an input: positions of one of its axes, where these differ too much for one unit.

use serde::{Deserialize, Serialize};

/// The largest absolute exponent of a feature's unit.
pub const MAX_EXPONENT: i32 = 64;

/// The largest absolute centre, in units of its feature: an `f32` tells no more steps between 0 and it.
pub const MAX_CENTRE: i64 = 1 << 24;

/// What published factors and terms stay within, so that no limit of an input overflows.
const MAX_CONSTANT: f64 = 1e30;

/// What the integers of each feature stand for.
///
/// A real value x of feature j becomes `round(p(x) / (unit * 2^exponents[j])) - centres[j]`, p being the preprocessing, if there is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Features {
    /// The axis of the input, without the batch axis, whose positions are the features.
    pub axis: usize,
    /// The unit of each feature is the input's times two to the power of this.
    pub exponents: Vec<i32>,
    /// The integer that stands for the middle of each feature, in the feature's own units, before it is taken off.
    pub centres: Vec<i64>,
    /// What the client computes first, in floating point; only where the owner asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preprocessing: Option<Preprocessing>,
}

/// The graph's own constants in front of its first layer, published exactly: `factors[j] * x + terms[j]` for feature j, in `f64`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preprocessing {
    /// One for each feature, not 0.
    pub factors: Vec<f64>,
    /// One for each feature.
    pub terms: Vec<f64>,
}

impl Features {
    /// The feature that element `index` of an input of this shape, row-major, is a value of.
    #[must_use]
    pub fn of(&self, shape: &[usize], index: usize) -> usize {
        position(shape, self.axis, index)
    }

    /// An element of each feature of an input of this shape, in the features' order.
    pub fn first_elements(&self, shape: &[usize]) -> impl Iterator<Item = usize> + use<> {
        let behind: usize = shape[self.axis + 1..].iter().product();
        (0..shape[self.axis]).map(move |feature| feature * behind)
    }

    /// A value of feature `feature` after the preprocessing.
    #[must_use]
    pub fn preprocess(&self, feature: usize, x: f64) -> f64 {
        self.preprocessing.as_ref().map_or(x, |constants| constants.apply(feature, x))
    }

    /// The value whose preprocessing gives `y`.
    #[must_use]
    pub fn before(&self, feature: usize, y: f64) -> f64 {
        let undo = |constants: &Preprocessing| (y - constants.terms[feature]) / constants.factors[feature];
        self.preprocessing.as_ref().map_or(y, undo)
    }

    /// Checks that everything is there for an input of this shape, and that nothing can overflow.
    ///
    /// # Errors
    /// The reason, naming the field.
    pub fn check(&self, shape: &[usize]) -> Result<(), String> {
        let Some(&count) = shape.get(self.axis) else {
            return Err(format!("`axis` is {}, and there are {} axes", self.axis, shape.len()));
        };
        let constants = self.preprocessing.as_ref();
        let constant_lengths = constants.map_or([count; 2], |of| [of.factors.len(), of.terms.len()]);
        let lengths = [self.exponents.len(), self.centres.len()].into_iter().chain(constant_lengths);
        if lengths.into_iter().any(|length| length != count) {
            return Err(format!("there must be one of everything for each of {count} features"));
        }
        if !self.exponents.iter().all(|e| (-MAX_EXPONENT..=MAX_EXPONENT).contains(e)) {
            return Err(format!("`exponents` must be from -{MAX_EXPONENT} to {MAX_EXPONENT}"));
        }
        if !self.centres.iter().all(|c| (-MAX_CENTRE..=MAX_CENTRE).contains(c)) {
            return Err(format!("`centres` must be from -{MAX_CENTRE} to {MAX_CENTRE}"));
        }
        if constants.is_some_and(|constants| !constants.is_sound(count)) {
            return Err(format!(
                "`factors` and `terms` must be at most {MAX_CONSTANT:e} away from 0, and no factor 0"
            ));
        }
        Ok(())
    }
}

impl Preprocessing {
    /// `factors[feature] * x + terms[feature]`.
    #[must_use]
    pub fn apply(&self, feature: usize, x: f64) -> f64 {
        self.factors[feature] * x + self.terms[feature]
    }

    /// Whether there is a usable factor and term for each of `count` features.
    #[must_use]
    pub fn is_sound(&self, count: usize) -> bool {
        // A NaN is nowhere.
        let usable = |factor: &f64| (1.0 / MAX_CONSTANT..=MAX_CONSTANT).contains(&factor.abs());
        self.factors.len() == count
            && self.terms.len() == count
            && self.factors.iter().all(usable)
            && self.terms.iter().all(|term| term.abs() <= MAX_CONSTANT)
    }
}

/// The position along `axis` of element `index`, row-major.
#[must_use]
pub fn position(shape: &[usize], axis: usize, index: usize) -> usize {
    let behind: usize = shape[axis + 1..].iter().product();
    index / behind % shape[axis]
}
