//! One page: a key is in its home line, in the second line that its home points to, or in the spare.

use super::format::{Line, SPARE_FLAG};
use super::place::{Pages, Place};
use super::room::MakeRoom;
use super::slots::Slots;
use super::spare::{self, Overflow};
use crate::instructions::Work;
use crate::shape::quotient::MAX_LINES;

/// Where an entry was found.
pub enum Found {
    /// In this line of the page, in the slot of this bit.
    Entry(usize, u64),
    Spare(Overflow),
}

impl Pages {
    /// How far a bucket lies above the first that may be sent away, if the line has sent away some of it.
    #[inline(always)]
    pub fn sent(&self, line: &Line, bucket: u32) -> Option<u32> {
        let first = self.format.shape.buckets - self.format.reach(line);
        (bucket >= first).then(|| bucket - self.format.movable())
    }

    /// Looks up a key.
    #[inline(always)]
    pub fn look_up<M: Slots>(&self, machine: M, page: &[Line], place: &Place) -> Found {
        let (format, at_home) = (self.format, place.line as usize + 1);
        let home = &page[at_home];
        let slot = format.find(machine, home, place.bucket, place.print);
        if slot != 0 {
            return Found::Entry(at_home, slot);
        }
        if let Some(movable) = self.sent(home, place.bucket) {
            let second = self.second(place.line, movable, place.print) as usize + 1;
            let slot = format.find(machine, &page[second], format.shape.buckets + movable, place.print);
            if slot != 0 {
                return Found::Entry(second, slot);
            }
        }
        Found::Spare(if format.flagged(home) {
            spare::ask(self.format, &page[0], self.spare_print(place))
        } else {
            Overflow::No
        })
    }

    /// Whether a key is there.
    #[inline(always)]
    pub fn contains<M: Slots>(&self, machine: M, page: &[Line], place: &Place) -> bool {
        let (format, home) = (self.format, &page[place.line as usize + 1]);
        // The home line answers nearly always, and whether it says yes is not to be a branch.
        let found = format.find(machine, home, place.bucket, place.print);
        if format.alone(home, place.bucket) {
            return found != 0;
        }
        found != 0 || self.is_elsewhere(machine, page, place)
    }

    /// Whether a key that is not in its home line is there.
    #[inline(always)]
    pub fn is_elsewhere<M: Slots>(&self, machine: M, page: &[Line], place: &Place) -> bool {
        let (format, home) = (self.format, &page[place.line as usize + 1]);
        if let Some(movable) = self.sent(home, place.bucket) {
            let second = self.second(place.line, movable, place.print) as usize + 1;
            if format.find(machine, &page[second], format.shape.buckets + movable, place.print) != 0 {
                return true;
            }
        }
        format.flagged(home) && spare::ask(self.format, &page[0], self.spare_print(place)) != Overflow::No
    }

    /// Whether a key is there that was inserted in the last `kept` epochs.
    #[inline(always)]
    pub fn contains_since<M: Slots>(&self, machine: M, page: &[Line], place: &Place, now: u32, kept: u32) -> bool {
        let (format, home) = (self.format, &page[place.line as usize + 1]);
        let found = format.find(machine, home, place.bucket, place.print);
        let alone = format.alone(home, place.bucket);
        if alone && found == 0 {
            return false;
        }
        if alone && format.count_bits == 0 {
            return format.age(now, format.tag_in(home, found.trailing_zeros())) < kept;
        }
        self.youngest(machine, page, place, now).is_some_and(|age| age < kept)
    }

    /// How many epochs ago, as far as the page can tell, a key was last inserted: the youngest of what is possible;
    /// and whether it is surely there, or may have been turned away then.
    #[inline(always)]
    pub fn age<M: Slots>(&self, machine: M, page: &[Line], place: &Place, now: u32) -> Option<(u32, bool)> {
        let of = |tag| self.format.age(now, tag);
        let told = match self.look_up(machine, page, place) {
            Found::Entry(..) if self.format.count_bits > 0 => {
                let ages = self.entries_of(machine, page, place).map(|(line, slot)| of(self.tag_of(page, line, slot)));
                ages.min().map(|age| (age, true))
            }
            Found::Entry(line, slot) => Some((of(self.tag_of(page, line, slot.trailing_zeros())), true)),
            Found::Spare(Overflow::No) => None,
            Found::Spare(Overflow::Print(tag)) => Some((of(tag), true)),
            Found::Spare(Overflow::Perhaps(tag)) => Some((of(tag), false)),
        };
        told.filter(|&(age, _)| age < self.kept)
    }

    /// How many epochs ago, at the least, a key was last inserted, if it was. Of united filters one may have turned
    /// away a key that the other has for longer: all that could be it counts, not only what is found first.
    #[inline(always)]
    pub fn youngest<M: Slots>(&self, machine: M, page: &[Line], place: &Place, now: u32) -> Option<u32> {
        let found = self.age(machine, page, place, now).map(|(age, _)| age);
        if !self.format.flagged(&page[place.line as usize + 1]) {
            return found;
        }
        let spared =
            spare::tags_of(self.format, &page[0], self.spare_print(place)).map(|tag| self.format.age(now, tag));
        spared.chain(found).min()
    }

