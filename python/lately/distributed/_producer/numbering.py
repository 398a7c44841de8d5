"""The numbers of a producer's batches, which identify a batch that is sent twice."""

import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately.distributed._producer.task import Attempt, running
from lately.distributed._sites.results import RequestId


@dataclass(frozen=True)
class Name:
    """What a batch is known by.

    Attributes
    ----------
    producer : str
    number : int
        Of the batch, among the producer's; 0 if it only queries.
    again : bool
        Whether it may have been sent before.
    lasting : bool
        Whether the producer has a name of its own.
    """

    producer: str = ""
    number: int = 0
    again: bool = False
    lasting: bool = False

    def request(self, index: NDArray[np.int64]) -> RequestId:
        """Make the request of some places of the batch."""
        return RequestId(self.producer, self.number, index, self.lasting)


class Numbering:
    """A producer's name, the number of its last batch, and the latest moments that it has seen.

    A producer without a name of its own that runs in a Ray task is named after the task and the count of the task's
    calls: when Ray runs the task again, its first call is the first call again.

    Parameters
    ----------
    Its name, if a later process may send its last batch again; each batch then needs its number. The default is a
    unique name.

    Attributes
    ----------
    number : int
        Of the batch written last, in this task; 0 before the first.
    latest : int or None
        The latest moment so far, in nanoseconds.
    """

    def __init__(self, producer: str | None) -> None:
        self._named, self._name = producer is not None, producer or uuid.uuid4().hex
        self._attempt: Attempt | None = None
        self.number = 0
        self.latest: int | None = None
        # The latest moment before the last batch, which may come again.
        self._before: int | None = None

    @property
    def producer(self) -> str:
        """Name of the producer: its own, or the task's."""
        attempt = None if self._named else running()
        return self._name if attempt is None else f"task {attempt.task}"

    def of(self, number: Any) -> Name:
        """Name a batch to write, or refuse its number; None is the next.

        Raises
        ------
        TypeError
            If it is no whole number, or none is given though the producer has a name.
        ValueError
            If it lies before that of the last batch.
        """
        attempt = None if self._named else running()
        if attempt != self._attempt:
            self._attempt, self.number, self._before = attempt, 0, self.latest
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
            return Name(self._name, self.number + 1 if number is None else number, again, self._named)
        # Each call is a producer of its own, so that the sites remember the earlier ones too.
        number = attempt.next_call(number)
        return Name(f"task {attempt.task} call {number}", number, again or attempt.number > 0, False)

    def latest_before(self, number: int) -> int | None:
        """Give the latest moment before a batch, the last one or a new one."""
        return self._before if number == self.number else self.latest

    def begin(self, number: int) -> None:
        """Note that a batch is about to be written."""
        self._before = self.latest_before(number)
        self.number = number

    def reach(self, moment: int) -> None:
        """Note a moment that has been seen."""
        self.latest = moment if self.latest is None else max(self.latest, moment)
