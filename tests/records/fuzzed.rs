//! Reads blocks of any bytes with any reader of records, and checks that the records are consistent.

use super::reader::{CsvReader, Encoding, JsonReader, LineReader, Reader, RecordBatch};
use lately::key::KeyHasher;

/// UTF-8, Latin-1, and an encoding of which only printable ASCII is read.
pub fn encodings() -> [Encoding; 4] {
    let latin = std::array::from_fn(|byte| Some(char::from(byte as u8)));
    let printable = |letter: &char| matches!(letter, ' '..='~' | '\t' | '\r' | '\n');
    let ascii = Encoding::Bytes(Box::new(latin.map(|letter| letter.filter(printable))));
    [Encoding::Utf8, Encoding::StrictUtf8, Encoding::Bytes(Box::new(latin)), ascii]
}

/// Reads a block after four bytes, which choose the reader. Returns the number of records.
pub fn run(bytes: &[u8]) -> usize {
    let Some((&[kind, key, time, start], block)) = bytes.split_first_chunk() else { return 0 };
    let reader = reader(kind, key, time);
    let start = start as usize % (block.len() + 1);
    let (records, stop) = read(&*reader, block, start);
    // From the start of any record on, the same records are read.
    for (i, &end) in records.ends.iter().enumerate() {
        let (rest, end) = read(&*reader, block, end);
        assert_eq!((&rest.ends[..], end), (&records.ends[i + 1..], stop));
        assert_eq!(rest.hashes, records.hashes[i + 1..]);
    }
    // A block that ends where a record ends is read completely.
    assert_eq!(read(&*reader, &block[..stop], start), (records, stop));
    stop
}

fn reader(kind: u8, key: u8, time: u8) -> Box<dyn Reader> {
    let (encoding, longest) = (encodings()[kind as usize >> 2 & 3].clone(), 4 + (kind as usize >> 4) * 8);
    match kind & 3 {
        0 => Box::new(LineReader { encoding, longest }),
        1 => {
            let fields = ["k", "n.x", "n.x.k", "n"].into_iter().enumerate();
            let key: Vec<_> = fields.filter(|(i, _)| key >> i & 1 == 1).map(|(_, field)| field.to_owned()).collect();
            let json = JsonReader::new(&key, (time & 1 == 1).then_some("t"), encoding, longest);
            Box::new(json.expect("a few fields"))
        }
        quotes => {
            let width = 1 + key as usize % 3;
            Box::new(CsvReader {
                delimiter: b',',
                quotes: quotes == 2,
                width,
                key: (0..width).filter(|field| key >> (field + 2) & 1 == 1).collect(),
                time: (time & 1 == 1).then_some(time as usize % width),
                comments: time & 2 == 2,
                encoding,
                longest,
            })
        }
    }
}

fn read(reader: &dyn Reader, block: &[u8], start: usize) -> (RecordBatch, usize) {
    let mut records = RecordBatch::default();
    let stop = reader.read(block, start, &KeyHasher::new(7), &mut records);
    assert_eq!(records.hashes.len(), records.ends.len());
    assert_eq!(stop, records.ends.last().copied().unwrap_or(start));
    let mut begin = start;
    for (i, &end) in records.ends.iter().enumerate() {
        assert!(begin < end && end <= block.len());
        assert!(end == block.len() || block[end - 1] == b'\n');
        if let Some(time) = records.times.get(i) {
            assert!(begin <= time.start && time.start <= time.end && time.end <= end);
        }
        begin = end;
    }
    assert!(records.times.is_empty() || records.times.len() == records.ends.len());
    (records, stop)
}
