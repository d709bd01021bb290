//! Which layout each linear layer takes: the least work for the server, within a cap on the evaluation keys of all layers together.
//!
//! A session's set-up is making, sending and keeping keys, one for each rotation that some layer needs. Layers share keys, so that a layout
//! that is best for a layer alone need not be best for the network. The search begins with what would be best if keys had another price, for
//! each of a range of prices. From there layers are changed one after another to what costs least given all others, until nothing
//! changes; the best of all ends is taken. A network beyond the cap ends with as few keys above it as this finds.
//!
//! Layers of one shape share a layout. Everything is counted in integers, so that both parties find the same.

use std::collections::HashMap;

use lanner_packed::gazelle::packing::{Operations, Packing};
use lanner_step::{Convolution, ProtocolError, Rotation, Samples};

/// A linear layer as far as its layout goes.
pub(crate) struct Layer {
    pub(crate) shape: Convolution,
    /// The ring, if squares that nobody else takes are its input.
    pub(crate) squared: Option<u64>,
}

/// The layouts of a network's layers.
#[derive(Default)]
pub(crate) struct Layouts(HashMap<Convolution, Packing>);

impl Layouts {
    /// Chooses a layout for every shape, given those of all layers, with at most `cap` keys if possible. `fits` says whether a
    /// layout has room for squares in front: of a shape that takes squares somewhere, the layouts are left that do, if any does.
    ///
    /// # Errors
    /// Those of `fits`, or [`ProtocolError::Parameters`], with the index of a layer that has no layout.
    pub(crate) fn choose(
        layers: &[Layer],
        slots: usize,
        samples: Samples,
        cap: usize,
        fits: impl Fn(&Packing, u64) -> Result<bool, ProtocolError>,
    ) -> Result<Self, (usize, ProtocolError)> {
        let mut search = Search::new(cap);
        let mut packings: Vec<(Convolution, Vec<Packing>)> = Vec::new();
        for (index, Layer { shape, .. }) in layers.iter().enumerate() {
            if let Some(known) = packings.iter().position(|(other, _)| other == shape) {
                search.shapes[known].layers += 1;
                continue;
            }
            let mut choices = small(Packing::choices(shape, slots, samples).map_err(|error| (index, error))?);
            for prime in layers.iter().filter(|layer| layer.shape == *shape).filter_map(|layer| layer.squared)
            {
                choices = fitting(choices, |packing| fits(packing, prime)).map_err(|error| (index, error))?;
            }
            search.add(&choices);
            packings.push((shape.clone(), choices));
        }
        let best = search.best();
        let chosen = packings.into_iter().zip(best);
        Ok(Self(chosen.map(|((shape, mut choices), best)| (shape, choices.swap_remove(best))).collect()))
    }

    /// The layout of a layer.
    pub(crate) fn of(&self, layer: &Convolution) -> Option<&Packing> {
        self.0.get(layer)
    }
}

/// The layouts whose partial sums take little memory; all, if there is none.
fn small(choices: Vec<Packing>) -> Vec<Packing> {
    let is_small = |packing: &Packing| packing.program().sums <= MAX_SUMS;
    if choices.iter().any(is_small) { choices.into_iter().filter(is_small).collect() } else { choices }
}

/// The layouts that fit; all, if none does.
fn fitting(
    choices: Vec<Packing>,
    fits: impl Fn(&Packing) -> Result<bool, ProtocolError>,
) -> Result<Vec<Packing>, ProtocolError> {
    let fit = choices.iter().map(fits).collect::<Result<Vec<_>, _>>()?;
    let any = fit.contains(&true);
    Ok(choices.into_iter().zip(fit).filter_map(|(packing, fits)| (fits || !any).then_some(packing)).collect())
}

/// The layouts to choose from, shape by shape.
struct Search {
    cap: usize,
    /// Rotations by number.
    keys: HashMap<Rotation, usize>,
    shapes: Vec<Shape>,
}

struct Shape {
    layers: u64,
    choices: Vec<Choice>,
}

struct Choice {
    work: u64,
    keys: Vec<usize>,
}

/// What is to be small, first things first: the keys beyond the cap, then the cost.
type Badness = (usize, u64);

impl Search {
    fn new(cap: usize) -> Self {
        Self { cap, keys: HashMap::new(), shapes: Vec::new() }
    }

    fn add(&mut self, choices: &[Packing]) {
        let mut number = |rotation| {
            let next = self.keys.len();
            *self.keys.entry(rotation).or_insert(next)
        };
        let choice = |packing: &Packing| Choice {
            work: work(packing.operations()),
            keys: packing.keys().into_iter().map(&mut number).collect(),
        };
        self.shapes.push(Shape { layers: 1, choices: choices.iter().map(choice).collect() });
    }

