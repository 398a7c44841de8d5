"""Draw the picture of how-probable.md: one key, one filter, two priors.

A build of the site draws it.

The key is the one of the window that the filter reports and is least sure of.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import lately
from lately._styles import transparent

WINDOW = 10_000
# Four full epochs, so that one is a quarter of the window, and so few bits that the cells often leave it open whether a
# key was there: 6.5 per key.
PAPER = {"r": 4, "k": 4, "segment_bits": 13_056}
PRIORS = {"a rare key": 1e-6, "a key that comes often": 2e-5}


def undecided(f: lately.Filter, keys: np.ndarray) -> int:
    """The key of the window that the filter reports with the least posterior."""
    posteriors = f.posterior(keys, PRIORS["a rare key"])
    return int(keys[np.argmin(np.where(f.query(keys), posteriors, 1))])


def draw(folder: Path) -> None:
    """Draw it into a folder."""
    f = lately.GuardedEpochBloomFilter.from_parameters(WINDOW, **PAPER)
    f.insert(range(5 * WINDOW))
    key = undecided(f, np.arange(4 * WINDOW, 5 * WINDOW))
    with plt.rc_context(transparent()):
        figure, both = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
        for axes, (name, p) in zip(both, PRIORS.items(), strict=True):
            lately.plot.posterior(f, key, p, axes=axes)
            axes.set_title(f"{name} (p = {p:g})\n{axes.get_title()}", fontsize="medium")
        figure.savefig(folder / "how-probable.svg", metadata={"Date": None})
        plt.close(figure)
