//! Which coefficients hold what.
//!
//! Of a tile of `h x w` pixels (padding included), channel `c` of a block of `C` has pixel `(i, j)` at coefficient `(c h + i) w + j`. Tap
//! `(u, v)` of the filter from `c` to output channel `m` of a block of `M` is at `O - (m C + c) h w - u w - v`, with
//! `O = (M C - 1) h w + (reach_h - 1) w + reach_w - 1`; the product has output `(y, x)` of channel `m` at `O - m C h w + (y w + x) stride`.
//! Nothing else falls there as long as `M C h w <= N`. A fully connected layer is the case of one pixel.

use lanner_step::{Convolution, ProtocolError, Result};

use super::stacked::Stacked;

/// How a layer is spread over ciphertexts.
#[derive(Clone, Debug)]
pub struct Packing {
    layer: Stacked,
    degree: usize,
    /// Output rows and columns of a tile.
    region: [usize; 2],
    /// Tiles down and across.
    tiles: [usize; 2],
    /// Groups that share ciphertexts.
    together: usize,
    /// Channels of an input ciphertext, and output channels of an output ciphertext.
    block: [usize; 2],
}

/// A coefficient, and the element of a value that it holds.
pub(crate) type Place = (usize, usize);

impl Packing {
    /// The cheapest way to spread a layer over ciphertexts of degree `N`, of those that have a cost.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if the shape is no layer, or one row of its kernel does not fit a ciphertext, or nothing has a cost.
    pub fn cheapest(
        layer: &Stacked,
        degree: usize,
        mut cost: impl FnMut(&Self) -> Option<usize>,
    ) -> Result<Self> {
        let shape = layer.whole();
        let image = shape.output_image()?;
        let mut best: Option<(usize, Self)> = None;
        for region in regions(image) {
            let tiles = [0, 1].map(|axis| image[axis].div_ceil(region[axis]));
            for together in (1..=shape.groups).filter(|count| shape.groups.is_multiple_of(*count)) {
                let packing = Self { layer: layer.clone(), degree, region, tiles, together, block: [1, 1] };
                for candidate in packing.blocks() {
                    let Some(cost) = cost(&candidate) else { continue };
                    if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                        best = Some((cost, candidate));
                    }
                }
            }
        }
        best.map(|(_, packing)| packing).ok_or(ProtocolError::Parameters("a kernel larger than a ciphertext"))
    }

    /// This tiling with every sensible number of channels in a ciphertext.
    fn blocks(self) -> impl Iterator<Item = Self> {
        let capacity = self.degree / self.area();
        let [inputs, outputs] = self.channels();
        // Groups that share a ciphertext have all their channels in it.
        let most = if self.together == 1 { inputs } else { 1 };
        // The fewest parts with one channel less in each, as long as there is one.
        let next = move |parts: &usize| {
            let channels = inputs.div_ceil(*parts);
            (channels > 1).then(|| inputs.div_ceil(channels - 1))
        };
        std::iter::successors(Some(1), next).take_while(move |parts| *parts <= most).filter_map(
            move |parts| {
                let channels = inputs.div_ceil(parts);
                let filters = (capacity / channels).min(outputs);
                (filters > 0).then(|| Self {
                    block: [channels, outputs.div_ceil(outputs.div_ceil(filters))],
                    ..self.clone()
                })
            },
        )
    }

    /// The layer of one sample.
    #[must_use]
    pub const fn shape(&self) -> &Convolution {
        self.layer.sample()
    }

    /// Elements of the inputs of all samples, and of their outputs.
    #[must_use]
    pub const fn elements(&self) -> [usize; 2] {
        self.layer.elements()
    }

    /// The layer that computes all samples.
    const fn whole(&self) -> &Convolution {
        self.layer.whole()
    }

    /// `N`.
    pub(crate) const fn degree(&self) -> usize {
        self.degree
    }

    /// Input and output ciphertexts.
    #[must_use]
    pub fn ciphertexts(&self) -> [usize; 2] {
        let spread = self.tiles[0] * self.tiles[1] * self.bundles();
        self.per_bundle().map(|blocks| blocks * spread)
    }

    /// Products of a ciphertext by a filter polynomial.
    #[must_use]
    pub fn products(&self) -> usize {
        self.tiles[0] * self.tiles[1] * self.factors()
    }

    /// Filter polynomials.
    #[must_use]
    pub fn factors(&self) -> usize {
        let [inputs, outputs] = self.per_bundle();
        self.bundles() * inputs * outputs
    }

    /// Bytes of the lists of what ciphertexts hold, at most.
    pub(crate) fn layout_bytes(&self) -> u64 {
        let [inputs, outputs] = self.ciphertexts();
        let held = inputs * self.block[0] * self.area() + outputs * self.most_outputs();
        (held * size_of::<Place>()) as u64
    }

    /// Bundles of groups that share ciphertexts.
    pub(super) fn bundles(&self) -> usize {
        self.whole().groups / self.together
    }

    /// Input and output ciphertexts of one tile of one bundle.
    pub(crate) fn per_bundle(&self) -> [usize; 2] {
        let channels = self.channels();
        [0, 1].map(|side| channels[side].div_ceil(self.block[side]))
    }

    /// The most filter taps that are not zero in the polynomials of one output ciphertext together.
    pub(crate) fn taps(&self) -> usize {
        let [height, width] = self.whole().kernel;
        self.block[1] * self.whole().group_inputs() * height * width
    }

    /// Output rows of a tile.
    pub(crate) const fn rows(&self) -> usize {
        self.region[0]
    }

    /// How many of the first and of the last coefficients of an input are read where outputs are.
    ///
    /// Of output channel `m`, a tap of channel `m'` reads the input's blocks moved by `m' - m` times the coefficients that they take.
    pub(crate) fn read(&self) -> [usize; 2] {
        let [channels, filters] = self.block;
        [filters, filters - 1].map(|count| count * channels * self.area())
    }

    /// The most coefficients of an output ciphertext that are sent.
    pub(crate) fn most_outputs(&self) -> usize {
        self.block[1] * self.region[0] * self.region[1]
    }

    /// Input and output channels of a bundle.
    fn channels(&self) -> [usize; 2] {
        [self.whole().group_inputs(), self.whole().group_outputs()].map(|channels| channels * self.together)
    }

    /// Rows and columns of a tile.
    fn tile(&self) -> [usize; 2] {
        let reach = self.whole().reach();
        [0, 1].map(|axis| (self.region[axis] - 1) * self.whole().strides[axis] + reach[axis])
    }

    fn area(&self) -> usize {
        self.tile().iter().product()
    }

    /// What each input ciphertext holds, in order.
    pub(crate) fn inputs(&self) -> Vec<Vec<Place>> {
        self.spread(|tile, bundle, block| self.input(tile, bundle, block), 0)
    }

    /// Which coefficients of each output ciphertext are outputs, in order.
    pub(crate) fn outputs(&self) -> Vec<Vec<Place>> {
        self.spread(|tile, bundle, block| self.output(tile, bundle, block), 1)
    }

    /// Tile by tile, bundle by bundle, block by block.
    fn spread<T>(&self, of: impl Fn([usize; 2], usize, usize) -> T, side: usize) -> Vec<T> {
        let mut all = Vec::new();
        for down in 0..self.tiles[0] {
            for across in 0..self.tiles[1] {
                for bundle in 0..self.bundles() {
                    all.extend((0..self.per_bundle()[side]).map(|block| of([down, across], bundle, block)));
                }
            }
        }
        all
    }

    fn input(&self, tile: [usize; 2], bundle: usize, block: usize) -> Vec<Place> {
        let [height, width] = self.tile();
        let [image_height, image_width] = self.whole().image;
        let start = [0, 1].map(|axis| tile[axis] * self.region[axis] * self.whole().strides[axis]);
        let mut places = Vec::with_capacity(self.block[0] * self.area());
        for (c, channel) in self.channels_of(0, bundle, block).enumerate() {
            for i in 0..height {
                let Some(row) = inside(start[0] + i, self.whole().pads[0], image_height) else { continue };
                for j in 0..width {
                    let column = inside(start[1] + j, self.whole().pads[1], image_width);
                    let element = column.and_then(|column| self.layer.input(channel, [row, column]));
                    places.extend(element.map(|element| ((c * height + i) * width + j, element)));
                }
            }
        }
        places
    }

    fn output(&self, tile: [usize; 2], bundle: usize, block: usize) -> Vec<Place> {
        let [height, width] = self.tile();
        let [strides, reach] = [self.whole().strides, self.whole().reach()];
        let image = self.whole().output_image().unwrap_or_default();
        let first = self.offset() + (reach[0] - 1) * width + reach[1] - 1;
        let mut places = Vec::with_capacity(self.most_outputs());
        for (m, channel) in self.channels_of(1, bundle, block).enumerate() {
            for y in 0..self.region[0].min(image[0] - tile[0] * self.region[0]) {
                for x in 0..self.region[1].min(image[1] - tile[1] * self.region[1]) {
                    let [row, column] = [tile[0] * self.region[0] + y, tile[1] * self.region[1] + x];
                    let at = first + y * strides[0] * width + x * strides[1];
                    let element = self.layer.output(channel, [row, column]);
                    places.extend(element.map(|element| (at - m * self.block[0] * height * width, element)));
                }
            }
        }
        places
    }

    /// The coefficients of the filters from an input block to an output block of a bundle, each with its weight's number.
    pub(crate) fn filter(&self, bundle: usize, input: usize, output: usize) -> Vec<Place> {
        let [_, width] = self.tile();
        let dilations = self.whole().dilations;
        let first = self.offset() + (self.whole().reach()[0] - 1) * width + self.whole().reach()[1] - 1;
        let mut places = Vec::new();
        for (m, out_channel) in self.channels_of(1, bundle, output).enumerate() {
            let group = out_channel / self.whole().group_outputs() * self.whole().group_inputs();
            for (c, channel) in self.channels_of(0, bundle, input).enumerate() {
                let Some(of_group) = channel.checked_sub(group).filter(|c| *c < self.whole().group_inputs())
                else {
                    continue;
                };
                for u in 0..self.whole().kernel[0] {
                    for v in 0..self.whole().kernel[1] {
                        let before = (m * self.block[0] + c) * self.area()
                            + u * dilations[0] * width
                            + v * dilations[1];
                        places
                            .push((first - before, self.whole().weight_index(out_channel, of_group, [u, v])));
                    }
                }
            }
        }
        places
    }

    /// Where the last filter's block begins.
    fn offset(&self) -> usize {
        (self.block[0] * self.block[1] - 1) * self.area()
    }

    /// The input (0) or output (1) channels of a block.
    fn channels_of(&self, side: usize, bundle: usize, block: usize) -> impl Iterator<Item = usize> + use<> {
        let channels = self.channels()[side];
        let first = bundle * channels;
        first + block * self.block[side]..first + ((block + 1) * self.block[side]).min(channels)
    }
}

