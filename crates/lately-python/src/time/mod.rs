//! Arguments that are times: `window`, `at`, and spans such as `lateness`, as whole nanoseconds.

pub mod instant;
pub mod moments;
pub mod span;
pub mod window;
