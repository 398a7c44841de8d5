"""Integers chosen to have the hashes of others, where the seed is public: hashing scheme 1 inverted."""

import numpy as np

FACTOR = 0x9FB21C651E98DF25
UNFACTOR = np.uint64(pow(FACTOR, -1, 1 << 64))
# Bytes 8 to 24 of XXH3's default secret, folded, as its specification has them.
SECRET = int.from_bytes(bytes.fromhex("7c 01 81 2c f7 21 ad 1c"), "little") ^ int.from_bytes(
    bytes.fromhex("de d4 6d e9 83 90 97 db"), "little"
)


def seed_of_integers(seed: int) -> int:
    """Second output of SplitMix64: kind 2 of the scheme's table."""
    z = (seed + 2 * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def integers_with(hashes: np.ndarray, seed: int = 0) -> np.ndarray:
    """Invert XXH3 of eight bytes: for each hash the integer that has it."""

    def shift(x: np.ndarray, bits: int) -> np.ndarray:
        return x >> np.uint64(bits)

    def rotate(x: np.ndarray, bits: int) -> np.ndarray:
        return x << np.uint64(bits) | shift(x, 64 - bits)

    kind = seed_of_integers(seed)
    swapped = int.from_bytes((kind & 0xFFFFFFFF).to_bytes(4, "little"), "big")
    flip = np.uint64((SECRET - (kind ^ swapped << 32)) % 2**64)
    h = (hashes ^ shift(hashes, 28) ^ shift(hashes, 56)) * UNFACTOR
    h = (h ^ (shift(h, 35) + np.uint64(8))) * UNFACTOR
    # 1 + x^24 + x^49 over bits in a ring of 64 is 1 when taken to the power of 64.
    for _ in range(63):
        h = h ^ rotate(h, 49) ^ rotate(h, 24)
    h ^= flip
    return rotate(h, 32).view(np.int64)
