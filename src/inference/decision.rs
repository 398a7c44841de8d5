//! The decision of least expected penalty (paper 5, section 2.6).

/// Returns whether to report a key that was inserted within the window with probability `posterior`, if a false report
/// costs `false_positive` and a missed key `false_negative`. A tie is reported.
pub fn decide(posterior: f64, false_positive: f64, false_negative: f64) -> bool {
    false_positive * (1.0 - posterior) <= false_negative * posterior
}
