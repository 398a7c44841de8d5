"""The result cache: a site's latest answers to each producer, so that a batch sent twice gets the same answers."""

import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately.distributed._sites.errors import ForgottenError, TooManyProducersError
from lately.distributed._sites.frames import LENGTHS, decode_frame, encode_frame

# Arrays, and lists and mappings of JSON, by name.
State = dict[str, Any]

_Places = NDArray[np.integer[Any]]

# Greatest number of producers that a site remembers, with or without answers: 90 MB. It accepts no more than these.
PRODUCERS = 2**18
# Greatest number of keys, of all producers together, whose answers are remembered: 50 MB in every checkpoint.
KEYS = 2**23
# Seconds after which a silent producer is forgotten: that of a handle or a task, and one with a name.
HOUR, WEEK = 3600.0, 7 * 86_400.0
# Fields of answers in a checkpoint: a number for each producer, and the joined arrays of all producers.
_EACH = {"number": np.int64, "heard": np.float64, "forgotten": np.bool_}
_JOINED = {"index": np.int32, "marks": np.uint16, "share": np.uint8}
_NONE: dict[str, NDArray[Any]] = {name: np.empty(0, dtype) for name, dtype in _JOINED.items()}
# Stands for an answer that was not given yet; answers are 0 and 1.
UNKNOWN = -1


