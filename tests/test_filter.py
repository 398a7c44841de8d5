"""`lately.Filter`: the family that it chooses, `seen`, and the methods of sets."""

import gzip
import inspect
import io
import json
import threading
from pathlib import Path

import numpy as np
import pytest

import lately
from lately._families import EVERY, FAMILIES
from support.exact import repeats
from support.plans import bound
from support.threads import together

ROOT = Path(__file__).parents[1]
KEYS = np.arange(3000)


BY_TIME = {"window": "10min", "fpr": 0.001, "capacity": 5000, "lateness": "9s"}
REQUESTS = [
    # request, family by default and its slack over the window, family for speed
    ({"window": 10_000, "fpr": 0.001}, "aged-cuckoo", 1 / 64, "aged-cuckoo"),
    ({"window": 10_000, "fpr": 0.01}, "aged-cuckoo", 1 / 64, "age-partitioned-line"),
    ({"window": 10_000, "nbytes": 40_000}, "aged-cuckoo", 1 / 64, "aged-cuckoo"),
    (BY_TIME, "aged-cuckoo", 1 / 64 + 9 / 600, "aged-cuckoo"),
    ({"window": "10min", "fpr": 0.01}, "aged-cuckoo", 1 / 64, "aged-cuckoo"),
    ({"window": "10min", "nbytes": 20_000, "capacity": 5000}, "aged-cuckoo", 1 / 64, "aged-cuckoo"),
    ({"window": "10min", "fpr": 1e-9, "capacity": 5000}, "aged-cuckoo", 1 / 64, "aged-cuckoo"),
    ({"window": 10_000, "fpr": 1e-12}, "swamp", 0, "age-partitioned-512"),
    ({"window": 20, "fpr": 0.001}, "aged-cuckoo", 0, "aged-cuckoo"),
    ({"window": 10_000, "fpr": 0.001, "slack": 0}, "swamp", 0, "swamp"),
    ({"window": 10_000, "fpr": 0.001, "distinct": 1000}, "aged-cuckoo", 1 / 64, "aged-cuckoo"),
]


@pytest.mark.parametrize(("given", "family", "slack", "for_speed"), REQUESTS)
def test_a_filter_has_little_slack_unless_the_caller_prefers_speed(given, family, slack, for_speed):
    f, again = lately.Filter(**given), lately.Filter(**given)
    assert (f.family, lately.Filter(**given, prefer="speed").family) == (family, for_speed)
    assert f.slack <= slack * (f.window if isinstance(f.window, int) else 600)
    assert type(f) is EVERY[family].kind
    assert (f.parameters, f == again) == (again.parameters, True)
    if "fpr" in given:
        assert f.fpr <= given["fpr"]
    else:
        assert f.nbytes <= given["nbytes"]


GRID = [
    pytest.param({"window": window, "fpr": fpr} | more, marks=() if fpr in quick else pytest.mark.campaign)
    for window, quick in ((5, [0.05]), (100, [1e-9]), (10_000, [0.05]), (1_000_000, [1e-9]), ("10min", [0.05, 1e-9]))
    for fpr in (0.3, 0.05, 1e-3, 1e-6, 1e-9, 1e-12)
    for more in ([{}] if isinstance(window, int) else [{}, {"capacity": 10}, {"capacity": 100_000}])
]


@pytest.mark.parametrize("given", [*(given for given, *_ in REQUESTS if "distinct" not in given), *GRID])
def test_the_plan_takes_what_a_filter_is(given):
    # Each request with one preference: the rule is the core's.
    prefer = [None, "speed", "memory"][len(str(given)) % 3]
    try:
        f = lately.Filter(**given, prefer=prefer)
    except ValueError:
        with pytest.raises(ValueError, match=r"window|fpr|family"):
            lately.plan(**given, prefer=prefer)
        return
    plan = lately.plan(**given, prefer=prefer)
    assert plan.best in plan.choices
    assert (plan.best.name, plan.best.nbytes, plan.best.slack) == (f.family, f.nbytes, f.slack)
    assert f.explain().splitlines()[0] == f"{type(f).__name__}, {plan.best.name}"
    assert plan.build() == f


