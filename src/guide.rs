//! The families and how the crate is built, for maintainers.
//!
//! # Which filter?
//!
//! | filter | take it when | costs |
//! |---|---|---|
//! | [Age-partitioned](crate::shape::ring), blocked | speed counts | 18.8 bits per key at 1 %, 28.7 at 0.1 %; 1 cache line per insertion, 3 per query |
//! | [Age-partitioned](crate::shape::ring), plain | old keys should fade smoothly | 23.5 and 31.0 bits; 5 and 15 lines at 1 % |
//! | [Guarded epochs](crate::shape::ring), plain | memory counts | 15.9 and 21.3 bits; at 1 % 9 lines per insertion, 30 per query |
//! | [Guarded epochs](crate::shape::transposed), transposed | memory counts, and queries are many | 15.9 and 21.4 bits; 10 lines per call, and 13 |
//! | [Guarded epochs](crate::shape::ring), blocked | both count a little | 17.2 and 25.9 bits; 1 and 6 lines |
//! | [Either in lines](crate::shape::line) | speed is all | 21.1 and 27.3 bits, by guarded epochs 18.0 and 27.9; a cache line per call, or two |
//! | [Aged quotient](crate::shape::quotient) | memory counts most, or repeats are many, or ages are asked for | 15.1 and 19.6 bits per *distinct* key, 17 and 22 with a headroom of a tenth; a cache line per call; false positives at once where there are more keys than planned |
//! | [Timing](crate::shape::timing) | the window should be sharp | 28.8 and 43.1 bits, 53 and 80 for a slack of 7 %, 205 and 307 for none; 7 lines at 1 % |
//! | [Timing in lines](crate::shape::timing::line) | the same, and speed | 30.8 and 50.7 bits, 63 and 116 for a slack of 7 %; a cache line per call, or two |
//! | [Time-limited](crate::shape::time_limited) | nobody knows how many keys a span of time will hold | 21.7 bits per key that came at 1 %, 30.0 at 0.1 %; 10 and 14 lines per insertion, more of all while the rate rises |
//! | [SWAMP](crate::shape::swamp) | keys must leave at once, or be counted | 41.8 and 48.5 bits; a cache line or two per call and one for the key that leaves |
//! | [Fingerprint buffer](crate::shape::fingerprint_buffer) | the same in the least memory, for a small window | 27 and 30 bits; a query searches the window |
//! | [Counting](crate::shape::counting) | the window has to be exact to one insertion | 106 bits at 1 %, 64 of them for a queue of all keys; false positives that stay where keys come 15 times |
//! | [Stable](crate::shape::stable) | to compare with | no promise: keys of the window are forgotten at random |
//! | [Bloom](crate::shape::bloom) | the stream ends: nothing is ever forgotten | 10.5 and 17.3 bits per key of all; 4 and 5 lines |
//! | [Generalized](crate::shape::generalized) | the window is asked for by the query | 226 and 472 bits for one key in ten of the oldest missed, no promise; 7 and 10 lines |
//!
//! (Windows of a million keys. Keys are forgotten at most half a window late, with guarded epochs a fifth.)
//!
//! ```
//! use lately::clock::{Moments, Window};
//! use lately::engine::Refresh;
//! use lately::filter::Filter;
//! use lately::key::KeyHasher;
//! use lately::shape::Budget;
//! use lately::shape::ring::{Paper, choose};
//!
//! let window = Window::Count { insertions: 1_000_000 };
//! let shape = choose(window, Budget::Rate(0.01), None, Some(512), Paper::AgePartitioned)?;
//! let mut filter = Filter::new(shape, window, 0)?;
//!
//! let hasher = KeyHasher::new(filter.seed());
//! let keys = ["a", "b", "a"].map(|key| hasher.text(key));
//! let mut seen = [false; 3];
//! filter.engine_mut().duplicated(&keys, Moments::Untimed, Refresh::Always, &mut seen)?;
//! assert_eq!(seen, [false, false, true]);
//!
//! assert!(shape.bits_per_key(1_000_000) < 18.9);
//! assert!(filter.fpr() <= 0.01);
//! # Ok::<(), lately::Error>(())
//! ```
//!
//! # How it is built
//!
//! Data runs in one direction: a key becomes a 64-bit hash ([`crate::key`]), the [`engine`] takes batches of hashes through a
//! filter's cells (in [`memory`], by the [`layout`] of its family), and the [`clock`] tells which generation of cells
//! is open. A [`shape`] knows what a filter promises before a bit is allocated. A [`filter`] is a shape and an engine;
//! its table of families says which there are. [`inference`] turns what the cells say of a key into probabilities of
//! its age, [`posteriors`] asks it of an engine, and a [`prior`] is what is known beforehand. [`mod@format`] is how a
//! filter is saved, and a [`shard`] is the part of one that lies at a site.
//! No filter, but the measure of them all, is the [`exact`] window.
