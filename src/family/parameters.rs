//! Parameters by name, from which shapes are read.

use crate::Error;

/// Parameters by name, as a user or a saved filter gives them; not trusted.
pub struct Parameters<'a>(pub &'a [(&'a str, u64)]);

impl Parameters<'_> {
    /// Returns a parameter, if it is given.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(given, _)| *given == name).map(|&(_, value)| value)
    }

    /// Returns a required parameter.
    pub fn read_u64(&self, name: &str) -> Result<u64, Error> {
        self.get(name).ok_or_else(|| Error::value(format!("{name} is missing")))
    }

    /// Returns a required parameter of 32 bits.
    pub fn read_u32(&self, name: &str) -> Result<u32, Error> {
        let value = self.read_u64(name)?;
        u32::try_from(value).map_err(|_| Error::value(format!("{name} must lie in 0 .. 2**32 - 1, got {value}")))
    }
}
