//! Work shared by threads. A batch is divided by where the cells of its keys lie, so that answers and cells are those
//! of one thread.
//!
//! A [`Part`] of the cells has all cells of its keys. A key changes only its part, and its answer depends on earlier
//! keys of its part and on the generation, which the clock tells from the place of the key in the batch. So each thread
//! has a part, lets its keys act in order, and follows the clock by itself: none waits for another because a generation
//! begins. (Pages of lines rotate every few hundred keys.)
//!
//! Threads hash pieces of the batch in turn, sort each by part, and hand the sorted keys to the threads of the parts,
//! which hand them back with their answers. A piece is so short that it is still in the cache when its keys act, and a
//! thread sorts its next piece before the keys of this one act, so that it seldom has to wait.
//!
//! What more threads could gain, by the bytes that are moved per key in a mask of integers in lines:
//!
//! | threads | keys and hashes | hashes each part looks at | own hashes, written and read | answers, bits | line, read and written | a thread's share | one thread over that |
//! |--:|--:|--:|--:|--:|--:|--:|--:|
//! | 1 | 24 | | | 1 | 128 | 153 | 1 |
//! | 2 | 16 | 16 | 16 | 3.5 | 128 | 90 | 1.7 |
//! | 4 | 16 | 32 | 16 | 4 | 128 | 49 | 3.1 |
//! | 8 | 16 | 64 | 16 | 5 | 128 | 29 | 5.3 |
//!
//! With n threads (n - 1) / n of the hashes and answers, 9 bytes a key, come from another core. The gain that was
//! measured with two threads is 1.6 to 1.8, where two filters side by side gain 1.95 (two cores of an AMD EPYC that
//! nobody else used; where a host lends a core to others too there may be none, since each thread has half the cells,
//! however slow it is). What is lost: to sort takes 0.35 ns a key, where one thread takes 2.6 to insert it; both
//! threads follow the clock, 0.1; and they wait for each other, 0.15. Pieces sorted two or four rounds before their
//! keys act, instead of one, and waiting without sleep gained nothing.
//!
//! If each thread hashed all keys and kept its own, nothing would be handed over. But to hash them a second time takes
//! 0.45 ns a key, more for strings, which is as much as is lost by the way.

use std::convert::Infallible;
use std::ops::{Range, RangeInclusive};
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::{iter, thread, vec};

use super::Refresh;
use super::hashes::Hashes;
use super::run::AgedMut;
pub use super::sort::PIECE;
use super::sort::{AT_ONCE, Sorted};
use crate::Error;
use crate::clock::{Clock, Moments};
use crate::key::Keys;
use crate::layout::{Layout, Part};
use crate::memory::fallible;

/// Does `work` on all items, which `threads` take in turn, each with a state that `begin` makes. An error ends it.
pub fn share<I: Send, S, E: Send>(
    threads: usize,
    items: impl Iterator<Item = I> + Send,
    begin: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, I) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let threads = threads.min(items.size_hint().1.unwrap_or(threads));
    let items = Mutex::new(items);
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut own = begin();
        while let Some(item) = next() {
            work(&mut own, item)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        // If a thread cannot be had, the others do its work.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let helpers: Vec<_> = (1..threads).map_while(spawn).collect();
        let done = work();
        helpers
            .into_iter()
            .map(|helper| helper.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .fold(done, Result::and)
    })
}

/// A stretch of a batch that threads share, with buffers that the next stretch uses again.
pub struct Stretch<'a> {
    threads: usize,
    keys: &'a Keys,
    range: Range<usize>,
    hashes: Vec<u64>,
    buffers: Vec<Buffers>,
}

/// What a thread needs room for.
struct Buffers {
    /// The hashes of a piece.
    hashes: Vec<u64>,
    /// Pieces that nobody works on.
    free: Vec<Sorted>,
}

/// Pieces of a thread that are under way at once: one is sorted while the keys of another act, and the answers of a
/// third come back.
const UNDER_WAY: usize = 3;

impl Buffers {
    fn room(parts: usize) -> Result<Self, Error> {
        let free = iter::repeat_with(|| Sorted::room(parts)).take(UNDER_WAY * parts).collect::<Result<_, _>>()?;
        Ok(Self { hashes: fallible::zeroed(AT_ONCE)?, free })
    }
}

impl<'a> Stretch<'a> {
    /// A stretch without keys yet, of this batch.
    pub fn new(threads: usize, keys: &'a Keys) -> Self {
        Self { threads, keys, range: 0..0, hashes: Vec::new(), buffers: Vec::new() }
    }

