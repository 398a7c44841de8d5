//! The families of filters: a folder for each, and the traits, formulas and rules that they share.
//!
//! A family's folder has its `shape` (formulas: what a filter promises and costs, before a bit is allocated), its
//! `cells` (where the bits of a key lie, and what a new generation changes) and its `likelihood` (what the cells prove
//! about a key). The [table](FAMILIES) has a row for each family.

pub mod abilities;
pub mod aged_cuckoo;
pub mod arrays;
pub mod baselines;
pub mod bloom;
pub mod budget;
pub mod exact;
pub mod fill;
#[cfg(not(test))]
mod filter;
pub mod growth;
mod layout;
pub mod lines;
#[cfg(not(test))]
mod meanings;
#[cfg(not(test))]
pub mod overfull;
mod parameters;
pub(crate) mod partition;
pub mod request;
#[cfg(not(test))]
pub mod row;
#[cfg(not(test))]
mod rule;
pub mod runs;
pub(crate) mod search;
mod shape;
pub mod slice_sizes;
pub mod slices;
pub mod swamp;
#[cfg(not(test))]
mod table;
pub mod time_limited;
pub mod timing;
#[cfg(not(test))]
mod variants;

pub use budget::Budget;
#[cfg(not(test))]
pub use filter::AnyFilter;
pub use layout::{Abilities, Layout};
#[cfg(not(test))]
pub use meanings::meaning;
pub use parameters::Parameters;
#[cfg(not(test))]
pub use request::{Prefer, Request};
#[cfg(not(test))]
pub use row::{Family, Form, Options, Row, Windows};
#[cfg(not(test))]
pub use rule::{Choice, Comparison, choose, compare, plan_any};
pub use runs::Accesses;
pub use shape::{CacheLines, Crowding, Shape};
#[cfg(not(test))]
pub use table::FAMILIES;
#[cfg(not(test))]
pub use variants::{VARIANTS, Variant};
