"""Slices of a filter: their cells are those of the one filter, and `decide` judges answers as if key by key.

That a filter over slices answers as the one filter is in `test_sliced.py`.
"""

from itertools import pairwise

import numpy as np
import pytest

import lately
from lately._core import Ranges, Slice
from lately._core import cells as cells_of
from support.sliced import generations_of, retained

NEVER = -(2**63)
timers, bits = lately.TimingBloomFilter.from_parameters, lately.BloomFilter.from_parameters


def minutes(**given):
    return timers("10min", capacity=500, **given)


# A filter, and how many insertions are a generation; none where it counts time.
ROWS = {
    "classical": (lambda: bits(capacity=500, k=5, bits=3001), None),
    "partitioned": (lambda: bits(capacity=500, k=4, slice_bits=611), None),
    "B=1": (lambda: timers(65, k=4, bpt=7, blocks=64, slice_timers=300), 1),
    "B=7": (lambda: timers(64, k=3, bpt=4, blocks=9, slice_timers=500), 7),
    "no padding": (lambda: timers(61, k=3, bpt=2, blocks=2, slice_timers=300), 30),
    "much padding": (lambda: timers(61, k=3, bpt=10, blocks=3, slice_timers=500), 20),
    "time": (lambda: minutes(k=4, bpt=4, blocks=10, slice_timers=400), None),
    "time, no padding": (lambda: minutes(k=3, bpt=3, blocks=6, slice_timers=300), None),
}
TIMED = [name for name in ROWS if name.startswith("time")]


def words(f):
    """The cells of a filter, as it saves them."""
    return np.frombuffer(f.to_bytes(), np.uint8)[-f.nbytes :].copy().view(np.uint64)


def sliced(f, parts):
    slices = [Slice(f, part=part, parts=parts) for part in range(parts)]
    assert Slice.bounds(f, parts).tolist() == [s.start for s in slices] + [slices[-1].stop]
    assert all(a.stop == b.start for a, b in pairwise(slices))
    assert sum(s.nbytes for s in slices) == f.nbytes
    return slices


def read(s, cells):
    """The generation in which cells of a slice, by their numbers in the filter, were last set, or `NEVER`."""
    ages, base = s.ages((cells - np.uint64(s.start)).ravel())
    last = np.where(ages == np.iinfo(ages.dtype).max, NEVER, base - ages.astype(np.int64))
    return last.reshape(cells.shape)


def put(s, cells, generations):
    """Set cells of a slice, by their numbers in the filter, one after the other."""
    newest = int(np.max(generations))
    behind = (newest - np.broadcast_to(generations, cells.shape)).astype(np.uint32)
    return s.touch(cells - np.uint64(s.start), newest, behind)


def set_each(slices, cells, generations):
    """Set cells row by row, and send the newest generation to every slice."""
    for s in slices:
        rows, columns = np.nonzero((cells >= s.start) & (cells < s.stop))
        if len(rows):
            put(s, cells[rows, columns], generations[rows])
        if len(generations):
            s.touch(np.empty(0, np.uint64), int(generations.max()))


def moments(rng, n, start=10**9):
    """In order: most seconds apart, some many generations, and now and then a gap longer than the window."""
    return start + np.cumsum(rng.choice([0, 1, 20, 90, 300, 2000], p=[0.3, 0.45, 0.15, 0.06, 0.03, 0.01], size=n))


@pytest.mark.parametrize("parts", [1, 3, 20])
@pytest.mark.parametrize("name", ROWS)
def test_the_words_of_all_slices_are_those_of_the_filter(name, parts):
    (make, block), rng = ROWS[name], np.random.default_rng(1)
    f = make()
    slices = sliced(f, parts)
    at, done = moments(rng, 2000), 0
    while done < 2000:
        n = int(rng.integers(1, 40))
        keys, now = rng.integers(0, 2**62, n), at[done : done + n]
        if name in TIMED:
            f.insert(keys[: len(now)], at=now)
            generations = generations_of(f, now, len(now))
        else:
            f.insert(keys[: len(now)])
            generations = np.arange(done, done + len(now)) // block if block else np.zeros(len(now), np.int64)
        cells = cells_of(f, keys[: len(now)])
        for generation in np.unique(generations):
            of = generations == generation
            set_each(slices, cells[of], generations[of])
        done += n
        assert np.array_equal(np.concatenate([s.words() for s in slices]), words(f)), done
    total = sum(s.fill * (s.stop - s.start) for s in slices)
    assert total == pytest.approx(f.fill.mean() * slices[-1].stop)
    assert {s.newest for s in slices} == {int(generations[-1])}


