//! The layer on plain integers modulo a power of two: what the server computes online.

use lanner_primitives::Ring;
use lanner_step::{Convolution, ProtocolError, Result};
use zeroize::Zeroizing;

use super::places::{Places, tile};

/// A layer's weights, laid out to multiply plain values modulo `2^bits`.
///
/// Values are read where taps find them into columns, one for each pixel of the output, and some rows of weights are multiplied by some columns
/// at a time, so that the sums stay in registers. Time and memory that is read depend on the shape alone.
pub struct Product {
    places: Places,
    ring: Ring,
    weights: Words,
}

/// Weights as words of which the ring's modulus divides the number.
enum Words {
    Narrow(Zeroizing<Vec<u32>>),
    Wide(Zeroizing<Vec<u64>>),
}

impl Product {
    /// Lays weights out, of any size.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if the shape does not fit together, or there are too few or many weights.
    pub fn new(shape: &Convolution, bits: u32, weights: &[i64]) -> Result<Self> {
        let places = Places::new(shape)?;
        ProtocolError::check_length("weights of a linear layer", shape.weights(), weights.len())?;
        ProtocolError::refuse_if(!(1..=u64::BITS).contains(&bits), "bits of a linear layer")?;
        let weights =
            if bits <= 32 { Words::Narrow(places.lay(weights)) } else { Words::Wide(places.lay(weights)) };
        Ok(Self { places, ring: Ring::Pow2(bits), weights })
    }

    /// Bytes of the weights and of where they are applied.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if the shape does not fit together.
    pub fn bytes(shape: &Convolution, bits: u32) -> Result<u64> {
        let [height, width] = shape.output_image()?;
        let word = if bits <= 32 { size_of::<u32>() } else { size_of::<u64>() };
        let (pixels, depth) = (height * width, shape.weights() / shape.out_channels);
        let rows = shape.groups * shape.group_outputs().next_multiple_of(tile(shape, pixels));
        Ok((rows * depth * word + (pixels + depth) * size_of::<usize>()) as u64)
    }

