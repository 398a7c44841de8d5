"""Sliced filters give the verdicts of the filters that they are slices of."""

import doctest
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import lately
from lately._core import Slice, part_of
from lately._core import cells as cells_of
from lately.distributed import SlicedFilter
from lately.distributed._slices import sliced as _sliced
from support.sliced import generations_of, retained, sites_of_cells, timers

TIMED = {
    "epochs transposed": lambda **more: lately.GuardedEpochBloomFilter("10min", 0.01, capacity=500, **more),
    "age-partitioned in lines": lambda **more: lately.AgePartitionedBloomFilter("10min", 0.01, capacity=500, **more),
    "aged cuckoo": lambda **more: lately.AgedCuckooFilter("10min", 0.01, capacity=500, **more),
    "timing, growing": lambda **more: lately.TimingBloomFilter("10min", 0.01, capacity=100, grow="cardinality", **more),
    "time-limited": lambda **more: lately.TimeLimitedBloomFilter("10min", 0.01, **more),
    "exact": lambda **more: lately.ExactFilter("10min", **{"seed": 0, **more}),
}
CELLS = {
    "bits": lambda: lately.BloomFilter(3000, 0.01, seed=3),
    "bits in slices": lambda: lately.BloomFilter(3000, 0.01, partitioned=True, seed=3),
    "timers": lambda: timers(),
    "timers, late": lambda: lately.TimingBloomFilter("10min", 0.02, capacity=400, lateness="90s", seed=3),
    "timers, equal": lambda: timers(equal_timers=2),
    # More generations than a byte has values.
    "timers, many generations": lambda: timers(bpt=10, blocks=700),
}


