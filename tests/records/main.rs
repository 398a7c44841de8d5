//! The records of blocks, and what is wrong with others. `tests/test_cli_generated.py` compares them with Python's
//! readers.

#[allow(dead_code, reason = "the command uses the rest")]
#[path = "../../crates/lately-python/src/reader/mod.rs"]
mod reader;

mod fuzzed;

use fuzzed::options;
use lately::key::{KeyHasher, Seed};
use reader::{CsvReader, Encoding, JsonReader, LineReader, Reader, Words, read_shared};

fn hasher() -> KeyHasher {
    KeyHasher::new(1)
}

/// Returns the hashes of the keys of a file, and what is wrong with the first malformed record.
fn read(reader: &impl Reader, block: &str) -> (Vec<u64>, String) {
    let records = reader.read(block.as_bytes(), 0, true, &hasher());
    (records.hashes, records.fault.map_or(String::new(), |fault| fault.reason))
}

fn row(fields: &[u64]) -> u64 {
    fields.iter().fold(hasher().row_start(fields.len()), |chain, &field| hasher().row_next(chain, field))
}

fn text(text: &str) -> u64 {
    hasher().text(text)
}

fn csv(width: usize, key: Vec<usize>, encoding: Encoding) -> CsvReader {
    let mut reader = CsvReader::new(b',', true, options(encoding));
    (reader.width, reader.key) = (width, key);
    reader
}

#[test]
fn the_key_of_a_line_is_the_line_or_words_of_it() {
    let mut reader = LineReader { words: vec![], options: options(Encoding::Utf8) };
    assert_eq!(read(&reader, "a\nb\r\n\n\u{e4}").0, [text("a"), text("b"), text(""), text("\u{e4}")]);
    reader.options.ignore_case = true;
    assert_eq!(read(&reader, "\u{c4}B\n").0, [text("\u{e4}b")]);
    reader.words = vec![Words { first: 2, last: None }];
    assert_eq!(read(&reader, " a  B\t c \n\n").0, [text("b\t c")]);
    reader.words.push(Words { first: 1, last: Some(1) });
    let (keys, wrong) = read(&reader, "a b\na\n");
    assert_eq!(
        (&keys[..], &*wrong),
        (&[row(&[text("b"), text("a")])][..], "expected at least 2 words, for --key, got 1")
    );
}

#[test]
fn csv_keys_are_fields() {
    let reader = csv(3, vec![2, 0], Encoding::Utf8);
    let block = "a,b,c\r\n\"a,\",\"\n\",\"c\"\"\"\n\r\n\na\"b,,\n";
    let keys = [row(&[text("c"), text("a")]), row(&[text("c\""), text("a,")]), row(&[text(""), text("a\"b")])];
    assert_eq!(read(&reader, block), (keys.to_vec(), String::new()));
    for (wrong, reason) in [
        ("a,b\n", "2 fields where the header has 3"),
        ("a,b,c,d\n", "4 fields where the header has 3"),
        ("a,b,\"c", "never closed"),
        ("a,b,\"c\"d\n", "closing quote"),
        ("a,\"b\"\",c\n", "never closed"),
    ] {
        let (keys, problem) = read(&reader, &format!("a,b,c\n{wrong}\na,b,c\n"));
        assert!(problem.contains(reason), "{wrong:?} {problem}");
        assert_eq!(keys, [row(&[text("c"), text("a")]); 2], "{wrong:?}");
    }
}

/// With a secret, texts are hashed in groups, and keys that must be decoded between them.
#[test]
fn with_a_secret_records_have_the_hashes_of_single_ones() {
    let secret = KeyHasher::of(Seed::Secret([5, 6]));
    for encoding in fuzzed::encodings() {
        let utf8 = matches!(encoding, Encoding::Utf8);
        let readers: [Box<dyn Reader>; 3] = [
            Box::new(LineReader { words: vec![], options: options(encoding.clone()) }),
            Box::new(csv(2, vec![1], encoding.clone())),
            Box::new(csv(2, vec![1, 0], encoding)),
        ];
        let field = |i: usize| -> Vec<u8> {
            match i % 23 {
                7 => b"\"doubled \"\" quotes\"".to_vec(),
                13 if utf8 => b"\xff no text".to_vec(),
                19 => "\u{e4}\u{1f600}".into(),
                _ => "x".repeat(i % 40).into(),
            }
        };
        let lines: Vec<_> = (0..300).map(|i| [&field(i)[..], b",", &field(i / 2), b"\n"].concat()).collect();
        for reader in readers {
            let all = reader.read(&lines.concat(), 0, true, &secret);
            let alone = |line: &Vec<u8>| reader.read(line, 0, true, &secret).hashes[0];
            assert_eq!(all.hashes, lines.iter().map(alone).collect::<Vec<_>>());
        }
    }
}

