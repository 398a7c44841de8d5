//! The operations on slots that an [instruction set](crate::instructions) implements. All have the same results.

use super::format::{AlignedLine, Format, Line};
use crate::instructions::{Machine, Portable};

/// Operations on the slots of a line, and on words with a bit for each slot. The defaults are for any processor.
pub trait Slots: Machine {
    /// Whether [`nth`](Self::nth) is one instruction. Otherwise a branch that avoids it is cheaper, though it is
    /// sometimes mispredicted.
    const SELECTS: bool = false;

    /// Returns the `n`-th lowest of the ones in `bits`, counted from 0, with all others cleared; 0 if there are at most
    /// n.
    #[inline(always)]
    fn nth(self, mut bits: u64, n: u32) -> u64 {
        for _ in 0..n {
            bits &= bits.wrapping_sub(1);
        }
        bits & bits.wrapping_neg()
    }

    /// Moves the lowest bits to the places of the ones of a mask, in order.
    #[inline(always)]
    fn spread(self, mut bits: u64, mut mask: u64) -> u64 {
        let mut spread = 0;
        while mask != 0 {
            let lowest = mask & mask.wrapping_neg();
            spread |= lowest & (bits & 1).wrapping_neg();
            bits >>= 1;
            mask ^= lowest;
        }
        spread
    }

    /// Moves the bits at the ones of a mask to the lowest places, in order.
    #[inline(always)]
    fn gather(self, bits: u64, mut mask: u64) -> u64 {
        let (mut gathered, mut place) = (0, 0);
        while mask != 0 {
            gathered |= (bits >> mask.trailing_zeros() & 1) << place;
            place += 1;
            mask &= mask - 1;
        }
        gathered
    }

    /// Returns the slots whose lane equals `value` under a mask, a bit for each.
    #[inline(always)]
    fn equal(self, format: &Format, line: &Line, value: u32, mask: u32) -> u64 {
        let mut equal = 0;
        if format.lane == 1 {
            // A byte is zero if neither it nor the sum of its lower bits and 127 has the top bit. A product gathers
            // these bits.
            const ONES: u64 = u64::MAX / 255;
            const LOW: u64 = ONES * 0x7f;
            let (value, mask) = (ONES * u64::from(value), ONES * u64::from(mask));
            for (i, word) in line.iter().enumerate() {
                let differs = word & mask ^ value;
                let equals = !(((differs & LOW) + LOW) | differs | LOW);
                equal |= (equals >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * i);
            }
            equal >> format.lanes
        } else {
            const ONES: u64 = u64::MAX / 65535;
            const LOW: u64 = ONES * 0x7fff;
            let (value, mask) = (ONES * u64::from(value), ONES * u64::from(mask));
            for (i, word) in line.iter().enumerate() {
                let differs = word & mask ^ value;
                let equals = !(((differs & LOW) + LOW) | differs | LOW);
                equal |= (equals >> 15).wrapping_mul(1 << 60 | 1 << 45 | 1 << 30 | 1 << 15) >> 60 << (4 * i);
            }
            equal >> (format.lanes / 2)
        }
    }

    /// Moves the entries from `slot` on up by one slot, and writes a value there. `end` is the bit of the ends.
    #[inline(always)]
    fn open_slot(self, format: &Format, line: &mut Line, slot: u32, value: u32, end: bool) {
        let mut room = AlignedLine::default();
        let new = &format.fields(value, end, &mut room).0;
        let (from, at) = (&format.from(slot).0, &format.at(slot).0);
        let mut carry = 0;
        for i in 0..8 {
            let moved = line[i] & from[i];
            line[i] = line[i] ^ moved | moved << 1 | carry | at[i] & new[i];
            carry = moved >> 63;
        }
        let (bytes, lane) = (bytemuck::bytes_of_mut(line), format.lane as usize);
        let place = format.lanes as usize + slot as usize * lane;
        bytes.copy_within(place..64 - lane, place + lane);
        bytes[place..place + lane].copy_from_slice(&value.to_le_bytes()[..lane]);
    }

    /// Removes the entry in a slot, and moves later entries down by one. If `end`, the slot before then ends the run.
    #[inline(always)]
    fn close_slot(self, format: &Format, line: &mut Line, slot: u32, end: bool) {
        let (from, at) = (&format.from(slot).0, &format.at(slot).0);
        let (before, ends) = (&format.at(slot.saturating_sub(1)).0, &format.end(end).0);
        let mut carry = 0;
        for i in (0..8).rev() {
            let old = line[i] | before[i] & ends[i];
            let moved = old & from[i] & !at[i];
            line[i] = old & !from[i] | moved >> 1 | carry;
            carry = moved << 63;
        }
        let (bytes, lane) = (bytemuck::bytes_of_mut(line), format.lane as usize);
        let place = format.lanes as usize + slot as usize * lane;
        bytes.copy_within(place + lane.., place);
        bytes[64 - lane..].fill(0);
    }

    /// Writes the tag of the entry in a slot.
    #[inline(always)]
    fn set_tag(self, format: &Format, line: &mut Line, slot: u32, tag: u32) {
        let tag = tag << format.fingerprint_bits;
        let mut room = AlignedLine::default();
        let new = &format.fields(tag, false, &mut room).0;
        let (at, fields) = (&format.at(slot).0, &format.tag_fields().0);
        for i in 0..8 {
            line[i] = line[i] & !(at[i] & fields[i]) | at[i] & new[i];
        }
        if format.lane == 1 {
            let lane = &mut bytemuck::cast_mut::<Line, [u8; 64]>(line)[(format.lanes + slot) as usize & 63];
            *lane = *lane & format.lane_fingerprint as u8 | tag as u8;
        } else {
            let lane = &mut bytemuck::cast_mut::<Line, [u16; 32]>(line)[(format.lanes / 2 + slot) as usize & 31];
            *lane = *lane & format.lane_fingerprint as u16 | tag as u16;
        }
    }

    /// Moves the entries in some slots to the first slots, and removes all others. `occupied` and `ends` are their
    /// runs.
    #[inline(always)]
    fn keep(self, format: &Format, line: &mut Line, slots: u64, occupied: u64, ends: u64) {
        format.occupied.set(line, occupied);
        format.ends.set(line, ends);
        for plane in format.planes.iter().chain(&format.count_planes) {
            plane.set(line, self.gather(plane.get(line), slots));
        }
        keep_lanes(format, line, slots);
    }
}

impl Slots for Portable {}

/// Moves the lanes of some slots to the first slots, and clears all others.
#[inline(always)]
fn keep_lanes(format: &Format, line: &mut Line, slots: u64) {
    let (first, mut kept) = (format.lanes as usize, 0);
    if format.lane == 1 {
        let lanes = &mut bytemuck::cast_mut::<Line, [u8; 64]>(line)[first..];
        for slot in 0..lanes.len() {
            lanes[kept] = lanes[slot];
            kept += (slots >> slot & 1) as usize;
        }
        lanes[kept..].fill(0);
    } else {
        let lanes = &mut bytemuck::cast_mut::<Line, [u16; 32]>(line)[first / 2..];
        for slot in 0..lanes.len() {
            lanes[kept] = lanes[slot];
            kept += (slots >> slot & 1) as usize;
        }
        lanes[kept..].fill(0);
    }
}
