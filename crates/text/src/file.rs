//! A tokenizer file, checked, and rid of what is not needed to read a text.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{MOST_FILE, MOST_LENGTH, MOST_TOKENS, TextError};

/// The most bytes of a file as its owner has it, spaces included.
const MOST_WRITTEN: usize = 32 << 20;
/// The most bytes of one token.
const MOST_TOKEN: usize = 512;
/// The most tokens beside the vocabulary.
const MOST_ADDED: usize = 4096;
/// The most characters of a word that is looked up in pieces.
const MOST_WORD: u64 = 256;
/// The most bytes of what says which tokens are put around a text.
const MOST_AROUND: usize = 16 << 10;
/// The length of a text where nothing says another.
const USUAL_LENGTH: usize = 128;
/// Tokens that fill up, by the names that tokenizers have for them.
const PADS: [&str; 4] = ["[PAD]", "<pad>", "<|pad|>", "<PAD>"];

/// How words become tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// The longest pieces of words that are in the vocabulary.
    WordPiece,
    /// Pieces that are joined in the order that was learnt.
    #[serde(rename = "BPE")]
    Bpe,
    /// The likeliest pieces.
    Unigram,
    /// Whole words.
    WordLevel,
}

/// A tokenizer file as it goes into a model's public half.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenizerFile {
    /// The file: its members in the order of their names, without spaces, and without what does not concern a text's tokens.
    pub text: String,
    /// How words become tokens.
    pub kind: Kind,
    /// How many tokens a text is made, if the file says so, else 128.
    pub length: usize,
    /// The token that fills up, if there is one.
    pub pad: Option<u32>,
    /// Whether it does so in front of the text.
    pub left: bool,
}

impl TokenizerFile {
    /// Reads a file as its owner has it. `pad` names the token that fills up, where the file does not, or another.
    ///
    /// # Errors
    /// [`TextError::File`] if it is no tokenizer or beyond a bound; [`TextError::Choice`] if it has no token of that name.
    pub fn read(written: &str, pad: Option<&str>) -> Result<Self, TextError> {
        if written.len() > MOST_WRITTEN {
            return Err(TextError::File(format!("has more than {MOST_WRITTEN} bytes")));
        }
        let document: Value = serde_json::from_str(written)
            .map_err(|error| TextError::File(format!("is no JSON document: {error}")))?;
        let parts = Parts::of(&document).map_err(TextError::File)?;
        let padding = document.get("padding").filter(|padding| !padding.is_null());
        let of_file = padding.and_then(|padding| padding.get("pad_id")?.as_u64());
        let pad = match pad {
            Some(name) => Some(parts.id_of(name).ok_or_else(|| {
                TextError::Choice(format!("the tokenizer has no token {name:?} to fill up with"))
            })?),
            None => of_file
                .or_else(|| PADS.iter().find_map(|name| parts.id_of(name)))
                .filter(|&id| id < MOST_TOKENS as u64),
        };
        let said = |member: &str, name: &str| document.get(member)?.get(name).cloned();
        let length = said("truncation", "max_length").and_then(|length| length.as_u64());
        let left = said("padding", "direction").is_some_and(|direction| direction == "Left");
        let text = parts.tidied()?;
        if text.len() > MOST_FILE {
            return Err(TextError::File(format!(
                "has {} bytes without its spaces, and at most {MOST_FILE} go into a model's public half",
                text.len()
            )));
        }
        Ok(Self {
            text,
            kind: parts.kind,
            length: length.map_or(USUAL_LENGTH, |length| (length as usize).clamp(1, MOST_LENGTH)),
            pad: pad.map(|id| id as u32),
            left,
        })
    }
}

/// The members of a file that say what the tokens of a text are.
pub(crate) struct Parts<'v> {
    pub(crate) kind: Kind,
    pub(crate) model: &'v Map<String, Value>,
    pub(crate) added: Vec<Added>,
    pub(crate) normalizer: &'v Value,
    pub(crate) cutter: &'v Value,
    pub(crate) around: &'v Value,
}

/// A token beside the vocabulary, or one of it that is found in a text before words are cut.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of the file")]
pub(crate) struct Added {
    pub(crate) id: u32,
    pub(crate) content: String,
    #[serde(default)]
    pub(crate) single_word: bool,
    #[serde(default)]
    pub(crate) lstrip: bool,
    #[serde(default)]
    pub(crate) rstrip: bool,
    #[serde(default)]
    pub(crate) normalized: bool,
    #[serde(default)]
    pub(crate) special: bool,
}

impl<'v> Parts<'v> {
    /// Takes a document apart, and checks the sizes of its parts.
    pub(crate) fn of(document: &'v Value) -> Result<Self, String> {
        const NOTHING: &Value = &Value::Null;
        let member = |name: &str| document.get(name).unwrap_or(NOTHING);
        let model = member("model").as_object().ok_or("has no `model`")?;
        let kind = kind_of(model)?;
        let added: Vec<Added> = match member("added_tokens") {
            Value::Null => Vec::new(),
            list => Vec::deserialize(list).map_err(|error| format!("has damaged `added_tokens`: {error}"))?,
        };
        if added.len() > MOST_ADDED {
            return Err(format!("has more than {MOST_ADDED} added tokens"));
        }
        let parts = Self {
            kind,
            model,
            added,
            normalizer: member("normalizer"),
            cutter: member("pre_tokenizer"),
            around: member("post_processor"),
        };
        parts.check()?;
        Ok(parts)
    }

