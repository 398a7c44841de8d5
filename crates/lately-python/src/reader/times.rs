//! Reads the numbers of times.

use std::iter::repeat;

/// Returns a time in nanoseconds: the number in `text` with `places` decimal places, rounded. `None` for other text,
/// also with an exponent, and for numbers beyond the range of 64 bits.
pub fn nanoseconds(text: &[u8], places: u32) -> Option<i64> {
    let text = text.trim_ascii();
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    let point = digits.iter().position(|&byte| byte == b'.').unwrap_or(digits.len());
    let (whole, fraction) = (&digits[..point], digits.get(point + 1..).unwrap_or_default());
    if whole.is_empty() && fraction.is_empty() || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        return None;
    }
    let places = places as usize;
    let mut value = 0i128;
    for digit in whole.iter().chain(fraction.iter().chain(repeat(&b'0')).take(places)) {
        value = value.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    value += i128::from(fraction.get(places).is_some_and(|&digit| digit >= b'5'));
    i64::try_from(if text[0] == b'-' { -value } else { value }).ok().filter(|&moment| moment != i64::MIN)
}