/// The index in an image of a padded index.
fn inside(padded: usize, pad: usize, size: usize) -> Option<usize> {
    padded.checked_sub(pad).filter(|index| *index < size)
}

/// How many layouts are looked at in search of a layer's cheapest, at most and roughly; the largest number for what is no layer.
#[must_use]
pub fn search_steps(shape: &Convolution) -> u64 {
    let Ok(image) = shape.output_image() else { return u64::MAX };
    let [rows, columns] = image.map(|size| size.min(MOST_TILES + 1) as u64);
    // The numbers of channels that as many ciphertexts can be spread over lie apart.
    let parts = 2 * (shape.group_inputs() as u64).isqrt() + 2;
    rows * columns * parts.saturating_add(shape.groups as u64)
}

/// Output regions that split an image evenly.
fn regions(image: [usize; 2]) -> impl Iterator<Item = [usize; 2]> {
    let parts = |size: usize| {
        let mut sizes: Vec<usize> = (1..=size.min(MOST_TILES)).map(|parts| size.div_ceil(parts)).collect();
        sizes.push(1);
        sizes.dedup();
        sizes
    };
    let columns = parts(image[1]);
    parts(image[0])
        .into_iter()
        .flat_map(move |rows| columns.clone().into_iter().map(move |columns| [rows, columns]))
}