    /// The keys in `range`.
    pub fn at(&mut self, range: Range<usize>) -> &mut Self {
        self.range = range;
        self
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// Their hashes.
    pub(crate) fn hashes(&mut self) -> Result<&[u64], Error> {
        if let Some(made) = self.keys.made_before(self.range.clone()) {
            return Ok(made);
        }
        fallible::resize(&mut self.hashes, self.range.len())?;
        let pieces = (self.range.start..).step_by(PIECE).zip(self.hashes.chunks_mut(PIECE));
        let Ok(()) = share(
            self.threads,
            pieces,
            || (),
            |(), (start, hashes)| {
                self.keys.fill(start, hashes);
                Ok::<(), Infallible>(())
            },
        );
        Ok(&self.hashes)
    }

    /// How many parts to cut the cells into.
    pub(crate) fn parts(&self) -> usize {
        self.threads.min(self.len() / PIECE)
    }
}

/// Inserts the keys of a stretch into the parts of a filter; returns the clock after them. An error comes before all.
pub(crate) fn insert<L: Layout>(
    parts: Vec<Part<'_, L>>,
    clock: Clock,
    keys: &mut Stretch<'_>,
    at: Moments<'_>,
) -> Result<Clock, Error> {
    let mut clocks = vec![Apart(clock); parts.len()];
    let turns = parts.into_iter().zip(&mut clocks).map(|(part, Apart(clock))| {
        let mut cells = AgedMut { layout: part.layout, words: part.words, clock, live: None };
        Turn { hashes: part.hashes, act: Box::new(move |keys, at, _| cells.insert(keys, at)) }
    });
    side_by_side(turns.collect(), keys, at, &mut [])?;
    Ok(clocks[0].0)
}

/// For each key of a stretch in order: writes to `seen` whether it was in the parts of a filter, then inserts it as
/// `refresh` says; says where the clock is then. Not for a clock that waits for the answers, since only all parts
/// together know where it is.
pub(crate) fn duplicated<L: Layout>(
    parts: Vec<Part<'_, L>>,
    clock: Clock,
    keys: &mut Stretch<'_>,
    at: Moments<'_>,
    refresh: Refresh,
    seen: &mut [bool],
) -> Result<Clock, Error> {
    let mut clocks = vec![Apart(clock); parts.len()];
    let turns = parts.into_iter().zip(&mut clocks).map(|(part, Apart(clock))| {
        let mut cells = AgedMut { layout: part.layout, words: part.words, clock, live: None };
        Turn { hashes: part.hashes, act: Box::new(move |keys, at, seen| cells.duplicated(keys, at, refresh, seen)) }
    });
    side_by_side(turns.collect(), keys, at, seen)?;
    Ok(clocks[0].0)
}

/// The clock of a thread, which writes it all the time, in cache lines where no other thread writes.
#[derive(Clone)]
#[repr(align(128))]
struct Apart(Clock);

/// What is done with the keys of a part: with those of each piece, its moments and the place for their answers. Behind
/// a pointer, so that what threads do is compiled once and not for every layout.
struct Turn<'a> {
    hashes: RangeInclusive<u64>,
    act: Act<'a>,
}

type Act<'a> = Box<dyn FnMut(Hashes<'_>, Moments<'_>, &mut [bool]) + Send + 'a>;

/// Who sorts every so manieth piece, and lets the keys of one part act.
struct Worker<'a> {
    number: usize,
    keys: &'a Keys,
    range: Range<usize>,
    moments: Moments<'a>,
    /// The hashes of each part.
    parts: &'a [RangeInclusive<u64>],
    act: Act<'a>,
    buffers: Buffers,
    /// Where its own pieces have their answers, in order; none of an insertion.
    answers: vec::IntoIter<&'a mut [bool]>,
    /// To and from each worker: keys that are to act, and keys that have.
    to: Vec<Sender<Sorted>>,
    from: Vec<Receiver<Sorted>>,
    done_to: Vec<Sender<Sorted>>,
    done_from: Vec<Receiver<Sorted>>,
}

impl Worker<'_> {
    /// The piece of a worker in a round, if there are keys left for it.
    fn piece(&self, round: usize, worker: usize) -> Option<Range<usize>> {
        let start = (round * self.parts.len() + worker) * PIECE;
        (start < self.range.len()).then(|| start..self.range.len().min(start + PIECE))
    }

    /// Hashes and sorts its piece of a round. `None`, here and below: another worker is gone by a panic.
    fn sort(&mut self, round: usize) -> Option<()> {
        let Some(piece) = self.piece(round, self.number) else { return Some(()) };
        let Buffers { hashes, free } = &mut self.buffers;
        let mut sorted = free.split_off(free.len() - self.parts.len());
        sorted.iter_mut().for_each(Sorted::begin);
        for start in piece.clone().step_by(AT_ONCE) {
            let hashes = &mut hashes[..AT_ONCE.min(piece.end - start)];
            self.keys.fill(self.range.start + start, hashes);
            Sorted::take(&mut sorted, hashes, self.parts);
        }
        sorted.into_iter().zip(&self.to).try_for_each(|(sorted, to)| to.send(sorted).ok())
    }

    /// Lets the keys of its part act, of all pieces of a round.
    fn act(&mut self, round: usize) -> Option<()> {
        for worker in 0..self.parts.len() {
            let Some(piece) = self.piece(round, worker) else { break };
            let mut sorted = self.from[worker].recv().ok()?;
            sorted.act(|keys, answers| (self.act)(keys, self.moments.slice(piece), answers));
            self.done_to[worker].send(sorted).ok()?;
        }
        Some(())
    }

    /// Takes back its piece of a round, with the answers.
    fn collect(&mut self, round: usize) -> Option<()> {
        if self.piece(round, self.number).is_some() {
            let answers = self.answers.next().unwrap_or_default();
            for done in &self.done_from {
                let sorted = done.recv().ok()?;
                sorted.spread(answers);
                self.buffers.free.push(sorted);
            }
        }
        Some(())
    }
}