    /// Number of output elements.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.places.outputs()
    }

    /// The layer on reduced values, without its bias; reduced.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if there are too few or many values.
    pub fn apply(&self, values: &[u64]) -> Result<Zeroizing<Vec<u64>>> {
        ProtocolError::check_length("values of a linear layer", self.places.shape().inputs(), values.len())?;
        let mut outputs = match &self.weights {
            // Vectors of 512 bits, each the sums of a row.
            Words::Narrow(weights) => self.places.apply::<u32, 16>(weights, values),
            Words::Wide(weights) => self.places.apply::<u64, 16>(weights, values),
        };
        outputs.iter_mut().for_each(|output| *output &= self.ring.largest());
        Ok(outputs)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One tap after the other, in words that wrap around.
    fn naive(shape: &Convolution, bits: u32, weights: &[i64], values: &[u64]) -> Vec<u64> {
        let ([height, width], [rows, columns]) = (shape.output_image().unwrap(), shape.kernel);
        let at = |channel: usize, output: [usize; 2]| {
            let mut sum = 0_u64;
            for of_group in 0..shape.group_inputs() {
                let from = channel / shape.group_outputs() * shape.group_inputs() + of_group;
                for tap in (0..rows).flat_map(|dy| (0..columns).map(move |dx| [dy, dx])) {
                    let source = |axis| shape.source(axis, output[axis], tap[axis]);
                    if let [Some(y), Some(x)] = [source(0), source(1)] {
                        let value = values[(from * shape.image[0] + y) * shape.image[1] + x];
                        let weight = weights[shape.weight_index(channel, of_group, tap)];
                        sum = sum.wrapping_add((weight as u64).wrapping_mul(value));
                    }
                }
            }
            sum & Ring::Pow2(bits).largest()
        };
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| [y, x]));
        (0..shape.out_channels)
            .flat_map(|channel| pixels.clone().map(move |pixel| at(channel, pixel)))
            .collect()
    }

    fn check(shape: &Convolution, bits: u32, seed: u64) {
        let word = |at: usize| {
            let word = (seed ^ (at as u64 + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (word ^ word >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        };
        // Sixteen bits with the sign, the least and the largest among them.
        let weight = |at| match at % 5 {
            0 => -1 << 15,
            1 => (1 << 15) - 1,
            _ => (word(at) as i64) >> 48,
        };
        let largest = Ring::Pow2(bits).largest();
        let value = |at| match at % 7 {
            0 => 0,
            1 => largest,
            2 => largest / 2 + 1,
            _ => word(at + 99) & largest,
        };
        let weights: Vec<i64> = (0..shape.weights()).map(weight).collect();
        let values: Vec<u64> = (0..shape.inputs()).map(value).collect();
        let product = Product::new(shape, bits, &weights).unwrap();
        let outputs = product.apply(&values).unwrap();
        assert_eq!(outputs.len(), product.outputs());
        assert_eq!(*outputs, naive(shape, bits, &weights, &values), "{shape:?}, {bits} bits");
    }

    const WIDTHS: [u32; 6] = [8, 21, 32, 33, 41, 62];

    fn shapes() -> impl Strategy<Value = Convolution> {
        let axis = || (1_usize..=20, 1_usize..=4, 1_usize..=3, 0_usize..=3, 0_usize..=3, 1_usize..=3);
        let channels = (1_usize..=4, 1_usize..=3, 1_usize..=6);
        (axis(), axis(), channels).prop_map(|(y, x, (groups, inputs, outputs))| {
            // The kernel is within the image with its padding.
            let image = [y, x].map(|(size, kernel, _, _, _, dilation)| size.max((kernel - 1) * dilation + 1));
            Convolution {
                in_channels: groups * inputs,
                out_channels: groups * outputs,
                image,
                kernel: [y.1, x.1],
                strides: [y.2, x.2],
                pads: [y.3, x.3, y.4, x.4],
                dilations: [y.5, x.5],
                groups,
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn the_product_equals_its_naive_twin(
            shape in shapes(),
            bits in proptest::sample::select(&WIDTHS[..]),
            seed in any::<u64>(),
        ) {
            check(&shape, bits, seed);
        }
    }

    /// Many channels and taps, and layers of one pixel or few.
    #[test]
    fn products_of_several_blocks_equal_their_naive_twins() {
        let square = |in_channels, out_channels, size, kernel, pad| Convolution {
            in_channels,
            out_channels,
            image: [size; 2],
            kernel: [kernel; 2],
            strides: [1, 1],
            pads: [pad; 4],
            dilations: [1, 1],
            groups: 1,
        };
        let shapes = [
            Convolution::fully_connected(700, 130),
            Convolution::fully_connected(1, 1),
            square(70, 130, 5, 3, 1),
            square(30, 67, 7, 1, 0),
            square(300, 66, 1, 1, 0),
            square(40, 5, 4, 3, 0),
            Convolution { groups: 96, ..square(96, 96, 9, 3, 1) },
            Convolution { groups: 2, ..square(128, 134, 6, 3, 1) },
        ];
        for shape in &shapes {
            for bits in WIDTHS {
                check(shape, bits, bits.into());
            }
        }
    }

    #[test]
    fn other_lengths_and_widths_are_refused() {
        let shape = Convolution::fully_connected(4, 2);
        assert!(Product::new(&shape, 20, &[1; 7]).is_err());
        assert!(Product::new(&shape, 0, &[1; 8]).is_err());
        assert!(Product::new(&shape, 65, &[1; 8]).is_err());
        assert!(Product::new(&shape, 20, &[1; 8]).unwrap().apply(&[1; 5]).is_err());
        let wide = Convolution { pads: [0, 0, 0, usize::MAX / 2], strides: [1, usize::MAX / 2], ..shape };
        assert!(Product::new(&wide, 20, &[1; 8]).is_err());
    }
}
