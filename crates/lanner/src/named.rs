//! The inputs and outputs of the original model by name, of which the network's one input and output are made.

use lanner_network::{Tensor, Tensors};
use lanner_quantize::ChoiceRows;
use lanner_text::TextInput;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::hex::hex;

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
    /// Of a table's row, one for each element of the shape: the network's input has what their [`Coding`] says one after another, and behind all codes
    /// one more for each column that may lack a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<Column>>,
    /// Of indices whose rows of a public table the client looks up by itself, that table: the network's input has the rows, times the factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<Embeddings>,
}

/// A table that the model's owner publishes, which stands in a file of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embeddings {
    /// Its rows, one for each choice.
    pub rows: usize,
    /// Elements of a row.
    pub width: usize,
    /// The SHA-256 of its elements, row after row, each as the 4 bytes of a float, the lowest first. In hexadecimal.
    pub sha256: String,
}

/// What the elements of a column are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coding {
    /// A code, which trees compare.
    #[default]
    Code,
    /// The number itself, or that of the category; one that may be missing is 0 then, and a one behind it says so.
    Number,
    /// A row of zeros with a one at the place of the category.
    Choice,
}

/// A column of a table: a real x is the code `round(x / unit) - offset`, within what there is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// What its elements are.
    #[serde(default, skip_serializing_if = "Coding::is_code")]
    pub coding: Coding,
    /// What neighbouring codes are apart; 1 of what is no code.
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
    /// Whether every other text counts as one category more, the last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub others: bool,
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
            return sum(columns.iter().map(|column| Some(column.width())));
        }
        if let Some(embeddings) = &self.embeddings {
            return count(&self.shape)?.checked_mul(embeddings.width);
        }
        let width = self.choices.map_or(1, |count| if count == 2 { 1 } else { count });
        count(&self.shape)?.checked_mul(width)
    }
}

/// Where the network's input has rows of choices.
pub(crate) fn choice_rows(inputs: &[NamedInput]) -> Vec<ChoiceRows> {
    let mut first = 0;
    let mut found = Vec::new();
    for input in inputs {
        let Some(size) = input.size() else { return Vec::new() };
        match input.choices {
            Some(choices) if choices > 2 && input.embeddings.is_none() && input.columns.is_none() => {
                found.push(ChoiceRows { first, rows: size / choices, choices });
            }
            _ => {}
        }
        first += size;
    }
    found
}

impl Embeddings {
    /// What the names of tables begin with among a model's tensors.
    const PREFIX: &str = "public.";

    /// The table of an input among a model's tensors, if it is there and as described.
    pub(crate) fn find<'t>(&self, input: &str, tensors: &'t Tensors) -> Option<&'t Tensor> {
        let table = tensors.get(&format!("{}{input}", Self::PREFIX))?;
        let mut hash = Sha256::new();
        for part in table.data().chunks(PIECE) {
            hash.update(part.iter().flat_map(|element| element.to_le_bytes()).collect::<Vec<u8>>());
        }
        let fits = table.shape() == [self.rows, self.width] && hex(&hash.finalize()) == self.sha256;
        fits.then_some(table)
    }

    /// Whether there is a row for each choice, and a hash.
    fn is_sound(&self, choices: Option<usize>) -> bool {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let hashed = self.sha256.len() == 64 && self.sha256.bytes().all(digit);
        choices == Some(self.rows) && self.rows > 0 && self.width > 0 && hashed
    }
}

impl Coding {
    /// Whether it is what columns have that do not say so.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    const fn is_code(&self) -> bool {
        matches!(self, Self::Code)
    }
}

impl Column {
    /// How many categories there are, other texts among them.
    fn choices(&self) -> usize {
        self.categories.as_ref().map_or(0, Vec::len) + usize::from(self.others)
    }

    /// How many elements of the network's input are its.
    fn width(&self) -> usize {
        match self.coding {
            Coding::Code | Coding::Number => 1 + usize::from(self.missing),
            Coding::Choice => self.choices(),
        }
    }

    /// Whether its coding fits what it holds.
    fn is_coded(&self) -> bool {
        match self.coding {
            Coding::Code => true,
            Coding::Number => {
                self.unit.to_bits() == 1.0_f64.to_bits() && !(self.missing && self.categories.is_some())
            }
            Coding::Choice => !self.missing && self.categories.is_some(),
        }
    }

