//! Long loops on several cores.
//!
//! All sessions of a process share one pool of threads, so that together they take no more cores than the process may use. With one
//! core there is no pool, and whoever asks computes alone. Results depend neither on the number of threads nor on their order:
//! items are independent, and those that take randomness have a seed each, drawn before ([`seeds`]).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use lanner_process::{MOST_FORKS, PerProcess};
use rand_core::CryptoRng;
use rayon::ThreadPool;

use crate::Seed;

/// The pool of threads of a process, and who uses it.
struct Pool {
    threads: OnceLock<Option<ThreadPool>>,
    /// Callers that are in a long loop now.
    callers: AtomicUsize,
}

/// A child that `fork` made has none of its parent's threads, and would wait for them for ever.
static POOLS: PerProcess<Pool> =
    PerProcess::new([const { Pool { threads: OnceLock::new(), callers: AtomicUsize::new(0) } }; MOST_FORKS]);

/// Threads for long loops, the caller's among them; 0 before anybody said how many.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Sets how many threads long loops of this process have, whoever calls them among these: one means no other. The first call counts, also for
/// the children that `fork` makes of this process, each of which starts threads of its own.
pub fn set_threads(threads: usize) {
    let _ = THREADS.compare_exchange(0, threads.max(1), Ordering::Relaxed, Ordering::Relaxed);
    let _ = pool();
}

/// How many items are worked on at once.
#[must_use]
pub fn threads() -> usize {
    1 + pool().map_or(0, |(_, threads)| threads.current_num_threads())
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
        Some((pool, threads)) => share(pool, threads, items.into_iter().collect(), work),
        None => items.into_iter().for_each(work),
    }
}

/// The result of every item, in their order.
pub fn map<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Send + Sync,
) -> Vec<R> {
    let Some((pool, threads)) = pool() else { return items.into_iter().map(work).collect() };
    let items: Vec<T> = items.into_iter().collect();
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    let items = items.into_iter().zip(&mut results).collect();
    share(pool, threads, items, |(item, result)| *result = Some(work(item)));
    results.into_iter().flatten().collect()
}

/// What two works give: the first on a thread of the pool while the caller does the second, which may wait for a peer. Where no thread is free the
/// second is done before the first.
pub fn beside<A: Send, B>(other: impl FnOnce() -> A + Send, own: impl FnOnce() -> B) -> (A, B) {
    let free = pool().map(|(pool, threads)| (Caller::enter(pool), threads));
    let Some((_caller, threads)) = free.filter(|(caller, threads)| caller.idle(threads) > 0) else {
        let own = own();
        return (other(), own);
    };
    let made = Mutex::new(None);
    let own = threads.in_place_scope(|scope| {
        scope.spawn(|_| *made.lock().unwrap_or_else(PoisonError::into_inner) = Some(other()));
        own()
    });
    let made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    (made.unwrap_or_else(|| unreachable!("a scope waits for what it has begun")), own)
}

/// Counts a caller as long as it lives.
struct Caller<'p> {
    pool: &'p Pool,
    /// Callers that were there before.
    others: usize,
}

impl<'p> Caller<'p> {
    fn enter(pool: &'p Pool) -> Self {
        Self { pool, others: pool.callers.fetch_add(1, Ordering::Relaxed) }
    }

    /// Threads that callers before this one leave idle: with as many callers as cores, each computes alone.
    fn idle(&self, threads: &ThreadPool) -> usize {
        threads.current_num_threads().saturating_sub(self.others)
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.pool.callers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The caller and the pool take one item after another until none is left. Where other callers are at work already, that many threads
/// of the pool are left to them.
fn share<T: Send>(pool: &Pool, threads: &ThreadPool, items: Vec<T>, work: impl Fn(T) + Send + Sync) {
    let caller = Caller::enter(pool);
    let helpers = caller.idle(threads).min(items.len().saturating_sub(1));
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
    threads.in_place_scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(|_| take_all());
        }
        take_all();
    });
}

/// The pool of this process with its threads, if it has any beside those of its callers.
fn pool() -> Option<(&'static Pool, &'static ThreadPool)> {
    let helpers = THREADS.load(Ordering::Relaxed).checked_sub(2)? + 1;
    let pool = POOLS.get()?;
    let name = |number| format!("compute-{}", number + 1);
    // A process that may not start threads computes without them.
    let start = || rayon::ThreadPoolBuilder::new().num_threads(helpers).thread_name(name).build().ok();
    pool.threads.get_or_init(start).as_ref().map(|threads| (pool, threads))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "a library's threads, whose queues Miri's rules for references do not take")]
    #[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
    fn two_works_beside_each_other_both_end_and_have_loops_of_their_own() {
        set_threads(3);
        let mut said = Vec::new();
        let sum = |numbers: std::ops::Range<u64>| map(numbers, |number| number).into_iter().sum::<u64>();
        let (other, own) = beside(
            || sum(0..1000),
            || {
                said.push("own");
                sum(0..100)
            },
        );
        assert_eq!((other, own, said), (499_500, 4950, vec!["own"]));
        let panics = std::panic::catch_unwind(|| beside(|| panic!("on purpose"), || 1));
        assert!(panics.is_err());
    }

    #[test]
    #[cfg_attr(miri, ignore = "a library's threads, whose queues Miri's rules for references do not take")]
    #[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
    fn a_work_beside_another_waits_for_no_thread_that_others_have() {
        set_threads(3);
        let (at_work, over) = (Barrier::new(3), Barrier::new(3));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for_each(0..1, |_| {
                        at_work.wait();
                        over.wait();
                    });
                });
            }
            at_work.wait();
            let turn = AtomicUsize::new(0);
            let next = || turn.fetch_add(1, Ordering::Relaxed);
            assert_eq!(beside(next, next), (1, 0));
            over.wait();
        });
    }

    #[test]
    #[cfg_attr(miri, ignore = "a library's threads, whose queues Miri's rules for references do not take")]
    #[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
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

    #[test]
    #[cfg(all(unix, not(miri)))]
    fn a_fork_of_a_process_with_threads_starts_its_own() {
        set_threads(3);
        let [begun, over] = [Barrier::new(2), Barrier::new(2)];
        let is_right = std::thread::scope(|scope| {
            // This one is in a loop at the fork, with all threads, and is not in the child.
            scope.spawn(|| {
                for_each(0..3, |i| {
                    if i == 0 {
                        begun.wait();
                        over.wait();
                    }
                });
            });
            begun.wait();
            let is_right = lanner_testkit::in_a_fork(|| {
                let met = Barrier::new(3);
                // All three take one at once, or none ends.
                map(0..3, |i| (met.wait(), i).1) == [0, 1, 2] && threads() == 3
            });
            over.wait();
            is_right
        });
        assert!(is_right);
    }
}
