"""Keys chosen by an adversary: what they do to a filter of a public seed, and not to one with a secret."""

import pickle
import struct

import numpy as np
import pyarrow as pa
import pytest

import lately
from lately.distributed import SlicedFilter
from support.chosen import integers_with

VICTIMS = [f"https://example.org/{i}" for i in range(10_000)]
FPR = 0.001


def filled(seed: object) -> lately.Filter:
    """A filter after an attacker, who has read the scheme and assumes seed 0, inserted keys."""
    f = lately.AgePartitionedBloomFilter(100_000, FPR, seed=seed)
    f.insert(integers_with(lately.hash_keys(VICTIMS)))
    return f


def test_chosen_integers_have_the_hashes_of_their_victims():
    hashes = lately.hash_keys(VICTIMS)
    assert (lately.hash_keys(integers_with(hashes)) == hashes).all()


def test_a_public_seed_is_no_protection():
    assert filled(0).query(VICTIMS).all()


def test_a_secret_is():
    reported = int(filled("random").query(VICTIMS).sum())
    # At most its rate, and five standard deviations.
    assert reported <= FPR * len(VICTIMS) + 5 * (FPR * len(VICTIMS)) ** 0.5


def test_a_secret_of_ones_own_is_shared_and_a_drawn_one_is_not():
    keys = np.arange(1000)
    one, same, other = (
        lately.AgePartitionedBloomFilter(1000, FPR, seed=seed) for seed in (b"k" * 16, b"k" * 16, b"l" * 16)
    )
    one.insert(lately.Hashes(lately.hash_keys(keys, seed=b"k" * 16), seed=b"k" * 16))
    assert one.query(keys).all()
    same.insert(-keys)
    other.insert(-keys)
    assert one.union(same).query(np.concatenate([keys, -keys])).all()
    with pytest.raises(ValueError, match="a secret of its own"):
        one.union(other)
    drawn = [lately.AgePartitionedBloomFilter(1000, FPR, seed="random") for _ in range(2)]
    with pytest.raises(ValueError, match="a secret of its own"):
        drawn[0].union(drawn[1])


def test_a_secret_is_kept_and_not_shown(tmp_path):
    secret = b"0123456789abcdef"
    f = lately.AgePartitionedBloomFilter(1000, FPR, seed=secret)
    f.insert(["a", 1, 2.5])
    f.save(tmp_path / "f")
    hashes = lately.Hashes(lately.hash_keys(["a"], seed=secret), seed=secret)
    for again in (
        lately.open(tmp_path / "f"),
        lately.from_bytes(f.to_bytes()),
        pickle.loads(pickle.dumps(f)),
        f.copy(),
    ):
        assert again.query(["a", 1, 2.5, "b"]).tolist() == [True, True, True, False]
        assert again.query(pickle.loads(pickle.dumps(hashes))).all()
    assert (f.seed, hashes.seed) == (None, None)
    for shown in (repr(f), str(f), repr(hashes), str(f.parameters)):
        assert "0123" not in shown
        assert str(int.from_bytes(secret[:8], "little")) not in shown
    with pytest.raises(ValueError, match="seed") as refused:
        f.query(lately.Hashes(lately.hash_keys(["a"])))
    assert "0123" not in str(refused.value)


def test_the_one_liner_is_not_deceived():
    keys = np.concatenate([integers_with(lately.hash_keys(VICTIMS)).astype(object), np.array(VICTIMS, dtype=object)])
    marked = lately.duplicated(keys, window=100_000, fpr=FPR)[len(VICTIMS) :]
    assert marked.sum() <= FPR * len(VICTIMS) + 5 * (FPR * len(VICTIMS)) ** 0.5
    assert lately.duplicated(keys, window=100_000, fpr=FPR, seed=0)[len(VICTIMS) :].all()


