//! Explores with loom what threads may do to one page of one line, with the code of the filter itself.
//!
//! loom takes sequentially consistent accesses for acquire and release. The fences that it needs instead are in
//! `page.rs`, under `cfg(loom)`.

#[path = "../../../src/concurrent/page.rs"]
#[allow(dead_code)]
mod page;

use std::sync::atomic::{AtomicU64 as Counter, Ordering::Relaxed};

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use page::{AtomicLine, NEVER, Page, Probe, State, Timing, WORDS};

/// Lanes of the model: a word each.
const LANES: usize = WORDS;

/// A call in a page that is due to be in this rotation.
struct Due(i64);

impl Timing for Due {
    type Rejection = std::convert::Infallible;

    fn end_of(&self, rotation: i64) -> i64 {
        rotation
    }

    fn is_due(&self, end: i64) -> bool {
        end < self.0
    }

    fn rotation_to_write(&self) -> i64 {
        self.0
    }

    fn rotation_to_read(&self) -> i64 {
        self.0
    }

    fn admit(&self) -> Result<(), Self::Rejection> {
        Ok(())
    }
}

struct Cells {
    state: State,
    lines: Vec<AtomicLine>,
    k: u32,
}

impl Cells {
    fn new(k: u32, lines: usize) -> Self {
        let line = |_| AtomicLine(std::array::from_fn(|_| AtomicU64::new(0)));
        Self { state: State(AtomicU64::new((NEVER << 1) as u64)), lines: (0..lines).map(line).collect(), k }
    }

    fn page(&self) -> Page<'_, LANES> {
        Page { state: &self.state, lines: &self.lines, k: self.k }
    }
}

/// The bits of a key, in lines 0, 1, ...: two of each word.
fn probe<const LINES: usize>(key: u32) -> Probe<LINES> {
    Probe { lines: std::array::from_fn(|t| t), masks: [[1 << key | 1 << (key + 16); WORDS]; LINES] }
}

/// Threads offer one key, each in a rotation of its own. Exactly one is first, and all find the key afterwards.
fn one_key<const LINES: usize>(k: u32, rotations: &'static [i64], preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 100_000;
    let runs = std::sync::Arc::new(Counter::new(0));
    let counted = runs.clone();
    model.check(move || {
        counted.fetch_add(1, Relaxed);
        let cells = Arc::new(Cells::new(k, LINES));
        // Another key, so that the page has a rotation and some bits.
        let _ = cells.page().seen(&probe::<LINES>(3), &Due(0));
        let offer = move |cells: &Cells, due| {
            let Ok(seen) = cells.page().seen(&probe::<LINES>(5), &Due(due));
            let Ok(held) = cells.page().contains(&probe::<LINES>(5), &Due(due));
            assert!(held, "missed by a thread that offered it");
            !seen
        };
        let threads: Vec<_> = rotations[1..]
            .iter()
            .map(|&due| {
                let cells = cells.clone();
                loom::thread::spawn(move || offer(&cells, due))
            })
            .collect();
        let mut first = u32::from(offer(&cells, rotations[0]));
        for thread in threads {
            first += u32::from(thread.join().unwrap());
        }
        let Ok(held) = cells.page().contains(&probe::<LINES>(5), &Due(*rotations.iter().max().unwrap()));
        assert!(held, "missed at the end");
        assert_eq!(first, 1, "threads that were first");
    });
    let runs = runs.load(Relaxed);
    println!("k {k}, {LINES} lines, rotations {rotations:?}, {preemptions} preemptions: {runs} executions");
}

fn main() {
    one_key::<1>(2, &[0, 0], 3);
    one_key::<1>(2, &[0, 1], 3);
    one_key::<1>(1, &[0, 1], 4);
    one_key::<2>(2, &[0, 0], 3);
    one_key::<2>(1, &[0, 1], 3);
    one_key::<1>(2, &[0, 0, 1], 2);
    one_key::<1>(2, &[0, 1, 2], 2);
    // A key that is inserted, whether it is there or not, is found too.
    insertion();
}

/// One thread inserts while another rotates the page: the key is found afterwards.
fn insertion() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(|| {
        let cells = Arc::new(Cells::new(2, 1));
        let other = cells.clone();
        let thread = loom::thread::spawn(move || {
            let Ok(_) = other.page().seen(&probe::<1>(3), &Due(1));
        });
        let Ok(()) = cells.page().insert(&probe::<1>(5), &Due(0));
        thread.join().unwrap();
        // Held until l = 2 rotations after its own are over, and the page is in rotation 1 at least.
        let Ok(held) = cells.page().contains(&probe::<1>(5), &Due(2));
        assert!(held, "missed after an insertion");
    });
    println!("insertion and rotation: found");
}
