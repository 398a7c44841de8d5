"""Filters that promise no window."""

from __future__ import annotations

import lately._core as _core
from lately._core import Filter, build

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal, Self

    import numpy as np
    from numpy.typing import NDArray

    from lately._core import _Moments, _Seed


class BloomFilter(Filter):
    """Bloom filter, classical or partitioned: whether a key was **ever** inserted.

    It has no window (`window` is None) and forgets nothing. Take it for a stream that ends, or to compare with. For an
    endless one take any other filter.

    Parameters
    ----------
    capacity : int
        Different keys it is planned for. More are taken too, and none is lost, but false positives increase: `fpr` is
        what was planned, `false_positive_rate()` what it has come to.
    fpr : float
        Highest chance of reporting a key never inserted with `capacity` different keys, in (0, 1). Give this or
        `nbytes`.
    nbytes : int
        Most bytes to use. The filter then has at most twice the lowest rate that fits.
    partitioned : bool, default False
        Keep a slice for each of the k bits of a key, for a trifle more memory. The default is one array for all.
    seed : int, bytes or "random", default 0
        Seed of the key hashes: in [0, 2**64), or for keys that strangers choose 16 secret bytes, or "random" for such
        bytes that the filter draws itself. See Notes of `hash_keys`.

    Raises
    ------
    ValueError
        If a parameter is out of range; the message names it.
    TypeError
        If a parameter is of the wrong type.
    MemoryError
        If there is not enough memory.

    Notes
    -----
    Up to a quarter more memory than the least is taken for fewer bits per key, each of which costs a cache line: 10.5
    bits of memory per key and k = 4 at 1 %, where k = 7 would take 9.6 (`from_parameters` takes any).

    `union` gives exactly the filter that took the keys of both, and its `inserted` is their sum.

    B. H. Bloom, Space/Time Trade-offs in Hash Coding with Allowable Errors, 1970; J. K. Mullin, A Second Look at Bloom
    Filters, 1983; paper 1, section 4.

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

    def __new__(
        cls,
        capacity: int,
        fpr: float | None = None,
        *,
        nbytes: int | None = None,
        partitioned: bool = False,
        seed: _Seed = 0,
    ) -> Self:
        request = {"fpr": fpr, "nbytes": nbytes, "partitioned": partitioned}
        return super().__new__(cls, build("bloom", capacity=capacity, **request, seed=seed))

    @classmethod
    def from_parameters(
        cls, capacity: int, k: int, *, bits: int | None = None, slice_bits: int | None = None, seed: _Seed = 0
    ) -> Self:
        """A filter of given size.

        Parameters
        ----------
        capacity : int
            As in the constructor.
        k : int
            Bits of a key, at most 128.
        bits : int, optional
            m: bits of the one array of a classical filter.
        slice_bits : int, optional
            Bits of each of the k slices of a partitioned filter, instead of `bits`.
        seed : int, bytes or "random", default 0
            As in the constructor.

        Returns
        -------
        BloomFilter

        Raises
        ------
        ValueError
            If a parameter is out of range; the message names it.

        Examples
        --------
        >>> f = lately.BloomFilter.from_parameters(1000, k=7, bits=9600)
        >>> f.nbytes, round(f.fpr, 4)
        (1200, 0.01)
        """
        sizes = {"k": k, "bits": bits, "slice_bits": slice_bits}
        return super().__new__(cls, build("bloom", capacity=capacity, **sizes, seed=seed))

    @property
    def kept(self) -> int:
        """int: generations that a cell counts beside its own; 2**62, since nothing is forgotten."""
        return _core.kept(self)

    def cells(self, keys: Any) -> NDArray[np.uint64]:
        """Which cells are a key's, for `lately.distributed`: a cell's number is its place in the words of all cells.

        Parameters
        ----------
        keys : array-like, Series, column or frame
            A batch of n keys. See `lately.hash_keys`.

        Returns
        -------
        ndarray of uint64, shape (n, k)
            Its k bits. Of one array some of them may be the same.

        Raises
        ------
        TypeError
            If a key is of a type that has no canonical form; the message names it.

        Examples
        --------
        >>> f = lately.BloomFilter.from_parameters(1000, k=7, bits=9600)
        >>> f.cells(["a", "b"]).shape
        (2, 7)
        """
        return _core.cells(self, keys)

    def generations(self, at: _Moments, n: int) -> NDArray[np.int64]:
        """The generation of each moment, for `lately.distributed`: of a filter that forgets nothing there is only one.

        Parameters
        ----------
        at : ignored
        n : int
            How many.

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


