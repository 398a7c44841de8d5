//! The cells of the aged quotient filter.

pub mod quotient;
