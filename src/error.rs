//! The error of a rejected call. Every message names the parameter, its value, and what was expected.

use std::fmt;
use std::sync::Arc;

/// The reason why a call was rejected. A rejected call has changed nothing, unless its documentation states otherwise.
///
/// The message names the parameter, what was expected and what came.
///
/// ```
/// use lately::{Error, Filter, Window};
///
/// let error = Filter::builder(Window::last(0)).fpr(0.01).build().unwrap_err();
/// assert!(matches!(error, Error::Value(_)));
/// assert_eq!(error.to_string(), "window must be at least 1 insertion, got 0");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is out of its range, or two contradict each other.
    Value(String),
    /// The memory that the filter needs cannot be allocated.
    Memory {
        /// Bytes that were requested.
        bytes: u64,
    },
    /// The bytes are damaged, or they are no filter that this version can read.
    Format(String),
    /// A file cannot be written, read or replaced.
    #[non_exhaustive]
    Io {
        /// The kind of failure.
        kind: std::io::ErrorKind,
        /// The path, and the system's message.
        message: String,
        /// The system's error, with its code: the `source` of this one.
        error: Arc<std::io::Error>,
    },
}

impl Error {
    /// Returns an [`Error::Value`] of a message.
    #[doc(hidden)]
    pub fn value(message: impl Into<String>) -> Self {
        Self::Value(message.into())
    }

    /// Returns an [`Error::Io`] of a message and the system's error.
    #[doc(hidden)]
    pub fn of_system(message: String, error: std::io::Error) -> Self {
        Self::Io { kind: error.kind(), message, error: Arc::new(error) }
    }

    /// Returns an [`Error::Format`] of a message.
    #[doc(hidden)]
    pub fn format(message: impl Into<String>) -> Self {
        Self::Format(message.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(message) | Self::Format(message) | Self::Io { message, .. } => f.write_str(message),
            Self::Memory { bytes } => write!(f, "cannot allocate {bytes} bytes for the filter"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let Self::Io { error, .. } = self { Some(&**error) } else { None }
    }
}

/// Two errors are equal if their variants and messages are.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.to_string() == other.to_string()
    }
}

impl Eq for Error {}
