//! Work shared by threads: one queue of items, or a group of workers for each thread.

use std::panic::resume_unwind;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Processes all items on up to `threads` threads, which take them from one queue. `begin` makes the state of a thread.
/// A thread that meets an error takes no further item, and the error is returned. Where the system starts fewer
/// threads, those it starts do all of the work.
pub fn share<I: Send, S, E: Send>(
    threads: usize,
    items: impl Iterator<Item = I> + Send,
    begin: impl Fn() -> S + Sync,
    process: impl Fn(&mut S, I) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let threads = threads.min(items.size_hint().1.unwrap_or(threads));
    let items = Mutex::new(items);
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut state = begin();
        while let Some(item) = next() {
            process(&mut state, item)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let helpers: Vec<_> = (1..threads).map_while(spawn).collect();
        let done = work();
        helpers
            .into_iter()
            .map(|helper| helper.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .fold(done, Result::and)
    })
}

/// Runs workers that wait for each other, on one thread each or on as many as the system starts. `work` runs all
/// workers of one thread, and returns what they leave. Returns what all workers leave, in any order.
pub(crate) fn run_groups<W: Send, R: Send>(workers: Vec<W>, work: impl Fn(Vec<W>) -> Vec<R> + Sync) -> Vec<R> {
    let work = &work;
    thread::scope(|scope| {
        // The number of threads is known only when they have started, so a thread waits for its workers.
        let spawn = |_| {
            let (give, take) = channel();
            let work = move || take.recv().map_or_else(|_| Vec::new(), work);
            Some((give, thread::Builder::new().spawn_scoped(scope, work).ok()?))
        };
        let helpers: Vec<_> = (1..workers.len()).map_while(spawn).collect();
        let mut groups: Vec<_> = (0..=helpers.len()).map(|_| Vec::new()).collect();
        for (number, worker) in workers.into_iter().enumerate() {
            groups[number % (helpers.len() + 1)].push(worker);
        }
        for (give, _) in &helpers {
            // Sending cannot fail, because the thread waits.
            let _ = give.send(groups.pop().unwrap_or_default());
        }
        let mut left = work(groups.pop().unwrap_or_default());
        for (_, helper) in helpers {
            left.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        left
    })
}
