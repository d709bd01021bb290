//! Long loops on several cores.
//!
//! All sessions of a process share one pool of threads, so that together they take no more cores than the process may use. With one
//! core there is no pool, and whoever asks computes alone. Results depend neither on the number of threads nor on their order:
//! items are independent, and those that take randomness have a seed each, drawn before ([`seeds`]).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rand_core::CryptoRng;
use rayon::ThreadPool;

use crate::Seed;

static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();

/// Sets how many threads long loops of this process have, whoever calls them among these: one means no other. The first call counts.
pub fn set_threads(threads: usize) {
    POOL.get_or_init(|| {
        let helpers = threads.saturating_sub(1);
        let name = |number| format!("compute-{}", number + 1);
        // A process that may not start threads computes without them.
        (helpers > 0)
            .then(|| rayon::ThreadPoolBuilder::new().num_threads(helpers).thread_name(name).build().ok())
            .flatten()
    });
}

/// How many items are worked on at once.
#[must_use]
pub fn threads() -> usize {
    1 + pool().map_or(0, ThreadPool::current_num_threads)
}

/// Seeds of items that are worked on at once. They are lent and never moved out, which would leave their bytes in the vector.
pub struct Seeds(Vec<Seed>);

impl Seeds {
    /// The seeds in order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Seed> {
        self.0.iter()
    }
}

/// Fresh seeds, one for each of a given number of items.
#[must_use]
pub fn seeds(count: usize, rng: &mut (impl CryptoRng + ?Sized)) -> Seeds {
    Seeds((0..count).map(|_| Seed::random(rng)).collect())
}

/// Works on every item, in any order.
pub fn for_each<T: Send>(items: impl IntoIterator<Item = T>, work: impl Fn(T) + Send + Sync) {
    match pool() {
        Some(pool) => share(pool, items.into_iter().collect(), work),
        None => items.into_iter().for_each(work),
    }
}

/// The result of every item, in their order.
pub fn map<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Send + Sync,
) -> Vec<R> {
    let Some(pool) = pool() else { return items.into_iter().map(work).collect() };
    let items: Vec<T> = items.into_iter().collect();
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    share(pool, items.into_iter().zip(&mut results).collect(), |(item, result)| *result = Some(work(item)));
    results.into_iter().flatten().collect()
}

/// Callers that are in a long loop now.
static CALLERS: AtomicUsize = AtomicUsize::new(0);

/// Counts a caller as long as it lives.
struct Caller {
    /// Callers that were there before.
    others: usize,
}

impl Caller {
    fn enter() -> Self {
        Self { others: CALLERS.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        CALLERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The caller and the pool take one item after another until none is left. Where other callers are at work already, that many threads
/// of the pool are left to them: with as many callers as cores, each computes alone.
fn share<T: Send>(pool: &ThreadPool, items: Vec<T>, work: impl Fn(T) + Send + Sync) {
    let caller = Caller::enter();
    let idle = pool.current_num_threads().saturating_sub(caller.others);
    let helpers = idle.min(items.len().saturating_sub(1));
    if helpers == 0 {
        return items.into_iter().for_each(work);
    }
    let items = Mutex::new(items.into_iter());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let take_all = || {
        while let Some(item) = next() {
            work(item);
        }
    };
    pool.in_place_scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(|_| take_all());
        }
        take_all();
    });
}

fn pool() -> Option<&'static ThreadPool> {
    POOL.get().and_then(Option::as_ref)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "a library's threads, whose queues Miri's rules for references do not take")]
    fn every_item_is_worked_on_once_and_results_keep_their_order() {
        set_threads(3);
        set_threads(5);
        assert_eq!(threads(), 3);
        for count in [0, 1, 2, 1000] {
            assert_eq!(map(0..count, |i| 2 * i), (0..count).map(|i| 2 * i).collect::<Vec<_>>());
            let mut values = vec![0; count];
            for_each(values.iter_mut().enumerate(), |(i, value)| *value += i);
            assert_eq!(values, (0..count).collect::<Vec<_>>());
        }
    }
}
