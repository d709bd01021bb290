//! What the owner of a model chooses when compiling it.

use lanner_graph::Policy;
use lanner_plan::Mode;
use serde::Deserialize;

use crate::{Error, ErrorKind, Result};

/// What the owner of a model chooses when compiling it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompileOptions {
    /// The name under which a server offers the model.
    pub name: String,
    /// `gazelle`, `falcon`, or `auto` for the planner's choice.
    pub mode: String,
    /// `label`, `probability`, `top-k` or `logits`.
    pub output: String,
    /// How many classes `top-k` reveals.
    pub k: u32,
    /// Decimal digits that `probability` reveals.
    pub digits: u32,
    /// The names of the classes, in the order of the scores.
    pub classes: Option<Vec<String>>,
    /// How a picture becomes an input: for the client, which applies it.
    pub image: Option<serde_json::Value>,
}

impl CompileOptions {
    /// The mode.
    pub(crate) fn mode(&self) -> Result<Mode> {
        match self.mode.as_str() {
            "gazelle" | "auto" => Ok(Mode::Gazelle),
            "falcon" => Ok(Mode::Falcon),
            other => {
                let error = Error::new(ErrorKind::Unsupported, format!("this version has no mode {other}"));
                Err(error.fix("compile with gazelle, falcon or auto"))
            }
        }
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
