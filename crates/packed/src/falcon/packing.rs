//! Which slot of which ciphertext holds which place of which plane.

use std::ops::Range;

use lanner_step::{Convolution, ProtocolError, Result};

use super::arrangement::{Arrangement, Operations, Sizes, Variant};
use super::axis::Axis;

/// A convolution as products of planes on slots.
///
/// Every input channel has `planes` planes of `places` values, transformed or not; an output is the sum, over the planes of its group's
/// channels, of each times the filter's, transformed back.
#[derive(Clone, Debug)]
pub struct Packing {
    shape: Convolution,
    prime: u64,
    slots: usize,
    variant: Variant,
    pub(super) axes: [Axis; 2],
    arrangement: Arrangement,
    inputs: Vec<Vec<Run>>,
    outputs: Vec<Output>,
}

/// Slots of an input ciphertext that hold values in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first slot.
    pub slot: usize,
    /// Number of slots.
    pub length: usize,
    /// The group.
    pub group: usize,
    /// The copy of the group's channels.
    pub copy: usize,
    /// The first value, counted over the planes of the group.
    pub value: usize,
}

/// An output ciphertext: the sum of products of some inputs, whose runs lie at the same slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The inputs.
    pub inputs: Range<usize>,
    /// In the slots of copy `i` are partial sums of output channel `first + i` of the run's group.
    pub first: usize,
    /// Index of the first of its multipliers: there is one for each input.
    pub multiplier: usize,
}

impl Packing {
    /// Lays a convolution over `Z_prime` out on ciphertexts of a given number of slots.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if the shape is not one, or the variant does not fit it.
    pub fn new(shape: &Convolution, prime: u64, slots: usize, variant: Variant) -> Result<Self> {
        let axes = axes(shape, prime)?;
        let sizes = sizes(shape, &axes, slots);
        let arrangement = Arrangement::new(&sizes, variant);
        let fits = !matches!(variant, Variant::Folded { copies } if copies > sizes.filters);
        let Some(arrangement) = arrangement.filter(|_| fits) else {
            return Err(ProtocolError::Parameters("copies in a ciphertext"));
        };
        let inputs = match variant {
            Variant::Literal => dense_inputs(&sizes),
            Variant::Folded { .. } => folded_inputs(&sizes, &arrangement),
        };
        let outputs = match variant {
            Variant::Literal => dense_outputs(&sizes, &arrangement),
            Variant::Folded { .. } => folded_outputs(&arrangement),
        };
        Ok(Self { shape: shape.clone(), prime, slots, variant, axes, arrangement, inputs, outputs })
    }

    /// The layer's shape.
    #[must_use]
    pub fn shape(&self) -> &Convolution {
        &self.shape
    }

    /// The plaintext modulus.
    #[must_use]
    pub fn prime(&self) -> u64 {
        self.prime
    }

    /// Slots of a ciphertext.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The variant.
    #[must_use]
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// Height and width of a plane, and which of them are transformed.
    #[must_use]
    pub fn plane(&self) -> ([usize; 2], [bool; 2]) {
        ([self.axes[0].size, self.axes[1].size], [self.axes[0].transformed, self.axes[1].transformed])
    }

    /// Places of a plane.
    #[must_use]
    pub fn places(&self) -> usize {
        self.axes[0].size * self.axes[1].size
    }

    /// Planes of an input channel.
    #[must_use]
    pub fn planes(&self) -> usize {
        self.axes[0].planes.len() * self.axes[1].planes.len()
    }

    /// What the layer costs.
    #[must_use]
    pub fn operations(&self) -> Operations {
        self.arrangement.operations()
    }

    /// Input and output ciphertexts.
    #[must_use]
    pub fn ciphertexts(&self) -> [usize; 2] {
        [self.inputs.len(), self.outputs.len()]
    }

    /// The products in one output ciphertext.
    #[must_use]
    pub fn terms(&self) -> usize {
        self.arrangement.terms()
    }

    /// The runs of each input ciphertext.
    #[must_use]
    pub fn inputs(&self) -> &[Vec<Run>] {
        &self.inputs
    }

    /// The output ciphertexts.
    #[must_use]
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// The runs of an output ciphertext: those of its first input, which has the most.
    pub(super) fn output_runs(&self, output: &Output) -> &[Run] {
        &self.inputs[output.inputs.start]
    }
}

