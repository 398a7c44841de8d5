//! What `seen` costs beside what Rust users take today, and what each forgets. Prints the page `results/rust.md`.
//!
//! Arguments: the window, and parts of the names of rivals to measure.

mod rivals;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use cpu_time::ThreadTime;
use rivals::{ATOMIC, Item, OURS, Ready, Rival, TWO, all};

/// Counts the bytes that are allocated.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does all the work.
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
const THREADS: [u64; 3] = [1, 2, 8];
const KINDS: [&str; 3] = ["new", "repeats", "half new"];

/// Times that two rivals are measured in turn for their ratio.
const VISITS: usize = 15;

/// ns per call for each number of threads and kind of call.
type Figures = [[f64; KINDS.len()]; THREADS.len()];

/// A rival in its steady state.
struct Filled<K> {
    rival: Box<dyn Rival<K>>,
    numbers: Numbers,
}

impl<K: Item> Filled<K> {
    fn measure(&mut self) -> Figures {
        THREADS.map(|threads| {
            [1, 0, 2].map(|every| processor_time(&*self.rival, threads, self.numbers.calls(threads, CALLS, every)))
        })
    }
}

/// Calls of each thread, by the numbers of keys: the least mean over runs of what `of` makes of each thread's calls.
fn runs<K: Item>(
    threads: u64,
    calls: u64,
    key: impl Fn(u64, u64, u64) -> u64 + Sync,
    of: impl Fn(&[K], &Barrier) -> f64 + Sync,
) -> f64 {
    let run = |run| {
        let barrier = Barrier::new(threads as usize);
        let times: Vec<f64> = std::thread::scope(|scope| {
            let one = |thread| {
                let (key, of, barrier) = (&key, &of, &barrier);
                move || {
                    let keys: Vec<K> = (0..calls).map(|call| K::number(key(thread, run, call))).collect();
                    of(&keys, barrier)
                }
            };
            let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(one(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        times.iter().sum::<f64>() / times.len() as f64
    };
    (0..RUNS).map(run).fold(f64::INFINITY, f64::min)
}

fn call_all<K>(rival: &dyn Rival<K>, keys: &[K]) {
    std::hint::black_box(keys.iter().filter(|key| rival.seen(key)).count());
}

/// Returns ns of processor time per call.
fn processor_time<K: Item>(rival: &dyn Rival<K>, threads: u64, key: impl Fn(u64, u64, u64) -> u64 + Sync) -> f64 {
    runs(threads, CALLS, key, |keys: &[K], _| {
        let began = ThreadTime::now();
        call_all(rival, keys);
        began.elapsed().as_nanos() as f64 / CALLS as f64
    })
}

/// Returns million calls per second by wall clock, of all threads together.
fn throughput<K: Item>(rival: &dyn Rival<K>, threads: u64, key: impl Fn(u64, u64, u64) -> u64 + Sync) -> f64 {
    let calls = 10 * CALLS;
    let ns = runs(threads, calls, key, |keys: &[K], barrier| {
        barrier.wait();
        let began = Instant::now();
        call_all(rival, keys);
        barrier.wait();
        began.elapsed().as_nanos() as f64
    });
    (threads * calls) as f64 * 1e3 / ns
}

/// Numbers of keys for calls, new keys from `next` on.
struct Numbers {
    next: u64,
}

impl Numbers {
    /// Returns the key of a call, by thread, run and call, where one of `every` calls has a new key; 0 for none.
    fn calls(&mut self, threads: u64, calls: u64, every: u64) -> impl Fn(u64, u64, u64) -> u64 + Sync + use<> {
        let (next, recent) = (self.next, self.next - CALLS);
        if every > 0 {
            self.next += RUNS * threads * calls;
        }
        move |thread, run, call| match every > 0 && call % every == 0 {
            true => next + (run * threads + thread) * calls + call,
            false => recent + (call * 7919 + thread) % CALLS,
        }
    }
}

/// Prints the rows of the rivals whose names contain one of `names`, or of all if there are none.
fn table<K: Item>(kind: &str, window: u64, fpr: f64, names: &[String]) {
    println!("\n## {kind}, a window of {window} keys at {} %\n", fpr * 100.0);
    let columns = THREADS.map(|threads| KINDS.map(|kind| format!("{kind}, {threads}")).join(" | ")).join(" | ");
    println!("| ns of processor time, threads | {columns} | bytes per key | live keys forgotten |");
    println!("|---|{}", "--:|".repeat(THREADS.len() * KINDS.len() + 2));
    let (mut ours, mut two) = (None, None);
    for (name, make) in all::<K>(window, fpr) {
        if !names.is_empty() && !names.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        eprintln!("{kind}: {name}");
        let before = ALLOCATED.load(Relaxed);
        let rival = make();
        // Three windows: every rival is in its steady state.
        let new: Vec<bool> = (0..3 * window).map(|i| !rival.seen(&K::number(i))).collect();
        rival.settle();
        let allocated = ALLOCATED.load(Relaxed) - before - new.capacity();
        let bytes = allocated.max(rival.nbytes()) as f64 / window as f64;
        // The last 19 twentieths of the window. A key that is reported by chance is not inserted, so it does not count.
        let live: Vec<u64> = (2 * window + window / 20..3 * window).filter(|&i| new[i as usize]).collect();
        let forgotten = live.iter().filter(|&&i| !rival.contains(&K::number(i))).count() as f64;
        let mut filled = Filled { rival, numbers: Numbers { next: 4 * window } };
        let ns = filled.measure();
        let cells = ns.map(|ns| ns.map(|ns| format!("{ns:.0}")).join(" | ")).join(" | ");
        println!("| {name} | {cells} | {bytes:.2} | {:.2} % |", 100.0 * forgotten / live.len().max(1) as f64);
        match name {
            OURS => ours = Some(filled),
            TWO => two = Some(filled),
            _ => {}
        }
    }
    if let (Some(ours), Some(two)) = (ours, two) {
        eprintln!("{kind}: in turn");
        in_turn(ours, two);
    }
}

/// Prints ratios of two rivals that are measured in turn.
fn in_turn<K: Item>(mut ours: Filled<K>, mut two: Filled<K>) {
    let visits: Vec<(Figures, Figures)> = (0..VISITS).map(|_| (ours.measure(), two.measure())).collect();
    // The quartiles and the median over visits, for each kind of call.
    let print = |ratio: &dyn Fn(&Figures, &Figures, usize) -> f64| {
        let of_kind = |kind| {
            let mut ratios: Vec<f64> = visits.iter().map(|(ours, two)| ratio(ours, two, kind)).collect();
            ratios.sort_by(f64::total_cmp);
            let [low, middle, high] = [1, 2, 3].map(|quarter| ratios[VISITS * quarter / 4]);
            format!("{middle:.2} ({low:.2} to {high:.2}) for {}", KINDS[kind])
        };
        [0, 1, 2].map(of_kind).join(", ")
    };
    println!("\nMeasured in turn, {VISITS} times, medians and quartiles of the ratios:\n");
    for (threads, count) in THREADS.iter().enumerate() {
        let ratios = print(&|ours, two, kind| ours[threads][kind] / two[threads][kind]);
        println!("- Threads that call: {count}. `ConcurrentFilter` takes of the time of two fastblooms {ratios}.");
    }
    let ratios = print(&|ours, _, kind| ours[2][kind] / ours[0][kind]);
    println!("- When eight threads call, `ConcurrentFilter` takes of the time of one thread {ratios}.");
}

/// Prints million calls per second by wall clock.
fn at_once(window: u64) {
    println!("\n## Threads at once: million calls per second by wall clock, hashes\n");
    let counts: Vec<u64> = (0..=cores().max(2).ilog2()).map(|log2| 1 << log2).collect();
    let columns: Vec<String> = counts.iter().map(u64::to_string).collect();
    println!("| threads | {} | last of first |", columns.join(" | "));
    println!("|---|{}", "--:|".repeat(counts.len() + 1));
    for (name, make) in all::<Ready>(window, 0.01).into_iter().filter(|(name, _)| [OURS, TWO, ATOMIC].contains(name)) {
        eprintln!("at once: {name}");
        let rival = make();
        (0..3 * window).for_each(|i| _ = rival.seen(&Ready::number(i)));
        let mut numbers = Numbers { next: 4 * window };
        for (kind, every) in [("all new", 1), ("one in ten new", 10), ("repeats", 0)] {
            let of = |&threads: &u64| throughput(&*rival, threads, numbers.calls(threads, 10 * CALLS, every));
            let calls: Vec<f64> = counts.iter().map(of).collect();
            let cells: Vec<String> = calls.iter().map(|calls| format!("{calls:.0}")).collect();
            println!("| {name}, {kind} | {} | {:.2} |", cells.join(" | "), calls[calls.len() - 1] / calls[0]);
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the processor, the number of cores, and the processes that ran at once in the last minute.
fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    let (cores, load) = (cores(), read("/proc/loadavg"));
    let load = load.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown");
    format!("{}, {cores} cores, a load of {load}", model.unwrap_or("unknown processor"))
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let window = arguments.next().and_then(|window| window.parse().ok()).unwrap_or(1_000_000);
    let names: Vec<String> = arguments.collect();
    println!("# Beside what Rust users take today\n\nBy `benchmarks/rust`, on {}.", machine());
    table::<Ready>("Hashes", window, 0.01, &names);
    table::<Ready>("Hashes", window, 0.001, &[OURS.to_owned(), TWO.to_owned()]);
    table::<u64>("Integers", window, 0.01, &names);
    table::<String>("Strings of 40 bytes", window, 0.01, &names);
    at_once(window);
    println!("\nAt the end: {}.", machine());
}
