//! Tables 1 to 4 of paper 1 (Age-Partitioned Bloom Filters), cell by cell, from the formulas of `lately::family`.
//!
//! The formulas behind the printed tables are in this file, and their names end in `_printed`; the crate has only the
//! right formulas. A cell is compared as text, with the decimals the paper gives. Cells are rounded to the nearest,
//! except the bits per item and the rates of Table 1, which the paper truncates. Where a cell is wrong, both the
//! printed and the right value are asserted, with the id of the erratum. `--nocapture` prints the true rates beside the
//! printed.

use lately::clock::Window;
use lately::family::runs::{expected_accesses, false_positive_rate, npws};
use lately::family::slices::shape::{RingShape, Segment};
use lately::family::{Budget, fill, swamp};

// ---- the formulas of the paper ----

/// Returns the fills by section 5.3: a straight line up to one half (erratum APBF-1: optimistic).
fn gradient_printed(k: u32, l: u32) -> Vec<f64> {
    (0..k + l).map(|i| f64::from((i + 1).min(k)) / f64::from(2 * k)).collect()
}

/// Returns the NPWS by section 5.2: every missing slice is half full (erratum APBF-8: an approximation).
fn npws_printed(k: u32, l: u32) -> f64 {
    npws_terms_printed(k, l, 0.5)
}

/// Returns the NPWS of section 5.2 with another fill of the full segments, as in Table 3.
fn npws_terms_printed(terms: u32, l: u32, full: f64) -> f64 {
    (0..terms).map(|i| full.powi(i as i32)).sum::<f64>() / f64::from(l)
}

/// Returns the efficiency by section 5.5, where k_b is the real number log2(1/fp) (erratum APBF-5), not the integer of
/// Table 1.
fn efficiency(k: u32, l: u32, fp: f64) -> f64 {
    -fp.log2() * f64::from(l) / f64::from(k * (k + l))
}

// ---- the right formulas ----

/// Returns the fills of slices that are half full after k generations, just before a shift, in the limit of large
/// slices (APBF-1).
fn gradient(k: u32, l: u32) -> Vec<f64> {
    (0..k + l).map(|i| 1.0 - (-f64::from((i + 1).min(k)) / f64::from(k)).exp2()).collect()
}

/// Returns the mean load of a block whose parts would be half full if every block had it (APBBF-1).
fn mean_load(block_bits: u32, parts: u32) -> f64 {
    0.5_f64.ln() / (-f64::from(parts) / f64::from(block_bits)).ln_1p()
}

/// Returns the match rates of blocked segments just before a shift. With 2^40 blocks the binomial loads are Poisson to
/// 12 digits.
fn gradient_of_blocks(k: u32, l: u32, block_bits: u32, parts: u32) -> Vec<f64> {
    const BLOCKS: u64 = 1 << 40;
    let keys = |i: u32| mean_load(block_bits, parts) * f64::from((i + 1).min(k)) / f64::from(k) * BLOCKS as f64;
    (0..k + l).map(|i| fill::blocks(BLOCKS, block_bits, parts, keys(i) as u64)).collect()
}

/// Returns F by another method: the distribution of the length of the current run, computed slice by slice.
fn false_positive_rate_by_run_length(k: usize, r: &[f64]) -> f64 {
    let mut running = vec![0.0; k + 1];
    running[0] = 1.0;
    for &match_chance in r {
        let done = running[k];
        let unfinished: f64 = running[..k].iter().sum();
        running.rotate_right(1);
        running.iter_mut().for_each(|p| *p *= match_chance);
        running[0] = unfinished * (1.0 - match_chance);
        running[k] += done;
    }
    running[k]
}

// ---- comparing with print ----

fn decimals(printed: &str) -> usize {
    printed.split_once('.').map_or(0, |(_, fraction)| fraction.len())
}

/// Checks a printed cell: `value` plus `offset` of the last printed decimal place, truncated.
#[track_caller]
fn assert_cell(value: f64, offset: f64, printed: &str) {
    let decimals = decimals(printed);
    let scale = 10_f64.powi(decimals as i32);
    assert_eq!(format!("{:.decimals$}", (value * scale + offset).floor() / scale), printed, "{value}");
}

#[track_caller]
fn assert_nearest(value: f64, printed: &str) {
    assert_cell(value, 0.5, printed);
}

#[track_caller]
fn assert_truncated(value: f64, printed: &str) {
    assert_cell(value, 0.0, printed);
}

