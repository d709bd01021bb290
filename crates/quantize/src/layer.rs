//! One linear layer's integers: the weight scale that uses a ring's room.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::VecDeque;

use lanner_graph::Op;
use lanner_graph::pass::Draft;
use lanner_network::{
    Accumulator, Bound, CompileError, LinearWeights, MAX_FACTOR, MOST_NEAREST, grid, linear_interval, nearest,
};

/// How often a scale is widened when rounding the weights pushes the worst case over the limit.
const ATTEMPTS: usize = 8;

/// A layer's real weights, row-major by output channel, and biases.
#[derive(Debug)]
pub(super) struct RealLayer<'a> {
    channels: usize,
    weight: Cow<'a, [f32]>,
    bias: Cow<'a, [f32]>,
    /// The largest absolute weight.
    largest: f64,
    /// The sum of all squared weights.
    squares: f64,
    /// Of each output channel's weights, the sum of those above 0 and the sum of those below.
    sums: Vec<[f64; 2]>,
    /// What scales made of the weights, those asked for last first: a search comes to the same again and again.
    made: RefCell<VecDeque<Made>>,
    /// How many of these are kept.
    most_made: usize,
}

/// A layer's integers at the scales of its weights and of its input.
#[derive(Debug)]
struct Made {
    /// Their bits.
    scales: [u64; 2],
    weights: LinearWeights,
    /// See [`FittedLayer::error`].
    error: Option<f64>,
}

/// A layer's integers; a unit of weight is `scale`. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct FittedLayer {
    pub(super) weights: LinearWeights,
    pub(super) scale: f64,
    /// The root mean square of the rounding error over that of the weights.
    pub(super) error: f64,
}

/// What a fit must respect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Room {
    /// The input's integers.
    pub(super) input: Bound,
    /// Real value of a unit of input.
    pub(super) input_scale: f64,
    /// The largest absolute value over calibration that is computed from the sums before a rescale, in real units of the sums.
    pub(super) peak: f64,
    /// How much pools before the rescale enlarge the sums.
    pub(super) growth: f64,
    /// The largest absolute value, in real units, of all that is added to the sums; `None` if it is not known yet.
    pub(super) others: Option<f64>,
    /// Whether nothing but a proof will do. Of others that are not known yet it leaves them half of what the ring allows.
    pub(super) proof: bool,
    /// Whether the sums are joined with other values: the peak is that of all, the worst case of the sums alone.
    pub(super) joined: bool,
    /// The least scale of the sums, where a finer one left what they are added to no room for a proof.
    pub(super) floor: f64,
    /// The ring.
    pub(super) ring: Accumulator,
    /// What the ring allows.
    pub(super) limit: i128,
    /// How the scale of the sums must relate to another value's; where there is none, it lies on the grid through `origin`.
    pub(super) relation: Option<Relation>,
    /// A scale of the grid that the sums' is to lie on, unless nobody is told of it.
    pub(super) origin: Option<f64>,
    /// The fewest and the most bits of the largest weight, sign included.
    pub(super) bits: [u32; 2],
}

/// A relation between the scale of a layer's sums and that of a value they are joined with, so that public integer factors are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Relation {
    /// One scale is a whole multiple of the other, which is public as a factor: by one of few factors.
    Multiple { other: f64, factors: Factors },
    /// One scale is the other times a power of two; a rescale lies between.
    PowerOfTwo(f64),
}

/// Whole factors that tell no more of a scale than the grid does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Factors {
    /// The grid's values, rounded.
    Whole,
    /// Those that lead from the grid to the grid.
    PowersOfTwo,
}

impl Factors {
    /// The largest factor not above `most`, which is whole and 1 or more.
    fn below(self, most: f64) -> f64 {
        match self {
            Self::Whole => grid::whole_below(most),
            Self::PowersOfTwo => most.log2().floor().exp2(),
        }
    }

    /// The smallest factor not below `least`, which is whole and 1 or more.
    fn above(self, least: f64) -> f64 {
        match self {
            Self::Whole => grid::whole_above(least),
            Self::PowersOfTwo => least.log2().ceil().exp2(),
        }
    }
}

