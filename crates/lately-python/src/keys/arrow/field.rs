//! The types that keys have in Arrow, read from the formats of the C data interface.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::structures::Schema;
use lately::key::time::Unit;

/// The type of a column.
pub struct Field {
    pub kind: Kind,
    /// The types that this one is made of.
    pub children: Vec<Field>,
    /// The type of the values, if this is that of their codes.
    pub dictionary: Option<Box<Field>>,
    format: String,
}

/// How the elements of a column lie in its buffers, and what they mean.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Null,
    Boolean,
    /// Integers of this many bytes.
    Signed(usize),
    Unsigned(usize),
    /// Floating-point numbers of this many bytes.
    Float(usize),
    /// Texts by offsets of 4 bytes, or of 8.
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
    /// Coefficients of this many bytes, and how many of their digits follow the point.
    Decimal(usize, i8),
    /// Days.
    Days,
    /// Milliseconds, of which only the day counts.
    DaysInMilliseconds,
    /// The time of a day, in this many bytes.
    Time(usize, Unit),
    Instant {
        unit: Unit,
        /// Whether the time has a zone.
        aware: bool,
    },
    Duration(Unit),
    List {
        wide: bool,
    },
    /// Lists of this length.
    FixedList(usize),
    Struct,
    /// Runs of equal elements, by where they end.
    Runs,
}

impl Kind {
    /// Returns the bytes of an element, where elements lie one after the other.
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

    /// Returns the most bytes of an element in any buffer, for the check that an array fits into memory.
    pub fn widest(self) -> usize {
        self.width().max(16)
    }

    /// Returns how many buffers an array has, and whether it may have more.
    pub fn buffers(self) -> (usize, bool) {
        match self {
            Self::Null | Self::Runs => (0, false),
            Self::Struct | Self::FixedList(_) => (1, false),
            Self::Strings { .. } | Self::Bytes { .. } => (3, false),
            Self::StringViews | Self::ByteViews => (3, true),
            _ => (2, false),
        }
    }

    /// Returns whether the first buffer says which elements are there.
    pub fn has_validity(self) -> bool {
        !matches!(self, Self::Null | Self::Runs)
    }
}

/// Why a schema cannot be that of keys: it contradicts itself, or no key is of its type.
pub enum Refusal {
    Nonsense(String),
    Type(String),
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self::Nonsense(message)
    }
}

impl From<Refusal> for PyErr {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Nonsense(what) => PyValueError::new_err(format!("keys cannot be read from Arrow: {what}")),
            Refusal::Type(what) => PyTypeError::new_err(what),
        }
    }
}

impl Field {
    /// Reads a schema, which is refused here or not at all.
    pub fn new(schema: Schema) -> Result<Self, Refusal> {
        let Schema { format, children, dictionary, extension, .. } = schema;
        let wanted = match format.as_str() {
            "+r" => 2,
            "+s" => children.len(),
            union if union.starts_with("+u") => children.len(),
            nested if nested.starts_with('+') => 1,
            _ => 0,
        };
        if children.len() != wanted {
            return Err(format!("the format {format} with {} children", children.len()).into());
        }
        match &children[..] {
            [ends, _] if format == "+r" && !matches!(ends.format.as_str(), "s" | "i" | "l") => {
                return Err("runs that end at no integers".to_owned().into());
            }
            [pairs] if format == "+m" && (pairs.format.as_str(), pairs.children.len()) != ("+s", 2) => {
                return Err("a map without pairs".to_owned().into());
            }
            _ => {}
        }
        let kind = match (extension.as_deref(), kind(&format)?) {
            (None, kind) => kind,
            (Some("arrow.uuid"), Kind::FixedBytes(16)) => Kind::Uuid,
            (Some(name), _) => return Err(Refusal::Type(format!("Arrow extension type {name} cannot be a key"))),
        };
        if dictionary.is_some() && !matches!(kind, Kind::Signed(_) | Kind::Unsigned(_)) {
            return Err(format!("a dictionary with codes of the format {format}").into());
        }
        let children = children.into_iter().map(|child| {
            let name = child.name.clone();
            Self::new(child).map_err(|refusal| match refusal {
                Refusal::Type(what) if kind == Kind::Struct => Refusal::Type(format!("column '{name}': {what}")),
                refusal => refusal,
            })
        });
        Ok(Self {
            kind,
            children: children.collect::<Result<_, _>>()?,
            dictionary: dictionary.map(|values| Self::new(*values).map(Box::new)).transpose()?,
            format,
        })
    }

