"""A batch of keys on its way to the sites."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lately.distributed._sites.memo import Ticket

Verdicts: TypeAlias = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Which keys of a batch were seen, and for which a site did not answer."""


@dataclass(frozen=True)
class Batch:
    """Keys, and when they were seen.

    Attributes
    ----------
    hashes : ndarray of uint64, shape (n,)
    moments : ndarray of int64, shape (n,), or None
        Nanoseconds since 1970; None is now.
    latest : int or None
        The latest moment the producer has seen before it.
    producer : str
    number : int
        Of the batch, among the producer's; 0 if it only queries.
    again : bool
        Whether it may have been sent before.
    """

    hashes: NDArray[np.uint64]
    moments: NDArray[np.int64] | None
    latest: int | None
    producer: str = ""
    number: int = 0
    again: bool = False

    def __len__(self) -> int:
        return len(self.hashes)

    def ticket(self, index: NDArray[np.int64]) -> Ticket | None:
        """Make the ticket of rows of this batch; None if it only queries."""
        return Ticket(self.producer, self.number, index) if self.number else None