impl Relation {
    /// The scale of the other value.
    pub(super) const fn other(self) -> f64 {
        let (Self::Multiple { other, .. } | Self::PowerOfTwo(other)) = self;
        other
    }

    /// The smallest related scale that is not below `scale`.
    pub(super) fn above(self, scale: f64) -> f64 {
        // Without the tolerance a scale that is already related could move by a whole step.
        const TOLERANCE: f64 = 1e-9;
        match self {
            Self::Multiple { other, factors } if other >= scale => {
                other / factors.below((other / scale + TOLERANCE).floor().min(MAX_FACTOR as f64))
            }
            Self::Multiple { other, factors } => other * factors.above((scale / other - TOLERANCE).ceil()),
            Self::PowerOfTwo(other) => other * ((scale / other).log2() - TOLERANCE).ceil().exp2(),
        }
    }
}

impl<'a> RealLayer<'a> {
    /// Reads the tensors of node `node`, a layer with a given number of output channels.
    ///
    /// Its integers at the last `most_made` scales are kept.
    pub(super) fn new(
        draft: &'a Draft,
        node: usize,
        channels: usize,
        most_made: usize,
    ) -> Result<Self, CompileError> {
        let node = &draft.graph.nodes[node];
        let (Op::Conv { weight, bias, .. } | Op::MatMul { weight, bias }) = &node.op else {
            return Err(CompileError::UnknownTensor { node: node.name.clone(), tensor: "weight".to_owned() });
        };
        let weight = draft.tensors.of_node(&node.name, weight)?;
        let weight = match (&node.op, weight.shape()) {
            // The float product stores [inputs, outputs], the integer one [outputs, inputs].
            (Op::MatMul { .. }, &[rows, columns]) => {
                let at = |index: usize| weight.data()[index % rows * columns + index / rows];
                (0..rows * columns).map(at).collect()
            }
            _ => Cow::Borrowed(weight.data()),
        };
        let bias = match bias {
            Some(name) => Cow::Borrowed(draft.tensors.of_node(&node.name, name)?.data()),
            None => Cow::Owned(vec![0.0; channels]),
        };
        let largest = weight.iter().fold(0.0, |largest: f64, w| largest.max(f64::from(w.abs())));
        let squares = weight.iter().map(|w| square(f64::from(*w))).sum();
        let of_row = |row: &[f32]| {
            let weights = || row.iter().copied().map(f64::from);
            [weights().filter(|w| *w > 0.0).sum(), weights().filter(|w| *w < 0.0).sum()]
        };
        let sums = weight.chunks_exact((weight.len() / channels).max(1)).map(of_row).collect();
        Ok(Self { channels, weight, bias, largest, squares, sums, made: RefCell::default(), most_made })
    }

    /// The finest weights that fit the room and have the bits asked for: proved to fit if possible, else for twice the peak.
    pub(super) fn fit(&self, room: &Room, slack: f64) -> Option<FittedLayer> {
        let [fewest, most] = room.bits;
        // Whether weights of this scale may have the bits asked for: rounding all of them only to find out takes most of the time.
        let may_do = |scale: f64| {
            self.largest == 0.0 || self.largest / positive(scale) >= half_range(fewest) as f64 - 0.5
        };
        let enough = |(weights, _): &(LinearWeights, f64)| {
            self.largest == 0.0 || weights.largest_weight() >= half_range(fewest).unsigned_abs()
        };
        // The scale may be rounded up by a step, and the fewest bits must be left.
        let step = if room.origin.is_some() { grid::STEP } else { 1.0 };
        let finest = (half_range(most) as f64).max(half_range(fewest) as f64 * step);
        let finest = self.largest / finest.min(half_range(room.ring.weight_bits()) as f64);
        let finest = finest.max(room.floor / room.input_scale);
        let calibrated = finest.max(2.0 * room.peak * slack / (room.limit as f64 * room.input_scale));
        let least = if room.joined { calibrated } else { finest };
        let fitted = self.fit_proved(room, least, may_do).filter(enough).or_else(|| {
            if room.proof {
                return None;
            }
            let scale = room.related(positive(calibrated));
            let quantized = may_do(scale).then(|| self.quantize(scale, room.input_scale));
            quantized.map(|weights| (weights, scale)).filter(enough)
        });
        fitted.map(|(weights, scale)| {
            let error = self.error(&weights, [scale, room.input_scale]);
            FittedLayer { weights, scale, error }
        })
    }

