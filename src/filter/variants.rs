//! The table of variants: families with their options set, which the planner compares and the command names.

use std::sync::Arc;

use super::{Family, Layout, Request, Windows};
use crate::Error;
use crate::clock::Window;
use crate::shape::growing::Grow;
use crate::shape::{FamilyId, Shape};

/// Lists the windows for which a variant keeps little slack in few bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LittleSlack {
    Never,
    OfInsertions,
    OfTime,
    Always,
}

/// The options of a family that are part of a name.
pub(super) struct Options {
    pub layout: Layout,
    pub block_bits: Option<u64>,
    pub fine: bool,
    pub grows: bool,
    pub counts: bool,
}

impl Options {
    /// Returns the name of a family with these options.
    pub fn name(&self, family: &Family) -> String {
        let layout = (self.layout != Layout::Sliced).then(|| self.layout.name().to_owned());
        let block_bits = self.block_bits.map(|bits| bits.to_string());
        let flags = [(self.fine, "fine"), (self.grows, "growing"), (self.counts, "counting")];
        let flags = flags.into_iter().filter(|&(set, _)| set).map(|(_, name)| name.to_owned());
        let options = layout.into_iter().chain(block_bits).chain(flags);
        options.fold(family.name.to_owned(), |name, option| name + "-" + &option)
    }
}

/// A family with its options set.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    /// The family.
    pub family: FamilyId,
    /// The layout of the cells; `None` for families that have only one.
    pub layout: Option<Layout>,
    /// Bits of a block, of families in blocks.
    pub block_bits: Option<u32>,
    /// When a filter grows, of families that can.
    pub grow: Option<Grow>,
    /// Whether tags count finer steps than the rotations of a page.
    pub fine: bool,
    /// Whether the planner lists the variant. Others can be built by name, and are opened.
    pub listed: bool,
    /// A caveat for the table of plans; empty if there is none.
    pub note: &'static str,
    /// Place among the variants for speed: 1 is tried first, and 0 never.
    pub(super) speed: u8,
    /// Windows for which the default takes this variant.
    pub(super) little_slack: LittleSlack,
}

impl Variant {
    /// The plain variant of a family.
    const fn plain(family: FamilyId) -> Self {
        Self {
            family,
            layout: None,
            block_bits: None,
            grow: None,
            fine: false,
            listed: true,
            note: "",
            speed: 0,
            little_slack: LittleSlack::Never,
        }
    }

    const fn layout(family: FamilyId, layout: Layout) -> Self {
        Self { layout: Some(layout), ..Self::plain(family) }
    }

    const fn blocks(family: FamilyId, block_bits: u32) -> Self {
        Self { block_bits: Some(block_bits), ..Self::layout(family, Layout::Sliced) }
    }

    const fn unlisted(self) -> Self {
        Self { listed: false, ..self }
    }

    const fn grows(self, grow: Grow) -> Self {
        Self { grow: Some(grow), note: "bytes and fpr follow bursts", ..self }
    }

    const fn noted(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    const fn for_speed(self, place: u8) -> Self {
        Self { speed: place, ..self }
    }

    const fn for_little_slack(self, little_slack: LittleSlack) -> Self {
        Self { little_slack, ..self }
    }

    /// Returns the variant of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        VARIANTS.iter().find(|variant| variant.name() == name)
    }

    /// Returns the name: that of the family, followed by the options that are set.
    pub fn name(&self) -> String {
        let options = Options {
            layout: self.layout.unwrap_or(Layout::Sliced),
            block_bits: self.block_bits.map(u64::from),
            fine: self.fine,
            grows: self.grow.is_some(),
            counts: false,
        };
        options.name(self.row())
    }

