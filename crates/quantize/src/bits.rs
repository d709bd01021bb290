//! How many bits each layer works with.

use lanner_network::Precision;

use super::QuantizationOptions;
use super::item::{Action, Item};

/// The most bits that a layer's largest weight is asked to keep: one less than what rings have room for, as a scale is rounded up.
pub(super) const MOST_FEWEST_WEIGHT_BITS: u32 = 15;

/// For each item that multiplies, the bits of what it takes, and the fewest of its weights; other items' do not count.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LayerBits {
    pub(super) activations: Vec<u32>,
    pub(super) weights: Vec<u32>,
    /// Steps between the input's ends, where they are no matter of activations' bits.
    pub(super) input: Option<f64>,
}

impl LayerBits {
    /// The same for all.
    pub(super) fn uniform(items: &[Item<'_>], options: &QuantizationOptions) -> Self {
        Self {
            activations: vec![options.activation_bits; items.len()],
            weights: vec![options.min_weight_bits; items.len()],
            input: None,
        }
    }

    /// The same for all, but one less for the first `fewer` of the layers, those that take the most elements.
    pub(super) fn with_fewer(items: &[Item<'_>], options: &QuantizationOptions, fewer: usize) -> Self {
        let mut layers = Self::uniform(items, options);
        let mut has_fewer = vec![false; items.len()];
        largest_first(items).into_iter().take(fewer).for_each(|layer| has_fewer[layer] = true);
        for (index, _) in items.iter().enumerate().filter(|(_, item)| has_fewer[item.class]) {
            layers.activations[index] -= 1;
            layers.weights[index] -= 1;
        }
        layers
    }
}

/// The options with so many bits for activations, also where sums are squared whole, and as many or up to four more for weights.
pub(super) fn options_for(bits: u32, options: &QuantizationOptions) -> QuantizationOptions {
    QuantizationOptions {
        activation_bits: bits,
        min_weight_bits: bits.min(MOST_FEWEST_WEIGHT_BITS),
        max_weight_bits: (bits + 4).min(Precision::MOST_BITS),
        min_square_bits: bits,
        ..options.clone()
    }
}

/// The layers, that with the most input elements first: their rescales cost the most. Those that are quantised as one are one, by the first.
pub(super) fn largest_first(items: &[Item<'_>]) -> Vec<usize> {
    let is_layer =
        |index: &usize| items[*index].class == *index && matches!(items[*index].action, Action::Layer { .. });
    let elements = |index: &usize| {
        // The network's input is not rescaled, whatever its size.
        let made_by = items[*index].inputs[0].checked_sub(1);
        made_by.map_or(0, |item| items[item].shape.iter().product::<usize>())
    };
    let mut layers: Vec<usize> = (0..items.len()).filter(is_layer).collect();
    layers.sort_by_key(|index| std::cmp::Reverse(elements(index)));
    layers
}