    fn check(&self) -> Result<(), String> {
        let mut count = 0;
        self.each_token(&mut |token, id| {
            count += 1;
            check_token(token, id)
        })?;
        if !(1..=MOST_TOKENS).contains(&count) {
            return Err(format!("has {count} tokens, and 1 to {MOST_TOKENS} are read"));
        }
        for Added { content, id, .. } in &self.added {
            check_token(content, u64::from(*id))?;
            if content.is_empty() {
                return Err(format!("has an added token {id} that is empty"));
            }
        }
        let contents: BTreeSet<&str> = self.added.iter().map(|added| added.content.as_str()).collect();
        if contents.len() != self.added.len() {
            return Err("has an added token twice".to_owned());
        }
        let longest = self.model.get("max_input_chars_per_word").and_then(Value::as_u64);
        if longest.is_some_and(|longest| longest > MOST_WORD) {
            return Err(format!("looks up words of more than {MOST_WORD} characters in pieces"));
        }
        for random in ["dropout", "alpha"] {
            if self.model.get(random).is_some_and(|chance| !chance.is_null() && chance.as_f64() != Some(0.0))
            {
                return Err(format!("gives other tokens each time (`{random}`)"));
            }
        }
        if self.around.to_string().len() > MOST_AROUND {
            return Err(format!("has a post_processor of more than {MOST_AROUND} bytes"));
        }
        Ok(())
    }

    /// Shows each token of the vocabulary and its identity.
    fn each_token(&self, show: &mut dyn FnMut(&str, u64) -> Result<(), String>) -> Result<(), String> {
        let damaged = || "has a damaged `vocab`".to_owned();
        match self.model.get("vocab").ok_or_else(damaged)? {
            Value::Object(tokens) if self.kind != Kind::Unigram => {
                for (token, id) in tokens {
                    show(token, id.as_u64().ok_or_else(damaged)?)?;
                }
            }
            Value::Array(pieces) if self.kind == Kind::Unigram => {
                for (id, piece) in pieces.iter().enumerate() {
                    let [Value::String(token), Value::Number(score)] =
                        piece.as_array().map_or(&[][..], Vec::as_slice)
                    else {
                        return Err(damaged());
                    };
                    if !score.as_f64().is_some_and(f64::is_finite) {
                        return Err(damaged());
                    }
                    show(token, id as u64)?;
                }
            }
            _ => return Err(damaged()),
        }
        Ok(())
    }

    /// The identity of a token.
    fn id_of(&self, name: &str) -> Option<u64> {
        if let Some(added) = self.added.iter().find(|added| added.content == name) {
            return Some(u64::from(added.id));
        }
        let mut found = None;
        let shown = self.each_token(&mut |token, id| {
            if token == name {
                found = Some(id);
            }
            Ok(())
        });
        shown.ok().and(found)
    }

    /// The token that stands for what is not in the vocabulary.
    fn unknown(&self) -> Option<String> {
        if let Some(name) = self.model.get("unk_token").and_then(Value::as_str) {
            return Some(name.to_owned());
        }
        let place = self.model.get("unk_id").and_then(Value::as_u64)?;
        let piece = self.model.get("vocab")?.as_array()?.get(usize::try_from(place).ok()?)?;
        Some(piece.get(0)?.as_str()?.to_owned())
    }

    /// The special tokens that no text may become: all but the one for what is unknown, which any text may become.
    pub(crate) fn reserved(&self) -> BTreeSet<String> {
        let unknown = self.unknown();
        let special = self.added.iter().filter(|added| added.special).map(|added| added.content.clone());
        special.filter(|content| Some(content) != unknown.as_ref()).collect()
    }

    fn tidied(&self) -> Result<String, TextError> {
        let mut model = self.model.clone();
        for member in ["dropout", "alpha", "nbest_size", "cache_capacity"] {
            model.remove(member);
        }
        model.insert("type".to_owned(), json!(self.kind));
        let document = json!({
            "version": "1.0",
            "added_tokens": self.added,
            "normalizer": self.normalizer,
            "pre_tokenizer": self.cutter,
            "post_processor": self.around,
            "model": model,
        });
        serde_json::to_string(&document).map_err(|error| TextError::File(error.to_string()))
    }
}

/// The kind of a model, which older files do not name.
fn kind_of(model: &Map<String, Value>) -> Result<Kind, String> {
    if let Some(named) = model.get("type") {
        return Kind::deserialize(named)
            .map_err(|_| format!("has a model of type {named}, which is not read"));
    }
    if model.contains_key("merges") {
        return Ok(Kind::Bpe);
    }
    if model.get("vocab").is_some_and(Value::is_array) {
        return Ok(Kind::Unigram);
    }
    if model.contains_key("continuing_subword_prefix") {
        return Ok(Kind::WordPiece);
    }
    Ok(Kind::WordLevel)
}

fn check_token(token: &str, id: u64) -> Result<(), String> {
    if token.len() > MOST_TOKEN {
        return Err(format!("has a token {id} of more than {MOST_TOKEN} bytes"));
    }
    if id >= MOST_TOKENS as u64 {
        return Err(format!("has a token of number {id}, and those below {MOST_TOKENS} are read"));
    }
    Ok(())
}
