"""A site holds cells, answers messages, and keeps cells and answers safe."""

import os
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from lately.distributed._sites.checkpoints import Checkpoints
from lately.distributed._sites.contents import Contents
from lately.distributed._sites.log import group, record, records
from lately.distributed._sites.memo import UNKNOWN, Memo, State, Ticket
from lately.distributed._sites.store import Store, pack, unpack

LOG = 2**22
"""Bytes that a log may have at least before it is replaced by a checkpoint; it may be as large as that."""


class SupersededError(RuntimeError):
    """Another producer has had its turn since: read again, then write."""


class MovedError(RuntimeError):
    """A site is at another host, or on its way: ask for the layout, and again."""


class CheckpointError(RuntimeError):
    """A site cannot write its checkpoints, and takes no keys until it can."""


class Site:
    """A site that holds `contents`.

    Parameters
    ----------
    contents : Contents
    name : str
        The name of its checkpoints.
    manifest : str, default ""
        What filter it is a site of. A checkpoint of another is refused.
    store : Store, optional
        The place of its checkpoints. An existing one is loaded. Without a store nothing survives.
    interval : float, default 30
        Most seconds from a change to its checkpoint; a crash loses what was written within them. With 0 every answer is
        saved before it is sent.

    Attributes
    ----------
    incarnation : int
        The same as long as nothing is lost that was answered, also when it is made again.

    Raises
    ------
    ValueError
        If its checkpoint is damaged, or is another's.

    Notes
    -----
    Cells and answers are saved together, in one piece: a key is in a checkpoint exactly if the answer given when it was
    written is. So a batch that comes again, since its producer did not get the answer, gets the same one.

    While checkpoints cannot be written, no keys are: taking keys that a crash would forget would lose them in silence.
    That is also so if another site has started from them.
    """

    def __init__(
        self,
        contents: Contents,
        *,
        name: str,
        manifest: str = "",
        store: Store | None = None,
        interval: float = 30,
    ) -> None:
        self._contents = contents
        self._name = name
        self._manifest = manifest
        self._interval = interval
        self._memo = Memo()
        self._fence = 0
        self._lock = threading.Lock()
        # Taken before the other lock: a checkpoint must not be replaced by an earlier one.
        self._saving = threading.Lock()
        self._changed = False
        self._ended = threading.Event()
        self._left = False
        self._keeper: threading.Thread | None = None
        self._keys = 0
        self._checkpoints = 0
        self._saved = 0.0
        self._restored = False
        self._failure: Exception | None = None
        # What is written but not yet safe: counted, and as records, unless only a checkpoint can tell it.
        self._written = self._safe = 0
        self._records: list[bytes] | None = None
        self._log_bytes = self._log_most = 0
        self._kept = None if store is None else Checkpoints(store, name, whole=interval == 0)
        self.incarnation = time.time_ns() if self._kept is None else self._kept.incarnation
        if self._kept is not None and self._kept.data is not None:
            try:
                state = unpack(self._kept.data)
                if (of := str(state["manifest"])) != manifest:
                    raise ValueError(f"the checkpoint holds another filter, or another part of it: {of}")
                self._load(state)
                for log in self._kept.logs(int(state["log"])):
                    for told in records(log):
                        self._repeat(*told)
            except (ValueError, KeyError) as error:
                raise ValueError(f"{name} cannot be restored: {error}") from error
            self._restored = True
        if self._kept is not None:
            self._kept.data = None
            if self._kept.lost:
                contents.lost()
        if store is not None and interval > 0:
            self._keeper = threading.Thread(target=self._keep, name=f"checkpoints of {name}", daemon=True)
            self._keeper.start()

    @property
    def overfull(self) -> str | None:
        """What it would warn of: more keys than planned."""
        return self._contents.overfull()

    def began_again(self) -> None:
        """Hear that there was such a site before, which has crashed. Without a store all that it had is lost."""
        if self._kept is None:
            self._contents.lost()

    def call(
        self,
        method: str,
        columns: tuple[NDArray[Any], ...],
        options: Mapping[str, Any],
        *,
        ticket: Ticket | None = None,
        fence: int = 0,
    ) -> Any:
        """Do what a message asks.

        Parameters
        ----------
        method : str
            Of the contents.
        columns : tuple of ndarray
            One row a key.
        options : dict
        ticket : Ticket, optional
            What is written under a ticket is written once. A method that only reads adds the known answers of this
            batch to its own (`Memo.known`).
        fence : int, optional
            Number of the producer's turn, if turns are taken: a site that has seen a later one refuses. 0 means no
            turn.

        Raises
        ------
        SupersededError
            If a later turn has begun.
        ValueError, ForgottenError, TooManyProducersError
            If the ticket's batch was another one, or what was answered to it is forgotten; or if there are so many
            producers that one would be forgotten.
        CheckpointError
            If the method writes, and checkpoints cannot be written.
        RuntimeError
            If the site is closed.
        """
        writes = method in self._contents.writes
        if writes and self._failure is not None:
            if self._interval > 0:
                raise CheckpointError(f"{self._name} cannot be saved: {self._failure}")
            self.checkpoint()
        with self._lock:
            if self._left:
                raise MovedError(f"{self._name} has left")
            if self._ended.is_set():
                raise RuntimeError(f"{self._name} is closed")
            if fence:
                if fence < self._fence:
                    raise SupersededError(f"turn {fence} is over: {self._fence} has begun")
                self._fence = fence
            if not writes:
                answer = getattr(self._contents, method)(*columns, **options)
                if ticket is None:
                    return answer
                whole = ticket.index is None
                known = self._memo.told(ticket) is not None if whole else self._memo.known(ticket, *columns[:1])
                return (*answer, known) if isinstance(answer, tuple) else (answer, known)
            answer = self._once(ticket, method, columns, options)
            mine = self._written
        if self._interval == 0:
            self._commit(mine)
        return answer

    def _commit(self, mine: int) -> None:
        """Make safe what was written until number `mine`, and with it what others have written meanwhile."""
        if self._kept is None:
            return
        with self._saving:
            if mine <= self._safe:
                return
            with self._lock:
                told, self._records, number = self._records, [], self._written
            data = b"" if told is None else group(told)
            try:
                logged = told is not None and self._log_bytes < self._log_most and self._kept.append(data)
            except Exception as error:
                # What the log ends with is unknown: a checkpoint comes next.
                self._records = None
                self._failed(error)
            if not logged:
                self._save()
                return
            self._log_bytes += len(data)
            self._safe = number

    def checkpoint(self) -> None:
        """Save cells and answers, if they have changed and there is a store.

        Raises
        ------
        CheckpointError
            If that fails.
        """
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
            state = {"manifest": np.array(self._manifest), "log": np.array(log)} | self._state()
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

    def _state(self) -> State:
        """Cells and answers."""
        state = {f"contents/{name}": array for name, array in self._contents.state().items()}
        return state | {f"memo/{name}": array for name, array in self._memo.state().items()}

    def _load(self, state: State) -> None:
        self._contents.load(_within("contents", state))
        self._memo = Memo.from_state(_within("memo", state))

    def leave(self) -> bytes:
        """End here, and give what it takes to go on elsewhere (`arrive`); where there is a store, the rest is there.

        Raises
        ------
        CheckpointError
            If the last writes cannot be saved; then it goes on here.
        """
        with self._lock:
            self._left = True
        try:
            if self._kept is not None:
                # Every answer under way is given before its cells are read elsewhere.
                self._commit(self._written) if self._interval == 0 else self.checkpoint()
                self._kept.end()
            with self._lock:
                state = {"fence": np.array(self._fence)}
                if self._kept is None:
                    state |= {"incarnation": np.array(self.incarnation)} | self._state()
            data = pack(state)
        except BaseException:
            self._left = False
            raise
        self.close(save=False)
        return data

    def arrive(self, data: bytes) -> None:
        """Go on with what another site has left."""
        state = unpack(data)
        with self._lock:
            self._fence = int(state["fence"])
            if self._kept is None:
                self.incarnation = int(state["incarnation"])
                self._load(state)

    def _failed(self, error: Exception) -> NoReturn:
        self._failure = error
        raise CheckpointError(f"{self._name} cannot be saved: {error}") from error

    def status(self) -> dict[str, Any]:
        """Report the state of the site.

        Returns
        -------
        dict
            ``name``; the ``manifest`` of its filter, in JSON; its ``incarnation``; ``nbytes`` of its cells;
            ``keys``, or cells, written since it was made; what it would warn of if it is ``overfull``, or None;
            ``producers`` whose latest batch it remembers; whether it was ``restored`` from a checkpoint;
            ``checkpoints`` it has written since, the last of them ``saved`` (seconds since 1970, 0 if none); whether it
            is ``changed`` since then; the ``failure`` because of which none can be written, or None; the ``process``
            and ``host`` it runs in.
        """
        with self._lock:
            return {
                "name": self._name,
                "manifest": self._manifest,
                "incarnation": self.incarnation,
                "nbytes": self._contents.nbytes,
                "keys": self._keys,
                "overfull": self._contents.overfull(),
                "producers": len(self._memo),
                "restored": self._restored,
                "checkpoints": self._checkpoints,
                "saved": self._saved,
                "changed": self._written > self._safe,
                "failure": None if self._failure is None else str(self._failure),
                "process": os.getpid(),
                "host": socket.gethostname(),
            }

    def close(self, *, save: bool = True) -> None:
        """End: write the last checkpoint, or, as in a crash, none."""
        with self._lock:
            self._ended.set()
        try:
            if save:
                self.checkpoint()
                if self._kept is not None:
                    self._kept.end()
        finally:
            if self._keeper is not None:
                # A checkpoint still being written must not replace those of this site's successor.
                self._keeper.join()

    def _keep(self) -> None:
        while not self._ended.wait(self._interval):
            # The failure is recorded, and calls report it.
            with suppress(CheckpointError):
                self.checkpoint()

    def _once(
        self,
        ticket: Ticket | None,
        method: str,
        columns: tuple[NDArray[Any], ...],
        options: Mapping[str, Any],
    ) -> Any:
        """Write what is new under a ticket; the other answers are those given before."""
        if ticket is not None:
            self._memo.admit(ticket)
        if ticket is not None and ticket.index is None:
            if (told := self._memo.told(ticket, columns[0])) is not None:
                return told
        elif ticket is not None and ticket.index is not None:
            known = self._memo.known(ticket, columns[0])
            new = known == UNKNOWN
            if not new.any():
                return known.astype(np.bool_)
            if not new.all():
                answer = known.astype(np.bool_)
                columns = tuple(column[new] for column in columns)
                answer[new] = self._once(replace(ticket, index=ticket.index[new]), method, columns, options)
                return answer
        # Times are told before they are used.
        repeatable = columns if self._interval > 0 or self._kept is None else self._contents.again(columns)
        if repeatable is not None:
            columns = repeatable
        written = getattr(self._contents, method)(*columns, **options)
        heard = time.time()
        if ticket is not None:
            self._remember(ticket, written, columns[0], heard)
        self._changed = True
        self._keys += len(columns[0])
        self._written += 1
        if repeatable is None:
            self._records = None
        elif self._records is not None and self._interval == 0:
            whose = None if ticket is None else (ticket.producer, ticket.number, ticket.index, ticket.lasting)
            self._records.append(record(method, columns, options, whose, heard, written))
        return written

    def _repeat(
        self,
        method: str,
        columns: list[NDArray[Any]],
        options: Mapping[str, Any],
        ticket: list[Any] | None,
        heard: float,
        answers: Any,
    ) -> None:
        """Write a record again."""
        getattr(self._contents, method)(*columns, **options)
        if ticket is not None:
            self._remember(Ticket(*ticket), answers, columns[0], heard)
        # The next checkpoint has it.
        self._changed = True

    def _remember(self, ticket: Ticket, answers: Any, keys: NDArray[Any], heard: float) -> None:
        remember = self._memo.tell if ticket.index is None else self._memo.keep
        remember(ticket, answers, keys, heard)


def _within(part: str, state: State) -> State:
    return {name.removeprefix(f"{part}/"): array for name, array in state.items() if name.startswith(f"{part}/")}