    /// The tag of a slot.
    #[inline(always)]
    pub fn tag_of(&self, page: &[Line], line: usize, slot: u32) -> u32 {
        self.format.tag_in(&page[line], slot)
    }

    /// Inserts a key, with this tag; says whether it was there.
    #[inline(always)]
    pub fn add<M: Slots>(&self, machine: M, page: &mut [Line], place: &Place, tag: u32) -> bool {
        let format = self.format;
        let there = match self.look_up(machine, page, place) {
            Found::Entry(line, slot) => {
                // The old tag is not read where all count.
                let there = !self.fine() || self.is_kept(tag, self.tag_of(page, line, slot.trailing_zeros()));
                machine.set_tag(format, &mut page[line], slot.trailing_zeros(), tag);
                return there;
            }
            Found::Spare(Overflow::Print(old)) => {
                spare::renew(self.format, &mut page[0], self.spare_print(place), tag);
                return self.is_kept(tag, old);
            }
            Found::Spare(Overflow::Perhaps(old)) => self.is_kept(tag, old),
            Found::Spare(Overflow::No) => false,
        };
        self.put(machine, page, place, tag, tag);
        there
    }

    /// Takes in a key that is not there, with a tag, while that of the open epoch is `now`.
    #[inline(always)]
    pub fn put<M: Slots>(&self, machine: M, page: &mut [Line], place: &Place, tag: u32, now: u32) {
        let (format, home) = (self.format, place.line as usize + 1);
        if format.full(&page[home]) {
            return machine.run(MakeRoom { pages: self, page, place, mark: tag, now });
        }
        format.put(machine, &mut page[home], place.bucket, place.print | tag << format.fingerprint_bits);
    }

    /// The same with a tag and a count above it.
    #[inline(always)]
    pub fn put_counted<M: Slots>(&self, machine: M, page: &mut [Line], place: &Place, mark: u32, now: u32) {
        let (format, home) = (self.format, place.line as usize + 1);
        if format.full(&page[home]) {
            return machine.run(MakeRoom { pages: self, page, place, mark, now });
        }
        format.put_counted(machine, &mut page[home], place.bucket, place.print | mark << format.fingerprint_bits);
    }

    /// Forgets what has the tags that are gone, and puts the page in order while it is at hand: lines that
    /// are nearly full hand on what the next keys would push out, what is not at home goes home where there is room
    /// again, and every line reaches just as far as it has to.
    #[inline(always)]
    pub fn turn_page<M: Slots>(&self, machine: M, page: &mut [Line], gone: u32) {
        let (format, shape) = (self.format, self.format.shape);
        let (spare, lines) = page.split_first_mut().expect("a page has a spare line");
        let any = self.epochs_per_turn_log2;
        let nothing_spared = spare::expire(format, spare, gone, any);
        for line in &mut *lines {
            format.expire(machine, line, gone, any);
        }
        // Some 10 % of the entries of a line go where tags come round with eight turns, and half of that with sixteen.
        let (reserve, room) = if format.tag_bits - any <= 3 { (3, 6) } else { (1, 3) };
        for line in 0..self.lines {
            let at = line as usize;
            let mut slot = format.first_foreign(machine, &lines[at]);
            while slot > 0 && format.used(&lines[at]) + reserve > shape.slots {
                slot -= 1;
                let bucket = format.bucket(machine, &lines[at], slot);
                if bucket < format.movable() {
                    break;
                }
                let movable = bucket - format.movable();
                let second = self.second(line, movable, format.print_in(&lines[at], slot)) as usize;
                if format.used(&lines[second]) + reserve < shape.slots {
                    let value = format.value(&lines[at], slot);
                    format.put_counted(machine, &mut lines[second], shape.buckets + movable, value);
                    format.remove(machine, &mut lines[at], slot, bucket);
                }
            }
        }
        let mut reach = [0; MAX_LINES as usize + 1];
        for line in 0..self.lines {
            let at = line as usize;
            let first = format.first_foreign(machine, &lines[at]);
            for slot in (first..format.used(&lines[at])).rev() {
                let bucket = format.bucket(machine, &lines[at], slot);
                let movable = bucket - shape.buckets;
                let home = self.home(line, movable, format.print_in(&lines[at], slot)) as usize;
                if format.used(&lines[home]) + room < shape.slots {
                    let value = format.value(&lines[at], slot);
                    format.put_counted(machine, &mut lines[home], format.movable() + movable, value);
                    format.remove(machine, &mut lines[at], slot, bucket);
                } else {
                    let reach = &mut reach[home & MAX_LINES as usize];
                    *reach = u32::max(*reach, shape.foreign - movable);
                }
            }
        }
        for (line, reach) in lines.iter_mut().zip(reach) {
            format.set_reach(line, reach);
            line[0] &= if nothing_spared { !SPARE_FLAG } else { u64::MAX };
        }
    }
}

/// A page that turns, compiled for each instruction set.
pub struct Turn<'a> {
    pub pages: &'a Pages,
    pub page: &'a mut [Line],
    pub gone: u32,
}

impl<M: Slots> Work<M> for Turn<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, machine: M) {
        self.pages.turn_page(machine, self.page, self.gone);
    }
}