    /// The finest weights whose worst case fits, with their scale: at least `least` and one that may do.
    fn fit_proved(
        &self,
        room: &Room,
        least: f64,
        may_do: impl Fn(f64) -> bool,
    ) -> Option<(LinearWeights, f64)> {
        let (others, share) = match room.others {
            Some(others) => (others, 1.0),
            None if room.proof => (0.0, 0.5),
            None => return None,
        };
        let allowed = share * room.limit as f64 / room.growth;
        let mut scale = positive(((self.worst(room) + others) / (allowed * room.input_scale)).max(least));
        for _ in 0..ATTEMPTS {
            scale = room.related(scale);
            if !may_do(scale) {
                return None;
            }
            let weights = self.quantize(scale, room.input_scale);
            let (low, high) = linear_interval(room.input, &weights, room.ring);
            let worst = high.max(-low) as f64 + (others / (scale * room.input_scale)).ceil();
            if worst <= allowed {
                return Some((weights, scale));
            }
            scale *= worst / allowed * 1.0005;
        }
        None
    }

    /// The largest absolute real sum over all inputs in the room's range.
    pub(super) fn worst(&self, room: &Room) -> f64 {
        let (low, high) =
            (room.input.low as f64 * room.input_scale, room.input.high as f64 * room.input_scale);
        let of_row = |(&[positive, negative], biases): (&[f64; 2], &[f32])| {
            let (bottom, top) = (positive * low + negative * high, positive * high + negative * low);
            let sums = biases.iter().map(|&b| (top + f64::from(b)).abs().max((bottom + f64::from(b)).abs()));
            sums.fold(0.0, f64::max)
        };
        let biases = self.bias.chunks_exact((self.bias.len() / self.channels).max(1));
        self.sums.iter().zip(biases).map(of_row).fold(0.0, f64::max)
    }

    /// The largest absolute weight.
    pub(super) const fn largest(&self) -> f64 {
        self.largest
    }

    /// The weights as multiples of a scale, and the biases.
    fn quantize(&self, scale: f64, input_scale: f64) -> LinearWeights {
        let (real, mut all) = ([scale, input_scale], self.made.borrow_mut());
        let scales = real.map(f64::to_bits);
        let known = all.iter().position(|made| made.scales == scales).and_then(|place| all.remove(place));
        let made = known.unwrap_or_else(|| Made { scales, weights: self.rounded(real), error: None });
        let weights = made.weights.clone();
        all.truncate(self.most_made.saturating_sub(1));
        all.push_front(made);
        weights
    }

    fn rounded(&self, [scale, input_scale]: [f64; 2]) -> LinearWeights {
        let of_weight = |w: &f32| {
            let exact = f64::from(*w) / scale;
            let is_small = exact.abs() <= MOST_NEAREST as f64;
            if is_small { nearest(exact) } else { exact.round_ties_even() as i64 }
        };
        let of_bias = |b: &f32| (f64::from(*b) / (scale * input_scale)).round_ties_even() as i128;
        let weight = self.weight.iter().map(of_weight).collect();
        let bias = self.bias.iter().map(of_bias).collect();
        LinearWeights::new(self.channels, weight, bias)
    }

    /// The root mean square of the rounding error over that of the weights, which these scales gave.
    fn error(&self, weights: &LinearWeights, scales: [f64; 2]) -> f64 {
        let (mut made, bits) = (self.made.borrow_mut(), scales.map(f64::to_bits));
        let Some(made) = made.iter_mut().find(|made| made.scales == bits) else {
            return self.rounding_error(weights, scales[0]);
        };
        *made.error.get_or_insert_with(|| self.rounding_error(weights, scales[0]))
    }

