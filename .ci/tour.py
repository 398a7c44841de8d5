"""What a newcomer tries first, with NumPy alone: to be run where lately is installed from a wheel."""

import pickle
from pathlib import Path

import lately

assert "site-packages" in lately.__file__, f"this is not the installed package, but {lately.__file__}"
assert lately.duplicated(["a", "b", "a", "c", "b"], window=2).tolist() == [False, False, True, False, False]
assert lately.duplicated(["a", "a", "a"], window="10min", at=[0, 599, 2000]).tolist() == [False, True, False]
assert list(lately.unique(["a", "b", "a"], window=10)) == ["a", "b"]

for kind in (lately.AgePartitionedBloomFilter, lately.TimingBloomFilter):
    f = kind(window=10_000, fpr=0.001)
    keys = list(range(25_000))
    assert f.duplicated(keys).mean() < 0.01
    assert f.query(keys[-10_000:], threads=2).all()
    f.save("seen.lately")
    for same in (lately.open("seen.lately"), lately.open("seen.lately", mmap=True), pickle.loads(pickle.dumps(f))):
        assert same.query(keys[-10_000:]).all()
        assert "no such key" not in same
Path("seen.lately").unlink()
print(lately.plan(window=1_000_000, fpr=0.001))
print(f"lately {lately.__version__}: as it should be")