    /// Whether its codes are whole numbers that floats tell apart, and stand for numbers, and its texts are bounded.
    fn is_sound(&self) -> bool {
        const FAR: i64 = 1 << 53;
        let least = if self.missing { 2 } else { 0 };
        let texts = self.categories.as_ref().is_none_or(|texts| {
            // The codes of categories are theirs, from the first one on.
            let count = i64::try_from(self.choices()).unwrap_or(i64::MAX);
            let high = (count - 1).max(1).saturating_add(least);
            (self.offset, self.high, self.unit.to_bits())
                == (-i64::from(self.missing), high, 1.0_f64.to_bits())
                && (1..=MOST_CATEGORIES).contains(&texts.len())
                && texts.iter().all(|text| is_text(text))
                && are_distinct(texts.iter())
        });
        texts
            && self.is_coded()
            && (!self.others || self.categories.is_some())
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

/// Whether these are names of columns, each of one.
pub(crate) fn name_columns(names: &[String]) -> bool {
    names.iter().all(|name| is_text(name)) && are_distinct(names.iter())
}

/// Elements that are hashed at once.
const PIECE: usize = 1 << 12;

/// Whether these are the parts of a network's input of so many elements.
pub(crate) fn make_input(inputs: &[NamedInput], length: usize) -> bool {
    let whole = sum(inputs.iter().map(NamedInput::size)) == Some(length);
    whole
        && inputs.iter().all(|input| {
            let is_one = input.factor.to_bits() == 1.0_f64.to_bits();
            let given = input.choices.is_none() || input.embeddings.is_some();
            let numbers = is_power(input.factor) && (given || is_one);
            let embeddings = input
                .embeddings
                .as_ref()
                .is_none_or(|embeddings| input.columns.is_none() && embeddings.is_sound(input.choices));
            let columns = input.columns.as_ref().is_none_or(|columns| {
                is_one
                    && input.choices.is_none()
                    && Some(columns.len()) == count(&input.shape)
                    && columns.iter().all(Column::is_sound)
                    && are_distinct(columns.iter().filter_map(|column| column.name.as_ref()))
            });
            numbers && columns && embeddings
        })
        && are_distinct(inputs.iter().map(|input| &input.name))
}

/// Whether texts make all of these inputs, each once and of their length.
pub(crate) fn takes_text(inputs: &[NamedInput], text: &TextInput) -> bool {
    let made: Vec<&str> = text.inputs().collect();
    let fits = |input: &NamedInput| {
        let whole = input.columns.is_none() && count(&input.shape) == Some(text.length);
        whole && made.iter().filter(|name| **name == input.name).count() == 1
    };
    let ids = inputs.iter().find(|input| input.name == text.ids);
    let pads = ids.is_some_and(|input| input.choices.is_none_or(|choices| (text.pad as usize) < choices));
    text.is_bounded() && made.len() == inputs.len() && inputs.iter().all(fits) && pads
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

#[cfg(test)]
mod tests {
    use super::*;

    fn published(rows: usize, width: usize, sha256: &str) -> NamedInput {
        NamedInput {
            name: "ids".to_owned(),
            datatype: "INT64".to_owned(),
            shape: vec![6],
            choices: Some(30),
            factor: 0.5,
            columns: None,
            embeddings: Some(Embeddings { rows, width, sha256: sha256.to_owned() }),
        }
    }

    #[test]
    fn rows_of_a_public_table_are_an_input_s_elements() {
        let hash = "0a".repeat(32);
        assert!(make_input(&[published(30, 4, &hash)], 24));
        for (input, length) in [
            (published(30, 4, &hash), 6 * 30),
            (published(29, 4, &hash), 24),
            (published(30, 0, &hash), 0),
            (published(30, usize::MAX, &hash), 24),
            (published(30, 4, &hash[1..]), 24),
            (published(30, 4, &hash.to_uppercase()), 24),
            (NamedInput { choices: None, ..published(30, 4, &hash) }, 24),
            (NamedInput { columns: Some(Vec::new()), ..published(30, 4, &hash) }, 24),
            (NamedInput { factor: 0.3, ..published(30, 4, &hash) }, 24),
        ] {
            assert!(!make_input(&[input], length));
        }
    }

    fn column(text: &str) -> Column {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn columns_are_codes_numbers_or_choices() {
        let table = |columns: Vec<Column>| NamedInput {
            shape: vec![columns.len()],
            choices: None,
            factor: 1.0,
            embeddings: None,
            columns: Some(columns),
            ..published(1, 1, "")
        };
        let number = r#"{"coding":"number","unit":1.0,"offset":0,"high":0,"missing":false,"name":"age"}"#;
        let three = r#"{"coding":"choice","unit":1.0,"offset":0,"high":2,"missing":false,"categories":["a","b","c"]}"#;
        let two = r#"{"coding":"choice","unit":1.0,"offset":0,"high":1,"missing":false,"categories":["a"],"others":true}"#;
        let code = r#"{"unit":0.5,"offset":-3,"high":9,"missing":true}"#;
        assert!(make_input(&[table([number, three, two].map(column).to_vec())], 6));
        assert!(make_input(&[table([code].map(column).to_vec())], 2));
        assert!(make_input(&[table(vec![column(&three.replace("choice", "number"))])], 1));
        let lacking = number.replace("false", "true").replace("\"high\":0", "\"high\":2");
        assert!(make_input(&[table(vec![column(&lacking)])], 2));
        for text in [number, three, two, code] {
            assert_eq!(
                serde_json::to_value(column(text)).unwrap(),
                serde_json::from_str::<serde_json::Value>(text).unwrap()
            );
        }
        for (text, width) in [
            (number.replace("1.0", "0.5"), 1),
            (number.replace("false", "true").replace("\"high\":0", "\"high\":2"), 1),
            (three.replace("\"high\":2", "\"high\":3"), 3),
            (three.replace("choice", "number"), 3),
            (two.replace("[\"a\"]", "[]"), 1),
            (code.replace('}', ",\"others\":true}"), 2),
        ] {
            assert!(!make_input(&[table(vec![column(&text)])], width), "{text}");
        }
        assert!(serde_json::from_str::<Column>(&code.replace('{', "{\"coding\":\"row\",")).is_err());
    }

    #[test]
    fn a_text_makes_all_inputs_of_its_length() {
        let hash = "0a".repeat(32);
        let ids = NamedInput { choices: Some(30), ..published(30, 4, &hash) };
        let mask = NamedInput { name: "mask".to_owned(), choices: Some(2), embeddings: None, ..ids.clone() };
        let inputs = [ids, mask];
        let text = TextInput {
            tokenizer: "{}".to_owned(),
            length: 6,
            pad: 29,
            left: false,
            ids: "ids".to_owned(),
            mask: Some("mask".to_owned()),
            types: None,
        };
        assert!(takes_text(&inputs, &text));
        assert!(!takes_text(&inputs[..1], &text));
        for other in [
            TextInput { length: 7, ..text.clone() },
            TextInput { pad: 30, ..text.clone() },
            TextInput { ids: "mask".to_owned(), ..text.clone() },
            TextInput { mask: None, ..text.clone() },
            TextInput { types: Some("types".to_owned()), ..text.clone() },
            TextInput { tokenizer: String::new(), ..text.clone() },
            TextInput { tokenizer: " ".repeat(lanner_text::MOST_FILE + 1), ..text.clone() },
        ] {
            assert!(!takes_text(&inputs, &other));
        }
        assert_eq!(serde_json::from_str::<TextInput>(&serde_json::to_string(&text).unwrap()).unwrap(), text);
    }

    #[test]
    fn a_table_is_found_by_its_shape_and_its_numbers() {
        let mut tensors = Tensors::default();
        let table = Tensor::new(vec![2, 3], vec![0.0, 1.0, -2.5, 3.0, 1e-40, 7.0]).unwrap();
        tensors.insert("public.ids", table.clone()).unwrap();
        // That of 24 bytes, as Python's hashlib has it.
        let sha256 = "f4d2a1f7e3d369f30c8d2ad0a473df32de864982284a872db16f7c0f667080e7".to_owned();
        let of = Embeddings { rows: 2, width: 3, sha256 };
        assert_eq!(of.find("ids", &tensors), Some(&table));
        assert_eq!(of.find("others", &tensors), None);
        assert_eq!(Embeddings { rows: 3, width: 2, ..of.clone() }.find("ids", &tensors), None);
        tensors.insert("public.ids", Tensor::new(vec![2, 3], vec![0.0; 6]).unwrap()).unwrap();
        assert_eq!(of.find("ids", &tensors), None);
    }
}
