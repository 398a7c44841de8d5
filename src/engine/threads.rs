//! A batch divided among threads, by where the cells of its keys lie. Cells and answers are those of one thread.
//!
//! A [`Partition`] has all cells of its keys. A key changes only its own partition. Its answer depends on earlier keys
//! of the partition and on the generation, which the clock computes from the place of the key in the batch. So each
//! thread owns one partition, processes its keys in order, and advances a clock of its own. No thread waits for another
//! because a generation begins. (Pages of lines rotate every few hundred keys.)
//!
//! The threads take turns to hash pieces of the batch and to scatter the keys of each piece by partition. A thread
//! passes keys to the threads that own their partitions, and receives them back with answers. A piece is so short that
//! it is still in the cache when its keys are processed. A thread scatters its next piece before it processes the keys
//! of this one, so that it seldom waits.
//!
//! The most that more threads can gain, computed from the bytes that are moved per key in a mask of integers in lines:
//!
//! | threads | keys and hashes | hashes each partition reads | own hashes, written and read | answers, bits | line, read and written | a thread's share | one thread over that |
//! |--:|--:|--:|--:|--:|--:|--:|--:|
//! | 1 | 24 | | | 1 | 128 | 153 | 1 |
//! | 2 | 16 | 16 | 16 | 3.5 | 128 | 90 | 1.7 |
//! | 4 | 16 | 32 | 16 | 4 | 128 | 49 | 3.1 |
//! | 8 | 16 | 64 | 16 | 5 | 128 | 29 | 5.3 |
//!
//! With n threads (n - 1) / n of the hashes and answers, 9 bytes a key, come from another core. Two threads measured a
//! gain of 1.6 to 1.8, where two filters side by side gain 1.95, on two otherwise idle cores of an AMD EPYC. (Where a
//! host lends a core to others there may be no gain, because each thread has half of the cells, however slow it is.)
//! The losses: scattering takes 0.35 ns a key, where one thread takes 2.6 ns to insert it; both threads advance a
//! clock, 0.1 ns; and they wait for each other, 0.15 ns. We tried to scatter pieces two or four rounds before their
//! keys are processed instead of one, and to wait without sleep. Neither gained anything.
//!
//! If each thread hashed all keys and selected its own, nothing would be passed on. But hashing them a second time
//! takes 0.45 ns a key, more for strings, which is as much as passing them on loses.

use std::convert::Infallible;
use std::ops::{Range, RangeInclusive};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{iter, vec};

use super::hashes::SelectedHashes;
pub use super::partition::PIECE;
use super::partition::{BLOCK, Partitioned};
use super::run::AgedMut;
use super::{Insertion, Refresh};
use crate::Error;
use crate::clock::{Clock, Moments};
use crate::family::Layout;
use crate::family::abilities::Partition;
use crate::key::Keys;
use crate::memory::fallible;
use crate::parallel::{run_groups, share};

/// A range of the keys of a batch that threads share, with buffers that the next range uses again.
pub struct Chunk<'a> {
    threads: usize,
    keys: &'a Keys,
    range: Range<usize>,
    hashes: Vec<u64>,
    buffers: Vec<Buffers>,
}

/// The buffers in which a thread scatters keys.
struct Buffers {
    /// The hashes of a block of a piece.
    hashes: Vec<u64>,
    /// Pieces that are not under way.
    free: Vec<Partitioned>,
}

/// Number of pieces of a thread that are under way at once: one is being scattered, the keys of another are being
/// processed, and the answers of a third come back.
const PIECES_IN_FLIGHT: usize = 3;

impl Buffers {
    fn new(partitions: usize) -> Result<Self, Error> {
        let piece = || Partitioned::with_partitions(partitions);
        let free = iter::repeat_with(piece).take(PIECES_IN_FLIGHT * partitions).collect::<Result<_, _>>()?;
        Ok(Self { hashes: fallible::zeroed(BLOCK)?, free })
    }
}

impl<'a> Chunk<'a> {
    /// Returns an empty chunk of a batch.
    pub fn new(threads: usize, keys: &'a Keys) -> Self {
        Self { threads, keys, range: 0..0, hashes: Vec::new(), buffers: Vec::new() }
    }

