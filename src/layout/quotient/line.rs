//! One line: what is in it, and how entries come and go.

use super::format::{Field, Format, Line, OCCUPIED, REACH, SPARE_FLAG};
use super::slots::Slots;
use crate::shape::quotient::FINE_TAG_BITS;

const MOST_TAG_BITS: usize = *FINE_TAG_BITS.end() as usize;

impl Format {
    /// Which buckets have a run.
    #[inline(always)]
    pub fn occupied(&self, line: &Line) -> u64 {
        line[0] >> OCCUPIED & self.occupied.mask
    }

    /// Slots in use.
    #[inline(always)]
    pub fn used(&self, line: &Line) -> u32 {
        64 - self.ends.get(line).leading_zeros()
    }

    /// Whether a line has no slot left.
    #[inline(always)]
    pub fn full(&self, line: &Line) -> bool {
        self.used(line) == self.shape.slots
    }

    /// Where the runs of a line start, the end of the last among them.
    #[inline(always)]
    fn starts(&self, line: &Line) -> u64 {
        self.ends.get(line) << 1 | 1
    }

    /// The slot of a fingerprint in the run of a bucket, as a bit, if it is there.
    #[inline(always)]
    pub fn find<M: Slots>(&self, machine: M, line: &Line, bucket: u32, print: u32) -> u64 {
        let mut like = machine.equal(self, line, print & self.lane_print, self.lane_print);
        let mut high = u64::from(print >> self.lane_print_bits);
        for plane in &self.planes[..self.print_planes] {
            like &= !(plane.get(line) ^ (high & 1).wrapping_neg());
            high >>= 1;
        }
        if !M::SELECTS && like == 0 {
            return 0;
        }
        let occupied = self.occupied(line);
        let starts = self.starts(line);
        let start = machine.nth(starts, (occupied & ((1 << bucket) - 1)).count_ones());
        let above = starts & (start << 1).wrapping_neg();
        let end = above & above.wrapping_neg();
        like & end.wrapping_sub(start) & (occupied >> bucket & 1).wrapping_neg()
    }

    /// The lane of a slot.
    #[inline(always)]
    fn lane_in(&self, line: &Line, slot: u32) -> u32 {
        if self.lane == 1 {
            u32::from(bytemuck::cast_ref::<Line, [u8; 64]>(line)[(self.lanes + slot) as usize & 63])
        } else {
            u32::from(bytemuck::cast_ref::<Line, [u16; 32]>(line)[(self.lanes / 2 + slot) as usize & 31])
        }
    }

    /// The bits that a slot has in some planes.
    #[inline(always)]
    fn bits_in(planes: &[Field], line: &Line, slot: u32) -> u32 {
        planes.iter().rev().fold(0, |bits, plane| bits << 1 | (plane.get(line) >> slot & 1) as u32)
    }

    /// What is in a slot.
    #[inline(always)]
    pub fn value(&self, line: &Line, slot: u32) -> u32 {
        let value = self.lane_in(line, slot) | Self::bits_in(&self.planes, line, slot) << (8 * self.lane);
        if self.count_bits == 0 {
            return value;
        }
        value | self.count(line, slot) << (self.fingerprint_bits + self.tag_bits)
    }

    /// The fingerprint in a slot: up to 8 or 16 bits of it need no plane.
    #[inline(always)]
    pub fn print_in(&self, line: &Line, slot: u32) -> u32 {
        let high = Self::bits_in(&self.planes[..self.print_planes], line, slot);
        self.lane_in(line, slot) & self.lane_print | high << self.lane_print_bits
    }

    /// The tag in a slot.
    #[inline(always)]
    pub fn tag_in(&self, line: &Line, slot: u32) -> u32 {
        self.tag_of(line, slot, Self::bits_in(&self.planes[self.print_planes..], line, slot))
    }