    /// Returns the family's row of the table.
    pub fn row(&self) -> &'static Family {
        Family::of_id(self.family)
    }

    /// Returns a request with the options of this variant.
    pub fn request(&self, request: &Request) -> Request {
        Request {
            layout: self.layout.unwrap_or(Layout::Sliced),
            block_bits: self.block_bits,
            grow: self.grow,
            fine: self.fine,
            ..*request
        }
    }

    /// Plans the shape for a request.
    pub fn plan(&self, window: Window, request: &Request) -> Result<Arc<dyn Shape>, Error> {
        (self.row().plan)(window, &self.request(request))
    }

    /// Returns why this variant cannot meet a request whatever its size; `None` if it may.
    pub fn refusal(&self, window: Window, request: &Request) -> Option<&'static str> {
        let (row, timed) = (self.row(), matches!(window, Window::Time { .. }));
        let unsuited = match (row.windows, timed) {
            (Windows::Insertions, true) => Some("windows of insertions only"),
            (Windows::Endless, _) => Some("it forgets nothing, and has no window"),
            (Windows::Time, false) => Some("windows of time only"),
            (Windows::Either, false) if self.grow.is_some() => Some("windows of time only"),
            (Windows::Time, true) if !request.unknown_rate => {
                Some("windows of time without a capacity, which its memory would not keep to")
            }
            (Windows::Either, true) if request.unknown_rate => {
                Some("capacity is needed, the number of keys expected within the window")
            }
            _ => None,
        };
        if unsuited.is_some() {
            return unsuited;
        }
        if request.budget.is_bytes() && self.grow.is_some() {
            return Some("its memory follows bursts: give fpr instead of nbytes");
        }
        if request.budget.is_bytes() && row.windows == Windows::Time {
            return Some("its memory follows the rate of keys: give fpr instead of nbytes");
        }
        (request.distinct.is_some() && !row.has("distinct")).then_some("it has no parameter distinct")
    }
}

/// All variants: first those that the planner compares, in the order of its table, then those that are only built by
/// name or opened.
///
/// Not listed are blocks of 64 bits, which take more memory than blocks of 512 and no fewer cache lines; sliced guarded
/// epochs, which take the memory of transposed ones and more cache lines; and fine tags, which the aged quotient filter
/// takes itself where little slack is requested. Without growth an aged quotient filter reports nearly every key from a
/// fifth more keys on than planned, so the default takes the growing one for windows of time.
pub static VARIANTS: [Variant; 22] = [
    Variant::layout(FamilyId::AgePartitioned, Layout::Sliced),
    Variant::blocks(FamilyId::AgePartitioned, 512).for_speed(2),
    Variant::layout(FamilyId::AgePartitioned, Layout::Line).for_speed(1),
    Variant::blocks(FamilyId::GuardedEpoch, 512),
    Variant::layout(FamilyId::GuardedEpoch, Layout::Line),
    Variant::layout(FamilyId::GuardedEpoch, Layout::Transposed).for_little_slack(LittleSlack::Always),
    Variant::plain(FamilyId::AgedQuotient)
        .noted("fpr rises steeply with keys beyond plan")
        .for_little_slack(LittleSlack::OfInsertions),
    Variant::plain(FamilyId::AgedQuotient).grows(Grow::Cardinality).for_little_slack(LittleSlack::OfTime),
    Variant::layout(FamilyId::Timing, Layout::Sliced),
    Variant::layout(FamilyId::Timing, Layout::Line),
    Variant::layout(FamilyId::Timing, Layout::Sliced).grows(Grow::Density),
    Variant::plain(FamilyId::TimeLimited).noted("bytes follow the rate").for_little_slack(LittleSlack::OfTime),
    Variant::plain(FamilyId::Swamp).for_little_slack(LittleSlack::OfInsertions),
    Variant::plain(FamilyId::Counting).noted("fpr grows with keys that come 15 times"),
    Variant::plain(FamilyId::FingerprintBuffer).noted("searches all of it"),
    Variant::plain(FamilyId::Generalized).noted("fades from the first key on"),
    Variant::plain(FamilyId::Stable).noted("forgets at random"),
    Variant { fine: true, ..Variant::plain(FamilyId::AgedQuotient).unlisted() },
    Variant { fine: true, ..Variant::plain(FamilyId::AgedQuotient).grows(Grow::Cardinality).unlisted() },
    Variant::blocks(FamilyId::AgePartitioned, 64).unlisted(),
    Variant::layout(FamilyId::GuardedEpoch, Layout::Sliced).unlisted(),
    Variant::blocks(FamilyId::GuardedEpoch, 64).unlisted(),
];
