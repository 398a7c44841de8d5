"""What a site last answered each producer, so that a batch sent twice is answered as it was the first time."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

State = dict[str, NDArray[Any]]

PRODUCERS = 1024
"""Producers a site remembers: those heard of last."""

UNKNOWN = -1
"""No answer was given yet; the others are 0 and 1."""


@dataclass(frozen=True)
class Ticket:
    """Which keys of which batch of a producer a message is about.

    Attributes
    ----------
    producer : str
    number : int
        Of the batch; a producer counts them upwards, and sends one after the other.
    index : ndarray of int64, shape (n,)
        Places of the keys in the batch, ascending.
    """

    producer: str
    number: int
    index: NDArray[np.int64]


class Memo:
    """The answers to the latest batch of each producer, key by key.

    A batch that is sent again may reach a site with other keys than the first time, since other sites answered
    meanwhile. So each key of it is remembered by its place.
    """

    def __init__(self) -> None:
        self._latest: OrderedDict[str, tuple[int, NDArray[np.int64], NDArray[np.bool_]]] = OrderedDict()

    def known(self, ticket: Ticket) -> NDArray[np.int8]:
        """Give the answers to the keys of a ticket that there are.

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
        """Remember answers, and forget those to the producer's earlier batches."""
        number, index, before = self._latest.pop(ticket.producer, (ticket.number, _NO_PLACES, _NO_ANSWERS))
        if number < ticket.number or not len(index):
            self._latest[ticket.producer] = (ticket.number, ticket.index, answers)
        else:
            union = np.union1d(index, ticket.index)
            merged = np.empty(len(union), dtype=np.bool_)
            merged[np.searchsorted(union, ticket.index)] = answers
            merged[np.searchsorted(union, index)] = before
            self._latest[ticket.producer] = (number, union, merged)
        if len(self._latest) > PRODUCERS:
            self._latest.popitem(last=False)

    def state(self) -> State:
        """Everything, as arrays."""
        latest = list(self._latest.values())
        return {
            "producers": np.array(list(self._latest), dtype=np.str_),
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
        lengths = state["lengths"]
        if not (len(lengths) == len(state["producers"]) == len(state["numbers"])) or np.any(lengths < 0):
            raise ValueError("the answers are damaged: producers and batches differ in number")
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        if not (len(state["index"]) == len(state["answers"]) == total):
            raise ValueError("the answers are damaged: they differ in number from the keys")
        for producer, number, end, length in zip(state["producers"], state["numbers"], ends, lengths, strict=True):
            part = slice(end - length, end)
            index = state["index"][part].astype(np.int64)
            if np.any(np.diff(index) <= 0):
                raise ValueError("the answers are damaged: the places of the keys do not ascend")
            memo._latest[str(producer)] = (int(number), index, state["answers"][part].astype(np.bool_))
        return memo


_NO_PLACES = np.empty(0, dtype=np.int64)
_NO_ANSWERS = np.empty(0, dtype=np.bool_)
