//! What can go wrong. Every message names the parameter and its value.

use std::fmt;

/// Why a call was refused. A call that returns one has changed nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Error {
    /// A parameter is out of its range, or two contradict each other.
    Value(String),
    /// The memory the filter needs cannot be had.
    Memory {
        /// Bytes that were asked for.
        bytes: u64,
    },
    /// The bytes are damaged, or no filter that this version can read.
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
