//! What the hashes of a filter's keys depend on besides the keys: a public seed, or a secret key.

use std::fmt;

/// What hashes depend on besides the keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Seed {
    /// Scheme 1: known to everybody who shares hashes or filters. Whoever can choose keys can make them collide.
    Public(u64),
    /// Scheme 2: a key that nobody who chooses keys may know.
    Secret([u64; 2]),
}

impl Seed {
    /// Number of its [hashing scheme](super).
    pub fn scheme(self) -> u16 {
        match self {
            Self::Public(_) => 1,
            Self::Secret(_) => 2,
        }
    }

    /// The words of it that a saved filter holds.
    pub fn words(self) -> [u64; 2] {
        match self {
            Self::Public(seed) => [seed, 0],
            Self::Secret(key) => key,
        }
    }

    /// The seed of a scheme that these [words](Self::words) were of; none if there is no such scheme, or no such seed.
    pub fn from_words(scheme: u16, words: [u64; 2]) -> Option<Self> {
        match (scheme, words) {
            (1, [seed, 0]) => Some(Self::Public(seed)),
            (2, key) => Some(Self::Secret(key)),
            _ => None,
        }
    }
}

/// A secret is never shown.
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
    fn seeds_are_what_their_words_say() {
        for seed in [Seed::Public(0), Seed::Public(u64::MAX), Seed::Secret([0, 0]), Seed::Secret([1, u64::MAX])] {
            assert_eq!(Seed::from_words(seed.scheme(), seed.words()), Some(seed));
        }
        assert_eq!(Seed::from_words(1, [5, 1]), None);
        assert_eq!(Seed::from_words(0, [0, 0]), None);
        assert_eq!(Seed::from_words(3, [0, 0]), None);
    }
}
