//! The row of the fingerprint buffer.

use super::cells::FingerprintBuffer;
use super::shape::{BufferShape, choose};
use crate::engine::Aged;
use crate::family::request::Layout;
use crate::family::row::{Family, Options, Row, Windows, form, is, of, shared};

/// The fingerprint buffer.
pub static FINGERPRINT_BUFFER: Family = Family {
    name: "fingerprint-buffer",
    class: "baselines.FingerprintBuffer",
    windows: Windows::Insertions,
    promises: true,
    rows: &[Row {
        layout: Layout::Sliced,
        variants: &[Options::PLAIN.noted("searches all of it")],
        forms: &[form(12, &["fingerprint_bits"])],
        owns: is::<BufferShape>,
        read: |parameters| shared(BufferShape::read(parameters)),
        plan: |request| shared(choose(request.window, request.budget)),
        engine: |shape, clock, _, words| {
            let (shape, window) = (*of(shape), clock.window().capacity());
            Ok(Aged::boxed(FingerprintBuffer { window, shape }, words, clock))
        },
    }],
};
