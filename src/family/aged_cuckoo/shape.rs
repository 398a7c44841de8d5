//! The shape of an aged cuckoo filter: its costs and promises, and the search for it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::Error;
use crate::clock::Window;
use crate::family::budget::{Budget, reject_below, rounded_up, too_few_bytes, too_much_memory, within_slack};
use crate::family::request::{FIRST_KEYS, Request};
use crate::family::{CacheLines, Crowding, Parameters, Shape, fill};

/// Number of tags.
pub const TAGS: i64 = 255;
/// Numbers of full epochs that can be retained: of the 255 tags some are left for sweeps.
pub const EPOCHS: RangeInclusive<u32> = 1..=200;
/// Number of lines of the largest page. The loads of smaller ones vary more.
pub const PAGE: u64 = 2048;
/// Number of lines of the smallest page: a key has two.
const LEAST: u64 = 2;
/// Greatest number of lines: half a tebibyte.
const MOST: u64 = 1 << 32;
/// Least planned load: emptier tables take more bytes than other families.
const LEAST_LOAD: f64 = 0.4;
/// Number of bytes of a line.
const LINE_BYTES: u64 = 64;

/// A format of lines: the bits of a fingerprint, and the number of slots that have room for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineFormat {
    /// f: number of bits of a fingerprint.
    pub fingerprint_bits: u32,
    /// S: number of slots of a line.
    pub slots: u32,
}

/// The formats that a filter can have, those of the most slots first. Fingerprints are whole bytes before single bits,
/// because a plane of bits takes as long as a plane of bytes.
pub const FORMATS: [LineFormat; 8] =
    [of(10, 28), of(13, 24), of(16, 21), of(20, 18), of(25, 15), of(28, 14), of(32, 12), of(37, 11)];

/// Returns the number of epochs in which all lines are swept.
///
/// An entry of epoch e has expired in epoch e + r + 1. Its line is due in one of the next epochs, the last of which is
/// e + r + n, and is swept at most l epochs late. That is before epoch e + 255, which has the entry's tag again, if
/// n = 254 - r - l.
pub fn sweeps(epochs: u32) -> u64 {
    TAGS as u64 - 1 - u64::from(epochs) - late(epochs)
}

/// Returns l, the number of epochs by which a sweep may come late: a gap within the window, if there are tags for it.
pub fn late(epochs: u32) -> u64 {
    u64::from(epochs).min((TAGS as u64 - 1 - u64::from(epochs)) / 2)
}

const fn of(fingerprint_bits: u32, slots: u32) -> LineFormat {
    LineFormat { fingerprint_bits, slots }
}

impl LineFormat {
    /// Returns the chance that a fresh key matches an entry of its two lines at this load.
    pub fn rate(self, load: f64) -> f64 {
        2.0 * f64::from(self.slots) * load / 2f64.powi(self.fingerprint_bits as i32)
    }

    /// Returns the greatest planned load in pages of this many lines.
    ///
    /// Simulated filters rejected no key in ten windows at a load of .98, whatever the page, but in pages of four
    /// lines: these have two pairs of lines for each parity of a point, and one in 5,000 rejected a key at .85. Fuller
    /// tables move more entries, and of several pages one is fuller than the others by some hundredths.
    pub fn max_load(self, lines: u64) -> f64 {
        if lines == 4 { 0.7 } else { 0.95 - 0.4 / f64::from(self.slots) }
    }
}

/// The shape of an aged cuckoo filter: everything that determines its size and its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgedCuckooShape {
    /// The format of the lines.
    pub format: LineFormat,
    /// r: number of full epochs retained.
    pub epochs: u32,
    /// Number of pages.
    pub pages: u64,
    /// Number of lines of a page.
    pub lines: u32,
    /// Distinct keys that a window is planned for; `None` if all keys of it are distinct.
    pub distinct: Option<u64>,
    /// Whether more tables follow when the first is full.
    pub grows: bool,
    /// Whether the keys that the first of them is planned for are a guess.
    pub guessed: bool,
}

