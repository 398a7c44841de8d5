//! The shape of an aged quotient filter: what it costs and what it promises. Its lines are described in the
//! [layout](crate::layout::quotient).
//!
//! A filter of P pages of L lines has P L B 2^F places: a fresh key is reported by chance when the place that its hash
//! names has an entry. An entry keeps its place, its home line, bucket and fingerprint, wherever in the page it is
//! stored, so the chance is the number of entries over the number of places, exactly. A page holds the distinct keys of
//! r full epochs and the share of one that its turn has behind it; turns are staggered over the pages, so the mean over
//! the phases is that of every moment.
//!
//! To this comes what a page has no room for. It has slots for L S entries and prints for 15 more. Keys fall into pages
//! at random; a page whose entries are more than that at its fullest, just before a turn, answers yes for lines that
//! turned a key away, until the tag of that time expires. With p the chance of one such peak, at most 2^T p of the
//! pages do at any time, since 2^T peaks can still be felt. In simulations of all formats from 15 to 30 bits per key,
//! with up to 1 % of the pages turning keys away, 28 to 40 % of the lines of such a page did; 1/2 is reckoned.
//!
//! Tags may be finer than the turns of pages. All pages then begin an epoch together, r are kept, and a page turns once
//! in m of them: at its fullest it has the keys of r + m, of which those of r + 1 count.

mod choose;
mod line;

pub use choose::{choose, fine_epochs};
pub use line::{Line, line_of};

use std::ops::RangeInclusive;

use super::{CacheLines, FamilyId, Parameters, fill};
use crate::Error;
use crate::clock::Window;

/// Lines of entries in a page of 8 KiB, the largest, whose first line is the spare.
pub const MAX_LINES: u32 = 127;
/// Those of a page of 4 KiB. Pages of more lines are *large*: they can be fuller, and have more foreign buckets.
pub const LINES_OF_SMALL: u32 = 63;
/// Lines of entries in the smallest page: those who move need somewhere to go.
pub const MIN_LINES: u32 = 3;
/// How many times the keys that a user expects, which are a guess, a filter is planned for. A page that is full has no
/// room for one more: where 5 % more keys come than planned for, a rate of 1 % becomes 17 %, and where 10 % more come
/// 95 %.
pub const HEADROOM: f64 = 1.1;
/// Bytes of a line.
pub const LINE_BYTES: u64 = 64;
/// Prints in the spare line of a page.
pub const SPARE: u32 = 15;
/// Bits of a fingerprint.
pub const FINGERPRINT_BITS: RangeInclusive<u32> = 5..=20;
/// Bits of a tag, where every epoch begins with a turn.
pub const TAG_BITS: RangeInclusive<u32> = 3..=8;
/// Most bits of both.
pub const MOST_BITS: u32 = 24;
/// Bits of a tag that is finer than turns.
pub const FINE_TAG_BITS: RangeInclusive<u32> = 4..=12;
/// Most bits of such a tag and a fingerprint.
pub const MOST_FINE_BITS: u32 = 28;
/// Most bits of a fingerprint, a tag and a count.
pub const MOST_VALUE_BITS: u32 = 32;
/// Bits of a count.
pub const COUNT_BITS: RangeInclusive<u32> = 1..=8;
/// Largest share of its slots that a page is planned to use just before a turn, in the mean. Fuller pages move more
/// entries, and insertions take several times as long.
pub const MOST_LOAD: f64 = 0.95;

/// Everything that determines the size and the error of an aged quotient filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotientShape {
    /// F: bits of a fingerprint.
    pub fingerprint_bits: u32,
    /// T: bits of a tag.
    pub tag_bits: u32,
    /// P: pages, which turn one after the other.
    pub pages: u64,
    /// L: lines of entries in a page: 127 in a large one, 63 in others, fewer where there are few pages.
    pub lines: u32,
    /// Distinct keys that a window of insertions is planned for, if not all are. A window of time has its capacity.
    pub distinct: Option<u64>,
    /// Whether its pages double while more keys come than planned for.
    pub grow: bool,
    /// C: bits of a count, of a filter that counts, or 0.
    pub count_bits: u32,
    /// r: epochs that are kept, of a filter whose tags are finer than its turns. Of others it is 2^T - 1.
    pub epochs: Option<u32>,
}

