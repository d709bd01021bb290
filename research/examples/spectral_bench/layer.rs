//! Layers, in any way, on any scheme.

use lanner_bfv::{NoiseBound, Parameters};
use lanner_research::circulant::{
    BlockCirculant, Bounds, Counted, HConv, HConvFactors, Hfc, HfcFactors, Operations, Planes, Rows,
    SlotScheme, StackedRows,
};
use lanner_ring::{Dft, Modulus};
use lanner_spectral::{Program, Square};
use lanner_step::Convolution;
use lanner_step::Rotation;

use crate::T;

/// One step of a network.
pub(crate) enum Layer {
    /// A convolution of as many maps as are computed by themselves, and the slot of each output.
    Planes(Planes, Vec<usize>),
    Square,
    Stacked(StackedRows),
    Rows(Rows),
    Hfc(Hfc, BlockCirculant),
    HConv(HConv, BlockCirculant),
    Program(Box<Program>),
}

/// Its weights, ready to multiply.
pub(crate) enum Factors<M> {
    None,
    List(Vec<M>),
    Stacked(Vec<[M; 2]>),
    Hfc(HfcFactors<M>),
    HConv(HConvFactors<M>),
}

impl Layer {
    /// What the paper calls it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Planes(..) => "convolution vector - row major",
            Self::Square => "square",
            Self::Stacked(_) => "stacked vector - row major",
            Self::Rows(_) => "interleaved vector - row major",
            Self::Hfc(..) => "homomorphic FC",
            Self::HConv(..) => "homomorphic convolution",
            Self::Program(_) => "program",
        }
    }

    pub(crate) fn rotations(&self) -> Vec<Rotation> {
        match self {
            Self::Planes(layer, _) if layer.maps > 1 => vec![layer.rotation()],
            Self::Planes(..) | Self::Square => Vec::new(),
            Self::Stacked(layer) => layer.rotations(),
            Self::Rows(layer) => layer.rotations(),
            Self::Hfc(layer, _) => layer.rotations(),
            Self::HConv(layer, _) => layer.rotations(),
            Self::Program(program) => program.rotations().into_iter().collect(),
        }
    }

    /// The formula. Of programs what they count; their additions are those of giant steps and folds, and of products.
    pub(crate) fn operations(&self, outputs: usize) -> Operations {
        match self {
            Self::Planes(layer, _) => layer.operations(),
            Self::Square => Operations { ciphertext_multiplications: 1, ..Operations::NONE },
            Self::Stacked(layer) => layer.operations(),
            Self::Rows(layer) => layer.operations(outputs),
            Self::Hfc(layer, _) => layer.operations(),
            Self::HConv(layer, _) => layer.operations(),
            Self::Program(program) => {
                let counts = program.counts();
                Operations {
                    rotations: counts.hoisted + counts.rotations,
                    additions: counts.multiplications - program.to().ciphertexts() + program.folds().len(),
                    multiplications: counts.multiplications,
                    ..Operations::NONE
                }
            }
        }
    }

    /// The ciphertext and slot of an output element.
    pub(crate) fn to(&self, element: usize) -> (usize, usize) {
        match self {
            Self::Planes(_, places) => (0, places[element]),
            Self::Square | Self::Program(_) => unreachable!("a layout of its own"),
            Self::Stacked(layer) => (0, layer.to(element)),
            Self::Rows(layer) => (element, layer.to()),
            Self::Hfc(layer, _) => layer.to(element),
            Self::HConv(layer, _) => layer.to(element),
        }
    }

    /// Makes weights ready, `[outputs][inputs]` of the layer's shape.
    pub(crate) fn prepare<S: SlotScheme>(
        &self,
        scheme: &S,
        shape: &Convolution,
        weights: &[i64],
    ) -> Factors<S::Multiplier> {
        let residues = || dense(shape, weights);
        let modulus = Modulus::new(T).unwrap();
        let transform = |block| Dft::new(&modulus, block).unwrap();
        match self {
            Self::Planes(layer, places) => {
                let residues: Vec<u64> =
                    weights.iter().map(|weight| modulus.reduce_signed(*weight)).collect();
                let values = |map: usize, tap: usize| {
                    let mut values = vec![0; layer.slots];
                    let maps = shape.out_channels / layer.maps;
                    let positions = places.len() / shape.out_channels;
                    for own in 0..maps {
                        let weight = residues[(map * maps + own) * layer.taps + tap];
                        // A map by itself lies where the first one does.
                        places[own * positions..][..positions].iter().for_each(|slot| values[*slot] = weight);
                    }
                    scheme.multiplier(&values).unwrap()
                };
                let pairs = (0..layer.maps).flat_map(|map| (0..layer.taps).map(move |tap| (map, tap)));
                Factors::List(pairs.map(|(map, tap)| values(map, tap)).collect())
            }
            Self::Stacked(layer) => {
                let residues = residues();
                let group = |group| layer.prepare(scheme, group, &residues).unwrap();
                Factors::Stacked((0..layer.groups()).map(group).collect())
            }
            Self::Rows(layer) => {
                let residues = residues();
                Factors::List(
                    residues.chunks(shape.inputs()).map(|row| layer.prepare(scheme, row).unwrap()).collect(),
                )
            }
            Self::Hfc(layer, weights) => {
                Factors::Hfc(layer.prepare(scheme, &transform(weights.block()), weights).unwrap())
            }
            Self::HConv(layer, weights) => {
                Factors::HConv(layer.prepare(scheme, &transform(weights.block()), weights).unwrap())
            }
            Self::Square | Self::Program(_) => Factors::None,
        }
    }

    /// Runs a layer that is no square and no program.
    pub(crate) fn apply<S: SlotScheme>(
        &self,
        scheme: &mut Counted<'_, S>,
        inputs: &[S::Ciphertext],
        factors: &Factors<S::Multiplier>,
    ) -> Vec<S::Ciphertext> {
        match (self, factors) {
            (Self::Planes(layer, _), Factors::List(factors)) => {
                vec![layer.apply(scheme, inputs, factors).unwrap()]
            }
            (Self::Stacked(layer), Factors::Stacked(groups)) => {
                vec![layer.apply(scheme, &inputs[0], groups).unwrap()]
            }
            (Self::Rows(layer), Factors::List(rows)) => layer.apply(scheme, &inputs[0], rows).unwrap(),
            (Self::Hfc(layer, _), Factors::Hfc(factors)) => layer.apply(scheme, &inputs[0], factors).unwrap(),
            (Self::HConv(layer, _), Factors::HConv(factors)) => layer.apply(scheme, inputs, factors).unwrap(),
            _ => unreachable!("factors of another layer"),
        }
    }

    /// Bounds on the noise of its results, by the limbs that are left of those before.
    pub(crate) fn noise(
        &self,
        factors: &Factors<()>,
        input: NoiseBound,
        parameters: &Parameters,
        before: usize,
    ) -> impl Fn(usize) -> NoiseBound {
        let results = match self {
            Self::Square => input,
            Self::Program(program) => program.noise(input, parameters, &[T], before),
            _ => {
                let bounds = Bounds::new(parameters, T, before);
                let inputs = match self {
                    Self::Planes(layer, _) => layer.taps,
                    Self::HConv(layer, _) => layer.inputs(),
                    _ => 1,
                };
                self.apply(&mut Counted::new(&bounds), &vec![input; inputs], factors)[0]
            }
        };
        let is_square = matches!(self, Self::Square);
        move |behind| {
            if is_square {
                Square::noise(input, parameters, &[T], [before, behind])
            } else {
                results.switched_modulus(parameters, before, behind)
            }
        }
    }
}

/// The matrix of a layer, `[outputs][inputs]`: residues.
pub(crate) fn dense(shape: &Convolution, weights: &[i64]) -> Vec<u64> {
    let modulus = Modulus::new(T).unwrap();
    let ([height, width], inputs) = (shape.output_image().unwrap(), shape.inputs());
    let taps = shape.kernel[0] * shape.kernel[1];
    let mut matrix = vec![0; shape.outputs().unwrap() * inputs];
    for (place, weight) in weights.iter().enumerate() {
        let (channels, tap) = (place / taps, place % taps);
        let (output, input) = (channels / shape.in_channels, channels % shape.in_channels);
        for (row, column) in (0..height).flat_map(|row| (0..width).map(move |column| (row, column))) {
            // Without padding: every tap reads a pixel.
            let y = row * shape.strides[0] + tap / shape.kernel[1];
            let x = column * shape.strides[1] + tap % shape.kernel[1];
            let pixel = (input * shape.image[0] + y) * shape.image[1] + x;
            matrix[((output * height + row) * width + column) * inputs + pixel] =
                modulus.reduce_signed(*weight);
        }
    }
    matrix
}
