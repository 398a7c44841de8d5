//! The shape of an aged quotient filter: its costs and promises. Its lines are described in the
//! [layout](crate::layout::quotient).
//!
//! A filter of P pages of L lines has P L B 2^F locations: a fresh key is reported by chance when the location of its
//! hash has an entry. An entry keeps its location, that is its home line, bucket and fingerprint, wherever in the page
//! it is stored, so the chance is the number of entries over the number of locations, exactly. A page has the distinct
//! keys of r full epochs and of the share of one that has passed since its rotation. Rotations are staggered over the
//! pages, so the mean over the phases is that of every moment.
//!
//! The rate also includes keys for which a page has no room. It has slots for L S entries and fingerprints for 15 more.
//! Keys fall into pages at random. A page whose entries are more than that at its fullest, just before a rotation,
//! reports every key of lines that rejected a key, until the tag of that time expires. With p the chance of one such
//! peak, at most 2^T p of the pages do at any time, since 2^T peaks can still be felt. In simulations of all formats
//! from 15 to 30 bits per key, with up to 1 % of the pages rejecting keys, 28 to 40 % of the lines of such a page did;
//! the formula assumes 1/2.
//!
//! Tags may be finer than the rotations of pages. All pages then begin an epoch together, r are retained, and a page
//! rotates once in m of them: at its fullest it has the keys of r + m, of which those of r + 1 count.

mod choose;
mod line;

pub use choose::{choose, fine_epochs};
pub use line::{LineFormat, line_of};

use std::ops::RangeInclusive;

use crate::Error;
use crate::clock::Window;
use crate::family::search::bisection;
use crate::family::{CacheLines, Parameters, fill};

/// Number of lines of entries in a page of 8 KiB, the largest, whose first line is the overflow line.
pub const MAX_LINES: u32 = 127;
/// Number of lines of entries in a page of 4 KiB. Pages of more lines are *large*: they can be fuller, and have more
/// eviction buckets.
pub const LINES_OF_SMALL: u32 = 63;
/// Number of lines of entries in the smallest page: entries that move need another line.
pub const MIN_LINES: u32 = 3;
/// Factor by which a filter is planned for more keys than the user expects, which is a guess. A full page has no room
/// for one more key: with 5 % more keys than planned for, a rate of 1 % becomes 17 %, and with 10 % more 95 %.
pub const HEADROOM: f64 = 1.1;
/// Number of bytes of a line.
pub const LINE_BYTES: u64 = 64;
/// Number of fingerprints in the overflow line of a page.
pub const OVERFLOW_SLOTS: u32 = 15;
/// Numbers of bits that a fingerprint may have.
pub const FINGERPRINT_BITS: RangeInclusive<u32> = 5..=20;
/// Numbers of bits that a tag may have, if every epoch begins with a rotation.
pub const TAG_BITS: RangeInclusive<u32> = 3..=8;
/// Greatest number of bits of a fingerprint and a tag together.
pub const MAX_BITS: u32 = 24;
/// Numbers of bits that a tag may have, if it is finer than rotations.
pub const FINE_TAG_BITS: RangeInclusive<u32> = 4..=12;
/// Greatest number of bits of a fingerprint and a fine tag together.
pub const MAX_FINE_BITS: u32 = 28;
/// Greatest number of bits of a fingerprint, a tag and a count together.
pub const MAX_VALUE_BITS: u32 = 32;
/// Numbers of bits that a count may have.
pub const COUNT_BITS: RangeInclusive<u32> = 1..=8;
/// Largest mean share of its slots that a page is planned to use just before a rotation. Fuller pages move more
/// entries, and insertions take several times as long.
pub const MAX_LOAD: f64 = 0.95;
/// The greatest share of filters whose rate exceeds twice [the planned one](QuotientShape::planned_rate) at some moment
/// of a window.
pub const EXCEPTIONS: f64 = 1e-6;

