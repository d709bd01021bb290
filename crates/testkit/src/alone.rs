//! Tests that are alone in their process.

use std::any::type_name;
use std::env;
use std::process::Command;

/// Says in a process which test it was begun for.
const TEST: &str = "LANNER_TEST_ALONE";

/// Runs a test in a process in which no other is at work: what forks there has one thread that does something, and what is allocated is the test's.
/// The test must be this call alone, given a closure.
///
/// # Panics
/// If the test does.
pub fn alone<T: FnOnce()>(test: T) {
    let name = name_of(type_name::<T>());
    if env::var_os(TEST).is_some_and(|begun| begun == *name) {
        return test();
    }
    let begin = |binary| Command::new(binary).args(["--exact", name, "--nocapture"]).env(TEST, name).output();
    let (has_passed, said) = match env::current_exe().and_then(begin) {
        Ok(run) => {
            let said = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
            (run.status.success() && said.contains("1 passed"), said)
        }
        Err(error) => (false, error.to_string()),
    };
    assert!(has_passed, "{name}, alone:\n{said}");
}

/// The name of the test that a closure of this type is in: `crate::module::test::{{closure}}` without what is around it.
fn name_of(closure: &str) -> &str {
    let (_, path) = closure.split_once("::").unwrap_or(("", closure));
    path.split_once("::{{closure}}").map_or(path, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn is_begun_for_one() -> bool {
        env::var_os(TEST).is_some()
    }

    #[test]
    fn a_test_runs_once_and_in_another_process() {
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        alone(|| {
            RUNS.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(RUNS.load(Ordering::Relaxed), usize::from(is_begun_for_one()));
    }

    #[test]
    fn a_test_that_fails_alone_fails() {
        let has_failed = catch_unwind(|| alone(|| panic!("as it should"))).is_err();
        // In the process that was begun for it this fails, too, and so does the process.
        assert!(has_failed && !is_begun_for_one());
    }
}
