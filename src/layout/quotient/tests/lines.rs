//! Lines compared with plain lists of their entries, for every instruction set.

use super::*;
use crate::instructions::{Portable, Work};
use crate::layout::quotient::format::Format;
use crate::layout::quotient::slots::Slots;

/// Random operations on a line and on the list that it encodes: bucket and value of each entry, in order.
struct CompareWithList {
    format: &'static Format,
    steps: u64,
}

impl<M: Slots> Work<M> for CompareWithList {
    type Output = Vec<Line>;

    fn run(self, machine: M) -> Vec<Line> {
        let Self { format, steps } = self;
        let (mut random, mut line, mut list) = (Random(7), [0; 8], Vec::<(u32, u32)>::new());
        let (buckets, values) = (
            u64::from(format.shape.buckets + format.shape.eviction_buckets),
            1u64 << (format.fingerprint_bits + format.tag_bits + format.count_bits),
        );
        let tags = 1 << format.tag_bits;
        let mut lines = Vec::new();
        for _ in 0..steps {
            let (bucket, value) = (random.below(buckets) as u32, random.below(values) as u32);
            let start = list.iter().position(|&(b, _)| b >= bucket).unwrap_or(list.len());
            let found = |fingerprint: u32, list: &[(u32, u32)]| {
                list.iter().enumerate().fold(0u64, |slots, (slot, &(b, v))| {
                    slots | u64::from(b == bucket && format.fingerprint(v) == fingerprint) << slot
                })
            };
            match random.below(8) {
                0..4 if (list.len() as u32) < format.shape.slots => {
                    list.insert(start, (bucket, value));
                    format.put_counted(machine, &mut line, bucket, value);
                }
                4 if !list.is_empty() => {
                    let slot = random.below(list.len() as u64) as usize;
                    let (bucket, _) = list.remove(slot);
                    assert_eq!(format.bucket(machine, &line, slot as u32), bucket);
                    format.remove(machine, &mut line, slot as u32, bucket);
                }
                5 if !list.is_empty() => {
                    let slot = random.below(list.len() as u64) as usize;
                    let tag = random.below(tags) as u32;
                    let (fingerprint, counted) =
                        (format.fingerprint(list[slot].1), format.fingerprint_bits + format.tag_bits);
                    let count = list[slot].1 >> counted ^ random.below(1 << format.count_bits) as u32;
                    list[slot].1 = fingerprint | tag << format.fingerprint_bits | count << counted;
                    machine.set_tag(format, &mut line, slot as u32, tag);
                    format.set_count(&mut line, slot as u32, count);
                }
                6 if random.below(4) == 0 => {
                    let (tag, any) = (random.below(tags) as u32, random.below(tags.ilog2().into()) as u32);
                    list.retain(|&(_, value)| (format.tag(value) ^ tag) >> any > 0);
                    format.expire(machine, &mut line, tag, any);
                }
                _ => {}
            }
            assert!(format.is_sound(&line));
            assert_eq!(format.used(&line) as usize, list.len());
            let at_home = list.iter().filter(|(b, _)| *b < format.shape.buckets);
            assert_eq!(format.first_guest(machine, &line) as usize, at_home.clone().count());
            assert_eq!(format.highest(&line), at_home.map(|(b, _)| *b).max().unwrap_or(0));
            for (slot, &(bucket, value)) in list.iter().enumerate() {
                assert_eq!(format.value(&line, slot as u32), value);
                assert_eq!(format.bucket(machine, &line, slot as u32), bucket);
            }
            for fingerprint in
                [format.fingerprint(value), list.get(start).map_or(0, |&(_, value)| format.fingerprint(value))]
            {
                assert_eq!(format.find(machine, &line, bucket, fingerprint), found(fingerprint, &list));
            }
            lines.push(line);
        }
        lines
    }
}

#[test]
fn a_line_equals_the_list_of_its_entries_with_every_instruction_set() {
    // Miri is slow.
    let (every, steps) = if cfg!(miri) { (9, 40) } else { (1, 600) };
    for (i, (f, t)) in formats().enumerate().step_by(every) {
        // Covers all sizes of counts, but not each with all other sizes.
        for (c, large) in [(0, i % 2 == 0), ((1 + i as u32 % 8).min(32 - f - t), i % 2 == 1)] {
            let compare = || CompareWithList { format: Format::of(f, t, c, large), steps };
            let lines = compare().run(Portable);
            for instructions in Instructions::available() {
                assert!(instructions.run(compare()) == lines, "{f} {t} {c} {large}");
            }
        }
    }
}
