//! The rule by which `Filter`, the plan and the command choose a family.
//!
//! 1. By default the aged cuckoo filter is taken, with the slack requested, or with 1/64 of the window.
//! 2. [`Prefer::Speed`] takes it too, but for windows of insertions at rates of 1 % and more: there lines are faster.
//!    Where it cannot meet the request, the age-partitioned filter is taken, in lines or else in blocks.
//! 3. [`Prefer::Memory`] takes the variant of the fewest bytes; for a window of time the default.
//! 4. Where these cannot meet the request, the variant of the fewest bytes is taken, by default among those that keep a
//!    slack of 1/64 of the window in 16 bytes a key or fewer, or at a rate of 5 % or less, if there are any.
//!
//! In a window of time keys may come in a burst, which slices, blocks and transposed epochs would crowd into one
//! generation. So none of these is taken there, whatever the request; they can be made by name.
//!
//! With [`Budget::Bytes`] the least rate of false positives stands for the fewest bytes.

use std::sync::Arc;

use super::request::{Layout, reject_limits};
use super::variants::{VARIANTS, Variant};
use super::{Budget, FAMILIES, Prefer, Request, Shape, Windows};
use crate::Error;
use crate::clock::Window;

/// Greatest rate of false positives of a filter chosen for a number of bytes: that of tossing a coin.
const MAX_RATE: f64 = 0.5;

/// Least rate of false positives at which lines are faster than the default.
const FAST_LINES: f64 = 0.01;

/// The default slack is the window divided by this.
const SHARE: u64 = 64;

/// Greatest number of bytes for each key that the default slack may cost, beside a page of 4 KiB.
const MAX_BYTES_PER_KEY: u64 = 16;

/// Greatest rate of false positives, of a filter chosen for a number of bytes, that the default slack may cost.
const MAX_RATE_FOR_LITTLE_SLACK: f64 = 0.05;

/// A variant that meets a request, and the shape planned for it. No cells are allocated.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The family and its options.
    pub variant: &'static Variant,
    /// The slack that was requested of the family, in the unit of the clock; `None` for the family's own default.
    pub slack: Option<u64>,
    /// What the filter will promise and cost.
    pub shape: Arc<dyn Shape>,
}

/// Plans the shape for a request: of the family that stores every key if that is preferred, otherwise by [`choose`].
pub fn plan_any(request: &Request) -> Result<Arc<dyn Shape>, Error> {
    if request.prefer != Some(Prefer::Exact) {
        return Ok(choose(request)?.shape);
    }
    reject_limits([("slack", request.slack.is_some()), ("distinct", request.distinct.is_some())])?;
    let stores = FAMILIES.into_iter().find(|family| family.windows == Windows::Stored);
    stores.ok_or_else(|| Error::value("no family stores every key"))?.plan(request)
}

/// Chooses the variant and the shape that meet a request best, by the rule at the top of this module.
///
/// The options of variants in `request` (`layout`, `grow`) are ignored.
pub fn choose(request: &Request) -> Result<Choice, Error> {
    check(request)?;
    let (window, taken) = (request.window, take(request));
    let Budget::Bytes(bytes) = request.budget else { return taken };
    let fpr = taken.as_ref().map(|choice| choice.shape.fpr(window));
    if fpr.as_ref().is_ok_and(|&fpr| fpr <= MAX_RATE) {
        return taken;
    }
    let of = |budget| Request { budget, ..*request };
    let sizes = VARIANTS.iter().filter_map(|variant| plan(variant, &of(Budget::Rate(MAX_RATE))).ok());
    let enough =
        |&bytes: &u64| take(&of(Budget::Bytes(bytes))).is_ok_and(|choice| choice.shape.fpr(window) <= MAX_RATE);
    let least = sizes.map(|choice| choice.shape.bytes(window)).filter(enough).min();
    // Where no family can be planned, each has stated the bytes that it needs: the error states the least of all.
    if least.is_none() && fpr.is_err() {
        return taken;
    }
    let least = least.map_or_else(|| "larger".to_owned(), |bytes| format!("at least {bytes}"));
    let rate = fpr.map_or_else(|_| String::new(), |fpr| format!(", where the rate is {fpr:.3}"));
    Err(Error::value(format!("nbytes must be {least} for a rate of false positives of {MAX_RATE}, got {bytes}{rate}")))
}

/// The listed variants side by side.
pub struct Comparison {
    /// The variant that the rule chooses. It is that of [`choose`] unless that rejects the rate as too high.
    pub best: Choice,
    /// Every listed variant: a choice, or the reason why it cannot meet the request.
    pub rows: Vec<(&'static Variant, Result<Choice, Error>)>,
}

/// Plans every listed variant for a table.
///
/// Without a slack and a preference each is planned with the default slack if it can keep that in few bytes, and
/// otherwise with that of its family.
pub fn compare(request: &Request) -> Result<Comparison, Error> {
    check(request)?;
    let best = take(request)?;
    let planned = |variant: &'static Variant| {
        if std::ptr::eq(variant, best.variant) {
            return Ok(best.clone());
        }
        if let Some(reason) = variant.rejection(request) {
            return Err(Error::value(reason));
        }
        plan_with_little_slack(variant, request).or_else(|_| plan(variant, request))
    };
    let rows =
        VARIANTS.iter().filter(|variant| variant.options.listed).map(|variant| (variant, planned(variant))).collect();
    Ok(Comparison { best, rows })
}

/// Rejects requests that no variant can meet.
fn check(request: &Request) -> Result<(), Error> {
    let timed = matches!(request.window.check()?, Window::Time { .. });
    if timed && request.unknown_rate && request.budget.is_bytes() {
        return Err(Error::value(
            "a window of time without capacity needs fpr, and no nbytes: its memory follows the rate of keys",
        ));
    }
    if timed && request.distinct.is_some() {
        return Err(Error::value("distinct is for windows of insertions; this one is one of time"));
    }
    Ok(())
}

