//! What every attack must leave intact: time, memory, and threads that do not panic.

use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

static PANICS: AtomicUsize = AtomicUsize::new(0);
static START: Once = Once::new();

/// Limits this process's memory and begins to count panics, in whatever thread they are. Every test calls it first.
///
/// An allocation beyond the limit ends the process: a peer's length that is believed ends the tests, whoever believes it.
pub fn start() {
    START.call_once(|| {
        let old = getrlimit(Resource::Data);
        // Where the system knows no such limit, the attacks still run.
        let _ = setrlimit(Resource::Data, Rlimit { current: Some(MEMORY), maximum: old.maximum });
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // Tests run in threads of their own names, which are paths: there a panic is only a test that fails.
            let is_test = thread::current().name().is_some_and(|name| name.contains("::"));
            PANICS.fetch_add(usize::from(!is_test), Ordering::SeqCst);
            print(info);
        }));
    });
}

/// Runs an attack that must end soon and panic nowhere, threads of servers included.
///
/// # Panics
/// If it does not.
pub fn bounded<T: Send + 'static>(what: &str, attack: impl FnOnce() -> T + Send + 'static) -> T {
    let before = PANICS.load(Ordering::SeqCst);
    let (sender, receiver) = mpsc::channel();
    let running = thread::Builder::new().name("attack".to_owned()).spawn(move || {
        // Nobody listens only if the attack took too long, which was reported.
        let _ = sender.send(attack());
    });
    let ended = receiver.recv_timeout(PATIENCE);
    assert_eq!(PANICS.load(Ordering::SeqCst), before, "{what}: a thread panicked");
    drop(running);
    ended.unwrap_or_else(|_| panic!("{what}: no end after {PATIENCE:?}"))
}

/// Bytes of data that the tests' process may have: more than all attacks at once need, less than a length of four bytes can ask for.
const MEMORY: u64 = 2 << 30;
/// Far more than a run takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
