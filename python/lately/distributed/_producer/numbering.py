"""The numbers of a producer's batches, which identify a batch that is sent twice."""

import uuid
from typing import Any


class Numbering:
    """A producer's name, the number of its last batch, and the latest moments that it has seen.

    Parameters
    ----------
    Its name, if a later process may send its last batch again; each batch then needs its number. The default is a
    unique name.

    Attributes
    ----------
    producer : str
    number : int
        Of the batch written last; 0 before the first.
    latest : int or None
        The latest moment so far, in nanoseconds.
    """

    def __init__(self, producer: str | None) -> None:
        self._named, self.producer = producer is not None, producer or uuid.uuid4().hex
        self.number = 0
        self.latest: int | None = None
        # The latest moment before the last batch, which may come again.
        self._before: int | None = None

    def of(self, number: Any) -> int:
        """Give the number of a batch to write, or refuse it; None is the next.

        Raises
        ------
        TypeError
            If it is no whole number, or none is given though the producer has a name.
        ValueError
            If it lies before that of the last batch.
        """
        if number is None:
            if self._named:
                raise TypeError(f"producer {self.producer!r} has a name, so each batch needs its number")
            return self.number + 1
        if not hasattr(number, "__index__"):
            raise TypeError(f"number must be a whole number, got {number!r}")
        least = max(self.number, 1)
        if number < least:
            raise ValueError(f"number must be at least {least}, that of the last batch, got {number}")
        return int(number)

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
