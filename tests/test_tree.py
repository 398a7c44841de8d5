"""Trees give the verdicts of a single filter, in as many accesses as in the paper, also with `top_down`."""

import doctest
import itertools
from importlib import import_module

import numpy as np
import pytest

import lately
from lately.distributed._sites.interface import Failed
from lately.distributed._tree.tree import BloomTree
from support.bloom_trees import (
    BITS,
    FILTERS,
    KINDS,
    LEAVES,
    SHAPE,
    TIMED,
    F,
    by_leaf,
    contents,
    nasa,
    nowhere_younger_than_above,
    producers,
    timing,
    words,
)
from support.sliced import generations_of


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_gives_a_log_the_answers_of_a_single_filter(kind, name):
    keys, leaves, times = (column[:5_000] for column in nasa())
    single, tree = FILTERS[name](), BloomTree(kind, SHAPE, FILTERS[name]())
    at = producers(tree)
    sizes = np.random.default_rng(0).choice([1, 2, 7, 50, 400], len(keys))
    seen = []
    for rows, leaf, when in by_leaf(leaves, times, sizes):
        when = None if name in BITS else when
        expected = single.duplicated(keys[rows], at=when, refresh=False)
        np.testing.assert_array_equal(at[leaf].duplicated(keys[rows], at=when), expected, err_msg=f"from {rows[0]}")
        seen += expected.tolist()
    assert 0.1 < np.mean(seen) < 0.9
    # A repeat is a hit at one node, in a batch as alone.
    assert tree.hits.sum() == np.sum(seen)
    assert nowhere_younger_than_above(tree)
    if name in BITS:
        np.testing.assert_array_equal(contents(tree, 0)._slice.words(), words(single))


@pytest.mark.parametrize("name", TIMED)
@pytest.mark.parametrize("kind", KINDS)
def test_windows_end_as_in_a_single_filter(kind, name):
    rng = np.random.default_rng(1)
    single, tree = FILTERS[name](), BloomTree(kind, SHAPE, FILTERS[name]())
    at = producers(tree)
    window = int(single.window * 1e9)
    block = window // single.parameters["blocks"]
    # Steps of nothing, to a boundary of blocks, over it, about a window, and gaps in which timers go round.
    steps = [0, 0, 1, block - 1, block, block + 1, window - 1, window, window + 1, window + block, 40 * window + 17]
    now = 800_000_000 * 10**9
    for i in range(250):
        now += int(rng.choice(steps, p=[0.3, 0.15, 0.15, *[0.05] * 8]))
        leaf, n = rng.choice(LEAVES), rng.choice([1, 1, 3, 40])
        keys = rng.integers(60, size=n)
        when = np.full(n, now).view("M8[ns]")
        expected = single.duplicated(keys, at=when, refresh=False)
        np.testing.assert_array_equal(at[leaf].query(keys[:1], at=when[:1]), expected[:1])
        np.testing.assert_array_equal(at[leaf].duplicated(keys, at=when), expected, err_msg=f"batch {i}")
        if i % 25 == 0:
            assert nowhere_younger_than_above(tree)
    # The root has no record of what was answered below; with the time it is the single filter.
    root = contents(tree, 0)._slice
    root.touch(np.empty(0, np.uint64), int(generations_of(single, when[-1:], 1)[0]))
    np.testing.assert_array_equal(root.words(), words(single))


@pytest.mark.parametrize("kind", KINDS)
def test_a_leaf_that_got_a_key_late_forgets_it_in_time(kind):
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
            answered = ~tree.at(4).query(keys, at=start)
            assert not answered.any()
            # At the last moment, from everywhere, after other leaves were busy.
            at[8].duplicated(np.arange(1_000, 1_050), at=start + f.window / 2)
            for leaf in LEAVES:
                assert at[leaf].query(keys, at=start + f.window).all()


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["bits", "few blocks"])
def test_top_down_has_fewer_false_positives_and_loses_nothing(kind, name):
    rng = np.random.default_rng(2)
    keys = rng.integers(2_000, size=4_000)
    leaves = rng.choice(LEAVES, 4_000)
    times = 8e8 + np.sort(rng.integers(2_400, size=4_000))
    false = []
    for depth in (None, 1, 2):
        make = FILTERS["bits"] if name == "bits" else lambda: timing(blocks=3, slice_timers=600)
        tree = BloomTree(kind, SHAPE, make(), top_down=depth)
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
    tree = BloomTree(
        kind, [-1, 0, 0, 1, 1, 2], lately.BloomFilter.from_parameters(capacity=1000, k=2, bits=128), top_down=2
    )
    tree.at(5).duplicated(["key"])
    contents(tree, 1)._slice.touch(np.arange(128, dtype=np.uint64), 0)
    assert tree.at(3).duplicated(["key"])[0]
    assert not tree.at(3).duplicated(["another"])[0]


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
        # Late, but of this moment: seen for a window from then on.
        assert not tree.at(4).duplicated(["late"], at=800)[0]
        assert tree.at(8).duplicated(["late", "early"], at=1_400).all()
        assert nowhere_younger_than_above(tree)


def test_no_keys():
    tree = BloomTree("sparse", SHAPE, F, top_down=1)
    assert tree.at(4).duplicated([]).shape == (0,)
    assert tree.at(4).query([]).shape == (0,)


@pytest.mark.parametrize("module", ["topology", "tree"])
def test_examples(module):
    module = import_module(f"lately.distributed._tree.{module}")
    assert doctest.testmod(module, extraglobs={"lately": lately}).failed == 0


def test_a_tree_reports_accesses_hits_and_failures():
    tree = BloomTree("dense", {"world": None, "eu": "world", "us": "world"}, F)
    assert tree.leaves == ["eu", "us"]
    assert tree.nbytes == 3 * F.nbytes
    assert (tree.fpr, tree.window) == (F.fpr, None)
    assert "BloomTree dense nodes=3 levels=2" in repr(tree)
    assert "Leaf 'eu'" in repr(tree.at("eu"))
    assert not any(isinstance(status, Failed) for status in tree.status())


def test_a_tree_of_one_node_is_a_filter():
    for kind in KINDS:
        tree = BloomTree(kind, [-1], lately.BloomFilter(1000, 0.01))
        assert tree.leaves == [0]
        assert tree.at(0).duplicated(["a", "b", "a"]).tolist() == [False, False, True]


def test_an_error_comes_before_any_effect():
    tree = BloomTree("dense", SHAPE, timing())
    leaf = tree.at(4)
    leaf.duplicated(["a"], at=100)
    with pytest.raises(ValueError, match="lateness"):
        leaf.duplicated(["b", "c"], at=[101, 99])
    assert (leaf.number, tree.accesses.sum()) == (1, 6)
    assert not leaf.query(["b"], at=100)[0]
