//! *Have I seen this key lately?* Filters over a sliding window: an endless stream in constant memory.
//!
//! Deduplicate web hooks, packets or log lines, and reject replayed tokens: without a database, in a few bytes per key.
//!
//! ```
//! use lately::{Filter, Window};
//!
//! let mut filter = Filter::builder(Window::last(1_000_000)).fpr(0.001).build()?;
//! assert!(!filter.seen("order-17"));
//! assert!(filter.seen("order-17"));
//! # Ok::<(), lately::Error>(())
//! ```
//!
//! # Guarantees
//!
//! A [`Window`] is a number of insertions or a span of time.
//!
//! - A key inserted within the window is *always* reported, at every moment, also in a burst.
//! - Between window and window + slack a key may be reported.
//! - A key never inserted, or gone for longer, is reported with probability at most `fpr`, at the worst moment.
//!
//! # Which type?
//!
//! | type | use it when |
//! |---|---|
//! | [`Filter`] | one thread at a time inserts |
//! | [`ConcurrentFilter`] | many threads insert at once, by `&self` and without a lock |
//! | [`Filter`], [`Prefer::Exact`] | false positives are not acceptable, and memory for all keys is |
//!
//! [`Filter`] chooses among the families of the literature. By default it is fast, the slack is small
//! and memory is low. [`Prefer::Speed`] takes one cache line per call at 1 % and more, [`Prefer::Memory`] the fewest
//! bytes.
//!
//! # Cost
//!
//! Bytes per key of a window of a million insertions, by `fpr`:
//!
//! | | 1 % | 0.1 % | 0.0001 % |
//! |---|---|---|---|
//! | [`Filter`] | 2.9 | 3.3 | 4.7 |
//! | [`Filter`], [`Prefer::Speed`] | 2.6 | 3.3 | 4.7 |
//! | [`Filter`], [`Prefer::Memory`] | 2.0 | 2.7 | 4.6 |
//! | [`ConcurrentFilter`] | 2.6 | 3.5 | 7.3 |
//!
//! A [`ConcurrentFilter`] takes about twice as much for a window of time, because it holds its rate in a burst.
//!
//! A `seen` of a [`ConcurrentFilter`] waits for one cache line, and for two atomic exchanges if the key is new.
//! `duplicated` is faster per key, because it prefetches the lines of later keys. `benchmarks/results/rust.md` in the
//! repository has the times of both filters beside those of other crates, from one run.
//!
//! # Concurrency
//!
//! ```
//! use std::time::Duration;
//! use lately::{ConcurrentFilter, Window};
//!
//! let window = Window::time(Duration::from_secs(120));
//! let filter = ConcurrentFilter::builder(window).fpr(1e-6).capacity(100_000).build()?;
//! std::thread::scope(|scope| {
//!     for _ in 0..8 {
//!         // Exactly one of the threads that race with a new key gets `false`.
//!         scope.spawn(|| filter.seen("token"));
//!     }
//! });
//! assert!(filter.contains("token"));
//! # Ok::<(), lately::Error>(())
//! ```
//!
//! All types are `Send` and `Sync`. Only [`ConcurrentFilter`] inserts by `&self`.
//!
//! # Keys
//!
//! A [`Key`] is an integer of any width, a float, text, bytes, an address, a time, a path, a tuple or a list of these,
//! an `Option`, or a type of your own. [`Hashed`] makes a key of any type with `std::hash::Hash`. Keys have the same
//! hashes as in the Python package `lately`, so a job in Python and a service in Rust can share a file.
//!
//! Hashes of a public seed are no defence against attackers who choose keys that collide. [`Builder::secret`] is.
//!
//! # Event times
//!
//! In a window of time a key counts as of now. Methods that end in `_at` take the time of an event instead, and
//! [`Builder::lateness`] bounds how far times may step back.
//!
//! ```
//! use std::time::{Duration, UNIX_EPOCH};
//! use lately::{Filter, Window};
//!
//! let window = Window::time(Duration::from_secs(60));
//! let mut filter = Filter::builder(window).fpr(0.01).capacity(1000).lateness(Duration::from_secs(5)).build()?;
//! let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
//! assert!(!filter.seen_at("a", at(1000))?);
//! assert!(filter.seen_at("a", at(1060))?);
//! # Ok::<(), lately::Error>(())
//! ```
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `file` | `save` and `open` |
//! | `inference` | `Filter::posterior` and `Filter::decide`: probabilities, and decisions by them |
//! | `uuid`, `bytes` | keys of these crates |
//! | `serde` | `Filter` as a value of serde: the bytes of `to_bytes` |
//!
//! All are off by default. Without them the crate has four dependencies. Rust 1.89 is the first with the instructions
//! of AVX-512, which batches use where the processor has them.
//!
//! # In a service
//!
//! Calls for a key take well below a microsecond, and wait at most for another thread that clears a page: call them
//! from asynchronous code as they are. `save`, `open`, `to_bytes`, [`ConcurrentFilter::snapshot`],
//! `false_positive_rate` and batches of millions of keys read or write all cells: give them to
//! `tokio::task::spawn_blocking`.
//!
//! A clone of a [`Filter`] shares its cells until either is written to. Then they are copied at once, which took 0.2 s
//! for 54 MB: clone where a pause does no harm, or save a snapshot of a [`ConcurrentFilter`], whose threads go on.
//! Filters of windows of time merge, so each thread may have one of its own; those of insertions merge only in the same
//! generation.
//!
//! # Platforms
//!
//! Targets are little-endian, with 32-bit or 64-bit pointers and 64-bit atomics. `wasm32-unknown-unknown` has no clock
//! and no files, so its windows are of insertions.
//!
//! # Errors and panics
//!
//! Constructors, files and event times return an [`Error`] that names the parameter. No call panics. Memory that grows
//! with the stream (of a [`Filter`] without a fixed size) ends the process when an allocation fails, as for a `Vec`.

