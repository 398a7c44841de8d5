//! The families of filters and the structure of the crate, for maintainers.
//!
//! # Families
//!
//! Bits per key are for a window of a million keys and rates of 1 % and 0.1 %. The slack is half of the window, for
//! guarded epochs a fifth.
//!
//! | family | strength | cost |
//! |---|---|---|
//! | [age-partitioned](crate::family::slices::shape), blocks | speed | 18.8 and 28.7 bits; 1 cache line per insertion, 3 per query |
//! | [age-partitioned](crate::family::slices::shape), slices | old keys fade gradually | 23.5 and 31.0 bits; 5 and 15 lines at 1 % |
//! | [guarded epochs](crate::family::slices::shape), slices | memory | 15.9 and 21.3 bits; at 1 % 9 lines per insertion, 30 per query |
//! | [guarded epochs](crate::family::slices::transposed), transposed | memory, with many queries | 15.9 and 21.4 bits; 10 and 13 lines per call |
//! | [guarded epochs](crate::family::slices::shape), blocks | between speed and memory | 17.2 and 25.9 bits; 1 and 6 lines |
//! | [both in lines](crate::family::lines::shape) | the highest speed | 21.1 and 27.3 bits, guarded epochs 18.0 and 27.9; 1 or 2 lines per call |
//! | [aged cuckoo](crate::family::aged_cuckoo) | speed, little slack, many repeats, ages, any rate of keys | 23.3 and 26.6 bits per *distinct* key at a slack of 1/64; 2 lines per call |
//! | [timing](crate::family::timing::shape) | a sharp end of the window | 28.8 and 43.1 bits, 53 and 80 at a slack of 7 %, 205 and 307 at none; 7 lines at 1 % |
//! | [time-limited](crate::family::time_limited::shape) | an unknown rate of keys | 21.7 and 30.0 bits per key that came; 10 and 14 lines per insertion, more while the rate rises |
//! | [SWAMP](crate::family::swamp::shape) | keys leave at once and are counted | 41.8 and 48.5 bits; 1 or 2 lines per call, 1 for the key that leaves |
//! | [fingerprint buffer](crate::family::baselines::fingerprint_buffer::shape) | keys leave at once, small windows | 27 and 30 bits; a query searches the window |
//! | [counting](crate::family::baselines::counting::shape) | a window exact to one insertion | 106 bits at 1 %, of which 64 for a queue of all keys; false positives stay where keys come 15 times |
//! | [stable](crate::family::baselines::stable::shape) | comparison | no guarantee: keys of the window are forgotten at random |
//! | [Bloom](crate::family::bloom::shape) | a stream that ends: nothing is forgotten | 10.5 and 17.3 bits per key of the stream; 4 and 5 lines |
//! | [generalized](crate::family::baselines::generalized::shape) | each query has a window of its own | 226 and 472 bits if a tenth of the oldest keys may be missed; no guarantee; 7 and 10 lines |
//!
//! # Structure
//!
//! Data flows in one direction:
//!
//! ```text
//! key ──▶ u64 hash ── engine ──▶ layout (cells) ──▶ answers
//!                       ▲            │
//!   clock ─ generation ─┘            └─ evidence ── inference ──▶ posterior ── decision
//! ```
//!
//! - [`crate::key`] hashes a key to 64 bits.
//! - [`crate::family`] computes what a filter guarantees and costs before a bit is allocated.
//! - [`crate::family`] defines where bits lie in [`crate::memory`], and what a rotation does.
//! - [`crate::clock`] turns insertions or times into generations.
//! - [`crate::engine`] runs batches of hashes over a layout. Words and clock are all the state of a filter.
//! - [`crate::family`] joins a shape and an engine. Its table of families has one row per kind.
//! - [`crate::concurrent`] is the filter that threads share.
//! - [`crate::inference`] computes probabilities from the evidence in the cells.
//! - [`mod@crate::format`] saves filters. [`crate::shard`] is the part of a filter at one site.
//! - [`crate::family::exact`] is the window without false positives, to which all filters are compared.
//!
//! The public API is `api`: thin types over these modules.
//!
//! ```
//! use lately::clock::{Moments, Window};
//! use lately::engine::Refresh;
//! use lately::family::slices::shape::{Paper, choose};
//! use lately::family::{AnyFilter, Budget};
//! use lately::key::KeyHasher;
//!
//! let window = Window::Count { insertions: 1_000_000 };
//! let shape = choose(window, Budget::Rate(0.01), None, Some(512), Paper::AgePartitioned)?;
//! let mut filter = AnyFilter::new(shape, window, 0)?;
//!
//! let hasher = KeyHasher::of(filter.seed());
//! let keys = ["a", "b", "a"].map(|key| hasher.text(key));
//! let mut seen = [false; 3];
//! filter.engine_mut().duplicated(&keys, Moments::Untimed, Refresh::Always, &mut seen)?;
//! assert_eq!(seen, [false, false, true]);
//!
//! assert!(shape.bits_per_key(1_000_000) < 18.9);
//! assert!(filter.fpr() <= 0.01);
//! # Ok::<(), lately::Error>(())
//! ```
