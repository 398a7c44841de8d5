"""What a site last answered each producer, so that a batch sent twice gets the same answers."""

import json
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

State = dict[str, NDArray[Any]]

_Places = NDArray[np.integer[Any]]

PRODUCERS = 2**18
"""Most producers that a site remembers, with a number each, or with answers; 90 MB. It takes no more than these."""

KEYS = 2**23
"""Most keys of all of them together whose answers are remembered: 50 MB, which every checkpoint carries."""

HOUR, WEEK = 3600.0, 7 * 86_400.0
"""Seconds after which a producer is forgotten that was not heard of: one of a handle or a task, and one with a name."""

UNKNOWN = -1
"""No answer was given yet; the others are 0 and 1."""


@dataclass(frozen=True)
class Ticket:
    """The keys of a producer's batch that a message is about.

    Attributes
    ----------
    producer : str
    number : int
        Of the batch; a producer counts them upwards, and sends one after the other.
    index : ndarray of int32, shape (n,)
        Places of the keys in the batch, ascending; of any integer type. They travel with every message.
    lasting : bool
        Whether the producer has a name of its own, under which it may come back days later.

    Raises
    ------
    ValueError
        If the number does not fit into 63 bits, or the places not into 31, or do not ascend.
    """

    producer: str
    number: int
    index: _Places
    lasting: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.number < 2**63:
            raise ValueError(f"the number of a batch must be from 0 to 2**63 - 1, not {self.number}")
        if not np.all(self.index[1:] > self.index[:-1]):
            raise ValueError("the places of a batch's keys must ascend")
        if len(self.index) and not 0 <= self.index[0] <= self.index[-1] < 2**31:
            raise ValueError(f"a batch has places from 0 to 2**31 - 1, not {self.index[0]} to {self.index[-1]}")
        object.__setattr__(self, "index", self.index.astype(np.int32))


class ForgottenError(RuntimeError):
    """A batch came again, of which the site no longer knows what it answered."""


class TooManyProducersError(RuntimeError):
    """A site would have to forget a producer that may yet send its batch again."""


@dataclass(frozen=True)
class _Answers:
    """What is remembered of a producer.

    Attributes
    ----------
    number : int
        Of its latest batch.
    index : ndarray of int32, shape (n,)
    marks : ndarray of uint16, shape (n,)
        15 bits that check each key, and the answer in the lowest; neither of them where the answers are forgotten.
    heard : float
        Seconds since 1970.
    forgotten : bool
    """

    number: int
    index: _Places
    marks: NDArray[np.uint16]
    heard: float
    forgotten: bool = False