    /// The tags of all slots in use, in their order: as [`tag_in`](Self::tag_in) tells them one by one.
    #[inline(always)]
    pub fn tags(&self, line: &Line) -> impl Iterator<Item = u32> {
        let mut planes = [0; MOST_TAG_BITS];
        let own = &self.planes[self.print_planes..];
        planes.iter_mut().zip(own).for_each(|(bits, plane)| *bits = plane.get(line));
        let planes = (planes, own.len());
        (0..self.used(line)).map(move |slot| {
            let (planes, len) = &planes;
            let high = planes[..*len].iter().rev().fold(0, |bits, plane| bits << 1 | (plane >> slot & 1) as u32);
            self.tag_of(line, slot, high)
        })
    }

    /// The tag in a slot whose bits in the planes are known.
    #[inline(always)]
    fn tag_of(&self, line: &Line, slot: u32, high: u32) -> u32 {
        high << (8 * self.lane - self.lane_print_bits) | self.lane_in(line, slot) >> self.lane_print_bits
    }

    /// The count in a slot.
    #[inline(always)]
    pub fn count(&self, line: &Line, slot: u32) -> u32 {
        Self::bits_in(&self.count_planes, line, slot)
    }

    /// Sets the count in a slot.
    #[inline(always)]
    pub fn set_count(&self, line: &mut Line, slot: u32, count: u32) {
        for (plane, i) in self.count_planes.iter().zip(0..) {
            plane.set(line, plane.get(line) & !(1 << slot) | u64::from(count >> i & 1) << slot);
        }
    }

    /// Whose slot it is.
    #[inline(always)]
    pub fn bucket<M: Slots>(&self, machine: M, line: &Line, slot: u32) -> u32 {
        let before = self.ends.get(line) & ((1 << slot) - 1);
        machine.nth(self.occupied(line), before.count_ones()).trailing_zeros()
    }

    /// The first slot of a bucket and those above it, or where it would be.
    #[inline(always)]
    pub fn first_from<M: Slots>(&self, machine: M, line: &Line, bucket: u32) -> u32 {
        let below = self.occupied(line) & ((1 << bucket) - 1);
        machine.nth(self.starts(line), below.count_ones()).trailing_zeros()
    }

    /// The first slot of the foreign buckets, or where it would be.
    #[inline(always)]
    pub fn first_foreign<M: Slots>(&self, machine: M, line: &Line) -> u32 {
        self.first_from(machine, line, self.shape.buckets)
    }

    /// The highest bucket that has an entry at home there; 0 if none has.
    #[inline(always)]
    pub fn highest(&self, line: &Line) -> u32 {
        let at_home = self.occupied(line) & ((1 << self.shape.buckets) - 1);
        63 - (at_home | 1).leading_zeros()
    }

    /// Puts a new entry, whose count is 0, into a line that has room; says into which slot.
    #[inline(always)]
    pub fn put<M: Slots>(&self, machine: M, line: &mut Line, bucket: u32, value: u32) -> u32 {
        let occupied = self.occupied(line);
        let slot = self.first_from(machine, line, bucket);
        machine.open_slot(self, line, slot, value, occupied >> bucket & 1 == 0);
        line[0] |= 1 << (OCCUPIED + bucket);
        slot
    }

    /// The same of an entry with any count.
    #[inline(always)]
    pub fn put_counted<M: Slots>(&self, machine: M, line: &mut Line, bucket: u32, value: u32) {
        if self.count_bits == 0 {
            self.put(machine, line, bucket, value);
        } else {
            let counted = self.fingerprint_bits + self.tag_bits;
            let slot = self.put(machine, line, bucket, value & ((1 << counted) - 1));
            self.set_count(line, slot, value >> counted);
        }
    }

    /// Takes the entry of a slot, which is of this bucket, out of a line.
    #[inline(always)]
    pub fn remove<M: Slots>(&self, machine: M, line: &mut Line, slot: u32, bucket: u32) {
        let ends = self.ends.get(line);
        let last = ends >> slot & 1 == 1;
        let alone = last && (ends << 1 | 1) >> slot & 1 == 1;
        machine.close_slot(self, line, slot, last && !alone);
        line[0] &= !(u64::from(alone) << (OCCUPIED + bucket));
    }