/// Checks a wrong cell: `form` gives the printed value, `right` the corrected one.
#[track_caller]
fn assert_erratum(form: f64, printed: &str, right: f64, corrected: &str) {
    assert_nearest(form, printed);
    assert_nearest(right, corrected);
    assert_ne!(printed, corrected);
}

// ---- the tables ----

#[test]
fn table_1() {
    // aimed fp, k, bits/item, actual fp, accesses of a query false
    let rows = [
        (0.1_f64, 4, "5.77", "0.0625", "1.73"),
        (0.01, 7, "10.09", "0.0078125", "1.94"),
        (0.001, 10, "14.42", "0.0009765625", "1.99"),
        (0.0001, 14, "20.19", "0.0000610351", "2.00"),
        (0.00001, 17, "24.52", "0.0000076293", "2.00"),
    ];
    for (aimed, k, bits_per_item, actual, absent) in rows {
        assert_eq!(-aimed.log2().floor() as u32, k);
        assert_truncated(f64::from(k) / std::f64::consts::LN_2, bits_per_item);
        // A Bloom filter is one run of k half full slices: with l = 0 the only start is 0.
        let full = vec![0.5; k as usize];
        assert_truncated(false_positive_rate(k, &full), actual);
        let accesses = expected_accesses(k, 0, &full);
        assert_nearest(accesses.absent, absent);
        assert_eq!(accesses.false_positive, f64::from(k));
    }
}

