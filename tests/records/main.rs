//! Which records of a block are read, and with which keys. `tests/test_cli_fast_path.py` compares them with those of
//! Python.

#[allow(dead_code, reason = "the command uses the rest")]
#[path = "../../crates/lately-python/src/reader/mod.rs"]
mod reader;

mod fuzzed;

use lately::key::{KeyHasher, Seed};
use reader::{CsvReader, Encoding, JsonReader, LineReader, MAX_FIELDS, Reader, RecordBatch, read_shared};

fn hasher() -> KeyHasher {
    KeyHasher::new(1)
}

/// Returns the hashes of the keys that are read from the start on, and the text that is left.
fn read<'a>(reader: &impl Reader, block: &'a str) -> (Vec<u64>, &'a str) {
    let mut records = RecordBatch::default();
    let stop = reader.read(block.as_bytes(), 0, &hasher(), &mut records);
    (records.hashes, &block[stop..])
}

fn row(fields: &[u64]) -> u64 {
    fields.iter().fold(hasher().row_start(fields.len()), |chain, &field| hasher().row_next(chain, field))
}

fn text(text: &str) -> u64 {
    hasher().text(text)
}

#[test]
fn each_line_is_a_key() {
    let reader = LineReader { encoding: Encoding::Utf8, longest: 4 };
    assert_eq!(read(&reader, "a\nb\r\n\n\u{e4}"), (vec![text("a"), text("b"), text(""), text("\u{e4}")], ""));
    assert_eq!(read(&reader, "a\nlonger\nb"), (vec![text("a")], "longer\nb"));
}

#[test]
fn csv_keys_are_fields_or_the_record_is_left() {
    let reader = CsvReader {
        delimiter: b',',
        quotes: true,
        width: 3,
        key: vec![2, 0],
        time: None,
        comments: false,
        encoding: Encoding::Utf8,
        longest: 100,
    };
    let block = "a,b,c\r\n\"a,\",\"\n\",\"c\"\"\"\na\"b,,\n";
    let keys = vec![row(&[text("c"), text("a")]), row(&[text("c\""), text("a,")]), row(&[text(""), text("a\"b")])];
    assert_eq!(read(&reader, block), (keys, ""));
    for left in ["a,b\n", "a,b,c,d\n", "a,b,\"c", "a,b,\"c\"d\n", "a,b\rb,c\n", "\n", "\r\n", "\"a\"\r,b,c\n"] {
        let block = format!("a,b,c\n{left}a,b,c\n");
        assert_eq!(read(&reader, &block), (vec![row(&[text("c"), text("a")])], &block[6..]), "{left:?}");
    }
}

/// With a secret, texts are hashed in groups, and keys that must be decoded between them.
#[test]
fn with_a_secret_records_have_the_hashes_of_single_ones() {
    let secret = KeyHasher::new(Seed::Secret([5, 6]));
    let csv = |key, quotes, encoding| CsvReader {
        delimiter: b',',
        quotes,
        width: 2,
        key,
        time: None,
        comments: false,
        encoding,
        longest: 100,
    };
    for (number, encoding) in fuzzed::encodings().into_iter().enumerate() {
        let readers: [Box<dyn Reader>; 4] = [
            Box::new(LineReader { encoding: encoding.clone(), longest: 100 }),
            Box::new(csv(vec![1], true, encoding.clone())),
            Box::new(csv(vec![0], false, encoding.clone())),
            Box::new(csv(vec![1, 0], true, encoding.clone())),
        ];
        let field = |i: usize| -> Vec<u8> {
            match i % 23 {
                7 => b"\"doubled \"\" quotes\"".to_vec(),
                13 if encoding == Encoding::Utf8 => b"\xff no text".to_vec(),
                19 if number != 3 => "\u{e4}\u{1f600}".into(),
                _ => "x".repeat(i % 40).into(),
            }
        };
        let lines: Vec<_> = (0..300).map(|i| [&field(i)[..], b",", &field(i / 2), b"\n"].concat()).collect();
        for reader in readers {
            for bad in [None, Some(0), Some(63), Some(64), Some(150)] {
                let mut lines = lines.clone();
                if let Some(bad) = bad {
                    lines[bad] = b"too long".repeat(50);
                }
                let mut all = RecordBatch::default();
                let stop = reader.read(&lines.concat(), 0, &secret, &mut all);
                let expected = &lines[..bad.unwrap_or(lines.len())];
                assert_eq!(stop, expected.concat().len());
                let alone = |line: &Vec<u8>| {
                    let mut one = RecordBatch::default();
                    reader.read(line, 0, &secret, &mut one);
                    one.hashes[0]
                };
                assert_eq!(all.hashes, expected.iter().map(alone).collect::<Vec<_>>(), "{encoding:?} {bad:?}");
            }
        }
    }
}