    /// Which of some slots have a tag, whatever its lowest bits are, as many as `any`.
    #[inline(always)]
    pub fn with_tag<M: Slots>(&self, machine: M, line: &Line, slots: u64, tag: u32, any: u32) -> u64 {
        let tag = tag << self.fingerprint_bits;
        // The bits of a value from which on they have to be the same, and those of them in a lane.
        let from = self.fingerprint_bits + any;
        let lane = ((1u64 << (8 * self.lane)) - 1) as u32 & u32::MAX << from;
        let mut with = slots;
        if lane != 0 {
            with &= machine.equal(self, line, tag & lane, lane);
        }
        for (i, plane) in self.planes.iter().enumerate().skip(from.saturating_sub(8 * self.lane) as usize) {
            with &= !(plane.get(line) ^ u64::from(tag >> (8 * self.lane) >> i & 1).wrapping_neg());
        }
        with
    }

    /// Takes all entries of a tag out of a line, whatever its lowest bits are, as many as `any`.
    #[inline(always)]
    pub fn expire<M: Slots>(&self, machine: M, line: &mut Line, tag: u32, any: u32) {
        let ends = self.ends.get(line);
        let used = u64::MAX.checked_shr(ends.leading_zeros()).unwrap_or(0);
        let dead = self.with_tag(machine, line, used, tag, any);
        if dead == 0 {
            return;
        }
        let alive = used & !dead;
        // A run stays if anything lives in it: a carry from the living runs up to its end.
        let any = (((alive & !ends) + (used & !ends)) | alive) & ends;
        let occupied = machine.spread(machine.gather(any, ends), self.occupied(line));
        // The start of a run moves up over the dead to the first that lives.
        let starts = (ends << 1 | 1) & used;
        let starts = ((dead + (starts & dead)) | starts) & alive;
        let left = alive.count_ones();
        let last = u64::from(left > 0) << left >> 1;
        machine.keep(self, line, alive, occupied, machine.gather(starts, alive) >> 1 | last);
    }

    /// How many of the highest buckets may have entries in second lines.
    #[inline(always)]
    pub fn reach(&self, line: &Line) -> u32 {
        (line[0] & REACH) as u32
    }

    /// Sets the reach.
    #[inline(always)]
    pub fn set_reach(&self, line: &mut Line, reach: u32) {
        line[0] = line[0] & !REACH | u64::from(reach);
    }

    /// Lets it include a bucket, the number of which counts from the first that may be sent away.
    #[inline(always)]
    pub fn extend_reach(&self, line: &mut Line, movable: u32) {
        let reach = self.reach(line).max(self.shape.foreign - movable);
        self.set_reach(line, reach);
    }

    /// Whether the bits could be those of a line: as many runs end as there are, and nothing lies beyond the last.
    pub fn sound(&self, line: &Line) -> bool {
        let beyond = !u64::MAX.checked_shr(self.ends.get(line).leading_zeros()).unwrap_or(0);
        self.reach(line) <= self.shape.foreign
            && self.occupied(line).count_ones() == self.ends.get(line).count_ones()
            && self.planes.iter().chain(&self.count_planes).all(|plane| plane.get(line) & beyond == 0)
    }

    /// Whether the spare has to be asked.
    #[inline(always)]
    pub fn flagged(&self, line: &Line) -> bool {
        line[0] & SPARE_FLAG != 0
    }

    /// Whether a home line alone tells of a bucket: no other line has any of it, nor the spare.
    #[inline(always)]
    pub fn alone(&self, line: &Line, bucket: u32) -> bool {
        bucket + self.reach(line) < self.shape.buckets && !self.flagged(line)
    }
}
