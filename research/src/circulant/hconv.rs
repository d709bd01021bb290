//! Algorithm 3: a convolution whose weights are block-circulant over channels.
//!
//! ```text
//! [x]  -> stacked                          log2 of the copies rotations
//! for each of k values c:
//!   [X_c] = HDFT([x])                      1 product, log2 k rotations
//! for each partition of the image into windows, for each c:
//!   [V] = [X_c] W                          1 product
//!   [V] += rot([V], ...)                   log2 rotations over input blocks
//!   [V] += rot([V], ...)                   the same over the width of a window
//!   [V] += rot([V], ...)                   and over its height
//!   [y_a] += [V] w^(-ac) / k, for each a   k products: inverse HDFT, its copies and sums being ciphertexts
//! [y] = sum of rot([y_a], ...)             k - 1 rotations
//! ```
//!
//! Slot `((b G + g) R) + j P + y w + x` holds pixel `(y, x)` of channel `k j + b`: planes of `P` slots, regions of `R` for as many input blocks `j` as fit, `G` copies, `N = k G R`; further input blocks lie in
//! further ciphertexts. HDFT leaves value `c` of the transform at every `b`, which makes them copies for `k G` output blocks. A product with
//! weights gives one output block all windows that do not overlap at once: the paper's `f^2 / s^2` partitions, with the windows of every `ceil(f/s)`-th output row and column. The slot of a window's first pixel has its
//! sum then, others anything, so the factors of the inverse transform are zero there. As the `k` values lie in `k` ciphertexts and not beside each other, its sums
//! take no rotations, but `k` products where the paper has one.

use lanner_ring::Dft;
use zeroize::Zeroizing;

use super::hdft::{halves, stack};
use super::window::Window;
use super::{BlockCirculant, Counted, Digit, Hdft, Operations, SlotScheme};
use lanner_step::Convolution;
use lanner_step::ProtocolError;
use lanner_step::Rotation;

/// A convolution's shape and layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HConv {
    shape: Convolution,
    output: [usize; 2],
    block: usize,
    slots: usize,
    /// `P`.
    plane: usize,
    /// Input blocks of a ciphertext.
    planes: usize,
    /// `R`.
    region: usize,
    /// Slots from the outputs of one channel of a block to those of the next.
    lane: usize,
}

/// A convolution's weights, ready to multiply.
pub struct HConvFactors<M> {
    /// By value of the transform, ciphertext of inputs.
    forward: Vec<Vec<M>>,
    /// By ciphertext of outputs, partition, value, ciphertext of inputs.
    weights: Vec<Vec<Vec<Vec<M>>>>,
    /// By partition, power of the root.
    inverse: Vec<Vec<M>>,
}

impl HConv {
    /// The convolution with blocks of `k` channels, a power of two, in so many slots.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] unless `k` planes fit a ciphertext, and without padding, dilation or groups.
    pub fn new(shape: &Convolution, block: usize, slots: usize) -> Result<Self, ProtocolError> {
        let output = shape.output_image()?;
        let [height, width] = shape.image;
        let is_plain = (shape.pads, shape.dilations, shape.groups) == ([0; 4], [1, 1], 1);
        let powers = block.is_power_of_two() && block > 1 && slots.is_power_of_two();
        let plane = height.checked_mul(width).filter(|plane| *plane <= slots).ok_or(NO_LAYER)?;
        let plane = plane.next_power_of_two();
        if !is_plain || !powers || plane.checked_mul(block).is_none_or(|all| all > slots) {
            return Err(NO_LAYER);
        }
        let planes = shape.in_channels.div_ceil(block).min(slots / block / plane);
        let last = (output[0] - 1) * shape.strides[0] * width + (output[1] - 1) * shape.strides[1];
        let lane = (last + 1).next_power_of_two();
        let region = planes.next_power_of_two() * plane;
        Ok(Self { shape: shape.clone(), output, block, slots, plane, planes, region, lane })
    }

    /// `G`.
    fn groups(&self) -> usize {
        self.slots / (self.block * self.region)
    }

    /// Blocks of outputs and of inputs.
    fn blocks(&self) -> [usize; 2] {
        [self.shape.out_channels, self.shape.in_channels].map(|channels| channels.div_ceil(self.block))
    }

