"""Whose checkpoints and whose sites: a sliced filter finds its own, and no other's."""

import numpy as np
import pytest

import lately
from lately.distributed import LocalSites, SlicedFilter
from lately.distributed._contents.whole_filter import WholeFilter
from lately.distributed._sites.errors import CheckpointError
from lately.distributed._sites.site import Site
from support.site import unsynced as unsynced
from support.sliced import KINDS, every_kind, state, timers


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        ({"kind": "vertical"}, "kind is 'horizontal' there and 'vertical' here"),
        ({"slices": 2}, "slices is 4 there and 2 here"),
        ({"filter": timers(seed=4)}, "seed is 3 there and 4 here"),
        ({"filter": timers(capacity=501)}, "capacity is 500 there and 501 here"),
        ({"filter": timers(lateness="1s")}, "lateness is 0 there and 1000000000 here"),
        (
            {"filter": lately.BloomFilter(100, 0.1, seed=3)},
            "family is 'TimingBloomFilter' there and 'BloomFilter' here",
        ),
    ],
)
def test_another_filter_is_rejected_by_checkpoints_and_by_sites(other, differs, tmp_path):
    here = {"kind": "horizontal", "slices": 4, "filter": timers(), "checkpoint": tmp_path}
    with SlicedFilter(**here) as sliced:
        sliced.insert(["a"], at=0)
    with pytest.raises(ValueError, match=f"another filter: .*{differs}"):
        SlicedFilter(**here | other)
    with SlicedFilter(**here) as sliced:
        assert sliced.query(["a"], at=0).all()
        del here["checkpoint"]
        with pytest.raises(ValueError, match=f"another filter: .*{differs}|but 4 were given"):
            SlicedFilter(**here | other, sites=lambda makers: sliced.sites)


def test_two_filters_cannot_write_the_same_checkpoints(tmp_path):
    """The second takes them over; the first takes no keys any more, and replaces nothing that the second has."""
    made = {"kind": "horizontal", "slices": 2, "filter": timers(), "checkpoint": tmp_path}
    first = SlicedFilter(**made, interval=0)
    first.insert(np.arange(100), at=0)
    second = SlicedFilter(**made, interval=0)
    second.insert(np.arange(100, 200), at=0)
    with pytest.raises(CheckpointError, match="another site of this name has started since"):
        first.insert(np.arange(200, 300), at=0)
    with pytest.raises(CheckpointError, match="another site of this name has started since"):
        first.close()
    second.insert(np.arange(300, 400), at=0)
    second.close()
    with SlicedFilter(**made) as third:
        seen = third.query(np.arange(400), at=0).reshape(4, 100).all(axis=1)
        assert seen[[0, 1, 3]].all()
    assert sorted(path.name.count(".") for path in tmp_path.iterdir()) == [0, 0, 1, 1, 1]


def test_sites_say_what_filter_they_hold():
    for shape in KINDS.values():
        with SlicedFilter(**shape, filter=timers(lateness="9s")) as sliced, SlicedFilter.connect(sliced.sites) as found:
            assert repr(found) == repr(sliced)
            assert (found.lateness, found.seed) == (9, 3)
            found.insert(np.arange(100), at=0)
            assert sliced.query(np.arange(100), at=0).all()
    with (
        lately.distributed.BloomTree("dense", [-1, 0], timers()) as tree,
        pytest.raises(ValueError, match="hold no sliced filter"),
    ):
        SlicedFilter.connect(tree._exchange.sites)
    sites = LocalSites(
        [lambda: Site(WholeFilter(timers()), name="0", manifest='{"format": "lately sites", "protocol": 1}')]
    )
    with pytest.raises(ValueError, match=r"the sites have .*'protocol': 1.* this process has .*'protocol': 6"):
        SlicedFilter.connect(sites)


@every_kind
def test_sites_start_again_from_checkpoints(shape, tmp_path):
    made = {**shape, "filter": timers(), "checkpoint": tmp_path, "interval": 0, "name": "seen"}
    with SlicedFilter(**made) as sliced:
        sliced.insert(np.arange(300), at=0)
        sliced.sites.kill(2)
        sliced.sites.restart(2)
        assert sliced.query(np.arange(300), at=0).all()
        before = state(sliced)
    with SlicedFilter(**made) as sliced:
        assert state(sliced) == before
        assert all(site["restored"] for site in sliced.status())
    with pytest.raises(ValueError, match="another filter: equal_timers is 1 there and 2 here"):
        SlicedFilter(**{**made, "filter": timers(equal_timers=2)})