impl AgedCuckooShape {
    /// Reads a shape from parameters.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let bits = parameters.read_u32("fingerprint_bits")?;
        let format = FORMATS.into_iter().find(|format| format.fingerprint_bits == bits).ok_or_else(|| {
            let all: Vec<String> = FORMATS.iter().map(|format| format.fingerprint_bits.to_string()).collect();
            Error::value(format!("fingerprint_bits must be one of {}, got {bits}", all.join(", ")))
        })?;
        let epochs = parameters.read_u32("epochs")?;
        let (pages, lines) = (parameters.read_u64("pages")?, parameters.read_u64("lines")?);
        if !EPOCHS.contains(&epochs) {
            let (least, most) = (EPOCHS.start(), EPOCHS.end());
            return Err(Error::value(format!("epochs must lie in {least}..={most}, got {epochs}")));
        }
        if !(LEAST..=PAGE).contains(&lines) || lines % 2 != 0 {
            return Err(Error::value(format!("lines must be an even number in {LEAST}..={PAGE}, got {lines}")));
        }
        if !(1..=MOST / lines).contains(&pages) {
            return Err(Error::value(format!("pages must lie in 1..={} for this window, got {pages}", MOST / lines)));
        }
        let (distinct, chain) = (parameters.get("distinct"), parameters.get("chain").unwrap_or(0));
        if chain > 2 {
            return Err(Error::value("chain must be 0, 1 or 2: whether more tables follow when the first is full"));
        }
        let (grows, guessed) = (chain > 0, chain == 2);
        Ok(Self { format, epochs, pages, lines: lines as u32, distinct, grows, guessed })
    }

    /// Returns the shape of at least this many lines, or of at most as many if it must `fit`.
    fn with_lines(self, lines: u64, fit: bool) -> Self {
        let pages = lines.div_ceil(PAGE).max(1);
        let of_page = if fit { lines / pages / 2 * 2 } else { lines.div_ceil(pages).next_multiple_of(2) };
        Self { pages, lines: of_page.clamp(LEAST, PAGE) as u32, ..self }
    }

    /// Returns the shape, for this many keys, of the fewest lines whose rate is at most `fpr`.
    fn for_rate(self, keys: f64, fpr: f64) -> Option<Self> {
        let slots = f64::from(self.format.slots);
        let most = fpr / self.format.rate(1.0);
        if most < LEAST_LOAD {
            return None;
        }
        let mut shape = self.with_lines(LEAST, false);
        // Larger pages may be fuller, so the load follows from the size and the size from the load.
        loop {
            let load = most.min(self.format.max_load(shape.lines.into()));
            let needed = (keys / (slots * load)).ceil();
            if needed > MOST as f64 {
                return None;
            }
            if shape.all_lines() as f64 >= needed {
                return Some(shape);
            }
            shape = self.with_lines((needed as u64).min(shape.all_lines() + 1 + shape.all_lines() / 64), false);
        }
    }

    /// Returns the shape of a table of a chain that has these numbers.
    pub(crate) fn of_table(&self, fingerprint_bits: u64, pages: u64, lines: u64) -> Result<Self, Error> {
        let numbers = [
            ("fingerprint_bits", fingerprint_bits),
            ("epochs", self.epochs.into()),
            ("pages", pages),
            ("lines", lines),
        ];
        Self::read(&Parameters(&numbers))
    }

    /// Returns this shape with at most this number of lines.
    pub(crate) fn at_most(self, lines: u64) -> Self {
        if self.all_lines() <= lines { self } else { self.with_lines(lines.max(LEAST), true) }
    }

    /// Returns the shape of the next table of a chain in which `older` tables are live, for this many keys.
    ///
    /// The first is planned for a share of the rate, and the n-th after it for the 2^-n-th part of the rest. So the
    /// rates of the live tables sum to that of the chain at most, whatever came and went before.
    pub(crate) fn next(&self, older: u32, keys: f64) -> Self {
        let share = if older == 0 { FIRST } else { (1.0 - FIRST) * 2f64.powi(-(older.min(60) as i32)) };
        let most = share * self.chain_rate() * 1.001;
        let format = FORMATS.into_iter().find(|format| format.rate(FULL) <= most).unwrap_or(FORMATS[FORMATS.len() - 1]);
        let slots = f64::from(format.slots);
        let lines = ((keys / (slots * format.max_load(PAGE))).ceil() as u64).clamp(self.all_lines(), MOST);
        Self { format, ..*self }.with_lines(lines, false)
    }

    /// Returns the rate of a chain that begins with a table of this format, when each table is as full as it can be.
    fn chain_rate(&self) -> f64 {
        self.format.rate(FULL) / FIRST
    }

    fn all_lines(&self) -> u64 {
        self.pages * u64::from(self.lines)
    }

    /// Returns the most live keys: those of the window and of its slack.
    fn keys(&self, window: Window) -> f64 {
        let keys = window.keys_in(self.epochs, self.epochs + 1) as f64;
        match (window, self.distinct) {
            (Window::Count { insertions }, Some(distinct)) => {
                (keys * (distinct as f64 / insertions as f64)).min(keys).ceil()
            }
            // The least capacity of a window is a key, which a long lateness multiplies.
            _ if self.guessed => keys.min(FIRST_KEYS as f64 * (1.0 + 1.0 / f64::from(self.epochs))),
            _ => keys,
        }
    }

    /// Returns the share of the slots that are used at the fullest moment.
    pub fn load(&self, window: Window) -> f64 {
        self.keys(window) / (self.all_lines() as f64 * f64::from(self.format.slots))
    }
}

