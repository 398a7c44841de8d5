//! Variants: families with their options set, which the planner compares and the command names.

use std::sync::{Arc, LazyLock};

use super::row::Layout;
use super::timing::growing::Grow;
use super::{FAMILIES, Family, Request, Shape, Windows};
use crate::Error;
use crate::clock::Window;

/// A choice of a family's options, and how the planner treats it.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The layout of the cells; `None` for families that have only one.
    pub layout: Option<Layout>,
    /// Bits of a block, of families in blocks.
    pub block_bits: Option<u32>,
    /// When a filter grows, of families that can.
    pub grow: Option<Grow>,
    /// Whether the planner lists the variant. Others can be built by name, and are opened.
    pub listed: bool,
    /// A caveat for the table of plans; empty if there is none.
    pub note: &'static str,
    /// Place among the variants for speed: 1 is tried first, and 0 never.
    pub(crate) speed: u8,
    /// Whether the default takes this variant for every request that it can meet.
    pub(crate) first: bool,
    /// Whether the default may take this variant otherwise, because it keeps little slack in few bytes.
    pub(crate) little_slack: bool,
}

impl Options {
    /// The options of a family that has only one form.
    pub(crate) const PLAIN: Self = Self {
        layout: None,
        block_bits: None,
        grow: None,
        listed: true,
        note: "",
        speed: 0,
        first: false,
        little_slack: false,
    };

    pub(crate) const fn layout(layout: Layout) -> Self {
        Self { layout: Some(layout), ..Self::PLAIN }
    }

    pub(crate) const fn blocks(block_bits: u32) -> Self {
        Self { block_bits: Some(block_bits), ..Self::layout(Layout::Sliced) }
    }

    pub(crate) const fn unlisted(self) -> Self {
        Self { listed: false, ..self }
    }

    pub(crate) const fn grows(self, grow: Grow) -> Self {
        Self { grow: Some(grow), note: "bytes and fpr follow bursts", ..self }
    }

    pub(crate) const fn noted(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    pub(crate) const fn first(self) -> Self {
        Self { first: true, ..self }
    }

    pub(crate) const fn for_speed(self, place: u8) -> Self {
        Self { speed: place, ..self }
    }

    pub(crate) const fn for_little_slack(self) -> Self {
        Self { little_slack: true, ..self }
    }
}

/// A family with its options set.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    /// The family.
    pub family: &'static Family,
    /// The options of the family.
    pub options: &'static Options,
}

/// The variants of all families, in the order of the table.
pub static VARIANTS: LazyLock<Vec<Variant>> = LazyLock::new(|| {
    let of = |family: &'static Family| family.variants.iter().map(move |options| Variant { family, options });
    FAMILIES.iter().flat_map(of).collect()
});

/// Returns the name of a family, followed by the options that are set.
pub(crate) fn named<'a>(family: &Family, options: impl IntoIterator<Item = Option<&'a str>>) -> String {
    options.into_iter().flatten().fold(family.name.to_owned(), |name, option| name + "-" + option)
}

/// Returns the part of a name for a layout; none for the layout that most families have.
pub(crate) fn layout_in_name(layout: Layout) -> Option<&'static str> {
    (layout != Layout::Sliced).then(|| layout.name())
}

impl Variant {
    /// Returns the variant of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        VARIANTS.iter().find(|variant| variant.name() == name)
    }

    /// Returns the name: that of the family, followed by the options that are set.
    pub fn name(&self) -> String {
        let Options { layout, block_bits, grow, .. } = *self.options;
        let (layout, block_bits) = (layout.and_then(layout_in_name), block_bits.map(|bits| bits.to_string()));
        named(self.family, [layout, block_bits.as_deref(), grow.map(|_| "growing")])
    }

    /// Returns a request with the options of this variant.
    pub fn request(&self, request: &Request) -> Request {
        let Options { layout, block_bits, grow, .. } = *self.options;
        Request { layout: layout.unwrap_or(Layout::Sliced), block_bits, grow, ..*request }
    }

    /// Plans the shape for a request.
    pub fn plan(&self, window: Window, request: &Request) -> Result<Arc<dyn Shape>, Error> {
        (self.family.plan)(window, &self.request(request))
    }

    /// Returns why this variant cannot meet a request whatever its size; `None` if it may.
    pub fn rejection(&self, window: Window, request: &Request) -> Option<&'static str> {
        let (row, options, timed) = (self.family, self.options, matches!(window, Window::Time { .. }));
        let unsuited = match (row.windows, timed) {
            (Windows::Insertions, true) => Some("windows of insertions only"),
            (Windows::Endless, _) => Some("it forgets nothing, and has no window"),
            (Windows::Time, false) => Some("windows of time only"),
            (Windows::Either, false) if options.grow.is_some() => Some("windows of time only"),
            (Windows::Time, true) if !request.unknown_rate => {
                Some("windows of time without a capacity, which its memory would not keep to")
            }
            (Windows::Any, _) => None,
            (Windows::Either, true) if request.unknown_rate => {
                Some("capacity is needed, the number of keys expected within the window")
            }
            _ => None,
        };
        if unsuited.is_some() {
            return unsuited;
        }
        if request.budget.is_bytes() && options.grow.is_some() {
            return Some("its memory follows bursts: give fpr instead of nbytes");
        }
        if request.budget.is_bytes() && row.windows == Windows::Time {
            return Some("its memory follows the rate of keys: give fpr instead of nbytes");
        }
        (request.distinct.is_some() && !row.has("distinct")).then_some("it has no parameter distinct")
    }
}
