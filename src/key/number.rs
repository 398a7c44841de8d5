//! Hashes of numbers: equal integers, floats and decimals have one hash.

use super::{KeyHasher, KeyKind, pair};

#[doc(hidden)]
impl KeyHasher {
    /// Hashes an integer of any size, as little-endian two's complement, minimal or not (no bytes: zero).
    pub fn big_integer(&self, twos_complement: &[u8]) -> u64 {
        let bytes = minimal(twos_complement);
        let negative = bytes.last().is_some_and(|byte| byte >> 7 == 1);
        let mut low = [if negative { 0xff } else { 0 }; 8];
        match bytes {
            _ if bytes.len() <= 8 => {
                low[..bytes.len()].copy_from_slice(bytes);
                self.integer(i64::from_le_bytes(low))
            }
            [unsigned @ .., 0] if unsigned.len() == 8 => self.hash(KeyKind::Unsigned, unsigned),
            _ => self.hash(KeyKind::BigInteger, bytes),
        }
    }

    /// Hashes a float. A narrower float is widened first, which is exact.
    #[inline(always)]
    pub fn float(&self, value: f64) -> u64 {
        if value.abs() >= TWO_63 || value.is_nan() {
            return self.huge_float(value);
        }
        let truncated = value as i64;
        if truncated as f64 == value {
            self.integer(truncated)
        } else {
            self.hash(KeyKind::Float, &value.to_bits().to_le_bytes())
        }
    }

    /// Hashes NaN, infinities, and floats so large that they are whole.
    #[cold]
    fn huge_float(&self, value: f64) -> u64 {
        if value.is_nan() {
            return self.missing();
        }
        if value.is_infinite() {
            return self.hash(KeyKind::Float, &value.to_bits().to_le_bytes());
        }
        // value = ±mantissa · 2^shift with shift ≥ 11, at most 1024 bits and a sign.
        let shift = (value.abs().to_bits() >> 52) as usize - 1075;
        let mantissa = u128::from(value.to_bits() & ((1 << 52) - 1) | 1 << 52);
        let mut bytes = [0; 144];
        bytes[shift / 8..shift / 8 + 16].copy_from_slice(&(mantissa << (shift % 8)).to_le_bytes());
        if value < 0.0 {
            negate(&mut bytes);
        }
        self.big_integer(&bytes)
    }

    /// Hashes a number that is neither whole nor a binary64 by its lowest terms, each as in
    /// [`big_integer`](Self::big_integer).
    pub fn ratio(&self, numerator: &[u8], denominator: &[u8]) -> u64 {
        self.hash(KeyKind::Ratio, &pair(self.big_integer(numerator), self.big_integer(denominator)))
    }

    /// Hashes `coefficient` · 10^−`scale`, where the coefficient is little-endian two's complement of at most 32 bytes.
    ///
    /// ```
    /// use lately::key::KeyHasher;
    ///
    /// let hasher = KeyHasher::new(0);
    /// assert_eq!(hasher.decimal(&500u16.to_le_bytes(), 2), hasher.integer(5));
    /// assert_eq!(hasher.decimal(&25u16.to_le_bytes(), 2), hasher.float(0.25));
    /// assert_ne!(hasher.decimal(&[1, 0], 1), hasher.float(0.1));
    /// ```
    pub fn decimal(&self, coefficient: &[u8], scale: i8) -> u64 {
        let (mut number, negative) = Magnitude::of(coefficient);
        if number.is_zero() {
            return self.integer(0);
        }
        for _ in scale..0 {
            number.multiply(10);
        }
        // The factors of 10^scale that do not cancel.
        let (mut twos, mut fives) = (scale.max(0) as u32, scale.max(0) as u32);
        while fives > 0 && number.divide_if(5) {
            fives -= 1;
        }
        while twos > 0 && number.divide_if(2) {
            twos -= 1;
        }
        let numerator = number.to_bytes(negative);
        if twos == 0 && fives == 0 {
            return self.big_integer(&numerator);
        }
        match number.small() {
            // Odd, so it needs all of its bits.
            Some(small) if fives == 0 && small < 1 << 53 => {
                let float = small as f64 / 2f64.powi(twos as i32);
                self.float(if negative { -float } else { float })
            }
            _ => {
                let mut denominator = Magnitude::one();
                (0..twos).for_each(|_| denominator.multiply(2));
                (0..fives).for_each(|_| denominator.multiply(5));
                self.ratio(&numerator, &denominator.to_bytes(false))
            }
        }
    }
}

