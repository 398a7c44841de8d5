"""A site fails, and returns with or without its cells: no answer is guessed silently."""

import pickle
import threading
import warnings

import numpy as np
import pytest

import lately
from lately.distributed import FailedSitesError, FailedSitesWarning, LocalSites, SlicedFilter
from lately.distributed._sites.interface import Failed
from support.site import unsynced as unsynced
from support.sliced import KINDS, cells_of_keys, every_kind, sites_of_cells, state, timers, wide


class Away(LocalSites):
    """Sites of which one is out of reach, and may act on a message whose answer is lost."""

    away, acts = None, False

    def call(self, messages):
        heard = [m for m in messages if self.acts or m.site != self.away]
        answers = dict(zip(map(id, heard), super().call(heard), strict=True))
        return [Failed(1, "out of reach", 1.0) if m.site == self.away else answers[id(m)] for m in messages]


@every_kind
@pytest.mark.parametrize("acts", [False, True])
def test_nothing_is_guessed_and_the_batch_sent_again_is_exact(shape, acts):
    keys = np.arange(1000)
    with SlicedFilter(**shape, filter=wide(), sites=Away) as sliced, SlicedFilter(**shape, filter=wide()) as healthy:
        for f in (sliced, healthy):
            f.insert(keys[::3], at=0)
        sliced.sites.away, sliced.sites.acts = 1, acts
        batch = np.concatenate([keys, keys[:10]])
        for number in (None, 2, 2):
            with pytest.raises(
                FailedSitesError, match=r"site 1 \(out of reach\): send the same keys .* number=2"
            ) as caught:
                sliced.duplicated(batch, at=1, number=number)
            assert caught.value.number == 2
            again = pickle.loads(pickle.dumps(caught.value))
            assert (again.number, again.failed, str(again)) == (2, caught.value.failed, str(caught.value))
        with pytest.raises(FailedSitesError) as caught:
            sliced.query(keys, at=1)
        assert caught.value.number is None
        sliced.sites.away = None
        expected = healthy.duplicated(batch, at=1)
        assert (sliced.duplicated(batch, at=1, number=2) == expected).all()
        assert state(sliced) == state(healthy)
        assert sliced.failures == 0


@every_kind
def test_guessed_answers_are_marked(shape):
    keys = np.arange(1000)
    with SlicedFilter(**shape, filter=wide(), on_failure="duplicate", sites=Away) as sliced:
        assert not sliced.unanswered.size
        assert not sliced.duplicated(keys[::2], at=0).any()
        assert not sliced.unanswered.any()
        sliced.sites.away = 1
        with pytest.warns(FailedSitesWarning):
            seen = sliced.duplicated(keys, at=1)
        marked = sliced.unanswered
        assert (seen == (keys % 2 == 0))[~marked].all()
        assert 0 < marked.sum() == sliced.failures < len(keys)
        # Of those that have an answer none is forgotten; the others may be new once more, and a sink can keep them.
        sliced.sites.away = None
        assert sliced.query(keys[~marked], at=2).all()
        sliced.query(keys, at=2)
        threading.Thread(target=sliced.query, args=([],)).start()
        assert sliced.unanswered.shape == (1000,)


@every_kind
def test_a_producer_that_leaves_ends_only_the_sites_it_started(shape):
    sliced = SlicedFilter(**shape, filter=timers())
    with sliced.handle() as other:
        other.insert(["a"], at=0)
    with pytest.raises(RuntimeError, match="this filter is closed"):
        other.query(["a"], at=0)
    assert sliced.query(["a"], at=0).all()
    left = sliced.handle()
    sliced.close()
    for closed in (sliced, left):
        for call in (closed.query, closed.insert, closed.duplicated):
            with pytest.raises(RuntimeError, match="is closed"):
                call(["a"], at=0)


@every_kind
def test_a_failed_site_is_reported_once_and_counted(shape):
    with SlicedFilter(**shape, filter=timers(), on_failure="duplicate") as sliced:
        sliced.insert(np.arange(300), at=0)
        sliced.sites.kill(1)
        with pytest.warns(FailedSitesWarning, match=r"site 1 does not answer \(killed\)") as caught:
            assert sliced.query(np.arange(300), at=0).all()
        assert caught[0].filename == __file__
        missed = sliced.failures
        assert 0 < missed <= 300
        assert not sliced.query(np.arange(1000, 1300), at=0).all()
        sliced.insert([1], at=0)
        assert sliced.failures > missed
        assert np.flatnonzero(np.isnan(sliced.fill)).tolist() == [1]
        sliced.sites.restart(1)
        with pytest.warns(FailedSitesWarning, match="site 1 has come back without what it wrote"):
            sliced.query(np.arange(300), at=0)
        assert sliced.restarts == 1
        sliced.sites.kill(1)
        with pytest.warns(FailedSitesWarning):
            sliced.query(np.arange(300), at=0)
        assert sliced.traffic.failures >= 3