/// The rows of Table 2: k, l, then as printed: actual fp, efficiency, accesses (window, fp, false), NPWS.
type Row2 = (u32, u32, [&'static str; 6]);

const TABLE_2: [Row2; 25] = [
    (4, 3, ["0.100586", "0.36", "4.71", "4.38", "2.16", "0.58"]),
    (5, 7, ["0.101603", "0.38", "6.17", "5.76", "3.42", "0.28"]),
    (6, 14, ["0.098623", "0.39", "8.04", "7.58", "5.42", "0.14"]),
    (7, 28, ["0.099033", "0.38", "10.73", "10.25", "9.10", "0.07"]),
    (8, 56, ["0.100234", "0.36", "14.87", "14.39", "15.60", "0.04"]),
    (7, 5, ["0.011232", "0.39", "7.81", "7.40", "2.02", "0.40"]),
    (8, 8, ["0.010244", "0.41", "8.88", "8.62", "3.09", "0.25"]),
    (9, 14, ["0.010212", "0.45", "10.50", "9.89", "3.79", "0.14"]),
    (10, 25, ["0.010076", "0.47", "12.46", "11.80", "5.85", "0.08"]),
    (11, 46, ["0.009948", "0.49", "15.24", "14.56", "9.55", "0.04"]),
    (10, 7, ["0.001211", "0.40", "10.86", "10.42", "1.85", "0.28"]),
    (11, 9, ["0.000918", "0.41", "11.89", "11.52", "2.15", "0.22"]),
    (12, 14, ["0.000981", "0.45", "13.11", "12.75", "3.21", "0.14"]),
    (13, 23, ["0.000928", "0.50", "14.74", "14.06", "4.20", "0.09"]),
    (14, 40, ["0.000988", "0.53", "16.85", "16.16", "6.75", "0.05"]),
    (14, 11, ["0.000099", "0.42", "14.91", "14.51", "1.93", "0.18"]),
    (15, 15, ["0.000100", "0.44", "15.93", "15.69", "3.08", "0.13"]),
    (16, 22, ["0.000097", "0.48", "17.41", "16.84", "3.36", "0.09"]),
    (17, 36, ["0.000099", "0.53", "19.09", "18.46", "5.19", "0.06"]),
    (18, 63, ["0.000099", "0.57", "21.56", "20.79", "7.68", "0.03"]),
    (17, 13, ["0.000011", "0.42", "17.92", "17.51", "1.81", "0.15"]),
    (18, 16, ["0.000009", "0.44", "18.93", "18.62", "2.20", "0.12"]),
    (19, 22, ["0.000010", "0.56", "20.15", "19.80", "3.16", "0.09"]),
    (20, 33, ["0.000010", "0.62", "21.70", "20.94", "3.68", "0.06"]),
    (21, 54, ["0.000010", "0.68", "23.61", "22.83", "5.63", "0.04"]),
];

/// Cells that are wrong by a unit in the last place, for no known reason: column, printed, corrected.
const TABLE_2_UNIT_OFF: [(u32, u32, &str, &str, &str); 5] = [
    (11, 46, "window", "15.24", "15.23"),
    (18, 16, "window", "18.93", "18.94"),
    (17, 36, "fp", "18.46", "18.45"),
    (20, 33, "false", "3.68", "3.67"),
    (10, 7, "npws", "0.28", "0.29"),
];

#[test]
fn table_2_has_the_printed_values_or_known_errata() {
    for (k, l, [fp, eff, window, false_positive, absent, weighted_slack]) in TABLE_2 {
        let r = gradient_printed(k, l);
        let rate = false_positive_rate(k, &r);
        let eff_right = efficiency(k, l, rate);
        // APBF-4: three efficiencies are those of a rate of 10^-6, a tenth of the row's.
        let eff_for_a_millionth = efficiency(k, l, 1e-6);
        match (k, l) {
            (13, 23) => {
                // APBF-3: the printed rate, and the efficiency that follows from it, are those of l = 22.
                let rate_22 = false_positive_rate(k, &gradient_printed(k, 22));
                assert_erratum(rate_22, fp, rate, "0.000990");
                assert_erratum(efficiency(k, l, rate_22), eff, eff_right, "0.49");
            }
            (19, 22) => assert_erratum(eff_for_a_millionth, eff, eff_right, "0.47"),
            (20, 33) => assert_erratum(eff_for_a_millionth, eff, eff_right, "0.52"),
            (21, 54) => assert_erratum(eff_for_a_millionth, eff, eff_right, "0.57"),
            _ => assert_nearest(eff_right, eff),
        }
        if (k, l) != (13, 23) {
            assert_nearest(rate, fp);
        }
        let assert_last_place = |value: f64, printed: &str, column: &str| match TABLE_2_UNIT_OFF
            .iter()
            .find(|odd| (odd.0, odd.1, odd.2) == (k, l, column))
        {
            Some((.., cell, corrected)) => {
                assert_eq!(printed, *cell);
                assert_nearest(value, corrected);
            }
            None => assert_nearest(value, printed),
        };
        let accesses = expected_accesses(k, l, &r);
        assert_last_place(accesses.in_window, window, "window");
        assert_last_place(accesses.false_positive, false_positive, "fp");
        assert_last_place(accesses.absent, absent, "false");
        if (k, l) == (4, 3) {
            // APBF-2: the last of the four terms is missing.
            assert_erratum(npws_terms_printed(3, l, 0.5), weighted_slack, npws_printed(k, l), "0.63");
        } else {
            assert_last_place(npws_printed(k, l), weighted_slack, "npws");
        }
    }
}

#[test]
fn table_2_efficiency_range() {
    // APBF-4: the text's "from 36 % to 68 %".
    let all = TABLE_2.map(|(k, l, _)| efficiency(k, l, false_positive_rate(k, &gradient_printed(k, l))));
    assert_nearest(all.iter().copied().fold(1.0, f64::min), "0.36");
    assert_erratum(efficiency(21, 54, 1e-6), "0.68", all.iter().copied().fold(0.0, f64::max), "0.57");
}

#[test]
fn table_2_true_values() {
    println!(" k  l   rate printed   true worst   ratio   NPWS printed   true");
    for (k, l, _) in TABLE_2 {
        let r = gradient(k, l);
        let (printed, right) = (false_positive_rate(k, &gradient_printed(k, l)), false_positive_rate(k, &r));
        let (npws_printed, npws_right) = (npws_printed(k, l), npws(k, l, &r));
        let ratio = right / printed;
        println!(
            "{k:2} {l:2}   {printed:.4e}    {right:.4e}   {ratio:.3}       {npws_printed:.3}       {npws_right:.3}"
        );
        let other_road = false_positive_rate_by_run_length(k as usize, &r);
        assert!((right / other_road - 1.0).abs() < 1e-12, "({k}, {l}): {right} and {other_road}");
        // APBF-9: no row reaches the bound.
        assert!(ratio > 1.0);
        // APBF-8: the printed value is too high if missing slices lie in the gradient, else too low by coincidental
        // runs.
        assert_eq!(npws_right > npws_printed, l + 1 >= k, "({k}, {l})");
    }
    let excess = |k, l| false_positive_rate(k, &gradient(k, l)) / false_positive_rate(k, &gradient_printed(k, l));
    assert_nearest(excess(10, 7), "1.22");
    assert_nearest(excess(17, 13), "1.27"); // the largest
    let npws_true = |k, l| npws(k, l, &gradient(k, l));
    assert_erratum(npws_printed(10, 7), "0.285", npws_true(10, 7), "0.260");
    assert_erratum(npws_printed(7, 5), "0.397", npws_true(7, 5), "0.377");
    assert_erratum(npws_printed(4, 3), "0.625", npws_true(4, 3), "0.633");
}

/// The rows of Table 3: k, l, B, b, then as printed: rate blocked and plain, capacity, accesses (window, fp, false),
/// NPWS.
type Row3 = (u32, u32, u32, u32, [&'static str; 7]);

const TABLE_3: [Row3; 16] = [
    (2, 3, 64, 4, ["0.0159865", "0.0180539", "0.968", "3.30", "2.72", "2.25", "0.36"]),
    (2, 3, 512, 4, ["0.0121825", "0.0180539", "0.996", "3.31", "2.71", "2.23", "0.35"]),
    (2, 5, 64, 4, ["0.0257532", "0.0335359", "0.968", "3.80", "3.28", "3.37", "0.21"]),
    (2, 5, 512, 4, ["0.0197654", "0.0335359", "0.996", "3.81", "3.26", "3.33", "0.21"]),
    (3, 5, 64, 4, ["0.0016005", "0.0017134", "0.968", "4.40", "3.85", "2.29", "0.22"]),
    (3, 5, 512, 4, ["0.0010688", "0.0017134", "0.996", "4.40", "3.83", "2.26", "0.21"]),
    (3, 8, 64, 4, ["0.0026767", "0.0031769", "0.968", "4.92", "4.41", "3.43", "0.13"]),
    (3, 8, 512, 4, ["0.0017993", "0.0031769", "0.996", "4.92", "4.39", "3.38", "0.13"]),
    (2, 3, 64, 8, ["0.0005608", "0.0001122", "0.936", "3.33", "2.70", "2.05", "0.34"]),
    (2, 3, 512, 8, ["0.0000738", "0.0001122", "0.992", "3.33", "2.68", "2.02", "0.33"]),
    (2, 5, 64, 8, ["0.0009231", "0.0002342", "0.936", "3.80", "3.23", "3.08", "0.20"]),
    (2, 5, 512, 8, ["0.0001226", "0.0002342", "0.992", "3.80", "3.21", "3.03", "0.20"]),
    (3, 5, 64, 8, ["0.0000104", "0.0000007", "0.936", "4.40", "3.82", "2.05", "0.20"]),
    (3, 5, 512, 8, ["0.0000005", "0.0000007", "0.992", "4.40", "3.78", "2.02", "0.20"]),
    (3, 8, 64, 8, ["0.0000178", "0.0000014", "0.936", "4.88", "4.35", "3.08", "0.13"]),
    (3, 8, 512, 8, ["0.0000009", "0.0000014", "0.992", "4.88", "4.32", "3.03", "0.13"]),
];

#[test]
fn table_3() {
    println!(" k  l    B  b   plain printed   plain true   blocked");
    for (k, l, block_bits, parts, cells) in TABLE_3 {
        let [blocked, plain, capacity, window, false_positive, absent, weighted_slack] = cells;
        let r = gradient_of_blocks(k, l, block_bits, parts);
        let rate = false_positive_rate(k, &r);
        assert_nearest(rate, blocked);
        // The plain filter is computed with the linear gradient, which flatters it.
        let (kb, lb) = (k * parts, l * parts);
        let plain_printed = false_positive_rate(kb, &gradient_printed(kb, lb));
        let plain_right = false_positive_rate(kb, &gradient(kb, lb));
        assert_nearest(plain_printed, plain);
        assert!(plain_right > plain_printed);
        println!("{k:2} {l:2}  {block_bits:3}  {parts}    {plain_printed:.7}      {plain_right:.7}    {rate:.7}");
        assert_nearest(
            mean_load(block_bits, parts) / (f64::from(block_bits / parts) * std::f64::consts::LN_2),
            capacity,
        );
        let accesses = expected_accesses(k, l, &r);
        assert_nearest(accesses.in_window, window);
        assert_nearest(accesses.false_positive, false_positive);
        assert_nearest(accesses.absent, absent);
        let full = r[k as usize];
        assert_nearest(npws_terms_printed(k, l, full), weighted_slack);
        // Coincidental runs, which the printed formula omits, add up to 0.003.
        let left_out = npws(k, l, &r) - npws_terms_printed(k, l, full);
        assert!((0.0..0.003).contains(&left_out), "{left_out}");
    }
    // In two cells they change a printed digit.
    let right = |k, l, block_bits, parts| npws(k, l, &gradient_of_blocks(k, l, block_bits, parts));
    assert_nearest(right(2, 3, 512, 4), "0.36");
    assert_nearest(right(2, 5, 64, 4), "0.22");
    // APBBF-1: with Poisson loads the mean part fill is below one half.
    assert_nearest(1.0 - (-mean_load(64, 8) * 8.0 / 64.0).exp(), "0.477");
}

/// The rows of Table 4: k, l, B, b, then as printed: rate, bits per element of SWAMP and APBBF, NPWS of APBBF. The bits
/// of SWAMP are read off a figure of its paper ("approximate values", section 6), so they cannot be computed.
const TABLE_4: [(u32, u32, u32, u32, [&str; 4]); 4] = [
    (2, 5, 512, 4, ["0.0197654", "32.0", "16.2", "0.21"]),
    (3, 8, 512, 4, ["0.0017993", "39.8", "23.9", "0.13"]),
    (2, 5, 512, 8, ["0.0001226", "48.5", "32.6", "0.20"]),
    (3, 8, 512, 8, ["0.0000009", "64.6", "48.0", "0.13"]),
];

#[test]
fn table_4() {
    const ELEMENTS: u64 = 1 << 16; // the window of the comparison
    let window = Window::Count { insertions: ELEMENTS };
    println!(
        " k  l    B  b   bits printed  right   SWAMP printed  ours   NPWS printed  right   accesses in window, fp, \
         false"
    );
    for (k, l, block_bits, parts, [fp, swamp_printed, bits_per_element, weighted_slack]) in TABLE_4 {
        let r = gradient_of_blocks(k, l, block_bits, parts);
        let rate = false_positive_rate(k, &r);
        assert_nearest(rate, fp);
        assert_nearest(npws_terms_printed(k, l, r[k as usize]), weighted_slack);
        // The rows are those of Table 3, so its accesses apply to these bits too.
        let same = TABLE_3.iter().find(|row| (row.0, row.1, row.2, row.3) == (k, l, block_bits, parts)).unwrap();
        assert_eq!([same.4[0], same.4[6]], [fp, weighted_slack]);

        // The elements of l generations are in the filter just after a shift. Whole blocks for 2^16 take slightly more.
        let keys_per_block = mean_load(block_bits, parts) / f64::from(k);
        let bits = f64::from((k + l) * block_bits) / (keys_per_block * f64::from(l));
        assert_nearest(bits, bits_per_element);
        let generation = window.generation(l);
        let blocks = (generation as f64 / keys_per_block).ceil() as u64;
        let shape = RingShape::age_partitioned(k, l, Segment::Blocks { blocks, block_bits, parts }).unwrap();
        assert!((8.0 * shape.nbytes() as f64 / ELEMENTS as f64 / bits - 1.0).abs() < 0.01);
        // A block more than needed lowers the load by its share, and the rate by at most the k b-th power of that.
        let whole_blocks = shape.false_positive_rate(generation) / rate;
        let floor = (1.0 - 1.0 / blocks as f64).powi((k * parts) as i32);
        assert!((floor..1.0).contains(&whole_blocks), "{whole_blocks} {floor}");

        // The conclusion of the paper holds for our SWAMP, which has another table: at the same rate it takes more
        // bits.
        let swamp = swamp::shape::choose(window, Budget::Rate(rate)).unwrap();
        let swamp_bits = 8.0 * swamp.nbytes(ELEMENTS) as f64 / ELEMENTS as f64;
        assert!(swamp_bits > bits);
        let accesses = expected_accesses(k, l, &r);
        println!(
            "{k:2} {l:2}  {block_bits:3}  {parts}   {bits_per_element:>12} {bits:6.2}   \
             {swamp_printed:>13} {swamp_bits:5.1}   {weighted_slack:>12} {:6.3}   {:18.2} {:.2} {:.2}",
            npws(k, l, &r),
            accesses.in_window,
            accesses.false_positive,
            accesses.absent
        );
    }
}