#[test]
fn json_keys_are_values_or_the_record_is_left() {
    let reader = JsonReader::new(&["k".into()], None, Encoding::StrictUtf8, 1 << 20).unwrap();
    for (value, hash) in [
        ("\"a\"", text("a")),
        (r#""\/\u00e4\ud83d\ude00\n""#, text("/\u{e4}\u{1f600}\n")),
        ("5", hasher().integer(5)),
        ("5.0", hasher().integer(5)),
        ("-0.5e0", hasher().float(-0.5)),
        ("true", hasher().integer(1)),
        ("null", hasher().missing()),
    ] {
        let block = format!(" {{ \"j\" : [1, {{\"k\": [{{}}, []]}}] ,\"k\":\"x\",\t\"k\" :{value} }}\r\n");
        assert_eq!(read(&reader, &block), (vec![hash], ""), "{block}");
    }
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let digits = "1".repeat(5_000);
    for left in
        ["[]", "{}", r#""\ud800""#, "01", "1.", "-", "NaN", "nul", "\"\t\"", "9223372036854775808", &deep, &digits]
    {
        let block = format!("{{\"k\": {left}}}");
        assert_eq!(read(&reader, &block), (vec![], &block[..]));
    }
    for left in
        ["", " ", "{}", "[]", "{\"k\": 1", "{\"k\": 1,}", "{\"k\": 1}}", "{\"k\" 1}", "{\"\\u006b\": 1}", "{k: 1}"]
    {
        let block = format!("{left}\n");
        assert_eq!(read(&reader, &block), (vec![], &block[..]));
    }
}

/// The first record that a thread does not read ends the batch. Quotes may span lines, so one thread reads them.
#[test]
fn several_threads_read_the_records_of_one() {
    let csv = |quotes| CsvReader {
        delimiter: b',',
        quotes,
        width: 2,
        key: vec![1],
        time: Some(0),
        comments: false,
        encoding: Encoding::StrictUtf8,
        longest: 100,
    };
    let readers: [Box<dyn Reader + Send + Sync>; 4] = [
        Box::new(csv(true)),
        Box::new(csv(false)),
        Box::new(LineReader { encoding: Encoding::StrictUtf8, longest: 100 }),
        Box::new(JsonReader::new(&["k".into(), "j".into()], Some("t"), Encoding::StrictUtf8, 100).unwrap()),
    ];
    for (kind, reader) in readers.iter().enumerate() {
        let line = |i: usize| match kind {
            3 if i == 9_000 => format!("{{\"t\": {i}, \"j\": null}}\n"),
            3 => format!("{{\"t\": {i}, \"k\": \"{}\"}}\n", i * i),
            _ => format!("{i},{}\n", i * i),
        };
        let lines: Vec<_> = (0..20_000).map(line).collect();
        let long = "x".repeat(200) + "\n";
        for bad in [None, Some((0, "\"a\n\",\"b\n\"\n")), Some((7_000, &long)), Some((19_999, &long))] {
            let mut block = lines.clone();
            if let Some((place, record)) = bad {
                block[place] = record.to_owned();
            }
            let block = block.concat().into_bytes();
            for start in [0, lines[0].len()] {
                let mut one = RecordBatch::default();
                let stop = reader.read(&block, start, &hasher(), &mut one);
                for threads in 1..6 {
                    assert_eq!(read_shared(&**reader, &block, start, &hasher(), threads), (one.clone(), stop));
                }
            }
        }
    }
}

#[test]
fn a_name_with_dots_is_a_path() {
    let reader =
        |field: &str| JsonReader::new(&[field.into(), "j".into()], None, Encoding::StrictUtf8, 1 << 20).unwrap();
    for (line, value) in [
        (r#"{"j": 0, "n": {"x": 1}}"#, hasher().integer(1)),
        (r#"{"j": 0, "n.x": 2, "n": {"x": 1}}"#, hasher().integer(2)),
        (r#"{"j": 0, "n": {"x": 1}, "n": {"y": 1}}"#, hasher().missing()),
        (r#"{"j": 0, "n": {"x": 1}, "n": 3}"#, hasher().missing()),
        (r#"{"j": 0, "n": {"x": 1, "x": 4}, "x": 5}"#, hasher().integer(4)),
    ] {
        assert_eq!(read(&reader("n.x"), line), (vec![row(&[value, hasher().integer(0)])], ""), "{line}");
    }
    let line = r#"{"j": 0, "n": {"x": {"y": 1, "n": {"x": 9}}}}"#;
    assert_eq!(read(&reader("n.x.y"), line).0, [row(&[hasher().integer(1), hasher().integer(0)])]);
    assert_eq!(read(&reader("n.x"), line), (vec![], line));
    let many: Vec<_> = (0..MAX_FIELDS as u32).map(|i| i.to_string()).collect();
    assert!(JsonReader::new(&many, None, Encoding::StrictUtf8, 1).is_some());
    assert!(JsonReader::new(&many, Some("t"), Encoding::StrictUtf8, 1).is_none());
}

/// Returns the splitmix64 hash of a number.
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn blocks_of_any_bytes_are_read_consistently() {
    // Bytes with a meaning in one of the grammars, and a few others.
    let grammar = b"\"\"\"\"\\\n\n\n\r,,,:{}{}[]k\"k\"tn.x1-0e+u8 \t#\xc3\xa4\xff\0";
    let mut read = 0;
    for number in 0..4_000 {
        let bytes: Vec<u8> = (0..8 + number % 60)
            .map(|i| mix(number << 32 | i) as u8)
            .enumerate()
            .map(|(i, byte)| if i < 4 { byte } else { grammar[byte as usize % grammar.len()] })
            .collect();
        read += fuzzed::run(&bytes);
    }
    assert!(read > 4_000, "only {read} records were read");
}