/// The shape of an aged quotient filter: everything that determines its size and its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotientShape {
    /// F: number of bits of a fingerprint.
    pub fingerprint_bits: u32,
    /// T: number of bits of a tag.
    pub tag_bits: u32,
    /// P: number of pages, which rotate one after the other.
    pub pages: u64,
    /// L: number of lines of entries in a page: 127 in a large one, 63 in others, fewer if there are few pages.
    pub lines: u32,
    /// Distinct keys that a window of insertions is planned for; `None` if all keys are distinct. A window of time has
    /// its capacity.
    pub distinct: Option<u64>,
    /// Whether the pages double while more keys come than planned for.
    pub grow: bool,
    /// C: number of bits of a count, or 0 in a filter that does not count.
    pub count_bits: u32,
    /// r: number of retained epochs, in a filter whose tags are finer than its rotations. In others it is 2^T - 1.
    pub epochs: Option<u32>,
}

impl QuotientShape {
    /// Creates the shape of a filter whose parameters are in range.
    pub fn new(
        fingerprint_bits: u32,
        tag_bits: u32,
        pages: u64,
        lines: u32,
        distinct: Option<u64>,
    ) -> Result<Self, Error> {
        Self { fingerprint_bits, tag_bits, pages, lines, distinct, grow: false, count_bits: 0, epochs: None }.checked()
    }

    /// Rejects parameters that no line can have.
    fn checked(self) -> Result<Self, Error> {
        let out_of_range = |name: &str, least: u64, most: u64, value: u64| {
            Err(Error::value(format!("{name} must lie in {least}..={most}, got {value}")))
        };
        let Self { fingerprint_bits: f, tag_bits: t, pages, lines, .. } = self;
        let (tags, most_bits) =
            if self.epochs.is_some() { (FINE_TAG_BITS, MAX_FINE_BITS) } else { (TAG_BITS, MAX_BITS) };
        if !tags.contains(&t) {
            return out_of_range("tag_bits", (*tags.start()).into(), (*tags.end()).into(), t.into());
        }
        let most_bits = most_bits.min(MAX_VALUE_BITS - self.count_bits);
        if !FINGERPRINT_BITS.contains(&f) || f + t > most_bits {
            let most = u32::min(*FINGERPRINT_BITS.end(), most_bits - t);
            return out_of_range("fingerprint_bits", (*FINGERPRINT_BITS.start()).into(), most.into(), f.into());
        }
        let most_epochs = (1 << t) - 1;
        if let Some(epochs) = self.epochs
            && !(1..=most_epochs).contains(&epochs)
        {
            return out_of_range("epochs", 1, most_epochs.into(), epochs.into());
        }
        let most_pages = self.most_pages();
        if !(1..=most_pages).contains(&pages) {
            return out_of_range("pages", 1, most_pages, pages);
        }
        if !(MIN_LINES..=MAX_LINES).contains(&lines) {
            return out_of_range("lines", MIN_LINES.into(), MAX_LINES.into(), lines.into());
        }
        Ok(self)
    }

    /// Creates the shape of a filter whose tags are finer than rotations, with `epochs` retained epochs.
    pub fn fine(
        fingerprint_bits: u32,
        tag_bits: u32,
        pages: u64,
        lines: u32,
        distinct: Option<u64>,
        epochs: u32,
    ) -> Result<Self, Error> {
        let epochs = Some(epochs);
        Self { fingerprint_bits, tag_bits, pages, lines, distinct, grow: false, count_bits: 0, epochs }.checked()
    }

