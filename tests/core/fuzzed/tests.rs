//! A few bytes, equal in each run. Both outcomes are tried: legal bytes are used, others are rejected.

use super::{mix, operations, public_api, saved};

/// Returns this many bytes, drawn by the number.
fn random(number: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| mix(number << 32 | i) as u8).collect()
}

#[test]
fn calls_in_any_order_keep_the_promise() {
    let done = (0..500).filter(|&case| operations::run(&random(case, 40 + case as usize))).count();
    assert!((50..450).contains(&done), "{done} of 500 were filters");
}

#[test]
fn no_call_of_the_public_api_panics() {
    let cases = if std::env::var_os("LATELY_CAMPAIGN").is_some() { 20_000 } else { 200 };
    let built =
        (0..cases).filter(|&case| public_api::run(&random(1 << 20 | case, 60 + case as usize % 400))).count() as u64;
    assert!((cases / 20..cases * 19 / 20).contains(&built), "{built} of {cases} were filters");
}

#[test]
fn saved_filters_of_any_bytes_are_rejected_or_used() {
    let folder = format!("{}/tests/golden", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "lately"));
    files.sort();
    assert!(files.len() >= 28);
    let mut done = 0;
    for (number, file) in (0..).zip(&files) {
        let bytes = std::fs::read(file).unwrap();
        for change in 0..20 {
            let mut changed = bytes.clone();
            // A byte of header and parameters, or of the cells behind them.
            let at = mix(number << 16 | change) as usize % changed.len().min(400);
            changed[at] = mix(change) as u8;
            let read = saved::run(&changed);
            assert_eq!(read, saved::run_briefly(&changed));
            done += usize::from(read);
        }
    }
    assert!((100..20 * files.len()).contains(&done), "{done} were filters");
}

#[test]
fn bytes_that_once_broke_a_saved_filter_are_handled() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/core/fuzzed/found/rejected");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(!files.is_empty());
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!saved::run(&bytes) && !saved::run_briefly(&bytes), "{}", file.display());
    }
}
