//! One axis of a convolution as products of planes, with or without a transform.
//!
//! Output `t` reads pixel `t s + u d - o` for tap `u`, with stride `s`, dilation `d` and padding `o`. With a transform, the pixels of one phase
//! (position mod `s`) are a plane, and a tap of that phase is a cyclic shift of it. Without, each tap has a plane of its own, which holds the
//! pixel that it reads for each output: a fully connected layer is the case of one output.

use std::collections::BTreeMap;

use lanner_step::{Convolution, ProtocolError, Result};

/// How one axis is computed.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// Places along the axis; output `t` is at place `t`.
    pub(super) size: usize,
    /// Whether the axis is transformed.
    pub(super) transformed: bool,
    pub(super) planes: Vec<Plane>,
}

/// Pixels and the taps that they are multiplied by. A plane without either is left out.
#[derive(Clone, Debug)]
pub(super) struct Plane {
    /// Places and the pixels there.
    pub(super) pixels: Vec<(usize, usize)>,
    /// Places and the taps there.
    pub(super) taps: Vec<(usize, usize)>,
}

impl Axis {
    /// The form with fewer places in all, over `Z_prime`.
    pub(super) fn new(shape: &Convolution, axis: usize, outputs: usize, prime: u64) -> Result<Self> {
        ProtocolError::refuse_if(
            shape.kernel[axis].saturating_mul(outputs) > MOST_READS,
            "pixels that an axis reads",
        )?;
        let direct = Self::direct(shape, axis, outputs);
        match Self::transformed(shape, axis, outputs, prime) {
            Some(transformed) if transformed.places() < direct.places() => Ok(transformed),
            _ if direct.planes.is_empty() => Err(ProtocolError::Parameters("outputs of padding alone")),
            _ => Ok(direct),
        }
    }

    fn places(&self) -> usize {
        self.planes.len() * self.size
    }

    /// A plane for each tap.
    fn direct(shape: &Convolution, axis: usize, outputs: usize) -> Self {
        let plane = |tap| {
            let pixel = |output| Some((output, shape.source(axis, output, tap)?));
            let pixels: Vec<_> = (0..outputs).filter_map(pixel).collect();
            let taps = (0..outputs).map(|output| (output, tap)).collect();
            (!pixels.is_empty()).then_some(Plane { pixels, taps })
        };
        let planes = (0..shape.kernel[axis]).filter_map(plane).collect();
        Self { size: outputs, transformed: false, planes }
    }

    /// A plane for each phase, on the smallest circle on which no output reads a pixel in place of padding.
    fn transformed(shape: &Convolution, axis: usize, outputs: usize, prime: u64) -> Option<Self> {
        let phases = Phase::all(shape, axis, outputs);
        let needed = phases.iter().map(|phase| phase.circle(outputs)).max()?;
        if needed > LARGEST_CIRCLE {
            return None;
        }
        let size = (needed..=2 * needed.next_power_of_two()).find(|size| is_circle(*size, prime))?;
        let planes = phases.iter().map(|phase| phase.plane(shape.strides[axis], size)).collect();
        Some(Self { size, transformed: true, planes })
    }
}

/// The pixels `s i + position`, for those `i` that some output reads.
struct Phase {
    position: usize,
    /// The first and the last `i`.
    pixels: [i64; 2],
    /// Shifts and taps: output `t` reads `i = t + shift`.
    taps: Vec<(i64, usize)>,
}

impl Phase {
    fn all(shape: &Convolution, axis: usize, outputs: usize) -> Vec<Self> {
        let stride = shape.strides[axis] as i64;
        let mut taps: BTreeMap<usize, Vec<(i64, usize)>> = BTreeMap::new();
        for tap in 0..shape.kernel[axis] {
            let position = (tap * shape.dilations[axis]) as i64 - shape.pads[axis] as i64;
            let phase = position.rem_euclid(stride) as usize;
            taps.entry(phase).or_default().push((position.div_euclid(stride), tap));
        }
        let phase = |(position, taps): (usize, Vec<(i64, usize)>)| {
            let count = shape.image[axis].saturating_sub(position).div_ceil(shape.strides[axis]) as i64;
            let [first, last] = Self { position, pixels: [0; 2], taps: taps.clone() }.read(outputs);
            let pixels = [first.max(0), last.min(count - 1)];
            (pixels[0] <= pixels[1]).then_some(Self { position, pixels, taps })
        };
        taps.into_iter().filter_map(phase).collect()
    }

    /// The first and the last index that an output reads, in the padding or not.
    fn read(&self, outputs: usize) -> [i64; 2] {
        let shifts = || self.taps.iter().map(|(shift, _)| *shift);
        [shifts().min().unwrap_or(0), shifts().max().unwrap_or(0) + outputs as i64 - 1]
    }

    /// The least size of a circle that keeps the padding on either side away from the pixels on the other, and outputs apart.
    fn circle(&self, outputs: usize) -> usize {
        let ([first, last], [low, high]) = (self.read(outputs), self.pixels);
        (high - first + 1).max(last - low + 1).max(outputs as i64) as usize
    }

    fn plane(&self, stride: usize, size: usize) -> Plane {
        let place = |index: i64| index.rem_euclid(size as i64) as usize;
        let pixels =
            (self.pixels[0]..=self.pixels[1]).map(|i| (place(i), i as usize * stride + self.position));
        // A cyclic correlation: the tap stands at minus its shift.
        let taps = self.taps.iter().map(|(shift, tap)| (place(-shift), *tap));
        Plane { pixels: pixels.collect(), taps: taps.collect() }
    }
}

/// Whether there is a fast transform of this size.
fn is_circle(size: usize, prime: u64) -> bool {
    let mut rest = size;
    for divisor in 2..=LARGEST_RADIX {
        while rest.is_multiple_of(divisor) {
            rest /= divisor;
        }
    }
    rest == 1 && (prime - 1).is_multiple_of(size as u64)
}

/// Outputs of an axis times its taps; each pair is written down.
const MOST_READS: usize = 1 << 22;

/// The largest transform that is looked for begins at this size.
const LARGEST_CIRCLE: usize = 1 << 14;

/// Prime factors of a size beyond this one make transforms slow.
const LARGEST_RADIX: usize = 31;
