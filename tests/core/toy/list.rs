//! A list of the hashes of the last W insertions: its shape, its cells and its row.

use lately::Error;
use lately::clock::{BY_INSERTION, Window};
use lately::engine::Aged;
use lately::family::request::Layout as LayoutName;
use lately::family::row::{Family, Row, Windows, form, is, of, shared};
use lately::family::{CacheLines, Layout, Parameters, Shape, fill};
use lately::memory::prefetch::Address;

/// How lists are planned, read and built.
pub static LIST: Family = Family {
    name: "list",
    class: "List",
    windows: Windows::Insertions,
    promises: true,
    rows: &[Row {
        layout: LayoutName::Sliced,
        variants: &[],
        forms: &[form(999, &["places"])],
        owns: is::<List>,
        read: |parameters| shared(List::read(parameters)),
        plan: |request| shared(Ok(List { places: request.window.capacity() })),
        engine: |shape, clock, _, words| Ok(Aged::boxed(*of::<List>(shape), words, clock)),
    }],
};

/// A list of W places, a word for each hash.
#[derive(Debug, Clone, Copy)]
pub struct List {
    pub places: u64,
}

impl List {
    fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        Ok(Self { places: parameters.read_u64("places")? })
    }
}

impl Shape for List {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("places", self.places)]
    }

    /// Returns that each generation is an insertion.
    fn retained(&self) -> u32 {
        BY_INSERTION
    }

    fn bytes(&self, _: Window) -> u64 {
        8 * self.places
    }

    fn fpr(&self, _: Window) -> f64 {
        fill::same_hash(self.places)
    }

    fn cache_lines(&self, _: Window) -> CacheLines {
        let all = self.places.div_ceil(8) as f64;
        CacheLines { insert: 1.0, hit: all / 2.0, miss: all }
    }
}

impl Layout for List {
    /// The place of the open generation.
    type Rotation = usize;

    fn generations(&self) -> u64 {
        self.places
    }

    fn rotation(&self, generation: i64, _: u64) -> usize {
        generation.rem_euclid(self.places as i64) as usize
    }

    fn prefetch_query(&self, _: Address, _: u64) {}

    fn insert(&self, words: &mut [u64], newest: usize, hash: u64) {
        words[newest] = hash.max(1);
    }

    fn contains(&self, words: &[u64], _: usize, hash: u64) -> bool {
        words.contains(&hash.max(1))
    }

    fn fill(&self, words: &[u64], _: usize) -> Vec<f64> {
        vec![words.iter().filter(|&&word| word != 0).count() as f64 / words.len() as f64]
    }

    fn match_rates(&self, _: &[u64], _: usize) -> Vec<f64> {
        vec![fill::same_hash(self.places)]
    }
}
