//! Reads JSON lines: an object on each line, as Python's `json` reads it.

mod scan;

use scan::{JsonKind, JsonValue, Scan};

use super::lines::{lines, without_end};
use super::text::{BlockText, Encoding};
use super::{Reader, RecordBatch, RowHasher};
use lately::key::KeyHasher;

/// The greatest number of fields to read, because each has a bit.
pub const MAX_FIELDS: usize = 64;

/// Reads objects whose key is some of their fields, or the whole line.
#[derive(Clone, Debug)]
pub struct JsonReader {
    /// The fields of the key, then the field of the time if there is one.
    fields: Vec<JsonField>,
    key: usize,
    encoding: Encoding,
    longest: usize,
}

/// A field, by its name. A name with dots is also a path of nested fields, which is used if no field has that name.
#[derive(Clone, Debug)]
struct JsonField {
    name: Vec<u8>,
    path: Vec<Vec<u8>>,
}

/// The values of a field in a record: of its name, and of its path.
#[derive(Clone, Default)]
struct FieldValues {
    named: Option<JsonValue>,
    nested: Option<JsonValue>,
}

impl JsonReader {
    /// Creates a reader of objects whose key is these fields, or the whole line without fields. Lines longer than
    /// `longest` are not read. `None` for more than [`MAX_FIELDS`].
    pub fn new(key: &[String], time: Option<&str>, encoding: Encoding, longest: usize) -> Option<Self> {
        let fields: Vec<_> = key.iter().map(String::as_str).chain(time).map(JsonField::new).collect();
        let encoding = match encoding {
            Encoding::Utf8 | Encoding::StrictUtf8 => Encoding::StrictUtf8,
            Encoding::Bytes(mut letters) => {
                letters[128..].fill(None); // other letters would have to be decoded before they are parsed
                Encoding::Bytes(letters)
            }
        };
        (fields.len() <= MAX_FIELDS).then_some(Self { key: key.len(), fields, encoding, longest })
    }
}

impl JsonField {
    fn new(name: &str) -> Self {
        let path =
            if name.contains('.') { name.split('.').map(|part| part.as_bytes().to_vec()).collect() } else { vec![] };
        Self { name: name.as_bytes().to_vec(), path }
    }
}

impl Reader for JsonReader {
    fn read(&self, block: &[u8], start: usize, hasher: &KeyHasher, records: &mut RecordBatch) -> usize {
        let mut text = BlockText::new(block, &self.encoding);
        let row = RowHasher::new(hasher, self.key);
        let mut values = vec![FieldValues::default(); self.fields.len()];
        let mut scratch = Vec::new();
        for (line, end) in lines(block, start) {
            if end - line > self.longest || !text.accepts(line, end) {
                return line;
            }
            let content = without_end(&block[line..end]);
            values.fill(FieldValues::default());
            if self.read_object(content, &mut values).is_none() {
                return line;
            }
            let value = |i: usize| {
                let values: &FieldValues = &values[i];
                values.named.as_ref().or(values.nested.as_ref())
            };
            let has = (0..self.key).fold(0, |bits, i| bits | u64::from(value(i).is_some()) << i);
            let hash = if self.key == 0 {
                Some(hasher.text(content.trim_ascii()))
            } else {
                let fields = (0..self.key).map(|i| match value(i) {
                    Some(value) => value.hash(content, hasher, &mut scratch),
                    None => Some(hasher.missing()),
                });
                if has == 0 { None } else { row.hash(hasher, fields) }
            };
            let Some(hash) = hash else { return line };
            if self.fields.len() > self.key {
                let Some(JsonValue { kind, range }) = value(self.key) else { return line };
                let quote = match kind {
                    JsonKind::Integer | JsonKind::Float => 0,
                    JsonKind::Text { escaped: false } => 1,
                    _ => return line,
                };
                records.times.push(line + range.start - quote..line + range.end + quote);
            }
            records.fields_present |= has;
            records.hashes.push(hash);
            records.ends.push(end);
        }
        block.len()
    }

    fn is_shared(&self, _: &[u8]) -> bool {
        true
    }
}

impl JsonReader {
    fn read_object(&self, content: &[u8], values: &mut [FieldValues]) -> Option<()> {
        let mut scan = Scan::new(content);
        scan.space();
        let all = u64::MAX >> (MAX_FIELDS - self.fields.len().max(1));
        scan.expect(b'{')?;
        self.members(&mut scan, 0, if self.fields.is_empty() { 0 } else { all }, values)?;
        scan.space();
        scan.at_end().then_some(())
    }

    /// Reads the members of an object after its brace, and stores the values of fields. `candidates` are the fields
    /// whose paths lead to this object.
    fn members(&self, scan: &mut Scan<'_>, depth: usize, candidates: u64, values: &mut [FieldValues]) -> Option<()> {
        scan.space();
        if scan.takes(b'}') {
            return Some(());
        }
        loop {
            scan.expect(b'"')?;
            let name = scan.name()?;
            scan.space();
            scan.expect(b':')?;
            scan.space();
            let (mut named, mut on) = (0u64, 0u64);
            for (i, field) in self.fields.iter().enumerate() {
                named |= u64::from(depth == 0 && field.name == name) << i;
                on |=
                    u64::from(candidates >> i & 1 == 1 && field.path.get(depth).is_some_and(|part| part == name)) << i;
            }
            if named | on == 0 {
                scan.value(depth)?;
            } else {
                self.member(scan, depth, named, on, values)?;
            }
            scan.space();
            if scan.takes(b'}') {
                return Some(());
            }
            scan.expect(b',')?;
            scan.space();
        }
    }

    /// Reads a value. The fields `named` have its name, and the paths of the fields `on` lead to it.
    fn member(&self, scan: &mut Scan<'_>, depth: usize, named: u64, on: u64, values: &mut [FieldValues]) -> Option<()> {
        let has = |bits: u64, i: usize| bits >> i & 1 == 1;
        let within = (0..values.len())
            .filter(|&i| has(on, i) && self.fields[i].path.len() > depth + 1)
            .fold(0, |bits, i| bits | 1 << i);
        // If members have the same name, the last one counts.
        (0..values.len()).filter(|&i| has(on, i)).for_each(|i| values[i].nested = None);
        let value = if within != 0 && scan.takes(b'{') {
            scan.deeper(depth)?;
            self.members(scan, depth + 1, within, values)?;
            JsonValue::nested()
        } else {
            scan.value(depth)?
        };
        for (i, values) in values.iter_mut().enumerate() {
            if has(named, i) {
                values.named = Some(value.clone());
            }
            if has(on & !within, i) {
                values.nested = Some(value.clone());
            }
        }
        Some(())
    }
}

impl JsonValue {
    /// Returns the hash of a value of a line, unless it is an object or an array, or its text is not valid.
    fn hash(&self, line: &[u8], hasher: &KeyHasher, scratch: &mut Vec<u8>) -> Option<u64> {
        let bytes = &line[self.range.clone()];
        let number = || std::str::from_utf8(bytes).ok();
        match self.kind {
            JsonKind::Text { escaped: false } => Some(hasher.text(bytes)),
            JsonKind::Text { escaped: true } => scan::unescaped(bytes, scratch).map(|text| hasher.text(text)),
            JsonKind::Integer => number()?.parse().ok().map(|number| hasher.integer(number)),
            JsonKind::Float => number()?.parse().ok().map(|number| hasher.float(number)),
            JsonKind::True => Some(hasher.integer(1)),
            JsonKind::False => Some(hasher.integer(0)),
            JsonKind::Null => Some(hasher.missing()),
            JsonKind::Nested => None,
        }
    }
}
