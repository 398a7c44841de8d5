"""The Bloom filter, which forgets nothing."""

from __future__ import annotations

import lately._core as _core
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    import numpy as np
    from numpy.typing import NDArray

    from lately._core import _Moments, _Seed


class BloomFilter(Filter):
    """Bloom filter, classical or partitioned: reports every key that was **ever** inserted.

    It has no window (`window` is None) and forgets nothing. Take it for a stream that ends, or for comparisons. For an
    endless stream take any other filter.

    Parameters
    ----------
    capacity : int
        Number of different keys that it is planned for. It takes more, and loses none, but false positives increase:
        `fpr` is the planned rate, `false_positive_rate()` the current one.
    fpr : float
        Highest chance of reporting a key that was never inserted, with `capacity` different keys, in (0, 1). Give this
        or `nbytes`.
    nbytes : int
        Greatest number of bytes to use. The rate is then at most twice the lowest that is possible in them.
    partitioned : bool, default False
        Whether each of the k bits of a key has a slice of its own, which takes slightly more memory. The default is one
        array for all.
    seed
        As in `Filter`.

    Notes
    -----
    Each bit of a key costs a cache line, so the filter spends up to a quarter more memory to have fewer of them: 10.5
    bits per key with k = 4 at 1 %, where k = 7 would take 9.6. `from_parameters` takes any k.

    `union` returns exactly the filter that took the keys of both; its `inserted` is their sum.

    Sources: B. H. Bloom, *Space/Time Trade-offs in Hash Coding with Allowable Errors*, 1970; J. K. Mullin, *A Second
    Look at Bloom Filters*, 1983; paper 1, section 4.

    Examples
    --------
    >>> f = lately.BloomFilter(capacity=1_000_000, fpr=0.01)
    >>> f.duplicated(["a", "b", "a"])
    array([False, False,  True])
    >>> f.window, f.slack, round(f.bits_per_key, 1)
    (None, 0, 10.5)
    """

    __module__ = "lately"
    __slots__ = ()
    _family = "BloomFilter"

    def __new__(
        cls,
        capacity: int,
        fpr: float | None = None,
        *,
        nbytes: int | None = None,
        partitioned: bool = False,
        seed: _Seed = 0,
    ) -> Self:
        given = {"capacity": capacity, "fpr": fpr, "nbytes": nbytes, "partitioned": partitioned, "seed": seed}
        return cls._built(cls._family, **given)

    @property
    def retained(self) -> int:
        """int: number of generations that a cell distinguishes beside its own; 2**62, since nothing is forgotten."""
        return _core.retained(self)

    def cells(self, keys: Any) -> NDArray[np.uint64]:
        """Return the places of each key's cells among all cells, for `lately.distributed`.

        Parameters
        ----------
        keys
            As in `Filter.query`.

        Returns
        -------
        ndarray of uint64, shape (n, k)
            Places of the key's k bits. In one array some of them may be equal.

        Raises
        ------
        TypeError
            If a key is of a type that has no canonical form; the message names it.

        Examples
        --------
        >>> f = lately.BloomFilter.from_parameters(capacity=1000, k=7, bits=9600)
        >>> f.cells(["a", "b"]).shape
        (2, 7)
        """
        return _core.cells(self, keys)

    def generations(self, at: _Moments, n: int) -> NDArray[np.int64]:
        """Return the generation of each moment, for `lately.distributed`: 0, since nothing is forgotten.

        Parameters
        ----------
        at : ignored
        n : int
            Number of moments.

        Returns
        -------
        ndarray of int64, shape (n,)
            Zeros.

        Examples
        --------
        >>> lately.BloomFilter(1000, 0.01).generations(None, 2)
        array([0, 0])
        """
        return _core.generations(self, None, n)