#![deny(unsafe_code)]
// Layouts compute evidence for a module that is left out without the feature.
#![cfg_attr(any(test, not(feature = "inference")), allow(dead_code))]
// Links to modules that are left out without the feature. Documents are built with all features.
#![cfg_attr(not(feature = "file"), allow(rustdoc::broken_intra_doc_links))]

#[cfg(not(target_endian = "little"))]
compile_error!("lately needs a target that is little endian, because cells are saved as they lie in memory");
#[cfg(not(target_has_atomic = "64"))]
compile_error!("lately needs a target with 64-bit atomic integers");
#[cfg(not(any(target_pointer_width = "32", target_pointer_width = "64")))]
compile_error!("lately needs a target with 32-bit or 64-bit pointers");
#[cfg(all(feature = "file", target_family = "wasm", target_os = "unknown"))]
compile_error!("the feature `file` of lately needs a target with files: disable it on wasm32-unknown-unknown");

// What has `cfg(not(test))` is tested from outside, in tests/core. It compiles every family; unit tests need none.
#[cfg(not(test))]
mod api;
#[doc(hidden)]
#[cfg(feature = "file")]
pub mod claims;
#[doc(hidden)]
pub mod error;

#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
#[cfg(not(test))]
pub mod concurrent;
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod family;
#[doc(hidden)]
#[cfg(not(test))]
pub mod format;
#[doc(hidden)]
pub mod inference;
#[doc(hidden)]
pub mod instructions;
#[doc(hidden)]
pub mod key;
#[doc(hidden)]
#[cfg(feature = "file")]
pub mod lock;
#[doc(hidden)]
pub mod memory;
#[doc(hidden)]
pub mod parallel;
#[doc(hidden)]
#[cfg(not(test))]
pub mod shard;
#[doc(hidden)]
#[cfg(all(feature = "file", not(test)))]
pub mod shared;

#[cfg(doctest)]
#[doc = include_str!("README.md")]
struct Readme;

#[cfg(not(test))]
pub use api::{Builder, ConcurrentFilter, Filter, Prefer, Window};
pub use error::Error;
pub use key::{Hashed, Key, KeyHasher};

/// Returns by how many seconds the wall clock was set ahead, or below 0 back, since the last call that returned it.
///
/// Calls without a time do not depend on it, because their time passes by a clock that never steps. Log it: times that
/// the service takes from the wall clock itself have jumped. It is read at most once a second.
///
/// ```
/// if let Some(seconds) = lately::clock_step() {
///     eprintln!("the wall clock was set by {seconds} s");
/// }
/// ```
pub fn clock_step() -> Option<f64> {
    clock::system::step(clock::system::now()).map(|step| step as f64 / 1e9)
}
