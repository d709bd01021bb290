//! What a model's public half says of texts.

use serde::{Deserialize, Serialize};

use crate::{MOST_FILE, MOST_LENGTH, MOST_TOKENS};

/// How a text becomes a model's inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextInput {
    /// The tokenizer file, as [`TokenizerFile`](crate::TokenizerFile) wrote it.
    pub tokenizer: String,
    /// How many tokens every text is made: what is missing is filled up.
    pub length: usize,
    /// The token that fills up.
    pub pad: u32,
    /// Whether it does so in front of the text.
    pub left: bool,
    /// The input that takes the tokens.
    pub ids: String,
    /// The input that is 1 where there is a token of the text, 0 where it is filled up, if the model has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<String>,
    /// The input that says which sentence of a pair a token is of, if the model has one: there is one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<String>,
}

impl TextInput {
    /// Whether its sizes are within bounds; the file itself is read by [`Encoder::new`](crate::Encoder::new).
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        (1..=MOST_FILE).contains(&self.tokenizer.len())
            && (1..=MOST_LENGTH).contains(&self.length)
            && (self.pad as usize) < MOST_TOKENS
    }

    /// The inputs that it makes.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        [Some(&self.ids), self.mask.as_ref(), self.types.as_ref()].into_iter().flatten().map(String::as_str)
    }
}
