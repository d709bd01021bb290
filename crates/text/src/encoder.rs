//! The integers that a text becomes.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};
use tokenizers::{
    AddedToken, DecoderWrapper, ModelWrapper, NormalizedString, Normalizer, PostProcessor,
    PostProcessorWrapper, TokenizerImpl, TruncationDirection,
};
use zeroize::Zeroizing;

use crate::file::{Kind, Parts};
use crate::guard::guarded;
use crate::steps::{Cutters, Normalizers};
use crate::{MOST_TEXT, MOST_TOKENS, TextError, TextInput};

/// The most tokens that are put around a text.
const MOST_AROUND: usize = 64;

/// What special tokens are called while texts are read: two characters that stand for nothing, which no text keeps next to one another.
const RESERVED: &str = "\u{10ffff}\u{fdd0}";
/// What becomes of them in a text.
const REPLACED: &str = "\u{fffd}\u{fffd}";

type Inner = TokenizerImpl<ModelWrapper, Normalizers, Cutters, PostProcessorWrapper, DecoderWrapper>;

/// A tokenizer that makes every text as long as the model reads.
pub struct Encoder {
    inner: Inner,
    kind: Kind,
    tokens: usize,
    lowercases: bool,
    length: usize,
    /// The tokens of a text, without those around it.
    room: usize,
    pad: u32,
    left: bool,
    largest: u32,
    /// The special tokens' own names, in the order in which they are called otherwise.
    reserved: Vec<String>,
}

/// A text as a model's inputs.
#[derive(Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The tokens, and what fills up.
    pub ids: Zeroizing<Vec<u32>>,
    /// 1 where there is a token, 0 where it is filled up.
    pub mask: Zeroizing<Vec<u32>>,
    /// Which sentence of a pair each is of.
    pub types: Zeroizing<Vec<u32>>,
    /// Whether the text was cut.
    pub cut: bool,
}

impl fmt::Debug for Encoded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Encoded").finish_non_exhaustive()
    }
}

impl Encoder {
    /// Makes one of what a public half says.
    ///
    /// # Errors
    /// [`TextError::File`] if the file is damaged or beyond a bound; [`TextError::Choice`] if there is no room for a text.
    pub fn new(input: &TextInput) -> Result<Self, TextError> {
        if !input.is_bounded() {
            return Err(TextError::File("or the length of a text is beyond what is read".to_owned()));
        }
        let document: Value = serde_json::from_str(&input.tokenizer)
            .map_err(|error| TextError::File(format!("is no JSON document: {error}")))?;
        let made = guarded(|| Self::build(&document, input));
        made.unwrap_or_else(|| Err(TextError::File("is damaged".to_owned())))
    }

    fn build(document: &Value, input: &TextInput) -> Result<Self, TextError> {
        let parts = Parts::of(document).map_err(TextError::File)?;
        let (inner, lowercases) = assemble(&parts).map_err(TextError::File)?;
        let mut made = Self {
            inner,
            kind: parts.kind,
            tokens: 0,
            lowercases,
            length: input.length,
            room: 0,
            pad: input.pad,
            left: input.left,
            largest: 0,
            reserved: parts.reserved().into_iter().collect(),
        };
        let around = made.inner.get_post_processor().map_or(0, |processor| processor.added_tokens(false));
        if around > MOST_AROUND {
            return Err(TextError::File(format!("puts more than {MOST_AROUND} tokens around a text")));
        }
        if around >= input.length {
            let what =
                format!("a length of {} has no room for a text: the tokenizer puts {around}", input.length);
            return Err(TextError::Choice(format!("{what} tokens around it")));
        }
        made.room = input.length - around;
        let around = made.inner.encode_fast("", true).map_err(|error| TextError::File(error.to_string()))?;
        let vocabulary = made.inner.get_vocab(true);
        made.tokens = vocabulary.len();
        let ids = vocabulary.values().chain(around.get_ids()).chain([&made.pad]);
        made.largest = ids.copied().max().unwrap_or(0);
        if made.largest as usize >= MOST_TOKENS {
            return Err(TextError::File(format!("has a token of number {}", made.largest)));
        }
        Ok(made)
    }

