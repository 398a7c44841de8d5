//! The formulas of the aged quotient filter.

pub mod quotient;