    /// Reads a shape from parameters; one of fine tags if `epochs` is given.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let given = |name| parameters.get(name).map(|_| parameters.read_u32(name)).transpose();
        let (fingerprint_bits, tag_bits) = (parameters.read_u32("fingerprint_bits")?, parameters.read_u32("tag_bits")?);
        let (pages, lines) = (parameters.read_u64("pages")?, parameters.read_u32("lines")?);
        let (distinct, epochs) = (parameters.get("distinct"), given("epochs")?);
        let shape = Self { fingerprint_bits, tag_bits, pages, lines, distinct, grow: false, count_bits: 0, epochs }
            .checked()?;
        given("count_bits")?.map_or(Ok(shape), |count_bits| shape.counting(count_bits))
    }

    /// Returns this shape with counts of how often keys come.
    pub fn counting(self, count_bits: u32) -> Result<Self, Error> {
        check_count_bits(count_bits)?;
        Self { count_bits, ..self }.checked()
    }

    /// Returns this shape as one that grows.
    pub fn growing(self) -> Self {
        Self { grow: true, ..self }
    }

    /// Returns the format of the lines.
    pub fn line(&self) -> LineFormat {
        line_of(self.fingerprint_bits, self.tag_bits, self.count_bits, self.large())
    }

    /// Returns whether the pages have more lines than one of 4 KiB.
    pub fn large(&self) -> bool {
        self.lines > LINES_OF_SMALL
    }

    /// Returns r, the number of full epochs retained.
    pub fn full_epochs(&self) -> u32 {
        self.epochs.unwrap_or((1 << self.tag_bits) - 1)
    }

    /// Returns m as a power of two, where m is the epochs from one rotation of a page to the next. It is the largest
    /// that is an eighth of the retained epochs at most, and for which there are tags enough.
    pub fn epochs_per_rotation_log2(&self) -> u32 {
        self.epochs.map_or(0, |epochs| u32::min(epochs / 8, (1 << self.tag_bits) - epochs).max(1).ilog2())
    }

    /// Returns m, the number of epochs from one rotation of a page to the next.
    fn epochs_per_rotation(&self) -> u32 {
        1 << self.epochs_per_rotation_log2()
    }

    /// Returns the generations of the clock in an epoch: one, or a step for each page to rotate in.
    pub fn steps(&self) -> u32 {
        if self.epochs.is_some() { 1 } else { self.pages as u32 }
    }

    /// Returns the most pages: a clock numbers the steps in which they rotate through all tags by 32 bits.
    fn most_pages(&self) -> u64 {
        u64::from(u32::MAX >> if self.epochs.is_some() { *TAG_BITS.start() } else { self.tag_bits })
    }

    /// Returns the bytes of all pages.
    pub fn nbytes(&self) -> u64 {
        self.pages * u64::from(self.lines + 1) * LINE_BYTES
    }

    /// Returns the generations of the clock that are retained: the steps of r epochs.
    pub fn retained(&self) -> u32 {
        self.full_epochs() * self.steps()
    }

    /// Returns how long after leaving the window a key may still be remembered: insertions, or nanoseconds.
    pub fn slack(&self, window: Window) -> u64 {
        window.slack(self.retained(), self.steps())
    }

    /// Returns the distinct keys of an epoch: those planned for, and the headroom.
    pub fn keys_per_epoch(&self, window: Window) -> f64 {
        let keys = window.keys_in(self.retained(), self.steps()) as f64;
        match (window, self.distinct) {
            (Window::Count { .. }, None) => keys,
            (Window::Count { insertions }, Some(distinct)) => {
                keys * (HEADROOM * distinct as f64 / insertions as f64).min(1.0)
            }
            (Window::Time { .. }, _) => keys * HEADROOM,
        }
    }

    /// Returns the mean number of distinct keys remembered, over the pages: those of r epochs, and half of one except
    /// for the step that counts as full.
    pub fn remembered(&self, keys_per_epoch: f64) -> f64 {
        keys_per_epoch * (f64::from(self.full_epochs()) + 0.5 + 0.5 / f64::from(self.steps()))
    }

    /// Returns the mean number of distinct keys that have entries, over the pages: also those that the next rotation
    /// removes.
    pub fn stored(&self, keys_per_epoch: f64) -> f64 {
        self.remembered(keys_per_epoch) + 0.5 * keys_per_epoch * f64::from(self.epochs_per_rotation() - 1)
    }

    /// Returns the number of distinct keys that have entries in a page just before it rotates, over all pages.
    fn most_stored(&self, keys_per_epoch: f64) -> f64 {
        keys_per_epoch * f64::from(self.full_epochs() + self.epochs_per_rotation())
    }

    /// Returns the number of slots of a page.
    fn slots(&self) -> u32 {
        self.lines * self.line().slots
    }

    /// Returns the mean share of its slots that a page uses just before a rotation.
    pub fn load(&self, keys_per_epoch: f64) -> f64 {
        self.most_stored(keys_per_epoch) / (self.pages as f64 * f64::from(self.slots()))
    }

    /// Returns the probability that a key never inserted is reported, in the mean over filters.
    pub fn false_positive_rate(&self, keys_per_epoch: f64) -> f64 {
        let rate = (self.of_entries(keys_per_epoch) + self.rejected_rate(keys_per_epoch)).min(1.0);
        fill::or_same_hash(rate, self.most_stored(keys_per_epoch) as u64)
    }

    /// Returns the rate that a filter is planned by: the [mean](Self::false_positive_rate), or half of the highest rate
    /// that only [one filter in a million](EXCEPTIONS) exceeds at some moment of a window, if that is more.
    pub fn planned_rate(&self, keys_per_epoch: f64) -> f64 {
        let crowded = self.most_crowded(keys_per_epoch) as f64 / self.pages as f64;
        let highest = (self.of_entries(keys_per_epoch) + crowded).min(1.0);
        self.false_positive_rate(keys_per_epoch).max(0.5 * highest)
    }

    /// Returns the probability that a key never inserted has the location of an entry.
    fn of_entries(&self, keys_per_epoch: f64) -> f64 {
        let locations =
            self.pages as f64 * f64::from(self.lines * self.line().buckets) * 2_f64.powi(self.fingerprint_bits as i32);
        self.remembered(keys_per_epoch) / locations
    }

    /// Returns how many pages at once, of a window, reject keys: only [one filter in a million](EXCEPTIONS) has more.
    ///
    /// A page rejects keys when it has more of them just before a rotation than slots. The fingerprints of the overflow
    /// line are left out, because lines may be full before their page is: of pages with as many keys as slots up to one
    /// in five rejected a key, with 15 slots to spare one in 600. What happened in the window before is still felt, so
    /// two windows of peaks count. A whole page is then taken to report every key. In simulations two fifths of its
    /// lines did, nine tenths at most.
    fn most_crowded(&self, keys_per_epoch: f64) -> u64 {
        if self.load(keys_per_epoch) > MAX_LOAD {
            return self.pages;
        }
        let peak = more_than(self.slots().into(), self.most_stored(keys_per_epoch), 1.0 / self.pages as f64);
        let crowded = 2.0 * self.peaks() * self.pages as f64 * peak;
        let rare = |pages: u64| pages >= self.pages || poisson_above(crowded, pages) <= EXCEPTIONS;
        if rare(0) { 0 } else { bisection(0, self.pages, rare) }
    }

    /// Returns how often a page is at its fullest while a key is remembered.
    fn peaks(&self) -> f64 {
        f64::from(self.full_epochs()) / f64::from(self.epochs_per_rotation()) + 1.0
    }

    /// Returns a bound for the share of lines that may have rejected keys within the retained epochs: the keys of a
    /// page are binomial.
    fn rejected_rate(&self, keys_per_epoch: f64) -> f64 {
        if self.load(keys_per_epoch) > MAX_LOAD {
            return 1.0;
        }
        let room = f64::from(self.slots() + OVERFLOW_SLOTS);
        (0.5 * self.peaks() * more_than(room, self.most_stored(keys_per_epoch), 1.0 / self.pages as f64)).min(1.0)
    }
}

