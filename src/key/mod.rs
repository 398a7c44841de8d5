//! Canonical 64-bit hashes of keys. This page is the specification of schemes 1 and 2.
//!
//! Keys that compare equal in Python have equal hashes, in every container. Keys of different kinds have separate
//! domains. A hash is a function of the key's canonical bytes (little-endian), the key's kind and the caller's
//! [`Seed`]. It does not depend on the process, the machine or the library of the key.
//!
//! - Scheme 1, of a public seed of 64 bits: XXH3-64, seeded by the kind. The seed of kind *n* is the *n*-th output of
//!   SplitMix64 started at the caller's seed. It is fast, and all programs with the seed agree. **An attacker who
//!   chooses keys can choose keys that collide**: XXH3 of eight bytes can be inverted, and pairs of strings are known
//!   that collide under one seed in 1,400 (xxHash#1127).
//! - Scheme 2, of a secret of 128 bits: SipHash-1-3, a pseudorandom function. The key of kind *n* is SipHash-1-3, under
//!   the secret, of the bytes (*n*, 0) and of (*n*, 1). Without the secret an attacker cannot compute which keys
//!   collide.
//!
//! | kind | keys | canonical bytes |
//! |---|---|---|
//! | 1 missing | None, NaN of any payload, NaT, NA, null | none |
//! | 2 integer | −2⁶³ … 2⁶³−1, false and true as 0 and 1 | 8, two's complement |
//! | 3 unsigned | 2⁶³ … 2⁶⁴−1 | 8 |
//! | 4 big integer | every other integer | the fewest that hold it, two's complement |
//! | 5 float | not whole, or infinite | 8, IEEE binary64 |
//! | 6 ratio | an extended float or a decimal that binary64 cannot hold and that is not whole | hash of numerator, of denominator, in lowest terms |
//! | 7 text | a string | UTF-8; lone surrogates as three bytes, like Python's `surrogatepass` |
//! | 8 bytes | a byte string | itself |
//! | 9 instant | a point in time without a zone; a date is its midnight | 16 whole seconds since 1970, 8 attoseconds |
//! | 10 aware | a point in time with a zone, as UTC | the same |
//! | 11 duration | a span of time | the same |
//! | 12 months | a span of calendar months or years, which no number of days equals | 16, months |
//! | 13 row | a tuple, a row of a frame, a record | see below |
//! | 14 UUID | a UUID | 16, the most significant first |
//! | 15 time | a time of day without a zone | as an instant, since midnight |
//! | 16 list | a list | see below |
//! | 17 member | a member of an enumeration that is no number and no text | hash of the text of its class, of its name |
//!
//! A float that is whole is hashed as that integer, −0.0 and those beyond 2⁶³ included. Numbers are compared exactly,
//! as Python's `int` and `float` do. (NumPy rounds the integer first, and calls `np.int64(2**53 + 1)` equal to
//! `2.0**53`. It also calls `np.timedelta64(5, "s")` equal to 5, and hence to five days. lately follows neither.)
//!
//! A row of n elements with hashes e₁ … eₙ is the chain h₀ = H(n), hⱼ = H(hⱼ₋₁ ‖ eⱼ), where H is the function of kind
//! 13: it can be made column by column, without making the rows. A list is the same chain by the function of kind 16,
//! as in Python no list equals a tuple. The class of a member is named by its module and its qualified name, with a dot
//! between.

use xxhash_rust::xxh3::xxh3_64_with_seed;

mod batch;
mod hashable;
mod number;
mod seed;
mod seeded;
mod sip;
pub mod time;

pub use batch::{Keys, Strings, TOGETHER};
pub use hashable::{Hashed, Key};
pub use seed::Seed;

use sip::SipKey;
use time::{Duration, Time};

/// The kinds of keys, numbered as in the table above.
#[derive(Clone, Copy)]
enum KeyKind {
    Missing = 1,
    Integer,
    Unsigned,
    BigInteger,
    Float,
    Ratio,
    Text,
    Bytes,
    Instant,
    Aware,
    Duration,
    Months,
    Row,
    Uuid,
    TimeOfDay,
    List,
    Member,
}

/// A hasher of keys for one seed. A [`Key`] passes it on to its fields.
///
/// ```
/// use lately::{Key, KeyHasher};
///
/// let hasher = KeyHasher::new(0);
/// assert_eq!(5.to_hash(&hasher), 5.0.to_hash(&hasher));
/// assert_ne!("5".to_hash(&hasher), 5.to_hash(&hasher));
/// assert_ne!("5".to_hash(&hasher), b"5".to_hash(&hasher));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyHasher {
    seed: Seed,
    function: Function,
    /// The hash of a missing key, if a row with a missing field is itself missing.
    missing_row: Option<u64>,
}

