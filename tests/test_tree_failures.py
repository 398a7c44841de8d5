"""Trees with a node that fails, or that is restored from another filter's checkpoint."""

import itertools
import warnings

import numpy as np
import pytest

import lately
from lately.distributed._producer.exchange import FailedSitesError, FailedSitesWarning
from lately.distributed._sites.interface import Failed
from lately.distributed._sites.local import LocalSites
from lately.distributed._tree.tree import BloomTree
from support.bloom_trees import FILTERS, KINDS, LEAVES, SHAPE, by_leaf, nasa, producers, timing


@pytest.mark.parametrize("node", [1, 4])
@pytest.mark.parametrize("name", ["bits", "few blocks"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_node_that_fails_is_passed_by(kind, name, node):
    keys, leaves, times = (column[:3_000] for column in nasa())
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
    warned = [str(warning.message).partition(" (")[0] for warning in caught]
    # Without a query since, its restart is not known.
    came_back = f"site {node} has come back without what it wrote since its last checkpoint"
    assert warned in ([f"site {node} does not answer"], [f"site {node} does not answer", came_back])
    assert tree.failures == 0
    assert tree.traffic.failures > 0


@pytest.mark.parametrize("verdict", ["duplicate", "distinct"])
@pytest.mark.parametrize("kind", KINDS)
def test_without_the_root_on_failure_decides(kind, verdict):
    tree = BloomTree(kind, SHAPE, timing(slice_timers=100_000), on_failure=verdict)
    leaf, sites = tree.at(4), tree._exchange.sites
    leaf.duplicated(np.arange(50), at=0)
    sites.kill(0)
    with pytest.warns(FailedSitesWarning, match="does not answer"):
        seen = leaf.duplicated(np.arange(150), at=1)
    assert seen[:50].all()
    assert (seen[50:] == (verdict == "duplicate")).all()
    assert tree.failures == 100
    assert tree.at(8).query([1], at=1)[0] == (verdict == "duplicate")
    # What was let through is known where it was; what was held back comes through when the root is there again.
    sites.restart(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FailedSitesWarning)
        seen = leaf.duplicated(np.arange(50, 150), at=2)
    assert (seen == (verdict == "distinct")).all()


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


@pytest.mark.parametrize("down", [None, 1])
@pytest.mark.parametrize("name", ["bits", "few blocks"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_key_is_lost_when_messages_and_answers_are_and_the_batch_is_sent_again(kind, name, down):
    rng = np.random.default_rng(5)

    class Lossy(LocalSites):
        def call(self, messages):
            lost = rng.random((2, len(messages))) < 0.25
            answers = iter(super().call([each for each, gone in zip(messages, lost[0], strict=True) if not gone]))
            answers = [Failed(each.site, "lost", 0) if lost[0, i] else next(answers) for i, each in enumerate(messages)]
            return [Failed(m.site, "lost", 0) if lost[1, i] else answers[i] for i, m in enumerate(messages)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FailedSitesWarning)
        tree = BloomTree(kind, SHAPE, FILTERS[name](), top_down=down, sites=Lossy)
        pending, passed = {}, set()
        for _ in range(25):
            # Two producers at one leaf, and one each at leaves near and far, with the same keys at once.
            batch = rng.integers(150, size=5)
            pending |= {tree.at(leaf): (batch, None) for leaf in (4, 4, 5, 8)}
            while pending:
                leaf = list(pending)[rng.integers(len(pending))]
                keys, number = pending.pop(leaf)
                try:
                    seen = leaf.duplicated(keys, at=None if name == "bits" else 0, number=number)
                except FailedSitesError as error:
                    pending[leaf] = keys, error.number
                else:
                    passed.update(keys[~seen].tolist())
            assert passed.issuperset(batch.tolist())


def test_a_checkpoint_of_another_filter_is_rejected(tmp_path):
    f = lately.BloomFilter(1000, 0.01)
    with BloomTree("dense", SHAPE, f, checkpoint=tmp_path, name="t") as tree:
        tree.at(3).duplicated(["a"])
    with BloomTree("sparse", SHAPE, f, checkpoint=tmp_path, name="t") as tree:
        assert tree.at(8).query(["a"])[0]
        assert all(status["restored"] for status in tree.status()[:1])
    with pytest.raises(ValueError, match="another filter: seed is 0 there and 1 here"):
        BloomTree("dense", SHAPE, lately.BloomFilter(1000, 0.01, seed=1), checkpoint=tmp_path, name="t")