impl crate::family::Shape for QuotientShape {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let mut parameters = vec![
            ("fingerprint_bits", self.fingerprint_bits.into()),
            ("tag_bits", self.tag_bits.into()),
            ("pages", self.pages),
            ("lines", self.lines.into()),
            ("distinct", self.distinct.unwrap_or(0)),
        ];
        if self.count_bits > 0 || self.epochs.is_some() {
            parameters.push(("count_bits", self.count_bits.into()));
        }
        parameters.extend(self.epochs.map(|epochs| ("epochs", epochs.into())));
        parameters.extend(self.grow.then_some(("grow", 1)));
        parameters
    }

    fn check(&self, window: Window) -> Result<(), Error> {
        if let (true, Window::Count { .. }, None) = (self.grow, window, self.distinct) {
            return Err(Error::value(
                "grow needs a window of time, or distinct: a window of insertions never holds more keys than it has \
                 insertions",
            ));
        }
        check_distinct(window.check()?, self.distinct)
    }

    fn retained(&self) -> u32 {
        self.retained()
    }

    fn bytes(&self, _: Window) -> u64 {
        self.nbytes()
    }

    fn grows(&self) -> bool {
        self.grow
    }

    /// Returns the [planned rate](Self::planned_rate).
    fn fpr(&self, window: Window) -> f64 {
        self.planned_rate(self.keys_per_epoch(window))
    }

    fn slack(&self, window: Window) -> u64 {
        self.slack(window)
    }

    /// Returns half of an epoch in expectation, beyond the keys of the window.
    fn npws(&self, window: Window) -> f64 {
        window.npws(self.retained(), 0.5 * (f64::from(self.steps()) + 1.0))
    }

    /// Returns the line of a key, and the second line that one call in twelve reads (one in twenty to one in seven,
    /// measured); for an insertion also its share of the pages that rotate.
    fn cache_lines(&self, window: Window) -> CacheLines {
        let (read, lines) = (1.0 + 1.0 / 12.0, (self.nbytes() / LINE_BYTES) as f64);
        let of_rotation = self.keys_per_epoch(window) * f64::from(self.epochs_per_rotation());
        CacheLines { insert: read + lines / of_rotation, hit: read, miss: read }
    }
}