/// What one thread does, for one worker or more, which take turns.
fn work<'a>(mut workers: Vec<Worker<'a>>, rounds: usize) -> Vec<Buffers> {
    let mut all = |step: fn(&mut Worker<'a>, usize) -> Option<()>, round: usize| {
        workers.iter_mut().try_for_each(|worker| step(worker, round))
    };
    // Of rounds beyond the last there are no pieces.
    let _ = (0..rounds + 2).try_for_each(|round| {
        all(Worker::sort, round)?;
        round.checked_sub(1).map_or(Some(()), |before| all(Worker::act, before))?;
        round.checked_sub(2).map_or(Some(()), |before| all(Worker::collect, before))
    });
    workers.into_iter().map(|worker| worker.buffers).collect()
}

/// One end of a channel from each worker to each.
type Ends<T> = Vec<Vec<T>>;

/// A channel from each worker to each: the senders by who sends, the receivers by who receives.
fn channels<T>(workers: usize) -> (Ends<Sender<T>>, Ends<Receiver<T>>) {
    let mut receivers: Vec<Vec<_>> = (0..workers).map(|_| Vec::new()).collect();
    let to_all = |_| {
        let to_one = |from: &mut Vec<_>| {
            let (sender, receiver) = channel();
            from.push(receiver);
            sender
        };
        receivers.iter_mut().map(to_one).collect()
    };
    ((0..workers).map(to_all).collect(), receivers)
}

/// Has each part act on its keys in order, piece by piece, and writes their answers, if there is a place for them. An
/// error comes before all.
fn side_by_side(
    turns: Vec<Turn<'_>>,
    keys: &mut Stretch<'_>,
    moments: Moments<'_>,
    answers: &mut [bool],
) -> Result<(), Error> {
    let count = turns.len();
    if keys.buffers.len() != count {
        keys.buffers = iter::repeat_with(|| Buffers::room(count)).take(count).collect::<Result<_, _>>()?;
    }
    let parts: Vec<_> = turns.iter().map(|turn| turn.hashes.clone()).collect();
    let mut places: Vec<_> = (0..count).map(|_| Vec::new()).collect();
    for (piece, answers) in answers.chunks_mut(PIECE).enumerate() {
        places[piece % count].push(answers);
    }
    let ((to, from), (done_to, done_from)) = (channels(count), channels(count));
    let (mut to, mut from, mut done_to, mut done_from) =
        (to.into_iter(), from.into_iter(), done_to.into_iter(), done_from.into_iter());
    let own = turns.into_iter().zip(places).zip(keys.buffers.drain(..)).enumerate();
    let workers = own.map(|(number, ((turn, answers), buffers))| Worker {
        number,
        keys: keys.keys,
        range: keys.range.clone(),
        moments,
        parts: &parts,
        act: turn.act,
        buffers,
        answers: answers.into_iter(),
        to: to.next().unwrap_or_default(),
        from: from.next().unwrap_or_default(),
        done_to: done_to.next().unwrap_or_default(),
        done_from: done_from.next().unwrap_or_default(),
    });
    let (workers, rounds): (Vec<_>, _) = (workers.collect(), keys.range.len().div_ceil(PIECE * count));
    keys.buffers = thread::scope(|scope| {
        // A thread is given its workers when it is known how many threads can be had.
        let spawn = |_| {
            let (give, take) = channel();
            let work = move || take.recv().map_or_else(|_| Vec::new(), |workers| work(workers, rounds));
            Some((give, thread::Builder::new().spawn_scoped(scope, work).ok()?))
        };
        let helpers: Vec<_> = (1..count).map_while(spawn).collect();
        let mut dealt: Vec<_> = (0..=helpers.len()).map(|_| Vec::new()).collect();
        for worker in workers {
            dealt[worker.number % (helpers.len() + 1)].push(worker);
        }
        for (give, _) in &helpers {
            // It waits for them.
            let _ = give.send(dealt.pop().unwrap_or_default());
        }
        let mut buffers = work(dealt.pop().unwrap_or_default(), rounds);
        for (_, helper) in helpers {
            buffers.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        buffers
    });
    Ok(())
}
