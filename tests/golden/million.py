"""A million keys of each kind, as the Python package hashes them: a digest each, which `tests/core/keys.rs` repeats.

``python tests/golden/million.py`` writes ``million.tsv`` anew. Do so only with a new number of the key scheme.
"""

from pathlib import Path

import numpy as np

import lately

HERE = Path(__file__).parent
KEYS = 1_000_000
SEEDS = {"7": 7, "secret": bytes(range(16))}


def mixed(start: int) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """Mix the numbers from `start` on into 64 bits each, as `mix` of the Rust test does."""
    z = np.arange(start, start + KEYS, dtype=np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58_476D_1CE4_E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D0_49BB_1331_11EB)
    return z ^ z >> np.uint64(31)


Z = mixed(0)
WORDS = Z.tolist()


def truncated(kind: str) -> "np.ndarray[tuple[int], np.dtype[np.generic]]":
    """Keep the low bits of each number, as an array of this type."""
    width = np.dtype(kind).itemsize
    return Z.view(np.uint8).reshape(-1, 8)[:, :width].copy().view(kind).reshape(-1)


def floats() -> list[float]:
    """Whole, fractional, any bits, and small numbers, in turns."""
    turns = [float(z) if i % 4 == 0 else (z >> 11) * 2.0**-53 for i, z in enumerate(WORDS)]
    turns[2::4] = Z.view(np.float64)[2::4].tolist()
    turns[3::4] = truncated("i1").astype(np.float64)[3::4].tolist()
    return turns


def wide(*, signed: bool) -> list[int]:
    """Numbers of 128 bits and fewer."""
    high = mixed(1 << 40).tolist()
    both = [(h << 64 | z) for h, z in zip(high, WORDS, strict=True)]
    if signed:
        both = [b - (1 << 128) if b >> 127 else b for b in both]
    return [b >> i % 121 for i, b in enumerate(both)]


def texts() -> list[str]:
    """Up to 16 hexadecimal digits, and a letter of any alphabet."""
    return [f"{z:016x}"[: i % 17] + chr(z % 0xD800) for i, z in enumerate(WORDS)]


def keys() -> "dict[str, object]":
    """All keys by the name of their kind in Rust."""
    signed = truncated("i8").tolist()
    strings = texts()
    fractions = [(z >> 11) * 2.0**-53 for z in WORDS]
    kinds: dict[str, object] = {
        name: truncated(kind).tolist()
        for name, kind in {
            **{f"i{8 * n}": f"i{n}" for n in (1, 2, 4, 8)},
            **{f"u{8 * n}": f"u{n}" for n in (1, 2, 4, 8)},
            "f32": "f4",
        }.items()
    }
    kinds |= {
        "bool": [z & 1 == 1 for z in WORDS],
        "i128": wide(signed=True),
        "u128": wide(signed=False),
        "f64": floats(),
        "str": strings,
        "char": [chr(z % 0xD800) for z in WORDS],
        "bytes": [z.to_bytes(8, "little")[: i % 9] for i, z in enumerate(WORDS)],
        "option": [None if i % 3 == 0 else n for i, n in enumerate(signed)],
        "one": [(n,) for n in signed],
        "row": list(zip(signed, strings, fractions, strict=True)),
        "nested": [((n, s), None) for n, s in zip(signed, strings, strict=True)],
    }
    return kinds


def main() -> None:
    """Write the digests: the sum of all hashes, each times an odd number of its own."""
    odd = mixed(1 << 41) | np.uint64(1)
    lines = ["kind\tseed\tdigest"]
    for kind, batch in keys().items():
        for name, seed in SEEDS.items():
            hashes = np.asarray(lately.hash_keys(batch, seed=seed), dtype=np.uint64)
            lines.append(f"{kind}\t{name}\t{int((hashes * odd).sum(dtype=np.uint64)):016x}")
    (HERE / "million.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