/// Every way to compute a convolution over `Z_prime` that is worth having, with its costs and the most products in one output.
pub(super) fn candidates(
    shape: &Convolution,
    prime: u64,
    slots: usize,
) -> Result<Vec<(Variant, Operations, usize)>> {
    let sizes = sizes(shape, &axes(shape, prime)?, slots);
    let cost = |variant| {
        let arrangement = Arrangement::new(&sizes, variant)?;
        Some((variant, arrangement.operations(), arrangement.terms()))
    };
    Ok(sizes.variants().into_iter().chain([Variant::Literal]).filter_map(cost).collect())
}

fn axes(shape: &Convolution, prime: u64) -> Result<[Axis; 2]> {
    let [height, width] = shape.output_image()?;
    Ok([Axis::new(shape, 0, height, prime)?, Axis::new(shape, 1, width, prime)?])
}

fn sizes(shape: &Convolution, [vertical, horizontal]: &[Axis; 2], slots: usize) -> Sizes {
    Sizes {
        slots,
        groups: shape.groups,
        channels: shape.group_inputs() * vertical.planes.len() * horizontal.planes.len(),
        filters: shape.group_outputs(),
        places: vertical.size * horizontal.size,
    }
}

/// All values of a group one after another.
fn dense_inputs(sizes: &Sizes) -> Vec<Vec<Run>> {
    let values = sizes.channels * sizes.places;
    let run = |(group, value): (usize, usize)| {
        vec![Run { slot: 0, length: sizes.slots.min(values - value), group, copy: 0, value }]
    };
    let firsts = |group| (0..values).step_by(sizes.slots).map(move |value| (group, value));
    (0..sizes.groups).flat_map(firsts).map(run).collect()
}

/// One product of one filter in each output.
fn dense_outputs(sizes: &Sizes, arrangement: &Arrangement) -> Vec<Output> {
    let inputs = arrangement.outputs / sizes.filters;
    let output = |multiplier: usize| {
        let (group, of_group) = (multiplier / arrangement.outputs, multiplier % arrangement.outputs);
        let input = group * inputs + of_group % inputs;
        Output { inputs: input..input + 1, first: of_group / inputs, multiplier }
    };
    (0..sizes.groups * arrangement.outputs).map(output).collect()
}

/// Inputs by bundle, part, and channels.
fn folded_inputs(sizes: &Sizes, arrangement: &Arrangement) -> Vec<Vec<Run>> {
    let Arrangement { bundles, parts, inputs, .. } = *arrangement;
    let input = |index: usize| {
        let (set, channel) = (index / inputs, index % inputs * arrangement.per_copy);
        folded_input(sizes, arrangement, [set / parts, set % parts], channel)
    };
    (0..bundles * parts * inputs).map(input).collect()
}

/// The runs of one input: for each of its groups and copies, channels from `channel` on.
fn folded_input(
    sizes: &Sizes,
    arrangement: &Arrangement,
    [bundle, part]: [usize; 2],
    channel: usize,
) -> Vec<Run> {
    let Arrangement { together, chunk, copies, per_copy, .. } = *arrangement;
    let channels = channel..sizes.channels.min(channel + per_copy);
    let groups = bundle * together..sizes.groups.min((bundle + 1) * together);
    let mut runs = Vec::new();
    for (index, group) in groups.enumerate() {
        for copy in 0..copies {
            let slot = (index * copies + copy) * per_copy * chunk;
            let run = |slot, length, value| Run { slot, length, group, copy, value };
            if arrangement.parts == 1 {
                runs.push(run(slot, channels.len() * chunk, channel * chunk));
                continue;
            }
            let length = chunk.min(sizes.places - part * chunk);
            let places = channels.clone().map(|channel| channel * sizes.places + part * chunk);
            let slots = (slot..).step_by(chunk);
            runs.extend(places.zip(slots).map(|(value, slot)| run(slot, length, value)));
        }
    }
    runs
}

/// Outputs in the order of the inputs that they sum.
fn folded_outputs(arrangement: &Arrangement) -> Vec<Output> {
    let Arrangement { bundles, parts, inputs, outputs, copies, .. } = *arrangement;
    let output = |index: usize| {
        let set = index / outputs;
        Output {
            inputs: set * inputs..(set + 1) * inputs,
            first: index % outputs * copies,
            multiplier: index * inputs,
        }
    };
    (0..bundles * parts * outputs).map(output).collect()
}