    /// Ciphertexts of inputs.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.blocks()[1].div_ceil(self.planes)
    }

    /// Ciphertexts that output blocks are spread over.
    fn sheets(&self) -> usize {
        self.blocks()[0].div_ceil(self.block * self.groups())
    }

    /// Channels of a block whose outputs lie in one ciphertext.
    fn lanes(&self) -> usize {
        self.block.min(self.region / self.lane)
    }

    /// Ciphertexts of outputs.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.sheets() * (self.block / self.lanes())
    }

    /// Output rows and columns from one window of a partition to the next.
    fn partitions(&self) -> [usize; 2] {
        [0, 1].map(|axis| self.shape.kernel[axis].div_ceil(self.shape.strides[axis]).min(self.output[axis]))
    }

    /// The ciphertext and the slot of an input element; all other slots have to be zero.
    #[must_use]
    pub fn from(&self, element: usize) -> (usize, usize) {
        let pixels = self.shape.image[0] * self.shape.image[1];
        let (channel, pixel) = (element / pixels, element % pixels);
        let (j, b) = (channel / self.block, channel % self.block);
        let slot = b * (self.slots / self.block) + j % self.planes * self.plane + pixel;
        (j / self.planes, slot)
    }

    /// The ciphertext and the slot of an output element; other slots hold anything.
    #[must_use]
    pub fn to(&self, element: usize) -> (usize, usize) {
        let [height, width] = self.output;
        let (channel, position) = (element / (height * width), element % (height * width));
        let (i, a) = (channel / self.block, channel % self.block);
        let of_one = self.block * self.groups();
        let slot = i % of_one * self.region + a % self.lanes() * self.lane;
        let window = self.first(0, position / width) * self.shape.image[1] + self.first(1, position % width);
        (i / of_one * (self.block / self.lanes()) + a / self.lanes(), slot + window)
    }

    /// The first row or column of the window of an output row or column.
    fn first(&self, axis: usize, output: usize) -> usize {
        output * self.shape.strides[axis]
    }

    /// The tap that a partition reads a row or column with, if it lies in a window.
    fn tap(&self, axis: usize, partition: usize, pixel: usize) -> Option<usize> {
        let outputs = (partition..self.output[axis]).step_by(self.partitions()[axis]);
        let tap = |output: usize| pixel.checked_sub(self.first(axis, output));
        outputs.filter_map(tap).find(|tap| *tap < self.shape.kernel[axis])
    }

    fn stacking(&self) -> Vec<Rotation> {
        stack(self.region, self.groups(), self.slots)
    }

    /// HDFT for one value of the transform.
    #[must_use]
    pub fn forward(&self, value: usize) -> Hdft {
        Hdft {
            slots: self.slots,
            elements: Digit { stride: self.slots / self.block, size: self.block },
            copies: Digit { stride: self.slots, size: 1 },
            first: value,
            inverse: false,
        }
    }

    /// The rotations that sum over input blocks: the loop over `I_c`.
    fn channels(&self) -> Vec<Rotation> {
        halves(self.plane, self.planes.next_power_of_two(), self.slots)
    }

    /// The sums over the width and the height of a window.
    fn windows(&self) -> [Window; 2] {
        [(1, 1), (0, self.shape.image[1])].map(|(axis, unit)| Window {
            count: self.shape.kernel[axis],
            unit,
            slots: self.slots,
        })
    }

    /// What brings the outputs of a channel of a block to their slots.
    fn placing(&self, channel: usize) -> Option<Rotation> {
        let lane = channel % self.lanes();
        (lane > 0).then(|| Rotation::by(-((lane * self.lane) as isize), self.slots))
    }

    /// All rotations, each at least once.
    #[must_use]
    pub fn rotations(&self) -> Vec<Rotation> {
        let placing: Vec<_> = (0..self.block).filter_map(|channel| self.placing(channel)).collect();
        let windows = self.windows().map(Window::rotations).concat();
        [self.stacking(), self.forward(0).rotations(), self.channels(), windows, placing].concat()
    }

    /// All operations.
    #[must_use]
    pub fn operations(&self) -> Operations {
        let (k, inputs) = (self.block, self.inputs());
        let windows = self.windows();
        let sums = Operations::rotate_and_add(self.planes.next_power_of_two().ilog2() as usize)
            + windows[0].operations()
            + windows[1].operations();
        let products = Operations { multiplications: inputs, additions: inputs - 1, ..Operations::NONE };
        // Each sum goes to k outputs, to be added to what is there but for the first.
        let all = self.partitions()[0] * self.partitions()[1] * k;
        let inverse = Operations { multiplications: k * all, additions: k * (all - 1), ..Operations::NONE };
        let placing = Operations::rotate_and_add((self.lanes() - 1) * (k / self.lanes()));
        let stacking = Operations::rotate_and_add(self.groups().ilog2() as usize) * inputs;
        stacking
            + self.forward(0).operations() * (k * inputs)
            + ((products + sums) * all + inverse + placing) * self.sheets()
    }

    /// Makes weights ready.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if weights or transform do not fit the layer; the scheme's.
    pub fn prepare<S: SlotScheme>(
        &self,
        scheme: &S,
        transform: &Dft,
        weights: &BlockCirculant,
    ) -> Result<HConvFactors<S::Multiplier>, ProtocolError> {
        let taps = self.shape.kernel[0] * self.shape.kernel[1];
        ProtocolError::refuse_if(
            weights.blocks() != self.blocks() || weights.taps() != taps || weights.block() != self.block,
            "weights of a circulant layer",
        )?;
        let spectrum = weights.spectrum(transform)?;
        let [rows, columns] = self.partitions();
        let partitions: Vec<_> =
            (0..rows).flat_map(|row| (0..columns).map(move |column| [row, column])).collect();
        let forward = |value: usize, input: usize| {
            let holds = |slot: usize| self.holds(input, slot);
            scheme.multiplier(&self.forward(value).twiddles(transform, holds))
        };
        let weight = |sheet: usize, partition: [usize; 2], value: usize, input: usize| {
            let at = |slot: usize| {
                let i = sheet * self.block * self.groups() + slot / self.region;
                let j = input * self.planes + slot % self.region / self.plane;
                let tap = self.tap_of(partition, slot % self.plane);
                let is_weight = i < self.blocks()[0] && self.is_block(input, j);
                tap.filter(|_| is_weight).map_or(0, |tap| spectrum.at(value, [i, j], tap))
            };
            let values = Zeroizing::new((0..self.slots).map(at).collect::<Vec<_>>());
            scheme.multiplier(&values)
        };
        let inverse = |partition: [usize; 2], power: usize| {
            let whole = Hdft {
                elements: Digit { stride: self.slots, size: self.block },
                copies: Digit { stride: self.slots, size: 1 },
                inverse: true,
                ..self.forward(0)
            };
            let scaled = whole.powers(transform)[power];
            let is_first = |slot: usize| self.tap_of(partition, slot % self.region) == Some(0);
            let values: Vec<_> =
                (0..self.slots).map(|slot| if is_first(slot) { scaled } else { 0 }).collect();
            scheme.multiplier(&values)
        };
        let each = |count: usize| 0..count;
        let weights = each(self.sheets()).map(|sheet| {
            let of_partition = |partition: &[usize; 2]| {
                let of_value = |value| {
                    each(self.inputs()).map(|input| weight(sheet, *partition, value, input)).collect()
                };
                each(self.block).map(of_value).collect()
            };
            partitions.iter().map(of_partition).collect()
        });
        let of_value = |value| each(self.inputs()).map(|input| forward(value, input)).collect();
        let of_partition =
            |partition: &[usize; 2]| each(self.block).map(|power| inverse(*partition, power)).collect();
        Ok(HConvFactors {
            forward: each(self.block).map(of_value).collect::<Result<_, _>>()?,
            weights: weights.collect::<Result<_, _>>()?,
            inverse: partitions.iter().map(of_partition).collect::<Result<_, _>>()?,
        })
    }

    /// Whether there is such an input block in that ciphertext.
    fn is_block(&self, input: usize, j: usize) -> bool {
        j < self.blocks()[1] && j / self.planes == input
    }

    /// Whether a slot of a stacked input holds a pixel.
    fn holds(&self, input: usize, slot: usize) -> bool {
        let j = input * self.planes + slot % self.region / self.plane;
        let channel = j * self.block + self.forward(0).elements.of(slot);
        let pixels = self.shape.image[0] * self.shape.image[1];
        self.is_block(input, j) && channel < self.shape.in_channels && slot % self.plane < pixels
    }

    /// The tap of the kernel that a partition reads a slot of a plane with, if it lies in a window; none beyond the plane.
    fn tap_of(&self, partition: [usize; 2], slot: usize) -> Option<usize> {
        let width = self.shape.image[1];
        let (y, x) = (slot / width, slot % width);
        let taps = (self.tap(0, partition[0], y)?, self.tap(1, partition[1], x)?);
        Some(taps.0 * self.shape.kernel[1] + taps.1)
    }

    /// The layer on inputs that lie as [`Self::from`] says; its outputs lie as [`Self::to`] says.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] for another number of inputs; the scheme's.
    pub fn apply<S: SlotScheme>(
        &self,
        scheme: &mut Counted<'_, S>,
        inputs: &[S::Ciphertext],
        factors: &HConvFactors<S::Multiplier>,
    ) -> Result<Vec<S::Ciphertext>, ProtocolError> {
        ProtocolError::check_length("ciphertexts of a convolution", self.inputs(), inputs.len())?;
        let mut stacked = Vec::with_capacity(inputs.len());
        for input in inputs {
            stacked.push(scheme.fold(input.clone(), &self.stacking())?);
        }
        let mut spectral = Vec::with_capacity(self.block);
        for (value, twiddles) in factors.forward.iter().enumerate() {
            let mut hdft = |(x, twiddles)| self.forward(value).apply(scheme, x, twiddles);
            let values: Vec<_> =
                stacked.iter().zip(twiddles).map(&mut hdft).collect::<Result<_, ProtocolError>>()?;
            spectral.push(values);
        }
        let mut outputs = Vec::with_capacity(self.outputs());
        for weights in &factors.weights {
            let channels = self.channels_of_blocks(scheme, &spectral, weights, &factors.inverse)?;
            for lanes in channels.chunks(self.lanes()) {
                outputs.push(scheme.sum(lanes.len(), |scheme, lane| match self.placing(lane) {
                    None => Ok(lanes[lane].clone()),
                    Some(rotation) => scheme.rotate(&lanes[lane], rotation),
                })?);
            }
        }
        Ok(outputs)
    }

    /// The outputs of the first channel of each block, of the second, and so on.
    fn channels_of_blocks<S: SlotScheme>(
        &self,
        scheme: &mut Counted<'_, S>,
        spectral: &[Vec<S::Ciphertext>],
        weights: &[Vec<Vec<S::Multiplier>>],
        inverse: &[Vec<S::Multiplier>],
    ) -> Result<Vec<S::Ciphertext>, ProtocolError> {
        let mut channels: Vec<Option<S::Ciphertext>> = vec![None; self.block];
        for (weights, powers) in weights.iter().zip(inverse) {
            for (value, (inputs, weights)) in spectral.iter().zip(weights).enumerate() {
                let sums = self.windows_of_value(scheme, inputs, weights)?;
                for (channel, sum) in channels.iter_mut().enumerate() {
                    let term = scheme.multiply(&sums, &powers[channel * value % self.block])?;
                    match sum {
                        None => *sum = Some(term),
                        Some(sum) => scheme.add_assign(sum, &term)?,
                    }
                }
            }
        }
        channels.into_iter().collect::<Option<_>>().ok_or(NO_LAYER)
    }

    /// One value of the transforms of all outputs of a partition: products and the three loops.
    fn windows_of_value<S: SlotScheme>(
        &self,
        scheme: &mut Counted<'_, S>,
        inputs: &[S::Ciphertext],
        weights: &[S::Multiplier],
    ) -> Result<S::Ciphertext, ProtocolError> {
        let products =
            scheme.sum(inputs.len(), |scheme, input| scheme.multiply(&inputs[input], &weights[input]))?;
        let blocks = scheme.fold(products, &self.channels())?;
        let [width, height] = self.windows();
        let rows = width.apply(scheme, blocks)?;
        height.apply(scheme, rows)
    }
}

/// Why there is no layout.
const NO_LAYER: ProtocolError = ProtocolError::Parameters("a circulant convolution that slots hold");
