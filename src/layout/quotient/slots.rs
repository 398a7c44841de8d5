//! What work on lines of entries asks of an [instruction set](crate::instructions). All give the same results.

use super::format::{Format, Line, Row};
use crate::instructions::{Machine, Portable};

/// What an instruction set does with the slots of a line, and with a bit of each.
pub trait Slots: Machine {
    /// Whether it finds the n-th bit at once. Else a branch, mispredicted now and then, is the cheaper.
    const SELECTS: bool = true;

    /// The `n`-th lowest of the bits, counted from 0, alone; nothing if there are no more than n.
    fn nth(self, bits: u64, n: u32) -> u64;

    /// The lowest bits, put where the mask has its.
    fn spread(self, bits: u64, mask: u64) -> u64;

    /// The bits under a mask, side by side.
    fn gather(self, bits: u64, mask: u64) -> u64;

    /// The slots whose lane is `value` under a mask, a bit each.
    fn equal(self, format: &Format, line: &Line, value: u32, mask: u32) -> u64;

    /// Moves what is in the slots from `slot` on up by one and puts a value there, with that bit of the ends.
    fn open_slot(self, format: &Format, line: &mut Line, slot: u32, value: u32, end: bool);

    /// Takes out what is in a slot; the end of its run, if `end`, goes to the slot before.
    fn close_slot(self, format: &Format, line: &mut Line, slot: u32, end: bool);

    /// Gives the entry of a slot another tag.
    #[inline(always)]
    fn set_tag(self, format: &Format, line: &mut Line, slot: u32, tag: u32) {
        let tag = tag << format.fingerprint_bits;
        let mut room = Row::default();
        let new = &format.fields(tag, false, &mut room).0;
        let (at, fields) = (&format.at(slot).0, &format.tag_fields().0);
        for i in 0..8 {
            line[i] = line[i] & !(at[i] & fields[i]) | at[i] & new[i];
        }
        if format.lane == 1 {
            let lane = &mut bytemuck::cast_mut::<Line, [u8; 64]>(line)[(format.lanes + slot) as usize & 63];
            *lane = *lane & format.lane_print as u8 | tag as u8;
        } else {
            let lane = &mut bytemuck::cast_mut::<Line, [u16; 32]>(line)[(format.lanes / 2 + slot) as usize & 31];
            *lane = *lane & format.lane_print as u16 | tag as u16;
        }
    }

    /// Keeps what is in some slots, side by side, with these runs.
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

/// Moves the lanes of some slots together.
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

impl Slots for Portable {
    const SELECTS: bool = false;

    #[inline(always)]
    fn nth(self, mut bits: u64, n: u32) -> u64 {
        for _ in 0..n {
            bits &= bits.wrapping_sub(1);
        }
        bits & bits.wrapping_neg()
    }

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

    #[inline(always)]
    fn equal(self, format: &Format, line: &Line, value: u32, mask: u32) -> u64 {
        let mut equal = 0;
        if format.lane == 1 {
            // A byte is zero where neither it nor its lower bits with 127 added have the top bit; a product gathers
            // these.
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

    #[inline(always)]
    fn open_slot(self, format: &Format, line: &mut Line, slot: u32, value: u32, end: bool) {
        let mut room = Row::default();
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
}