class StableBloomFilter(Filter):
    """Stable Bloom filter: **promises no window.** Keys are forgotten at random, some of them soon after they came.

    A baseline. Every insertion takes one from random cells and sets its own to their maximum, so that the filter is
    never full; its rate of false positives holds however long the stream is.

    Parameters
    ----------
    window : int
        Nominal, at most 2**32. Of the keys inserted exactly this many insertions ago at most a tenth is forgotten, in
        expectation; of younger ones fewer, of older ones more. Some keys are remembered much longer: `slack` is
        infinite.
    fpr : float
        Highest chance of reporting a key never inserted at the stable point, in (0, 1). Give this or `nbytes`.
    nbytes : int
        Most bytes to use. The filter then has nearly the lowest rate that fits.
    seed : int, bytes or "random", default 0
        Seed of the key hashes, as in `AgePartitionedBloomFilter`, and of the decay. What is forgotten follows from it
        and the keys.

    Raises
    ------
    ValueError
        If a parameter is out of range; the message names it.
    TypeError
        If a parameter is of the wrong type.
    MemoryError
        If there is not enough memory.

    Notes
    -----
    F. Deng, D. Rafiei, Approximately Detecting Duplicates for Streaming Data using Stable Bloom Filters, 2006.

    Posteriors are .02 to .03 too high at 5 to 10 bits per key. The age that `age` finds most likely is the youngest of
    a span, a fourth of an octave wide; another age in it may be twice as probable.

    Examples
    --------
    >>> f = lately.StableBloomFilter(window=10_000, fpr=0.01)
    >>> f.insert(range(100_000))
    >>> found = f.query(range(90_000, 100_000))
    >>> bool(0.9 < found.mean() < 1), bool(found[-1])
    (True, True)
    """

    __module__ = "lately"
    __slots__ = ()

    def __new__(cls, window: int, fpr: float | None = None, *, nbytes: int | None = None, seed: _Seed = 0) -> Self:
        return super().__new__(cls, build("stable", window=window, fpr=fpr, nbytes=nbytes, seed=seed))

    @classmethod
    def from_parameters(
        cls, window: int, k: int, slice_cells: int, *, bits: Literal[1, 2, 4, 8], decrements: int, seed: _Seed = 0
    ) -> Self:
        """A filter of given size and decay.

        Parameters
        ----------
        window : int
            As in the constructor; here a name only.
        k : int
            Slices, and cells of a key, at most 128.
        slice_cells : int
            m: cells of each slice.
        bits : {1, 2, 4, 8}
            Bits of a cell; a key's are set to Max = 2**bits - 1.
        decrements : int
            P: cells of each slice that every insertion takes one from, at most all.
        seed : int, bytes or "random", default 0
            As in the constructor.

        Returns
        -------
        StableBloomFilter

        Raises
        ------
        ValueError
            If a parameter is out of range; the message names it.

        Examples
        --------
        >>> f = lately.StableBloomFilter.from_parameters(20_000, k=2, slice_cells=35_000, bits=4, decrements=30)
        >>> f.nbytes, round(f.fpr, 3)
        (35000, 0.151)
        """
        return super().__new__(
            cls,
            build("stable", window=window, k=k, slice_cells=slice_cells, bits=bits, decrements=decrements, seed=seed),
        )


