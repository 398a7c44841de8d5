"""Single keys, files, unions and errors, for valgrind: without NumPy, whose start alone would fill the report.

just memcheck
"""

import tempfile
from contextlib import suppress
from pathlib import Path

import lately

KEYS = ["a", b"b", 5, 2.5, ("x", 1), 2**70, "\u00fc" * 50]


def use(kind: type[lately.Filter]) -> None:
    """Every call that takes no batch."""
    f, other = kind(100, 0.01), kind(100, 0.01)
    for key in KEYS:
        f.add(key)
        other.add(str(key))
        assert key in f
        assert f.seen(key)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.lately"
        f.save(path)
        f.save(path)
        read, mapped = lately.open(path), lately.open(path, mmap=True)
        assert 5 in read
        assert 5 in mapped
        mapped.add("z")
        assert lately.from_bytes(read.to_bytes()) == f
    with suppress(ValueError):
        assert 5 in f.union(other)
    assert repr(f.copy())
    f.clear()
    for bad in (object(), {}, [1, {}]):
        with suppress(TypeError, ValueError):
            f.add(bad)


if __name__ == "__main__":
    for kind in (
        lately.AgePartitionedBloomFilter,
        lately.GuardedEpochBloomFilter,
        lately.TimingBloomFilter,
        lately.Swamp,
        lately.AgedCuckooFilter,
    ):
        use(kind)
    timed = lately.TimeLimitedBloomFilter("10s", 0.01, max_ahead=None)
    for i in range(50):
        timed.add(i, at=1_700_000_000 + i)
    print("done")