impl Shape for AgedCuckooShape {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("fingerprint_bits", self.format.fingerprint_bits.into()),
            ("epochs", self.epochs.into()),
            ("pages", self.pages),
            ("lines", self.lines.into()),
            ("distinct", self.distinct.unwrap_or(0)),
            ("chain", u64::from(self.grows) << u32::from(self.guessed)),
        ]
    }

    fn check(&self, window: Window) -> Result<(), Error> {
        check_distinct(window.check()?, self.distinct)
    }

    fn retained(&self) -> u32 {
        self.epochs
    }

    /// Returns the bytes of the lines, and of the table of a chain: a count, and four words of its first table.
    fn bytes(&self, _: Window) -> u64 {
        self.all_lines() * LINE_BYTES + if self.grows { 8 * (1 + 4) } else { 0 }
    }

    fn grows(&self) -> bool {
        self.grows
    }

    /// Returns how keys fill the cells, which all generations share.
    fn crowding(&self) -> Crowding {
        Crowding { distinct: self.distinct, by_generation: false, is_sampled: true }
    }

    /// Returns one table for twice the capacity, which may come at both ends of a window and its slack.
    fn of_fixed_size(&self, window: Window) -> Result<Option<(Arc<dyn Shape>, Window)>, Error> {
        match window {
            _ if !self.grows => Ok(None),
            Window::Time { span, lateness, capacity } if !self.guessed => {
                let window = Window::Time { span, lateness, capacity: capacity.saturating_mul(2) };
                let (keys, fpr) = (self.keys(window), self.chain_rate());
                let sized =
                    FORMATS.into_iter().filter_map(|format| Self { format, grows: false, ..*self }.for_rate(keys, fpr));
                let found = sized.min_by_key(Self::all_lines);
                let shape = found.ok_or_else(|| too_much_memory(fpr, &format!("{MOST} lines")))?;
                Ok(Some((Arc::new(shape), window)))
            }
            _ => Err(Error::value(
                "the memory of this filter follows its keys, and a file that processes share has a fixed size: build \
                 it with capacity or nbytes",
            )),
        }
    }

    /// Returns the shape of a chain for windows of insertions: each filter has room for its own keys only.
    fn merged(&self, window: Window) -> Option<Arc<dyn Shape>> {
        matches!(window, Window::Count { .. }).then(|| Arc::new(Self { grows: true, ..*self }) as Arc<dyn Shape>)
    }

    /// Returns 2 S a / 2^f at the fullest moment: an upper bound. The rates of merged filters of insertions add up.
    fn fpr(&self, window: Window) -> f64 {
        if self.grows && matches!(window, Window::Time { .. }) {
            return fill::or_same_hash(self.chain_rate().min(1.0), self.keys(window) as u64);
        }
        let load = self.load(window);
        // A table that is fuller than planned rejects keys, sooner or later in all lines.
        let rate = if load > self.format.max_load(self.lines.into()) { 1.0 } else { self.format.rate(load) };
        fill::or_same_hash(rate, self.keys(window) as u64)
    }

    /// Returns one epoch, in which a key leaves the window at any moment. The lateness adds nothing: a late key has the
    /// tag of its own epoch, and a query reports none that is older than its window.
    fn slack(&self, window: Window) -> u64 {
        match window {
            Window::Time { lateness: 1.., .. } => window.generation(self.epochs),
            _ => window.slack(self.epochs, 1),
        }
    }

    fn npws(&self, window: Window) -> f64 {
        self.slack(window) as f64 / window.length() as f64
    }

    /// Returns the two lines of a key; for an insertion also its share of the lines that are swept.
    fn cache_lines(&self, window: Window) -> CacheLines {
        let swept = self.all_lines() as f64 / sweeps(self.epochs) as f64;
        CacheLines { insert: 2.0 + swept / window.keys_per_generation(self.epochs) as f64, hit: 2.0, miss: 2.0 }
    }
}

