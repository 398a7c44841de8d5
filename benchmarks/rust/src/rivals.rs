//! What Rust users take today, behind one trait.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use cuckoo_clock::CuckooFilter;
use cuckoo_clock::config::{CuckooConfiguration, TtlConfig};
use dashmap::DashMap;
use fastbloom::{AtomicBloomFilter, BloomFilter};
use lately::{ConcurrentFilter, Filter, Hashed, Key, KeyHasher, Prefer, Window};

/// A key of the benchmark.
pub trait Item: Key + Hash + Eq + Clone + Send + Sync + 'static {
    /// The key number `i`.
    fn number(i: u64) -> Self;

    /// The hash, where it is known beforehand.
    fn ready(&self) -> Option<u64> {
        None
    }
}

fn mix(i: u64) -> u64 {
    let z = (i ^ i >> 30).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A hash that the caller has.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ready(u64);

impl Key for Ready {
    fn to_hash(&self, hasher: &KeyHasher) -> u64 {
        Hashed(self.0).to_hash(hasher)
    }
}

impl Item for Ready {
    fn number(i: u64) -> Self {
        Self(mix(i))
    }

    fn ready(&self) -> Option<u64> {
        Some(self.0)
    }
}

impl Item for u64 {
    fn number(i: u64) -> Self {
        i
    }
}

impl Item for String {
    fn number(i: u64) -> Self {
        format!("{i:040}")
    }
}

/// A set of keys seen lately, for threads that share it.
pub trait Rival<K>: Sync {
    /// Whether the key was there; inserts it if not.
    fn seen(&self, key: &K) -> bool;

    /// Whether the key is there.
    fn contains(&self, key: &K) -> bool;

    /// Does what it does in the background.
    fn settle(&self) {}

    /// Bytes that it states itself, where the system and not the allocator gives them.
    fn nbytes(&self) -> usize {
        0
    }
}

impl<K: Item> Rival<K> for ConcurrentFilter {
    fn seen(&self, key: &K) -> bool {
        ConcurrentFilter::seen(self, key)
    }

    fn contains(&self, key: &K) -> bool {
        ConcurrentFilter::contains(self, key)
    }
}

impl<K: Item> Rival<K> for Mutex<Filter> {
    fn seen(&self, key: &K) -> bool {
        self.lock().unwrap().seen(key)
    }

    fn contains(&self, key: &K) -> bool {
        self.lock().unwrap().contains(key)
    }

    fn nbytes(&self) -> usize {
        self.lock().unwrap().nbytes()
    }
}

/// Two Bloom filters in turn behind a lock, as in quinn's `BloomTokenLog`.
struct TwoBlooms {
    current: BloomFilter,
    last: BloomFilter,
    taken: u64,
    window: u64,
}

fn add<K: Item>(bloom: &mut BloomFilter, key: &K) -> bool {
    match key.ready() {
        Some(hash) => bloom.insert_hash(hash),
        None => bloom.insert(key),
    }
}

fn has<K: Item>(bloom: &BloomFilter, key: &K) -> bool {
    key.ready().map_or_else(|| bloom.contains(key), |hash| bloom.contains_hash(hash))
}

impl<K: Item> Rival<K> for Mutex<TwoBlooms> {
    fn seen(&self, key: &K) -> bool {
        let this = &mut *self.lock().unwrap();
        if has(&this.last, key) || add(&mut this.current, key) {
            return true;
        }
        this.taken += 1;
        if this.taken == this.window {
            std::mem::swap(&mut this.current, &mut this.last);
            this.current.clear();
            this.taken = 0;
        }
        false
    }

    fn contains(&self, key: &K) -> bool {
        let this = self.lock().unwrap();
        has(&this.current, key) || has(&this.last, key)
    }
}

/// A Bloom filter that never forgets.
impl<K: Item> Rival<K> for AtomicBloomFilter {
    fn seen(&self, key: &K) -> bool {
        key.ready().map_or_else(|| self.insert(key), |hash| self.insert_hash(hash))
    }

    fn contains(&self, key: &K) -> bool {
        key.ready().map_or_else(|| self.contains(key), |hash| self.contains_hash(hash))
    }
}

impl<K: Item> Rival<K> for Mutex<(HashSet<K>, VecDeque<K>, usize)> {
    fn seen(&self, key: &K) -> bool {
        let (set, order, window) = &mut *self.lock().unwrap();
        if !set.insert(key.clone()) {
            return true;
        }
        order.push_back(key.clone());
        if order.len() > *window {
            if let Some(oldest) = order.pop_front() {
                set.remove(&oldest);
            }
        }
        false
    }

    fn contains(&self, key: &K) -> bool {
        self.lock().unwrap().0.contains(key)
    }
}

/// A map of keys to their numbers, from which old keys are purged once a window.
struct Numbered<K> {
    map: DashMap<K, u64>,
    taken: AtomicU64,
    window: u64,
}

impl<K: Item> Rival<K> for Numbered<K> {
    fn seen(&self, key: &K) -> bool {
        let now = self.taken.load(Relaxed);
        match self.map.entry(key.clone()) {
            dashmap::Entry::Occupied(entry) if now - entry.get().min(&now) < self.window => return true,
            dashmap::Entry::Occupied(mut entry) => drop(entry.insert(now)),
            dashmap::Entry::Vacant(entry) => drop(entry.insert(now)),
        }
        if self.taken.fetch_add(1, Relaxed) % self.window == self.window - 1 {
            self.map.retain(|_, &mut number| now - number.min(now) < self.window);
        }
        false
    }

    fn contains(&self, key: &K) -> bool {
        self.map.get(key).is_some_and(|number| self.taken.load(Relaxed) - *number <= self.window)
    }
}

impl<K: Item> Rival<K> for moka::sync::Cache<K, ()> {
    fn seen(&self, key: &K) -> bool {
        !self.entry_by_ref(key).or_insert(()).is_fresh()
    }

    fn contains(&self, key: &K) -> bool {
        self.contains_key(key)
    }

    fn settle(&self) {
        self.run_pending_tasks();
    }
}

/// A cuckoo filter whose entries age by a scan, ten times per window.
struct Scanned {
    cuckoo: CuckooFilter<std::hash::RandomState>,
    taken: AtomicU64,
    step: u64,
}

impl<K: Item> Rival<K> for Scanned {
    fn seen(&self, key: &K) -> bool {
        // There is no one call for both: threads may race here.
        let there = self.cuckoo.contains(key);
        if !there {
            let _evicted = self.cuckoo.insert_if_not_present(key);
            if self.taken.fetch_add(1, Relaxed) % self.step == self.step - 1 {
                self.cuckoo.scan_and_update_full();
            }
        }
        there
    }

    fn contains(&self, key: &K) -> bool {
        self.cuckoo.contains(key)
    }
}

/// The name of the concurrent filter.
pub const OURS: &str = "lately::ConcurrentFilter";
/// The name of two Bloom filters in turn.
pub const TWO: &str = "two fastblooms, Mutex";
/// The name of the Bloom filter that threads share.
pub const ATOMIC: &str = "fastbloom atomic, no window";

/// A rival by its name, made when it is measured.
pub type Make<K> = (&'static str, Box<dyn Fn() -> Box<dyn Rival<K>>>);

/// Returns all rivals for a window of keys at a rate of false positives.
pub fn all<K: Item>(window: u64, fpr: f64) -> Vec<Make<K>> {
    let items = window as usize;
    // Two in turn hold up to two windows, so each has half of the rate.
    let bloom = move || BloomFilter::with_false_pos(fpr / 2.0).expected_items(items);
    let filter = move || Filter::builder(Window::last(window)).fpr(fpr);
    let moka = move || {
        let hour = Duration::from_secs(3600);
        moka::sync::Cache::<K, ()>::builder().max_capacity(window).time_to_live(hour)
    };
    vec![
        (OURS, Box::new(move || Box::new(ConcurrentFilter::builder(Window::last(window)).fpr(fpr).build().unwrap()))),
        (
            "Mutex<lately::Filter>, Speed",
            Box::new(move || Box::new(Mutex::new(filter().prefer(Prefer::Speed).build().unwrap()))),
        ),
        ("Mutex<lately::Filter>", Box::new(move || Box::new(Mutex::new(filter().build().unwrap())))),
        (TWO, Box::new(move || Box::new(Mutex::new(TwoBlooms { current: bloom(), last: bloom(), taken: 0, window })))),
        (ATOMIC, Box::new(move || Box::new(AtomicBloomFilter::with_false_pos(fpr).expected_items(items)))),
        (
            "Mutex<(HashSet, VecDeque)>",
            Box::new(move || Box::new(Mutex::new((HashSet::<K>::new(), VecDeque::<K>::new(), items)))),
        ),
        (
            "dashmap, purged",
            Box::new(move || Box::new(Numbered { map: DashMap::<K, u64>::new(), taken: AtomicU64::new(0), window })),
        ),
        ("moka, time_to_live", Box::new(move || Box::new(moka().build()))),
        (
            "moka, time_to_live, lru",
            Box::new(move || Box::new(moka().eviction_policy(moka::policy::EvictionPolicy::lru()).build())),
        ),
        (
            "cuckoo-clock, ttl",
            Box::new(move || {
                let ttl = TtlConfig { ttl: 11.try_into().unwrap(), ttl_bits: 4.try_into().unwrap() };
                let built = CuckooConfiguration::builder(items + items / 5).with_ttl(ttl).build().unwrap();
                Box::new(Scanned {
                    cuckoo: CuckooFilter::new_random(built),
                    taken: AtomicU64::new(0),
                    step: window / 10,
                })
            }),
        ),
    ]
}
