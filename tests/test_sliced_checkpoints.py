"""Whose checkpoints and whose sites: a sliced filter finds its own, and no other's."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lately
from lately.distributed import LocalSites, SlicedFilter
from lately.distributed._contents.whole_filter import WholeFilter
from lately.distributed._sites.site import Site
from support.site import unsynced as unsynced
from support.sliced import KINDS, timers

TESTS = Path(__file__).parent


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        ({"kind": "vertical"}, "kind is 'horizontal' there and 'vertical' here"),
        ({"slices": 2}, "slices is 4 there and 2 here"),
        ({"filter": timers(equal_timers=2)}, "equal_timers is 1 there and 2 here"),
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


def test_a_second_filter_on_the_same_checkpoints_is_refused_by_name_and_the_first_goes_on(tmp_path):
    made = {"kind": "horizontal", "slices": 2, "filter": timers(), "checkpoint": tmp_path, "interval": 0}
    second = "import lately; from lately.distributed import SlicedFilter; from support.sliced import timers; "
    second += f"SlicedFilter('horizontal', 2, timers(), checkpoint={str(tmp_path)!r}, interval=0)"
    with SlicedFilter(**made) as first:
        first.insert(np.arange(100), at=0)
        with pytest.raises(ValueError, match=r"has the sites named 'site' in .*: connect to its sites, close it, or"):
            SlicedFilter(**made)
        other = subprocess.run([sys.executable, "-c", second], capture_output=True, text=True, cwd=TESTS, timeout=60)
        assert "has the sites named 'site' in" in other.stderr
        first.sites.restart(1)
        assert first.duplicated(np.arange(100), at=0).all()
    # It is closed: another one may have them.
    with SlicedFilter(**made) as third:
        assert third.query(np.arange(100), at=0).all()


def test_checkpoints_of_a_process_that_was_killed_are_free(tmp_path):
    first = "import os; from lately.distributed import SlicedFilter; from support.sliced import timers; "
    first += f"f = SlicedFilter('vertical', 2, timers(), checkpoint={str(tmp_path)!r}, interval=0); "
    first += "f.insert(range(100), at=0); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", first], cwd=TESTS, timeout=60).returncode == -9
    with SlicedFilter("vertical", 2, timers(), checkpoint=tmp_path, interval=0) as second:
        assert second.query(np.arange(100), at=0).all()


def test_a_folder_is_not_opened_under_another_name(tmp_path):
    made = {"kind": "horizontal", "slices": 2, "filter": timers(), "checkpoint": tmp_path}
    with SlicedFilter(**made, name="clicks") as sliced:
        sliced.insert(["a"], at=0)
    with pytest.raises(ValueError, match="another filter: name is 'clicks' there and 'views' here"):
        SlicedFilter(**made, name="views")
    with SlicedFilter(**made, name="clicks") as sliced:
        assert sliced.query(["a"], at=0).all()


@pytest.mark.parametrize("which", ["all", "claim", "checkpoint", "log"])
@pytest.mark.parametrize("kind", ["horizontal", "vertical"])
def test_files_that_were_swapped_by_name_are_refused(kind, which, tmp_path):
    made = {"kind": kind, "slices": 2, "filter": timers(), "checkpoint": tmp_path, "interval": 0}
    f = SlicedFilter(**made)
    for number in range(3):
        f.insert(np.arange(100) + 100 * number, at=0)
    for site in (0, 1):
        f.sites.kill(site)
    dots = {"claim": 0, "checkpoint": 1, "log": 2}
    mine, theirs = ({path.name.count("."): path for path in tmp_path.glob(f"site-{site}-*")} for site in (0, 1))

    def swap():
        """Each takes the place of the other, under the name that the other has there."""
        for count in dots.values() if which == "all" else [dots[which]]:
            data = mine[count].read_bytes()
            mine[count].write_bytes(theirs[count].read_bytes())
            theirs[count].write_bytes(data)

    swap()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"its file was renamed|is not the claim of the site of this name"):
            SlicedFilter(**made)
    swap()
    # They are free, though the error is still there.
    with SlicedFilter(**made) as again:
        assert again.query(np.arange(300), at=0).all()


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
    with pytest.raises(ValueError, match=r"the sites have .*'protocol': 1.* this process has .*'protocol': 7"):
        SlicedFilter.connect(sites)