/// Number of kinds of keys.
const KINDS: usize = KeyKind::Member as usize;

/// The function from canonical bytes to a hash, for each kind at its number less one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Function {
    /// Scheme 1: XXH3-64 with these seeds.
    Seeded([u64; KINDS]),
    /// Scheme 2: SipHash-1-3 with these keys.
    Keyed([SipKey; KINDS]),
}

impl KeyHasher {
    /// Returns the hasher of a public seed. That of a secret is the `hasher` of a filter.
    ///
    /// ```
    /// # use lately::{Filter, Key, KeyHasher, Window};
    /// let filter = Filter::builder(Window::last(1000)).fpr(0.01).seed(5).build()?;
    /// assert_eq!("a".to_hash(filter.hasher()), "a".to_hash(&KeyHasher::new(5)));
    /// # Ok::<(), lately::Error>(())
    /// ```
    pub fn new(seed: u64) -> Self {
        Self::of(Seed::Public(seed))
    }
}

/// Hashes of each kind, for the binding.
#[doc(hidden)]
impl KeyHasher {
    /// Returns the hasher of a seed, public or secret.
    pub fn of(seed: Seed) -> Self {
        let function = match seed {
            Seed::Public(mut state) => Function::Seeded(std::array::from_fn(|_| splitmix64(&mut state))),
            Seed::Secret(key) => Function::Keyed(std::array::from_fn(|kind| SipKey::of_kind(key, kind as u8 + 1))),
        };
        Self { seed, function, missing_row: None }
    }

    /// Returns a hasher by which a row with a missing field is itself missing: it equals no other row where a missing
    /// field equals no other field. Such hashes are for one call, and differ from those of the scheme.
    pub fn with_missing_rows(self) -> Self {
        Self { missing_row: Some(self.missing()), ..self }
    }

    /// Returns whether a row with a missing field is itself missing.
    pub fn has_missing_rows(&self) -> bool {
        self.missing_row.is_some()
    }

    /// Returns the seed.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    #[inline(always)]
    fn hash(&self, kind: KeyKind, canonical: &[u8]) -> u64 {
        let kind = kind as usize - 1;
        match &self.function {
            Function::Seeded(seeds) => xxh3_64_with_seed(canonical, seeds[kind]),
            Function::Keyed(keys) => keys[kind].hash(canonical),
        }
    }

    /// Returns whether hashing several [texts](Self::texts) together is faster than singly, as in scheme 2.
    pub fn keyed(&self) -> bool {
        matches!(self.function, Function::Keyed(_))
    }

    /// Replaces integers, as the bits of an i64 each, by their hashes.
    pub fn integers(&self, values: &mut [u64]) {
        match &self.function {
            Function::Seeded(seeds) => seeded::hash_words(seeds[KeyKind::Integer as usize - 1], values),
            Function::Keyed(keys) => keys[KeyKind::Integer as usize - 1].hash_words(values),
        }
    }

    /// Writes the hashes of [texts](Self::text). In scheme 2 this is faster than a call for each.
    pub fn texts(&self, utf8: &[&[u8]], hashes: &mut [u64]) {
        self.strings(KeyKind::Text, utf8, hashes);
    }

    /// Writes the hashes of [byte strings](Self::bytes).
    pub fn byte_strings(&self, strings: &[&[u8]], hashes: &mut [u64]) {
        self.strings(KeyKind::Bytes, strings, hashes);
    }

    #[inline(always)]
    fn strings(&self, kind: KeyKind, strings: &[&[u8]], hashes: &mut [u64]) {
        match &self.function {
            Function::Seeded(seeds) => {
                let seed = seeds[kind as usize - 1];
                hashes.iter_mut().zip(strings).for_each(|(hash, string)| *hash = xxh3_64_with_seed(string, seed));
            }
            Function::Keyed(keys) => keys[kind as usize - 1].hash_strings(strings, hashes),
        }
    }

    /// Returns the one hash of all missing keys.
    #[inline]
    pub fn missing(&self) -> u64 {
        self.hash(KeyKind::Missing, &[])
    }

    /// Hashes an integer. In scheme 1 two integers never share a hash, because XXH3 of eight bytes is a bijection.
    #[inline(always)]
    pub fn integer(&self, value: i64) -> u64 {
        self.hash(KeyKind::Integer, &value.to_le_bytes())
    }