def siphash13(key: bytes, message: bytes) -> int:
    """SipHash-1-3 as its paper has it."""
    k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def turned(x: int, bits: int) -> int:
        return (x << bits | x >> 64 - bits) % 2**64

    def turn() -> None:
        for a, b, c, d, first, second in ((0, 1, 2, 3, 13, 16), (2, 1, 0, 3, 17, 21)):
            v[a] = (v[a] + v[b]) % 2**64
            v[c] = (v[c] + v[d]) % 2**64
            v[b] = turned(v[b], first) ^ v[a]
            v[d] = turned(v[d], second) ^ v[c]
            v[a] = turned(v[a], 32)

    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) % 256])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= word
        turn()
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(3):
        turn()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def test_a_secret_hashes_as_specified():
    secret = bytes(range(16))

    def hashed(kind: int, *words: int, text: bytes = b"") -> int:
        key = b"".join(siphash13(secret, bytes([kind, half])).to_bytes(8, "little") for half in (0, 1))
        return siphash13(key, b"".join(word.to_bytes(8, "little") for word in words) + text)

    row = hashed(13, hashed(13, hashed(13, 2), hashed(2, 1)), hashed(7, text=b"a long piece of text"))
    half = int.from_bytes(struct.pack("<d", 0.5), "little")
    expected = [
        hashed(1),
        hashed(2, 5),
        hashed(7, text=b"5"),
        hashed(8, text=b"5"),
        hashed(3, 2**63),
        hashed(5, half),
        row,
    ]
    keys = [None, 5, "5", b"5", 2**63, 0.5, (1, "a long piece of text")]
    assert lately.hash_keys(keys, seed=secret).tolist() == expected


@pytest.mark.parametrize("seed", [5, bytes(range(16))])
def test_many_strings_are_hashed_as_each_alone(seed):
    random = np.random.default_rng(3)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz\u00e4\u20ac\U0001f600"))
    texts = ["".join(random.choice(letters, length)) for length in random.integers(0, 90, 1000)]
    byte_strings = [text.encode() for text in texts]

    def hashed(key):
        return int(lately.hash_keys([key], seed=seed)[0])

    as_text, as_bytes = [hashed(text) for text in texts], [hashed(text) for text in byte_strings]
    for container, expected in (
        (texts, as_text),
        (tuple(byte_strings), as_bytes),
        (np.array(texts), as_text),
        (np.array(texts)[::-2], as_text[::-2]),
        (np.array(byte_strings), as_bytes),
        (np.array(byte_strings, dtype=object), as_bytes),
        (pa.array(texts), as_text),
        (pa.array(texts)[100:900], as_text[100:900]),
        (pa.array(texts, pa.large_string()), as_text),
        (pa.array(texts, pa.string_view()), as_text),
        (pa.array(texts).dictionary_encode(), as_text),
        (pa.array(byte_strings), as_bytes),
        (pa.array(byte_strings, pa.binary_view()), as_bytes),
        (pa.array([text[:3] + b"..."[len(text[:3]) :] for text in byte_strings], pa.binary(3)), None),
    ):
        expected = expected or [hashed(key) for key in container.to_pylist()]
        assert lately.hash_keys(container, seed=seed).tolist() == expected
    mixed = ["\ud800", 5, None, ("a", "b"), *texts[:200], 7, *texts[200:300], "\udfff" * 9]
    assert lately.hash_keys(mixed, seed=seed).tolist() == [hashed(key) for key in mixed]
    with_nulls = pa.array([None if i % 3 == 0 else text for i, text in enumerate(texts)])
    assert lately.hash_keys(with_nulls, seed=seed).tolist() == [hashed(key) for key in with_nulls.to_pylist()]
    with pytest.raises(TypeError, match=r"^key 70: "):
        lately.hash_keys([*texts[:70], object(), *texts], seed=seed)


def test_sites_share_no_secret():
    one = lately.TimingBloomFilter("10min", FPR, capacity=1000, seed="random")
    with pytest.raises(ValueError, match="a seed that all producers know"):
        SlicedFilter("horizontal", 2, one)
