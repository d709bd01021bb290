//! The inputs and outputs of the original model by name, of which the network's one input and output are made.

use serde::{Deserialize, Serialize};

/// One input of the original model: its elements' part of the network's input, in the order of the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedInput {
    /// Its name.
    pub name: String,
    /// The type of its elements, as the Open Inference Protocol names it.
    pub datatype: String,
    /// The shape of one sample, without a batch axis.
    pub shape: Vec<usize>,
    /// How many values an index may have: it is a row of so many, 1 at its place and 0 elsewhere, or of two choices one element. None of a number.
    pub choices: Option<usize>,
    /// What a number is multiplied with in the network's input: a power of two.
    pub factor: f64,
}

/// One output of the original model, of several: its elements' part of the network's output, in the order of the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedOutput {
    /// Its name.
    pub name: String,
    /// The shape of one sample's, without a batch axis.
    pub shape: Vec<usize>,
    /// What its values are multiplied with in the network's output: a power of two.
    pub factor: f64,
}

impl NamedInput {
    /// Elements of the network's input, where that many can be counted.
    fn size(&self) -> Option<usize> {
        let width = self.choices.map_or(1, |count| if count == 2 { 1 } else { count });
        count(&self.shape)?.checked_mul(width)
    }
}

/// Whether these are the parts of a network's input of so many elements.
pub(crate) fn make_input(inputs: &[NamedInput], length: usize) -> bool {
    let whole = sum(inputs.iter().map(NamedInput::size)) == Some(length);
    whole
        && inputs.iter().all(|input| {
            is_power(input.factor) && (input.choices.is_none() || input.factor.to_bits() == 1.0_f64.to_bits())
        })
        && are_distinct(inputs.iter().map(|input| &input.name))
}

/// Whether these are the parts of a network's output of so many elements.
pub(crate) fn make_output(outputs: &[NamedOutput], length: usize) -> bool {
    let whole = sum(outputs.iter().map(|output| count(&output.shape))) == Some(length);
    whole
        && outputs.iter().all(|output| is_power(output.factor))
        && are_distinct(outputs.iter().map(|output| &output.name))
}

fn count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |product, &side| product.checked_mul(side))
}

fn sum(mut sizes: impl Iterator<Item = Option<usize>>) -> Option<usize> {
    sizes.try_fold(0_usize, |sum, size| sum.checked_add(size?))
}

/// Whether a factor is a power of two that keeps a float what it is.
fn is_power(factor: f64) -> bool {
    (-126.0..=126.0).contains(&factor.log2()) && factor.log2().fract() == 0.0
}

fn are_distinct<'a>(names: impl Iterator<Item = &'a String>) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    names.into_iter().all(|name| seen.insert(name))
}
