"""A batch of keys on its way to the sites."""

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lately.distributed._producer.numbering import Name
from lately.distributed._sites.results import RequestId

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
    name : Name
    offsets : ndarray of int64, shape (n,), or None
        Where in the batch the keys are, ascending; None is one after the other.
    """

    hashes: NDArray[np.uint64]
    moments: NDArray[np.int64] | None
    latest: int | None
    name: Name = field(default_factory=Name)
    offsets: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.hashes)

    def request(self, rows: NDArray[np.int64] | None = None) -> RequestId | None:
        """Make the request of rows, by default of all; None if the batch only queries."""
        if not self.name.number:
            return None
        rows = np.arange(len(self)) if rows is None else rows
        return self.name.request(rows if self.offsets is None else self.offsets[rows])