#[test]
fn json_keys_are_values() {
    let reader = JsonReader::new(&["k".into()], None, options(Encoding::Utf8));
    for (value, hash) in [
        ("\"a\"", text("a")),
        (r#""\/\u00e4\ud83d\ude00\n""#, text("/\u{e4}\u{1f600}\n")),
        (r#""\ud800""#, hasher().text(b"\xed\xa0\x80")),
        ("5", hasher().integer(5)),
        ("5.0", hasher().integer(5)),
        ("-0.5e0", hasher().float(-0.5)),
        ("1e999", hasher().float(f64::INFINITY)),
        ("-Infinity", hasher().float(f64::NEG_INFINITY)),
        ("NaN", hasher().missing()),
        ("9223372036854775808", hasher().unsigned(1 << 63)),
        ("-170141183460469231731687303715884105728", hasher().big_integer(&i128::MIN.to_le_bytes())),
        ("340282366920938463463374607431768211456", hasher().big_integer(&[&[0; 16][..], &[1]].concat())),
        ("-340282366920938463463374607431768211456", hasher().big_integer(&[&[0; 16][..], &[255]].concat())),
        ("true", hasher().integer(1)),
        ("null", hasher().missing()),
    ] {
        let block = format!(
            " {{ \"j\\ud800\" : [1, {{\"k\": [{{}}, []]}}, \"NaN\\ud800\"] ,\"k\":\"x\",\t\"k\" :{value} }}\r\n"
        );
        assert_eq!(read(&reader, &block), (vec![hash], String::new()), "{block}");
    }
    for (line, reason) in [
        ("[]", "expected an object, got an array"),
        ("5", "expected an object, got a number"),
        ("{\"k\": 1", "not JSON: EOF while parsing an object at column 7"),
        ("{\"k\": 01}", "not JSON"),
        ("{\"k\": 1}}", "not JSON: trailing characters"),
        ("{k: 1}", "not JSON"),
        ("{}", "it has none of the key fields k"),
        ("{\"k\": [1]}", "the key field k is not a single value"),
        (&format!("{{\"k\": {}}}", "1".repeat(5_000)), "the key field k has more than 4300 digits"),
    ] {
        let (keys, problem) = read(&reader, &format!("{line}\n{{\"k\": 5}}\n\n"));
        assert!(problem.starts_with(reason), "{line} {problem}");
        assert_eq!(keys, [hasher().integer(5)], "{line}");
    }
}

#[test]
fn a_name_with_dots_is_a_path() {
    let reader = |field: &str| JsonReader::new(&[field.into(), "j".into()], None, options(Encoding::Utf8));
    for (line, value) in [
        (r#"{"j": 0, "n": {"x": 1}}"#, hasher().integer(1)),
        (r#"{"j": 0, "n.x": 2, "n": {"x": 1}}"#, hasher().integer(2)),
        (r#"{"j": 0, "n": {"x": 1}, "n": {"y": 1}}"#, hasher().missing()),
        (r#"{"j": 0, "n": {"x": 1}, "n": 3}"#, hasher().missing()),
        (r#"{"j": 0, "n": {"x": 1, "x": 4}, "x": 5}"#, hasher().integer(4)),
    ] {
        assert_eq!(read(&reader("n.x"), line).0, [row(&[value, hasher().integer(0)])], "{line}");
    }
    let line = r#"{"j": 0, "n": {"x": {"y": 1, "n": {"x": 9}}}}"#;
    assert_eq!(read(&reader("n.x.y"), line).0, [row(&[hasher().integer(1), hasher().integer(0)])]);
    assert!(read(&reader("n.x"), line).1.contains("not a single value"));
}

#[test]
fn numbers_of_times_are_exact() {
    let mut reader = csv(1, vec![0], Encoding::Utf8);
    reader.time = Some(0);
    for (places, number, moment) in [
        (9, "1700000000", Some(1_700_000_000_000_000_000)),
        (9, " -1.5 ", Some(-1_500_000_000)),
        (9, "1700000000.123456789", Some(1_700_000_000_123_456_789)),
        (9, "0.0000000005", Some(1)),
        (9, ".5", Some(500_000_000)),
        (9, "5.", Some(5_000_000_000)),
        (9, "1e5", None),
        (6, "0.5", Some(500_000)),
        (6, "1.5", Some(1_500_000)),
        (0, "7", Some(7)),
        (9, "1700000000000", None),
        (9, "9e99", None),
        (9, ".", None),
        (9, "", None),
        (9, "1_0", None),
        (9, "nan", None),
        (9, "2020-01-31", None),
    ] {
        reader.options.places = Some(places);
        let records = reader.read(format!("\"{number}\"\n").as_bytes(), 0, true, &hasher());
        assert_eq!(records.moments, [moment.unwrap_or(0)], "{number}");
        assert_eq!(records.texts.is_empty(), moment.is_some(), "{number}");
    }
}

/// Quotes may span lines, so one thread reads them.
#[test]
fn several_threads_read_the_records_of_one() {
    let mut lone = csv(2, vec![1], Encoding::StrictUtf8);
    lone.time = Some(0);
    let readers: [Box<dyn Reader>; 3] = [
        Box::new(lone),
        Box::new(LineReader { words: vec![], options: options(Encoding::StrictUtf8) }),
        Box::new(JsonReader::new(&["k".into(), "j".into()], Some("t"), options(Encoding::StrictUtf8))),
    ];
    for (kind, reader) in readers.iter().enumerate() {
        let line = |i: usize| match kind {
            2 if i == 9_000 => format!("{{\"t\": {i}, \"j\": null}}\n"),
            2 => format!("{{\"t\": {i}, \"k\": \"{}\"}}\n", i * i),
            _ => format!("{i},{}\n", i * i),
        };
        let lines: Vec<_> = (0..20_000).map(line).collect();
        let long = "x".repeat(20_000) + "\n";
        for bad in [None, Some((0, "\"a\n\",\"b\n\"\n")), Some((7_000, &*long)), Some((19_999, "\"x"))] {
            let mut block = lines.clone();
            if let Some((place, record)) = bad {
                block[place] = record.to_owned();
            }
            let block = block.concat().into_bytes();
            for start in [0, lines[0].len()] {
                let one = reader.read(&block, start, true, &hasher());
                for threads in 1..6 {
                    assert_eq!(read_shared(&**reader, &block, start, true, &hasher(), threads), one);
                }
            }
        }
    }
}

/// Returns the splitmix64 hash of a number.
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn blocks_of_any_bytes_are_read_consistently() {
    // Bytes with a meaning in one of the grammars, and a few others. JSON takes longer pieces: of 1,017 blocks of
    // single bytes none contains an object with a key.
    let bytes = b"\"\"\"\"\\\n\n\n\r,,,:{}{}[]k\"k\"tn.x1-0e+u8 \t#\xc3\xa4\xff\0";
    let json = "\n{\"k\":|\n{\"t\":5,\"k\":|\n{\"t\":5,\"n\":{\"x\":|\n{\"n.x\":|,\
        \"n\":|1|1}\n|\"x\"}\n|null}\n|0}}\n|}|}\n|\"|\\|[|\r";
    let single: Vec<_> = bytes.chunks(1).collect();
    let pieces: Vec<_> = json.split('|').map(str::as_bytes).collect();
    let mut read = [0; 4];
    for number in 0..4_000 {
        let draw = |i: u64| mix(number << 32 | i);
        let mut block: Vec<_> = (0..4).map(|i| draw(i) as u8).collect();
        let kind = usize::from(block[0] & 3);
        let grammar = if kind == 1 { &pieces } else { &single };
        block.extend((4..8 + number % 60).flat_map(|i| grammar[draw(i) as u8 as usize % grammar.len()]));
        read[kind] += fuzzed::run(&block);
    }
    // The blocks are the same in each run: 1,226 records of lines, 259 of JSON, 441 of CSV and 585 without quotes. A
    // tenth less leaves room for a rule of a grammar to change, and none for a reader that rejects all.
    let floor = [1_100, 233, 396, 526];
    assert!(read.iter().zip(floor).all(|(&read, floor)| read >= floor), "only {read:?} records were read");
}
