//! Reads blocks of any bytes with any reader of records, and checks that the records are consistent.

use std::sync::Arc;

use super::reader::{CsvReader, Encoding, JsonReader, LineReader, Reader, RecordBatch, RecordOptions, Words};
use lately::key::KeyHasher;

/// UTF-8, UTF-8 without other bytes, and Latin-1.
pub fn encodings() -> [Encoding; 3] {
    let latin = |bytes: &[u8]| Some(bytes.iter().map(|&byte| char::from(byte)).collect());
    [Encoding::Utf8, Encoding::StrictUtf8, Encoding::Other("latin-1".into(), Arc::new(latin))]
}

/// Options that skip malformed records.
pub fn options(encoding: Encoding) -> RecordOptions {
    RecordOptions { encoding, ignore_case: false, longest: 1 << 13, places: Some(9), skip_malformed: true }
}

/// Reads a block after four bytes, which choose the reader. Returns the number of records.
pub fn run(bytes: &[u8]) -> usize {
    let Some((&[kind, key, time, start], block)) = bytes.split_first_chunk() else { return 0 };
    let reader = reader(kind, key, time);
    let start = start as usize % (block.len() + 1);
    let all = read(&*reader, block, start, true);
    // From the start of any record on, the same records are read.
    for (i, span) in all.spans.iter().enumerate() {
        let rest = read(&*reader, block, span.start, true);
        assert_eq!((&rest.spans[..], rest.stop), (&all.spans[i..], all.stop));
        assert_eq!(rest.hashes, all.hashes[i..]);
    }
    // What is left when more may follow is read when nothing does.
    let first = read(&*reader, block, start, false);
    let rest = read(&*reader, block, first.stop, true);
    if first.fault.is_none_or(|fault| !fault.is_fatal) {
        assert_eq!([first.spans, rest.spans].concat(), all.spans);
        assert_eq!([first.hashes, rest.hashes].concat(), all.hashes);
        assert_eq!(first.malformed + rest.malformed, all.malformed);
    }
    all.spans.len()
}

fn reader(kind: u8, key: u8, time: u8) -> Box<dyn Reader> {
    let longest = 4 + (kind as usize >> 4) * 8;
    let options =
        RecordOptions { longest, ignore_case: key >> 7 == 1, ..options(encodings()[(kind as usize >> 2) % 3].clone()) };
    match kind & 3 {
        0 => {
            let words = (1..=2).filter(|word| key >> word & 1 == 1);
            let words = words.map(|first| Words { first, last: (time & 1 == 1).then_some(first) }).collect();
            Box::new(LineReader { words, options })
        }
        1 => {
            let fields = ["k", "n.x", "n.x.k", "n"].into_iter().enumerate();
            let key: Vec<_> = fields.filter(|(i, _)| key >> i & 1 == 1).map(|(_, field)| field.to_owned()).collect();
            Box::new(JsonReader::new(&key, (time & 1 == 1).then_some("t"), options))
        }
        quotes => {
            let mut reader = CsvReader::new(b',', quotes == 2, options);
            reader.width = 1 + key as usize % 3;
            reader.key = (0..reader.width).filter(|field| key >> (field + 2) & 1 == 1).collect();
            reader.time = (time & 1 == 1).then_some(time as usize % reader.width);
            reader.comments = (time & 2 == 2).then(|| b"#fields".to_vec());
            Box::new(reader)
        }
    }
}

fn read(reader: &dyn Reader, block: &[u8], start: usize, last: bool) -> RecordBatch {
    let records = reader.read(block, start, last, &KeyHasher::new(7));
    assert_eq!(records.hashes.len(), records.spans.len());
    assert!(records.moments.is_empty() || records.moments.len() == records.spans.len());
    let is_fatal = records.fault.as_ref().is_some_and(|fault| fault.is_fatal);
    assert!(!last || is_fatal || records.stop == block.len());
    let mut end = start;
    for span in &records.spans {
        assert!(end <= span.start && span.start < span.end && span.end <= block.len());
        end = span.end;
    }
    assert!(end <= records.stop);
    records
}
