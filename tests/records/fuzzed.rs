//! Blocks of any bytes, read by any reader of records.

use super::reader::{Csv, Encoding, Found, Json, Lines, Reader};
use lately::key::KeyHasher;

const ENCODINGS: [Encoding; 4] = [Encoding::Utf8, Encoding::StrictUtf8, Encoding::Latin1, Encoding::Ascii];

/// Reads a block that follows four bytes, which choose how. Gives the number of records taken.
pub fn run(bytes: &[u8]) -> usize {
    let Some((&[kind, key, time, start], block)) = bytes.split_first_chunk() else { return 0 };
    let reader = reader(kind, key, time);
    let start = start as usize % (block.len() + 1);
    let found = taken(&*reader, block, start);
    // From the beginning of any record on, the same.
    for (i, &end) in found.0.ends.iter().enumerate() {
        let (rest, stop) = taken(&*reader, block, end);
        assert_eq!((&rest.ends[..], stop), (&found.0.ends[i + 1..], found.1));
        assert_eq!(rest.hashes, found.0.hashes[i + 1..]);
    }
    // And of a block that ends where a record does, all.
    let end = found.1;
    assert_eq!(taken(&*reader, &block[..end], start), (found.0, end));
    end
}

fn reader(kind: u8, key: u8, time: u8) -> Box<dyn Reader> {
    let (encoding, longest) = (ENCODINGS[kind as usize >> 2 & 3], 4 + (kind as usize >> 4) * 8);
    match kind & 3 {
        0 => Box::new(Lines { encoding, longest }),
        1 => {
            let fields = ["k", "n.x", "n.x.k", "n"].into_iter().enumerate();
            let key: Vec<_> = fields.filter(|(i, _)| key >> i & 1 == 1).map(|(_, field)| field.to_owned()).collect();
            let json = Json::new(&key, (time & 1 == 1).then_some("t"), encoding, longest);
            Box::new(json.expect("a few fields"))
        }
        quotes => {
            let width = 1 + key as usize % 3;
            Box::new(Csv {
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

fn taken(reader: &dyn Reader, block: &[u8], start: usize) -> (Found, usize) {
    let mut found = Found::default();
    let stop = reader.read(block, start, &KeyHasher::new(7), &mut found);
    assert_eq!(found.hashes.len(), found.ends.len());
    assert_eq!(stop, found.ends.last().copied().unwrap_or(start));
    let mut begin = start;
    for (i, &end) in found.ends.iter().enumerate() {
        assert!(begin < end && end <= block.len());
        assert!(end == block.len() || block[end - 1] == b'\n');
        if let Some(time) = found.times.get(i) {
            assert!(begin <= time.start && time.start <= time.end && time.end <= end);
        }
        begin = end;
    }
    assert!(found.times.is_empty() || found.times.len() == found.ends.len());
    (found, stop)
}
