//! JSON lines: an object each, as Python's `json` reads it.

mod scan;

use scan::{Kind, Scan, Value};

use super::lines::{lines, without_end};
use super::text::{Encoding, Text};
use super::{Found, Reader, Row};
use lately::key::KeyHasher;

/// Most fields to look for: a bit is kept for each.
pub const MOST_FIELDS: usize = 64;

/// Objects with fields, or nested ones.
#[derive(Clone, Debug)]
pub struct Json {
    /// The key's, and last that of the time if there is one.
    fields: Vec<Field>,
    key: usize,
    encoding: Encoding,
    longest: usize,
}

/// A field by its name, and if that has dots, one within another where none has that name.
#[derive(Clone, Debug)]
struct Field {
    name: Vec<u8>,
    path: Vec<Vec<u8>>,
}

/// What a record has of a field.
#[derive(Clone, Default)]
struct Met {
    named: Option<Value>,
    nested: Option<Value>,
}

impl Json {
    /// Objects whose key these fields are, or the whole text if there is none; longer lines are left to others. Nothing
    /// if there are more than [`MOST_FIELDS`].
    pub fn new(key: &[String], time: Option<&str>, encoding: Encoding, longest: usize) -> Option<Self> {
        let fields: Vec<_> = key.iter().map(String::as_str).chain(time).map(Field::new).collect();
        let encoding = match encoding {
            Encoding::Utf8 | Encoding::StrictUtf8 => Encoding::StrictUtf8,
            Encoding::Latin1 | Encoding::Ascii => Encoding::Ascii,
        };
        (fields.len() <= MOST_FIELDS).then_some(Self { key: key.len(), fields, encoding, longest })
    }
}

impl Field {
    fn new(name: &str) -> Self {
        let path =
            if name.contains('.') { name.split('.').map(|part| part.as_bytes().to_vec()).collect() } else { vec![] };
        Self { name: name.as_bytes().to_vec(), path }
    }
}

impl Reader for Json {
    fn read(&self, block: &[u8], start: usize, hasher: &KeyHasher, found: &mut Found) -> usize {
        let mut text = Text::new(block, self.encoding);
        let row = Row::new(hasher, self.key);
        let mut met = vec![Met::default(); self.fields.len()];
        let mut scratch = Vec::new();
        for (line, end) in lines(block, start) {
            if end - line > self.longest || !text.takes(line, end) {
                return line;
            }
            let content = without_end(&block[line..end]);
            met.fill(Met::default());
            if self.read_object(content, &mut met).is_none() {
                return line;
            }
            let value = |i: usize| {
                let met: &Met = &met[i];
                met.named.as_ref().or(met.nested.as_ref())
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
                let Some(Value { kind, range }) = value(self.key) else { return line };
                let quote = match kind {
                    Kind::Integer | Kind::Float => 0,
                    Kind::Text { escaped: false } => 1,
                    _ => return line,
                };
                found.times.push(line + range.start - quote..line + range.end + quote);
            }
            found.met |= has;
            found.hashes.push(hash);
            found.ends.push(end);
        }
        block.len()
    }

    fn is_shared(&self, _: &[u8]) -> bool {
        true
    }
}

impl Json {
    fn read_object(&self, content: &[u8], met: &mut [Met]) -> Option<()> {
        let mut scan = Scan::new(content);
        scan.space();
        let all = u64::MAX >> (MOST_FIELDS - self.fields.len().max(1));
        scan.expect(b'{')?;
        self.members(&mut scan, 0, if self.fields.is_empty() { 0 } else { all }, met)?;
        scan.space();
        scan.at_end().then_some(())
    }

    /// Reads the members of an object whose brace is behind, and notes those asked for: `asked` are the fields whose
    /// paths have led here.
    fn members(&self, scan: &mut Scan<'_>, depth: usize, asked: u64, met: &mut [Met]) -> Option<()> {
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
                on |= u64::from(asked >> i & 1 == 1 && field.path.get(depth).is_some_and(|part| part == name)) << i;
            }
            if named | on == 0 {
                scan.value(depth)?;
            } else {
                self.member(scan, depth, named, on, met)?;
            }
            scan.space();
            if scan.takes(b'}') {
                return Some(());
            }
            scan.expect(b',')?;
            scan.space();
        }
    }

    /// Reads a value that is that of the fields `named`, and to which the paths of the fields `on` lead.
    fn member(&self, scan: &mut Scan<'_>, depth: usize, named: u64, on: u64, met: &mut [Met]) -> Option<()> {
        let has = |bits: u64, i: usize| bits >> i & 1 == 1;
        let within = (0..met.len())
            .filter(|&i| has(on, i) && self.fields[i].path.len() > depth + 1)
            .fold(0, |bits, i| bits | 1 << i);
        // Of members with one name the last counts, and what was found in the others does not.
        (0..met.len()).filter(|&i| has(on, i)).for_each(|i| met[i].nested = None);
        let value = if within != 0 && scan.takes(b'{') {
            scan.deeper(depth)?;
            self.members(scan, depth + 1, within, met)?;
            Value::nested()
        } else {
            scan.value(depth)?
        };
        for (i, met) in met.iter_mut().enumerate() {
            if has(named, i) {
                met.named = Some(value.clone());
            }
            if has(on & !within, i) {
                met.nested = Some(value.clone());
            }
        }
        Some(())
    }
}

impl Value {
    /// The hash of a value of a line, if it is a single one whose hash is known here.
    fn hash(&self, line: &[u8], hasher: &KeyHasher, scratch: &mut Vec<u8>) -> Option<u64> {
        let bytes = &line[self.range.clone()];
        let number = || std::str::from_utf8(bytes).ok();
        match self.kind {
            Kind::Text { escaped: false } => Some(hasher.text(bytes)),
            Kind::Text { escaped: true } => scan::unescaped(bytes, scratch).map(|text| hasher.text(text)),
            Kind::Integer => number()?.parse().ok().map(|number| hasher.integer(number)),
            Kind::Float => number()?.parse().ok().map(|number| hasher.float(number)),
            Kind::True => Some(hasher.integer(1)),
            Kind::False => Some(hasher.integer(0)),
            Kind::Null => Some(hasher.missing()),
            Kind::Nested => None,
        }
    }
}
