"""Draw the picture of how-probable.md: one key, one filter, two priors.

    uv run docs/how_probable.py

The key is the one that the filter reports and knows least about.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import lately

WINDOW = 10_000
# Small enough that the cells leave it open whether the key was there.
NBYTES = 8192
PRIORS = {"a rare key": 1e-6, "a key that comes often": 2e-5}


def undecided(f: lately.Filter, keys: np.ndarray) -> int:
    """The key of the window of which the least is known, and the filter answers yes."""
    posteriors = f.posterior(keys, PRIORS["a rare key"])
    return int(keys[np.argmin(np.where(f.query(keys), posteriors, 1))])


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "the same file for the same figures"
    f = lately.GuardedEpochBloomFilter(WINDOW, nbytes=NBYTES, slack=WINDOW // 4)
    f.insert(range(5 * WINDOW))
    key = undecided(f, np.arange(4 * WINDOW, 5 * WINDOW))
    figure, both = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axes, (name, p) in zip(both, PRIORS.items(), strict=True):
        lately.plot.posterior(f, key, p, axes=axes)
        axes.set_title(f"{name} (p = {p:g})\n{axes.get_title()}", fontsize="medium")
    figure.savefig(Path(__file__).with_name("how-probable.svg"), metadata={"Date": None})
