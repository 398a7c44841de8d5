"""A site: what runs at one place. It holds cells, answers messages, and keeps cells and answers safe."""

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lately.distributed._memo import UNKNOWN, Memo, State, Ticket
from lately.distributed._store import Store, pack, unpack


class Contents(Protocol):
    """What a site holds: a filter, or part of one.

    Its methods, which messages call by name, take arrays of one row a key, and options. Those that are named in
    `writes` answer each key with a bool; the others are free.
    """

    writes: frozenset[str]

    @property
    def nbytes(self) -> int:
        """Bytes of its cells."""
        ...

    def state(self) -> State:
        """Everything, as arrays."""
        ...

    def load(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave; a ValueError if it does not fit."""
        ...


class SupersededError(RuntimeError):
    """Another producer has had its turn since: read again, then write."""


class Site:
    """A site that holds `contents`.

    Parameters
    ----------
    contents : Contents
    name : str
        Under which its checkpoints are kept.
    store : Store, optional
        Where. A checkpoint that is there is loaded. Without a store nothing survives.
    interval : float, default 30
        Seconds from a change to its checkpoint, at most; what a crash loses was written within them. With 0 no answer
        leaves before the checkpoint that has it.

    Notes
    -----
    Cells and answers are saved together, in one piece: a key is in a checkpoint exactly if the answer is that was given
    when it was written. So a batch that comes again, since its producer has not had the answer, gets the same one.
    """

    def __init__(self, contents: Contents, *, name: str, store: Store | None = None, interval: float = 30) -> None:
        self._contents = contents
        self._name = name
        self._store = store
        self._interval = interval
        self._memo = Memo()
        self._fence = 0
        self._lock = threading.RLock()
        self._dirty = threading.Event()
        self._closed = False
        self._checkpoints = 0
        self._restored = False
        self._failure: BaseException | None = None
        if store is not None and (data := store.read(name)) is not None:
            state = unpack(data)
            contents.load(_within("contents", state))
            self._memo = Memo.from_state(_within("memo", state))
            self._restored = True
        if store is not None and interval > 0:
            threading.Thread(target=self._keep, name=f"checkpoints of {name}", daemon=True).start()

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
            What is written under a ticket is written once. A method that only reads then gives beside its answer those
            that are known of this batch (`Memo.known`).
        fence : int, optional
            Number of the producer's turn, where turns are taken: a site that has seen a later one refuses. With 0 it is
            no matter of turns.

        Raises
        ------
        SupersededError
            If a later turn has begun.
        """
        with self._lock:
            if self._failure is not None and method in self._contents.writes:
                raise RuntimeError(f"the checkpoints of {self._name} cannot be written") from self._failure
            if 0 < fence < self._fence:
                raise SupersededError(f"turn {fence} is over: {self._fence} has begun")
            self._fence = max(fence, self._fence)
            act = getattr(self._contents, method)
            if method not in self._contents.writes:
                answer = act(*columns, **options)
                return answer if ticket is None else (answer, self._memo.known(ticket))
            if ticket is None:
                answer = act(*columns, **options)
            else:
                known = self._memo.known(ticket)
                new = known == UNKNOWN
                answer = known.astype(np.bool_)
                if new.all():
                    answer = act(*columns, **options)
                elif new.any():
                    answer[new] = act(*(column[new] for column in columns), **options)
                self._memo.keep(ticket, answer)
            self._dirty.set()
            if self._interval == 0:
                self.checkpoint()
            return answer

    def checkpoint(self) -> None:
        """Save cells and answers, if they have changed and there is somewhere to."""
        if self._store is None or not self._dirty.is_set():
            return
        with self._lock:
            self._dirty.clear()
            state = {f"contents/{name}": array for name, array in self._contents.state().items()}
            state |= {f"memo/{name}": array for name, array in self._memo.state().items()}
        try:
            self._store.write(self._name, pack(state))
        except BaseException as error:
            # Until one can be written every call says so: to take keys that a crash would forget is to lose them in
            # silence.
            self._failure = error
            self._dirty.set()
            raise
        self._failure = None
        self._checkpoints += 1

    def status(self) -> dict[str, Any]:
        """Say how the site is: whether it was restored, how many checkpoints it wrote, what its contents tell."""
        return {
            "name": self._name,
            "nbytes": self._contents.nbytes,
            "restored": self._restored,
            "checkpoints": self._checkpoints,
        }

    def close(self, *, save: bool = True) -> None:
        """End: write the last checkpoint, or, as in a crash, none."""
        self._closed = True
        if save:
            self.checkpoint()

    def _keep(self) -> None:
        while not self._closed:
            self._dirty.wait()
            time.sleep(self._interval)
            if self._closed:
                return
            with suppress(Exception):
                self.checkpoint()


def _within(part: str, state: State) -> State:
    return {name.removeprefix(f"{part}/"): array for name, array in state.items() if name.startswith(f"{part}/")}