WIDE = {"classical": ROWS["classical"], "partitioned": ROWS["partitioned"], **{name: ROWS[name] for name in TIMED}}
# More generations than a byte has values.
WIDE["time, many generations"] = (lambda: minutes(k=4, bpt=10, blocks=700, slice_timers=400), None)


@pytest.mark.parametrize("name", WIDE)
def test_ages_are_those_of_the_window_and_nothing_is_set(name):
    """A cell that was set before the window counts for no key, as one that was never set."""
    (make, _), rng = WIDE[name], np.random.default_rng(8)
    f = make()
    s = Slice(f, part=1, parts=3)
    here, old = np.arange(s.stop - s.start, dtype=np.uint32), 0
    model = np.full(len(here), NEVER)
    assert (read(s, here.astype(np.uint64) + np.uint64(s.start)) == NEVER).all()
    for at in np.arange(0, 3000, 47.0):
        cells, generation = rng.choice(here, 9), int(generations_of(f, at, 1)[0])
        s.touch(cells, generation)
        model[cells] = generation
        before = s.words()
        ages, base = s.ages(here)
        assert base == s.newest == generation
        assert ages.dtype == (np.uint32 if "many" in name else np.uint8)
        counts = model >= base - retained(f)
        old += (~counts & (model != NEVER)).sum()
        assert (ages == np.where(counts, base - model, -1).astype(ages.dtype)).all()
        assert (s.ages(here[5:9].astype(np.uint64))[0] == ages[5:9]).all()
        assert (s.words() == before).all()
    assert (old > 0) == (f.window is not None)