def test_exact_is_preferred_in_the_words_of_a_filter():
    f = lately.Filter(1e3, prefer="exact", seed=b"k" * 16)
    assert (type(f), f.window, f.seed) == (lately.ExactFilter, 1000, None)
    timed = lately.Filter("10min", prefer="exact", lateness="5s", max_ahead=None)
    assert (timed.window, timed.lateness, timed.max_ahead) == (600.0, 5.0, None)
    assert [timed.seen("a", at=at) for at in (0, 600, 1200.1)] == [False, True, False]


def test_an_exact_filter_is_not_planned():
    with pytest.raises(ValueError, match="'exact', which leaves nothing to plan"):
        lately.plan(10, 0.1, prefer="exact")


@pytest.mark.parametrize(("fpr", "at_most"), [(1e-3, 3_416_064 // 10), (1e-6, 7_266_304 // 10)])
def test_the_default_drops_hardly_a_record_of_a_real_stream_that_it_need_not(fpr, at_most):
    """Clicks on a few thousand pages. Lines drop several times as many in more bytes."""
    clicks = gzip.decompress((ROOT / "examples" / "usagov-clicks-2013.jsonl.gz").read_bytes()).splitlines()
    keys = np.array([hash(json.loads(line)["u"]) for line in clicks])
    window = 10_000
    old = ~np.array(repeats(keys.tolist(), window))
    f = lately.Filter(window, fpr)
    dropped = f.duplicated(keys)
    assert dropped[~old].all(), "no repeat of the window comes through"
    assert dropped[old].mean() < fpr + 0.002
    fast = lately.AgePartitionedBloomFilter(window, fpr)
    assert fast.duplicated(keys)[old].mean() > fpr + 0.002, "the stream separates the two"
    assert f.nbytes * 100_000 // window < at_most
    stated = lately.plan(window, fpr, sample=keys).best.dropped_in_slack
    assert dropped[old].mean() <= stated + bound(old.sum(), fpr) / old.sum()


def test_a_class_of_a_users_own_takes_the_chosen_engine():
    class Mine(lately.Filter):
        def twice(self, key):
            return self.seen(key) or self.seen(key)

    f = Mine("10min", 0.001, capacity=100)
    assert (type(f), f.family, f.twice("a")) == (Mine, "aged-cuckoo", True)
    assert type(f.copy()) is Mine


@pytest.mark.parametrize(
    ("kind", "given", "family"),
    [
        (lately.AgePartitionedBloomFilter, {}, "age-partitioned-line"),
        (lately.AgePartitionedBloomFilter, {"fpr": 1e-12}, "age-partitioned-512"),
        (lately.AgePartitionedBloomFilter, {"fpr": None, "nbytes": 3000}, "age-partitioned-512"),
        (lately.TimingBloomFilter, {}, "timing"),
        (lately.TimingBloomFilter, {"window": "1h", "capacity": 900, "grow": "density"}, "timing-growing"),
        (lately.GuardedEpochBloomFilter, {}, "guarded-epoch-transposed"),
    ],
)
def test_the_default_layout_is_the_best_that_meets_the_request(kind, given, family):
    assert kind(**{"window": 1000, "fpr": 0.001} | given).family == family


def everyone():
    """A filter of every family, of 1000 keys."""
    return list(_everyone())


def _everyone():
    for name, family in FAMILIES.items():
        window = 1000 if family.windows in ("any", "insertions") else "1h"
        more = {"capacity": 1000} if family.windows == "time" else {}
        yield pytest.param(family.make(window, fpr=1e-5, **more), id=name)
    yield pytest.param(lately.Filter("1h", 1e-5, capacity=1000), id="by time")
    yield pytest.param(lately.BloomFilter(1000, 1e-5), id="bloom")
    yield pytest.param(lately.ExactFilter(1000), id="exact")
    yield pytest.param(lately.ExactFilter("1h"), id="exact by time")


@pytest.mark.parametrize("refresh", [True, False, "delivered"])
def test_seen_refreshes_as_duplicated(refresh):
    f = lately.Filter("10s", 1e-6, capacity=100, slack="2s")
    times = [1e9, 1e9 + 6, 1e9 + 12, 1e9 + 18, 1e9 + 24]
    expected = [False, True, True, True, True] if refresh is True else [False, True, False, True, False]
    assert f.copy().duplicated(["a"] * 5, at=times, refresh=refresh).tolist() == expected
    assert [f.seen("a", at=at, refresh=refresh) for at in times] == expected


def test_seen_rejects_what_add_rejects_and_inserts_nothing():
    f = lately.Filter("1h", 0.001, capacity=10)
    f.add("a", at=1_000_000_000)
    for key, at, kind in (
        (2j, None, TypeError),
        ("b", 1, ValueError),
        ("b", "noon", ValueError),
        ("b", 9e9, ValueError),
    ):
        with pytest.raises(kind):
            f.seen(key, at=at)
    assert f.inserted == 1


@pytest.mark.parametrize("f", [lately.Filter("1h", 0.001), lately.ExactFilter("1h")])
def test_update_is_insert(f):
    f.update(["a", "b"], at=1_000_000_000)
    assert f.query(["a", "b", "c"]).tolist() == [True, True, False]
    for name in ("insert", "update"):
        with pytest.raises(TypeError, match="keys must be"):
            getattr(f, name)("abc")


@pytest.mark.parametrize("f", everyone())
def test_a_cleared_filter_is_as_new(f):
    f.clear()
    new = f.copy()
    f.insert(KEYS[:900], **({} if isinstance(f.window, int | None) else {"at": 1_500_000_000}))
    assert f != new
    f.clear()
    assert (f == new, f.to_bytes()) == (True, new.to_bytes())
    assert (f.inserted, f.latest, f.window) == (0, None, new.window)
    assert isinstance(f, lately.ExactFilter) or f.parameters == new.parameters
    assert not f.query(KEYS).any()
    f.insert(KEYS[:5])
    assert f.query(KEYS[:5]).all()


def test_clear_keeps_what_a_user_chose():
    f = lately.Filter("1h", 0.001, capacity=10, max_ahead=None, lateness="5s", seed=b"k" * 16)
    f.insert(["a"], at=9e9)
    f.clear()
    f.insert(["a"], at=8e9)
    assert (f.max_ahead, f.lateness, f.seed) == (None, 5.0, None)
    far = lately.Filter("1h", 0.001, capacity=10)
    far.add("a", at=1e9)
    far.clear()
    far.add("a", at=1)
    with pytest.raises(ValueError, match="ahead of the system's clock"):
        far.add("b", at=5e9)


def test_clear_under_threads_loses_no_lock():
    f = lately.Filter(1000, 0.001)
    cleared = threading.Event()

    def work():
        while not cleared.is_set():
            f.insert(KEYS)
            f.seen("a")

    def clear():
        for _ in range(200):
            f.clear()
        cleared.set()

    together(work, work, work, clear)
    f.clear()
    assert f == lately.Filter(1000, 0.001)


def pair(**more):
    return [lately.Filter("1h", 0.001, capacity=5000, **more) for _ in range(2)]


def test_a_union_holds_the_keys_of_both():
    a, b = pair()
    a.insert(["a"], at=1_000_000_000)
    b.insert(["b"], at=1_000_000_100)
    both = a | b
    assert both == a.union(b)
    assert type(both) is type(a)
    assert both.query(["a", "b", "c"]).tolist() == [True, True, False]
    assert a.query(["a", "b"]).tolist() == [True, False], "left as it was"
    same = a
    a |= b
    assert a is same
    assert a == both
    a |= a
    assert a.query(["a", "b", "c"]).tolist() == [True, True, False]


def test_filters_that_cannot_be_merged_are_rejected_and_unchanged():
    a, b = pair()
    a.insert(["a"], at=1_000_000_000)
    before = a.to_bytes()
    for other, words in ((pair(seed=1)[0], "seed is 0 here and 1"), (lately.Swamp(5, 0.1), "family is aged-cuckoo")):
        with pytest.raises(ValueError, match=words):
            a | other
        with pytest.raises(ValueError, match=words):
            a |= other
    for other in ({"a"}, None, "a"):
        with pytest.raises(TypeError, match="unsupported operand"):
            a | other
        with pytest.raises(TypeError, match="unsupported operand"):
            a |= other
    assert a.to_bytes() == before
    assert b.inserted == 0


def test_two_threads_that_merge_two_filters_each_way_do_not_deadlock():
    a, b = pair()

    def unite(ours, theirs):
        for _ in range(300):
            ours |= theirs

    threads = [threading.Thread(target=unite, args=both) for both in ((a, b), (b, a))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_filters_that_would_be_saved_alike_are_equal():
    a, b = pair()
    assert a == b
    assert (a != b) is False
    a.add("a", at=1_000_000_000)
    assert a != b
    b.add("a", at=1_000_000_000)
    assert a == b
    assert a == a.copy() == lately.from_bytes(a.to_bytes())
    b.add("a", at=1_000_000_001)
    assert a != b, "the times differ"
    new = pair()[0]
    for other in (
        *pair(seed=1),
        *pair(lateness="1s"),
        *pair(max_ahead=None),
        lately.Filter("2h", 0.001, capacity=5000),
    ):
        assert new != other
    assert lately.Filter(100, 0.1, seed=b"k" * 16) == lately.Filter(100, 0.1, seed=b"k" * 16)
    assert lately.Filter(100, 0.1, seed="random") != lately.Filter(100, 0.1, seed="random")
    assert lately.BloomFilter(100, 0.1) != lately.Swamp(100, 0.1)
    exact = [lately.ExactFilter(9, seed=seed) for seed in (1, 1, 2)]
    assert exact[0] == exact[1] != exact[2]
    exact[0].add("a")
    assert exact[0] != exact[1]
    for other in (None, 5, "a", {"a"}):
        assert a != other
        assert exact[0] != other


@pytest.mark.parametrize("f", [lately.Filter(100, 0.1), lately.ExactFilter(100)])
def test_a_filter_changes_and_so_has_no_hash(f):
    with pytest.raises(TypeError, match="hashable"):
        hash(f)


def test_baselines_are_in_a_module_of_their_own():
    f = lately.baselines.CountingBloomFilter(100, 0.1)
    assert type(f).__module__ == "lately.baselines"
    assert type(lately.from_bytes(f.to_bytes())) is lately.baselines.CountingBloomFilter
    assert not {"StableBloomFilter", "CountingBloomFilter"} & {*lately.__all__, *dir(lately)}


def test_no_public_name_hides_a_name_of_python():
    import builtins

    names: dict[str, object] = {}
    exec("from lately import *", names)
    assert not (set(names) & set(dir(builtins))) - {"__builtins__"}
    assert "Filter" in names
    assert lately.open(io.BytesIO(lately.Filter(5, 0.1).to_bytes())).window == 5


def test_signatures_are_those_of_the_source():
    """Annotations that are evaluated show what NumPy's aliases consist of, a line of it for each."""
    modules = [lately, lately.baselines, lately.plot, lately.priors, lately.distributed]
    shown = 0
    for thing in (getattr(module, name) for module in modules for name in module.__all__):
        members = [thing, *vars(thing).values()] if inspect.isclass(thing) else [thing]
        for member in members:
            call = getattr(member, "fget", getattr(member, "__func__", member))
            try:
                signature = str(inspect.signature(call))
            except (TypeError, ValueError):
                continue
            assert "numpy." not in signature, f"{thing}: {signature}"
            shown += 1
    assert shown > 100
