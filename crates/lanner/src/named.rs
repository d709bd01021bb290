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
    /// Of a table's row that trees compare, one for each element of the shape: the network's input has their codes, and behind them one more for each
    /// column that may lack a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<Column>>,
}

/// A column of a table: a real x is the code `round(x / unit) - offset`, within what there is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// What neighbouring codes are apart.
    pub unit: f64,
    /// The code 0 stands for this many units.
    pub offset: i64,
    /// The largest code, below 2^24.
    pub high: i64,
    /// Whether a number may be missing; the first and the last code then stand for that, and for no number.
    pub missing: bool,
    /// Its name, of at most 256 bytes, unlike those of the input's other columns; absent where its owner gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What its numbers from 0 on stand for: texts of at most 256 bytes, 4096 at most; absent where they are plain numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub categories: Option<Vec<String>>,
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
        if let Some(columns) = &self.columns {
            let lacking = columns.iter().filter(|column| column.missing).count();
            return columns.len().checked_add(lacking);
        }
        let width = self.choices.map_or(1, |count| if count == 2 { 1 } else { count });
        count(&self.shape)?.checked_mul(width)
    }
}

impl Column {
    /// Whether its codes are whole numbers that floats tell apart, and stand for numbers, and its texts are bounded.
    fn is_sound(&self) -> bool {
        const FAR: i64 = 1 << 53;
        let least = if self.missing { 2 } else { 0 };
        let texts = self.categories.as_ref().is_none_or(|texts| {
            (1..=MOST_CATEGORIES).contains(&texts.len())
                && texts.iter().all(|text| is_text(text))
                && are_distinct(texts.iter())
        });
        texts
            && self.name.as_deref().is_none_or(is_text)
            && self.unit.is_normal()
            && self.unit > 0.0
            && (-FAR..=FAR).contains(&self.offset)
            && (least..1 << 24).contains(&self.high)
    }
}

/// The most texts that the numbers of a column stand for.
const MOST_CATEGORIES: usize = 4096;

/// The most bytes of a column's name, and of a text that a number stands for.
const MOST_BYTES: usize = 256;

fn is_text(text: &str) -> bool {
    (1..=MOST_BYTES).contains(&text.len())
}

/// Whether these are the parts of a network's input of so many elements.
pub(crate) fn make_input(inputs: &[NamedInput], length: usize) -> bool {
    let whole = sum(inputs.iter().map(NamedInput::size)) == Some(length);
    whole
        && inputs.iter().all(|input| {
            let is_one = input.factor.to_bits() == 1.0_f64.to_bits();
            let numbers = is_power(input.factor) && (input.choices.is_none() || is_one);
            let columns = input.columns.as_ref().is_none_or(|columns| {
                is_one
                    && input.choices.is_none()
                    && Some(columns.len()) == count(&input.shape)
                    && columns.iter().all(Column::is_sound)
                    && are_distinct(columns.iter().filter_map(|column| column.name.as_ref()))
            });
            numbers && columns
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