impl QuotientShape {
    /// The shape of a filter whose parameters are in range.
    pub fn new(
        fingerprint_bits: u32,
        tag_bits: u32,
        pages: u64,
        lines: u32,
        distinct: Option<u64>,
    ) -> Result<Self, Error> {
        Self { fingerprint_bits, tag_bits, pages, lines, distinct, grow: false, count_bits: 0, epochs: None }.checked()
    }

    /// Refuses what no line has.
    fn checked(self) -> Result<Self, Error> {
        let out_of_range = |name: &str, least: u64, most: u64, value: u64| {
            Err(Error::value(format!("{name} must lie in {least}..={most}, got {value}")))
        };
        let Self { fingerprint_bits: f, tag_bits: t, pages, lines, .. } = self;
        let (tags, most_bits) =
            if self.epochs.is_some() { (FINE_TAG_BITS, MOST_FINE_BITS) } else { (TAG_BITS, MOST_BITS) };
        if !tags.contains(&t) {
            return out_of_range("tag_bits", (*tags.start()).into(), (*tags.end()).into(), t.into());
        }
        let most_bits = most_bits.min(MOST_VALUE_BITS - self.count_bits);
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

    /// The same whose tags are finer than turns, of so many epochs.
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

    /// The shape of these parameters; of fine tags, where they are given.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let given = |name| parameters.get(name).map(|_| parameters.narrow(name)).transpose();
        let (fingerprint_bits, tag_bits) = (parameters.narrow("fingerprint_bits")?, parameters.narrow("tag_bits")?);
        let (pages, lines) = (parameters.wide("pages")?, parameters.narrow("lines")?);
        let (distinct, epochs) = (parameters.get("distinct"), given("epochs")?);
        let shape = Self { fingerprint_bits, tag_bits, pages, lines, distinct, grow: false, count_bits: 0, epochs }
            .checked()?;
        given("count_bits")?.map_or(Ok(shape), |count_bits| shape.counting(count_bits))
    }

    /// The same of a filter that counts how often keys come.
    pub fn counting(self, count_bits: u32) -> Result<Self, Error> {
        check_count_bits(count_bits)?;
        Self { count_bits, ..self }.checked()
    }

    /// The same of a filter that grows.
    pub fn growing(self) -> Self {
        Self { grow: true, ..self }
    }

    /// What its lines are made of.
    pub fn line(&self) -> Line {
        line_of(self.fingerprint_bits, self.tag_bits, self.count_bits, self.large())
    }

    /// Whether its pages have more lines than one of 4 KiB.
    pub fn large(&self) -> bool {
        self.lines > LINES_OF_SMALL
    }

    /// r: full epochs kept.
    pub fn full_epochs(&self) -> u32 {
        self.epochs.unwrap_or((1 << self.tag_bits) - 1)
    }

    /// m, as a power of two: epochs from one turn of a page to the next. It is the largest that is an eighth of those
    /// kept at most, for which there are tags enough.
    pub fn epochs_per_turn_log2(&self) -> u32 {
        self.epochs.map_or(0, |epochs| u32::min(epochs / 8, (1 << self.tag_bits) - epochs).max(1).ilog2())
    }

    /// m.
    fn epochs_per_turn(&self) -> u32 {
        1 << self.epochs_per_turn_log2()
    }

    /// Generations of the clock in an epoch: one, or a step for each page to turn in.
    pub fn steps(&self) -> u32 {
        if self.epochs.is_some() { 1 } else { self.pages as u32 }
    }

    /// Most pages: a clock numbers the steps in which they turn through all tags by 32 bits.
    fn most_pages(&self) -> u64 {
        u64::from(u32::MAX >> if self.epochs.is_some() { *TAG_BITS.start() } else { self.tag_bits })
    }

    /// Bytes of all pages.
    pub fn nbytes(&self) -> u64 {
        self.pages * u64::from(self.lines + 1) * LINE_BYTES
    }

    /// Generations of the clock that are kept: the steps of r epochs.
    pub fn retained(&self) -> u32 {
        self.full_epochs() * self.steps()
    }

    /// How long after leaving the window a key may still be remembered: insertions, or nanoseconds.
    pub fn slack(&self, window: Window) -> u64 {
        window.slack(self.retained(), self.steps())
    }