/// Tiles along an axis that are tried, besides those of one row or column.
const MOST_TILES: usize = 16;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lanner_step::Samples;

    use super::*;

    /// The layer by schoolbook products of integer polynomials, reduced modulo `X^N + 1`.
    fn apply(packing: &Packing, weights: &[i64], input: &[i64]) -> Vec<i64> {
        let n = packing.degree;
        let [inputs, outputs] = packing.per_bundle();
        let (places, wanted) = (packing.inputs(), packing.outputs());
        let mut result = vec![0; packing.elements()[1]];
        for (number, wanted) in wanted.iter().enumerate() {
            let (spread, block) = (number / outputs, number % outputs);
            let bundle = spread % packing.bundles();
            for k in 0..inputs {
                let filter = packing.filter(bundle, k, block);
                for (at, element) in wanted {
                    for (place, weight) in &filter {
                        // Coefficient at - place of the input, from above with the other sign.
                        let (from, sign) = if place > at { (at + n - place, -1) } else { (at - place, 1) };
                        let [head, tail] = packing.read();
                        assert!(from < head || from + tail >= n, "what an output reads is sent");
                        let source = places[spread * inputs + k].iter().find(|(c, _)| *c == from);
                        result[*element] += source.map_or(0, |(_, e)| sign * weights[*weight] * input[*e]);
                    }
                }
            }
        }
        result
    }

    #[test]
    fn every_spread_gives_the_convolution() {
        let base = Convolution {
            in_channels: 4,
            out_channels: 6,
            image: [7, 6],
            kernel: [3, 2],
            strides: [1, 1],
            pads: [1, 0, 1, 1],
            dilations: [1, 1],
            groups: 1,
        };
        let shapes = [
            base.clone(),
            Convolution { strides: [2, 3], ..base.clone() },
            Convolution { dilations: [2, 1], pads: [2, 1, 2, 1], ..base.clone() },
            Convolution { groups: 2, ..base.clone() },
            Convolution { groups: 4, out_channels: 4, ..base.clone() },
            Convolution::fully_connected(30, 7),
        ];
        for shape in shapes {
            let weights: Vec<i64> = (0..shape.weights() as i64).map(|i| i * 7 % 11 - 5).collect();
            for (degree, count) in
                [64, 128, 256, 1024, 4096].into_iter().flat_map(|n| [(n, 1), (n, 2), (n, 8)])
            {
                let samples = Samples::try_from(count).unwrap();
                let layer = Stacked::new(&shape, samples).unwrap();
                let packing = Packing::cheapest(&layer, degree, |packing| Some(packing.products())).unwrap();
                let input: Vec<i64> = (0..packing.elements()[0] as i64).map(|i| i * 5 % 13 - 6).collect();
                let each = input.chunks(shape.inputs());
                let expected: Vec<_> =
                    each.flat_map(|sample| shape.apply(&weights, sample).unwrap()).collect();
                let [h, w] = packing.tile();
                assert!(packing.block[0] * packing.block[1] * h * w <= degree);
                let most = packing.outputs().iter().map(Vec::len).max().unwrap();
                assert!(most <= packing.most_outputs() && (count > 1 || most == packing.most_outputs()));
                assert_eq!(apply(&packing, &weights, &input), expected, "{shape:?} at {degree}, {count}");
            }
        }
    }

    #[test]
    fn kernels_larger_than_a_ciphertext_are_refused() {
        let shape = Convolution { image: [80, 80], kernel: [70, 70], ..Convolution::fully_connected(1, 1) };
        assert!(Packing::cheapest(&Stacked::try_from(&shape).unwrap(), 4096, |_| Some(1)).is_err());
    }
}
