//! Rates and choices of fingerprint buffers.

use lately::Error;
use lately::clock::Window;
use lately::shape::Budget;
use lately::shape::fingerprint_buffer::*;

fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

#[test]
fn bits_are_the_fewest_that_hold_the_rate_and_the_most_that_fit() {
    for window in [1, 64, 65, 1000, 1 << 32] {
        for fpr in [0.9, 0.5, 0.01, 1e-6] {
            let shape = choose(count(window), Budget::Rate(fpr)).unwrap();
            assert!(shape.false_positive_rate(window) <= fpr);
            let fewer = BufferShape::new(shape.fingerprint_bits - 1);
            assert!(fewer.is_err() || fewer.unwrap().false_positive_rate(window) > fpr);
            let bytes = shape.nbytes(window);
            assert_eq!(choose(count(window), Budget::Bytes(bytes)), Ok(shape));
            assert!(choose(count(window), Budget::Bytes(bytes - 1)) != Ok(shape));
        }
    }
    assert_eq!(choose(count(7), Budget::Bytes(u64::MAX)), BufferShape::new(64));
}

#[test]
fn parameters_out_of_range_are_named() {
    let message = |result: Result<BufferShape, Error>| result.unwrap_err().to_string();
    for bits in [0, 65, u32::MAX] {
        assert!(message(BufferShape::new(bits)).starts_with("fingerprint_bits must lie in 1 .. 64"));
    }
    let timed = Window::Time { span: 1, lateness: 0, capacity: 1 };
    assert!(message(choose(timed, Budget::Rate(0.1))).contains("span of time"));
    assert!(message(choose(count(65), Budget::Bytes(15))).starts_with("nbytes must be at least 16"));
    for fpr in [0.0, 1.0, f64::NAN, 1e-30] {
        assert!(message(choose(count(1000), Budget::Rate(fpr))).starts_with("fpr"));
    }
}