    fn rounding_error(&self, weights: &LinearWeights, scale: f64) -> f64 {
        let error = |(w, q): (&f32, &i64)| square(f64::from(*w) - *q as f64 * scale);
        let lost: f64 = self.weight.iter().zip(weights.weight()).map(error).sum();
        if self.squares == 0.0 { 0.0 } else { (lost / self.squares).sqrt() }
    }

    /// Twice the peak in units of the coarsest weights that have the bits asked for: what no ring could hold.
    pub(super) fn needed(&self, room: &Room) -> i128 {
        let coarsest = self.largest / half_range(room.bits[0]) as f64;
        (2.0 * room.peak / (positive(coarsest) * room.input_scale)) as i128
    }
}

impl Room {
    /// The smallest scale of weights, not below `scale`, whose sums are related as they must be, or lie on the grid.
    fn related(&self, scale: f64) -> f64 {
        let sums = scale * self.input_scale;
        match (self.relation, self.origin) {
            (Some(relation), _) => relation.above(sums) / self.input_scale,
            (None, Some(origin)) => grid::above(sums, origin) / self.input_scale,
            (None, None) => scale,
        }
    }
}

fn square(x: f64) -> f64 {
    x * x
}

/// The largest signed integer of a given number of bits.
pub(super) const fn half_range(bits: u32) -> i64 {
    (1 << (bits - 1)) - 1
}

/// A scale must be positive; a layer of zeros may take any.
fn positive(scale: f64) -> f64 {
    if scale > f64::MIN_POSITIVE { scale } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use lanner_network::Evidence;

    use super::*;

    fn layer(most_made: usize) -> RealLayer<'static> {
        let weight: Vec<f32> = (0..12).map(|index| (index as f32 * 1.7).sin()).collect();
        let squares = weight.iter().map(|w| square(f64::from(*w))).sum();
        let largest = weight.iter().fold(0.0_f64, |largest, w| largest.max(f64::from(w.abs())));
        let sums = vec![[3.0, -3.0]; 3];
        let bias = Cow::Owned(vec![0.5, -0.25, 0.0]);
        let made = RefCell::default();
        RealLayer { channels: 3, weight: Cow::Owned(weight), bias, largest, squares, sums, made, most_made }
    }

    fn room(input_scale: f64, peak: f64) -> Room {
        let ring = Accumulator::powers_of_two().last().unwrap();
        Room {
            input: Bound { low: -100, high: 100, evidence: Evidence::Proved },
            input_scale,
            peak,
            growth: 1.0,
            others: None,
            proof: false,
            joined: false,
            floor: 0.0,
            ring,
            limit: 1 << 20,
            relation: None,
            origin: None,
            bits: [6, 10],
        }
    }

    /// Rooms that come again, with others between them; some have the same scale of weights, and biases of their own.
    #[test]
    fn a_layer_that_remembers_scales_fits_as_one_that_does_not() {
        let (forgetful, other) = (layer(1), layer(3));
        for (input_scale, peak) in [
            (0.1, 1.0),
            (0.1, 900.0),
            (0.2, 1.0),
            (0.1, 1.0),
            (0.4, 1.0),
            (0.8, 1.0),
            (0.1, 900.0),
            (0.1, 1.0),
        ] {
            let fitted = [&forgetful, &other].map(|layer| layer.fit(&room(input_scale, peak), 1.0).unwrap());
            let [a, b] = fitted;
            assert_eq!(a.weights, b.weights);
            assert_eq!([a.scale, a.error].map(f64::to_bits), [b.scale, b.error].map(f64::to_bits));
            assert_eq!(a.weights, forgetful.rounded([a.scale, input_scale]));
            assert!(forgetful.made.borrow().len() == 1 && other.made.borrow().len() <= 3);
        }
        assert_eq!(other.made.borrow().len(), 3);
        let known = other.made.borrow()[0].weights.clone();
        let again = other.fit(&room(0.1, 1.0), 1.0).unwrap().weights;
        assert!(std::ptr::eq(known.weight(), again.weight()));
    }
}
