//! Regular expressions of a tokenizer file, of which none takes long.

use regex::RegexBuilder;
use tokenizers::pattern::Pattern;
use tokenizers::{Offsets, Result as Outcome};

/// The most bytes of an expression.
const MOST_BYTES: usize = 1024;
/// The most bytes that an expression is compiled to.
const MOST_COMPILED: usize = 4 << 20;

/// Those that look around, of published tokenizers. Nothing else may: looking around is done by trying, which can take forever.
const LOOKING: &[&str] = &[
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
];

/// An expression that a text is searched for.
#[derive(Debug)]
pub(crate) enum Expression {
    /// One whose search takes time in proportion to the text.
    Plain(regex::Regex),
    /// One of [`LOOKING`].
    Looking(fancy_regex::Regex),
}

impl Expression {
    /// Compiles an expression.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        if text.len() > MOST_BYTES {
            return Err(format!("has a regular expression of more than {MOST_BYTES} bytes"));
        }
        if LOOKING.contains(&text) {
            let expression = fancy_regex::Regex::new(text);
            return expression.map(Self::Looking).map_err(|error| format!("has {text:?}: {error}"));
        }
        let compiled =
            RegexBuilder::new(text).size_limit(MOST_COMPILED).dfa_size_limit(MOST_COMPILED).build();
        compiled.map(Self::Plain).map_err(|_| {
            format!("has the regular expression {text:?}, which is none, too large, or looks around and is not a known one")
        })
    }

    /// One that finds this text.
    pub(crate) fn literal(text: &str) -> Result<Self, String> {
        Self::new(&regex::escape(text))
    }
}

impl Pattern for &Expression {
    fn find_matches(&self, inside: &str) -> Outcome<Vec<(Offsets, bool)>> {
        match self {
            Expression::Plain(expression) => expression.find_matches(inside),
            Expression::Looking(expression) => expression.find_matches(inside),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_take_forever_is_refused() {
        for text in [r"(a+)+(?!b)", r"(\w)\1", r"(?=.*x)a", &"a".repeat(1025), r"\p{L}{1000}{1000}", "("] {
            assert!(Expression::new(text).is_err(), "{text}");
        }
    }

    #[test]
    fn those_of_published_tokenizers_are_read() {
        for text in LOOKING {
            assert!(matches!(Expression::new(text), Ok(Expression::Looking(_))), "{text}");
        }
        assert!(matches!(Expression::new(r" ?[^(\s|[.,!?…])]+"), Ok(Expression::Plain(_))));
    }

    #[test]
    fn pieces_cover_the_text() {
        let expression = Expression::new(LOOKING[0]).unwrap();
        let found = (&expression).find_matches("it's  x").unwrap();
        assert_eq!(found, [((0, 2), true), ((2, 4), true), ((4, 5), true), ((5, 7), true)]);
        assert_eq!(
            (&Expression::literal(".").unwrap()).find_matches("a.").unwrap(),
            [((0, 1), false), ((1, 2), true)]
        );
    }
}
