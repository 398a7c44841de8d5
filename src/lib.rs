//! *Have I seen this key lately?* Filters over a sliding window: an endless stream in constant memory.
//!
//! Deduplicate web hooks, packets, log lines or tokens against replay: without a database, in a few bytes per key.
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
//! # The guarantee
//!
//! A [`Window`] is the last W insertions, or a span of time.
//!
//! - A key inserted within the window is *always* reported, at every moment, also in a burst.
//! - Between window and window + slack a key may be reported.
//! - A key never inserted, or gone for longer, is reported with probability at most `fpr`, at the worst moment.
//!
//! # Which type?
//!
//! | type | take it when |
//! |---|---|
//! | [`Filter`] | one thread at a time asks |
//! | [`ConcurrentFilter`] | many threads ask at once, by `&self` and without a lock |
//! | [`ExactWindow`] | no key may be reported by chance, and there is memory for all of them |
//!
//! [`Filter`] chooses among the families of the literature: small slack in little memory by default,
//! [`Prefer::Speed`] for a cache line per call, [`Prefer::Memory`] for the fewest bytes.
//!
//! # What it costs
//!
//! Bytes per key of a window of a million insertions:
//!
//! | | 1 % | 0.1 % | 0.0001 % |
//! |---|---|---|---|
//! | [`Filter`] | 2.3 | 2.8 | 4.6 |
//! | [`Filter`], [`Prefer::Speed`] | 2.6 | 3.4 | 7.3 |
//! | [`Filter`], [`Prefer::Memory`] | 1.9 | 2.4 | 4.1 |
//! | [`ConcurrentFilter`] | 2.7 | 3.5 | 7.4 |
//!
//! # Many threads
//!
//! ```
//! use std::time::Duration;
//! use lately::{ConcurrentFilter, Window};
//!
//! let window = Window::time(Duration::from_secs(120));
//! let filter = ConcurrentFilter::builder(window).fpr(1e-6).capacity(100_000).build()?;
//! std::thread::scope(|scope| {
//!     for _ in 0..8 {
//!         // Of threads that race with a new key exactly one gets `false`.
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
//! A [`Key`] is an integer of any width, a float, text, bytes, a tuple, an `Option`, or a type of yours. Keys have the
//! hashes of the Python package of this name, so a job in Python and a service in Rust share a file and the meaning of a
//! key. Hashes of a public seed are no defence against callers who choose keys that collide:
//! [`Builder::secret`] is.
//!
//! # Event times
//!
//! In a window of time a key counts as of now. The calls that end in `_at` take the time of an event instead, and
//! [`Builder::lateness`] allows times to step back.
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
//! | `file` | `save` and `open` of filters in files; huge pages under Linux for filters of 4 MiB and more |
//! | `inference` | `Filter::posterior` and `Filter::decide`: probabilities, and decisions by them |
//!
//! Both are off by default. Without them the crate has three dependencies.
//!
//! # Platforms
//!
//! 32-bit and 64-bit, little-endian. On `wasm32-unknown-unknown`, which has no clock and no files, windows are of
//! insertions.
//!
//! # Errors and panics
//!
//! Constructors, files and event times return an [`Error`] that names the parameter. No call panics. Memory that grows
//! with the stream (of [`ExactWindow`], and of a [`Filter`] without a fixed size) ends the process when there is no more
//! of it, as for a `Vec`.

#![deny(unsafe_code)]
// Layouts compute evidence for a module that is left out without the feature.
#![cfg_attr(not(feature = "inference"), allow(dead_code))]

#[cfg(not(target_endian = "little"))]
compile_error!("lately needs a little-endian target, because cells are saved as they lie in memory");
#[cfg(not(target_has_atomic = "64"))]
compile_error!("lately needs a target with 64-bit atomic integers");
#[cfg(not(any(target_pointer_width = "32", target_pointer_width = "64")))]
compile_error!("lately needs a target with 32-bit or 64-bit pointers");
#[cfg(all(feature = "file", target_family = "wasm", target_os = "unknown"))]
compile_error!("the feature `file` of lately needs a target with files: disable it on wasm32-unknown-unknown");

mod api;
#[doc(hidden)]
pub mod error;

#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
pub mod concurrent;
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod exact;
#[doc(hidden)]
pub mod filter;
#[doc(hidden)]
pub mod format;
#[doc(hidden)]
pub mod guide;
#[doc(hidden)]
pub mod inference;
#[doc(hidden)]
pub mod instructions;
#[doc(hidden)]
pub mod key;
#[doc(hidden)]
pub mod layout;
#[doc(hidden)]
pub mod memory;
#[doc(hidden)]
pub mod parallel;
#[doc(hidden)]
#[cfg(feature = "inference")]
pub mod posteriors;
#[doc(hidden)]
#[cfg(feature = "inference")]
pub mod prior;
#[doc(hidden)]
pub mod shape;
#[doc(hidden)]
pub mod shard;
#[doc(hidden)]
#[cfg(feature = "file")]
pub mod shared;

pub use api::{Builder, ConcurrentFilter, ExactWindow, Filter, Prefer, Window};
pub use error::Error;
pub use key::{Hashed, Key, KeyHasher};
