//! The modes, as options name them.

use lanner_plan::{Design, MODES, Mode};
use serde_json::{Value, json};

/// Every mode, in the order in which they are listed: its name, how it can round, whether it takes every network since the client takes part between
/// its input and the result, whether it checks what clients do, whether a request may hold several samples, and whether all that is rescaled is looked up.
#[must_use]
pub fn modes() -> Value {
    let entry = |mode: Mode| {
        let (design, name) = (mode.design(), mode.name());
        json!({
            "name": name,
            "roundings": roundings(|mode| mode.name() == name),
            "interactive": design.takes_any(),
            "checked": design.checks_clients(),
            "packing": design.most_samples > 1,
            "lookups": design.looks_up(),
        })
    };
    MODES.into_iter().filter(|mode| mode.is_exact()).map(entry).collect()
}

/// The names of the modes with such a design.
pub(crate) fn names(of: impl Fn(&Design) -> bool) -> Vec<&'static str> {
    MODES.into_iter().filter(|mode| mode.is_exact() && of(mode.design())).map(Mode::name).collect()
}

/// The ways of rounding of such modes, `exact` first.
pub(crate) fn roundings(of: impl Fn(&Mode) -> bool) -> Vec<&'static str> {
    let inexact = MODES.into_iter().filter(|mode| of(mode)).filter_map(Mode::inexact);
    std::iter::once("exact").chain(inexact.map(|rounding| rounding.name)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::CompileOptions;

    #[test]
    fn every_mode_is_chosen_by_its_name_and_its_rounding() {
        let listed = modes();
        let mut chosen = Vec::new();
        for entry in listed.as_array().unwrap() {
            for rounding in entry["roundings"].as_array().unwrap() {
                let [mode, rounding] =
                    [&entry["name"], rounding].map(|name| name.as_str().unwrap().to_owned());
                let options = CompileOptions { mode, rounding: Some(rounding), ..CompileOptions::default() };
                options.check().unwrap();
                chosen.push(options.mode().unwrap());
            }
        }
        assert_eq!(chosen, MODES);
    }
}