@every_kind
def test_distinct_lets_keys_through(shape):
    with SlicedFilter(**shape, filter=timers(), on_failure="distinct") as sliced:
        sliced.insert(np.arange(300), at=0)
        sliced.sites.kill(1)
        with pytest.warns(FailedSitesWarning):
            seen = sliced.query(np.arange(300), at=0)
        assert (~seen).sum() == sliced.failures
        assert seen.any()


@pytest.mark.parametrize("interval", [3600, 0])
def test_a_site_that_lost_everything_is_known_for_it_after_it_was_opened_again(interval, tmp_path):
    made = {**KINDS["v-h"], "filter": wide(), "checkpoint": tmp_path, "name": "seen", "on_failure": "duplicate"}
    keys = np.arange(300)
    with SlicedFilter(**made, interval=3600) as sliced:
        sliced.insert(keys, at=0)
        sliced.sites.kill(1)
    with SlicedFilter(**made, interval=interval) as sliced:
        sliced.sites.kill(1)
        sliced.sites.restart(1)
    with SlicedFilter(**made, interval=interval) as sliced:
        assert sliced.query(keys, at=1).all()


@cells_of_keys
@pytest.mark.parametrize("on_failure", ["duplicate", "distinct"])
@pytest.mark.parametrize("refresh", [True, False])
def test_keys_of_an_outage_are_found_after_the_site_returns(shape, refresh, on_failure, tmp_path):
    """For a window after the last write it missed, the site's unset cells prove nothing; then all is as before."""
    made = {**shape, "filter": wide(), "checkpoint": tmp_path, "interval": 0, "name": "seen"}
    before, meanwhile, after, fresh = np.arange(12_000).reshape(4, 3000)
    with SlicedFilter(**made, on_failure=on_failure) as sliced:
        sliced.insert(before, at=0)
        sliced.sites.kill(1)
        with pytest.warns(FailedSitesWarning):
            sliced.duplicated(meanwhile, at=100, refresh=refresh)
        sliced.sites.restart(1)
        sliced.insert(after, at=200)
        touched = (sites_of_cells(sliced, meanwhile) == 1).any(axis=1)
        # Of 60,000 timers 6,000 keys have set one in ten, from which 1,500 keys deviate by 4 in a hundred at 5 sigma.
        most = 1 - np.exp(-0.1) + 0.04
        for at in (200, 450, 700):
            counted = sliced.failures
            seen = sliced.query(meanwhile, at=at)
            assert touched.sum() * (1 - most) < sliced.failures - counted <= touched.sum()
            assert seen[~touched].all()
            assert seen.all() if on_failure == "duplicate" else seen[touched].mean() < most
            # Nothing is missing of these, wherever their cells are.
            assert sliced.query(after, at=at).all()
            # A fresh key has cells on other sites, where hardly any is set.
            assert sliced.query(fresh, at=at).mean() < 0.01
        if on_failure == "duplicate":
            # Answered as seen, they are inserted again, and their window starts anew.
            assert sliced.duplicated(meanwhile, at=700).all()
            assert sliced.query(meanwhile, at=1300).all()
        else:
            # Taken for new they are inserted, the first of them already for the second.
            twice = np.repeat(meanwhile[touched], 2)
            assert sliced.duplicated(twice, at=700)[1::2].all()
            assert sliced.query(meanwhile[touched], at=1300).all()
        # Another 12 and one blocks of 50 s on, the site has seen all that counts.
        counted = sliced.failures
        assert not sliced.query(fresh, at=1351).any()
        assert sliced.failures == counted