    /// Moves the chunk to the keys in `range`.
    pub fn at(&mut self, range: Range<usize>) -> &mut Self {
        self.range = range;
        self
    }

    /// Returns the range of the keys in the batch.
    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Returns the number of keys.
    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// Returns the hashes of the keys.
    pub fn hashes(&mut self) -> Result<&[u64], Error> {
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

    /// Returns how many partitions to divide the cells into.
    pub(crate) fn partitions(&self) -> usize {
        self.threads.min(self.len() / PIECE)
    }
}

/// The cells of one partition of a filter, with a clock of their own.
struct Task<'a> {
    hashes: RangeInclusive<u64>,
    cells: Box<dyn Process + 'a>,
}

/// Cells that a thread writes. They lie behind a pointer, so that the code of the threads is compiled once and not for
/// every layout.
pub(super) trait Process: Send {
    /// Inserts the keys in order, each after it has been looked up if the insertion demands it.
    fn process(&mut self, keys: SelectedHashes<'_>, insertion: Insertion<'_>);

    /// Returns the clock after the keys.
    fn clock(&self) -> Clock;
}

/// The cells of one partition. The clock, which its thread writes all the time, begins a cache line where no other
/// thread writes.
#[repr(align(128))]
pub(super) struct Owned<'a, L> {
    pub clock: Clock,
    pub layout: L,
    pub words: &'a mut [u64],
}

impl<L: Layout> Process for Owned<'_, L> {
    fn process(&mut self, keys: SelectedHashes<'_>, insertion: Insertion<'_>) {
        let mut cells = AgedMut { layout: &self.layout, words: self.words, clock: &mut self.clock, live: None };
        cells.process(keys, insertion);
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }
}

/// Divides cells into at most `count` partitions, and inserts the keys of a chunk on several threads, each of which has
/// the `cells` of one partition. Returns the clock after the keys, or `None` if the cells cannot be divided. A call
/// that returns an error has changed nothing. A clock that waits for answers needs all partitions, and cannot be used
/// here.
pub(super) fn divided<'a, L: Layout>(
    layout: &L,
    words: &'a mut [u64],
    count: usize,
    cells: impl Fn(Partition<'a, L>) -> Box<dyn Process + 'a>,
    keys: &mut Chunk<'_>,
    insertion: &mut Insertion<'_>,
) -> Result<Option<Clock>, Error> {
    let mut tasks = Vec::new();
    layout.divide(words, count, &mut |partition| {
        tasks.push(Task { hashes: partition.hashes.clone(), cells: cells(partition) });
    });
    if !tasks.is_empty() {
        side_by_side(&mut tasks, keys, insertion)?;
    }
    Ok(tasks.first().map(|task| task.cells.clock()))
}

/// One worker: hashes and scatters every n-th piece of a chunk, and processes the keys of one partition.
struct Worker<'a> {
    number: usize,
    keys: &'a Keys,
    range: Range<usize>,
    moments: Moments<'a>,
    /// The hashes of each partition.
    partitions: &'a [RangeInclusive<u64>],
    cells: &'a mut (dyn Process + 'a),
    refresh: Option<Refresh>,
    buffers: Buffers,
    /// Where the answers of this worker's pieces go, in order; empty for insertions.
    answers: vec::IntoIter<&'a mut [bool]>,
    /// Channels to and from each worker: keys to process, and processed keys.
    to: Vec<Sender<Partitioned>>,
    from: Vec<Receiver<Partitioned>>,
    done_to: Vec<Sender<Partitioned>>,
    done_from: Vec<Receiver<Partitioned>>,
}

