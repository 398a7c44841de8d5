"""Sites and producers are killed again and again: what is lost, and what is told twice."""

import warnings

import numpy as np
import pytest

import lately
from lately.distributed import LocalSites, SlicedFilter

KINDS = {
    "horizontal": {"kind": "horizontal", "slices": 4},
    "vertical": {"kind": "vertical", "slices": 4},
    "h-v": {"kind": "diced", "slices": (2, 2), "dice": "h-v"},
    "v-h": {"kind": "diced", "slices": (2, 2), "dice": "v-h"},
}
KILLS, KEYS = 60, 300


class Mortal(LocalSites):
    """Sites of which some get a batch before its producer dies, or before one of them does."""

    rng = np.random.default_rng(0)
    dies = ""

    def call(self, messages):
        if not self.dies or messages[0].method not in ("set", "touch", "insert", "duplicated"):
            return super().call(messages)
        dies, self.dies = self.dies, ""
        heard = [message for message in messages if self.rng.random() < 0.5]
        super().call(heard)
        if dies == "site":
            site = int(self.rng.integers(len(self)))
            self.kill(site)
            self.restart(site)
        raise ConnectionError("the producer dies")


@pytest.mark.campaign
@pytest.mark.parametrize("interval", [0, 1])
@pytest.mark.parametrize("name", KINDS)
def test_kills(name, interval, tmp_path):
    """With `interval=0` nothing is lost or told twice; else what was not saved may be told twice, and is counted."""
    rng = np.random.default_rng(3)
    like = lately.BloomFilter(200_000, 1e-9)
    made = {**KINDS[name], "filter": like, "sites": Mortal, "checkpoint": tmp_path, "interval": interval}
    new = np.zeros(KILLS * KEYS, dtype=int)
    with SlicedFilter(**made, producer="p") as sliced, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f = sliced
        for number in range(1, KILLS + 1):
            # Half of them have come before.
            first = (number - 1) * KEYS
            batch = np.concatenate([np.arange(first, first + KEYS), rng.integers(0, first + 1, KEYS)])
            sliced.sites.dies = ("site", "producer")[number % 2]
            with pytest.raises(ConnectionError):
                f.duplicated(batch, number=number)
            # It is started again, and knows nothing but its name and the batch.
            f = sliced.handle("p")
            np.add.at(new, batch[~f.duplicated(batch, number=number)], 1)
    lost, doubled = int((new == 0).sum()), int((new > 1).sum())
    print(f"{name}, interval {interval}: {KILLS} kills, {len(new)} keys, {lost} lost, {doubled} told twice")
    if interval == 0:
        assert (lost, doubled) == (0, 0)
    elif name == "horizontal":
        assert lost == 0
