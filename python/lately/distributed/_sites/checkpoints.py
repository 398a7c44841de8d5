"""The saved form of a site: a checkpoint, and a replay log of later writes, each logged before it is answered.

A log is a sequence of *groups*, each written and synced at once: a head, and frames (`frames.py`), one for each record:
``[method, columns, options, request, heard, answers]``. The first record of a log is the name of the site. Records hold
what was new to the site, so that the same calls in the same order give the same cells. A head is `MAGIC`, the number of
bytes after it, their BLAKE2b sum of 16 bytes, and the sum of the head itself, so that a damaged length is not taken for
a group that was cut off. A checkpoint is a group of one record, which is a list of a mapping.
"""

import json
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from lately.distributed._sites.frames import LENGTHS, decode_frame, encode_frame
from lately.distributed._sites.results import State
from lately.distributed._sites.store import Store

MAGIC = b"lately 1"
_HEAD = struct.Struct("<8sQ16s")
_WHOLE = _HEAD.size + 16
_TAKEN = "another site of this name has started since, and has its checkpoints"


class TakenOverError(RuntimeError):
    """Raised by a run of a site when a later run has started."""


class Checkpoints:
    """The checkpoints of one run of a site: those that it finds, and those that it saves.

    A run that was taken for dead cannot replace them. A run begins by a claim: a few bytes under the site's name. Its
    checkpoints have a name of their own, so that a late write of an earlier run replaces nothing. A run reads the claim
    after it has saved, and before it answers. So either it finds that a later run has started, or the later run finds
    what was saved.

    Attributes
    ----------
    data : bytes or None
        The latest checkpoint of the runs before.
    log : int
        Number of the log that follows the latest checkpoint of this run; 0 before the first.
    incarnation : int
        A number that is the same in consecutive runs if no write was lost that had been answered.
    lost : bool
        Whether such a write may be lost. None is in `whole` runs, which save every answer before it is sent.
    """

    def __init__(self, store: Store, name: str, *, whole: bool) -> None:
        self._store, self._name = store, name
        before = self._claim()
        # Clock readings may be equal for runs that begin at the same time.
        self._run = max(time.time_ns(), before.get("run", 0) + 1)
        self._older: list[int] = [before["run"], *before["older"]] if before else []
        self.lost = not before.get("whole", True)
        self.incarnation: int = before["incarnation"] if before and before["whole"] else self._run
        self._write(whole=whole)
        self.data, self._found = None, 0
        for run in self._older:
            if (data := store.read(self._at(run))) is not None:
                self.data, self._found = data, run
                break
        self.log = 0
        # The files that the next checkpoint makes superfluous.
        self._stale = [self._at(run) for run in self._older]

    def logs(self, first: int) -> Iterator[bytes]:
        """Read the logs that follow the checkpoint of the earlier runs, from number `first` on."""
        # The log before it was not removed if that run ended at the wrong moment.
        self._stale.append(self._log(self._found, first - 1))
        while (data := self._store.read(self._log(self._found, first))) is not None:
            self._stale.append(self._log(self._found, first))
            yield data
            first += 1

    def save(self, data: bytes, log: int) -> None:
        """Replace the checkpoint and the logs before it; log number `log` follows it."""
        self._check()
        self._store.write(self._at(self._run), data)
        self._check()
        stale, self._stale, self._older = self._stale, [self._log(self._run, log)], []
        self.log = log
        for name in stale:
            self._store.remove(name)

    def append(self, data: bytes) -> bool:
        """Append to the log; return False if the store cannot append."""
        self._check()
        done = self._store.append(self._log(self._run, self.log), data)
        self._check()
        return done

    def check_successor(self) -> None:
        """Raise `TakenOverError` if a later run has started; nothing while the store does not answer."""
        with suppress(OSError, ValueError):
            if self._claim().get("run", self._run) != self._run:
                raise TakenOverError(_TAKEN)

    def end(self) -> None:
        """Record that everything that was answered is saved."""
        self._check()
        self._write(whole=True)

    def _at(self, run: int) -> str:
        return f"{self._name}.{run}"

    def _log(self, run: int, number: int) -> str:
        return f"{self._name}.{run}.{number}"

    def _claim(self) -> dict[str, Any]:
        data = self._store.read(self._name)
        if data is None:
            return {}
        try:
            claim: dict[str, Any] = json.loads(data)
            if claim.keys() == {"name", "run", "older", "incarnation", "whole"} and claim["name"] == self._name:
                return claim
        except (ValueError, AttributeError):
            pass
        raise ValueError(f"{self._name} is not the claim of the site of this name: it begins with {data[:40]!r}")

    def _write(self, *, whole: bool) -> None:
        claim = {"name": self._name, "run": self._run, "older": self._older}
        claim |= {"incarnation": self.incarnation, "whole": whole}
        self._store.write(self._name, json.dumps(claim).encode())

    def _check(self) -> None:
        claim = self._claim()
        if not claim:
            # Not written again: if the folder is not mounted at the moment, the checkpoints behind it would be lost.
            raise FileNotFoundError(
                f"{self._name} is missing beside its checkpoints: mount their folder, or restore it, and send again"
            )
        if claim["run"] != self._run:
            raise TakenOverError(_TAKEN)


def saved(*values: Any) -> bytes:
    """Encode values as a record of a checkpoint or of a replay log."""
    return b"".join(encode_frame(values))


def group(records: Sequence[bytes]) -> bytes:
    """Join records to a group with a checksum, which is read whole or not at all."""
    data = b"".join(records)
    head = _HEAD.pack(MAGIC, len(data), _sum(data))
    return head + _sum(head) + data


def pack(state: State) -> bytes:
    """Encode the state of a site as a checkpoint."""
    return group([saved(state)])


def unpack(data: bytes) -> State:
    """Read a checkpoint, and execute nothing in it; raise `ValueError` if it is damaged."""
    if not data.startswith(MAGIC):
        raise ValueError(f"this is no checkpoint of a site: it begins with {data[:16]!r}")
    match list(records(data)):
        case [[dict(state)]] if len(data) == _WHOLE + _HEAD.unpack_from(data)[1]:
            return state
    raise ValueError("the checkpoint is damaged: it is cut off, or more comes after it")


def records(log: bytes) -> Iterator[Any]:
    """Read the records of a log. A group that was cut off while it was written ends the log: it was not answered.

    Other damage raises `ValueError`.
    """
    start = 0
    while start < len(log):
        head = log[start : start + _HEAD.size]
        magic, length, checked = _HEAD.unpack(head) if len(head) == _HEAD.size else (b"", 0, b"")
        good = magic == MAGIC and _sum(head) == log[start + _HEAD.size : start + _WHOLE]
        data = memoryview(log)[start + _WHOLE : start + _WHOLE + length] if good else memoryview(b"")
        if not good or _sum(data) != checked:
            # After a crash a file system may have the full length of a group that was cut off, and zeros in its place.
            torn = start + _WHOLE + length >= len(log) if good else len(log[start:].rstrip(b"\0")) < _WHOLE
            if torn:
                return
            raise ValueError("the log is damaged: there is more behind what cannot be read")
        start += _WHOLE + length
        at = 0
        while at < length:
            if length - at < LENGTHS.size:
                raise ValueError("the log is damaged: a record is cut off within its group")
            head_length, arrays = LENGTHS.unpack_from(data, at)
            at += LENGTHS.size
            yield decode_frame(bytes(data[at : at + head_length]), data[at + head_length : at + head_length + arrays])
            at += head_length + arrays


def _sum(data: bytes | memoryview) -> bytes:
    return blake2b(data, digest_size=16).digest()