@cells_of_keys
@pytest.mark.parametrize("on_failure", ["raise", "duplicate"])
@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("who", ["same", "other", "fresh"])
def test_after_its_return_on_failure_decides_the_keys_that_a_site_lost(shape, who, saved, on_failure, tmp_path):
    """What came after its last checkpoint, or all, is gone: its keys are new once more, or seen, by `on_failure`."""
    kept = {"checkpoint": tmp_path, "interval": 3600} if saved else {}
    lost, fresh, later = np.arange(9000).reshape(3, 3000)
    with SlicedFilter(**shape, filter=wide(), on_failure=on_failure, **kept) as sliced:
        sliced.insert(lost, at=100)
        other = sliced.handle()
        sliced.sites.kill(1)
        sliced.sites.restart(1)
        if who == "fresh":
            with pytest.warns(FailedSitesWarning):
                sliced.query(lost[:100], at=100)
        connected = SlicedFilter.connect(sliced.sites, on_failure=on_failure)
        client = {"same": sliced, "other": other, "fresh": connected}[who]
        touched = (sites_of_cells(sliced, lost) == 1).any(axis=1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            seen = client.duplicated(lost, at=700)
        # Nothing is decided in silence: what the site would have known is marked, and no other key.
        assert 0 < client.unanswered.sum() == client.failures
        assert seen[~touched].all()
        assert not client.unanswered[~touched].any()
        assert (seen == (True if on_failure == "duplicate" else ~client.unanswered)).all()
        # The cells of some are set at the site, by those before them.
        assert client.unanswered[touched].mean() > 0.8
        assert client.query(lost, at=700).all()
        # A producer that came later does not know what was there, and is right all the same.
        assert [str(w.message)[:22] for w in caught] == ["site 1 has come back w"] * (who != "fresh")
        assert client.restarts == (who != "fresh")
        # Of a fresh key another site knows that it is new.
        counted = client.failures
        assert client.query(fresh, at=700).mean() < 0.01
        assert client.failures - counted < 0.01 * len(fresh)
        client.insert(later, at=750)
        # A window later there is nothing left to doubt.
        counted = client.failures
        assert client.query(later, at=1350).all()
        assert not client.query(fresh, at=1401).any()
        assert client.failures == counted


@every_kind
@pytest.mark.parametrize("on_failure", ["raise", "distinct", "duplicate"])
@pytest.mark.parametrize("refresh", [True, False])
def test_no_key_is_lost_when_every_site_of_a_bloom_filter_rolls_back(shape, on_failure, refresh, tmp_path):
    """There is no window after which a doubt would end; only on_failure="duplicate" prefers a loss to a repeat."""
    saved, lost, *fresh = np.arange(5000).reshape(5, 1000)
    like = lately.BloomFilter(20_000, 1e-9)
    with SlicedFilter(**shape, filter=like, on_failure=on_failure, checkpoint=tmp_path, interval=3600) as sliced:
        sliced.insert(saved)
        for site in sliced.sites._sites:
            site.checkpoint()
        sliced.insert(lost)
        for site in range(len(sliced.sites)):
            sliced.sites.kill(site)
            sliced.sites.restart(site)
        with pytest.warns(FailedSitesWarning, match="has come back without what it wrote"):
            assert sliced.duplicated(saved, refresh=refresh).all()
        assert sliced.restarts == len(sliced.sites)
        doubts = shape["kind"] != "horizontal"
        for keys in (lost, *fresh):
            seen = sliced.duplicated(keys, refresh=refresh)
            assert seen.all() if doubts and on_failure == "duplicate" else not seen.any()
            # Each of them might have been among what was lost.
            assert sliced.unanswered.all() if doubts else not sliced.unanswered.any()
            assert sliced.duplicated(keys, refresh=refresh).all() or (doubts and on_failure == "duplicate")


@every_kind
@pytest.mark.parametrize(("interval", "closed"), [(0, False), (3600, True), (3600, False)])
def test_only_a_site_that_lost_keys_is_reported(shape, interval, closed, tmp_path):
    made = {**shape, "filter": wide(), "checkpoint": tmp_path, "interval": interval, "name": "seen"}
    lost = interval > 0 and not closed
    with SlicedFilter(**made) as sliced:
        sliced.insert(np.arange(100), at=0)
        if closed:
            sliced.sites._sites[1].close()
        sliced.sites.restart(1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            seen = sliced.query(np.arange(100), at=1)
        assert (len(caught), sliced.restarts) == (lost, lost)
        assert seen.all() or lost
        before = state(sliced)
    with SlicedFilter(**made) as sliced:
        assert lost or state(sliced) == before
        assert lost or all(site["restored"] for site in sliced.status())
