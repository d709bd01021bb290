//! Text as a model's input: a tokenizer file of the Hugging Face kind, read within bounds, and the integers that a text becomes.
//!
//! The file comes from the model's owner and runs at the client, so nothing of it is trusted: its size, its vocabulary, its regular
//! expressions and what its steps may make of a text are bounded. A text comes from the client and says nothing but itself: what looks like
//! a special token in it is text.

mod encoder;
mod file;
mod guard;
mod input;
mod regexes;
mod steps;
#[cfg(test)]
mod tests;

pub use encoder::{Encoded, Encoder};
pub use file::{Kind, TokenizerFile};
pub use input::TextInput;

/// The most bytes of a tokenizer file without spaces between its members, as it is in a model's public half.
pub const MOST_FILE: usize = 3 << 20;
/// The most bytes of one text.
pub const MOST_TEXT: usize = 32 << 10;
/// The most tokens that a text is made.
pub const MOST_LENGTH: usize = 4096;
/// The most tokens of a vocabulary; identities are below it.
pub const MOST_TOKENS: usize = 1 << 18;

/// What is wrong with a tokenizer file or a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// The tokenizer file.
    #[error("the tokenizer {0}")]
    File(String),
    /// What its owner chose for it.
    #[error("{0}")]
    Choice(String),
    /// The text has more tokens than the model reads.
    #[error("the text has more than the {length} tokens that the model reads")]
    TooLong {
        /// How many it reads, special ones included.
        length: usize,
    },
    /// The text has more bytes than any model reads.
    #[error("the text has more than {MOST_TEXT} bytes")]
    TooLarge,
    /// The tokenizer makes no tokens of this text.
    #[error("the tokenizer cannot read the text: {0}")]
    Text(String),
}
