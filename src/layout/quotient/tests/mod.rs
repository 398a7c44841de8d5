//! Tests: lines against a plain list, all instruction sets bit for bit, and the promise at its worst phases.

mod bits;
mod counts;
mod fine;
mod growing;
mod lines;
mod merged;
mod promise;
mod rates;
mod shorter;

use super::*;
use crate::clock::Window;
use crate::engine::Aged;
use crate::memory::Words;
use crate::shape::quotient::{
    FINE_TAG_BITS, FINGERPRINT_BITS, LINES_OF_SMALL, MAX_BITS, MAX_FINE_BITS, MAX_LINES, TAG_BITS, fine_epochs,
};

/// Returns a hash of a number by splitmix64, a bijection.
fn mix(i: u64) -> u64 {
    let mut z = (i.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A generator of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 += 1;
        ((u128::from(mix(self.0)) * u128::from(n)) >> 64) as u64
    }
}

/// Returns the bits of a fingerprint and of a tag in all formats.
fn formats() -> impl Iterator<Item = (u32, u32)> {
    let all = *TAG_BITS.start()..=*FINE_TAG_BITS.end();
    let all = all.flat_map(|t| FINGERPRINT_BITS.map(move |f| (f, t)));
    all.filter(|(f, t)| f + t <= if TAG_BITS.contains(t) { MAX_BITS } else { MAX_FINE_BITS })
}

/// Returns a shape for a window. Tags that are longer than rotations allow are fine.
fn shape((f, t): (u32, u32), pages: u64, lines: u32, window: u64) -> QuotientShape {
    if TAG_BITS.contains(&t) {
        return QuotientShape::new(f, t, pages, lines, None).unwrap();
    }
    QuotientShape::fine(f, t, pages, lines, None, fine_epochs(Window::Count { insertions: window }, t)).unwrap()
}

/// Returns an engine that uses these instructions.
fn engine(shape: QuotientShape, window: Window, instructions: Instructions) -> Aged<Quotient> {
    let words = Words::zeroed((shape.nbytes() / 8) as usize).unwrap();
    let layout = Quotient { instructions, ..Quotient::new(shape) };
    Aged { layout, words, clock: Clock::new(window, shape.retained()) }
}

/// Returns the shape whose pages use this share of their slots just before they rotate.
fn loaded(format: (u32, u32), window: u64, load: f64) -> QuotientShape {
    loaded_counting(format, 0, window, load)
}

/// Returns the shape whose pages use this share of their slots, with counts of `c` bits, or none if 0.
fn loaded_counting(format: (u32, u32), c: u32, window: u64, load: f64) -> QuotientShape {
    let of = |pages, lines| QuotientShape { count_bits: c, ..shape(format, pages, lines, window) };
    let least = |shape: &QuotientShape| shape.load(shape.keys_per_epoch(Window::Count { insertions: window })) <= load;
    // Some shapes have several pages of few lines, if these have room: a page rotates at every insertion at most, and
    // retains one key of each. With fingerprints of an even number of bits, pages are large.
    let whole = if format.0.is_multiple_of(2) { MAX_LINES } else { LINES_OF_SMALL };
    let few = if window.is_multiple_of(7) { 17 } else { whole };
    let several = (1..=64).map(|pages| (pages, few)).chain((1..).map(|pages| (pages, whole)));
    let sizes = (3..few).map(|lines| (1, lines)).chain(several);
    sizes.map(|(pages, lines)| of(pages, lines)).find(least).unwrap()
}

const FORMATS: [(u32, u32); 11] =
    [(7, 3), (6, 4), (10, 4), (13, 4), (16, 4), (5, 3), (16, 8), (7, 9), (6, 10), (12, 11), (12, 12)];
