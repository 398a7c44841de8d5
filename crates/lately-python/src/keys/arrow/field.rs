//! The types of keys in Arrow, read from a [`Schema`].

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::structures::Schema;
use lately::key::time::Unit;

/// The type of an Arrow column, read from its schema.
pub struct ArrowField {
    pub kind: ArrowKind,
    /// The types of the children.
    pub children: Vec<ArrowField>,
    /// The type of the dictionary's values, if this is the type of codes.
    pub dictionary: Option<Box<ArrowField>>,
    format: String,
}

/// How the elements of a column lie in its buffers, and which keys they are.
#[derive(Clone, Copy, PartialEq)]
pub enum ArrowKind {
    Null,
    Boolean,
    /// Integers of this many bytes.
    Signed(usize),
    Unsigned(usize),
    /// Floating-point numbers of this many bytes.
    Float(usize),
    /// Texts by offsets of 4 bytes, or of 8 if `wide`.
    Strings {
        wide: bool,
    },
    Bytes {
        wide: bool,
    },
    StringViews,
    ByteViews,
    /// Byte strings of this length.
    FixedBytes(usize),
    Uuid,
    /// Decimals: the bytes of a coefficient, and how many of its digits follow the point.
    Decimal(usize, i8),
    /// Dates in days.
    Days,
    /// Dates in milliseconds. The time within the day is ignored.
    DaysInMilliseconds,
    /// Times of day, in this many bytes.
    Time(usize, Unit),
    Instant {
        unit: Unit,
        /// Whether the time has a zone.
        aware: bool,
    },
    Duration(Unit),
    /// Lists by offsets; also maps, which are lists of pairs.
    List {
        wide: bool,
    },
    /// Lists by offsets and sizes, in any order.
    ListViews {
        wide: bool,
    },
    /// Lists of this length.
    FixedList(usize),
    Struct,
    /// Runs of equal elements, by the end of each run.
    Runs,
}

impl ArrowKind {
    /// Returns the bytes of an element, for elements of equal width.
    pub fn width(self) -> usize {
        match self {
            Self::Signed(width) | Self::Unsigned(width) | Self::Float(width) => width,
            Self::FixedBytes(width) | Self::Decimal(width, _) | Self::Time(width, _) => width,
            Self::Uuid => 16,
            Self::Days => 4,
            Self::DaysInMilliseconds | Self::Instant { .. } | Self::Duration(_) => 8,
            _ => 0,
        }
    }

    /// Returns the greatest number of bytes of an element in a buffer, for the check that an array fits into memory.
    pub fn widest(self) -> usize {
        self.width().max(16)
    }

    /// Returns the number of buffers of an array, and whether it may have more.
    pub fn buffers(self) -> (usize, bool) {
        match self {
            Self::Null | Self::Runs => (0, false),
            Self::Struct | Self::FixedList(_) => (1, false),
            Self::Strings { .. } | Self::Bytes { .. } | Self::ListViews { .. } => (3, false),
            Self::StringViews | Self::ByteViews => (3, true),
            _ => (2, false),
        }
    }

    /// Returns whether the first buffer marks missing elements.
    pub fn has_validity(self) -> bool {
        !matches!(self, Self::Null | Self::Runs)
    }
}

/// The error of a schema of keys.
pub enum SchemaError {
    /// The schema contradicts itself.
    Malformed(String),
    /// The type cannot be a key.
    Unsupported(String),
}

impl From<String> for SchemaError {
    fn from(message: String) -> Self {
        Self::Malformed(message)
    }
}

impl From<SchemaError> for PyErr {
    fn from(error: SchemaError) -> Self {
        match error {
            SchemaError::Malformed(what) => PyValueError::new_err(format!("keys cannot be read from Arrow: {what}")),
            SchemaError::Unsupported(what) => PyTypeError::new_err(what),
        }
    }
}

impl ArrowField {
    /// Reads a schema. All errors of a type are found here.
    pub fn new(schema: Schema) -> Result<Self, SchemaError> {
        let Schema { format, children, dictionary, extension, .. } = schema;
        let expected = match format.as_str() {
            "+r" => 2,
            "+s" => children.len(),
            union if union.starts_with("+u") => children.len(),
            nested if nested.starts_with('+') => 1,
            _ => 0,
        };
        if children.len() != expected {
            return Err(format!("the format {format} with {} children", children.len()).into());
        }
        match &children[..] {
            [ends, _] if format == "+r" && !matches!(ends.format.as_str(), "s" | "i" | "l") => {
                return Err("runs whose ends are not integers".to_owned().into());
            }
            [pairs] if format == "+m" && (pairs.format.as_str(), pairs.children.len()) != ("+s", 2) => {
                return Err("a map without pairs".to_owned().into());
            }
            _ => {}
        }
        let kind = match (extension.as_deref(), kind(&format)?) {
            (None, kind) => kind,
            (Some("arrow.uuid"), ArrowKind::FixedBytes(16)) => ArrowKind::Uuid,
            // In Python these are texts.
            (Some("arrow.json"), text @ (ArrowKind::Strings { .. } | ArrowKind::StringViews)) => text,
            (Some(name), _) => {
                return Err(SchemaError::Unsupported(format!("Arrow extension type {name} cannot be a key")));
            }
        };
        if dictionary.is_some() && !matches!(kind, ArrowKind::Signed(_) | ArrowKind::Unsigned(_)) {
            return Err(format!("a dictionary with codes of the format {format}").into());
        }
        let children = children.into_iter().map(|child| {
            let name = child.name.clone();
            Self::new(child).map_err(|error| match error {
                SchemaError::Unsupported(what) if kind == ArrowKind::Struct => {
                    SchemaError::Unsupported(format!("column '{name}': {what}"))
                }
                error => error,
            })
        });
        Ok(Self {
            kind,
            children: children.collect::<Result<_, _>>()?,
            dictionary: dictionary.map(|values| Self::new(*values).map(Box::new)).transpose()?,
            format,
        })
    }

