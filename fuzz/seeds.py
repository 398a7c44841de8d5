"""Saved filters to begin with: one of every family and window, as small as there are, so that trying one takes
microseconds.

    python fuzz/seeds.py fuzz/corpus/saved
"""

import sys
from pathlib import Path

from lately._families import EVERY


def filters():
    """Give each with a few keys in it."""
    for name, family in EVERY.items():
        for size, fpr in ((3, 0.4), (20, 0.1)):
            if family.windows in ("any", "insertions"):
                f = family.make(size, fpr=fpr)
                f.insert(range(2 * size))
                yield f"{name}-{size}", f
            if family.windows != "insertions":
                given = {} if family.windows == "unknown rate" else {"capacity": size}
                f = family.make("10s", fpr=fpr, lateness="1s", max_ahead=None, **given)
                f.insert(range(size), at=1_700_000_000)
                f.insert(range(size, 2 * size), at=1_700_000_006)
                yield f"{name}-{size}-in-time", f


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, f in filters():
        (folder / name).write_bytes(f.to_bytes())
