"""Sites: hold cells, answer messages, and save cells and answers."""

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from lately.distributed._sites.checkpoints import Checkpoints, group, pack, records, saved, unpack
from lately.distributed._sites.errors import CheckpointError, SupersededError
from lately.distributed._sites.interface import Message, Record
from lately.distributed._sites.results import UNKNOWN, RequestId, ResultCache, State
from lately.distributed._sites.store import Hold, Store

# A log is replaced by a checkpoint when it has both this many bytes and as many as the checkpoint.
LOG = 2**22


class Contents(Protocol):
    """The contents of a site: a filter, or part of one.

    Messages call its methods by name, with options and with arrays of one row per key. Methods in `writes` answer each
    key with a bool, or a message as a whole (`RequestId.index`); the other methods may answer anything.
    """

    writes: frozenset[str]

    @property
    def nbytes(self) -> int:
        """Bytes of the cells."""

    def fill(self) -> float:
        """Share of the cells that are set."""

    def state(self) -> State:
        """Return the cells and everything else to save, as arrays."""

    def load(self, state: State) -> None:
        """Load what `state` returned; raise `ValueError` if it does not fit."""

    def lost(self) -> None:
        """Take account of latest writes that may be missing."""
        return

    def overfull(self) -> str | None:
        """Return a warning if there are more keys than planned. The call is cheap."""
        return None

    def repeatable(self, columns: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...] | None:
        """Return columns by which the call can be repeated later with the same effect, or None if none can."""
        return columns