    /// Hashes an integer that is not negative.
    #[inline(always)]
    pub fn unsigned(&self, value: u64) -> u64 {
        let kind = if value >> 63 == 0 { KeyKind::Integer } else { KeyKind::Unsigned };
        self.hash(kind, &value.to_le_bytes())
    }

    /// Hashes a string, as UTF-8 in which lone surrogates are allowed.
    #[inline(always)]
    pub fn text(&self, utf8: impl AsRef<[u8]>) -> u64 {
        self.hash(KeyKind::Text, utf8.as_ref())
    }

    /// Hashes a byte string.
    #[inline(always)]
    pub fn bytes(&self, bytes: &[u8]) -> u64 {
        self.hash(KeyKind::Bytes, bytes)
    }

    /// Hashes a point in time without a zone.
    #[inline]
    pub fn instant(&self, since_1970: Time) -> u64 {
        self.hash(KeyKind::Instant, &since_1970.to_le_bytes())
    }

    /// Hashes a point in time with a zone, as UTC: `12:00+02:00` and `10:00+00:00` are one key.
    #[inline]
    pub fn aware(&self, since_1970: Time) -> u64 {
        self.hash(KeyKind::Aware, &since_1970.to_le_bytes())
    }

    /// Hashes a span of time.
    #[inline]
    pub fn duration(&self, span: Duration) -> u64 {
        match span {
            Duration::Exact(time) => self.hash(KeyKind::Duration, &time.to_le_bytes()),
            Duration::Months(months) => self.hash(KeyKind::Months, &months.to_le_bytes()),
        }
    }

    /// Begins the hash of a row of `width` elements; [`row_next`](Self::row_next) adds each of them.
    #[inline]
    pub fn row_start(&self, width: usize) -> u64 {
        self.hash(KeyKind::Row, &(width as u64).to_le_bytes())
    }

    /// Continues the hash of a row by one element.
    #[inline(always)]
    pub fn row_next(&self, chain: u64, element: u64) -> u64 {
        self.next(KeyKind::Row, chain, element)
    }

    /// Begins the hash of a list of `len` elements; [`list_next`](Self::list_next) adds each of them.
    #[inline]
    pub fn list_start(&self, len: usize) -> u64 {
        self.hash(KeyKind::List, &(len as u64).to_le_bytes())
    }

    /// Continues the hash of a list by one element.
    #[inline(always)]
    pub fn list_next(&self, chain: u64, element: u64) -> u64 {
        self.next(KeyKind::List, chain, element)
    }

    #[inline(always)]
    fn next(&self, kind: KeyKind, chain: u64, element: u64) -> u64 {
        match self.missing_row {
            Some(missing) if chain == missing || element == missing => missing,
            _ => self.hash(kind, &pair(chain, element)),
        }
    }

    /// Hashes a UUID, the most significant byte first.
    #[inline]
    pub fn uuid(&self, bytes: [u8; 16]) -> u64 {
        self.hash(KeyKind::Uuid, &bytes)
    }

    /// Hashes a time of day without a zone.
    #[inline]
    pub fn time_of_day(&self, since_midnight: Time) -> u64 {
        self.hash(KeyKind::TimeOfDay, &since_midnight.to_le_bytes())
    }