    /// Returns the type, for messages.
    pub fn name(&self) -> String {
        format!("the format {}", self.format)
    }
}

/// Reads a format.
fn kind(format: &str) -> Result<Kind, Refusal> {
    let cannot = |name: &str| Refusal::Type(format!("Arrow type {name} cannot be a key"));
    let unknown = || cannot(&format!("of the format '{format}'"));
    let width = |width: &str| match width.parse::<u32>() {
        Ok(width) => Ok(width as usize),
        Err(_) => Err(Refusal::Nonsense(format!("the format {format} has no size"))),
    };
    Ok(match format {
        "n" => Kind::Null,
        "b" => Kind::Boolean,
        "c" => Kind::Signed(1),
        "s" => Kind::Signed(2),
        "i" => Kind::Signed(4),
        "l" => Kind::Signed(8),
        "C" => Kind::Unsigned(1),
        "S" => Kind::Unsigned(2),
        "I" => Kind::Unsigned(4),
        "L" => Kind::Unsigned(8),
        "e" => Kind::Float(2),
        "f" => Kind::Float(4),
        "g" => Kind::Float(8),
        "u" | "U" => Kind::Strings { wide: format == "U" },
        "z" | "Z" => Kind::Bytes { wide: format == "Z" },
        "vu" => Kind::StringViews,
        "vz" => Kind::ByteViews,
        "tdD" => Kind::Days,
        "tdm" => Kind::DaysInMilliseconds,
        "tts" => Kind::Time(4, Unit::SECOND),
        "ttm" => Kind::Time(4, Unit::MILLISECOND),
        "ttu" => Kind::Time(8, Unit::MICROSECOND),
        "ttn" => Kind::Time(8, Unit::NANOSECOND),
        "tDs" | "tDm" | "tDu" | "tDn" => Kind::Duration(unit(format).ok_or_else(unknown)?),
        "+l" | "+L" => Kind::List { wide: format == "+L" },
        "+s" => Kind::Struct,
        "+r" => Kind::Runs,
        "+m" => return Err(cannot("Map")),
        "tiM" | "tiD" | "tin" => return Err(cannot("Interval")),
        "+vl" | "+vL" => return Err(cannot("ListView")),
        _ if format.starts_with("+u") => return Err(cannot("Union")),
        _ => match format.split_once(':') {
            Some(("w", size)) => Kind::FixedBytes(width(size)?),
            Some(("+w", size)) => Kind::FixedList(width(size)?),
            Some((time @ ("tss" | "tsm" | "tsu" | "tsn"), zone)) => {
                Kind::Instant { unit: unit(time).ok_or_else(unknown)?, aware: !zone.is_empty() }
            }
            Some(("d", digits)) => decimal(digits).ok_or_else(unknown)?,
            _ => return Err(unknown()),
        },
    })
}

/// Reads the unit at the end of a format.
fn unit(format: &str) -> Option<Unit> {
    match format.as_bytes().last() {
        Some(b's') => Some(Unit::SECOND),
        Some(b'm') => Some(Unit::MILLISECOND),
        Some(b'u') => Some(Unit::MICROSECOND),
        Some(b'n') => Some(Unit::NANOSECOND),
        _ => None,
    }
}

/// Reads precision, scale, and perhaps bits of a decimal.
fn decimal(digits: &str) -> Option<Kind> {
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
    numbers.next().is_none().then_some(Kind::Decimal(width, scale))
}
