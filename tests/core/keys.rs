//! Keys of Rust's types, against hashes of the same keys that the Python package made.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::num::{NonZeroI16, NonZeroU128};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use lately::key::Seed;
use lately::{Filter, Hashed, Key, KeyHasher, Window};
use uuid::Uuid;

const KEYS: u64 = 1_000_000;

/// The digests that `tests/golden/million.py` wrote.
const DIGESTS: &str = include_str!("../golden/million.tsv");

fn mix(i: u64) -> u64 {
    let z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn high(i: u64) -> u64 {
    mix((1 << 40) + i)
}

fn fraction(z: u64) -> f64 {
    (z >> 11) as f64 * 2f64.powi(-53)
}

fn letter(z: u64) -> char {
    char::from_u32((z % 0xd800) as u32).unwrap()
}

fn text(i: u64, z: u64) -> String {
    let mut text = format!("{z:016x}");
    text.truncate(i as usize % 17);
    text.push(letter(z));
    text
}

fn float(i: u64, z: u64) -> f64 {
    match i % 4 {
        0 => z as f64,
        1 => fraction(z),
        2 => f64::from_bits(z),
        _ => f64::from(z as i8),
    }
}

/// Returns the sum of the hashes of a million keys, each times an odd number of its own.
fn digest<K: Key>(seed: Seed, key: impl Fn(u64, u64) -> K) -> u64 {
    let hasher = KeyHasher::of(seed);
    let term = |i| key(i, mix(i)).to_hash(&hasher).wrapping_mul(mix((1 << 41) + i) | 1);
    (0..KEYS).map(term).fold(0, u64::wrapping_add)
}

fn digest_of(kind: &str, seed: Seed) -> u64 {
    match kind {
        "i8" => digest(seed, |_, z| z as i8),
        "i16" => digest(seed, |_, z| z as i16),
        "i32" => digest(seed, |_, z| z as i32),
        "i64" => digest(seed, |_, z| z as i64),
        "u8" => digest(seed, |_, z| z as u8),
        "u16" => digest(seed, |_, z| z as u16),
        "u32" => digest(seed, |_, z| z as u32),
        "u64" => digest(seed, |_, z| z),
        "i128" => digest(seed, |i, z| (i128::from(high(i)) << 64 | i128::from(z)) >> (i % 121)),
        "u128" => digest(seed, |i, z| (u128::from(high(i)) << 64 | u128::from(z)) >> (i % 121)),
        "bool" => digest(seed, |_, z| z & 1 == 1),
        "f32" => digest(seed, |_, z| f32::from_bits(z as u32)),
        "f64" => digest(seed, float),
        "str" => digest(seed, text),
        "char" => digest(seed, |_, z| letter(z)),
        "bytes" => digest(seed, |i, z| z.to_le_bytes()[..i as usize % 9].to_vec()),
        "option" => digest(seed, |i, z| (i % 3 != 0).then_some(z as i64)),
        "one" => digest(seed, |_, z| (z as i64,)),
        "row" => digest(seed, |i, z| (z as i64, text(i, z), fraction(z))),
        "nested" => digest(seed, |i, z| ((z as i64, text(i, z)), None::<bool>)),
        kind => panic!("no keys of kind {kind}"),
    }
}

#[test]
fn a_million_keys_of_each_kind_hash_as_in_python() {
    let secret = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
    let mut kinds = 0;
    for line in DIGESTS.lines().skip(1) {
        let [kind, seed, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let seed = if seed == "secret" { Seed::Secret(secret) } else { Seed::Public(seed.parse().unwrap()) };
        assert_eq!(format!("{:016x}", digest_of(kind, seed)), expected, "{kind} by {seed}");
        kinds += 1;
    }
    assert_eq!(kinds, 40);
}

#[test]
fn a_key_has_one_hash_in_every_container_and_width() {
    let hasher = KeyHasher::new(0);
    let five = 5i64.to_hash(&hasher);
    let fives: [&dyn Key; 12] =
        [&5i8, &5u8, &5i16, &5u16, &5u32, &5usize, &5isize, &5i128, &5u128, &5f32, &5f64, &Some(Box::new(5u64))];
    for (i, key) in fives.into_iter().enumerate() {
        assert_eq!(key.to_hash(&hasher), five, "{i}");
    }
    assert_eq!(true.to_hash(&hasher), 1u8.to_hash(&hasher));
    assert_eq!("a".to_hash(&hasher), 'a'.to_hash(&hasher));
    assert_eq!("a".to_hash(&hasher), std::borrow::Cow::from("a").to_hash(&hasher));
    assert_eq!(b"a".to_hash(&hasher), vec![b'a'].to_hash(&hasher));
    assert_ne!(b"a".to_hash(&hasher), "a".to_hash(&hasher));
    assert_eq!(f64::NAN.to_hash(&hasher), None::<u8>.to_hash(&hasher));
    assert_eq!(Hashed(77).to_hash(&hasher), 77);
    assert_eq!((u64::MAX as f64 * 2.0).to_hash(&hasher), (1u128 << 65).to_hash(&hasher));
}

#[test]
fn keys_of_the_standard_library_and_other_crates_are_those_of_python() {
    let hasher = KeyHasher::new(0);
    let hash = |key: &dyn Key| key.to_hash(&hasher);
    assert_eq!(hash(&NonZeroI16::new(-5).unwrap()), hash(&-5));
    assert_eq!(hash(&NonZeroU128::MAX), hash(&u128::MAX));
    assert_eq!(hash(&Path::new("a/b")), hash(&"a/b"));
    let (v4, v6) = (Ipv4Addr::new(10, 0, 0, 1), Ipv6Addr::LOCALHOST);
    assert_eq!(hash(&IpAddr::from(v4)), hash(&[10u8, 0, 0, 1]));
    assert_eq!(hash(&SocketAddr::from((v6, 443))), hash(&(v6, 443)));
    assert_ne!(hash(&SocketAddrV6::new(v6, 443, 0, 2)), hash(&(v6, 443)));
    assert_eq!(hash(&vec![1, 2]), hash(&[1u16, 2]));
    assert_ne!(hash(&[1, 2]), hash(&(1, 2)));
    assert_eq!(hash(&Bytes::from_static(b"a")), hash(b"a"));
    let seconds = Duration::from_millis(1500);
    // By `lately.hash_keys` of these values in Python.
    let golden = [
        (hash(&seconds), 3_548_855_524_743_714_231),
        (hash(&(UNIX_EPOCH + seconds)), 6_645_659_540_138_246_375),
        (hash(&(UNIX_EPOCH - seconds)), 16_666_918_361_199_057_474),
        (hash(&Uuid::from_u128(5)), 9_990_971_591_184_285_507),
        (hash(&["a", "b"]), 11_352_232_184_271_896_740),
    ];
    golden.into_iter().for_each(|(hash, expected)| assert_eq!(hash, expected));
}

#[test]
fn a_secret_of_bytes_is_the_secret_of_python() {
    let secret: [u8; 16] = std::array::from_fn(|i| i as u8);
    let filter = Filter::builder(Window::last(10)).fpr(0.01).secret(secret).build().unwrap();
    let seed = Seed::Secret([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
    assert_eq!("a".to_hash(filter.hasher()), "a".to_hash(&KeyHasher::of(seed)));
}
