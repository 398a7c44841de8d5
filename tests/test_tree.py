import doctest
import itertools
import pickle
import threading
import time
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lately
from lately.distributed._contents.cut import NEVER
from lately.distributed._producer.exchange import FailedSitesWarning
from lately.distributed._sites.interface import Failed
from lately.distributed._sites.local import LocalSites
from lately.distributed._tree.topology import Topology
from lately.distributed._tree.tree import BloomTree

NASA = Path(__file__).parents[1] / "examples" / "nasa-http-1995-08-01.tsv.gz"

# The root, three nodes below it of which one is a leaf, six leaves in all.
SHAPE = [-1, 0, 0, 0, 1, 1, 2, 2, 2]
LEAVES = [3, 4, 5, 6, 7, 8]
KINDS = ["sparse", "dense"]


def timing(window="10min", *, blocks=4, bpt=4, slice_timers=300, k=4):
    return lately.TimingBloomFilter.from_parameters(
        window, k=k, bpt=bpt, blocks=blocks, slice_timers=slice_timers, capacity=500
    )


FILTERS = {
    "bits": lambda: lately.BloomFilter.from_parameters(1000, 4, bits=6_000),
    "bits in slices": lambda: lately.BloomFilter.from_parameters(1000, 4, slice_bits=1_500),
    "few blocks": lambda: timing(blocks=3),
    "many blocks": lambda: timing(blocks=100, bpt=8),
    "a window of a day": lambda: timing("1d", blocks=6, slice_timers=2_000),
}
BITS, TIMED = ["bits", "bits in slices"], ["few blocks", "many blocks", "a window of a day"]


@pytest.fixture(scope="module")
def nasa():
    log = pd.read_csv(NASA, sep="\t", quoting=3, encoding="latin-1", dtype=str)
    leaf = lately.hash_keys(log["host"]) % np.uint64(len(LEAVES))
    return lately.hash_keys(log["url"]), np.array(LEAVES)[leaf.astype(int)], log["time"].astype(np.int64).to_numpy()


def producers(tree):
    return {leaf: tree.at(leaf) for leaf in tree.leaves}


def contents(tree, node):
    return tree._exchange.sites._sites[node]._contents


def root_words(tree):
    """The words of the root, of all its parts."""
    root, nodes, slices = 0, len(tree._layout.topology), tree._layout.root_slices
    if slices == 1:
        return contents(tree, root)._slice.words()
    sites = [root, *range(nodes, nodes + slices - 1)]
    return np.concatenate([contents(tree, site)._slice.words() for site in sites])


def nowhere_younger_than_above(tree):
    """Whether no cell of a node that counts was set later than that of its parent."""
    topology = tree._layout.topology
    nodes = [contents(tree, node)._slice for node in range(len(topology))]
    cells = np.stack([node.read(np.arange(node.stop, dtype=np.uint64)) for node in nodes])
    cells[cells < max(node.newest for node in nodes) - tree._like.kept] = NEVER
    return all((cells[i] <= cells[topology.parents[i]]).all() for i in range(1, len(topology)))


def words(f):
    return np.frombuffer(f.to_bytes(), np.uint8)[-f.nbytes :].copy().view(np.uint64)


def by_leaf(leaves, times, sizes):
    """The rows of each leaf, stretch by stretch, all at the stretch's first moment, so that time does not step back."""
    start = 0
    for size in sizes:
        stretch = leaves[start : start + size]
        for leaf in np.unique(stretch):
            rows = start + np.flatnonzero(stretch == leaf)
            yield rows, leaf, np.full(len(rows), times[start])
        start += size
        if start >= len(leaves):
            return


