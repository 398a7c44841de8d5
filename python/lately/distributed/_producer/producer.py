"""A producer, whatever it sends keys to: it reads them and their times, numbers its batches, and writes them once."""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lately._core import FilterSpec, hash_keys
from lately.distributed._producer.batch import Batch
from lately.distributed._producer.exchange import FailedSitesError
from lately.distributed._producer.numbering import Numbering
from lately.distributed._seed import shared_seed

_Answer = TypeVar("_Answer")


class Producer:
    """Numbers, reads and writes the batches of a handle.

    Parameters
    ----------
    like : FilterSpec
        The filter, which reads times and refuses them as it would itself.
    name : str, optional
        As in `Numbering`.

    Attributes
    ----------
    numbering : Numbering
    """

    def __init__(self, like: FilterSpec, name: str | None) -> None:
        self._like, self._seed = like, shared_seed(like)
        self.numbering = Numbering(name)
        self._writing = threading.Lock()

    def query(self, keys: Any, at: Any) -> Batch:
        """Read a batch of a query, or reject it."""
        hashes, latest = hash_keys(keys, seed=self._seed), self.numbering.latest
        return Batch(hashes, self._like.moments(at, len(hashes), latest=latest, new=False), latest)

    def write(
        self,
        keys: Any,
        at: Any,
        number: int | None,
        offsets: Any,
        act: Callable[[Batch], _Answer],
        nothing: _Answer,
    ) -> _Answer:
        """Read a batch, or refuse it, and write it by `act`; one after the other. `nothing` answers an empty batch."""
        with self._writing:
            hashes = hash_keys(keys, seed=self._seed)
            where = None if offsets is None else _offsets(offsets, len(hashes))
            name = self.numbering.of(number)
            latest = self.numbering.latest_before(name.number)
            moments = self._like.moments(at, len(hashes), latest=latest, new=True)
            if not len(hashes):
                return nothing
            self.numbering.begin(name.number)
            if moments is not None:
                self.numbering.reach(int(moments.max()))
            try:
                answer = act(Batch(hashes, moments, latest, name, where))
            except FailedSitesError as error:
                error.number = name.number
                raise
            except Exception as error:
                error.add_note(f"Some sites may have this batch: send it again with number={name.number}.")
                raise
            if moments is None:
                # Sites have taken it as of now, by clocks of their own.
                self.numbering.reach(time.time_ns())
            return answer


def _offsets(offsets: Any, keys: int) -> NDArray[np.int64]:
    array = np.asarray(offsets)
    if array.shape != (keys,) or (keys and array.dtype.kind not in "iu"):
        raise ValueError(f"offsets must be {keys} whole numbers, one for each key, got {offsets!r}")
    if keys and not (array[0] >= 0 and array[-1] < 2**24 and np.all(array[1:] > array[:-1])):
        raise ValueError(f"offsets must ascend and lie in 0 .. {2**24 - 1}, got {offsets!r}")
    return array.astype(np.int64)