@pytest.mark.parametrize("name", ["classical", "partitioned", *TIMED])
def test_an_unsliced_filter_decides_keys_as_its_cells_do(name):
    """In batches whose times step back, by more than is kept, too."""
    f, rng = ROWS[name][0](), np.random.default_rng(1)
    whole, by_cells, ranges = Slice(f), Slice(f), Ranges(f, 1)
    rule = {"kept": retained(f)}
    for number in range(30):
        hashes = lately.hash_keys(rng.integers(400, size=rng.integers(1, 60)), seed=f.seed)
        generations = np.zeros(len(hashes), np.int64)
        if name in TIMED:
            generations += number // 2 + rng.integers(3, size=len(hashes)) - rng.integers(2, size=len(hashes)) * 12
        scattered = ranges.scatter(hashes)
        ((_, cells),), (places,) = scattered.shares(), scattered.places()
        answers, rule["newest"] = [(*by_cells.ages(cells), NEVER)], by_cells.newest
        oldest, _ = scattered.decide(answers, generations, "answered", **rule)
        assert whole.oldest(hashes, generations).tolist() == oldest.tolist()
        new = scattered.decide(answers, generations, "new", **rule)[0] == NEVER
        if number % 3 == 0:
            whole.insert(hashes, generations)
            new[:] = True
        else:
            assert whole.duplicated(hashes, generations).tolist() == (~new).tolist()
        for cell, key in zip(cells, places // f.parameters["k"], strict=True):
            if new[key]:
                by_cells.touch(np.array([cell]), int(generations[key]))
        assert whole.newest == by_cells.newest
        assert whole.words().tolist() == by_cells.words().tolist()


def test_a_cell_that_a_key_has_twice_is_requested_once():
    """Otherwise the key would read what it has set itself."""
    f = bits(capacity=10, k=6, bits=8)
    scatter = Ranges(f, 1).scatter(lately.hash_keys(np.arange(50), seed=f.seed))
    ((_, cells),) = scatter.shares()
    rows = cells_of(f, np.arange(50))
    assert len(cells) == sum(len(set(row)) for row in rows.tolist()) < 300
    (places,) = scatter.places()
    assert cells.tolist() == rows.ravel()[places].tolist()
    (s,), now = sliced(f, 1), np.zeros(50, np.int64)
    # What the site may have missed is not answered, however often a key has it.
    answer = [(*s.touch(cells, 0), 0)]
    oldest, unsure = scatter.decide(answer, now, "answered", newest=0, kept=retained(f), least=1)
    assert oldest[0] == NEVER
    assert unsure[0]


def test_arguments_that_do_not_fit_are_rejected_before_any_effect():
    f = minutes(k=4, bpt=4, blocks=10, slice_timers=400)
    (s,), scatter = sliced(f, 1), Ranges(f, 1).scatter(lately.hash_keys(["a", "b"]))
    cells, now = np.array([3, s.stop], np.uint32), np.zeros(2, np.int64)
    s.touch(np.array([7], np.uint32), 3)
    before = s.words()

    def decide(answers, *, generations=now, earlier="answered", **given):
        return scatter.decide(answers, generations, earlier, newest=0, kept=1, **given)

    for call, error, message in [
        (lambda: s.touch(cells, 5), ValueError, f"cell {s.stop} is not of this slice"),
        (lambda: s.touch(cells, 5, np.zeros(2, np.uint8)), ValueError, f"cell {s.stop} is not of this slice"),
        (lambda: s.touch(cells[:1], NEVER), ValueError, "stands for a cell"),
        (lambda: s.touch(cells[:1], NEVER + 1, np.ones(1, np.uint8)), ValueError, str(NEVER)),
        (lambda: s.touch(cells[:1], 5, np.zeros(2, np.uint8)), ValueError, "behind must have the shape"),
        (lambda: s.touch(cells[:1], 5, np.zeros(1)), TypeError, "behind must be an ndarray of uint8 or uint32"),
        (lambda: s.ages(cells), ValueError, f"cell {s.stop} is not of this slice"),
        (lambda: s.ages(np.array([2**64 - 1], np.uint64)), ValueError, "is not of this slice"),
        (lambda: s.ages(cells.astype(float)), TypeError, "cells must be an ndarray of uint32 or uint64"),
        (lambda: s.touch(cells.astype(float), 5), TypeError, "cells must be an ndarray of uint32 or uint64"),
        (lambda: decide([]), ValueError, "0 answers of 1 sites"),
        (lambda: decide([(np.zeros(3, np.uint8), 0, 0)]), ValueError, "3 cells of 8"),
        (lambda: decide([(np.zeros(8), 0, 0)]), TypeError, "ages must be an ndarray of int64"),
        (lambda: decide([(np.zeros((2, 4), np.int64), 0, 0)]), ValueError, "ages must have one dimension"),
        (lambda: decide([None], least=5), ValueError, "least must be at most k, here 4, got 5"),
        (lambda: decide([None], least=-1), ValueError, "least"),
        (lambda: decide([None], equal=5), ValueError, "equal"),
        (lambda: decide([None], generations=now[:1]), ValueError, r"generations must have the shape \[2\], got \[1\]"),
        (lambda: decide([None], generations=now + NEVER), ValueError, r"generations\[0\]"),
        (lambda: decide([None], earlier="later"), ValueError, "earlier"),
        (lambda: decide([None], known=np.array([0, 2], "i1")), ValueError, r"known\[1\] must be -1, 0 or 1, got 2"),
        (lambda: decide([None], known=now), TypeError, "known must be an ndarray of int8"),
        (lambda: Ranges(f, 2, 40_000), ValueError, "from 1 to 65536 sites"),
    ]:
        with pytest.raises(error, match=message):
            call()
    assert s.newest == 3
    assert (s.words() == before).all()


@pytest.mark.parametrize("name", ["B=7", "no padding", "much padding", *TIMED])
def test_late_cells_keep_their_generation_and_lower_none(name):
    rng = np.random.default_rng(4)
    f = ROWS[name][0]()
    s, lowered, gone = Slice(f), 0, 0
    model, newest, generation = np.full(s.stop, NEVER), NEVER, -50
    for _ in range(600):
        generation += int(
            rng.choice([0, 1, 2, retained(f), retained(f) + 3, 5000], p=[0.4, 0.4, 0.13, 0.04, 0.02, 0.01])
        )
        cells = rng.integers(s.stop, size=(20, cells_of(f, [1]).shape[1])).astype(np.uint64)
        generations = generation - rng.integers(0, retained(f) + 3, 20)
        put(s, cells.ravel(), np.repeat(generations, cells.shape[1]))
        newest = max(newest, generations.max())
        lowered += (generations[:, None] < model[cells]).sum()
        np.maximum.at(model, cells, generations[:, None])
        assert s.newest == newest
        chosen = rng.integers(s.stop, size=200).astype(np.uint64)
        counts = model[chosen] >= newest - retained(f)
        gone += (~counts & (model[chosen] != NEVER)).sum()
        assert (read(s, chosen) == np.where(counts, model[chosen], NEVER)).all()
    assert lowered > 300
    assert gone > 300


def verdicts(cells, last, generations, *, earlier, newest, kept, least, equal, alive, missed, known):
    """What `decide` returns, key by key; `cells` has the names of cells, and the others a value for each."""
    batch, oldest, unsure, first = {}, [], [], newest

    def counts(generation):
        return generation != NEVER and as_of - generation <= kept

    for i, own in enumerate(generations):
        newest = max(newest, own)
        as_of = max(first, own) if earlier == "nothing" else newest
        now = [max(t, batch.get(c, NEVER)) for c, t in zip(cells[i], last[i], strict=True)]
        there = [t for t, a, m in zip(now, alive[i], missed[i], strict=True) if a and (counts(t) or not counts(m))]
        open = all(map(counts, there))
        alike = max([there.count(t) for t in there], default=0)
        seen = open and len(there) >= least and (equal <= 1 or alike >= equal)
        unsure.append(not all(alive[i]) or (open and len(there) < len(now)))
        of_key = min(there, default=as_of - kept) if seen else NEVER
        oldest.append([NEVER, of_key if seen else as_of][known[i]] if known[i] >= 0 else of_key)
        if earlier == "all" or (earlier == "new" and oldest[-1] == NEVER):
            for c in cells[i]:
                batch[c] = max(own, batch.get(c, NEVER))
    return oldest, unsure


@pytest.mark.parametrize("seed", range(30))
def test_a_batch_is_decided_as_if_key_by_key(seed):
    rng = np.random.default_rng(seed)
    n, k, kept = int(rng.integers(1, 1000)), int(rng.integers(1, 9)), int(rng.integers(0, 12))
    parts, replicas = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    f = bits(capacity=500, k=k, bits=int(rng.integers(200, 4000)), seed=1)
    hashes = lately.hash_keys(rng.integers(0, 500, n), seed=1)
    scatter = Ranges(f, parts, replicas, each=bool(seed % 3)).scatter(hashes)
    # A cell has one value, however often it is in the batch, or keys would not share it; sites answer each anew.
    row, by_place = cells_of(f, lately.Hashes(hashes, seed=1)), np.zeros((4, n * k), np.int64)
    answers, rate, gaps = [], rng.random(), rng.choice([0, 0.1, 0.7])
    for (site, cells), places in zip(scatter.shares(), scatter.places(), strict=True):
        last = np.where(rng.random(len(cells)) < rate, rng.integers(-10, 8, len(cells)), NEVER)
        silent, lacks = rng.random(len(cells)) < gaps, int(rng.choice([NEVER, int(rng.integers(-5, 25))]))
        by_place[:, places] = [[site] * len(cells), last, ~silent, [lacks] * len(cells)]
        answers.append((np.where(silent, NEVER + 1, last), 0, lacks))
    # A cell that a key has twice was answered once.
    first = (row[:, :, None] == row[:, None, :]).argmax(axis=2)
    sites, last, alive, missed = (np.take_along_axis(each.reshape(n, k), first, axis=1) for each in by_place)
    names = (sites // parts * 10**6 + row.astype(np.int64)).tolist()
    generations = np.sort(rng.integers(0, 30, n)) - rng.integers(0, kept + 2, n)
    given = {
        "newest": int(rng.choice([NEVER, 5])),
        "kept": kept,
        "least": int(rng.integers(0, k + 1)),
        "equal": int(rng.integers(0, k + 1)),
    }
    known = rng.choice(np.array([-1, 0, 1], np.int8), n, p=[0.8, 0.1, 0.1])
    for earlier in ("nothing", "answered", "new", "all"):
        model = (names, last.tolist(), generations.tolist())
        expected = verdicts(
            *model, earlier=earlier, **given, alive=alive.tolist(), missed=missed.tolist(), known=known.tolist()
        )
        decided = scatter.decide(answers, generations, earlier, **given, known=known)
        assert [each.tolist() for each in decided] == list(expected), earlier
        unknown = [
            scatter.decide(answers, generations, earlier, **given, known=each)[0] for each in (None, known * 0 - 1)
        ]
        assert (unknown[0] == unknown[1]).all()


def test_a_site_that_failed_is_a_duplicate_or_distinct():
    f = bits(capacity=10, k=4, slice_bits=64, seed=1)
    scatter, now = Ranges(f, 4).scatter(lately.hash_keys(["a"], seed=1)), np.array([9])
    assert [len(cells) for _, cells in scatter.shares()] == [1] * 4
    for answered in range(5):
        answers = [(np.array([8]), 0, NEVER)] * answered + [None] * (4 - answered)
        for least in range(5):
            oldest, unsure = scatter.decide(answers, now, "new", newest=9, kept=3, least=least)
            assert (oldest[0] != NEVER) == (answered >= least)
            assert unsure[0] == (answered < 4)
        if answered:  # one empty cell is proof
            answers[0] = (np.array([5]), 0, NEVER)
            assert scatter.decide(answers, now, "new", newest=9, kept=3)[0][0] == NEVER


@pytest.mark.parametrize("name", ROWS)
def test_words_come_back_and_any_are_legal(name):
    f, rng = ROWS[name][0](), np.random.default_rng(5)
    timed = isinstance(f, lately.TimingBloomFilter)
    for part, parts in ((0, 1), (2, 7)):
        s = Slice(f, part=part, parts=parts)
        all_cells = np.arange(s.start, s.stop, dtype=np.uint64)
        put(s, rng.choice(all_cells, 100), 77 if timed else 0)
        copy = Slice.from_words(f, s.words(), newest=s.newest, part=part, parts=parts)
        assert (copy.words() == s.words()).all()
        assert (read(copy, all_cells) == read(s, all_cells)).all()
        assert (copy.newest, copy.fill) == (s.newest, s.fill)
        for hostile in (
            rng.integers(2**64, size=s.nbytes // 8, dtype=np.uint64),
            np.full(s.nbytes // 8, 2**64 - 1, "u8"),
        ):
            for newest in (NEVER + 1, -1, 0, 12345, 2**63 - 1) if timed else (0,):
                wild = Slice.from_words(f, hostile, newest=newest, part=part, parts=parts)
                base = wild.ages(all_cells - np.uint64(s.start))[1]
                assert base == newest
                assert 0 <= wild.fill <= 1
                wild.touch(all_cells[:5] - np.uint64(s.start), newest)
                assert (wild.ages(all_cells[:5] - np.uint64(s.start))[0] == 0).all()
                if timed and newest < 2**63 - 1:
                    wild.touch(all_cells[:0], 2**63 - 1)
                    assert (wild.ages(all_cells[5:] - np.uint64(s.start))[0] != 0).all()


def test_the_cells_of_a_key_are_those_it_sets():
    for make, _ in ROWS.values():
        f = make()
        f.insert(["a"], **({"at": 0} if f.lateness is not None else {}))
        cells = cells_of(f, ["a", "b"])
        s = Slice.from_words(f, words(f), newest=0)
        assert f.parameters["k"] == cells.shape[1]
        set_cells = np.flatnonzero(read(s, np.arange(s.stop, dtype=np.uint64)) == 0)
        assert sorted(set(cells[0].tolist())) == set_cells.tolist()


def test_generations_count_from_the_epoch_and_need_time():
    f = minutes(k=4, bpt=4, blocks=10, slice_timers=400)
    assert retained(f) == 10
    assert generations_of(f, [-0.5, 0, 59.9, 60, 6e9], 5).tolist() == [-1, 0, 0, 1, 10**8]
    assert generations_of(f, np.datetime64("1970-01-01T01:00"), 2).tolist() == [60, 60]
    assert generations_of(f, None, 1)[0] >= 29_000_000
    bloom = bits(capacity=500, k=5, bits=3001)
    assert generations_of(bloom, None, 2).tolist() == [0, 0]
    assert retained(bloom) == 2**62
    counting = timers(100, k=3, bpt=4, blocks=9, slice_timers=500)
    with pytest.raises(ValueError, match="counts insertions"):
        generations_of(counting, None, 3)


F = minutes(k=4, bpt=4, blocks=10, slice_timers=400)


def test_no_keys_and_strange_arrays():
    scatter = Ranges(F, 3).scatter(np.empty(0, np.uint64))
    assert scatter.shares() == scatter.places() == []
    assert [len(each) for each in scatter.decide([], np.empty(0, np.int64), "new", newest=0, kept=3)] == [0, 0]
    s, cells = Slice(F), np.arange(12, dtype=np.uint64)
    s.touch(cells[::3], 6, np.array([6, 4, 2, 0], "u4")[:])  # the cells are not contiguous
    assert read(s, cells)[::3].tolist() == [0, 2, 4, 6]
    assert (np.delete(read(s, cells), [0, 3, 6, 9]) == NEVER).all()
