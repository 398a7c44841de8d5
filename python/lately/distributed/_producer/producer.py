"""Producers: read keys and times, number the batches, and write each batch once."""

import sys
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from lately._core import FilterSpec, hash_keys
from lately.distributed._contents.empty_filter import shared_seed
from lately.distributed._producer.exchange import FailedSitesError
from lately.distributed._sites.results import RequestId

# Which keys of a batch were seen, and for which a site did not answer.
Verdicts: TypeAlias = tuple[NDArray[np.bool_], NDArray[np.bool_]]

_Answer = TypeVar("_Answer")


# Greatest number of attempts whose calls are counted at once. A process runs fewer: they are its actor's threads.
ATTEMPTS = 4096


@dataclass(frozen=True)
class Attempt:
    """A run of a task, or of an actor's method: its name, the same in each run, and the number of the run, from 0."""

    task: str
    number: int

    def next_call(self, number: int | None = None) -> int:
        """Return the number of a call that writes, from 1 on: the given one, or one more than the last."""
        with _lock:
            number = max(_calls.pop(self, 0) + 1, 1) if number is None else number
            _calls[self] = number
            while len(_calls) > ATTEMPTS:
                _calls.popitem(last=False)
        return number


# These belong to the process, not to a handle: a task may have several handles, and a handle in its code outlives it.
_calls: OrderedDict[Attempt, int] = OrderedDict()
_lock = threading.Lock()


def running() -> Attempt | None:
    """Return the attempt that this thread runs; None outside of Ray, in a driver, or if it is unknown.

    A thread that a task starts has a random task of its own, which Ray does not run again.
    """
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return None
    worker = ray.get_runtime_context().worker
    # A driver has no task, and Ray would issue a warning.
    if worker.mode != ray.WORKER_MODE:
        return None
    # Ray's context has the task, but not the number of its run.
    return Attempt(worker.current_task_id.hex(), worker.core_worker.get_current_task_attempt_number())


@dataclass(frozen=True)
class Batch:
    """A batch of keys: hashes, times in nanoseconds since 1970 (None is now), and how sites identify it.

    `latest` is the latest moment that the producer has seen before. `number` is 0 if the batch only queries. `again`
    means that it may have been sent before. `offsets` are the places of the keys in the batch; None is 0 to n - 1.
    """

    hashes: NDArray[np.uint64]
    moments: NDArray[np.int64] | None
    latest: int | None
    producer: str = ""
    number: int = 0
    again: bool = False
    lasting: bool = False
    offsets: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.hashes)

    def request(self, rows: NDArray[np.int64] | None = None) -> RequestId | None:
        """Return the request for some rows, by default for all; None if the batch only queries."""
        if not self.number:
            return None
        rows = np.arange(len(self)) if rows is None else rows
        return RequestId(self.producer, self.number, rows if self.offsets is None else self.offsets[rows], self.lasting)


class Producer:
    """Reads, numbers and writes the batches of a handle, one after the other; `number` is that of the last batch.

    `like` reads times and rejects them as the filter would. A producer with a name needs a number for each batch,
    because a later process may send its last batch again. A producer without a name that runs in a Ray task is named
    after the task and the count of the task's calls. When Ray runs the task again, each call thus has its first name.
    """

    def __init__(self, like: FilterSpec, name: str | None) -> None:
        self._like, self._seed = like, shared_seed(like)
        self._named, self._name = name is not None, name or uuid.uuid4().hex
        self._attempt: Attempt | None = None
        self.number = 0
        # The latest moment so far, in nanoseconds, and the one before the last batch, which may come again.
        self._latest: int | None = None
        self._before: int | None = None
        self._writing = threading.Lock()

    @property
    def name(self) -> str:
        """Name of the producer: its own, or the task's."""
        attempt = None if self._named else running()
        return self._name if attempt is None else f"task {attempt.task}"

    def query(self, keys: Any, at: Any) -> Batch:
        """Read a batch for a query, or raise the error that rejects it."""
        hashes, latest = hash_keys(keys, seed=self._seed), self._latest
        return Batch(hashes, self._like.moments(at, len(hashes), latest=latest, new=False), latest)

    def write(
        self, keys: Any, at: Any, number: int | None, offsets: Any, act: Callable[[Batch], _Answer], nothing: _Answer
    ) -> _Answer:
        """Read a batch and write it by `act`, or reject it. An empty batch gets the answer `nothing`."""
        with self._writing:
            hashes = hash_keys(keys, seed=self._seed)
            where = None if offsets is None else _offsets(offsets, len(hashes))
            name, number, again = self._next(number)
            latest = self._before if number == self.number else self._latest
            moments = self._like.moments(at, len(hashes), latest=latest, new=True)
            if not len(hashes):
                return nothing
            self.number, self._before = number, latest
            if moments is not None:
                self._reach(int(moments.max()))
            try:
                answer = act(Batch(hashes, moments, latest, name, number, again, self._named, where))
            except FailedSitesError as error:
                error.number = number
                raise
            except Exception as error:
                error.add_note(f"Some sites may have this batch: send it again with number={number}.")
                raise
            if moments is None:
                # The sites inserted it at the present time, by clocks of their own.
                self._reach(time.time_ns())
            return answer

    def _next(self, number: Any) -> tuple[str, int, bool]:
        """Return the name and number of a batch to write, and whether it may have been sent before."""
        attempt = None if self._named else running()
        if attempt != self._attempt:
            self._attempt, self.number, self._before = attempt, 0, self._latest
        if number is not None:
            if not hasattr(number, "__index__"):
                raise TypeError(f"number must be a whole number, got {number!r}")
            least = max(self.number, 1)
            if number < least:
                raise ValueError(f"number must be at least {least}, that of the last batch, got {number}")
        elif self._named:
            raise TypeError(f"producer {self._name!r} has a name, so each batch needs its number")
        again, number = number is not None, None if number is None else int(number)
        if attempt is None:
            return self._name, self.number + 1 if number is None else number, again
        # Each call is a producer of its own, so that sites remember the earlier calls too.
        number = attempt.next_call(number)
        return f"task {attempt.task} call {number}", number, again or attempt.number > 0

    def _reach(self, moment: int) -> None:
        """Record a moment that a batch has reached."""
        self._latest = moment if self._latest is None else max(self._latest, moment)


def _offsets(offsets: Any, keys: int) -> NDArray[np.int64]:
    array = np.asarray(offsets)
    if array.shape != (keys,) or (keys and array.dtype.kind not in "iu"):
        raise ValueError(f"offsets must be {keys} whole numbers, one for each key, got {offsets!r}")
    if keys and not (array[0] >= 0 and array[-1] < 2**24 and np.all(array[1:] > array[:-1])):
        raise ValueError(f"offsets must ascend and lie in 0 .. {2**24 - 1}, got {offsets!r}")
    return array.astype(np.int64)
