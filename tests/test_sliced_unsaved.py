"""A folder of checkpoints that is full, slow, read-only or gone: what the producer sees, and what is safe to retry."""

import errno
import threading
import warnings

import numpy as np
import pytest

import lately
from lately.distributed import CheckpointError, SlicedFilter
from lately.distributed._sites.store import Folder
from support.site import unsynced as unsynced
from support.sliced import KINDS, wide

# What a site does with a folder depends on what it holds: whole filters, or cells of keys.
every_kind = pytest.mark.parametrize("shape", [KINDS["horizontal"], KINDS["v-h"]], ids=["horizontal", "v-h"])

KEYS = np.arange(500)
FAILURES = {
    "full": OSError(errno.ENOSPC, "No space left on device"),
    "read-only": OSError(errno.EROFS, "Read-only file system"),
    "broken": OSError(errno.EIO, "Input/output error"),
}


def fails(monkeypatch, error, *, torn=False):
    """Let every write to a folder fail; `torn` appends have written a part before."""
    append = Folder.append

    def refuse(self, name, data):
        raise error

    def cut_off(self, name, data):
        append(self, name, data[: len(data) // 2])
        raise error

    monkeypatch.setattr(Folder, "write", refuse)
    monkeypatch.setattr(Folder, "append", cut_off if torn else refuse)


def sliced(shape, folder, interval=0.0):
    made = {"filter": wide(), "checkpoint": folder, "interval": interval, "producer": "p"}
    return SlicedFilter(**shape, **made)


def crashed(made):
    """Restart all sites as after a crash."""
    for site in range(len(made.sites)):
        made.sites.restart(site)


@every_kind
@pytest.mark.parametrize(
    ("why", "torn", "crash"),
    [("full", True, True), ("read-only", False, True), ("broken", True, False)],
)
def test_a_batch_that_could_not_be_saved_is_an_error_and_is_new_once_when_it_is_sent_again(
    shape, why, torn, crash, tmp_path, monkeypatch
):
    error = FAILURES[why]
    with sliced(shape, tmp_path) as f:
        assert not f.duplicated(KEYS, number=1, at=0).any()
        with monkeypatch.context() as full:
            fails(full, error, torn=torn)
            for _ in range(2):
                with pytest.raises(CheckpointError, match=error.strerror) as caught:
                    f.duplicated(KEYS + 1000, number=2, at=1)
                assert "send it again with number=2" in "".join(caught.value.__notes__)
            # Nothing is forgotten meanwhile, and questions are answered.
            assert f.query(KEYS, at=1).all()
        if crash:
            crashed(f)
        # There is room again, and then all sites crash.
        assert not f.duplicated(KEYS + 1000, number=2, at=1).any()
        crashed(f)
        assert not f.duplicated(KEYS + 1000, number=2, at=1).any()
        assert f.query(np.concatenate([KEYS, KEYS + 1000]), at=1).all()
        assert f.restarts == 0


@every_kind
def test_a_folder_that_vanishes_is_named_and_nothing_is_written_in_its_place(shape, tmp_path):
    folder, away = tmp_path / "mounted", tmp_path / "away"
    f = sliced(shape, folder)
    assert not f.duplicated(KEYS, number=1, at=0).any()
    folder.rename(away)
    for empty in (False, True):
        if empty:
            # Where it was mounted there is an empty folder.
            folder.mkdir()
        with pytest.raises(CheckpointError, match="is missing beside its checkpoints: mount their folder"):
            f.duplicated(KEYS + 1000, number=2, at=1)
        assert f.query(KEYS, at=1).all()
    assert not list(folder.iterdir())
    # A site that restarts now must not begin empty.
    f.sites.kill(0)
    with pytest.raises(CheckpointError, match=r"finds no sites.json in .*mounted: mount the folder, or restore it"):
        f.sites.restart(0)
    folder.rmdir()
    away.rename(folder)
    f.sites.restart(0)
    assert not f.duplicated(KEYS + 1000, number=2, at=1).any()
    assert f.query(np.concatenate([KEYS, KEYS + 1000]), at=1).all()
    f.close()


def test_a_slow_folder_delays_answers_and_neither_questions_nor_other_sites(tmp_path, monkeypatch):
    free, append = threading.Event(), Folder.append

    def slow(self, name, data):
        if "site-0" in name:
            assert free.wait(60)
        return append(self, name, data)

    with SlicedFilter("horizontal", 2, lately.BloomFilter(10_000, 1e-9), checkpoint=tmp_path, interval=0) as f:
        f.insert(KEYS)
        monkeypatch.setattr(Folder, "append", slow)
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(f.duplicated(KEYS + 1000)))
        waiting.start()
        assert f.handle().query(KEYS).all()
        assert not answers
        free.set()
        waiting.join(60)
        assert not answers[0].any()


def test_a_read_only_folder_at_the_start_is_the_error_of_the_constructor(tmp_path, monkeypatch):
    fails(monkeypatch, FAILURES["read-only"])
    with warnings.catch_warnings(), pytest.raises(OSError, match="Read-only file system"):
        SlicedFilter("horizontal", 2, lately.BloomFilter(10_000, 1e-9), checkpoint=tmp_path)
