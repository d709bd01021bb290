//! What of the options is wrong whatever the network is, and what is wrong for its end.

use std::fmt::Display;

use lanner_network::{Field, Policy, Precision};
use lanner_plan::{Design, Rings};

use super::CompileOptions;
use crate::manifest::check_described;
use crate::modes::{names, roundings};
use crate::{Error, ErrorKind, Result};

/// Whom a mode may have to be against.
const AGAINST: [&str; 1] = ["cheating-clients"];
const OBJECTIVES: [&str; 4] = ["latency", "online", "bytes", "memory"];
/// Those that an owner chooses. Of labels that do not exclude each other `label` is `labels`.
const OUTPUTS: [&str; 5] = ["label", "probability", "top-k", "logits", "value"];

/// The most decimal digits that `probability` reveals, or `value` is rounded to.
const MOST_DIGITS: u32 = 6;
/// The fewest and the most bits that lookups of mode `tabula` may be asked to keep.
const KEPT_BITS: [u32; 2] = [3, 16];

impl CompileOptions {
    /// Checks what is wrong whatever the network is.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] naming the first option that has a value that is none of its own, or does not go with another.
    pub fn check(&self) -> Result<()> {
        one_of("mode", &self.mode, &names(|_| true))?;
        self.check_against()?;
        self.check_objective()?;
        if let Some(rounding) = &self.rounding {
            one_of("rounding", rounding, &roundings(|_| true))?;
        }
        if self.output != "labels" && self.output != "label-map" {
            one_of("output", &self.output, &OUTPUTS)?;
        }
        refuse(self.k < 1, || k_is(self.k))?;
        let digits = self.digits.filter(|digits| !(1..=MOST_DIGITS).contains(digits));
        refuse(digits.is_some(), || digits_are(digits.unwrap_or_default()))?;
        self.check_range()?;
        check_described(self.title.as_deref(), self.note.as_deref())?;
        let precision = self.precision.filter(|precision| !is_precision(precision));
        refuse(precision.is_some(), || precision_is(precision.unwrap_or_default()))?;
        self.check_of_one_mode()
    }

    /// Checks what depends on the network's end: its number of scores.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if more classes are to be revealed than there are, or there is not a name for each class.
    pub(crate) fn check_end(&self, policy: Policy, scores: usize) -> Result<()> {
        if let Policy::TopK { k } = policy {
            let what = || format!("k is {k}, and the model has {}", counted(scores, "score"));
            refuse(k as usize > scores, || misuse(what(), format!("give 1 to {scores}")))?;
        }
        let Some(names) = &self.classes else { return Ok(()) };
        let Some(classes) = policy.classes(scores) else {
            let fix = "leave the class names out, or choose output label if the output is no map".to_owned();
            return Err(misuse("a model with output value has no classes to name".to_owned(), fix));
        };
        refuse(names.len() != classes, || {
            let fix = format!("the model has {classes} classes: name each");
            misuse(format!("there are {} class names", names.len()), fix)
        })
    }

    /// The names of the classes: the owner's or, where there is one for each, those of the network's file.
    pub(crate) fn names(&self, policy: Policy, scores: usize) -> Option<Vec<String>> {
        let of_file = self.named.as_ref().filter(|names| policy.classes(scores) == Some(names.len()));
        self.classes.as_ref().or(of_file).cloned()
    }

    fn check_against(&self) -> Result<()> {
        let Some(against) = &self.against else { return Ok(()) };
        one_of("against", against, &AGAINST)?;
        if self.is_auto() {
            let checking = listed(&names(Design::checks_clients));
            return refuse(self.batch > 1, || {
                let what =
                    format!("against {against} there is mode {checking}, which takes samples one by one");
                misuse(what, "leave the batch out".to_owned()).at("batch")
            });
        }
        let without =
            format!("leave {} out, where every client has a reason to follow the protocol", Field::AGAINST);
        self.check_goes(&format!("{against} are checked in"), Design::checks_clients, &without)
    }

    fn check_objective(&self) -> Result<()> {
        let Some(objective) = &self.auto.optimize else { return Ok(()) };
        one_of("optimize", objective, &OBJECTIVES)?;
        refuse(!self.is_auto(), || {
            let what = format!("only mode auto has something to choose, and the mode is {}", self.mode);
            misuse(what, "compile with mode auto, or leave it out".to_owned()).at("optimize")
        })
    }

    fn check_range(&self) -> Result<()> {
        let Some([low, high]) = self.input_range else { return Ok(()) };
        // Zero lies between ends neither of which is NaN.
        let usable = low.is_finite() && high.is_finite() && (low..=high).contains(&0.0) && low < high;
        refuse(!usable, || range_is(format_args!("{low}, {high}")))?;
        refuse(self.public_preprocessing, || {
            let what =
                format!("{} and {} exclude each other", Field::PUBLIC_PREPROCESSING, Field::INPUT_RANGE);
            misuse(what, "give one of the two".to_owned())
        })
    }