def stream(keys, rng, *, seconds=1.0, distinct=700):
    """Batches of keys with times that go through several windows, with gaps and repeats within a batch."""
    values = rng.integers(0, distinct, size=keys)
    times = np.cumsum(rng.exponential(seconds, size=keys))
    times[keys // 2 :] += 2000
    cuts = np.sort(rng.choice(np.arange(1, keys), size=30, replace=False))
    for start, stop in pairwise([0, *cuts, keys]):
        yield values[start:stop], times[start:stop]


def moments(filter, times):
    return {} if filter.window is None else {"at": times}


def words(filter):
    return np.frombuffer(filter.to_bytes()[-filter.nbytes :], dtype=np.uint64)


def parts(sliced):
    """The slices that the sites of a filter of this process hold."""
    return [site._contents._slice for site in sliced.sites._sites]


# --- routing


@pytest.mark.parametrize("parts", [2, 7, 40])
def test_keys_are_scattered_evenly(parts):
    hashes = lately.hash_keys(np.arange(200_000))
    counts = np.bincount(part_of(hashes, parts), minlength=parts)
    deviation = np.sqrt(len(hashes) / parts * (1 - 1 / parts))
    assert np.abs(counts - len(hashes) / parts).max() < 5 * deviation


@pytest.mark.parametrize("partitioned", [False, True])
def test_sites_and_cells_of_a_key_are_independent(partitioned):
    """Slices of equal keys fill as one filter of those keys does; were the bits shared, they would fill in stripes."""
    keys, bits, k, sites = 80_000, 40_000, 4, 8
    sizes = {"slice_bits": bits // k} if partitioned else {"bits": bits}
    like = lately.BloomFilter.from_parameters(capacity=keys // sites, k=k, seed=1, **sizes)
    with SlicedFilter("horizontal", sites, like) as sliced:
        sliced.insert(np.arange(keys))
        loads = np.bincount(part_of(lately.hash_keys(np.arange(keys), seed=1), sites), minlength=sites)
        for fill, load in zip(sliced.fill, loads, strict=True):
            empty = (1 - k / bits) ** load if partitioned else (1 - 1 / bits) ** (k * load)
            # Of balls in bins the bins left empty vary less than if each were empty by itself.
            assert abs(fill - (1 - empty)) < 5 * np.sqrt(empty * (1 - empty) / bits)
    # And so it is bit by bit: of the places in a filter of 64 cells each site gets its share.
    hashes = lately.hash_keys(np.arange(keys), seed=1)
    small = lately.BloomFilter.from_parameters(capacity=64, k=1, bits=64, seed=1)
    cells = cells_of(small, lately.Hashes(hashes, seed=1))[:, 0]
    table = np.bincount(cells * sites + part_of(hashes, sites), minlength=64 * sites)
    expected = keys / table.size
    assert np.abs(table - expected).max() < 5 * np.sqrt(expected)


# --- horizontal


@pytest.mark.parametrize("refresh", [True, False])
@pytest.mark.parametrize("make", TIMED.values(), ids=TIMED)
def test_horizontal_is_a_filter_for_each_share_of_the_keys(make, refresh):
    plain = [make(seed=5) for _ in range(5)]
    with SlicedFilter("horizontal", 5, make(seed=5)) as sliced:
        for keys, times in stream(2000, np.random.default_rng(1)):
            site = part_of(lately.hash_keys(keys, seed=5), 5)
            expected = [
                plain[s].duplicated([key], at=[t], refresh=refresh)[0]
                for s, key, t in zip(site, keys, times, strict=True)
            ]
            assert sliced.duplicated(keys, at=times, refresh=refresh).tolist() == expected
            queried = np.arange(1000)
            there = part_of(lately.hash_keys(queried, seed=5), 5)
            answers = np.array([filter.query(queried, at=times[-1]) for filter in plain])
            assert (sliced.query(queried, at=times[-1]) == answers[there, queried]).all()
        assert sliced.nbytes == sum(filter.nbytes for filter in plain)
        assert sliced.failures == 0


# --- vertical


# Queries alone are pipelined, and `refresh` is for batches that are written.
@pytest.mark.parametrize(("pipelined", "refresh"), [(False, True), (True, False)])
@pytest.mark.parametrize("make", CELLS.values(), ids=CELLS)
def test_vertical_is_the_unsliced_filter(make, refresh, pipelined):
    whole = make()
    with SlicedFilter("vertical", 7, make(), pipelined=pipelined) as sliced:
        for keys, times in stream(4000, np.random.default_rng(2)):
            at = moments(whole, times)
            expected = whole.duplicated(keys, **at, refresh=refresh)
            assert (sliced.duplicated(keys, **at, refresh=refresh) == expected).all()
            queried = np.arange(900)
            for later in (0, 30, 333):
                at = moments(whole, times[-1] + later)
                assert (sliced.query(queried, **at) == whole.query(queried, **at)).all()
        check_cells(whole, parts(sliced), at=times[-1])


def check_cells(whole, slices, at):
    """The live cells of all slices, one after the other, are those of the whole filter."""
    joined = np.concatenate([part.words() for part in slices])
    if whole.window is None:
        assert (joined == words(whole)).all()
        return
    # A site that hears of a generation later than the others sweeps its expired timers later or sooner.
    newest = int(generations_of(whole, at, 1)[0])
    cells = np.arange(int(Slice.bounds(whole, 1)[-1]), dtype=np.uint64)
    both = [Slice.from_words(whole, some, newest=newest).ages(cells)[0] for some in (joined, words(whole))]
    assert (both[0] == both[1]).all()
    assert len(np.unique(both[0])) > 1


@pytest.mark.parametrize(("at", "cell"), [(None, 4), (0, 4), (np.linspace(0, 500, 4000), 5)])
def test_a_batch_is_one_message_a_site_and_five_bytes_a_cell_beside_its_record(at, cell):
    with SlicedFilter("vertical", 7, timers(slice_timers=60_000)) as sliced:
        assert not sliced.duplicated(np.arange(4000), at=at).all()
        # The orderer first announces itself, and reads how late it is. One site gets the hashes too. With each answer
        # comes what it is as of.
        assert (sliced.traffic.messages, sliced.traffic.sent) == (3 * 7, 4000 * 6 * cell + 4000 * (8 + cell - 4))
        assert sliced.traffic.received == 4000 * 6 + 7 * 4 * 8
        sliced.duplicated(np.arange(4000), at=None if at is None else 500)
        assert sliced.traffic.messages == 4 * 7


@pytest.mark.parametrize("dice", ["h-v", "v-h"])
@pytest.mark.parametrize("refresh", [True, False])
@pytest.mark.parametrize("make", CELLS.values(), ids=CELLS)
def test_diced_filters_against_models(make, refresh, dice):
    """h-v is a vertical filter, or the whole one, for each group of keys; v-h is a dictionary of cells."""
    slices = (3, 4)
    model = Groups(make, slices[0]) if dice == "h-v" else Replicas(make, *slices)
    with SlicedFilter("diced", slices, make(), dice=dice) as sliced:
        assert len(sliced.sites) == 12
        for keys, times in stream(1500, np.random.default_rng(4)):
            expected = [model.duplicated(key, t, refresh=refresh) for key, t in zip(keys, times, strict=True)]
            assert sliced.duplicated(keys, **moments(make(), times), refresh=refresh).tolist() == expected
        assert sliced.nbytes == make().nbytes * (3 if dice == "h-v" else 4)


class Groups:
    def __init__(self, make, groups):
        self.filters = [make() for _ in range(groups)]
        self.groups = groups

    def duplicated(self, key, time, *, refresh):
        filter = self.filters[part_of(lately.hash_keys([key], seed=3), self.groups)[0]]
        return filter.duplicated([key], **moments(filter, [time]), refresh=refresh)[0]


class Replicas:
    """Which of the replicas a key takes in a range: as the filter chooses, but there is a dictionary for each site."""

    def __init__(self, make, ranges, replicas):
        self.like = make()
        self.sites = [{} for _ in range(ranges * replicas)]
        with SlicedFilter("diced", (ranges, replicas), self.like, dice="v-h") as sliced:
            self.routes = sliced._slices.ranges
        self.newest = -(2**62)

    def duplicated(self, key, time, *, refresh):
        scattered = self.routes.scatter(lately.hash_keys([key], seed=3))
        generation = int(generations_of(self.like, time, 1)[0])
        self.newest = max(self.newest, generation)
        there = {
            place: (self.sites[site], cell)
            for (site, cells), places in zip(scattered.shares(), scattered.places(), strict=True)
            for place, cell in zip(places.tolist(), cells.tolist(), strict=True)
        }
        # A cell that the key has twice is there once.
        row = cells_of(self.like, [key])[0].tolist()
        cells = [there[row.index(cell)] for cell in row]
        last = [site.get(cell) for site, cell in cells]
        seen = all(g is not None and g >= self.newest - retained(self.like) for g in last)
        equal = self.like.parameters.get("equal_timers", 1)
        seen = seen and (equal == 1 or max(Counter(last).values()) >= equal)
        if refresh or not seen:
            for site, cell in cells:
                site[cell] = max(site.get(cell, generation), generation)
        return seen


def test_the_replicas_of_ranges_are_chosen_independently():
    like = lately.BloomFilter.from_parameters(capacity=1000, k=2, slice_bits=6400, seed=1)
    with SlicedFilter("diced", (2, 4), like, dice="v-h") as sliced:
        sites = sites_of_cells(sliced, np.arange(40_000))
    assert (sites % 2 == [0, 1]).all()
    table = np.bincount(sites[:, 0] // 2 * 4 + sites[:, 1] // 2, minlength=16)
    assert np.abs(table - 2500).max() < 5 * np.sqrt(2500)


def test_the_examples_of_sliced_filters():
    tried = doctest.testmod(_sliced, extraglobs={"lately": lately, "np": np}, optionflags=doctest.ELLIPSIS)
    assert tried.attempted
    assert not tried.failed
