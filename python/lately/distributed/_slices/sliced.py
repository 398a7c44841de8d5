"""The sliced filter, as users see it."""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lately._core import Filter, OverfullWarning
from lately._plan import Choice
from lately.distributed._producer.distributed_filter import DistributedFilter
from lately.distributed._producer.exchange import Exchange
from lately.distributed._producer.producer import Producer, Verdicts
from lately.distributed._sites.interface import Failed, Sites
from lately.distributed._sites.ray_sites import RaySites
from lately.distributed._sites.start import Where, manifest_of, start
from lately.distributed._slices.slicing import Dice, Kind, OnFailure, Slicing

_NOTHING: Verdicts = (np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.bool_))


class SlicedFilter(DistributedFilter):
    """One filter on many sites: as large and as fast as all of them together (paper 4, section 3).

    Parameters
    ----------
    kind : {"horizontal", "vertical", "diced"}
        Horizontal: each key belongs to one site, which holds a filter for its share of the keys; one message a key.
        Vertical: each site holds a range of the cells of one filter; a key has cells on up to k sites, a site that
        fails costs less, and many occurrences of one key are spread. Diced: both.
    slices : int, or (int, int) for a diced filter
        S, how many sites. Diced "h-v": S groups of keys, each a vertical filter of S' slices. Diced "v-h": S ranges of
        cells, each a horizontal one of S' slices. Both have S S' sites.
    filter : Filter, or a row of `lately.plan`
        An empty filter, or a planned one, which may be larger than this machine. It has a window of time, or is a
        `BloomFilter`. Horizontal: each slice is such a filter. Plan it for the keys of a slice: a little more than 1 /
        S of all, because some slices get more than others. Vertical: the whole filter, which is cut: a `BloomFilter`,
        or a `TimingBloomFilter` of fixed size. Diced: one of the S groups ("h-v"), or all ranges once, each of which
        has S' copies ("v-h").
    dice : {"h-v", "v-h"}, optional
        The order of the two cuts of a diced filter; see `slices`.
    on_failure : {"raise", "duplicate", "distinct"} or int, default "raise"
        What to answer for a key whose site does not answer. "raise": the call raises `FailedSitesError`, with the
        number by which the batch is sent again. Otherwise the answer is guessed: seen ("duplicate"), or new
        ("distinct"), and `unanswered` marks the keys. If a site answers but lacks what it had not saved, "raise" is
        like "distinct": no key is lost, and some pass twice. In vertical and diced filters a key with an empty cell on
        a site that answers is new in any case. Without such a cell it counts as seen if at least this many of its cells
        are on sites that answer: with 0 ("duplicate") always, with k ("distinct") only if all are (paper 4, section
        3.2, with erratum OIE-2).
    pipelined : bool, default False
        Vertical and diced: `query` reads at the site of each key's first cell, then at the next site of those keys that
        may still have been seen, and so on. That takes fewer messages for new keys, and waits up to k times. The
        verdicts are the same.
    sites : {"local", "ray"} or callable, default "local"
        Where the sites run: in this process, as actors of Ray, or started by a function that is passed their makers.
        `connect` starts none, and joins existing ones.
    checkpoint : path or address, optional
        Where sites keep checkpoints, from which they restart; a folder, or an address that fsspec opens. Each filter
        needs a folder of its own, which one program has at a time.
    interval : float, default 30
        Greatest number of seconds from a change to its checkpoint.
    deadline : float, optional
        Seconds that a site has to answer, on Ray: 10 by default. Sites that a function gives have their own.
    name : str, optional
        Name of the filter. The names of its sites begin with it, by which `connect` finds them on Ray, and so do those
        of their checkpoints, which are opened under this name only.
    producer : str, optional
        Name under which batches are numbered. By default each handle has a unique name, and numbers its batches itself.
        With a name each writing call needs its `number`: then a restarted producer can send its last batch again.
    actors : int, optional
        On Ray: how many actors hold the sites, in equal shares. The default is one for each site. A filter that was
        closed starts again with another number, from its checkpoints.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of another type or out of range, or the filter is not empty, or has a window of insertions,
        for which several sites have no common count.
    FailedSitesError
        By calls, if a site does not answer, unless `on_failure` allows a guess.
    RuntimeError
        By calls, if the filter is closed, or a site is gone and cannot come back.

    Warns
    -----
    FailedSitesWarning
        When a site stops answering, if `on_failure` allows a guess; once until it answers again.

    Notes
    -----
    - Verdicts are those of one filter: a vertical filter answers for each key what the whole filter would, a horizontal
      one what S filters would. One exception: a vertical filter counts the window of a late key from its own time, the
      whole filter from the latest time. Within the slack they may therefore answer differently.
    - *A batch sent twice* with the same `number` is written once and gets the first answers again, whichever sites had
      it. It must have the same keys, and may have more after them; other keys are rejected. If a call raises an error
      after keys were sent, its notes have the number. Send such a batch again until it is answered: keys of a batch
      that is given up may count as seen, although no producer got the answer that they are new.
    - *Sites remember* the answers to the latest batch of each producer: for a week after its last message if it has a
      name, otherwise for an hour, and for 8 million keys or cells in all. A batch that comes again after its answers
      were dropped for lack of room is rejected, not guessed.
    - *Two producers* with the same new key at once: exactly one is answered that it is new. Several sites decide about
      a key of a vertical or diced filter, so an orderer writes its batches one after the other: on Ray an actor more,
      elsewhere a lock. If it dies half-way, the next one completes the batch from a record on one of the sites.
    - *A site that fails* misses what is written meanwhile, if `on_failure` allows a guess; `failures` counts the
      keys. When it answers again, a horizontal filter takes the keys it lacks for new. A vertical or diced one counts
      the cells that it shows unset as not answered, until what this producer wrote meanwhile is out of the window.
    - *A site that is made again* lacks what it had not saved: without `checkpoint` all, with ``interval=0`` nothing.
      Each producer warns once, and counts it (`restarts`). Keys that it lacks are new once more. In a vertical or diced
      filter `unanswered` marks for a window those that no other cell decides, and "duplicate" takes them for seen.
    - *Times* may step back by the filter's `lateness`, among all producers. A batch later than that is rejected, and
      nothing of it is inserted.
    - A handle that is pickled becomes another producer over the same sites. Sites of this process cannot be pickled.
    - *In a Ray task*, or a method of an actor, a handle without a name is named after the task, and its batches after
      the count of the task's calls. When Ray runs the task again, each of its calls sends its batch again, and gets the
      first answers. The calls must come in the same order: from threads of a task, use handles with names.

    Examples
    --------
    >>> from lately.distributed import SlicedFilter
    >>> whole = lately.TimingBloomFilter("10min", 0.001, capacity=100_000)
    >>> with SlicedFilter("vertical", 4, whole) as f:
    ...     f.duplicated(["a", "b", "a"], at=[0, 1, 2])
    array([False, False,  True])
    """

    def __init__(
        self,
        kind: Kind,
        slices: int | tuple[int, int],
        filter: Filter | Choice,
        *,
        dice: Dice | None = None,
        on_failure: OnFailure = "raise",
        pipelined: bool = False,
        sites: Where = "local",
        checkpoint: str | os.PathLike[str] | None = None,
        interval: float = 30.0,
        deadline: float | None = None,
        name: str | None = None,
        producer: str | None = None,
        actors: int | None = None,
    ) -> None:
        slicing = Slicing.of(kind, slices, filter, dice=dice, on_failure=on_failure, pipelined=pipelined)
        started = start(
            slicing.contents(),
            slicing.manifest,
            sites,
            checkpoint=checkpoint,
            interval=interval,
            deadline=deadline,
            name=name,
            orderer=slicing.orderer(),
            actors=actors,
        )
        self._connect(slicing, started, producer, made=not started.connected)

    @classmethod
    def connect(
        cls,
        to: str | Sites,
        *,
        on_failure: OnFailure = "raise",
        pipelined: bool = False,
        deadline: float = 10.0,
        producer: str | None = None,
    ) -> Self:
        """Return a producer for sites that were started elsewhere. They store what filter they hold.

        Parameters
        ----------
        to : str or Sites
            The name of sites on Ray, or sites.
        on_failure : optional
            As in the constructor. Each producer has its own.
        pipelined : bool, optional
            As in the constructor. Each producer has its own.
        producer : str, optional
            As in the constructor.
        deadline : float, default 10
            Seconds that a site on Ray has to answer.

        Returns
        -------
        SlicedFilter
            Closing it leaves the sites running.

        Raises
        ------
        ValueError
            If there are no sites of that name, or they hold no sliced filter of this version.
        TimeoutError
            If none of them answers.

        Examples
        --------
        >>> from lately.distributed import SlicedFilter
        >>> f = SlicedFilter("vertical", 2, lately.BloomFilter(1000, 0.01))
        >>> other = SlicedFilter.connect(f.sites)
        >>> other.insert(["a"])
        >>> f.query(["a", "b"])
        array([ True, False])

        By name, from another machine of the cluster:

        >>> SlicedFilter.connect("clicks").duplicated(clicks)  # doctest: +SKIP
        """
        if isinstance(to, str):
            to = RaySites.connect(to, deadline=deadline)
        slicing = Slicing.of_manifest(manifest_of(to), on_failure=on_failure, pipelined=pipelined)
        return cls._over(slicing, to, producer)

    @classmethod
    def _over(cls, slicing: Slicing, sites: Sites, producer: str | None = None) -> Self:
        """Make a producer over existing sites."""
        made = object.__new__(cls)
        made._connect(slicing, sites, producer, made=False)
        return made

    def _connect(self, slicing: Slicing, sites: Sites, producer: str | None, *, made: bool) -> None:
        self._slicing, self._made = slicing, made
        self._like = slicing.empty.spec()
        self._exchange = Exchange(sites, strict=slicing.strict)
        self._slices = slicing.over(self._exchange, self._like)
        self._producer = Producer(self._like, producer)
        self._failures = 0
        self._latest = threading.local()

    def insert(self, keys: Any, *, at: Any = None, number: int | None = None, offsets: Any = None) -> None:
        """Insert keys, in order.

        Parameters
        ----------
        keys, at, number, offsets
            As in `duplicated`.
        """
        self._answer(self._producer.write(keys, at, number, offsets, self._slices.insert, _NOTHING))

    def query(self, keys: Any, *, at: Any = None) -> NDArray[np.bool_]:
        """Return which keys were inserted within the window.

        Parameters
        ----------
        keys, at
            As in `duplicated`; `at` is the moment of the query.

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        batch = self._producer.query(keys, at)
        return self._answer(self._slices.query(batch) if len(batch) else _NOTHING)

    def duplicated(
        self, keys: Any, *, at: Any = None, refresh: bool = True, number: int | None = None, offsets: Any = None
    ) -> NDArray[np.bool_]:
        """Return for each key in order whether it was there, then insert it.

        Parameters
        ----------
        keys : array-like, Series, column or frame
            A batch of n keys. See `lately.hash_keys`.
        at : time or n times, optional
            When they were seen, for a window of time; the default is now. Times may step back by at most `lateness`.
        refresh : bool, default True
            True: every occurrence restarts the key's window. False: only an occurrence that is not reported does. A key
            then passes again when its last pass is longer ago than the window. In a window of time that is paper
            4's definition 4 too. See `lately.Filter.duplicated`.
        number : int, optional
            Number of the batch, from 1 on; repeat the last one to send that batch again. The default is the next.
        offsets : array of int, shape (n,), optional
            Where in the batch the keys are, ascending. The default is 0 to n - 1. For keys that may come again with
            other gaps between them, as from a topic that is compacted.

        Returns
        -------
        ndarray of bool, shape (n,)
            True where the key was seen lately, repeats within the batch included.

        Raises
        ------
        TypeError
            If a key is of a type that has no canonical form, or the producer has a name and the batch no number.
        ValueError
            If `at` is missing a time, steps back too far, or does not fit `keys`; or if `number` lies before the last
            one, or stands for other keys.

        Examples
        --------
        >>> from lately.distributed import SlicedFilter
        >>> f = SlicedFilter("horizontal", 3, lately.BloomFilter(10_000, 0.001))
        >>> f.duplicated(["a", "b", "a"])
        array([False, False,  True])
        >>> f.duplicated(["a", "b", "a"], number=1)
        array([False, False,  True])
        >>> f.duplicated(["a", "b", "a"])
        array([ True,  True,  True])
        """
        write = partial(self._slices.duplicated, refresh=refresh)
        return self._answer(self._producer.write(keys, at, number, offsets, write, _NOTHING))

    def _answer(self, verdicts: Verdicts) -> NDArray[np.bool_]:
        """Record for which keys no site answered, and return the answers."""
        seen, self._latest.unanswered = verdicts
        self._failures += int(self._latest.unanswered.sum())
        try:
            self._exchange.warn_of_overfull()
        except OverfullWarning as error:
            error.answers = seen
            raise
        return seen

    def handle(self, producer: str | None = None) -> Self:
        """Return another producer over the same sites; closing it leaves them running.

        Parameters
        ----------
        producer : str, optional
            Its name, as in the constructor.

        Returns
        -------
        SlicedFilter
        """
        return self._over(self._slicing, self._exchange.sites, producer)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._over, (self._slicing, self._exchange.sites)

    @property
    def kind(self) -> Kind:
        """The kind of slicing."""
        return self._slicing.kind

    @property
    def slices(self) -> int | tuple[int, int]:
        """S, or for a diced filter S and S'."""
        return self._slicing.slices

    @property
    def producer(self) -> str:
        """Name of this producer."""
        return self._producer.name

    @property
    def number(self) -> int:
        """Number of the batch that was written last; 0 before the first."""
        return self._producer.number

    @property
    def failures(self) -> int:
        """Number of keys queried or written so far that were `unanswered`."""
        return self._failures

    @property
    def unanswered(self) -> NDArray[np.bool_]:
        """Keys of this thread's latest call for which a site did not answer, shape (n,): guessed, or not set.

        Keys are marked too if a cell decides them that a site shows unset, because the site may have lost it.
        """
        given: NDArray[np.bool_] = getattr(self._latest, "unanswered", _NOTHING[1])
        return given

    @property
    def nbytes(self) -> int:
        """Bytes of the cells of all sites that answer."""
        return sum(site["nbytes"] for site in self.status() if not isinstance(site, Failed))

    def __repr__(self) -> str:
        slicing = self._slicing
        dice = "" if slicing.dice is None else f" {slicing.dice}"
        return f"<SlicedFilter {slicing.kind}{dice} slices={slicing.slices} of {self._like!r}>"
