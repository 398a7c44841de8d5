//! What can go wrong, said once. Every message names the parameter and what it was.

use std::fmt;

/// Why a call was refused. Nothing has been changed when one is returned.
#[derive(Debug, Clone, PartialEq)]
pub enum Error {
    /// A parameter is out of its range, or two of them contradict each other.
    Value(String),
    /// The memory the filter needs cannot be had.
    Memory {
        /// Bytes that were asked for.
        bytes: u64,
    },
    /// The bytes are not a filter this version can read, or they are damaged.
    Format(String),
}

impl Error {
    /// A [`Error::Value`] from anything that can be written as text.
    pub fn value(message: impl Into<String>) -> Self {
        Self::Value(message.into())
    }

    /// A [`Error::Format`] from anything that can be written as text.
    pub fn format(message: impl Into<String>) -> Self {
        Self::Format(message.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(message) | Self::Format(message) => f.write_str(message),
            Self::Memory { bytes } => write!(f, "cannot allocate {bytes} bytes for the filter"),
        }
    }
}

impl std::error::Error for Error {}