    /// Checks what goes with some modes alone.
    fn check_of_one_mode(&self) -> Result<()> {
        if let Some(bits) = self.kept_bits {
            refuse(!(KEPT_BITS[0]..=KEPT_BITS[1]).contains(&bits), || kept_bits_are(bits))?;
            self.check_goes("bits are kept by the lookups of", Design::looks_up, "give a precision instead")?;
        }
        if self.replace_relu {
            let of = |design: &Design| design.rings == Rings::Products;
            self.check_goes("ReLUs are replaced for", of, "leave the ReLUs as they are")?;
        }
        refuse(!self.batch.is_power_of_two(), || batch_is(self.batch))?;
        let packing = names(|design| design.most_samples > 1);
        refuse(self.batch > 1 && !packing.contains(&self.mode.as_str()), || {
            let what = format!("mode {} takes samples one by one", self.mode);
            misuse(what, format!("compile with mode {}, or without a batch", listed(&packing)))
        })
    }

    /// Checks that the mode is one of those that an option goes with.
    fn check_goes(&self, what: &str, with: impl Fn(&Design) -> bool, fix: &str) -> Result<()> {
        let with = names(with);
        refuse(!with.contains(&self.mode.as_str()), || {
            let modes = listed(&with);
            let what = format!("{what} mode {modes} alone, and the mode is {}", self.mode);
            misuse(what, format!("compile with mode {modes}, or {fix}"))
        })
    }
}

pub(super) fn k_is(k: impl Display) -> Error {
    misuse(format!("k is {k}"), "give 1 or more".to_owned())
}

pub(super) fn digits_are(digits: impl Display) -> Error {
    misuse(format!("digits is {digits}"), format!("give 1 to {MOST_DIGITS}"))
}

pub(super) fn kept_bits_are(bits: impl Display) -> Error {
    misuse(format!("{bits} bits are to be kept"), format!("give {} to {}", KEPT_BITS[0], KEPT_BITS[1]))
}

pub(super) fn batch_is(samples: impl Display) -> Error {
    let what = format!("{} is not a power of two", Field::BATCH.set_to(samples));
    misuse(what, "give one, such as 16".to_owned())
}

pub(super) fn range_is(ends: impl Display) -> Error {
    let fix = "give the smallest and the largest value, with 0 between them".to_owned();
    misuse(format!("input_range is ({ends})"), fix)
}

pub(super) fn precision_is(asked: impl Display) -> Error {
    let fix = format!(
        "give a percentage with its sign, as {}, or a whole number of bits from {} to {}",
        Precision::default(),
        Precision::FEWEST_BITS,
        Precision::MOST_BITS
    );
    misuse(format!("precision is {asked}"), fix)
}

pub(super) fn is_precision(precision: &Precision) -> bool {
    match *precision {
        Precision::Error(error) => 0.0 < error && error < 1.0,
        Precision::Bits(bits) => (Precision::FEWEST_BITS..=Precision::MOST_BITS).contains(&bits),
    }
}

fn one_of(option: &str, value: &str, known: &[&str]) -> Result<()> {
    refuse(!known.contains(&value), || {
        misuse(format!("{option} is '{value}'"), format!("give one of {}", known.join(", ")))
    })
}

fn refuse(wrong: bool, error: impl FnOnce() -> Error) -> Result<()> {
    if wrong { Err(error()) } else { Ok(()) }
}

fn misuse(what: String, fix: String) -> Error {
    Error::new(ErrorKind::Misuse, what).fix(fix)
}

/// `a, b or c`.
fn listed(names: &[&str]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.join(""),
    }
}

/// `1 score`, `3 scores`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names<const N: usize>(names: [&str; N]) -> Vec<String> {
        names.map(str::to_owned).to_vec()
    }

    #[test]
    fn classes_are_named_by_the_owner_or_else_by_the_file() {
        let of_file = CompileOptions { named: Some(names(["no", "yes"])), ..CompileOptions::default() };
        let of_owner = CompileOptions { classes: Some(names(["a", "b"])), ..of_file.clone() };
        assert_eq!(of_owner.names(Policy::Label, 2), Some(names(["a", "b"])));
        assert_eq!(of_file.names(Policy::Label, 2), Some(names(["no", "yes"])));
        // One score tells two classes apart.
        assert_eq!(of_file.names(Policy::Logits, 1), Some(names(["no", "yes"])));
        assert_eq!(of_file.names(Policy::Label, 3), None);
        assert_eq!(of_file.names(Policy::Value, 2), None);
        for (policy, scores, what) in [
            (Policy::Label, 3, "there are 2 class names"),
            (Policy::Value, 2, "a model with output value has no classes to name"),
            (Policy::TopK { k: 3 }, 2, "k is 3, and the model has 2 scores"),
        ] {
            assert_eq!(of_owner.check_end(policy, scores).unwrap_err().what, what);
            assert!(of_file.check_end(policy, scores).is_ok() || matches!(policy, Policy::TopK { .. }));
        }
    }

    #[test]
    fn what_an_owner_leaves_out_is_right() {
        assert!(CompileOptions::default().check().is_ok());
        let ends = [(0.1, 1.0), (-1.0, -0.5), (0.0, 0.0), (1.0, 0.0), (0.0, f64::INFINITY), (f64::NAN, 1.0)];
        for (low, high) in ends {
            let range = CompileOptions { input_range: Some([low, high]), ..CompileOptions::default() };
            assert!(range.check().unwrap_err().fix.contains("0 between them"));
        }
    }
}