/// The three steps of a round. They return `None` if another worker has panicked.
impl Worker<'_> {
    /// Returns the piece of a worker in a round, if there are keys left for it.
    fn piece(&self, round: usize, worker: usize) -> Option<Range<usize>> {
        let start = (round * self.partitions.len() + worker) * PIECE;
        (start < self.range.len()).then(|| start..self.range.len().min(start + PIECE))
    }

    /// Hashes this worker's piece of a round, scatters its keys, and sends them to the workers of their partitions.
    fn scatter(&mut self, round: usize) -> Option<()> {
        let Some(piece) = self.piece(round, self.number) else { return Some(()) };
        let Buffers { hashes, free } = &mut self.buffers;
        let mut scattered = free.split_off(free.len() - self.partitions.len());
        scattered.iter_mut().for_each(Partitioned::clear);
        for start in piece.clone().step_by(BLOCK) {
            let hashes = &mut hashes[..BLOCK.min(piece.end - start)];
            self.keys.fill(self.range.start + start, hashes);
            Partitioned::scatter(&mut scattered, hashes, self.partitions);
        }
        scattered.into_iter().zip(&self.to).try_for_each(|(scattered, to)| to.send(scattered).ok())
    }

    /// Processes the keys of this worker's partition in all pieces of a round.
    fn process(&mut self, round: usize) -> Option<()> {
        for worker in 0..self.partitions.len() {
            let Some(piece) = self.piece(round, worker) else { break };
            let mut scattered = self.from[worker].recv().ok()?;
            let at = self.moments.slice(piece);
            let refresh = self.refresh;
            scattered.process(|keys, seen| self.cells.process(keys, Insertion { at, refresh, seen }));
            self.done_to[worker].send(scattered).ok()?;
        }
        Some(())
    }

    /// Receives this worker's piece of a round back, and gathers the answers.
    fn gather(&mut self, round: usize) -> Option<()> {
        if self.piece(round, self.number).is_some() {
            let answers = self.answers.next().unwrap_or_default();
            for done in &self.done_from {
                let scattered = done.recv().ok()?;
                scattered.gather(answers);
                self.buffers.free.push(scattered);
            }
        }
        Some(())
    }
}

/// Runs the workers of one thread, which take turns, and returns their buffers.
fn work<'a>(mut workers: Vec<Worker<'a>>, rounds: usize) -> Vec<Buffers> {
    let mut all = |step: fn(&mut Worker<'a>, usize) -> Option<()>, round: usize| {
        workers.iter_mut().try_for_each(|worker| step(worker, round))
    };
    // Rounds beyond the last have no pieces.
    let _ = (0..rounds + 2).try_for_each(|round| {
        all(Worker::scatter, round)?;
        round.checked_sub(1).map_or(Some(()), |before| all(Worker::process, before))?;
        round.checked_sub(2).map_or(Some(()), |before| all(Worker::gather, before))
    });
    workers.into_iter().map(|worker| worker.buffers).collect()
}

/// One end of a channel from each worker to each.
type Ends<T> = Vec<Vec<T>>;

/// Returns a channel from each worker to each: the senders by sending worker, the receivers by receiving worker.
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

/// Inserts the keys of each partition in order, piece by piece. A call that returns an error has changed nothing.
fn side_by_side(tasks: &mut [Task<'_>], keys: &mut Chunk<'_>, insertion: &mut Insertion<'_>) -> Result<(), Error> {
    let count = tasks.len();
    if keys.buffers.len() != count {
        keys.buffers = iter::repeat_with(|| Buffers::new(count)).take(count).collect::<Result<_, _>>()?;
    }
    let partitions: Vec<_> = tasks.iter().map(|task| task.hashes.clone()).collect();
    let mut answers_of: Vec<_> = (0..count).map(|_| Vec::new()).collect();
    for (piece, answers) in insertion.seen.chunks_mut(PIECE).enumerate() {
        answers_of[piece % count].push(answers);
    }
    let ((to, from), (done_to, done_from)) = (channels(count), channels(count));
    let (mut to, mut from, mut done_to, mut done_from) =
        (to.into_iter(), from.into_iter(), done_to.into_iter(), done_from.into_iter());
    let own = tasks.iter_mut().zip(answers_of).zip(keys.buffers.drain(..)).enumerate();
    let workers = own.map(|(number, ((task, answers), buffers))| Worker {
        number,
        keys: keys.keys,
        range: keys.range.clone(),
        moments: insertion.at,
        partitions: &partitions,
        cells: &mut *task.cells,
        refresh: insertion.refresh,
        buffers,
        answers: answers.into_iter(),
        to: to.next().unwrap_or_default(),
        from: from.next().unwrap_or_default(),
        done_to: done_to.next().unwrap_or_default(),
        done_from: done_from.next().unwrap_or_default(),
    });
    let rounds = keys.range.len().div_ceil(PIECE * count);
    let workers: Vec<_> = workers.collect();
    keys.buffers = run_groups(workers, |workers| work(workers, rounds));
    Ok(())
}
