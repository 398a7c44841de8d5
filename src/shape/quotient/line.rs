//! The division of a line of 512 bits into slots and buckets.

/// The format of a line of 512 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineFormat {
    /// Number of entries that fit.
    pub slots: u32,
    /// Number of buckets of the keys whose home is the line.
    pub buckets: u32,
    /// Number of buckets for keys of other lines: as many as the highest buckets, whose entries a full line may move
    /// away.
    pub eviction_buckets: u32,
}

/// Returns the format of a line with fingerprints, tags and counts of these sizes, in a [large](super::LINES_OF_SMALL)
/// page or another.
///
/// An entry takes F + T + C + 1 bits. Slots are as many as leave 38 bits for buckets, or a few more: with fewer buckets
/// an entry is cheaper and shares its bucket with more, and from 35 to 64 of them the two balance to 1 %.
pub const fn line_of(fingerprint_bits: u32, tag_bits: u32, count_bits: u32, large: bool) -> LineFormat {
    let entry = fingerprint_bits + tag_bits + count_bits + 1;
    let slots = 468 / entry;
    let buckets = 506 - slots * entry;
    let buckets = if buckets > 58 { 58 } else { buckets };
    let eviction_buckets =
        if large { eviction_buckets_of_large(fingerprint_bits, slots, buckets) } else { buckets * 5 / 16 };
    LineFormat { slots, buckets: buckets - eviction_buckets, eviction_buckets }
}

/// Returns how many of the buckets of a line are eviction buckets, in a large page.
///
/// Entries of the other buckets must stay, and keys of a line that is full of them go to the overflow line. The number
/// of eviction buckets is the least with which a line of a full page has fewer such entries than slots, in the mean, by
/// sqrt(33 + F) / 2 of their standard deviations, 3.2 to 3.6: the longer the fingerprints, the more rarely may an
/// overflow line overflow. In simulations of 240,000 rotations of pages for 1e-4 and 1e-5 at most 13 and 8 of its
/// 15 fingerprints were in use, and of 45,000 with the least sufficient numbers for shorter fingerprints less than 1 %
/// of the rate came from lines that rejected keys. One more eviction bucket costs 3 % of the locations, and so .05 bits
/// per key.
const fn eviction_buckets_of_large(fingerprint_bits: u32, slots: u32, buckets: u32) -> u32 {
    let mut few = 1;
    // Of the slots (buckets - 2 few) / (buckets - few) must stay: m. This is (slots - m)^2 < (33 + F) / 4 m.
    while 4 * slots * few * few < (33 + fingerprint_bits) * (buckets - 2 * few) * (buckets - few) {
        few += 1;
    }
    few
}