class Memo:
    """The answers to the latest batch of each producer, key by key.

    A batch that is sent again may reach a site with other keys than the first time, since other sites answered
    meanwhile. So answers are remembered by each key's place.

    What is forgotten is not guessed. Beyond `KEYS` answers the longest unheard producers keep but their number, and
    their batch is refused when it comes again. Names outlast handles and tasks.
    """

    def __init__(self) -> None:
        # By whether they last; the longest unheard first.
        self._latest: dict[bool, OrderedDict[str, _Answers]] = {False: OrderedDict(), True: OrderedDict()}
        self._keys = 0

    def __len__(self) -> int:
        """Producers remembered."""
        return sum(map(len, self._latest.values()))

    def known(self, ticket: Ticket, keys: NDArray[np.uint64] | None = None) -> NDArray[np.int8]:
        """Give the remembered answers to the keys of a ticket.

        Parameters
        ----------
        ticket : Ticket
        keys : ndarray of uint64, shape (n,), optional
            Hashes or cells, to be compared with what came at their places.

        Returns
        -------
        ndarray of int8, shape (n,)
            0 or 1, or `UNKNOWN`.

        Raises
        ------
        ValueError
            If the producer has sent a later batch, or other keys under this number.
        ForgottenError
            If the answers are forgotten.
        """
        known = np.full(len(ticket.index), UNKNOWN, dtype=np.int8)
        latest = self._latest[ticket.lasting].get(ticket.producer)
        if latest is None or latest.number < ticket.number:
            return known
        batch = f"batch {ticket.number} of producer {ticket.producer!r}"
        if latest.number > ticket.number:
            raise ValueError(f"{batch} comes after its batch {latest.number}")
        if latest.forgotten:
            raise ForgottenError(
                f"{batch} comes again, and what this site answered is forgotten: it remembers {KEYS:,} keys. If it is "
                "sent under a later number, keys that were new may count as seen"
            )
        if len(latest.index):
            place = np.minimum(np.searchsorted(latest.index, ticket.index), len(latest.index) - 1)
            found = latest.index[place] == ticket.index
            marks = latest.marks[place[found]]
            if keys is not None and np.any(marks >> 1 != _checks(keys)[found]):
                raise ValueError(
                    f"{batch} comes again with other keys: a number stands for the same keys in the same order"
                )
            known[found] = marks & 1
        return known

    def admit(self, ticket: Ticket) -> None:
        """Make room for a producer.

        Raises
        ------
        TooManyProducersError
            If there is none.
        """
        if ticket.producer in self._latest[ticket.lasting] or len(self) < PRODUCERS:
            return
        now = time.time()
        for latest, patience in zip(self._latest.values(), (HOUR, WEEK), strict=True):
            while latest and next(iter(latest.values())).heard < now - patience:
                self._keys -= len(latest.popitem(last=False)[1].index)
        if len(self) >= PRODUCERS:
            raise TooManyProducersError(
                f"this site remembers {PRODUCERS:,} producers of the last hour, or week if they have names, and can "
                "take no other without forgetting one in silence: let fewer handles, or tasks, send larger batches"
            )

    def keep(
        self, ticket: Ticket, answers: NDArray[np.bool_], keys: NDArray[np.uint64], heard: float | None = None
    ) -> None:
        """Remember answers, and forget those to the producer's earlier batches. Answers already there stay.

        `heard` is when; the default is now.
        """
        before = self._latest[ticket.lasting].pop(ticket.producer, None)
        marks = (_checks(keys) << 1 | answers).astype(np.uint16)
        # A copy: a message's arrays may lie in memory that is shared, or changed by its sender.
        index = ticket.index.copy()
        if before is not None:
            self._keys -= len(before.index)
            if before.number == ticket.number and len(before.index):
                # Of two equal places the first is the one already there.
                places = np.concatenate([before.index, index])
                order = np.argsort(places, kind="stable")
                places = places[order]
                first = np.append(True, places[1:] != places[:-1])
                index, marks = places[first], np.concatenate([before.marks, marks])[order][first]
        self._add(
            ticket.producer,
            _Answers(ticket.number, index, marks, time.time() if heard is None else heard),
            lasting=ticket.lasting,
        )

    def _add(self, producer: str, answers: _Answers, *, lasting: bool) -> None:
        self._latest[lasting][producer] = answers
        self._keys += len(answers.index)
        if self._keys <= KEYS:
            return
        for latest in self._latest.values():
            for other, theirs in latest.items():
                if other != producer and len(theirs.index):
                    self._keys -= len(theirs.index)
                    latest[other] = _Answers(theirs.number, _NO_PLACES, _NO_MARKS, theirs.heard, forgotten=True)
                    if self._keys <= KEYS:
                        return

    def state(self) -> State:
        """Everything, as arrays."""
        latest = [each for some in self._latest.values() for each in some.values()]
        return {
            "producers": np.frombuffer(json.dumps([list(some) for some in self._latest.values()]).encode(), np.uint8),
            "numbers": np.array([each.number for each in latest], dtype=np.int64),
            "heard": np.array([each.heard for each in latest], dtype=np.float64),
            "forgotten": np.array([each.forgotten for each in latest], dtype=np.bool_),
            "lengths": np.array([len(each.index) for each in latest], dtype=np.int64),
            "index": np.concatenate([_NO_PLACES, *(each.index for each in latest)]),
            "marks": np.concatenate([_NO_MARKS, *(each.marks for each in latest)]),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> "Memo":
        """Make it again.

        Raises
        ------
        ValueError, KeyError
            If the arrays do not fit together.
        """
        memo = cls()
        passing, lasting = json.loads(state["producers"].tobytes())
        producers = [(name, False) for name in passing] + [(name, True) for name in lasting]
        lengths, numbers, heard, forgotten = (state[name] for name in ("lengths", "numbers", "heard", "forgotten"))
        if {len(lengths), len(numbers), len(heard), len(forgotten)} != {len(producers)} or np.any(lengths < 0):
            raise ValueError("the answers are damaged: producers and batches differ in number")
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        if not (len(state["index"]) == len(state["marks"]) == total):
            raise ValueError("the answers are damaged: they differ in number from the keys")
        for i, (producer, lasts) in enumerate(producers):
            part = slice(ends[i] - lengths[i], ends[i])
            index = state["index"][part].astype(np.int32)
            if np.any(np.diff(index) <= 0):
                raise ValueError("the answers are damaged: the places of the keys do not ascend")
            marks = state["marks"][part].astype(np.uint16)
            answers = _Answers(int(numbers[i]), index, marks, float(heard[i]), bool(forgotten[i]))
            memo._add(str(producer), answers, lasting=lasts)
        return memo


def _checks(keys: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """15 bits of each key, of hashes as well as of the numbers of cells."""
    return (keys * _ODD >> _KEPT).astype(np.uint16)


_ODD, _KEPT = np.uint64(0x9E3779B97F4A7C15), np.uint64(49)
_NO_PLACES = np.empty(0, dtype=np.int32)
_NO_MARKS = np.empty(0, dtype=np.uint16)