    /// Distinct keys of an epoch: those planned for, and the headroom.
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

    /// Distinct keys that are remembered, in the mean over the pages: those of r epochs, and half of one but for the
    /// step that is taken as full.
    pub fn remembered(&self, keys_per_epoch: f64) -> f64 {
        keys_per_epoch * (f64::from(self.full_epochs()) + 0.5 + 0.5 / f64::from(self.steps()))
    }

    /// Distinct keys that have entries, in the mean over the pages: also those that the next turn takes out.
    pub fn stored(&self, keys_per_epoch: f64) -> f64 {
        self.remembered(keys_per_epoch) + 0.5 * keys_per_epoch * f64::from(self.epochs_per_turn() - 1)
    }

    /// Distinct keys that a page has entries of just before it turns, over all pages.
    fn most_stored(&self, keys_per_epoch: f64) -> f64 {
        keys_per_epoch * f64::from(self.full_epochs() + self.epochs_per_turn())
    }

    /// Slots of a page.
    fn slots(&self) -> u32 {
        self.lines * self.line().slots
    }

    /// Share of its slots that a page has in use just before a turn, in the mean.
    pub fn load(&self, keys_per_epoch: f64) -> f64 {
        self.most_stored(keys_per_epoch) / (self.pages as f64 * f64::from(self.slots()))
    }

    /// Probability that a key never inserted is reported.
    pub fn false_positive_rate(&self, keys_per_epoch: f64) -> f64 {
        let places =
            self.pages as f64 * f64::from(self.lines * self.line().buckets) * 2_f64.powi(self.fingerprint_bits as i32);
        let of_entries = self.remembered(keys_per_epoch) / places;
        let rate = (of_entries + self.turned_away(keys_per_epoch)).min(1.0);
        fill::or_same_hash(rate, self.most_stored(keys_per_epoch) as u64)
    }

    /// A bound for the share of lines that may have turned keys away within the epochs kept: the keys of a page are
    /// binomial.
    fn turned_away(&self, keys_per_epoch: f64) -> f64 {
        if self.load(keys_per_epoch) > MOST_LOAD {
            return 1.0;
        }
        let peaks = f64::from(self.full_epochs()) / f64::from(self.epochs_per_turn()) + 1.0;
        let room = f64::from(self.slots() + SPARE);
        (0.5 * peaks * more_than(room, self.most_stored(keys_per_epoch), 1.0 / self.pages as f64)).min(1.0)
    }
}

impl super::Shape for QuotientShape {
    fn family(&self) -> FamilyId {
        FamilyId::AgedQuotient
    }

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
                "grow is for windows of time, or goes with distinct: no window of insertions holds more keys than it \
                 says",
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

    fn fpr(&self, window: Window) -> f64 {
        self.false_positive_rate(self.keys_per_epoch(window))
    }

    fn slack(&self, window: Window) -> u64 {
        self.slack(window)
    }

    /// In expectation half of an epoch more than those of the window are there.
    fn npws(&self, window: Window) -> f64 {
        window.npws(self.retained(), 0.5 * (f64::from(self.steps()) + 1.0))
    }

    /// The line of a key, and the second line that one call in twelve takes (one in twenty to one in seven, measured);
    /// for an insertion also its share of the pages that turn.
    fn cache_lines(&self, window: Window) -> CacheLines {
        let (read, lines) = (1.0 + 1.0 / 12.0, (self.nbytes() / LINE_BYTES) as f64);
        let of_turn = self.keys_per_epoch(window) * f64::from(self.epochs_per_turn());
        CacheLines { insert: read + lines / of_turn, hit: read, miss: read }
    }
}

/// Refuses counts of other sizes than there are.
fn check_count_bits(count_bits: u32) -> Result<(), Error> {
    let (least, most) = (COUNT_BITS.start(), COUNT_BITS.end());
    let sound = COUNT_BITS.contains(&count_bits);
    let error = || Error::value(format!("the bits of a count must lie in {least}..={most}, got {count_bits}"));
    if sound { Ok(()) } else { Err(error()) }
}

/// Refuses a number of distinct keys that a window cannot have.
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

/// Chance that more than `room` of the keys are chosen, each with this chance: at most the probability of the first
/// number that is too many, by Stirling's formula, over 1 less the ratio to that of the next.
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
