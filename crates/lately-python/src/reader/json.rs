//! Reads JSON lines, an object on each, by the crate `serde_json`.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::lines::{lines, without_end};
use super::{Reader, RecordBatch, RecordOptions, RowHasher};
use lately::key::KeyHasher;

/// Reads objects whose key is some of their fields, or the whole line.
#[derive(Clone, Debug)]
pub struct JsonReader {
    /// The fields of the key, then the field of the time if there is one.
    fields: Vec<Field>,
    key_fields: usize,
    /// The names that are looked up in each object.
    names: Vec<String>,
    options: RecordOptions,
}

/// A field, by its name. A name with dots is also a path of nested fields, which is used if no field has that name.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    /// Among the names of the reader, the index of its name, and of the first part of its path.
    name_index: usize,
    head_index: usize,
}

/// The most digits of a whole number in a key, as in Python.
const MOST_DIGITS: usize = 4300;

impl JsonReader {
    /// Creates a reader of objects whose key is these fields, or the whole line without fields.
    pub fn new(key: &[String], time: Option<&str>, options: RecordOptions) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut index = |name: &str| {
            names.iter().position(|other| other == name).unwrap_or_else(|| {
                names.push(name.to_owned());
                names.len() - 1
            })
        };
        let fields = key.iter().map(String::as_str).chain(time).map(|name| Field {
            name: name.to_owned(),
            name_index: index(name),
            head_index: index(name.split('.').next().unwrap_or_default()),
        });
        Self { fields: fields.collect(), key_fields: key.len(), names, options }
    }

    /// Reads the record of a line: the hash of its key, and the text of its time. Sets which fields of the key are
    /// `present`. An error describes what is wrong.
    fn record<'a>(
        &self,
        line: &'a str,
        hasher: &KeyHasher,
        row: RowHasher,
        present: &mut [bool],
    ) -> Result<(u64, Option<Cow<'a, str>>), String> {
        let mut values = vec![None; self.names.len()];
        members(line, &self.names, &mut values).map_err(|error| not_an_object(line, &error))?;
        let value = |field: &Field| match values[field.name_index] {
            None if field.head_index != field.name_index => {
                let path = field.name.split('.').skip(1);
                path.fold(values[field.head_index], |value, name| member(value?.get(), name))
            }
            value => value,
        };
        let key = &self.fields[..self.key_fields];
        let mut has_no_key = true;
        let fields = key.iter().zip(present).map(|(field, present)| {
            let value = value(field);
            *present |= value.is_some();
            has_no_key &= value.is_none();
            value
                .map_or(Ok(hasher.missing()), |value| self.hash(value.get(), hasher))
                .map_err(|problem| format!("the key field {} {problem}", field.name))
        });
        let hash = match self.key_fields {
            0 => hasher.text(&*self.folded(line.trim_ascii().as_bytes().into())),
            _ => row.hash(hasher, fields)?,
        };
        if self.key_fields > 0 && has_no_key {
            let names: Vec<_> = key.iter().map(|field| &*field.name).collect();
            return Err(format!("it has none of the key fields {}", names.join(", ")));
        }
        let time = self.fields.get(self.key_fields).map(|field| match value(field).map(RawValue::get) {
            None | Some("null") => Err(format!("the time {} is missing", field.name)),
            Some(value) => match value.as_bytes()[0] {
                b'"' => serde_json::from_str(value).map_err(|_| format!("the time {} is not text", field.name)),
                b'-' | b'0'..=b'9' => Ok(Cow::Borrowed(value)),
                _ => Err(format!("the time {} is {}; a time is a number or text", field.name, kind(value))),
            },
        });
        Ok((hash, time.transpose()?))
    }

    /// Returns the hash of a value, or what is wrong with it.
    fn hash(&self, value: &str, hasher: &KeyHasher) -> Result<u64, &'static str> {
        match value.as_bytes()[0] {
            b'"' => {
                let text = text_of(value).map_err(|_| "is not text")?;
                Ok(hasher.text(&*self.folded(text)))
            }
            b'n' => Ok(hasher.missing()),
            b't' => Ok(hasher.integer(1)),
            b'f' => Ok(hasher.integer(0)),
            b'{' | b'[' => Err("is not a single value"),
            _ if value.contains(['.', 'e', 'E']) => {
                value.parse().map(|number| hasher.float(number)).map_err(|_| "is not a number")
            }
            _ if value.len() > MOST_DIGITS => Err("has more than 4300 digits"),
            _ => Ok(match (value.parse::<i64>(), value.parse::<i128>()) {
                (Ok(number), _) => hasher.integer(number),
                (_, Ok(number)) => hasher.big_integer(&number.to_le_bytes()),
                _ => hasher.big_integer(&big_integer(value)),
            }),
        }
    }

    /// Returns text in lower case if the case is ignored. Half a surrogate pair has no case.
    fn folded<'a>(&self, text: Cow<'a, [u8]>) -> Cow<'a, [u8]> {
        if !self.options.ignore_case {
            return text;
        }
        let chunks =
            text.utf8_chunks().map(|chunk| [chunk.valid().to_lowercase().as_bytes(), chunk.invalid()].concat());
        Cow::Owned(chunks.flatten().collect())
    }
}

