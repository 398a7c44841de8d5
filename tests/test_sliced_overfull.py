"""Sites that hold more keys than planned: each producer is warned once, as by a filter in one process."""

import re
import warnings

import numpy as np
import pytest

import lately
from lately.distributed import SlicedFilter, slice_capacity

PLANNED = 4000
KINDS = {
    "horizontal": lambda **more: SlicedFilter(
        "horizontal", 4, lately.AgePartitionedBloomFilter("10min", 0.01, capacity=slice_capacity(PLANNED, 4)), **more
    ),
    "horizontal bits": lambda **more: SlicedFilter("horizontal", 4, lately.BloomFilter(PLANNED // 3, 0.01), **more),
    "vertical": lambda **more: SlicedFilter(
        "vertical", 4, lately.TimingBloomFilter("10min", 0.01, capacity=PLANNED), **more
    ),
    "vertical bits": lambda **more: SlicedFilter("vertical", 4, lately.BloomFilter(PLANNED, 0.01), **more),
}
every = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def timed(f, at):
    return {} if f.window is None else {"at": at}


def send(f, times, start=1000):
    """Insert many times as many keys as planned in one window, in batches; what was warned of."""
    keys = np.arange(start * PLANNED, int((start + times) * PLANNED))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i, batch in enumerate(np.array_split(keys, 40)):
            f.duplicated(batch, **timed(f, start + 14.5 * i))
    assert all(w.category is lately.OverfullWarning and w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught]


@every
def test_at_the_planned_load_no_producer_is_warned(make):
    with make() as f:
        assert send(f, 1) == []
        # Repeats take no room in cells.
        keys = np.arange(1000 * PLANNED, 1001 * PLANNED)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(12 if f.kind == "vertical" else 0):
                f.duplicated(keys, **timed(f, 1590))
        assert not any(site["overfull"] for site in f.status())


@every
def test_at_three_times_the_load_each_producer_is_warned_once_of_each_site(make):
    with make() as f:
        messages = send(f, 3)
        assert sorted(message.split(":")[0] for message in messages) == [f"site {i}" for i in range(4)]
        for message in messages:
            planned = int(message.split("planned for ")[1].split()[0])
            has = int(message.split("has ")[1].replace("at least", "about").split()[1].rstrip(","))
            assert planned < has < 4 * planned
            assert re.search(r"rate of false positives is .*0\.\d", message)
        assert send(f, 0.5, start=2000) == []
        other = f.handle()
        assert len(send(other, 0.5, start=3000)) == 4
        assert send(other, 0.5, start=4000) == []
        assert all("overfull" in site["overfull"] for site in f.status())


@every
def test_the_warning_as_an_error_has_the_answers_and_the_work_is_done(make):
    with make() as f, warnings.catch_warnings():
        warnings.simplefilter("error", lately.OverfullWarning)
        keys = np.arange(4 * PLANNED)
        with pytest.raises(lately.OverfullWarning) as caught:
            f.duplicated(keys, **timed(f, 1000))
        assert len(caught.value.answers) == len(keys)
        assert caught.value.answers.mean() < 0.5
        # The calls that follow warn of the others.
        for _ in range(3):
            with pytest.raises(lately.OverfullWarning):
                f.query(keys, **timed(f, 1000))
        assert f.query(keys, **timed(f, 1000)).all()


def test_on_ray_warnings_come_from_the_actors(ray_cluster):
    with KINDS["vertical"](sites="ray", deadline=60) as f:
        assert len(send(f, 3)) == 4
        assert all(site["keys"] > 0 for site in f.status())