    /// The best choice found for each shape.
    fn best(&self) -> Vec<usize> {
        let ends = (0..PRICES).map(|doublings| {
            let price = KEY << doublings;
            let alone = |shape: &Shape| {
                shape.cheapest(|choice| (0, shape.layers * choice.work + price * choice.keys.len() as u64))
            };
            let mut selection = Selection::new(self, self.shapes.iter().map(alone).collect());
            selection.descend(usize::MAX, price);
            selection.descend(self.cap, KEY);
            selection
        });
        let best = ends.min_by_key(|selection| selection.cost(self.cap, KEY));
        best.map_or_else(Vec::new, |selection| selection.chosen)
    }
}

impl Shape {
    fn cheapest(&self, cost: impl Fn(&Choice) -> Badness) -> usize {
        let best = self.choices.iter().enumerate().min_by_key(|(_, choice)| cost(choice));
        best.map_or(0, |(index, _)| index)
    }
}

/// A choice for each shape.
struct Selection<'s> {
    search: &'s Search,
    chosen: Vec<usize>,
    /// For each key, how many shapes need it; and how many keys any needs.
    users: Vec<usize>,
    needed: usize,
}

impl<'s> Selection<'s> {
    fn new(search: &'s Search, chosen: Vec<usize>) -> Self {
        let mut selection = Self { search, chosen, users: vec![0; search.keys.len()], needed: 0 };
        (0..search.shapes.len()).for_each(|shape| selection.take(shape));
        selection
    }

    fn current(&self, shape: usize) -> &'s Choice {
        &self.search.shapes[shape].choices[self.chosen[shape]]
    }

    fn take(&mut self, shape: usize) {
        for key in &self.current(shape).keys {
            self.needed += usize::from(self.users[*key] == 0);
            self.users[*key] += 1;
        }
    }

    fn give(&mut self, shape: usize) {
        for key in &self.current(shape).keys {
            self.users[*key] -= 1;
            self.needed -= usize::from(self.users[*key] == 0);
        }
    }

    /// Changes one shape after another while that helps, with at most `cap` keys, each at a price.
    fn descend(&mut self, cap: usize, price: u64) {
        // Each change makes the selection better, so this ends; the bound keeps it short.
        for _ in 0..MAX_ROUNDS {
            let shapes = 0..self.search.shapes.len();
            if shapes.filter(|shape| self.improve(*shape, cap, price)).count() == 0 {
                break;
            }
        }
    }

    /// Takes the best choice of one shape given all others. Returns whether it is another one.
    fn improve(&mut self, shape: usize, cap: usize, price: u64) -> bool {
        self.give(shape);
        let Shape { layers, choices } = &self.search.shapes[shape];
        let cost = |choice: &Choice| {
            let new = choice.keys.iter().filter(|key| self.users[**key] == 0).count();
            badness(self.needed + new, layers * choice.work, cap, price)
        };
        let best = self.search.shapes[shape].cheapest(cost);
        let improved = cost(&choices[best]) < cost(self.current(shape));
        if improved {
            self.chosen[shape] = best;
        }
        self.take(shape);
        improved
    }

    fn work(&self) -> u64 {
        let shapes = self.search.shapes.iter().enumerate();
        shapes.map(|(index, shape)| shape.layers * self.current(index).work).sum()
    }

    fn cost(&self, cap: usize, price: u64) -> Badness {
        badness(self.needed, self.work(), cap, price)
    }
}

fn badness(keys: usize, work: u64, cap: usize, price: u64) -> Badness {
    (keys.saturating_sub(cap), work + price * keys as u64)
}

/// The server's work for one prediction.
fn work(operations: Operations) -> u64 {
    let Operations { hoisted_rotations, rotations, sums, .. } = operations;
    (hoisted_rotations * HOISTED_ROTATION + rotations * ROTATION + sums * SUM) as u64
}

/// Relative costs at N = 8192 with three limbs: of the transforms, or as much work, that dominate each. A key is paid once a session.
const HOISTED_ROTATION: usize = 8;
const ROTATION: usize = 20;
const SUM: usize = 8;
const KEY: u64 = 16;

/// Partial sums of a frame that a layer should hold at most; each takes half a mebibyte.
const MAX_SUMS: usize = 128;

const MAX_ROUNDS: usize = 32;

