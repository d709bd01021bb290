//! The façade's one error: what happened, where, and what to do about it.

use std::fmt;

use lanner_network::in_words;

/// Whose fault an error is, as far as the caller can act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller used the library wrongly.
    Misuse,
    /// The model is damaged, out of range or cannot be compiled.
    Model,
    /// The model uses an operator that is not supported.
    Unsupported,
    /// The peer refused, differs in version or model, or sent something malformed.
    Peer,
    /// The peer has no place or no memory for now: the same may be asked again.
    Busy,
    /// The connection, its certificate or its time-out.
    Transport,
    /// The input does not fit the model.
    Input,
}

impl ErrorKind {
    /// The kind's name in JSON and in Python.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Misuse => "misuse",
            Self::Model => "model",
            Self::Unsupported => "unsupported",
            Self::Peer => "peer",
            Self::Busy => "busy",
            Self::Transport => "transport",
            Self::Input => "input",
        }
    }
}

/// An error of the library: one clear sentence in three parts. Never carries a secret value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Whose fault it is.
    pub kind: ErrorKind,
    /// What happened. Here and in the remedy an option is a [`Field`](lanner_network::Field) in brackets, which each face spells in its own way.
    pub what: String,
    /// The layer, file or field; empty if there is none.
    pub place: String,
    /// What to do; empty if nothing can be suggested.
    pub fix: String,
}

impl Error {
    /// An error without a place or a remedy.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: without_numbers(what.into()), place: String::new(), fix: String::new() }
    }

    /// Says where it happened.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = place.into();
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = fix.into();
        self
    }
}

/// What the system says in words, without the number that Rust adds to it.
fn without_numbers(mut what: String) -> String {
    const NUMBER: &str = " (os error ";
    while let Some(start) = what.find(NUMBER) {
        let Some(length) = what[start..].find(')') else { break };
        what.replace_range(start..=start + length, "");
    }
    what
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&in_words(&self.what))?;
        if !self.place.is_empty() {
            write!(f, " ({})", self.place)?;
        }
        if !self.fix.is_empty() {
            write!(f, "; {}", in_words(&self.fix))?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_has_no_number() {
        let said = std::io::Error::from_raw_os_error(28).to_string();
        assert!(said.ends_with("(os error 28)"), "{said}");
        let error = Error::new(ErrorKind::Misuse, format!("keys cannot be written ({said}), {said}"));
        assert!(!error.what.contains("os error"), "{error}");
        assert_eq!(Error::new(ErrorKind::Misuse, "a (os error name").what, "a (os error name");
        assert!(error.what.starts_with("keys cannot be written (") && error.what.contains("), "), "{error}");
    }
}
