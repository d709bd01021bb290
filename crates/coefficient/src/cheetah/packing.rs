//! Which coefficients hold what.
//!
//! Of a tile of `h x w` pixels (padding included), channel `c` of a block of `C` has pixel `(i, j)` at coefficient `(c h + i) w + j`. Tap
//! `(u, v)` of the filter from `c` to output channel `m` of a block of `M` is at `O - (m C + c) h w - u w - v`, with
//! `O = (M C - 1) h w + (reach_h - 1) w + reach_w - 1`; the product has output `(y, x)` of channel `m` at `O - m C h w + (y w + x) stride`.
//! Nothing else falls there as long as `M C h w <= N`. A fully connected layer is the case of one pixel.
//!
//! Where [answers are packed](lanner_bfv::Interleaving), pixel `p = i w + j` of channel `c` is at `p M C + c`, the tap at `O - m C - c - (u w + v) M C`,
//! with `O = (M C - 1) + ((reach_h - 1) w + reach_w - 1) M C`, and the output at `O - m C + (y w + x) stride M C`: the same with channels inside. So
//! outputs are at a distance of `C`, and as many products as a power of two that divides `C` go into one answer, those of the first at the multiples of that
//! number, those of the next one beside them.

use lanner_step::{Convolution, ProtocolError, Result};

use lanner_bfv::Interleaving;

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
    /// Channels of an input ciphertext, and output channels of a product.
    block: [usize; 2],
    /// Products in an answer: a power of two, and 1 where answers are not packed.
    packed: usize,
}

/// Whether answers are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// Each product is one.
    Apart,
    /// Each is made of several products.
    Packed,
}

/// A coefficient, and the element of a value that it holds.
pub type Place = (usize, usize);