# -- the verdicts of a single filter


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("slices", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_a_log_gives_the_verdicts_of_a_single_filter(kind, slices, name, nasa):
    keys, leaves, times = (column[:5_000] for column in nasa)
    single, tree = FILTERS[name](), BloomTree(kind, SHAPE, FILTERS[name](), root_slices=slices)
    at = producers(tree)
    sizes = np.random.default_rng(0).choice([1, 2, 7, 50, 400], len(keys))
    seen = []
    for rows, leaf, when in by_leaf(leaves, times, sizes):
        when = None if name in BITS else when
        expected = single.duplicated(keys[rows], at=when, refresh=False)
        np.testing.assert_array_equal(at[leaf].duplicated(keys[rows], at=when), expected, err_msg=f"from {rows[0]}")
        seen += expected.tolist()
    assert 0.1 < np.mean(seen) < 0.9
    if slices == 1:
        assert nowhere_younger_than_above(tree)
    if name in BITS:
        np.testing.assert_array_equal(root_words(tree), words(single))


@pytest.mark.parametrize("name", TIMED)
@pytest.mark.parametrize("slices", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_windows_end_as_in_a_single_filter(kind, slices, name):
    rng = np.random.default_rng(1)
    single, tree = FILTERS[name](), BloomTree(kind, SHAPE, FILTERS[name](), root_slices=slices)
    at = producers(tree)
    window = int(single.window * 1e9)
    block = window // single.parameters["blocks"]
    # Steps of nothing, to a boundary of blocks, over it, about a window, and gaps in which timers go round.
    steps = [0, 0, 1, block - 1, block, block + 1, window - 1, window, window + 1, window + block, 40 * window + 17]
    now = 800_000_000 * 10**9
    for i in range(500):
        now += int(rng.choice(steps, p=[0.3, 0.15, 0.15, *[0.05] * 8]))
        leaf, n = rng.choice(LEAVES), rng.choice([1, 1, 3, 40])
        keys = rng.integers(60, size=n)
        when = np.full(n, now).view("M8[ns]")
        expected = single.duplicated(keys, at=when, refresh=False)
        np.testing.assert_array_equal(at[leaf].query(keys[:1], at=when[:1]), expected[:1])
        np.testing.assert_array_equal(at[leaf].duplicated(keys, at=when), expected, err_msg=f"batch {i}")
        if slices == 1 and i % 50 == 0:
            assert nowhere_younger_than_above(tree)
    if slices == 1:
        # The root has not heard of what was answered below; told the time, it is the single filter.
        root = contents(tree, 0)._slice
        root.set(np.empty(0, np.uint64), int(single.generations(when[-1:], 1)[0]))
        np.testing.assert_array_equal(root.words(), words(single))


@pytest.mark.parametrize("kind", KINDS)
def test_a_leaf_that_heard_of_a_key_late_forgets_it_in_time(kind):
    tree, single = BloomTree(kind, SHAPE, timing(blocks=10)), timing(blocks=10)
    near, far = tree.at(4), tree.at(7)
    # New at 0; the far leaf hears of it at 590 s, and must not keep it for 590 s longer.
    story = [(near, 0), (far, 590), (far, 600), (far, 659), (far, 720)]
    for leaf, when in story:
        expected = single.duplicated(["key"], at=when, refresh=False)
        np.testing.assert_array_equal(leaf.duplicated(["key"], at=when), expected, err_msg=f"at {when} s")
    assert not expected[0]
    assert tree.hits.tolist() == ([3, 0, 0] if kind == "sparse" else [1, 0, 2])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["few blocks", "many blocks"])
def test_no_key_is_missed_within_the_window(kind, name):
    f = FILTERS[name]()
    block = f.window / f.parameters["blocks"]
    for phase in (0.0, block / 2, block - 1e-3):
        for depth in (None, 1, 2):
            tree = BloomTree(kind, SHAPE, FILTERS[name](), top_down=depth)
            at, start = producers(tree), 8e8 + phase
            keys = np.arange(200)
            assert not at[4].duplicated(keys, at=start)[:10].any()
            told = ~tree.at(4).query(keys, at=start)
            assert not told.any()
            # At the last moment, from everywhere, after other leaves were busy.
            at[8].duplicated(np.arange(1_000, 1_050), at=start + f.window / 2)
            for leaf in LEAVES:
                assert at[leaf].query(keys, at=start + f.window).all()


@pytest.mark.parametrize("name", ["bits", "few blocks"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_as_its_keys_one_by_one(kind, name, nasa):
    keys, leaves, times = (column[:1_500] for column in nasa)
    whole, single = (BloomTree(kind, SHAPE, FILTERS[name]()) for _ in range(2))
    at, one = producers(whole), producers(single)
    for rows, leaf, when in by_leaf(leaves, times, itertools.repeat(100)):
        when = None if name == "bits" else when
        expected = [one[leaf].duplicated(keys[[row]], at=None if when is None else when[:1])[0] for row in rows]
        np.testing.assert_array_equal(at[leaf].duplicated(keys[rows], at=when), expected)
    if kind == "dense" and name == "bits":
        np.testing.assert_array_equal(whole.hits, single.hits)
        np.testing.assert_array_equal(whole.accesses, single.accesses)
    assert whole.hits.sum() == single.hits.sum()


def test_the_accesses_are_the_papers():
    # Table 1: in a sparse tree a new key is at each node twice, in a dense one once; a hit goes no further.
    for kind, accesses, hits in (("sparse", [5, 6], [1, 1]), ("dense", [3, 5], [1, 2])):
        tree = BloomTree(kind, [-1, 0, 0], lately.BloomFilter(1000, 1e-6))
        one, other = tree.at(1), tree.at(2)
        for leaf, key in ((one, "a"), (one, "a"), (other, "b"), (other, "a"), (other, "a")):
            leaf.duplicated([key])
        if kind == "sparse":
            accesses, hits = [6, 7], [2, 1]
        assert (tree.accesses.tolist(), tree.hits.tolist()) == (accesses, hits)


# -- top-down testing


@pytest.mark.parametrize("slices", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["bits", "few blocks"])
def test_top_down_has_fewer_false_positives_and_loses_nothing(kind, name, slices):
    rng = np.random.default_rng(2)
    keys = rng.integers(2_000, size=4_000)
    leaves = rng.choice(LEAVES, 4_000)
    times = 8e8 + np.sort(rng.integers(2_400, size=4_000))
    false = []
    for depth in (None, 1, 2):
        make = FILTERS["bits"] if name == "bits" else lambda: timing(blocks=3, slice_timers=600)
        tree = BloomTree(kind, SHAPE, make(), top_down=depth, root_slices=slices)
        at, last, wrong = producers(tree), {}, 0
        for rows, leaf, when in by_leaf(leaves, times, itertools.repeat(100)):
            found = at[leaf].duplicated(keys[rows], at=None if name == "bits" else when)
            for key, moment, seen in zip(keys[rows].tolist(), when.tolist(), found, strict=True):
                since = moment - last.get(key, -np.inf)
                let_through = key in last and (name == "bits" or since <= tree.window)
                assert seen or not let_through, "let through twice"
                # Between the window and its slack both are right.
                wrong += seen and (key not in last if name == "bits" else since > tree.window * 4 / 3)
                if not seen:
                    last[key] = moment
        false.append(wrong)
    # A leaf has a sixth of the keys, an inner node a third or half.
    assert false[0] > 2 * false[1] > 0
    assert false[1] > 2 * false[2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_false_match_on_the_way_does_not_end_the_search(kind):
    # Node 1 matches the key falsely; the true match is at the root, through node 2.
    tree = BloomTree(kind, [-1, 0, 0, 1, 1, 2], lately.BloomFilter.from_parameters(1000, 2, bits=128), top_down=2)
    tree.at(5).duplicated(["key"])
    contents(tree, 1)._slice.set(np.arange(128, dtype=np.uint64), 0)
    assert tree.at(3).duplicated(["key"])[0]
    assert not tree.at(3).duplicated(["another"])[0]


# -- many producers


class Slow(LocalSites):
    """Sites that are so far away that others act between the calls of a producer."""

    def call(self, messages):
        answers = super().call(messages)
        time.sleep(1e-3)
        return answers


@pytest.mark.parametrize("given", [{}, {"root_slices": 3}, {"top_down": 1}, {"top_down": 2, "root_slices": 2}])
@pytest.mark.parametrize("name", ["bits", "few blocks"])
@pytest.mark.parametrize("kind", KINDS)
def test_of_producers_with_the_same_new_keys_one_is_told_so(kind, name, given):
    f = lately.BloomFilter(2_000, 1e-6) if name == "bits" else timing(slice_timers=100_000, k=6)
    tree = BloomTree(kind, SHAPE, f, sites=Slow, **given)
    keys = np.arange(300).reshape(10, 30)
    new = np.zeros((8, 300), dtype=bool)
    barrier = threading.Barrier(8)
    errors = []

    def produce(i):
        try:
            leaf = tree.at(LEAVES[i % 6])
            barrier.wait(60)
            for batch in keys:
                new[i, batch] = ~leaf.duplicated(batch, at=None if name == "bits" else 8e8)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=produce, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors
    np.testing.assert_array_equal(new.sum(axis=0), 1)


class LostError(Exception):
    """A call that never came back."""


class Breaking(LocalSites):
    """Sites whose producer dies at the n-th call, after some of its messages were delivered."""

    def __init__(self, makers):
        super().__init__(makers)
        self.calls, self.dies, self.delivered = 0, None, 0

    def call(self, messages):
        self.calls += 1
        if self.calls - 1 == self.dies:
            super().call(messages[: round(self.delivered * len(messages))])
            raise LostError
        return super().call(messages)


TREES = [{}, {"root_slices": 3}, {"top_down": 1}, {"top_down": 2, "root_slices": 2}]


@pytest.mark.parametrize("delivered", [0, 0.5, 1])
@pytest.mark.parametrize("given", TREES)
@pytest.mark.parametrize("name", ["bits", "few blocks"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("meanwhile", [None, 4, 8])
def test_a_batch_sent_again_loses_no_new_key(kind, name, given, delivered, meanwhile):
    when = None if name == "bits" else 8e8
    for dies in itertools.count():
        f = lately.BloomFilter(1_000, 1e-6) if name == "bits" else timing(slice_timers=100_000, k=6)
        tree = BloomTree(kind, SHAPE, f, sites=Breaking, **given)
        sites = tree._exchange.sites
        leaf = tree.at(4, producer="one")
        tree.at(7).duplicated(np.arange(20), at=when)
        keys = np.concatenate([np.arange(100), np.arange(50)])
        sites.calls, sites.dies, sites.delivered = 0, dies, delivered
        try:
            leaf.duplicated(keys, at=when, number=1)
        except LostError:
            pass
        else:
            break
        new = np.zeros(100, dtype=int)
        if meanwhile is not None:
            new += ~tree.at(meanwhile).duplicated(np.arange(100), at=when)
        for _ in range(2):  # The second time all answers are known.
            again = tree.at(4, producer="one").duplicated(keys, at=when, number=1)
            assert again[100:].all()
            told = (new + ~again[:100])[20:]
            assert (told >= 1).all()
            # Where one site decides, no key comes through twice either.
            assert given or (told == 1).all()
            assert again[:20].all()
    assert dies >= 2


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_number_a_lost_batch_is_told_seen(kind):
    # What the numbers are for: the same, but as a new batch.
    tree = BloomTree(kind, SHAPE, lately.BloomFilter(1_000, 1e-6))
    leaf = tree.at(4)
    leaf.duplicated(np.arange(100))
    assert leaf.duplicated(np.arange(100)).all()
    assert leaf.number == 2


@pytest.mark.parametrize("given", TREES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_sent_again_after_all_sites_crashed(kind, given, tmp_path):
    """Cells and answers come back together: what was written is answered as it was, what was not is new."""
    f = lately.BloomFilter(1_000, 1e-6)
    tree = BloomTree(kind, SHAPE, f, checkpoint=tmp_path, interval=0, name="t", **given)
    sites, leaf = tree._exchange.sites, tree.at(5)
    assert not leaf.duplicated(np.arange(100)).any()
    for site in range(len(sites)):
        sites.kill(site)
        sites.restart(site)
    assert not leaf.duplicated(np.arange(100), number=1).any()
    assert tree.at(5).duplicated(np.arange(100)).all()
    assert tree.at(8).duplicated(np.arange(100)).all()


class Stolen(LocalSites):
    """Sites that lose every first turn before its last message."""

    def __init__(self, makers):
        super().__init__(makers)
        self.steal = True

    def call(self, messages):
        if self.steal and any(message.method == "set" and message.fence for message in messages):
            self.steal = False
            self._fence += 1
            for message in messages:
                self._sites[message.site]._fence = self._fence
        return super().call(messages)


@pytest.mark.parametrize("given", TREES[1:])
@pytest.mark.parametrize("kind", KINDS)
def test_a_turn_that_was_lost_is_had_again(kind, given):
    tree = BloomTree(kind, SHAPE, lately.BloomFilter(1_000, 1e-6), sites=Stolen, **given)
    assert not tree.at(4).duplicated(np.arange(100)).any()
    assert not tree._exchange.sites.steal
    assert tree.at(8).duplicated(np.arange(100)).all()


# -- failures


@pytest.mark.parametrize("node", [1, 4])
@pytest.mark.parametrize("name", ["bits", "few blocks"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_node_that_fails_is_passed_by(kind, name, node, nasa):
    keys, leaves, times = (column[:3_000] for column in nasa)
    tree, single = BloomTree(kind, SHAPE, FILTERS[name]()), FILTERS[name]()
    at = producers(tree)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i, (rows, leaf, when) in enumerate(by_leaf(leaves, times, itertools.repeat(100))):
            if i == 30:
                tree._exchange.sites.kill(node)
            if i == 60:
                tree._exchange.sites.restart(node)
            when = None if name == "bits" else when
            expected = single.duplicated(keys[rows], at=when, refresh=False)
            np.testing.assert_array_equal(at[leaf].duplicated(keys[rows], at=when), expected)
    said = [str(warning.message).partition(" (")[0] for warning in caught]
    # If nobody has asked it since, nobody knows that it began anew.
    came_back = f"site {node} has come back without what it wrote since its last checkpoint"
    assert said in ([f"site {node} does not answer"], [f"site {node} does not answer", came_back])
    assert tree.failures == 0
    assert tree.traffic.failures > 0


@pytest.mark.parametrize("slices", [1, 3])
@pytest.mark.parametrize("verdict", ["duplicate", "distinct"])
@pytest.mark.parametrize("kind", KINDS)
def test_without_the_root_on_failure_decides(kind, verdict, slices):
    tree = BloomTree(kind, SHAPE, timing(slice_timers=100_000), on_failure=verdict, root_slices=slices)
    leaf, sites = tree.at(4), tree._exchange.sites
    leaf.duplicated(np.arange(50), at=0)
    for site in [0, *range(9, len(sites))]:
        sites.kill(site)
    with pytest.warns(FailedSitesWarning, match="does not answer"):
        seen = leaf.duplicated(np.arange(150), at=1)
    assert seen[:50].all()
    assert (seen[50:] == (verdict == "duplicate")).all()
    assert tree.failures == 100
    assert tree.at(8).query([1], at=1)[0] == (verdict == "duplicate")
    # What was let through is known where it was; what was held back comes through when the root is there again.
    for site in [0, *range(9, len(sites))]:
        sites.restart(site)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FailedSitesWarning)
        seen = leaf.duplicated(np.arange(50, 150), at=2)
    assert (seen == (verdict == "distinct")).all()


def test_a_sliced_root_that_has_lost_a_part_still_knows_what_is_new():
    for verdict in ("duplicate", "distinct"):
        tree = BloomTree("sparse", SHAPE, lately.BloomFilter(1000, 1e-6), on_failure=verdict, root_slices=4)
        tree.at(4).duplicated(np.arange(500))
        tree._exchange.sites.kill(9)
        with pytest.warns(FailedSitesWarning):
            seen = tree.at(8).duplicated(np.arange(1_000))
        if verdict == "duplicate":
            # A new key is taken for seen only if all its cells that are left are set.
            assert seen[:500].all()
            assert seen[500:].mean() < 0.1
        else:
            assert not seen[500:].any()
            assert seen[:500].mean() < 0.1
        assert tree.failures > 0


@pytest.mark.parametrize("kind", KINDS)
def test_top_down_without_some_nodes_loses_nothing(kind):
    for down in (0, 1, 2, 4, 7):
        tree = BloomTree(kind, SHAPE, lately.BloomFilter(1000, 1e-6), top_down=2, on_failure="duplicate")
        for leaf in (4, 7):
            tree.at(leaf).duplicated(np.arange(leaf * 100, leaf * 100 + 50))
        tree._exchange.sites.kill(down)
        for leaf in LEAVES:
            keys = np.r_[400:450, 700:750]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FailedSitesWarning)
                assert tree.at(leaf).query(keys).all()
                assert tree.at(leaf).duplicated(keys).all()


def test_a_checkpoint_of_another_filter_is_refused(tmp_path):
    f = lately.BloomFilter(1000, 0.01)
    with BloomTree("dense", SHAPE, f, checkpoint=tmp_path, name="t") as tree:
        tree.at(3).duplicated(["a"])
    with BloomTree("sparse", SHAPE, f, checkpoint=tmp_path, name="t") as tree:
        assert tree.at(8).query(["a"])[0]
        assert all(status["restored"] for status in tree.status()[:1])
    with pytest.raises(ValueError, match="another filter: seed is 0 there and 1 here"):
        BloomTree("dense", SHAPE, lately.BloomFilter(1000, 0.01, seed=1), checkpoint=tmp_path, name="t")


# -- what cannot be


@pytest.mark.parametrize(
    ("parents", "error", "message"),
    [
        ([], TypeError, "numbers"),
        ([0.5, -1], TypeError, "numbers"),
        ("abc", TypeError, "numbers"),
        ([True, False], TypeError, "numbers"),
        ([[-1]], TypeError, "numbers"),
        ([0], ValueError, "found none"),
        ([-1, -1, 0], ValueError, "found 0, 1"),
        ([-1, 2], ValueError, "parent of node 1 is 2, of 2"),
        ([-1, -2], ValueError, "parent of node 1 is -2"),
        ([-1, 2, 1], ValueError, "node 1 run in a cycle"),
        ({"a": None, "b": "c", "c": "b"}, ValueError, "'b' run in a cycle"),
        ({"a": None, "b": "z"}, ValueError, "'b' is 'z'"),
        ({"a": "b", "b": "a"}, ValueError, "found none"),
        ({"a": None, "b": None}, ValueError, "found 'a', 'b'"),
        ({None: None}, ValueError, "named None"),
        ({}, ValueError, "found none"),
    ],
)
def test_what_is_no_tree_is_refused(parents, error, message):
    with pytest.raises(error, match=message):
        Topology.of(parents)


def test_a_tree_of_one_node_is_a_filter():
    for kind in KINDS:
        tree = BloomTree(kind, [-1], lately.BloomFilter(1000, 0.01))
        assert tree.leaves == [0]
        assert tree.at(0).duplicated(["a", "b", "a"]).tolist() == [False, False, True]


F = lately.BloomFilter(1000, 0.01)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: BloomTree("thick", SHAPE, F), ValueError, "'thick'"),
        (lambda: BloomTree("dense", SHAPE, F, on_failure="maybe"), ValueError, "'maybe'"),
        (lambda: BloomTree("dense", SHAPE, F, top_down=0), ValueError, "from 1 to 2, got 0"),
        (lambda: BloomTree("dense", SHAPE, F, top_down=3), ValueError, "from 1 to 2, got 3"),
        (lambda: BloomTree("dense", SHAPE, F, root_slices=0), ValueError, "root_slices"),
        (lambda: BloomTree("dense", SHAPE, F, root_slices=100_000), ValueError, "parts"),
        (lambda: BloomTree("dense", SHAPE, "filter"), TypeError, "got str"),
        (lambda: BloomTree("dense", SHAPE, lately.Swamp(100, 0.01)), TypeError, "got Swamp"),
        (lambda: BloomTree("dense", SHAPE, lately.TimingBloomFilter(100, 0.01)), ValueError, "100 insertions"),
        (
            lambda: BloomTree("dense", SHAPE, lately.TimingBloomFilter("1h", 0.01, capacity=9, grow="density")),
            ValueError,
            "grow",
        ),
        (
            lambda: BloomTree(
                "dense",
                SHAPE,
                lately.TimingBloomFilter.from_parameters(
                    "1h", k=4, bpt=4, blocks=2, slice_timers=99, equal_timers=2, capacity=9
                ),
            ),
            ValueError,
            "equal timers",
        ),
        (lambda: BloomTree("dense", SHAPE, F, sites="moon"), ValueError, "'moon'"),
        (lambda: BloomTree("dense", SHAPE, F).at(1), ValueError, "no leaf"),
        (lambda: BloomTree("dense", SHAPE, F).at(99), KeyError, "99"),
        (lambda: BloomTree("dense", SHAPE, F).at(4).duplicated(["a"], at=5), ValueError, "no window"),
        (lambda: BloomTree("dense", SHAPE, F).at(4).duplicated(["a"], number=0), ValueError, "at least 1"),
        (lambda: BloomTree("dense", SHAPE, F).at(4, producer="p").duplicated(["a"]), TypeError, "needs its number"),
        (lambda: BloomTree("dense", SHAPE, F).at(4).duplicated([object()]), TypeError, "object"),
        (lambda: BloomTree("dense", SHAPE, timing()).at(4).duplicated(["a"], at=[1, 2]), ValueError, "2 times for 1"),
        (lambda: BloomTree("dense", SHAPE, timing()).at(4).duplicated(["a", "b"], at=[2, 1]), ValueError, "lateness"),
    ],
)
def test_what_cannot_be_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_an_error_comes_before_any_effect():
    tree = BloomTree("dense", SHAPE, timing())
    leaf = tree.at(4)
    leaf.duplicated(["a"], at=100)
    with pytest.raises(ValueError, match="lateness"):
        leaf.duplicated(["b", "c"], at=[101, 99])
    assert (leaf.number, tree.accesses.sum()) == (1, 6)
    assert not leaf.query(["b"], at=100)[0]


def test_a_batch_sent_again_is_not_late_for_itself():
    leaf = BloomTree("dense", SHAPE, timing()).at(4)
    leaf.duplicated(["a"], at=100)
    for number in (2, 2):
        assert not leaf.duplicated(["b", "c"], at=[101, 900], number=number).any()
    with pytest.raises(ValueError, match="lateness"):
        leaf.duplicated(["d"], at=899)


def test_late_keys_keep_their_own_time():
    f = lately.TimingBloomFilter("10min", 1e-4, capacity=1000, lateness="5min")
    for kind in KINDS:
        tree = BloomTree(kind, SHAPE, f)
        tree.at(4).duplicated(["early"], at=1_000)
        # Late, but of this moment: seen by whoever comes within a window of it.
        assert not tree.at(4).duplicated(["late"], at=800)[0]
        assert tree.at(8).duplicated(["late", "early"], at=1_400).all()
        assert nowhere_younger_than_above(tree)


def test_no_keys():
    tree = BloomTree("sparse", SHAPE, F, top_down=1)
    assert tree.at(4).duplicated([]).shape == (0,)
    assert tree.at(4).query([]).shape == (0,)


def test_sites_of_this_process_stay_here():
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(BloomTree("dense", SHAPE, F).at(4))


@pytest.mark.parametrize("module", ["topology", "tree"])
def test_examples(module):
    module = import_module(f"lately.distributed._tree.{module}")
    assert doctest.testmod(module, extraglobs={"lately": lately}).failed == 0


def test_what_a_tree_tells():
    tree = BloomTree("dense", {"world": None, "eu": "world", "us": "world"}, F)
    assert tree.leaves == ["eu", "us"]
    assert tree.nbytes == 3 * F.nbytes
    assert (tree.fpr, tree.window) == (F.fpr, None)
    assert "BloomTree dense nodes=3 levels=2" in repr(tree)
    assert "Leaf 'eu'" in repr(tree.at("eu"))
    assert not any(isinstance(status, Failed) for status in tree.status())
