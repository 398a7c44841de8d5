"""The Bloom filter, which forgets nothing."""

from __future__ import annotations

from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from lately._core import _Seed


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
