//! The table of families.

use super::row::{Family, Form};
use super::{Shape, aged_cuckoo, baselines, bloom, exact, slices, swamp, time_limited, timing};

/// Every family, in the order in which the planner compares them.
pub static FAMILIES: [&Family; 12] = [
    &aged_cuckoo::row::ROW,
    &slices::row::AGE_PARTITIONED,
    &slices::row::GUARDED_EPOCH,
    &timing::row::TIMING,
    &time_limited::row::TIME_LIMITED,
    &swamp::row::SWAMP,
    &baselines::counting::row::COUNTING,
    &baselines::fingerprint_buffer::row::FINGERPRINT_BUFFER,
    &baselines::generalized::row::GENERALIZED,
    &baselines::stable::row::STABLE,
    &bloom::row::BLOOM,
    &exact::row::EXACT,
];

impl Family {
    /// Returns the family of a shape.
    pub fn of(shape: &dyn Shape) -> &'static Self {
        let owns = |family: &&'static Self| family.rows.iter().any(|row| (row.owns)(shape));
        FAMILIES.into_iter().find(owns).expect("every shape belongs to a row")
    }

    /// Returns the family of this name, if there is one.
    pub fn named(name: &str) -> Option<&'static Self> {
        FAMILIES.into_iter().find(|family| family.name == name)
    }

    /// Returns the family and the saved form of a number, if there are any.
    pub fn of_kind(kind: u16) -> Option<(&'static Self, &'static Form)> {
        let mut forms = FAMILIES.into_iter().flat_map(|family| family.forms().map(move |form| (family, form)));
        forms.find(|(_, form)| form.kind == kind)
    }
}