class GeneralizedBloomFilter(Filter):
    """Generalized Bloom filter: **promises no window.** Every bit forgets gradually, and keys fade.

    An insertion sets k1 bits of the key to one and resets k0 to zero, which wins where both hit. A key is reported when
    all of them are as it left them: each later key may have changed one, by chance, and so the filter loses some keys
    of the window and keeps some beyond. `false_negative_rates` tells how many by age.

    Parameters
    ----------
    window : int
        What the sizes are chosen for, and nothing else. Of the keys inserted exactly this many insertions ago at most a
        tenth is missed, in expectation; of younger ones fewer, of older ones more. `slack` is infinite.
    fpr : float
        Highest chance of reporting a key never inserted, in (0, 1): the filter takes the least memory that keeps both.
        Give this or `nbytes`.
    nbytes : int
        Most bytes to use. The filter then has the lowest rate that remembers the window as well as that. If no filter
        of so few bytes does, it has the least sum of two chances: to report a new key, and to miss the window's oldest.
    seed : int, bytes or "random", default 0
        Seed of the key hashes: in [0, 2**64), or for keys that strangers choose 16 secret bytes, or "random" for such
        bytes that the filter draws itself. See Notes of `hash_keys`.

    Raises
    ------
    ValueError
        If a parameter is out of range; the message names it.
    TypeError
        If a parameter is of the wrong type.
    MemoryError
        If there is not enough memory.

    Notes
    -----
    Rates are expectations at the fill that the filter tends to, where false positives are most likely. A cell that some
    key wrote is still as it was, i different other keys later, with chance (1 - 1/bits)**(i * (k0 + k1)), or else holds
    what any cell does. Repeated keys change nothing anew: they make it forget less.

    With ``refresh=False`` a key that is asked for without end may never come through again: only insertions forget.

    With a number for a prior, posteriors take all keys for different ones. Where keys repeat they are off by .14 to .18
    at 10 to 20 bits per key. Pass a prior that has a method ``distinct``, such as `lately.Uniform` or `lately.Zipf`.
    The age that `age` finds most likely is the youngest of a span, a fourth of an octave wide; another age in it may be
    twice as probable.

    R. P. Laufer, P. B. Velloso, O. C. Duarte, A Generalized Bloom Filter to Secure Distributed Network Applications,
    2011; on streams: paper 5, section 5 (J. Dautrich, C. Ravishankar, Inferring Insertion Times and Optimizing Error
    Penalties in Time-Decaying Bloom Filters, 2019).

    Examples
    --------
    >>> f = lately.GeneralizedBloomFilter(window=10_000, fpr=0.01)
    >>> f.insert(range(100_000))
    >>> found = f.query(range(90_000, 100_000))
    >>> bool(0.9 < found.mean() < 1), bool(found[-1])
    (True, True)
    >>> f.false_negative_rates([0, 4_999, 9_999]).round(3)
    array([0.   , 0.052, 0.1  ])
    """

    __module__ = "lately"
    __slots__ = ()

    def __new__(cls, window: int, fpr: float | None = None, *, nbytes: int | None = None, seed: _Seed = 0) -> Self:
        return super().__new__(cls, build("generalized", window=window, fpr=fpr, nbytes=nbytes, seed=seed))

    @classmethod
    def from_parameters(cls, window: int, bits: int, *, k1: int, k0: int, seed: _Seed = 0) -> Self:
        """A filter of given size.

        Parameters
        ----------
        window : int
            As in the constructor; here a name only.
        bits : int
            m: cells, of one bit each.
        k1 : int
            Hashes that set a bit, at most 64.
        k0 : int
            Hashes that reset a bit, at most 64.
        seed : int, bytes or "random", default 0
            As in the constructor.

        Returns
        -------
        GeneralizedBloomFilter

        Raises
        ------
        ValueError
            If a parameter is out of range; the message names it.

        Examples
        --------
        >>> f = lately.GeneralizedBloomFilter.from_parameters(1000, bits=100_000, k1=4, k0=3)
        >>> f.nbytes, round(f.fpr, 4)
        (12504, 0.0084)
        """
        return super().__new__(cls, build("generalized", window=window, bits=bits, k1=k1, k0=k0, seed=seed))

    def false_negative_rates(self, ages: Sequence[int] | NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Chance that a key is missed, by its age.

        Parameters
        ----------
        ages : sequence of int, of length n
            Insertions of other keys since its own, in [0, 2**64): the oldest key of a window W has W - 1.

        Returns
        -------
        ndarray of float64, shape (n,)
            In expectation, at the fill that the filter tends to. From 0 on it rises to 1 - `fpr`.

        Raises
        ------
        ValueError
            If an age is negative or too large.
        TypeError
            If an age is no int.

        Examples
        --------
        >>> f = lately.GeneralizedBloomFilter.from_parameters(1000, bits=1000, k1=3, k0=3)
        >>> f.false_negative_rates([0, 10, 100, 1000]).round(3)
        array([0.   , 0.162, 0.784, 0.984])
        """
        return _core.missed(self, ages)
