//! Rates and choices of fingerprint buffers.

use lately::clock::Window;
use lately::family::Budget;
use lately::family::baselines::fingerprint_buffer::shape::*;

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
