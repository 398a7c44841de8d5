//! Shapes of guarded-epoch filters, against enumeration, rings and the figures of paper 2.

use lately::family::runs;
use lately::family::slices::shape::{RingShape, Segment};

fn bloom(bits: u64, k: u32) -> Segment {
    Segment::Bits { bits, parts: k }
}

fn blocks(blocks: u64, block_bits: u32, parts: u32) -> Segment {
    Segment::Blocks { blocks, block_bits, parts }
}

/// Returns the share of all ways that `keys` keys of `parts` parts can fall into a segment, all equally likely, in
/// which bit 0 of every part is set; any other bits a fresh key may have are as likely.
fn matching_share(part_bits: u64, parts: u32, keys: u64) -> f64 {
    let bits = parts as usize * keys as usize;
    let (mut all, mut matching) = (0_u64, 0_u64);
    for mut falls in 0..part_bits.pow(bits as u32) {
        let mut zero_set = vec![false; parts as usize];
        for bit in 0..bits {
            zero_set[bit % parts as usize] |= falls % part_bits == 0;
            falls /= part_bits;
        }
        all += 1;
        matching += u64::from(zero_set.into_iter().all(|set| set));
    }
    matching as f64 / all as f64
}

#[test]
fn a_plain_segment_matches_as_often_as_by_enumeration() {
    for (part_bits, parts, keys) in [(2, 1, 3), (2, 3, 4), (3, 2, 4), (4, 2, 3), (5, 3, 2), (7, 1, 5), (3, 3, 3)] {
        let exact = matching_share(part_bits, parts, keys);
        let rate = bloom(part_bits * u64::from(parts), parts).match_rate(keys);
        assert!((rate / exact - 1.0).abs() < 1e-12, "{part_bits} {parts} {keys}: {rate} is not {exact}");
    }
    // A remainder of bits adds to the memory, and not to the parts.
    assert_eq!(bloom(11, 4).match_rate(3), bloom(8, 4).match_rate(3));
}

/// The rings of the age-partitioned filter with k = 1 have the same rates, by formulas of their own.
#[test]
fn rate_and_slack_are_those_of_a_ring_with_one_slice_written() {
    for segment in [bloom(5000, 4), bloom(700, 1), blocks(40, 64, 4), blocks(9, 512, 8)] {
        for r in [1, 4, 127] {
            let shape = RingShape::guarded_epoch(r, segment).unwrap();
            let full = vec![segment.match_rate(200); r as usize + 1];
            let ring = runs::false_positive_rate(1, &full);
            assert!((shape.false_positive_rate(200) / ring - 1.0).abs() < 1e-12);
            // The guard has one epoch.
            assert!((f64::from(r) * runs::npws(1, r, &full) - 1.0).abs() < 1e-12);
        }
    }
    let certain = RingShape::guarded_epoch(3, bloom(1, 1)).unwrap();
    assert_eq!([certain.false_positive_rate(0), certain.false_positive_rate(1)], [0.0, 1.0]);
}

/// The figures of errata GEBF-3 and GEBF-4 for paper 2's Table 1, which are for classical segments with e: parts of
/// whole bits are 0.1 to 0.3 % above. The last column is how much lower the average phase lies.
#[test]
fn the_figures_of_table_1() {
    for (r, k, classical, lower) in [(4, 8, 0.022837, 0.169), (8, 8, 0.022782, 0.094), (8, 9, 0.022629, 0.096)] {
        let shape = RingShape::guarded_epoch(r, bloom(280_000 / u64::from(r + 1), k)).unwrap();
        let keys = 20_000 / u64::from(r);
        let peak = shape.false_positive_rate(keys);
        assert!((1.0003..1.003).contains(&(peak / classical)), "{peak}");
        let spared = |keys| 1.0 - shape.segment.match_rate(keys);
        let at = |in_current| 1.0 - spared(in_current) * spared(keys).powi(r as i32);
        let average = (1..=keys).map(at).sum::<f64>() / keys as f64;
        assert!((1.0 - average / peak - lower).abs() < 0.001, "{average} at r = {r}");
    }
}
