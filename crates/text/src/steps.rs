//! The steps in front of a tokenizer's model: what they make of a text is bounded.

use serde::Deserialize;
use serde_json::Value;
use tokenizers::{
    NormalizedString, Normalizer, NormalizerWrapper, PreTokenizedString, PreTokenizer, PreTokenizerWrapper,
    Result as Outcome, SplitDelimiterBehavior,
};

use crate::MOST_TEXT;
use crate::regexes::Expression;

/// The most steps of one kind, those in sequences counted.
const MOST_STEPS: usize = 32;
/// The most bytes that a step puts in the place of what it finds.
const MOST_CONTENT: usize = 16;
/// The most bytes that a table of characters puts in the place of one.
const MOST_WRITTEN: usize = 64;
/// The most bytes that all steps make of a text.
const MOST_MADE: usize = 4 * MOST_TEXT;
/// The most steps of those that may double a text.
const MOST_DOUBLING: usize = 2;

/// The steps that change a text.
#[derive(Debug)]
pub(crate) struct Normalizers(Vec<Change>);

#[derive(Debug)]
enum Change {
    Known(NormalizerWrapper),
    Replace(Expression, String),
}

/// The steps that cut a text into words.
#[derive(Debug)]
pub(crate) struct Cutters(Vec<Cut>);

#[derive(Debug)]
enum Cut {
    Known(PreTokenizerWrapper),
    Split { expression: Expression, behavior: SplitDelimiterBehavior, invert: bool },
}

#[derive(Deserialize)]
enum Wanted {
    String(String),
    Regex(String),
}

#[derive(Deserialize)]
struct Replacement {
    pattern: Wanted,
    content: String,
}

#[derive(Deserialize)]
struct Splitting {
    pattern: Wanted,
    behavior: SplitDelimiterBehavior,
    invert: bool,
}

impl Wanted {
    fn compile(&self) -> Result<Expression, String> {
        match self {
            Self::String(text) => Expression::literal(text),
            Self::Regex(text) => Expression::new(text),
        }
    }
}

impl Normalizers {
    /// Reads the member `normalizer` of a file.
    pub(crate) fn read(value: &Value) -> Result<Self, String> {
        let steps = flat(value, "normalizers")?;
        Ok(Self(steps.into_iter().map(Change::read).collect::<Result<_, _>>()?))
    }

    /// Whether capitals become small letters.
    pub(crate) fn lowercases(&self) -> bool {
        self.0.iter().any(|step| match step {
            Change::Known(NormalizerWrapper::Lowercase(_)) => true,
            Change::Known(NormalizerWrapper::BertNormalizer(bert)) => bert.lowercase,
            _ => false,
        })
    }
}

impl Change {
    fn read(value: &Value) -> Result<Self, String> {
        match kind(value)? {
            "Replace" => {
                let replacement: Replacement = read(value)?;
                within(&replacement.content)?;
                Ok(Self::Replace(replacement.pattern.compile()?, replacement.content))
            }
            "Precompiled" => {
                check_charsmap(value)?;
                Ok(Self::Known(read(value)?))
            }
            "Prepend" => {
                within(value.get("prepend").and_then(Value::as_str).unwrap_or_default())?;
                Ok(Self::Known(read(value)?))
            }
            "BertNormalizer" | "Strip" | "StripAccents" | "NFC" | "NFD" | "NFKC" | "NFKD" | "Lowercase"
            | "Nmt" | "ByteLevel" => Ok(Self::Known(read(value)?)),
            other => Err(unknown("normalizer", other)),
        }
    }
}

impl Normalizer for Normalizers {
    fn normalize(&self, normalized: &mut NormalizedString) -> Outcome<()> {
        for step in &self.0 {
            match step {
                Change::Known(known) => known.normalize(normalized)?,
                Change::Replace(expression, content) => normalized.replace(expression, content)?,
            }
            if normalized.get().len() > MOST_MADE {
                return Err("its normalizers make it too long".into());
            }
        }
        Ok(())
    }
}