    /// Hashes a member of an enumeration whose members equal nothing else, by the names of its class and of itself.
    pub fn member(&self, class: &str, name: &str) -> u64 {
        self.hash(KeyKind::Member, &pair(self.text(class), self.text(name)))
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): advances the state and returns the next output.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[inline(always)]
fn pair(first: u64, second: u64) -> [u8; 16] {
    (u128::from(second) << 64 | u128::from(first)).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One hasher of each scheme.
    fn hashers() -> [KeyHasher; 2] {
        [Seed::Public(5), Seed::Secret([5, 6])].map(KeyHasher::of)
    }

    #[test]
    fn seeds_are_the_published_splitmix64() {
        // First outputs from state 1234567, as in the generator's published test vector.
        let Function::Seeded(seeds) = KeyHasher::new(1_234_567).function else { panic!("a public seed") };
        assert_eq!(seeds[..3], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn kinds_are_separate_domains() {
        for hasher in hashers() {
            let five = 5u64.to_le_bytes();
            let time = Time { seconds: 5, attoseconds: 0 };
            let mut hashes = vec![
                hasher.missing(),
                hasher.text(""),
                hasher.bytes(b""),
                hasher.row_start(0),
                hasher.integer(5),
                hasher.hash(KeyKind::Unsigned, &five),
                hasher.hash(KeyKind::Float, &five),
                hasher.text(five),
                hasher.bytes(&five),
                hasher.row_start(5),
                hasher.instant(time),
                hasher.aware(time),
                hasher.duration(Duration::Exact(time)),
                hasher.duration(Duration::Months(5)),
                hasher.uuid(u128::from(5u64).to_be_bytes()),
                hasher.time_of_day(time),
                hasher.list_start(0),
                hasher.list_start(5),
                hasher.list_next(hasher.list_start(1), 5),
                hasher.row_next(hasher.row_start(1), 5),
                hasher.member("5", "5"),
                hasher.ratio(&five, &[3]),
            ];
            let kinds = hashes.len();
            hashes.sort_unstable();
            hashes.dedup();
            assert_eq!(hashes.len(), kinds);
        }
    }

    #[test]
    fn rows_differ_by_order_length_and_nesting() {
        for hasher in hashers() {
            let (one, two) = (hasher.integer(1), hasher.integer(2));
            let row = |elements: &[u64]| {
                elements
                    .iter()
                    .fold(hasher.row_start(elements.len()), |chain, &element| hasher.row_next(chain, element))
            };
            assert_ne!(row(&[one, two]), row(&[two, one]));
            assert_ne!(row(&[one]), one);
            assert_ne!(row(&[one, two]), row(&[row(&[one]), two]));
            assert_ne!(row(&[]), row(&[row(&[])]));
        }
    }

    #[test]
    fn rows_with_a_missing_field_may_be_missing() {
        for hasher in hashers() {
            let apart = hasher.with_missing_rows();
            let (one, missing) = (hasher.integer(1), hasher.missing());
            let row = |hasher: KeyHasher, elements: &[u64]| {
                elements.iter().fold(hasher.row_start(elements.len()), |chain, &one| hasher.row_next(chain, one))
            };
            assert_eq!(row(apart, &[one, one]), row(hasher, &[one, one]));
            for elements in [[missing, one], [one, missing], [missing, missing]] {
                assert_eq!(row(apart, &elements), missing);
                assert_ne!(row(hasher, &elements), missing);
            }
        }
    }

    #[test]
    fn many_integers_are_hashed_as_alone() {
        for hasher in hashers() {
            let values = [0, 1, -1, i64::MIN, i64::MAX, 5, 1 << 40, -77, 12];
            let mut hashes = values.map(|value| value as u64);
            hasher.integers(&mut hashes);
            assert_eq!(hashes, values.map(|value| hasher.integer(value)));
        }
    }

    #[test]
    fn many_strings_are_hashed_as_alone() {
        for hasher in hashers() {
            let strings: Vec<String> = (0..21).map(|len| "abcdefghijklmnopqrstuvwxyz"[..len].into()).collect();
            let strings: Vec<&[u8]> = strings.iter().map(|string| string.as_bytes()).collect();
            let mut hashes = [[0; 21]; 2];
            hasher.texts(&strings, &mut hashes[0]);
            hasher.byte_strings(&strings, &mut hashes[1]);
            for (i, string) in strings.into_iter().enumerate() {
                assert_eq!([hashes[0][i], hashes[1][i]], [hasher.text(string), hasher.bytes(string)]);
            }
        }
    }

    #[test]
    fn every_bit_of_a_secret_counts() {
        let hash = |key| KeyHasher::of(Seed::Secret(key)).text("a");
        let mut hashes: Vec<u64> = (0..128)
            .map(|bit| hash([1u64.checked_shl(bit).unwrap_or(0), if bit < 64 { 0 } else { 1 << (bit - 64) }]))
            .collect();
        hashes.push(hash([0, 0]));
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 129);
    }

    /// `tests/golden/keys.json` has more of these, of every kind.
    #[test]
    fn golden() {
        let hashes = |hasher: KeyHasher| [hasher.missing(), hasher.integer(5), hasher.text("5"), hasher.bytes(b"5")];
        assert_eq!(KeyHasher::new(0).seed().scheme(), 1);
        assert_eq!(
            hashes(KeyHasher::new(0)),
            [
                2_238_759_660_615_534_562,
                5_955_895_572_584_232_767,
                9_917_271_165_994_612_006,
                1_179_647_196_226_108_757
            ]
        );
        assert_eq!(
            hashes(KeyHasher::new(1)),
            [
                17_469_664_870_343_852_964,
                15_383_743_112_055_358_370,
                9_749_450_897_925_574_583,
                15_149_507_110_686_284_329
            ]
        );
    }
}