/// Rejects a number of bits that a count cannot have.
fn check_count_bits(count_bits: u32) -> Result<(), Error> {
    let (least, most) = (COUNT_BITS.start(), COUNT_BITS.end());
    let sound = COUNT_BITS.contains(&count_bits);
    let error = || Error::value(format!("the bits of a count must lie in {least}..={most}, got {count_bits}"));
    if sound { Ok(()) } else { Err(error()) }
}

/// Rejects a number of distinct keys that a window cannot have.
fn check_distinct(window: Window, distinct: Option<u64>) -> Result<(), Error> {
    match (window, distinct) {
        (_, None) => Ok(()),
        (Window::Count { insertions }, Some(distinct)) if (1..=insertions).contains(&distinct) => Ok(()),
        (Window::Count { insertions }, Some(distinct)) => {
            Err(Error::value(format!("distinct must lie in 1..={insertions} for this window, got {distinct}")))
        }
        (Window::Time { .. }, Some(_)) => {
            Err(Error::value("distinct is for windows of insertions; the capacity of one of time counts distinct keys"))
        }
    }
}

/// Returns an upper bound for the chance that more than `room` of the keys are chosen, each with this chance: the
/// probability of the first number that is too many, by Stirling's formula, over 1 less the ratio to that of the next.
fn more_than(room: f64, keys: f64, chance: f64) -> f64 {
    let share = (room + 1.0) / keys;
    if share <= chance {
        return 1.0;
    }
    if share >= 1.0 {
        return 0.0;
    }
    let (rest, other) = (1.0 - share, 1.0 - chance);
    let divergence = share * (share / chance).ln() + rest * (rest / other).ln();
    let first = (-keys * divergence).exp() / (std::f64::consts::TAU * keys * share * rest).sqrt();
    (first / (1.0 - rest * chance / (share * other))).min(1.0)
}

/// Returns a bound for the chance of more than `most` events, of which `mean` are expected: that of one more by
/// Stirling's formula, over 1 less the ratio to that of the next.
fn poisson_above(mean: f64, most: u64) -> f64 {
    let first = most as f64 + 1.0;
    if mean <= 0.0 {
        return 0.0;
    }
    if mean >= first {
        return 1.0;
    }
    let chance = (first * (1.0 + (mean / first).ln()) - mean).exp() / (std::f64::consts::TAU * first).sqrt();
    (chance / (1.0 - mean / (first + 1.0))).min(1.0)
}