    /// How words become tokens.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How many tokens there are.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// The largest number of a token that a text may become, or that is put around it, or fills up.
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.largest
    }

    /// Whether capitals become small letters.
    #[must_use]
    pub fn lowercases(&self) -> bool {
        self.lowercases
    }

    /// The token of a number as the file has it; none of a number that no token has.
    #[must_use]
    pub fn token(&self, id: u32) -> Option<String> {
        let name = self.inner.id_to_token(id)?;
        match name.strip_prefix(RESERVED) {
            Some(place) => self.reserved.get(place.parse::<usize>().ok()?).cloned(),
            None => Some(name),
        }
    }

    /// Makes a text as long as the model reads; what is beyond that is cut off with `truncate`.
    ///
    /// # Errors
    /// [`TextError::TooLong`] and [`TextError::TooLarge`] of a text that is too long; [`TextError::Text`] if the tokenizer fails.
    pub fn encode(&self, text: &str, truncate: bool) -> Result<Encoded, TextError> {
        let (text, shortened) = within(text, truncate)?;
        let text = Zeroizing::new(text.replace(RESERVED, REPLACED));
        let made = guarded(|| {
            // The library goes on where a normalizer fails.
            if let Some(normalizers) = self.inner.get_normalizer() {
                normalizers.normalize(&mut NormalizedString::from(text.as_str()))?;
            }
            // Whether a text is too long must not hang on what the library keeps of one that it cut.
            let mut plain = self.inner.encode_fast(text.as_str(), false)?;
            let cut = plain.get_ids().len() > self.room;
            plain.truncate(self.room, 0, TruncationDirection::Right);
            Ok((self.inner.post_process(plain, None, true)?, cut))
        });
        let made = made.ok_or_else(|| TextError::Text("it is damaged".to_owned()))?;
        let (made, cut) = made.map_err(|error: tokenizers::Error| TextError::Text(error.to_string()))?;
        let cut = shortened || cut;
        if cut && !truncate {
            return Err(TextError::TooLong { length: self.length });
        }
        // A post_processor of the file's owner may say anything.
        let count = made.get_ids().len();
        if count > self.length || made.get_type_ids().len() != count {
            return Err(TextError::Text("it gives more tokens than it says".to_owned()));
        }
        let filled = |values: &[u32], fill: u32| {
            let fill = std::iter::repeat_n(fill, self.length - count);
            let mut all = Zeroizing::new(Vec::with_capacity(self.length));
            if self.left {
                all.extend(fill.chain(values.iter().copied()));
            } else {
                all.extend(values.iter().copied().chain(fill));
            }
            all
        };
        Ok(Encoded {
            ids: filled(made.get_ids(), self.pad),
            mask: filled(&vec![1; count], 0),
            types: filled(made.get_type_ids(), 0),
            cut,
        })
    }
}

/// A text of no more bytes than are read, and whether it was cut.
fn within(text: &str, truncate: bool) -> Result<(&str, bool), TextError> {
    if text.len() <= MOST_TEXT {
        return Ok((text, false));
    }
    if !truncate {
        return Err(TextError::TooLarge);
    }
    let end = (0..=MOST_TEXT).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    Ok((&text[..end], true))
}

/// The library's tokenizer of a file, with special tokens that no text becomes, and whether it has no capitals.
fn assemble(parts: &Parts<'_>) -> Result<(Inner, bool), String> {
    let names: BTreeMap<String, String> = parts
        .reserved()
        .into_iter()
        .enumerate()
        .map(|(place, name)| (name, format!("{RESERVED}{place}")))
        .collect();
    let normalizers = Normalizers::read(parts.normalizer)?;
    let lowercases = normalizers.lowercases();
    let model = renamed(parts, &names);
    let mut model = ModelWrapper::deserialize(Value::Object(model))
        .map_err(|error| format!("has a damaged model: {error}"))?;
    // What a text is made of is nowhere kept.
    model.resize_cache(0);
    let mut inner = Inner::new(model);
    inner.with_normalizer(Some(normalizers)).map_err(|error| error.to_string())?;
    inner.with_pre_tokenizer(Some(Cutters::read(parts.cutter)?));
    if !parts.around.is_null() {
        let around = PostProcessorWrapper::deserialize(parts.around)
            .map_err(|error| format!("has a damaged post_processor: {error}"))?;
        inner.with_post_processor(Some(around));
    }
    let mut added = parts.added.clone();
    added.sort_by_key(|token| token.id);
    for token in &mut added {
        if let Some(name) = names.get(&token.content) {
            token.content.clone_from(name);
        }
    }
    let tokens = added.iter().map(|token| AddedToken {
        content: token.content.clone(),
        single_word: token.single_word,
        lstrip: token.lstrip,
        rstrip: token.rstrip,
        normalized: token.normalized && !names.values().any(|name| *name == token.content),
        special: token.special,
    });
    inner.add_tokens(tokens.collect::<Vec<_>>()).map_err(|error| error.to_string())?;
    inner.set_encode_special_tokens(true);
    for token in &added {
        if inner.token_to_id(&token.content) != Some(token.id) {
            return Err(format!("has an added token of number {} that follows nothing", token.id));
        }
    }
    Ok((inner, lowercases))
}

/// A model whose special tokens have names that are in no text.
fn renamed(parts: &Parts<'_>, names: &BTreeMap<String, String>) -> Map<String, Value> {
    let mut model = parts.model.clone();
    match model.get_mut("vocab") {
        Some(Value::Object(tokens)) => {
            for (from, to) in names {
                if let Some(id) = tokens.remove(from) {
                    tokens.insert(to.clone(), id);
                }
            }
        }
        Some(Value::Array(pieces)) => {
            for piece in pieces {
                let Some(token) = piece.get_mut(0) else { continue };
                if let Some(to) = token.as_str().and_then(|name| names.get(name)) {
                    *token = Value::from(to.as_str());
                }
            }
        }
        _ => {}
    }
    model
}