fn take(request: &Request) -> Result<Choice, Error> {
    let prefer = request.prefer;
    let timed = matches!(request.window, Window::Time { .. });
    let suited = |variant: &&'static Variant| {
        let crowds = matches!(variant.options.layout, Some(Layout::Sliced | Layout::Transposed));
        variant.options.listed && !(timed && crowds) && variant.rejection(request).is_none()
    };
    let suited: Vec<&'static Variant> = VARIANTS.iter().filter(suited).collect();
    if (prefer != Some(Prefer::Memory) || timed)
        && let Some(choice) = first(&suited, request)
    {
        return Ok(choice);
    }
    if prefer == Some(Prefer::Speed) {
        let mut fast: Vec<_> = suited.iter().copied().filter(|variant| variant.options.speed > 0).collect();
        fast.sort_by_key(|variant| variant.options.speed);
        if let Some(choice) = fast.into_iter().find_map(|variant| plan(variant, request).ok()) {
            return Ok(choice);
        }
    }
    // The bytes of a variant that grows are only those it begins with.
    let real = || suited.iter().filter(|variant| variant.family.is_for_use() && variant.options.grow.is_none());
    let size = |choice: &Choice| choice.size(request);
    let little = least(real().filter_map(|variant| plan_with_little_slack(variant, request).ok()), size);
    if let Some(choice) = little {
        return Ok(choice);
    }
    let mut errors: Vec<(String, String)> = Vec::new();
    let mut choices = Vec::new();
    for variant in real() {
        match plan(variant, request) {
            Ok(choice) => choices.push(choice),
            Err(error) => {
                let (name, reason) = (variant.name(), error.to_string());
                match errors.iter_mut().find(|(_, other)| *other == reason) {
                    Some((names, _)) => *names += &format!(", {name}"),
                    None => errors.push((name, reason)),
                }
            }
        }
    }
    least(choices, size).ok_or_else(|| {
        Error::value(match errors.as_slice() {
            [(_, reason)] => reason.clone(),
            _ => errors.iter().fold("no family meets this request".to_owned(), |text, (names, reason)| {
                format!("{text}\n  {names}: {reason}")
            }),
        })
    })
}

/// Takes the default variant if it can meet the request, with the slack requested or its own.
///
/// At rates of [`FAST_LINES`] and more lines are faster. In a window of time they take twice the memory.
fn first(suited: &[&'static Variant], request: &Request) -> Option<Choice> {
    let variant = suited.iter().find(|variant| variant.options.first)?;
    let choice = plan(variant, request).ok()?;
    let fpr = match request.budget {
        Budget::Rate(fpr) => fpr,
        Budget::Bytes(_) => choice.shape.fpr(request.window),
    };
    let insertions = matches!(request.window, Window::Count { .. });
    let lines = request.prefer == Some(Prefer::Speed) && fpr >= FAST_LINES && insertions;
    (!lines && fpr <= MAX_RATE).then_some(choice)
}

/// Plans a variant with the default slack; an error if it cannot keep that, if it costs too much, or if the request has
/// a slack or a preference.
fn plan_with_little_slack(variant: &'static Variant, request: &Request) -> Result<Choice, Error> {
    let window = request.window;
    let slack = match window {
        _ if request.slack.is_some() || request.prefer.is_some() => {
            return Err(Error::value("the slack is not the default"));
        }
        Window::Count { insertions } => insertions / SHARE,
        // None is below the lateness, which only the default variant avoids.
        Window::Time { span, lateness, .. } => lateness + span / SHARE,
    };
    let choice = plan(variant, &Request { slack: Some(slack), ..*request })?;
    let keys = request.distinct.unwrap_or(window.capacity());
    let costs_too_much = match request.budget {
        Budget::Bytes(_) => choice.shape.fpr(window) > MAX_RATE_FOR_LITTLE_SLACK,
        Budget::Rate(_) => {
            let most = keys.saturating_mul(MAX_BYTES_PER_KEY).saturating_add(4096);
            !request.unknown_rate && choice.shape.bytes(window) > most
        }
    };
    if costs_too_much { Err(Error::value("the default slack costs too much")) } else { Ok(choice) }
}

/// Plans a variant. Where its family cannot bound the slack, the slack it has must be at most the one requested.
fn plan(variant: &'static Variant, request: &Request) -> Result<Choice, Error> {
    let row = variant.family;
    let bounded = row.windows != Windows::Insertions;
    let slack = request.slack.filter(|_| bounded);
    let shape = variant.plan(&Request { slack, ..*request })?;
    shape.check(request.window)?;
    match request.slack {
        Some(most) if !bounded && shape.slack(request.window) > most => {
            Err(Error::value("its slack cannot be bounded"))
        }
        _ => Ok(Choice { variant, slack, shape }),
    }
}

impl Choice {
    /// Returns what the budget leaves open: bytes for a rate, the rate for a number of bytes.
    fn size(&self, request: &Request) -> f64 {
        match request.budget {
            Budget::Rate(_) => self.shape.bytes(request.window) as f64,
            Budget::Bytes(_) => self.shape.fpr(request.window),
        }
    }
}

/// Returns the first value of the least cost.
fn least<T>(all: impl IntoIterator<Item = T>, cost: impl Fn(&T) -> f64) -> Option<T> {
    let costed = all.into_iter().map(|one| (cost(&one), one));
    costed.reduce(|best, next| if next.0 < best.0 { next } else { best }).map(|(_, one)| one)
}
