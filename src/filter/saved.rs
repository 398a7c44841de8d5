//! What every filter asks of the parameters and cells it is read from: they are trusted no more than a user's.

use crate::Error;
use crate::memory::Words;

/// Parameters that no filter of this kind has.
pub fn damaged() -> Error {
    Error::format("the parameters are damaged")
}

/// A parameter that takes 32 bits.
pub fn narrow(value: u64) -> Result<u32, Error> {
    u32::try_from(value).map_err(|_| damaged())
}

/// What a constructor refuses is damage in a saved form.
pub fn as_damage(error: Error) -> Error {
    Error::format(error.to_string())
}

/// Refuses cells that are not the `expected` number of words.
pub fn check_cells(words: &Words, expected: u64) -> Result<(), Error> {
    if words.as_slice().len() as u64 == expected {
        Ok(())
    } else {
        Err(Error::format("the cells are not as many as the parameters say"))
    }
}
