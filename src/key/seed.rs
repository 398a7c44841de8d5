//! Seeds of hashes: public numbers and secret keys.

use std::fmt;

/// The second input of every hash, beside the key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Seed {
    /// A number of scheme 1 that programs share. An attacker who chooses keys can make them collide.
    Public(u64),
    /// A secret key of scheme 2, unknown to attackers who choose keys.
    Secret([u64; 2]),
}

impl From<[u8; 16]> for Seed {
    fn from(secret: [u8; 16]) -> Self {
        let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| secret[at + i]));
        Self::Secret([half(0), half(8)])
    }
}

impl Seed {
    /// Returns the number of the [hashing scheme](super).
    pub fn scheme(self) -> u16 {
        match self {
            Self::Public(_) => 1,
            Self::Secret(_) => 2,
        }
    }

    /// Returns the words that a saved filter contains.
    pub fn words(self) -> [u64; 2] {
        match self {
            Self::Public(seed) => [seed, 0],
            Self::Secret(key) => key,
        }
    }

    /// Returns the seed with these [words](Self::words) in a scheme; `None` if there is no such scheme or seed.
    pub fn from_words(scheme: u16, words: [u64; 2]) -> Option<Self> {
        match (scheme, words) {
            (1, [seed, 0]) => Some(Self::Public(seed)),
            (2, key) => Some(Self::Secret(key)),
            _ => None,
        }
    }
}

/// Displays a public seed, and hides a secret.
impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Public(seed) => seed.fmt(f),
            Self::Secret(_) => f.write_str("secret"),
        }
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<u64> for Seed {
    fn from(seed: u64) -> Self {
        Self::Public(seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Seed::Secret([0xdead_beef, 0xfeed_face]);
        assert_eq!(format!("{secret} {secret:?}"), "secret secret");
        assert_eq!(format!("{} {:?}", Seed::Public(7), Seed::Public(7)), "7 7");
    }

    #[test]
    fn seeds_equal_the_words_they_are_saved_as() {
        for seed in [Seed::Public(0), Seed::Public(u64::MAX), Seed::Secret([0, 0]), Seed::Secret([1, u64::MAX])] {
            assert_eq!(Seed::from_words(seed.scheme(), seed.words()), Some(seed));
        }
        assert_eq!(Seed::from_words(1, [5, 1]), None);
        assert_eq!(Seed::from_words(0, [0, 0]), None);
        assert_eq!(Seed::from_words(3, [0, 0]), None);
    }
}