    /// Returns the format of the type, for messages.
    pub fn name(&self) -> String {
        format!("the format {}", self.format)
    }
}

/// Parses the format string of an Arrow type.
fn kind(format: &str) -> Result<ArrowKind, SchemaError> {
    let cannot = |name: &str| SchemaError::Unsupported(format!("Arrow type {name} cannot be a key"));
    let unknown = || cannot(&format!("of the format '{format}'"));
    let width = |width: &str| match width.parse::<u32>() {
        Ok(width) => Ok(width as usize),
        Err(_) => Err(SchemaError::Malformed(format!("the format {format} has no size"))),
    };
    Ok(match format {
        "n" => ArrowKind::Null,
        "b" => ArrowKind::Boolean,
        "c" => ArrowKind::Signed(1),
        "s" => ArrowKind::Signed(2),
        "i" => ArrowKind::Signed(4),
        "l" => ArrowKind::Signed(8),
        "C" => ArrowKind::Unsigned(1),
        "S" => ArrowKind::Unsigned(2),
        "I" => ArrowKind::Unsigned(4),
        "L" => ArrowKind::Unsigned(8),
        "e" => ArrowKind::Float(2),
        "f" => ArrowKind::Float(4),
        "g" => ArrowKind::Float(8),
        "u" | "U" => ArrowKind::Strings { wide: format == "U" },
        "z" | "Z" => ArrowKind::Bytes { wide: format == "Z" },
        "vu" => ArrowKind::StringViews,
        "vz" => ArrowKind::ByteViews,
        "tdD" => ArrowKind::Days,
        "tdm" => ArrowKind::DaysInMilliseconds,
        "tts" => ArrowKind::Time(4, Unit::SECOND),
        "ttm" => ArrowKind::Time(4, Unit::MILLISECOND),
        "ttu" => ArrowKind::Time(8, Unit::MICROSECOND),
        "ttn" => ArrowKind::Time(8, Unit::NANOSECOND),
        "tDs" | "tDm" | "tDu" | "tDn" => ArrowKind::Duration(unit(format).ok_or_else(unknown)?),
        "+l" | "+L" | "+m" => ArrowKind::List { wide: format == "+L" },
        "+vl" | "+vL" => ArrowKind::ListViews { wide: format == "+vL" },
        "+s" => ArrowKind::Struct,
        "+r" => ArrowKind::Runs,
        "tiM" | "tiD" | "tin" => return Err(cannot("Interval")),
        _ if format.starts_with("+u") => return Err(cannot("Union")),
        _ => match format.split_once(':') {
            Some(("w", size)) => ArrowKind::FixedBytes(width(size)?),
            Some(("+w", size)) => ArrowKind::FixedList(width(size)?),
            Some((time @ ("tss" | "tsm" | "tsu" | "tsn"), zone)) => {
                ArrowKind::Instant { unit: unit(time).ok_or_else(unknown)?, aware: !zone.is_empty() }
            }
            Some(("d", digits)) => decimal(digits).ok_or_else(unknown)?,
            _ => return Err(unknown()),
        },
    })
}

/// Parses the unit at the end of a format.
fn unit(format: &str) -> Option<Unit> {
    match format.as_bytes().last() {
        Some(b's') => Some(Unit::SECOND),
        Some(b'm') => Some(Unit::MILLISECOND),
        Some(b'u') => Some(Unit::MICROSECOND),
        Some(b'n') => Some(Unit::NANOSECOND),
        _ => None,
    }
}

/// Parses the format of a decimal: precision, scale, and optionally bits.
fn decimal(digits: &str) -> Option<ArrowKind> {
    let mut numbers = digits.split(',');
    let _precision: u8 = numbers.next()?.parse().ok()?;
    let scale = numbers.next()?.parse().ok()?;
    let width = match numbers.next() {
        None | Some("128") => 16,
        Some("32") => 4,
        Some("64") => 8,
        Some("256") => 32,
        _ => return None,
    };
    numbers.next().is_none().then_some(ArrowKind::Decimal(width, scale))
}
