"""Parameters of no tree, calls that a tree cannot answer, and the errors that they raise."""

import pytest

import lately
from lately.distributed._tree.topology import Topology
from lately.distributed._tree.tree import BloomTree
from support.bloom_trees import KINDS, SHAPE, F, timing


@pytest.mark.parametrize(
    ("parents", "error", "message"),
    [
        ([], ValueError, "found none"),
        ([0.5, -1], ValueError, "parent of node 0 is 0.5"),
        ("abc", ValueError, "parent of node 0 is 'a'"),
        ([[-1]], TypeError, "unhashable"),
        (7, TypeError, "not iterable"),
        ([0], ValueError, "found none"),
        ([-1, -1, 0], ValueError, "found 0, 1"),
        ([-1, 2], ValueError, "parent of node 1 is 2, which is no node"),
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
def test_parameters_of_no_tree_are_rejected(parents, error, message):
    with pytest.raises(error, match=message):
        Topology.of(parents)


def test_a_tree_of_one_node_is_a_filter():
    for kind in KINDS:
        tree = BloomTree(kind, [-1], lately.BloomFilter(1000, 0.01))
        assert tree.leaves == [0]
        assert tree.at(0).duplicated(["a", "b", "a"]).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: BloomTree("thick", SHAPE, F), ValueError, "'thick'"),
        (lambda: BloomTree("dense", SHAPE, F, on_failure="maybe"), ValueError, "'maybe'"),
        (lambda: BloomTree("dense", SHAPE, F, top_down=0), ValueError, "from 1 to 2, got 0"),
        (lambda: BloomTree("dense", SHAPE, F, top_down=3), ValueError, "from 1 to 2, got 3"),
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
def test_impossible_arguments_are_named(call, error, message):
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
