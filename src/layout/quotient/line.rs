//! The entries of one line, and how they are read, inserted and removed.

use super::format::{EVICTED, Format, Line, LineField, OCCUPIED, OVERFLOW_FLAG};
use super::slots::Slots;
use crate::shape::quotient::FINE_TAG_BITS;

const MAX_TAG_BITS: usize = *FINE_TAG_BITS.end() as usize;

impl Format {
    /// Returns which buckets of a line have a run, a bit for each.
    #[inline(always)]
    pub fn occupied(&self, line: &Line) -> u64 {
        line[0] >> OCCUPIED & self.occupied.mask
    }

    /// Returns the number of slots in use.
    #[inline(always)]
    pub fn used(&self, line: &Line) -> u32 {
        64 - self.ends.get(line).leading_zeros()
    }

    /// Returns whether all slots of a line are in use.
    #[inline(always)]
    pub fn full(&self, line: &Line) -> bool {
        self.used(line) == self.shape.slots
    }

    /// Returns the first slots of the runs of a line, a bit for each, and the slot after the last run.
    #[inline(always)]
    fn starts(&self, line: &Line) -> u64 {
        self.ends.get(line) << 1 | 1
    }

    /// Returns the slots of a bucket that have this fingerprint, a bit for each.
    #[inline(always)]
    pub fn find<M: Slots>(&self, machine: M, line: &Line, bucket: u32, fingerprint: u32) -> u64 {
        let mut like = machine.equal(self, line, fingerprint & self.lane_fingerprint, self.lane_fingerprint);
        let mut high = u64::from(fingerprint >> self.lane_fingerprint_bits);
        for plane in &self.planes[..self.fingerprint_planes] {
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

    /// Returns the lane of a slot.
    #[inline(always)]
    fn lane_in(&self, line: &Line, slot: u32) -> u32 {
        if self.lane == 1 {
            u32::from(bytemuck::cast_ref::<Line, [u8; 64]>(line)[(self.lanes + slot) as usize & 63])
        } else {
            u32::from(bytemuck::cast_ref::<Line, [u16; 32]>(line)[(self.lanes / 2 + slot) as usize & 31])
        }
    }

    /// Returns the bits of a slot in some planes.
    #[inline(always)]
    fn bits_in(planes: &[LineField], line: &Line, slot: u32) -> u32 {
        planes.iter().rev().fold(0, |bits, plane| bits << 1 | (plane.get(line) >> slot & 1) as u32)
    }

    /// Returns the value in a slot.
    #[inline(always)]
    pub fn value(&self, line: &Line, slot: u32) -> u32 {
        let value = self.lane_in(line, slot) | Self::bits_in(&self.planes, line, slot) << (8 * self.lane);
        if self.count_bits == 0 {
            return value;
        }
        value | self.count(line, slot) << (self.fingerprint_bits + self.tag_bits)
    }

    /// Returns the fingerprint in a slot. Up to 8 or 16 bits of it need no plane.
    #[inline(always)]
    pub fn fingerprint_in(&self, line: &Line, slot: u32) -> u32 {
        let high = Self::bits_in(&self.planes[..self.fingerprint_planes], line, slot);
        self.lane_in(line, slot) & self.lane_fingerprint | high << self.lane_fingerprint_bits
    }

    /// Returns the tag in a slot.
    #[inline(always)]
    pub fn tag_in(&self, line: &Line, slot: u32) -> u32 {
        self.tag_of(line, slot, Self::bits_in(&self.planes[self.fingerprint_planes..], line, slot))
    }

    /// Returns the tags of all slots in use, in order, as [`tag_in`](Self::tag_in) returns each.
    #[inline(always)]
    pub fn tags(&self, line: &Line) -> impl Iterator<Item = u32> {
        let mut planes = [0; MAX_TAG_BITS];
        let own = &self.planes[self.fingerprint_planes..];
        planes.iter_mut().zip(own).for_each(|(bits, plane)| *bits = plane.get(line));
        let planes = (planes, own.len());
        (0..self.used(line)).map(move |slot| {
            let (planes, len) = &planes;
            let high = planes[..*len].iter().rev().fold(0, |bits, plane| bits << 1 | (plane >> slot & 1) as u32);
            self.tag_of(line, slot, high)
        })
    }

    /// Returns the tag in a slot, from its bits in the planes.
    #[inline(always)]
    fn tag_of(&self, line: &Line, slot: u32, high: u32) -> u32 {
        high << (8 * self.lane - self.lane_fingerprint_bits) | self.lane_in(line, slot) >> self.lane_fingerprint_bits
    }

    /// Returns the count in a slot.
    #[inline(always)]
    pub fn count(&self, line: &Line, slot: u32) -> u32 {
        Self::bits_in(&self.count_planes, line, slot)
    }

    /// Writes the count in a slot.
    #[inline(always)]
    pub fn set_count(&self, line: &mut Line, slot: u32, count: u32) {
        for (plane, i) in self.count_planes.iter().zip(0..) {
            plane.set(line, plane.get(line) & !(1 << slot) | u64::from(count >> i & 1) << slot);
        }
    }

    /// Returns the bucket of the entry in a slot.
    #[inline(always)]
    pub fn bucket<M: Slots>(&self, machine: M, line: &Line, slot: u32) -> u32 {
        let before = self.ends.get(line) & ((1 << slot) - 1);
        machine.nth(self.occupied(line), before.count_ones()).trailing_zeros()
    }

    /// Returns the first slot of a bucket or of those above it, or the slot where it would be.
    #[inline(always)]
    pub fn first_from<M: Slots>(&self, machine: M, line: &Line, bucket: u32) -> u32 {
        let below = self.occupied(line) & ((1 << bucket) - 1);
        machine.nth(self.starts(line), below.count_ones()).trailing_zeros()
    }

    /// Returns the first slot of the guest buckets, or the slot where it would be.
    #[inline(always)]
    pub fn first_guest<M: Slots>(&self, machine: M, line: &Line) -> u32 {
        self.first_from(machine, line, self.shape.buckets)
    }

    /// Returns the highest home bucket that has an entry; 0 if none has.
    #[inline(always)]
    pub fn highest(&self, line: &Line) -> u32 {
        let at_home = self.occupied(line) & ((1 << self.shape.buckets) - 1);
        63 - (at_home | 1).leading_zeros()
    }

    /// Inserts a new entry, whose count is 0, into a line that has room, and returns its slot.
    #[inline(always)]
    pub fn put<M: Slots>(&self, machine: M, line: &mut Line, bucket: u32, value: u32) -> u32 {
        let occupied = self.occupied(line);
        let slot = self.first_from(machine, line, bucket);
        machine.open_slot(self, line, slot, value, occupied >> bucket & 1 == 0);
        line[0] |= 1 << (OCCUPIED + bucket);
        slot
    }

    /// Inserts a new entry with any count into a line that has room.
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

    /// Removes the entry in a slot, which is of this bucket.
    #[inline(always)]
    pub fn remove<M: Slots>(&self, machine: M, line: &mut Line, slot: u32, bucket: u32) {
        let ends = self.ends.get(line);
        let last = ends >> slot & 1 == 1;
        let alone = last && (ends << 1 | 1) >> slot & 1 == 1;
        machine.close_slot(self, line, slot, last && !alone);
        line[0] &= !(u64::from(alone) << (OCCUPIED + bucket));
    }

    /// Returns which of some slots have a tag. The lowest `any` bits of tags are not compared.
    #[inline(always)]
    pub fn with_tag<M: Slots>(&self, machine: M, line: &Line, slots: u64, tag: u32, any: u32) -> u64 {
        let tag = tag << self.fingerprint_bits;
        // The lowest bit of a value that is compared, and the compared bits of a lane.
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

    /// Removes all entries with a tag. The lowest `any` bits of tags are not compared.
    #[inline(always)]
    pub fn expire<M: Slots>(&self, machine: M, line: &mut Line, tag: u32, any: u32) {
        let ends = self.ends.get(line);
        let used = u64::MAX.checked_shr(ends.leading_zeros()).unwrap_or(0);
        let dead = self.with_tag(machine, line, used, tag, any);
        if dead == 0 {
            return;
        }
        let alive = used & !dead;
        // A run stays if any entry of it lives: the sum carries from living entries up to the end of their run.
        let any = (((alive & !ends) + (used & !ends)) | alive) & ends;
        let occupied = machine.spread(machine.gather(any, ends), self.occupied(line));
        // The start of a run moves up over dead entries to the first that lives.
        let starts = (ends << 1 | 1) & used;
        let starts = ((dead + (starts & dead)) | starts) & alive;
        let left = alive.count_ones();
        let last = u64::from(left > 0) << left >> 1;
        machine.keep(self, line, alive, occupied, machine.gather(starts, alive) >> 1 | last);
    }

    /// Returns how many of the highest buckets may have entries in alternate lines.
    #[inline(always)]
    pub fn evicted_buckets(&self, line: &Line) -> u32 {
        (line[0] & EVICTED) as u32
    }

    /// Writes the number of evicted buckets.
    #[inline(always)]
    pub fn set_evicted_buckets(&self, line: &mut Line, buckets: u32) {
        line[0] = line[0] & !EVICTED | u64::from(buckets);
    }

    /// Raises the number of evicted buckets so that it includes a bucket, counted from the first evictable one.
    #[inline(always)]
    pub fn include_evicted(&self, line: &mut Line, evictable: u32) {
        let buckets = self.evicted_buckets(line).max(self.shape.eviction_buckets - evictable);
        self.set_evicted_buckets(line, buckets);
    }

    /// Returns whether insertions could have left these bits: as many runs end as there are, and all bits beyond the
    /// last run are zero.
    pub fn is_sound(&self, line: &Line) -> bool {
        let beyond = !u64::MAX.checked_shr(self.ends.get(line).leading_zeros()).unwrap_or(0);
        self.evicted_buckets(line) <= self.shape.eviction_buckets
            && self.occupied(line).count_ones() == self.ends.get(line).count_ones()
            && self.planes.iter().chain(&self.count_planes).all(|plane| plane.get(line) & beyond == 0)
    }

    /// Returns whether queries must read the overflow line.
    #[inline(always)]
    pub fn flagged(&self, line: &Line) -> bool {
        line[0] & OVERFLOW_FLAG != 0
    }

    /// Returns whether all entries of a home bucket lie in its home line: none in an alternate line or the overflow
    /// line.
    #[inline(always)]
    pub fn is_complete(&self, line: &Line, bucket: u32) -> bool {
        bucket + self.evicted_buckets(line) < self.shape.buckets && !self.flagged(line)
    }
}