impl Cutters {
    /// Reads the member `pre_tokenizer` of a file.
    pub(crate) fn read(value: &Value) -> Result<Self, String> {
        let steps = flat(value, "pretokenizers")?;
        let doubling = |value: &&&Value| matches!(kind(value), Ok("ByteLevel" | "Metaspace"));
        if steps.iter().filter(doubling).count() > MOST_DOUBLING {
            return Err("encodes bytes more than once".to_owned());
        }
        Ok(Self(steps.into_iter().map(Cut::read).collect::<Result<_, _>>()?))
    }
}

impl Cut {
    fn read(value: &Value) -> Result<Self, String> {
        match kind(value)? {
            "Split" => {
                let Splitting { pattern, behavior, invert } = read(value)?;
                Ok(Self::Split { expression: pattern.compile()?, behavior, invert })
            }
            "BertPreTokenizer" | "ByteLevel" | "CharDelimiterSplit" | "Metaspace" | "Whitespace"
            | "Punctuation" | "WhitespaceSplit" | "Digits" | "UnicodeScripts" => {
                Ok(Self::Known(read(value)?))
            }
            other => Err(unknown("pre_tokenizer", other)),
        }
    }
}

impl PreTokenizer for Cutters {
    fn pre_tokenize(&self, words: &mut PreTokenizedString) -> Outcome<()> {
        for step in &self.0 {
            match step {
                Cut::Known(known) => known.pre_tokenize(words)?,
                Cut::Split { expression, behavior, invert: false } => {
                    words.split(|_, word| word.split(expression, *behavior))?;
                }
                Cut::Split { expression, behavior, invert: true } => {
                    words.split(|_, word| word.split(tokenizers::pattern::Invert(expression), *behavior))?;
                }
            }
        }
        Ok(())
    }
}

/// A step, or those of sequences in it one after the other.
fn flat<'v>(value: &'v Value, member: &str) -> Result<Vec<&'v Value>, String> {
    let mut found = Vec::new();
    let mut left = vec![value];
    let mut seen = 0;
    while let Some(value) = left.pop() {
        seen += 1;
        if seen > MOST_STEPS {
            return Err(format!("has more than {MOST_STEPS} {member}"));
        }
        if value.is_null() {
            continue;
        }
        if kind(value)? == "Sequence" {
            let inner = value.get(member).and_then(Value::as_array);
            let inner = inner.ok_or_else(|| format!("has a sequence without `{member}`"))?;
            left.extend(inner.iter().rev());
        } else {
            found.push(value);
        }
    }
    Ok(found)
}

fn kind(value: &Value) -> Result<&str, String> {
    value.get("type").and_then(Value::as_str).ok_or_else(|| "has a step without `type`".to_owned())
}

fn unknown(member: &str, kind: &str) -> String {
    format!("has a {member} of type {kind:?}, which is not read")
}

fn read<'v, T: Deserialize<'v>>(value: &'v Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| format!("has a damaged step: {error}"))
}

fn within(content: &str) -> Result<(), String> {
    if content.len() > MOST_CONTENT {
        return Err(format!("has a normalizer that writes more than {MOST_CONTENT} bytes at once"));
    }
    Ok(())
}

/// Checks a table of characters: it can be read, and writes little for each.
fn check_charsmap(value: &Value) -> Result<(), String> {
    let damaged = || "has a damaged table of characters".to_owned();
    let text = value.get("precompiled_charsmap").and_then(Value::as_str).ok_or_else(damaged)?;
    let bytes = base64::decode(text).map_err(|_| damaged())?;
    let (size, rest) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
    let size = u32::from_le_bytes(*size) as usize / 4 * 4;
    if size == 0 || size > rest.len() {
        return Err(damaged());
    }
    let written = std::str::from_utf8(&rest[size..]).map_err(|_| damaged())?;
    if written.split('\0').any(|piece| piece.len() > MOST_WRITTEN) {
        return Err(format!("has a table of characters that writes more than {MOST_WRITTEN} bytes at once"));
    }
    Ok(())
}
