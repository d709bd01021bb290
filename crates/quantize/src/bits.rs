//! How many bits each layer works with.

use std::collections::BTreeMap;

use lanner_network::Precision;

use super::QuantizationOptions;
use super::item::{Action, Item};

/// The most bits that a layer's largest weight is asked to keep: one less than what rings have room for, as a scale is rounded up.
pub(super) const MOST_FEWEST_WEIGHT_BITS: u32 = 15;

/// The most bits of a weight where clients commit values: masks of a check hide products with those (`lanner_hardened::MOST_WEIGHT`).
const MOST_COMMITTED_WEIGHT_BITS: u32 = 12;

/// How many bits less than activations the largest weight of a layer may have where weights are spared.
const SPARED_WEIGHT_BITS: u32 = 2;

/// No item has fewer bits than these, and than all would have.
const FEWEST_BITS: u32 = 4;

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

    /// Whether all items have the same.
    pub(super) fn are_uniform(&self) -> bool {
        [&self.activations, &self.weights].iter().all(|bits| bits.windows(2).all(|pair| pair[0] == pair[1]))
    }

    /// The same for all, less so many for each item.
    pub(super) fn with_less(options: &QuantizationOptions, less: &[u32]) -> Self {
        let from = |bits: u32| less.iter().map(|less| bits.saturating_sub(*less).max(FEWEST_BITS)).collect();
        Self {
            activations: from(options.activation_bits),
            weights: from(options.min_weight_bits),
            input: None,
        }
    }
}

/// The options with so many bits for activations, also where sums are squared whole, and as many or up to four more for weights.
pub(super) fn options_for(bits: u32, options: &QuantizationOptions) -> QuantizationOptions {
    let most = if options.commits { MOST_COMMITTED_WEIGHT_BITS } else { Precision::MOST_BITS };
    let fewer = if options.spares_weights { SPARED_WEIGHT_BITS } else { 0 };
    QuantizationOptions {
        activation_bits: bits,
        min_weight_bits: (bits - fewer).min(MOST_FEWEST_WEIGHT_BITS).min(most),
        max_weight_bits: (bits + 4).min(most),
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

/// One bit less for the first `fewer` of the layers, those that take the most elements.
pub(super) fn one_less(items: &[Item<'_>], fewer: usize) -> Vec<u32> {
    let mut has_fewer = vec![false; items.len()];
    largest_first(items).into_iter().take(fewer).for_each(|layer| has_fewer[layer] = true);
    items.iter().map(|item| u32::from(has_fewer[item.class])).collect()
}

/// The items that multiply, those of the same operator and shapes together, as the blocks of a transformer have them; groups with the most elements first.
pub(super) fn alike(items: &[Item<'_>]) -> Vec<Vec<usize>> {
    let shape_of = |value: &usize| value.checked_sub(1).map(|item| items[item].shape.as_slice());
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, item) in items.iter().enumerate().filter(|(_, item)| item.action.takes_few_bits()) {
        let inputs: Vec<_> = item.inputs.iter().map(shape_of).collect();
        groups.entry((item.operator, inputs, &item.shape)).or_default().push(index);
    }
    let taken = |item: &usize| {
        let inputs = items[*item].inputs.iter().filter_map(|value| value.checked_sub(1));
        inputs.map(|item| items[item].shape.iter().product::<usize>()).sum::<usize>()
    };
    let elements = |group: &Vec<usize>| group.iter().map(taken).sum::<usize>();
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(elements(group)));
    groups
}
