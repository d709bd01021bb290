//! Tells the host how far the work has come.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use lanner::{SetUpWatch, Watch};
use serde_json::json;

use crate::host::say;

thread_local! {
    static TOLD: RefCell<Told> = RefCell::default();
}

/// What was told of how far the work has come, and when.
#[derive(Default)]
struct Told {
    watch: Option<Watch>,
    set_up: SetUpWatch,
    at: Option<Instant>,
}

/// Tells how far the work has come, if that was not just told. It is asked for whenever the server is waited for.
pub(crate) fn tell_progress() {
    let now = Instant::now();
    let text = TOLD.with_borrow_mut(|told| {
        if told.at.is_some_and(|at| now - at < BETWEEN_TELLING) {
            return None;
        }
        told.at = Some(now);
        let steps = told.watch.as_ref().map(Watch::steps);
        Some(json!({ "setUp": told.set_up.parts(), "steps": steps }).to_string())
    });
    if let Some(text) = text {
        say(&text);
    }
}

/// Has a set-up be told of, and predictions where there is a session.
pub(crate) fn watch(set_up: &SetUpWatch, watch: Option<Watch>) {
    TOLD.set(Told { watch, set_up: set_up.clone(), at: None });
}

/// Between two tellings.
const BETWEEN_TELLING: Duration = Duration::from_millis(80);