const TWO_63: f64 = 9_223_372_036_854_775_808.0;

/// Returns two's complement without the bytes that only repeat the sign.
fn minimal(mut bytes: &[u8]) -> &[u8] {
    while let [shorter @ .., below, top] = bytes {
        let repeats = if below >> 7 == 0 { *top == 0 } else { *top == 0xff };
        if !repeats {
            break;
        }
        bytes = &bytes[..shorter.len() + 1];
    }
    bytes
}

/// Negates a number in two's complement: flips every bit above the lowest set one.
fn negate(bytes: &mut [u8]) {
    let mut carry = true;
    for byte in bytes {
        (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
    }
}

/// A whole number without a sign, in words of 32 bits, the lowest first. The largest is 2^256 · 10^128, of 682 bits.
struct Magnitude([u32; 22]);

impl Magnitude {
    fn one() -> Self {
        let mut words = [0; 22];
        words[0] = 1;
        Self(words)
    }

    /// Returns the magnitude of two's complement of at most 32 bytes, and whether it is negative.
    fn of(twos_complement: &[u8]) -> (Self, bool) {
        let negative = twos_complement.last().is_some_and(|byte| byte >> 7 == 1);
        let mut bytes = [if negative { 0xff } else { 0 }; 4 * 22];
        bytes[..twos_complement.len()].copy_from_slice(twos_complement);
        if negative {
            negate(&mut bytes);
        }
        let (words, _) = bytes.as_chunks::<4>();
        (Self(std::array::from_fn(|i| u32::from_le_bytes(words[i]))), negative)
    }

    fn is_zero(&self) -> bool {
        self.0 == [0; 22]
    }

    fn multiply(&mut self, factor: u32) {
        let mut carry = 0;
        for word in &mut self.0 {
            carry += u64::from(*word) * u64::from(factor);
            (*word, carry) = (carry as u32, carry >> 32);
        }
    }

    /// Divides the magnitude if nothing remains, and returns whether it did.
    fn divide_if(&mut self, divisor: u32) -> bool {
        let (mut quotient, mut rest) = (self.0, 0);
        for word in quotient.iter_mut().rev() {
            let part = rest << 32 | u64::from(*word);
            (*word, rest) = ((part / u64::from(divisor)) as u32, part % u64::from(divisor));
        }
        if rest == 0 {
            self.0 = quotient;
        }
        rest == 0
    }

    /// Returns the magnitude, if it has at most 64 bits.
    fn small(&self) -> Option<u64> {
        let [low, high, more @ ..] = &self.0;
        more.iter().all(|&word| word == 0).then_some(u64::from(*high) << 32 | u64::from(*low))
    }

    /// Returns two's complement of the magnitude, with a sign.
    fn to_bytes(&self, negative: bool) -> [u8; 4 * 23] {
        let mut bytes = [0; 4 * 23];
        for (place, word) in bytes.chunks_mut(4).zip(self.0) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        if negative {
            negate(&mut bytes);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Seed;

    /// One hasher of each scheme.
    fn hashers() -> [KeyHasher; 2] {
        [Seed::Public(5), Seed::Secret([5, 6])].map(KeyHasher::of)
    }

    #[test]
    fn whole_floats_are_integers() {
        for hasher in hashers() {
            for value in [0, 1, -1, 5, i64::MIN, 1 << 62, -(1 << 52)] {
                assert_eq!(hasher.float(value as f64), hasher.integer(value), "{value}");
            }
            assert_eq!(hasher.float(-0.0), hasher.integer(0));
            assert_eq!(hasher.float(TWO_63), hasher.unsigned(1 << 63));
            assert_eq!(hasher.float(TWO_63 + 2048.0), hasher.unsigned((1 << 63) + 2048));
            assert_eq!(hasher.float(-2.0 * TWO_63), hasher.big_integer(&(-1i128 << 64).to_le_bytes()));
            let largest = ((1u128 << 53) - 1) << 60;
            assert_eq!(hasher.float(largest as f64), hasher.big_integer(&largest.to_le_bytes()));
        }
    }

    #[test]
    fn the_largest_float_is_an_integer_of_1024_bits() {
        for hasher in hashers() {
            let mut expected = [0; 129];
            expected[121..128].fill(0xff);
            expected[121] = 0b1111_1000;
            assert_eq!(hasher.float(f64::MAX), hasher.hash(KeyKind::BigInteger, &expected));
        }
    }

    #[test]
    fn other_floats_are_themselves() {
        for hasher in hashers() {
            for value in
                [0.5, -0.5, f64::MIN_POSITIVE, 5e-324, f64::INFINITY, f64::NEG_INFINITY, 4_503_599_627_370_495.5]
            {
                assert_eq!(hasher.float(value), hasher.hash(KeyKind::Float, &value.to_bits().to_le_bytes()), "{value}");
            }
            assert_eq!(hasher.float(f64::NAN), hasher.missing());
            assert_eq!(hasher.float(-f64::NAN), hasher.missing());
            assert_eq!(hasher.float(f64::from_bits(0x7ff0_0000_0000_0001)), hasher.missing());
        }
    }

    #[test]
    fn integers_are_hashed_by_value_at_any_length() {
        for hasher in hashers() {
            assert_eq!(hasher.big_integer(&[]), hasher.integer(0));
            assert_eq!(hasher.big_integer(&[0; 20]), hasher.integer(0));
            assert_eq!(hasher.big_integer(&[0xff; 20]), hasher.integer(-1));
            assert_eq!(hasher.big_integer(&[0x80]), hasher.integer(-128));
            assert_eq!(hasher.big_integer(&[0x80, 0]), hasher.integer(128));
            for value in [u64::MAX, 1 << 63, (1 << 63) + 5, i64::MAX as u64] {
                assert_eq!(hasher.big_integer(&i128::from(value).to_le_bytes()), hasher.unsigned(value), "{value}");
            }
            assert_eq!(hasher.unsigned(5), hasher.integer(5));
            assert_ne!(hasher.unsigned(u64::MAX), hasher.integer(-1));
            let below = i128::from(i64::MIN) - 1;
            assert_eq!(
                hasher.big_integer(&below.to_le_bytes()),
                hasher.hash(KeyKind::BigInteger, &below.to_le_bytes()[..9])
            );
        }
    }

    #[test]
    fn decimals_are_what_they_equal() {
        for hasher in hashers() {
            let decimal = |coefficient: i128, scale| hasher.decimal(&coefficient.to_le_bytes(), scale);
            for (coefficient, scale, whole) in [(0, 5, 0), (500, 2, 5), (-500, 2, -5), (7, -3, 7000), (-1, 0, -1)] {
                assert_eq!(decimal(coefficient, scale), hasher.integer(whole));
            }
            for (coefficient, scale, float) in [(5, 1, 0.5), (-25, 2, -0.25), (1_000_000_000_000_125, 3, 1e12 + 0.125)]
            {
                assert_eq!(decimal(coefficient, scale), hasher.float(float));
            }
            // 0.1 in lowest terms, not the float that is nearest.
            assert_eq!(decimal(100, 3), hasher.ratio(&[1], &[10]));
            assert_eq!(decimal(-100, 3), hasher.ratio(&[0xff], &[10]));
            assert_ne!(decimal(1, 1), hasher.float(0.1));
            // 2^53 + 1 halves: a bit too many for a float.
            assert_eq!(decimal(((1 << 53) + 1) * 5, 1), hasher.ratio(&((1i64 << 53) + 1).to_le_bytes(), &[2]));
            assert_eq!(decimal(((1 << 53) - 1) * 5, 1), hasher.float(((1i64 << 53) - 1) as f64 / 2.0));
            let mut largest = [0xff; 32];
            largest[31] = 0x7f;
            assert_eq!(hasher.decimal(&largest, 0), hasher.big_integer(&largest));
            let least: [u8; 32] = std::array::from_fn(|i| if i == 31 { 0x80 } else { 0 });
            assert_eq!(hasher.decimal(&least, 0), hasher.big_integer(&least));
            assert_ne!(hasher.decimal(&largest, -128), hasher.decimal(&least, -128));
            assert_ne!(hasher.decimal(&largest, 127), hasher.decimal(&least, 127));
            assert_eq!(decimal(1, -38), hasher.big_integer(&10i128.pow(38).to_le_bytes()));
        }
    }
}