/// Prices of a key that the search begins with, each twice the one before.
const PRICES: u32 = 10;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn conv(channels: [usize; 2], side: usize, kernel: usize, stride: usize) -> Convolution {
        Convolution {
            in_channels: channels[0],
            out_channels: channels[1],
            image: [side; 2],
            kernel: [kernel; 2],
            strides: [stride; 2],
            pads: [kernel / 2; 4],
            dilations: [1, 1],
            groups: 1,
        }
    }

    const SLOTS: usize = 8192;

    fn chosen(layers: &[Convolution], cap: usize) -> Layouts {
        let plain = |shape: &Convolution| Layer { shape: shape.clone(), squared: None };
        let layers: Vec<_> = layers.iter().map(plain).collect();
        Layouts::choose(&layers, SLOTS, Samples::ONE, cap, |_, _| Ok(true)).unwrap()
    }

    /// Keys and work of what is chosen.
    fn measure(layers: &[Convolution], cap: usize) -> (usize, u64) {
        let layouts = chosen(layers, cap);
        let packings = || layers.iter().map(|layer| layouts.of(layer).unwrap());
        let keys: std::collections::BTreeSet<_> = packings().flat_map(Packing::keys).collect();
        (keys.len(), packings().map(|packing| work(packing.operations())).sum())
    }

    /// Keys and work of the best selection, by trying all.
    fn exhaustively(layers: &[Convolution], cap: usize) -> (usize, u64) {
        let mut search = Search::new(cap);
        for layer in layers {
            search.add(&small(Packing::choices(layer, SLOTS, Samples::ONE).unwrap()));
        }
        let mut best = None;
        let mut chosen = vec![0; layers.len()];
        loop {
            let selection = Selection::new(&search, chosen.clone());
            let found = (selection.cost(cap, KEY), selection.needed, selection.work());
            best = Some(best.map_or(found, |best: (Badness, usize, u64)| best.min(found)));
            let Some(next) =
                (0..layers.len()).find(|shape| chosen[*shape] + 1 < search.shapes[*shape].choices.len())
            else {
                break;
            };
            chosen[..next].fill(0);
            chosen[next] += 1;
        }
        best.map(|(_, keys, work)| (keys, work)).unwrap()
    }

    #[test]
    fn a_lower_cap_gives_fewer_keys_and_more_work() {
        let layers = [
            conv([3, 16], 32, 3, 1),
            conv([16, 16], 32, 3, 1),
            conv([16, 32], 32, 3, 2),
            conv([32, 64], 16, 3, 2),
            conv([64, 64], 8, 3, 1),
            Convolution::fully_connected(1024, 10),
        ];
        let mut before = measure(&layers, usize::MAX);
        assert!(before.0 > 40, "{before:?}");
        for cap in [40, 34, 28] {
            let now = measure(&layers, cap);
            assert!(now.0 <= cap, "{now:?} at {cap}");
            assert!(now.0 < before.0 && now.1 > before.1, "{now:?} after {before:?}");
            before = now;
        }
        // Nothing gets below this: the result is the least there is, not a failure.
        let least = measure(&layers, 0);
        assert!(least.0 <= 28 && measure(&layers, 1) == least);
    }

    #[test]
    fn what_is_chosen_is_the_best_there_is() {
        let layers = [
            conv([16, 16], 32, 3, 1),
            conv([16, 32], 32, 3, 2),
            conv([64, 64], 8, 3, 1),
            conv([1, 5], 28, 5, 1),
        ];
        for cap in [usize::MAX, 40, 32, 24] {
            assert_eq!(measure(&layers, cap), exhaustively(&layers, cap), "cap {cap}");
        }
    }

    #[test]
    fn repeated_layers_weigh_more_and_share_their_layout() {
        let (layer, other) = (conv([64, 64], 8, 3, 1), conv([32, 64], 16, 3, 2));
        let once = measure(&[layer.clone(), other.clone()], usize::MAX);
        let ten: Vec<_> = std::iter::repeat_n(layer, 10).chain([other]).collect();
        let many = measure(&ten, usize::MAX);
        // More layers to pay for the keys: no fewer of them.
        assert!(many.0 >= once.0, "{many:?}, {once:?}");
    }

    #[test]
    fn layers_that_take_squares_have_a_layout_with_room_for_them_if_there_is_one() {
        let shape = conv([16, 16], 32, 3, 1);
        let layers = [
            Layer { shape: shape.clone(), squared: None },
            Layer { shape: shape.clone(), squared: Some(1_032_193) },
        ];
        let free = chosen(&[shape.clone(), shape.clone()], usize::MAX).of(&shape).unwrap().kernel();
        let other = |packing: &Packing, prime| {
            assert_eq!(prime, 1_032_193);
            Ok(packing.kernel() != free)
        };
        let layouts = Layouts::choose(&layers, SLOTS, Samples::ONE, usize::MAX, other).unwrap();
        assert!(layouts.of(&shape).unwrap().kernel() != free);
        let none = Layouts::choose(&layers, SLOTS, Samples::ONE, usize::MAX, |_, _| Ok(false)).unwrap();
        assert_eq!(none.of(&shape).unwrap().kernel(), free);
    }

    #[test]
    fn layouts_with_many_partial_sums_are_not_taken() {
        let layer = conv([256, 256], 16, 3, 1);
        assert!(
            Packing::choices(&layer, SLOTS, Samples::ONE)
                .unwrap()
                .iter()
                .any(|packing| packing.program().sums > MAX_SUMS)
        );
        let layouts = chosen(std::slice::from_ref(&layer), 0);
        assert!(layouts.of(&layer).unwrap().program().sums <= MAX_SUMS);
    }
}