@dataclass(frozen=True)
class RequestId:
    """Identifies the keys of a producer's batch that a message is about.

    A producer counts its batches upwards, and sends one after the other. `index` has the places of the keys in the
    batch, ascending, which travel with every message as int32. None stands for all keys that the batch has for the
    site; their answer is then remembered as a whole. A `lasting` producer has a name, under which it may come back days
    later.
    """

    producer: str
    number: int
    index: _Places | None
    lasting: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.number < 2**63:
            raise ValueError(f"the number of a batch must be from 0 to 2**63 - 1, not {self.number}")
        if self.index is None:
            return
        if not np.all(self.index[1:] > self.index[:-1]):
            raise ValueError("the places of a batch's keys must ascend")
        if len(self.index) and not 0 <= self.index[0] <= self.index[-1] < 2**31:
            raise ValueError(f"a batch has places from 0 to 2**31 - 1, not {self.index[0]} to {self.index[-1]}")
        object.__setattr__(self, "index", self.index.astype(np.int32))

    @property
    def plain(self) -> tuple[Any, ...]:
        """The fields, as they are sent."""
        return self.producer, self.number, self.index, self.lasting

    def of_cells(self, rows: NDArray[np.int64], k: int) -> "RequestId":
        """Return the request for cells of these keys, k of each: cell j of key i has the place ``i * k + j``."""
        assert self.index is not None
        return replace(self, index=self.index[rows // k].astype(np.int64) * k + rows % k)


@dataclass(frozen=True)
class _Answers:
    """The answers remembered for a producer, with the number of its latest batch and its time, in seconds since 1970.

    A mark has 15 bits that check a key, and the answer in the lowest bit. A `share` is the answer to all keys that the
    batch had for the site, as a frame, and a checksum of these keys; then there is no index.
    """

    number: int
    heard: float
    forgotten: bool = False
    index: _Places = field(default_factory=lambda: _NONE["index"])
    marks: NDArray[np.uint16] = field(default_factory=lambda: _NONE["marks"])
    share: NDArray[np.uint8] = field(default_factory=lambda: _NONE["share"])

    @property
    def size(self) -> int:
        return len(self.index) + len(self.share)


class ResultCache:
    """The answers to the latest batch of each producer, key by key.

    A batch that is sent again may reach a site with other keys than the first time, because other sites answered
    meanwhile. So answers are remembered by the place of each key.

    Forgotten answers are not guessed. Beyond `KEYS` answers, only the numbers of the producers that were silent longest
    are kept, and their batch is rejected when it comes again. Names outlast handles and tasks.
    """

    def __init__(self) -> None:
        # By whether producers last; those that were silent longest come first.
        self._latest: dict[bool, OrderedDict[str, _Answers]] = {False: OrderedDict(), True: OrderedDict()}
        self._keys = 0

    def __len__(self) -> int:
        """Return the number of remembered producers."""
        return sum(map(len, self._latest.values()))

    def known(self, request: RequestId, keys: NDArray[np.uint64] | None = None) -> NDArray[np.int8]:
        """Return the remembered answers to the keys of a request: 0 or 1, or `UNKNOWN`.

        `keys` are hashes or cells, to be compared with those that came at their places. Raises `ValueError` if the
        producer has sent a later batch, or other keys under this number, `ForgottenError` if the answers are forgotten.
        """
        assert request.index is not None
        known = np.full(len(request.index), UNKNOWN, dtype=np.int8)
        latest = self._of(request)
        if latest is not None and len(latest.index):
            place = np.minimum(np.searchsorted(latest.index, request.index), len(latest.index) - 1)
            found = latest.index[place] == request.index
            marks = latest.marks[place[found]]
            if keys is not None and np.any(marks >> 1 != _checks(keys)[found]):
                raise ValueError(_other(request))
            known[found] = marks & 1
        return known

    def share(self, request: RequestId, keys: NDArray[Any] | None = None) -> Any:
        """Return the remembered answer to all keys of a batch for this site, or None; raise the errors of `known`."""
        latest = self._of(request)
        if latest is None:
            return None
        share = latest.share.tobytes()
        start = LENGTHS.size + LENGTHS.unpack_from(share)[0]
        summed, answer = decode_frame(share[LENGTHS.size : start], share[start:])
        if keys is not None and summed != _sum(keys):
            raise ValueError(_other(request))
        return tuple(answer)

    def _of(self, request: RequestId) -> _Answers | None:
        """Return the remembered answers to a request's batch."""
        latest = self._latest[request.lasting].get(request.producer)
        if latest is None or latest.number < request.number:
            return None
        if latest.number > request.number:
            raise ValueError(f"{_batch(request)} comes after its batch {latest.number}")
        if latest.forgotten:
            raise ForgottenError(
                f"{_batch(request)} comes again, and what this site answered is forgotten: it remembers {KEYS:,} keys. "
                "If it is sent under a later number, keys that were new may count as seen"
            )
        if (request.index is None) != (len(latest.share) > 0):
            raise ValueError(f"{_batch(request)} comes again in another way: with other `refresh` or `offsets`")
        return latest

    def admit(self, request: RequestId) -> None:
        """Make room for a producer; raise `TooManyProducersError` if there is none."""
        if request.producer in self._latest[request.lasting] or len(self) < PRODUCERS:
            return
        now = time.time()
        for latest, patience in zip(self._latest.values(), (HOUR, WEEK), strict=True):
            while latest and next(iter(latest.values())).heard < now - patience:
                self._keys -= latest.popitem(last=False)[1].size
        if len(self) >= PRODUCERS:
            raise TooManyProducersError(
                f"this site remembers {PRODUCERS:,} producers of the last hour, or week if they have names, and can "
                "take no other without forgetting one in silence: let fewer handles, or tasks, send larger batches"
            )

    def keep(self, request: RequestId, answers: Any, keys: NDArray[Any], heard: float | None = None) -> None:
        """Remember the answers to keys, or to all keys that a batch had for this site; `heard` is now by default.

        Answers to earlier batches of the producer are forgotten. Existing answers stay.
        """
        before = self._latest[request.lasting].pop(request.producer, None)
        self._keys -= 0 if before is None else before.size
        heard = time.time() if heard is None else heard
        if request.index is None:
            share = np.frombuffer(b"".join(encode_frame((_sum(keys), answers))), np.uint8)
            self._add(request, _Answers(request.number, heard, share=share))
            return
        marks = (_checks(keys) << 1 | answers).astype(np.uint16)
        # Copied, because a message's arrays may lie in memory that is shared, or that its sender changes.
        index = request.index.copy()
        if before is not None and before.number == request.number and len(before.index):
            # If two places are equal, the existing answer comes first.
            index, first = np.unique(np.concatenate([before.index, index]), return_index=True)
            marks = np.concatenate([before.marks, marks])[first]
        self._add(request, _Answers(request.number, heard, index=index, marks=marks))

    def _add(self, request: RequestId, answers: _Answers) -> None:
        self._latest[request.lasting][request.producer] = answers
        self._keys += answers.size
        if self._keys <= KEYS:
            return
        for latest in self._latest.values():
            for other, theirs in latest.items():
                if other != request.producer and theirs.size:
                    self._keys -= theirs.size
                    latest[other] = _Answers(theirs.number, theirs.heard, forgotten=True)
                    if self._keys <= KEYS:
                        return

    def state(self) -> State:
        """Return all answers, as arrays."""
        latest = [each for some in self._latest.values() for each in some.values()]
        state: State = {"producers": [list(some) for some in self._latest.values()]}
        for name, dtype in _EACH.items():
            state[name] = np.array([getattr(each, name) for each in latest], dtype)
        for name in _JOINED:
            parts = [getattr(each, name) for each in latest]
            state[name] = np.concatenate([_NONE[name], *parts])
            state[f"{name} lengths"] = np.array(list(map(len, parts)), dtype=np.int64)
        return state

    @classmethod
    def from_state(cls, state: State) -> "ResultCache":
        """Load what `state` returned; raise `ValueError` or `KeyError` if the arrays do not fit together."""
        results = cls()
        producers = [(name, lasting) for lasting, names in enumerate(state["producers"]) for name in names]
        columns: dict[str, list[Any]] = {name: state[name].tolist() for name in _EACH}
        for name, dtype in _JOINED.items():
            joined, lengths = state[name], state[f"{name} lengths"]
            if np.any(lengths < 0) or lengths.sum() != len(joined):
                raise ValueError("the answers are damaged: they differ in number from the keys")
            ends = np.cumsum(lengths)
            columns[name] = [joined[i:j].astype(dtype) for i, j in zip(ends - lengths, ends, strict=True)]
        if {len(column) for column in columns.values()} != {len(producers)}:
            raise ValueError("the answers are damaged: producers and batches differ in number")
        for (producer, lasting), values in zip(producers, zip(*columns.values(), strict=True), strict=True):
            answers = _Answers(**dict(zip(columns, values, strict=True)))
            if len(answers.index) != len(answers.marks) or np.any(np.diff(answers.index) <= 0):
                raise ValueError("the answers are damaged: the places of the keys do not ascend")
            results._add(RequestId(str(producer), 0, None, bool(lasting)), answers)
        return results


def _batch(request: RequestId) -> str:
    return f"batch {request.number} of producer {request.producer!r}"


def _other(request: RequestId) -> str:
    return f"{_batch(request)} comes again with other keys: a number stands for the same keys in the same order"


def _sum(keys: NDArray[Any]) -> int:
    return int.from_bytes(blake2b(keys.tobytes(), digest_size=7).digest())


def _checks(keys: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Return 15 bits of each key, of hashes as well as of the numbers of cells."""
    return (keys * _ODD >> _KEPT).astype(np.uint16)


_ODD, _KEPT = np.uint64(0x9E3779B97F4A7C15), np.uint64(49)
