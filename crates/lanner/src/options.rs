//! What the owner of a model chooses when compiling it.

use lanner_graph::{Policy, QuantizationOptions};
use lanner_plan::Mode;
use lanner_protocol::nonlinear::compare::Rounding;
use serde::Deserialize;

use crate::{Error, ErrorKind, Result};

/// What the owner of a model chooses when compiling it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompileOptions {
    /// The name under which a server offers the model.
    pub name: String,
    /// `gazelle`, `falcon`, `cheetah`, or `auto` for the planner's choice.
    pub mode: String,
    /// `exact` or `faithful`, for mode `cheetah`: whether every integer equals the reference's. The calibration samples decide where it is
    /// `None`. The other modes are exact.
    pub rounding: Option<String>,
    /// `label`, `probability`, `top-k` or `logits`.
    pub output: String,
    /// How many classes `top-k` reveals.
    pub k: u32,
    /// Decimal digits that `probability` reveals.
    pub digits: u32,
    /// The smallest and the largest value that an input may have, with 0 between them. The calibration samples decide where it is `None`,
    /// and the public half then tells of theirs.
    pub input_range: Option<[f64; 2]>,
    /// The names of the classes, in the order of the scores.
    pub classes: Option<Vec<String>>,
    /// How a picture becomes an input: for the client, which applies it.
    pub image: Option<serde_json::Value>,
}

impl CompileOptions {
    /// Whether the calibration samples decide how to round.
    pub(crate) fn leaves_rounding_open(&self) -> bool {
        self.mode == "cheetah" && self.rounding.is_none()
    }

    /// The mode; exact where rounding is left open.
    pub(crate) fn mode(&self) -> Result<Mode> {
        let rounding = self.rounding()?;
        match (self.mode.as_str(), rounding) {
            ("cheetah", rounding) => Ok(Mode::Cheetah(rounding)),
            ("gazelle" | "auto", Rounding::Exact) => Ok(Mode::Gazelle),
            ("falcon", Rounding::Exact) => Ok(Mode::Falcon),
            ("gazelle" | "falcon" | "auto", Rounding::Faithful) => {
                let error = Error::new(ErrorKind::Misuse, format!("mode {} rounds exactly", self.mode));
                Err(error.fix("compile with cheetah, or with exact rounding"))
            }
            (other, _) => {
                let error = Error::new(ErrorKind::Unsupported, format!("this version has no mode {other}"));
                Err(error.fix("compile with gazelle, falcon, cheetah or auto"))
            }
        }
    }

    fn rounding(&self) -> Result<Rounding> {
        match self.rounding.as_deref() {
            None | Some("exact") => Ok(Rounding::Exact),
            Some("faithful") => Ok(Rounding::Faithful),
            Some(other) => {
                let error = Error::new(ErrorKind::Misuse, format!("there is no rounding {other}"));
                Err(error.fix("give exact or faithful"))
            }
        }
    }

    /// How the network's integers are chosen.
    pub(crate) fn quantization(&self, mode: Mode) -> QuantizationOptions {
        let options = match mode {
            Mode::Cheetah(_) => QuantizationOptions::powers_of_two(),
            Mode::Gazelle | Mode::Falcon => QuantizationOptions::default(),
        };
        QuantizationOptions { input_range: self.input_range, ..options }
    }

    /// The output policy.
    pub(crate) fn policy(&self) -> Result<Policy> {
        match self.output.as_str() {
            "label" => Ok(Policy::Label),
            "logits" => Ok(Policy::Logits),
            "probability" => Ok(Policy::Probability { digits: self.digits }),
            "top-k" => Ok(Policy::TopK { k: self.k }),
            other => {
                let error = Error::new(ErrorKind::Misuse, format!("there is no output policy {other}"));
                Err(error.fix("give label, probability, top-k or logits"))
            }
        }
    }
}