class Site:
    """A site with `contents`, whose checkpoints have the name `name`.

    `manifest` describes the filter of the site: a checkpoint of another filter is rejected. `store` is the place of the
    checkpoints, and an existing one is loaded; without a store nothing survives. `interval` is the greatest number of
    seconds from a change to its checkpoint. With 0 every answer is saved before it is sent. `incarnation` stays the
    same as long as no answered write is lost, even if the site is made again.

    Cells and answers are saved together, in one piece: a checkpoint has a key exactly if it has the answer that was
    given when the key was written. So a batch that comes again, because its producer did not get the answer, gets it.

    While checkpoints cannot be written, no keys are accepted, because a crash would lose them silently. The same holds
    if another site has started from these checkpoints. `hold` is released when the site is closed.
    """

    def __init__(
        self,
        contents: Contents,
        *,
        name: str,
        manifest: str = "",
        store: Store | None = None,
        interval: float = 30,
        hold: Hold | None = None,
    ) -> None:
        self._contents, self._name, self._manifest, self._interval = contents, name, manifest, interval
        self._results, self._hold = ResultCache(), hold
        # The number of the latest orderer, and the record of the batch that it last wrote here first.
        self._fence, self._record = 0, None
        # `_saving` is taken before `_lock`, so that no checkpoint is replaced by an earlier one.
        self._lock, self._saving = threading.Lock(), threading.Lock()
        self._ended = threading.Event()
        self._keeper: threading.Thread | None = None
        self._keys, self._checkpoints, self._saved, self._restored = 0, 0, 0.0, False
        self._changed = False
        self._failure: Exception | None = None
        # What is written but not yet saved: its number, and its records, unless only a checkpoint can hold it.
        self._written = self._safe = 0
        self._records: list[bytes] | None = None
        self._log_bytes = self._log_most = 0
        self._kept = None if store is None else Checkpoints(store, name, whole=interval == 0)
        self.incarnation = time.time_ns() if self._kept is None else self._kept.incarnation
        if self._kept is not None and self._kept.data is not None:
            try:
                state = unpack(self._kept.data)
                if (of := state["name"]) != name:
                    raise ValueError(f"the checkpoint is that of {of}: its file was renamed")
                if (of := state["manifest"]) != manifest:
                    raise ValueError(f"the checkpoint holds another filter, or another part of it: {of}")
                contents.load(state["contents"])
                self._results = ResultCache.from_state(state["results"])
                self._fence, self._record = state["order"]
                for log in self._kept.logs(state["log"]):
                    whole = records(log)
                    if (of := next(whole, [name])) != [name]:
                        raise ValueError(f"the log is that of {of}: its file was renamed")
                    for each in whole:
                        self._repeat(*each)
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                # A checkpoint may hold any JSON, even if its checksums are right.
                raise ValueError(f"{name} cannot be restored: {error}") from error
            self._restored = True
        if self._kept is not None:
            self._kept.data = None
            if self._kept.lost:
                contents.lost()
                # The next run finds that only in a checkpoint.
                self._changed = True
                if interval == 0:
                    self.checkpoint()
        if store is not None and interval > 0:
            self._keeper = threading.Thread(target=self._keep, name=f"checkpoints of {name}", daemon=True)
            self._keeper.start()

    @property
    def overfull(self) -> str | None:
        """Warning of more keys than planned, or None."""
        return self._contents.overfull()

    def record_restart(self) -> None:
        """Record that this site has crashed before. Without a store, all of its cells are lost."""
        if self._kept is None:
            self._contents.lost()

    def receive(self, message: Message) -> Any:
        """Do what a message requests; see `call`."""
        given: dict[str, Any] = {"request": message.request, "fence": message.fence, "record": message.record}
        return self.call(message.method, message.columns, message.options, **given)

    def call(
        self,
        method: str,
        columns: tuple[NDArray[Any], ...],
        options: Mapping[str, Any],
        *,
        request: RequestId | None = None,
        fence: int = 0,
        record: Record | None = None,
    ) -> Any:
        """Call a method of the contents, as a message requests; columns have one row per key.

        What is written under a request is written once. A method that only reads adds the known answers of this batch
        to its own (`ResultCache.known`). `fence` is the number of an orderer: messages of earlier ones are rejected
        then. The method "order" announces it, and returns the number before, and the latest `record` of a batch.

        Raises
        ------
        SupersededError
            If a later orderer has started.
        ValueError, ForgottenError, TooManyProducersError
            If the request's batch was another one, or is forgotten; or if another producer would make the site forget
            one.
        CheckpointError
            If the method writes, and checkpoints cannot be written.
        RuntimeError
            If the site is closed.
        """
        writes = method in self._contents.writes or method == "order"
        if not writes and self._interval == 0 and self._kept is not None:
            self._kept.check_successor()
        if writes and self._failure is not None:
            if self._interval > 0:
                raise CheckpointError(f"{self._name} cannot be saved: {self._failure}")
            self.checkpoint()
        with self._lock:
            if self._ended.is_set():
                raise RuntimeError(f"{self._name} is closed")
            before = self._fence, self._record
            if method != "order" and 0 < fence < self._fence:
                raise SupersededError(f"orderer {fence} of {self._name} was replaced by {self._fence}")
            if writes and (fence > self._fence or record is not None):
                self._note_order(fence, record)
            if method == "order":
                answer: Any = before
            elif not writes:
                answer = getattr(self._contents, method)(*columns, **options)
                if request is None:
                    return answer
                whole, results = request.index is None, self._results
                known = results.share(request) is not None if whole else results.known(request, *columns[:1])
                return (*answer, known) if isinstance(answer, tuple) else (answer, known)
            else:
                answer = self._once(request, method, columns, options)
            mine = self._written
        if self._interval == 0:
            self._commit(mine)
        return answer

    def _commit(self, mine: int) -> None:
        """Save what was written up to number `mine`, and with it what others have written meanwhile."""
        if self._kept is None:
            return
        with self._saving:
            if mine <= self._safe:
                return
            with self._lock:
                unsaved, self._records, number = self._records, [], self._written
            data = b"" if unsaved is None else group([saved(self._name)] * (self._log_bytes == 0) + unsaved)
            try:
                logged = unsaved is not None and self._log_bytes < self._log_most and self._kept.append(data)
            except Exception as error:
                # The end of the log is unknown: a checkpoint comes next.
                self._records = None
                self._failed(error)
            if not logged:
                self._save()
                return
            self._log_bytes += len(data)
            self._safe = number

    def checkpoint(self) -> None:
        """Save cells and answers, if they have changed and there is a store; raise `CheckpointError` if that fails."""
        if self._kept is None:
            return
        with self._saving:
            if self._changed:
                self._save()

    def _save(self) -> None:
        assert self._kept is not None
        log = self._kept.log + 1
        with self._lock:
            self._changed, self._records, number = False, [], self._written
            state: State = {"name": self._name, "manifest": self._manifest, "log": log}
            state["order"] = self._fence, self._record
            state |= {"contents": self._contents.state(), "results": self._results.state()}
        try:
            data = pack(state)
            self._kept.save(data, log)
        except Exception as error:
            self._changed, self._records = True, None
            self._failed(error)
        self._failure = None
        self._checkpoints += 1
        self._saved = time.time()
        self._safe = number
        self._log_bytes, self._log_most = 0, max(LOG, len(data))

    def _failed(self, error: Exception) -> NoReturn:
        self._failure = error
        raise CheckpointError(f"{self._name} cannot be saved: {error}") from error

    def status(self) -> dict[str, Any]:
        """Report the state of the site.

        `keys` is the number of keys, or cells, written since the site was made, and `producers` that of producers whose
        latest batch it remembers. `checkpoints` is the number of those written since then, the last at `saved`, in
        seconds since 1970. `changed` is whether something is unsaved, and `failure` why no checkpoint can be written.
        """
        with self._lock:
            return {
                "name": self._name,
                "manifest": self._manifest,
                "incarnation": self.incarnation,
                "nbytes": self._contents.nbytes,
                "keys": self._keys,
                "overfull": self._contents.overfull(),
                "producers": len(self._results),
                "restored": self._restored,
                "checkpoints": self._checkpoints,
                "saved": self._saved,
                "changed": self._written > self._safe,
                "failure": None if self._failure is None else str(self._failure),
                "process": os.getpid(),
                "host": socket.gethostname(),
            }

    def close(self, *, save: bool = True) -> None:
        """End the site: write the last checkpoint or, as in a crash, none."""
        with self._lock:
            self._ended.set()
        try:
            if save:
                self.checkpoint()
                if self._kept is not None:
                    self._kept.end()
        finally:
            if self._keeper is not None:
                # A checkpoint that is still being written must not replace those of this site's successor.
                self._keeper.join()
            if self._hold is not None:
                self._hold.release()

    def _keep(self) -> None:
        while not self._ended.wait(self._interval):
            # The failure is recorded, and calls report it.
            with suppress(CheckpointError):
                self.checkpoint()

    def _once(
        self, request: RequestId | None, method: str, columns: tuple[NDArray[Any], ...], options: Mapping[str, Any]
    ) -> Any:
        """Write the keys that are new under a request; the others get the answers that were given before."""
        if request is not None:
            self._results.admit(request)
            if request.index is None and (share := self._results.share(request, columns[0])) is not None:
                return share
        if request is not None and request.index is not None:
            known = self._results.known(request, columns[0])
            new = known == UNKNOWN
            if not new.any():
                return known.astype(np.bool_)
            if not new.all():
                answer = known.astype(np.bool_)
                columns = tuple(column[new] for column in columns)
                answer[new] = self._once(replace(request, index=request.index[new]), method, columns, options)
                return answer
        # A batch without times gets them before it is written, for the log.
        repeatable = columns if self._interval > 0 or self._kept is None else self._contents.repeatable(columns)
        if repeatable is not None:
            columns = repeatable
        written = getattr(self._contents, method)(*columns, **options)
        heard = time.time()
        if request is not None:
            self._results.keep(request, written, columns[0], heard)
        self._keys += len(columns[0])
        if repeatable is None:
            self._records = None
        self._log(method, columns, options, request and request.plain, heard, written)
        return written

    def _note_order(self, fence: int, record: Record | None) -> None:
        """Note the number of an orderer, and the record of a batch that it writes here first."""
        self._fence = max(self._fence, fence)
        self._record = self._record if record is None else record
        self._log("order", (), {"fence": self._fence, "record": self._record}, None, 0.0, None)

    def _log(self, *values: Any) -> None:
        """Add a change to the replay log, if there is one, and note that the next checkpoint has to have it."""
        self._changed = True
        self._written += 1
        if self._records is not None and self._interval == 0:
            self._records.append(saved(*values))

    def _repeat(
        self,
        method: str,
        columns: list[NDArray[Any]],
        options: Mapping[str, Any],
        request: list[Any] | None,
        heard: float,
        answers: Any,
    ) -> None:
        """Make a change again that the replay log has."""
        # The next checkpoint has it.
        self._changed = True
        if method == "order":
            self._fence, self._record = options["fence"], options["record"]
            return
        getattr(self._contents, method)(*columns, **options)
        if request is not None:
            self._results.keep(RequestId(*request), answers, columns[0], heard)


# Makes a site where it will run: when it starts, and each time it restarts.
Maker = Callable[[], Site]
