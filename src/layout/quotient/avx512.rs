//! AVX-512 with VBMI2, whose instructions move selected lanes of a line together or apart.

#![allow(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::*;

use super::format::{AlignedLine, Format, Line};
use super::slots::Slots;
use crate::instructions::Avx512;

/// Loads a line.
#[inline(always)]
fn load(line: &Line) -> __m512i {
    // SAFETY: all callers have an `Avx512`, so the processor has the instruction; the load is of the eight words of a
    // line.
    unsafe { _mm512_loadu_si512(line.as_ptr().cast()) }
}

/// Loads a line of a table.
#[inline(always)]
fn load_aligned(line: &AlignedLine) -> __m512i {
    load(&line.0)
}

/// Stores the fields of a line from one vector, and its lanes from another.
#[inline(always)]
fn store(format: &Format, line: &mut Line, fields: __m512i, lanes: __m512i) {
    // SAFETY: as above; the store is of the eight words of a line.
    unsafe {
        let all = _mm512_mask_blend_epi8(u64::MAX << format.lanes, fields, lanes);
        _mm512_storeu_si512(line.as_mut_ptr().cast(), all);
    }
}

impl Slots for Avx512 {
    const SELECTS: bool = true;

    #[inline(always)]
    fn nth(self, bits: u64, n: u32) -> u64 {
        self.0.nth(bits, n)
    }

    #[inline(always)]
    fn spread(self, bits: u64, mask: u64) -> u64 {
        self.0.spread(bits, mask)
    }

    #[inline(always)]
    fn gather(self, bits: u64, mask: u64) -> u64 {
        self.0.gather(bits, mask)
    }

    #[inline(always)]
    fn equal(self, format: &Format, line: &Line, value: u32, mask: u32) -> u64 {
        // SAFETY: an `Avx512` exists, so the processor has the instructions.
        unsafe {
            if format.lane == 1 {
                let masked = _mm512_and_si512(load(line), _mm512_set1_epi8(mask as i8));
                _mm512_cmpeq_epi8_mask(masked, _mm512_set1_epi8(value as i8)) >> format.lanes
            } else {
                let masked = _mm512_and_si512(load(line), _mm512_set1_epi16(mask as i16));
                u64::from(_mm512_cmpeq_epi16_mask(masked, _mm512_set1_epi16(value as i16))) >> (format.lanes / 2)
            }
        }
    }

    #[inline(always)]
    fn open_slot(self, format: &Format, line: &mut Line, slot: u32, value: u32, end: bool) {
        let old = load(line);
        // SAFETY: an `Avx512` exists, so the processor has the instructions.
        unsafe {
            let moved = _mm512_and_si512(old, load_aligned(format.from(slot)));
            let carry = _mm512_maskz_alignr_epi64::<7>(0xfe, moved, moved);
            let up = _mm512_shldi_epi64::<1>(moved, carry);
            let mut room = AlignedLine::default();
            let new =
                _mm512_and_si512(load_aligned(format.at(slot)), load_aligned(format.fields(value, end, &mut room)));
            let fields = _mm512_or_si512(_mm512_xor_si512(old, moved), _mm512_or_si512(up, new));
            let lanes = if format.lane == 1 {
                _mm512_mask_expand_epi8(_mm512_set1_epi8(value as i8), !(1 << (format.lanes + slot)), old)
            } else {
                _mm512_mask_expand_epi16(_mm512_set1_epi16(value as i16), !(1 << (format.lanes / 2 + slot)), old)
            };
            store(format, line, fields, lanes);
        }
    }

    #[inline(always)]
    fn close_slot(self, format: &Format, line: &mut Line, slot: u32, end: bool) {
        let old = load(line);
        // SAFETY: as above.
        unsafe {
            let before =
                _mm512_and_si512(load_aligned(format.at(slot.saturating_sub(1))), load_aligned(format.end(end)));
            let ended = _mm512_or_si512(old, before);
            let from = _mm512_and_si512(ended, load_aligned(format.from(slot)));
            let moved = _mm512_andnot_si512(load_aligned(format.at(slot)), from);
            let carry = _mm512_maskz_alignr_epi64::<1>(0x7f, moved, moved);
            let down = _mm512_shrdi_epi64::<1>(moved, carry);
            let fields = _mm512_or_si512(_mm512_xor_si512(ended, from), down);
            let lanes = if format.lane == 1 {
                _mm512_maskz_compress_epi8(!(1 << (format.lanes + slot)), old)
            } else {
                _mm512_maskz_compress_epi16(!(1 << (format.lanes / 2 + slot)), old)
            };
            store(format, line, fields, lanes);
        }
    }

    #[inline(always)]
    fn set_tag(self, format: &Format, line: &mut Line, slot: u32, tag: u32) {
        let (old, tag, mut room) = (load(line), tag << format.fingerprint_bits, AlignedLine::default());
        // SAFETY: as above.
        unsafe {
            let at = load_aligned(format.at(slot));
            let others = _mm512_andnot_si512(_mm512_and_si512(at, load_aligned(format.tag_fields())), old);
            let fields =
                _mm512_or_si512(others, _mm512_and_si512(at, load_aligned(format.fields(tag, false, &mut room))));
            // The lane stays in a register: a load of it would wait until the line is stored.
            let new = if format.lane == 1 {
                let fingerprint = _mm512_and_si512(old, _mm512_set1_epi8(format.lane_fingerprint as i8));
                let lanes = _mm512_or_si512(fingerprint, _mm512_set1_epi8(tag as i8));
                _mm512_mask_blend_epi8(1 << (format.lanes + slot), fields, lanes)
            } else {
                let fingerprint = _mm512_and_si512(old, _mm512_set1_epi16(format.lane_fingerprint as i16));
                let lanes = _mm512_or_si512(fingerprint, _mm512_set1_epi16(tag as i16));
                _mm512_mask_blend_epi16(1 << (format.lanes / 2 + slot), fields, lanes)
            };
            _mm512_storeu_si512(line.as_mut_ptr().cast(), new);
        }
    }

    #[inline(always)]
    fn keep(self, format: &Format, line: &mut Line, slots: u64, occupied: u64, ends: u64) {
        let old = load(line);
        let planes = format.planes.iter().chain(&format.count_planes).map(|plane| self.gather(plane.get(line), slots));
        // SAFETY: as above.
        unsafe {
            let mut fields = _mm512_and_si512(old, load_aligned(&format.outside));
            for (bits, [left, right]) in [occupied, ends].into_iter().chain(planes).zip(&format.shifts) {
                let bits = _mm512_set1_epi64(bits as i64);
                let (low, high) =
                    (_mm512_sllv_epi64(bits, load_aligned(left)), _mm512_srlv_epi64(bits, load_aligned(right)));
                fields = _mm512_or_si512(fields, _mm512_or_si512(low, high));
            }
            let lanes = if format.lane == 1 {
                _mm512_maskz_compress_epi8(slots << format.lanes | !(u64::MAX << format.lanes), old)
            } else {
                let first = format.lanes / 2;
                _mm512_maskz_compress_epi16((slots as u32) << first | !(u32::MAX << first), old)
            };
            store(format, line, fields, lanes);
        }
    }
}
