"""Batches of a producer that wait for each other while their sender does not: the way of `asyncio`."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import lately
from lately._core import hash_keys
from lately.distributed._producer.producer import Producer
from lately.distributed._producer.task import running

_Answer = TypeVar("_Answer")


class NotSentError(RuntimeError):
    """Nothing of this batch was sent, since the one before it has no answer: send that again, and then this one."""


class Queue:
    """Sends batches one after the other, in the order in which they were given, and hashes the next ones meanwhile.

    A batch that fails, or whose sender is cancelled once it is on its way, may be with some of the sites. Only while it
    is the last one can it be sent again, so those that wait behind it are given back.

    Parameters
    ----------
    producer : Producer
    seed : int
        Keys are hashed with it.
    """

    def __init__(self, producer: Producer, seed: int) -> None:
        self._producer, self._seed = producer, seed
        self._threads: tuple[ThreadPoolExecutor, ThreadPoolExecutor] | None = None
        self._lock = threading.Lock()
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._epoch = 0

    async def write(
        self, keys: Any, at: Any, number: int | None, offsets: Any, act: Callable[[Any], _Answer], nothing: _Answer
    ) -> _Answer:
        """Wait for a batch to be written (`Producer.write`).

        Raises
        ------
        NotSentError
            If a batch before it has failed meanwhile.
        """
        # Of the sender: other threads have tasks of their own.
        attempt, epoch = running(), self._epoch
        hashing, sending = self._started()
        hashed = hashing.submit(hash_keys, keys, seed=self._seed)

        def send() -> _Answer:
            hashes = lately.Hashes(hashed.result(), seed=self._seed)
            before = self._producer.numbering.number
            try:
                return self._producer.write(hashes, at, number, offsets, act, nothing, attempt=attempt)
            except BaseException:
                # A batch that is rejected before it is sent stops no other.
                if number is not None or self._producer.numbering.number != before:
                    self._epoch += 1
                raise

        # Held until the sender has the answer; who waits for it comes in order.
        async with self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            if epoch != self._epoch:
                last = self._producer.numbering.number
                raise NotSentError(f"not sent: batch {last} before it has no answer; send that again first")
            sent: Future[_Answer] = sending.submit(send)
            try:
                return await asyncio.shield(asyncio.wrap_future(sent))
            except asyncio.CancelledError:
                if not sent.cancel():
                    self._epoch += 1
                raise

    def close(self) -> None:
        """Send nothing more."""
        for pool in self._threads or ():
            pool.shutdown(wait=False, cancel_futures=True)

    def _started(self) -> tuple[ThreadPoolExecutor, ThreadPoolExecutor]:
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(1, "hashing"), ThreadPoolExecutor(1, "sending")
            return self._threads
