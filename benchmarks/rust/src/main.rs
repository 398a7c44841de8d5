//! ns of processor time per `seen`, bytes per key of the window, and how many live keys are forgotten.
//!
//! Arguments: the window, and parts of the names of rivals to measure.

mod rivals;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use cpu_time::ThreadTime;
use rivals::{Item, Ready, Rival, all};

/// Counts the bytes that are allocated.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Relaxed);
        // SAFETY: as for this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as for this call.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls of each thread in one run, and runs of which the least counts.
const CALLS: u64 = 20_000;
const RUNS: u64 = 9;

/// The least mean of the threads' processor time per call. `key` numbers the keys by thread, run and call.
fn measure<K: Item>(rival: &dyn Rival<K>, threads: u64, key: impl Fn(u64, u64, u64) -> u64 + Sync) -> f64 {
    let run = |run| {
        let times: Vec<f64> = std::thread::scope(|scope| {
            let one = |thread| {
                let key = &key;
                move || {
                    let keys: Vec<K> = (0..CALLS).map(|call| K::number(key(thread, run, call))).collect();
                    let began = ThreadTime::now();
                    let seen = keys.iter().filter(|key| rival.seen(key)).count();
                    let took = began.elapsed();
                    std::hint::black_box(seen);
                    took.as_nanos() as f64 / CALLS as f64
                }
            };
            let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(one(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        times.iter().sum::<f64>() / times.len() as f64
    };
    (0..RUNS).map(run).fold(f64::INFINITY, f64::min)
}

/// Prints the rows of the rivals whose names contain one of `names`, or of all if there are none.
fn table<K: Item>(kind: &str, window: u64, names: &[String]) {
    println!("\n{kind}, a window of {window} keys at 1 %\n");
    println!(
        "| | bytes per key | new, 1 thread | repeats, 1 | new, 2 | repeats, 2 | new, 8 | repeats, 8 \
         | live keys forgotten |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, make) in all::<K>(window) {
        if !names.is_empty() && !names.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        let before = ALLOCATED.load(Relaxed);
        let rival = make();
        // Three windows: every rival is in its steady state.
        let new: Vec<bool> = (0..3 * window).map(|i| !rival.seen(&K::number(i))).collect();
        rival.settle();
        let bytes = (ALLOCATED.load(Relaxed) - before - new.capacity()) as f64 / window as f64;
        // The last 19 twentieths of the window. A key that is reported by chance is not inserted, so it does not count.
        let live: Vec<u64> = (2 * window + window / 20..3 * window).filter(|&i| new[i as usize]).collect();
        let forgotten = live.iter().filter(|&&i| !rival.contains(&K::number(i))).count() as f64;
        let mut next = 4 * window;
        print!("| {name} | {bytes:.2} |");
        for threads in [1, 2, 8] {
            let new = measure(&*rival, threads, |thread, run, call| next + (run * threads + thread) * CALLS + call);
            next += RUNS * threads * CALLS;
            let recent = next - CALLS;
            let repeat = measure(&*rival, threads, |thread, _, call| recent + (call * 7919 + thread) % CALLS);
            print!(" {new:.0} | {repeat:.0} |");
        }
        println!(" {:.2} % |", 100.0 * forgotten / live.len() as f64);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let window = arguments.next().and_then(|window| window.parse().ok()).unwrap_or(1_000_000);
    let names: Vec<String> = arguments.collect();
    table::<Ready>("Ready hashes", window, &names);
    table::<u64>("Integers", window, &names);
    table::<String>("Strings of 40 bytes", window, &names);
}
