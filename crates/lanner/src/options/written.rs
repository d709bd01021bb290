//! Options as people write them: JSON in which a precision is text, and a number may be one that no option has.

use lanner_network::Precision;
use serde_json::{Map, Value};

use super::CompileOptions;
use super::checks::{batch_is, digits_are, is_precision, k_is, kept_bits_are, precision_is, range_is};
use crate::{Error, ErrorKind, Result};

impl CompileOptions {
    /// Reads options from the text of a JSON object: what is absent is as [`CompileOptions::default`] has it.
    ///
    /// A precision is a percentage with its sign, such as `"0.5%"`, or a number of bits.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if the text is none, or as [`CompileOptions::check`].
    pub fn from_json(text: &str) -> Result<Self> {
        let unread = |error: serde_json::Error| {
            Error::new(ErrorKind::Misuse, format!("the options do not parse: {error}"))
        };
        let mut members: Map<String, Value> = serde_json::from_str(text).map_err(unread)?;
        let precision = members.remove("precision").map(|asked| precision(&asked)).transpose()?.flatten();
        check_numbers(&members)?;
        let options: Self = serde_json::from_value(Value::Object(members)).map_err(unread)?;
        let options = Self { precision, ..options };
        options.check()?;
        Ok(options)
    }
}

/// The precision that is asked for, if one is.
fn precision(asked: &Value) -> Result<Option<Precision>> {
    let found = match asked {
        Value::Null => return Ok(None),
        Value::String(text) => parsed(text.trim()),
        Value::Number(bits) => parsed(&bits.to_string()),
        _ => None,
    };
    let usable = found.filter(is_precision);
    usable.map(Some).ok_or_else(|| match asked {
        Value::String(text) => precision_is(format_args!("'{text}'")),
        other => precision_is(other),
    })
}

/// `12.5%`, or bits in decimal digits.
fn parsed(text: &str) -> Option<Precision> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(share) = text.strip_suffix('%') else {
        return if digits(text) { text.parse().ok().map(Precision::Bits) } else { None };
    };
    let (whole, fraction) = share.split_once('.').unwrap_or((share, ""));
    let written = !whole.is_empty() && digits(whole) && digits(fraction);
    if written { share.parse::<f64>().ok().map(|share| Precision::Error(share / 100.0)) } else { None }
}

/// The error of an option that has this value.
type Refusal = fn(&Value) -> Error;

/// Checks that numbers are such that options can hold them: the others are told as what they are.
fn check_numbers(members: &Map<String, Value>) -> Result<()> {
    let told: [(&str, Refusal); 4] = [
        ("k", |value| k_is(value)),
        ("digits", |value| digits_are(value)),
        ("kept_bits", |value| kept_bits_are(value)),
        ("batch", |value| batch_is(value)),
    ];
    for (name, error) in told {
        if let Some(value @ Value::Number(number)) = members.get(name)
            && number.as_u64().is_none_or(|number| u32::try_from(number).is_err())
        {
            return Err(error(value));
        }
    }
    match members.get("input_range") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Array(ends)) if ends.len() == 2 && ends.iter().all(Value::is_number) => Ok(()),
        // Ends that are no finite numbers come as text, which JSON has for them.
        Some(Value::Array(ends)) => Err(range_is(ends.iter().map(shown).collect::<Vec<_>>().join(", "))),
        Some(other) => Err(range_is(shown(other))),
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn refused(members: &str) -> String {
        CompileOptions::from_json(members).unwrap_err().what
    }

    #[test]
    fn what_is_absent_is_as_nothing_is_chosen() {
        let options = CompileOptions::from_json(r#"{"name": "net", "precision": null}"#).unwrap();
        assert_eq!(options, CompileOptions { name: "net".to_owned(), ..CompileOptions::default() });
        assert_eq!(
            (options.mode.as_str(), options.output.as_str(), options.k, options.batch),
            ("auto", "label", 1, 1)
        );
    }

    #[test]
    fn a_precision_is_a_share_or_bits() {
        let of = |asked: &str| {
            CompileOptions::from_json(&format!(r#"{{"precision": {asked}}}"#))
                .map(|options| options.precision)
        };
        for (asked, expected) in [
            (r#""0.5%""#, Precision::Error(0.005)),
            (r#"" 12.% ""#, Precision::Error(0.12)),
            (r#""8""#, Precision::Bits(8)),
            ("16", Precision::Bits(16)),
        ] {
            assert_eq!(of(asked).unwrap(), Some(expected), "{asked}");
        }
        for asked in [
            r#""0%""#,
            r#""100%""#,
            r#"".5%""#,
            r#""%""#,
            r#""""#,
            r#""1e1%""#,
            r#""-1%""#,
            "5",
            "17",
            "0.5",
            "true",
        ] {
            assert!(of(asked).unwrap_err().what.starts_with("precision is "), "{asked}");
        }
    }

    #[test]
    fn numbers_that_no_option_has_are_told_as_they_are() {
        assert_eq!(refused(r#"{"k": -1}"#), "k is -1");
        assert_eq!(refused(r#"{"k": 0}"#), "k is 0");
        assert_eq!(refused(r#"{"digits": 99999999999}"#), "digits is 99999999999");
        assert_eq!(refused(r#"{"batch": -4}"#), "⟦batch=-4⟧ is not a power of two");
        assert_eq!(refused(r#"{"mode": "tabula", "kept_bits": 2}"#), "2 bits are to be kept");
        assert_eq!(refused(r#"{"input_range": [0, "inf"]}"#), "input_range is (0, inf)");
        assert_eq!(refused(r#"{"input_range": [1]}"#), "input_range is (1)");
        assert_eq!(refused(r#"{"input_range": [0.1, 1]}"#), "input_range is (0.1, 1)");
    }

    #[test]
    fn options_that_there_are_not_are_refused() {
        assert!(refused(r#"{"colour": "green"}"#).contains("unknown field `colour`"));
        assert!(refused("[]").starts_with("the options do not parse"));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (members, what) in [
            (r#"{"mode": "fast"}"#, "mode is 'fast'"),
            (r#"{"rounding": "up"}"#, "rounding is 'up'"),
            (r#"{"output": "all"}"#, "output is 'all'"),
            (r#"{"auto": {"optimize": "beauty"}}"#, "optimize is 'beauty'"),
            (
                r#"{"mode": "gazelle", "auto": {"optimize": "bytes"}}"#,
                "only mode auto has something to choose",
            ),
            (r#"{"kept_bits": 5}"#, "bits are kept by the lookups of mode tabula alone"),
            (r#"{"replace_relu": true}"#, "ReLUs are replaced for mode spectral alone"),
            (r#"{"mode": "falcon", "batch": 4}"#, "mode falcon takes samples one by one"),
            (
                r#"{"input_range": [0, 1], "public_preprocessing": true}"#,
                "⟦public_preprocessing⟧ and ⟦input_range⟧ exclude each other",
            ),
        ] {
            assert!(refused(members).starts_with(what), "{members}: {}", refused(members));
        }
    }
}
