"""What a site last answered each producer, so that a batch sent twice gets the same answers."""

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

State = dict[str, NDArray[Any]]

_Places = NDArray[np.integer[Any]]

PRODUCERS = 1024
"""Most producers that a site remembers: the latest ones."""

KEYS = 2**23
"""Most keys of all of them together: 42 MB, which every checkpoint carries. The latest batch is always kept."""

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

    Raises
    ------
    ValueError
        If the number does not fit into 63 bits, or the places not into 31, or do not ascend.
    """

    producer: str
    number: int
    index: _Places

    def __post_init__(self) -> None:
        if not 0 <= self.number < 2**63:
            raise ValueError(f"the number of a batch must be from 0 to 2**63 - 1, not {self.number}")
        if not np.all(self.index[1:] > self.index[:-1]):
            raise ValueError("the places of a batch's keys must ascend")
        if len(self.index) and not 0 <= self.index[0] <= self.index[-1] < 2**31:
            raise ValueError(f"a batch has places from 0 to 2**31 - 1, not {self.index[0]} to {self.index[-1]}")
        object.__setattr__(self, "index", self.index.astype(np.int32))


class Memo:
    """The answers to the latest batch of each producer, key by key.

    A batch that is sent again may reach a site with other keys than the first time, since other sites answered
    meanwhile. So answers are remembered by each key's place.
    """

    def __init__(self) -> None:
        self._latest: OrderedDict[str, tuple[int, _Places, NDArray[np.bool_]]] = OrderedDict()
        self._keys = 0

    def __len__(self) -> int:
        """Producers remembered."""
        return len(self._latest)

    def known(self, ticket: Ticket) -> NDArray[np.int8]:
        """Give the remembered answers to the keys of a ticket.

        Returns
        -------
        ndarray of int8, shape (n,)
            0 or 1, or `UNKNOWN`.

        Raises
        ------
        ValueError
            If the producer has sent a later batch.
        """
        known = np.full(len(ticket.index), UNKNOWN, dtype=np.int8)
        number, index, answers = self._latest.get(ticket.producer, (ticket.number - 1, _NO_PLACES, _NO_ANSWERS))
        if number > ticket.number:
            raise ValueError(f"batch {ticket.number} of producer {ticket.producer!r} comes after its batch {number}")
        if number == ticket.number and len(index):
            place = np.searchsorted(index, ticket.index)
            found = index[np.minimum(place, len(index) - 1)] == ticket.index
            known[found] = answers[place[found]]
        return known

    def keep(self, ticket: Ticket, answers: NDArray[np.bool_]) -> None:
        """Remember answers, and forget those to the producer's earlier batches. Answers already there stay."""
        number, index, before = self._latest.pop(ticket.producer, (ticket.number, _NO_PLACES, _NO_ANSWERS))
        self._keys -= len(index)
        if number < ticket.number or not len(index):
            # Copies: a message's arrays may lie in memory that is shared, or changed by its sender.
            self._add(ticket.producer, ticket.number, ticket.index.copy(), answers.copy())
        else:
            # Of two equal places the first is the one already there.
            places = np.concatenate([index, ticket.index])
            order = np.argsort(places, kind="stable")
            places = places[order]
            first = np.append(True, places[1:] != places[:-1])
            self._add(ticket.producer, number, places[first], np.concatenate([before, answers])[order][first])

    def _add(self, producer: str, number: int, index: _Places, answers: NDArray[np.bool_]) -> None:
        self._latest[producer] = (number, index, answers)
        self._keys += len(index)
        while len(self._latest) > PRODUCERS or (self._keys > KEYS and len(self._latest) > 1):
            _, (_, forgotten, _) = self._latest.popitem(last=False)
            self._keys -= len(forgotten)

    def state(self) -> State:
        """Everything, as arrays."""
        latest = list(self._latest.values())
        return {
            "producers": np.frombuffer(json.dumps(list(self._latest)).encode(), dtype=np.uint8),
            "numbers": np.array([number for number, _, _ in latest], dtype=np.int64),
            "lengths": np.array([len(index) for _, index, _ in latest], dtype=np.int64),
            "index": np.concatenate([_NO_PLACES, *(index for _, index, _ in latest)]),
            "answers": np.concatenate([_NO_ANSWERS, *(answers for _, _, answers in latest)]),
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
        lengths, producers = state["lengths"], json.loads(state["producers"].tobytes())
        if not (len(lengths) == len(producers) == len(state["numbers"])) or np.any(lengths < 0):
            raise ValueError("the answers are damaged: producers and batches differ in number")
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        if not (len(state["index"]) == len(state["answers"]) == total):
            raise ValueError("the answers are damaged: they differ in number from the keys")
        for producer, number, end, length in zip(producers, state["numbers"], ends, lengths, strict=True):
            part = slice(end - length, end)
            index = state["index"][part].astype(np.int32)
            if np.any(np.diff(index) <= 0):
                raise ValueError("the answers are damaged: the places of the keys do not ascend")
            memo._add(str(producer), int(number), index, state["answers"][part].astype(np.bool_))
        return memo


_NO_PLACES = np.empty(0, dtype=np.int32)
_NO_ANSWERS = np.empty(0, dtype=np.bool_)