impl Packing {
    /// The cheapest way to spread a layer over ciphertexts of degree `N`, of those that have a cost.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if the shape is no layer, or one row of its kernel does not fit a ciphertext, or nothing has a cost.
    pub fn cheapest(
        layer: &Stacked,
        degree: usize,
        form: AnswerForm,
        mut cost: impl FnMut(&Self) -> Option<usize>,
    ) -> Result<Self> {
        let shape = layer.whole();
        let image = shape.output_image()?;
        let mut best: Option<(usize, Self)> = None;
        for region in regions(image) {
            let tiles = [0, 1].map(|axis| image[axis].div_ceil(region[axis]));
            for together in (1..=shape.groups).filter(|count| shape.groups.is_multiple_of(*count)) {
                let packing =
                    Self { layer: layer.clone(), degree, region, tiles, together, block: [1, 1], packed: 1 };
                for candidate in packing.blocks().filter_map(|candidate| candidate.in_form(form)) {
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

    /// The same with answers of a form; none if no two products go into one.
    fn in_form(self, form: AnswerForm) -> Option<Self> {
        if form == AnswerForm::Apart {
            return Some(self);
        }
        let most = (1_usize << self.block[0].trailing_zeros()).min(self.products_apart().next_power_of_two());
        (most > 1).then_some(Self { packed: most, ..self })
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
    #[must_use]
    pub const fn degree(&self) -> usize {
        self.degree
    }

    /// Input and output ciphertexts.
    #[must_use]
    pub fn ciphertexts(&self) -> [usize; 2] {
        let [inputs, products] = self.per_bundle().map(|blocks| blocks * self.spreads());
        [inputs, products.div_ceil(self.packed)]
    }

    /// Products in an answer: 1 where answers are not packed.
    #[must_use]
    pub const fn packed(&self) -> usize {
        self.packed
    }

    /// The coefficients of a product that are outputs are this modulo [`Self::packed`].
    pub(crate) fn first_output(&self) -> usize {
        self.last_tap() % self.packed
    }

    /// Sums of products by filter polynomials.
    pub(crate) fn products_apart(&self) -> usize {
        let [_, products] = self.per_bundle();
        products * self.spreads()
    }

    /// Key switchings that pack the answers.
    pub(crate) fn switches(&self) -> usize {
        let (all, packed) = (self.products_apart(), self.packed);
        all / packed * Interleaving::switches(packed, packed) + Interleaving::switches(packed, all % packed)
    }

    /// Bundles of all tiles.
    fn spreads(&self) -> usize {
        self.tiles[0] * self.tiles[1] * self.bundles()
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
    #[must_use]
    pub fn bundles(&self) -> usize {
        self.whole().groups / self.together
    }

    /// Input and output ciphertexts of one tile of one bundle.
    #[must_use]
    pub fn per_bundle(&self) -> [usize; 2] {
        let channels = self.channels();
        [0, 1].map(|side| channels[side].div_ceil(self.block[side]))
    }

    /// The most filter taps that are not zero in the polynomials of one product together.
    #[must_use]
    pub fn taps(&self) -> usize {
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
        let all = filters * channels * self.area();
        [all, (filters - 1) * self.steps()[2]]
    }

    /// The most coefficients of an output ciphertext that are sent.
    pub(crate) fn most_outputs(&self) -> usize {
        let each = self.block[1] * self.region[0] * self.region[1];
        each * self.packed.min(self.products_apart())
    }

    /// Coefficients from a channel, a pixel and a filter to the next.
    fn steps(&self) -> [usize; 3] {
        let ([channels, filters], area) = (self.block, self.area());
        if self.packed == 1 { [area, 1, channels * area] } else { [1, filters * channels, channels] }
    }

    /// The coefficient of the first tap of the first filter, in which that of the first output is, too.
    fn last_tap(&self) -> usize {
        let ([channels, filters], [channel, pixel, _]) = (self.block, self.steps());
        let [[reach_height, reach_width], [_, width]] = [self.whole().reach(), self.tile()];
        (channels * filters - 1) * channel + ((reach_height - 1) * width + reach_width - 1) * pixel
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
    #[must_use]
    pub fn inputs(&self) -> Vec<Vec<Place>> {
        self.spread(|tile, bundle, block| self.input(tile, bundle, block), 0)
    }

    /// Which coefficients of each output ciphertext are outputs, in order.
    #[must_use]
    pub fn outputs(&self) -> Vec<Vec<Place>> {
        let products = self.spread(|tile, bundle, block| self.output(tile, bundle, block), 1);
        if self.packed == 1 {
            return products;
        }
        let first = self.first_output();
        let beside = |(number, places): (usize, &Vec<Place>)| {
            let place = move |(at, element): &Place| (at - first + number, *element);
            places.iter().map(place).collect::<Vec<_>>()
        };
        products.chunks(self.packed).map(|some| some.iter().enumerate().flat_map(beside).collect()).collect()
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
        let ([image_height, image_width], [of_channel, of_pixel, _]) = (self.whole().image, self.steps());
        let start = [0, 1].map(|axis| tile[axis] * self.region[axis] * self.whole().strides[axis]);
        let mut places = Vec::with_capacity(self.block[0] * self.area());
        for (c, channel) in self.channels_of(0, bundle, block).enumerate() {
            for i in 0..height {
                let Some(row) = inside(start[0] + i, self.whole().pads[0], image_height) else { continue };
                for j in 0..width {
                    let column = inside(start[1] + j, self.whole().pads[1], image_width);
                    let element = column.and_then(|column| self.layer.input(channel, [row, column]));
                    places.extend(
                        element.map(|element| (c * of_channel + (i * width + j) * of_pixel, element)),
                    );
                }
            }
        }
        places
    }

    fn output(&self, tile: [usize; 2], bundle: usize, block: usize) -> Vec<Place> {
        let ([_, width], strides) = (self.tile(), self.whole().strides);
        let [_, of_pixel, of_filter] = self.steps();
        let image = self.whole().output_image().unwrap_or_default();
        let first = self.last_tap();
        let mut places = Vec::with_capacity(self.block[1] * self.region[0] * self.region[1]);
        for (m, channel) in self.channels_of(1, bundle, block).enumerate() {
            for y in 0..self.region[0].min(image[0] - tile[0] * self.region[0]) {
                for x in 0..self.region[1].min(image[1] - tile[1] * self.region[1]) {
                    let [row, column] = [tile[0] * self.region[0] + y, tile[1] * self.region[1] + x];
                    let at = first + (y * strides[0] * width + x * strides[1]) * of_pixel;
                    let element = self.layer.output(channel, [row, column]);
                    places.extend(element.map(|element| (at - m * of_filter, element)));
                }
            }
        }
        places
    }

    /// The coefficients of the filters from an input block to an output block of a bundle, each with its weight's number.
    #[must_use]
    pub fn filter(&self, bundle: usize, input: usize, output: usize) -> Vec<Place> {
        let [_, width] = self.tile();
        let dilations = self.whole().dilations;
        let (first, [of_channel, of_pixel, of_filter]) = (self.last_tap(), self.steps());
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
                        let pixel = u * dilations[0] * width + v * dilations[1];
                        let before = m * of_filter + c * of_channel + pixel * of_pixel;
                        places
                            .push((first - before, self.whole().weight_index(out_channel, of_group, [u, v])));
                    }
                }
            }
        }
        places
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
    let [rows, columns] = image.map(|size| splits(size).count() as u64 + 1);
    // The numbers of channels that as many ciphertexts can be spread over lie apart.
    let parts = 2 * (shape.group_inputs() as u64).isqrt() + 2;
    rows * columns * parts.saturating_add(shape.groups as u64)
}

/// Output regions that split an image evenly.
fn regions(image: [usize; 2]) -> impl Iterator<Item = [usize; 2]> {
    let parts = |size: usize| {
        let mut sizes: Vec<usize> = splits(size).map(|parts| size.div_ceil(parts)).collect();
        sizes.push(1);
        sizes.dedup();
        sizes
    };
    let columns = parts(image[1]);
    parts(image[0])
        .into_iter()
        .flat_map(move |rows| columns.clone().into_iter().map(move |columns| [rows, columns]))
}

/// How many tiles along an axis are tried, besides those of one row or column: a few, and twice as many again and again where tiles are still long.
fn splits(size: usize) -> impl Iterator<Item = usize> {
    let few = 1..=size.min(FEW_TILES);
    let doubled = std::iter::successors(Some(FEW_TILES), move |parts| Some(2 * parts));
    few.chain(doubled.take_while(move |parts| size / parts > LONG_TILE).map(|parts| 2 * parts))
}

/// Numbers of tiles that are all tried.
const FEW_TILES: usize = 16;

/// The side of a tile that is long.
const LONG_TILE: usize = 64;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lanner_step::Samples;

    use super::*;

    #[test]
    fn a_long_row_is_cut_into_as_many_tiles_as_it_needs() {
        let layer = |image, kernel| Convolution {
            in_channels: 1,
            out_channels: 1,
            image,
            kernel,
            strides: [1, 1],
            pads: [0; 4],
            dilations: [1, 1],
            groups: 1,
        };
        for (image, kernel, most) in
            [([300_000, 1], [1, 1], 150), ([1, 300_000], [1, 1], 150), ([1, 100_000], [1, 400], 70)]
        {
            let layer = Stacked::try_from(&layer(image, kernel)).unwrap();
            let cost = |packing: &Packing| Some(packing.ciphertexts().iter().sum());
            let packing = Packing::cheapest(&layer, 4096, AnswerForm::Apart, cost).unwrap();
            assert!(packing.ciphertexts()[0] <= most, "{image:?}: {:?}", packing.ciphertexts());
        }
        assert_eq!(splits(20).collect::<Vec<_>>(), (1..=16).collect::<Vec<_>>());
        assert_eq!(splits(3).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(splits(5000).skip(16).collect::<Vec<_>>(), [32, 64, 128]);
    }

    /// The layer by schoolbook products of integer polynomials, reduced modulo `X^N + 1`.
    fn apply(packing: &Packing, weights: &[i64], input: &[i64]) -> Vec<i64> {
        let n = packing.degree;
        let [inputs, outputs] = packing.per_bundle();
        let (places, wanted) = (packing.inputs(), packing.outputs());
        let mut result = vec![0; packing.elements()[1]];
        // Coefficient c of an answer is one of product c mod p, of as many.
        let of_product = |(number, (c, element)): (usize, &Place)| {
            let beside = c % packing.packed;
            (number * packing.packed + beside, (c - beside + packing.first_output(), *element))
        };
        let mut each = vec![Vec::new(); packing.products_apart()];
        for (number, places) in wanted.iter().enumerate() {
            for (product, place) in places.iter().map(|place| of_product((number, place))) {
                each[product].push(place);
            }
        }
        for (number, wanted) in each.iter().enumerate() {
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

    /// The layer in its cheapest layout, if there is one, beside the naive convolution of each sample.
    fn check(shape: &Convolution, weights: &[i64], layer: &Stacked, degree: usize, form: AnswerForm) {
        let packing = Packing::cheapest(layer, degree, form, |packing| Some(packing.products()));
        if form == AnswerForm::Packed && packing.is_err() {
            return;
        }
        let packing = packing.unwrap();
        let input: Vec<i64> = (0..packing.elements()[0] as i64).map(|i| i * 5 % 13 - 6).collect();
        let each = input.chunks(shape.inputs());
        let expected: Vec<_> = each.flat_map(|sample| shape.apply(weights, sample).unwrap()).collect();
        let [h, w] = packing.tile();
        assert!(packing.block[0] * packing.block[1] * h * w <= degree);
        let places = packing.outputs();
        assert_eq!(places.len(), packing.ciphertexts()[1]);
        let mut distinct: Vec<usize> = places[0].iter().map(|(at, _)| *at).collect();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() == places[0].len() && distinct.iter().all(|at| *at < degree));
        let most = places.iter().map(Vec::len).max().unwrap();
        let exact = layer.whole() == shape && form == AnswerForm::Apart;
        assert!(most <= packing.most_outputs() && (!exact || most == packing.most_outputs()));
        assert_eq!(apply(&packing, weights, &input), expected, "{shape:?} at {degree}, {form:?}");
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
            Convolution { image: [12, 1], ..Convolution::fully_connected(24, 20) },
        ];
        for shape in shapes {
            let weights: Vec<i64> = (0..shape.weights() as i64).map(|i| i * 7 % 11 - 5).collect();
            for (degree, count) in
                [64, 128, 256, 1024, 4096].into_iter().flat_map(|n| [(n, 1), (n, 2), (n, 8)])
            {
                let samples = Samples::try_from(count).unwrap();
                let layer = Stacked::new(&shape, samples).unwrap();
                for form in [AnswerForm::Apart, AnswerForm::Packed] {
                    check(&shape, &weights, &layer, degree, form);
                }
            }
        }
    }

    #[test]
    fn kernels_larger_than_a_ciphertext_are_refused() {
        let shape = Convolution { image: [80, 80], kernel: [70, 70], ..Convolution::fully_connected(1, 1) };
        assert!(
            Packing::cheapest(&Stacked::try_from(&shape).unwrap(), 4096, AnswerForm::Apart, |_| Some(1))
                .is_err()
        );
    }
}