/// Returns the shape for a request. A window of insertions may be planned for fewer `distinct` keys than insertions,
/// because a repeat takes no space.
///
/// Takes the fewest epochs whose slack is at most `slack`, by default a 64th of the window, or as little as the most
/// epochs have that retain a long lateness, too. Takes of the [formats](FORMATS) the one of the fewest bytes for a
/// rate, or of the least rate for a number of bytes.
pub fn choose(request: &Request) -> Result<AgedCuckooShape, Error> {
    let Request { window, budget, slack, distinct, .. } = *request;
    budget.check()?;
    check_distinct(window.check()?, distinct)?;
    let shapes = EPOCHS.map(|epochs| of_epochs(request, epochs));
    let least = match window {
        // One epoch and the open one are the least.
        Window::Count { insertions } => (insertions / 64).max(u64::from(insertions == 1)),
        Window::Time { span, lateness, .. } => (span / 64).max((span + lateness).div_ceil((*EPOCHS.end()).into())),
    };
    let first = within_slack(window, slack.or(Some(least)), shapes, |shape| shape.slack(window))?[0];
    let of_formats = || FORMATS.into_iter().map(|format| AgedCuckooShape { format, ..first });
    match budget {
        Budget::Rate(fpr) => {
            let keys = first.keys(window);
            let sized = of_formats().filter_map(|shape| match shape.grows {
                true => shape.for_rate(keys, 1.0),
                false => shape.for_rate(keys, fpr),
            });
            let found = sized.filter(|shape| shape.fpr(window) <= fpr).min_by_key(|shape| shape.all_lines());
            if let Some(found) = found {
                return Ok(found);
            }
            let least = FORMATS[FORMATS.len() - 1].rate(LEAST_LOAD);
            if fpr < least {
                return Err(Error::value(format!(
                    "fpr must be at least {} for aged cuckoo filters, whose fingerprints have at most 37 bits, got \
                     {fpr:e}: take an ExactFilter",
                    rounded_up(least)
                )));
            }
            reject_below(std::iter::once(keys as u64), fpr)?;
            Err(too_much_memory(fpr, &format!("{MOST} lines")))
        }
        Budget::Bytes(bytes) => {
            let lines = bytes / LINE_BYTES;
            if lines < LEAST {
                return Err(too_few_bytes(LEAST * LINE_BYTES, "", bytes));
            }
            let sized = of_formats().map(|shape| shape.with_lines(lines.min(MOST), true));
            let rated = sized.map(|shape| (shape.fpr(window), shape));
            let best = rated.reduce(|best, next| if next.0 < best.0 { next } else { best });
            Ok(best.map_or(first, |(_, shape)| shape))
        }
    }
}

/// The share of a rate that the first table of a chain is planned for.
const FIRST: f64 = 0.63;
/// The load at which the first key finds no room in a table of a chain, at most.
const FULL: f64 = 0.97;

fn of_epochs(request: &Request, epochs: u32) -> AgedCuckooShape {
    let grows = matches!(request.window, Window::Time { .. }) && !request.budget.is_bytes();
    let (distinct, guessed) = (request.distinct, grows && request.unknown_rate);
    AgedCuckooShape { format: FORMATS[0], epochs, pages: 1, lines: LEAST as u32, distinct, grows, guessed }
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