impl Reader for JsonReader {
    fn read(&self, block: &[u8], start: usize, _last: bool, hasher: &KeyHasher) -> RecordBatch {
        let options = &self.options;
        let row = RowHasher::new(hasher, self.key_fields);
        let fields_present = vec![false; self.key_fields];
        let mut records = RecordBatch { stop: block.len(), fields_present, ..RecordBatch::default() };
        for (line, end) in lines(block, start) {
            let content = without_end(&block[line..end]);
            if content.trim_ascii().is_empty() {
                records.blank += 1;
                continue;
            }
            let read = match options.encoding.decode(content) {
                _ if end - line > options.longest => Err(options.too_long()),
                None => Err(options.encoding.not_valid()),
                Some(text) => {
                    let mut read = |text: &str| {
                        let (hash, time) = self.record(text, hasher, row, &mut records.fields_present)?;
                        Ok((hash, time.map(Cow::into_owned)))
                    };
                    // Python writes NaN and Infinity, which are not JSON.
                    read(&text).or_else(|error: String| match without_names(&text) {
                        Some(text) if error.starts_with("not JSON") => read(&text),
                        _ => Err(error),
                    })
                }
            };
            match read {
                Ok((hash, time)) => {
                    records.spans.push(line..end);
                    records.hashes.push(hash);
                    if let Some(time) = time {
                        records.push_time(time.as_bytes(), options);
                    }
                }
                Err(reason) => {
                    if !records.reject(line, reason, options) {
                        records.stop = line;
                        break;
                    }
                }
            }
        }
        records
    }

    fn is_shared(&self, _: &[u8]) -> bool {
        true
    }
}

/// Reads the members of an object that have one of these names. If several have the same name, the last one counts.
fn members<'a>(object: &'a str, names: &[String], values: &mut [Option<&'a RawValue>]) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_str(object);
    json.deserialize_map(Members { names, values })?;
    json.end()
}

/// Returns the member of this name, if the value is an object that has it.
fn member<'a>(value: &'a str, name: &str) -> Option<&'a RawValue> {
    let mut found = [None];
    members(value, &[name.to_owned()], &mut found).ok()?;
    found[0]
}

struct Members<'n, 'v, 'a> {
    names: &'n [String],
    values: &'v mut [Option<&'a RawValue>],
}

impl<'a> Visitor<'a> for Members<'_, '_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(index) = object.next_key_seed(Name(self.names))? {
            match index {
                Some(index) => self.values[index] = Some(object.next_value()?),
                None => {
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Reads a name as its index among some names.
struct Name<'n>(&'n [String]);

impl<'a> DeserializeSeed<'a> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'a>>(self, name: D) -> Result<Self::Value, D::Error> {
        name.deserialize_bytes(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|other| other.as_bytes() == name))
    }
}

/// Reads the UTF-8 of a string. Half of a surrogate pair is three bytes, as in the key of Python's text.
struct Text;

impl Visitor<'_> for Text {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_bytes<E>(self, text: &[u8]) -> Result<Self::Value, E> {
        Ok(text.to_vec())
    }
}

/// Returns the text of a string, as UTF-8 in which an escape may be half of a surrogate pair.
fn text_of(string: &str) -> serde_json::Result<Cow<'_, [u8]>> {
    match string.contains('\\') {
        false => Ok(Cow::Borrowed(&string.as_bytes()[1..string.len() - 1])),
        true => serde_json::Deserializer::from_str(string).deserialize_bytes(Text).map(Cow::Owned),
    }
}

/// Returns the error for a line that is not an object.
fn not_an_object(line: &str, error: &serde_json::Error) -> String {
    if !line.trim_ascii().starts_with('{') && serde_json::from_str::<IgnoredAny>(line).is_ok() {
        return format!("expected an object, got {}", kind(line.trim_ascii()));
    }
    format!("not JSON: {}", error.to_string().replace("at line 1 column", "at column"))
}

/// Returns the kind of a value, for messages.
fn kind(value: &str) -> &'static str {
    match value.as_bytes()[0] {
        b'{' => "an object",
        b'[' => "an array",
        b'"' => "text",
        b't' | b'f' => "true or false",
        b'n' => "null",
        _ => "a number",
    }
}

/// Returns the bytes of a whole number in two's complement, the lowest first.
fn big_integer(number: &str) -> Vec<u8> {
    let digits = number.strip_prefix('-');
    let mut bytes: Vec<u8> = vec![0];
    for digit in digits.unwrap_or(number).bytes() {
        let mut carry = u32::from(digit - b'0');
        for byte in &mut bytes {
            carry += u32::from(*byte) * 10;
            *byte = carry as u8;
            carry >>= 8;
        }
        bytes.extend((carry > 0).then_some(carry as u8));
    }
    bytes.push(0);
    if digits.is_some() {
        let mut carry = true;
        for byte in &mut bytes {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    bytes
}

/// Returns a line with `null` in place of NaN, and a number beyond all others in place of Infinity. `None` if it has
/// neither.
fn without_names(line: &str) -> Option<String> {
    let mut text = String::with_capacity(line.len());
    let (mut rest, mut found) = (line, false);
    while let Some(quote) = rest.find('"') {
        let (before, string) = rest.split_at(quote);
        let mut escaped = false;
        let end = string.bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        })?;
        found |= before.contains("NaN") || before.contains("Infinity");
        text += &before.replace("NaN", "null").replace("Infinity", "1e999");
        let (string, after) = string.split_at(end + 2);
        text += string;
        rest = after;
    }
    found |= rest.contains("NaN") || rest.contains("Infinity");
    text += &rest.replace("NaN", "null").replace("Infinity", "1e999");
    found.then_some(text)
}
