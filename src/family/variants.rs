//! Variants: families with their options set, which the planner compares and the command names.

use std::sync::{Arc, LazyLock};

use super::request::Layout;
use super::{FAMILIES, Family, Options, Request, Shape, Windows};
use crate::Error;
use crate::clock::Window;

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
    let of = |family: &'static Family| family.variants().map(move |options| Variant { family, options });
    FAMILIES.into_iter().flat_map(of).collect()
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
        let Options { layout, grow, .. } = *self.options;
        named(self.family, [layout.and_then(layout_in_name), grow.map(|_| "growing")])
    }

    /// Returns a request with the options of this variant.
    pub fn request(&self, request: &Request) -> Request {
        let Options { layout, grow, .. } = *self.options;
        Request { layout: layout.unwrap_or(Layout::Sliced), grow, ..*request }
    }

    /// Plans the shape for a request.
    pub fn plan(&self, request: &Request) -> Result<Arc<dyn Shape>, Error> {
        self.family.plan(&self.request(request))
    }

    /// Returns why this variant cannot meet a request whatever its size; `None` if it may.
    pub fn rejection(&self, request: &Request) -> Option<&'static str> {
        let (row, options, timed) = (self.family, self.options, matches!(request.window, Window::Time { .. }));
        let unsuited = match (row.windows, timed) {
            (Windows::Insertions, true) => Some("windows of insertions only"),
            (Windows::Stored, _) => Some("its memory holds every key, and has no rate"),
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
