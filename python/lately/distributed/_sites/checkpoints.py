"""The checkpoints of one run of a site, which a run that was taken for dead cannot replace."""

import json
import time
from collections.abc import Iterator
from typing import Any

from lately.distributed._sites.store import Store


class TakenOverError(RuntimeError):
    """A later run of the site has started."""


class Checkpoints:
    """The checkpoints of a run: what it finds, and what it saves.

    A run begins by a claim: a few bytes under the site's name. Its checkpoints have a name of their own, so that a
    write of an earlier run that comes late replaces nothing. A run reads the claim after it has saved, and before it
    answers. So either it finds that a later run has started, or that one finds what was saved.

    Attributes
    ----------
    data : bytes or None
        The latest checkpoint of the runs before.
    log : int
        Number of the log that follows the latest checkpoint of this run; 0 before the first.
    incarnation : int
        The same in runs between which nothing was lost that had been answered.
    lost : bool
        Whether something may have been. It cannot if each run is `whole`: it saves every answer before it is sent.
    """

    def __init__(self, store: Store, name: str, *, whole: bool) -> None:
        self._store, self._name = store, name
        before = self._claim()
        # Numbers of the clock differ for runs that begin at the same time.
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
        # What the next checkpoint makes superfluous.
        self._stale = [self._at(run) for run in self._older]

    def logs(self, first: int) -> Iterator[bytes]:
        """Read the logs that follow the checkpoint of the runs before; its own is the `first`."""
        # One before it was not removed, if that run ended at the wrong moment.
        self._stale.append(self._log(self._found, first - 1))
        while (data := self._store.read(self._log(self._found, first))) is not None:
            self._stale.append(self._log(self._found, first))
            yield data
            first += 1

    def save(self, data: bytes, log: int) -> None:
        """Replace the checkpoint, and what was logged before it; log number `log` follows it."""
        self._check()
        self._store.write(self._at(self._run), data)
        self._check()
        stale, self._stale, self._older = self._stale, [self._log(self._run, log)], []
        self.log = log
        for name in stale:
            self._store.remove(name)

    def append(self, data: bytes) -> bool:
        """Append to the log; return False where the store has none."""
        self._check()
        done = self._store.append(self._log(self._run, self.log), data)
        self._check()
        return done

    def end(self) -> None:
        """Note that all is saved that was answered."""
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
            if claim.keys() == {"run", "older", "incarnation", "whole"}:
                return claim
        except (ValueError, AttributeError):
            pass
        raise ValueError(f"{self._name} is no site's, or one's of an earlier version: it begins with {data[:16]!r}")

    def _write(self, *, whole: bool) -> None:
        claim = {"run": self._run, "older": self._older, "incarnation": self.incarnation, "whole": whole}
        self._store.write(self._name, json.dumps(claim).encode())

    def _check(self) -> None:
        claim = self._claim()
        if not claim:
            # Not written again: behind a folder that is not mounted at the moment the checkpoints would be lost.
            raise FileNotFoundError(
                f"{self._name} is missing beside its checkpoints: mount their folder, or restore it, and send again"
            )
        if claim["run"] != self._run:
            raise TakenOverError("another site of this name has started since, and has its checkpoints")
