from datetime import datetime, timedelta
from os import PathLike
from typing import Any, Final, Literal, Self, SupportsIndex, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer, disjoint_base

__all__ = [
    "AgePartitionedBloomFilter",
    "CountingBloomFilter",
    "Filter",
    "FingerprintBuffer",
    "FormatError",
    "GuardedEpochBloomFilter",
    "StableBloomFilter",
    "Swamp",
    "TimeLimitedBloomFilter",
    "TimingBloomFilter",
    "__version__",
    "_from_parts",
    "from_bytes",
    "hash_keys",
    "open",
]

__version__: Final[str]

_Span: TypeAlias = str | timedelta | np.timedelta64
# One time, or a column of them.
_Moments: TypeAlias = float | datetime | np.datetime64 | Any

class FormatError(ValueError): ...

@disjoint_base
class Filter:
    @property
    def window(self) -> int | float: ...
    @property
    def slack(self) -> int | float: ...
    @property
    def lateness(self) -> float | None: ...
    @property
    def capacity(self) -> int: ...
    @property
    def fpr(self) -> float: ...
    @property
    def npws(self) -> float: ...
    @property
    def expected_accesses(self) -> dict[str, float]: ...
    @property
    def cache_lines(self) -> dict[str, float]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def bits_per_key(self) -> float: ...
    @property
    def inserted(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def parameters(self) -> dict[str, int]: ...
    @property
    def fill(self) -> NDArray[np.float64]: ...
    def insert(self, keys: Any, *, at: _Moments = None) -> None: ...
    def query(self, keys: Any, *, at: _Moments = None, threads: int = 1) -> NDArray[np.bool_]: ...
    def duplicated(self, keys: Any, *, at: _Moments = None, refresh: bool = True) -> NDArray[np.bool_]: ...
    def add(self, key: Any, *, at: _Moments = None) -> None: ...
    def __contains__(self, key: Any, /) -> bool: ...
    def false_positive_rate(self) -> float: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    def to_bytes(self) -> bytes: ...
    def union(self, other: Filter) -> Self: ...
    def copy(self) -> Self: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any) -> Self: ...
    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]: ...

@final
class AgePartitionedBloomFilter(Filter):
    def __new__(
        cls,
        window: int | _Span,
        fpr: float | None = None,
        *,
        nbytes: int | None = None,
        slack: int | _Span | None = None,
        block_bits: Literal[64, 512] | None = None,
        layout: Literal["sliced", "line"] = "sliced",
        capacity: int | None = None,
        lateness: _Span | None = None,
        seed: int = 0,
    ) -> Self: ...
    @classmethod
    def from_parameters(
        cls,
        window: int | _Span,
        k: int,
        l: int,
        *,
        slice_bits: int | None = None,
        blocks: int | None = None,
        block_bits: Literal[64, 512] = 512,
        parts: Literal[1, 2, 4, 8] = 8,
        pages: int | None = None,
        lines: Literal[1, 2, 3, 4] = 1,
        capacity: int | None = None,
        lateness: _Span | None = None,
        seed: int = 0,
    ) -> Self: ...

@final
class GuardedEpochBloomFilter(Filter):
    def __new__(
        cls,
        window: int | _Span,
        fpr: float | None = None,
        *,
        nbytes: int | None = None,
        slack: int | _Span | None = None,
        block_bits: Literal[64, 512] | None = None,
        layout: Literal["sliced", "line"] = "sliced",
        capacity: int | None = None,
        lateness: _Span | None = None,
        seed: int = 0,
    ) -> Self: ...
    @classmethod
    def from_parameters(
        cls,
        window: int | _Span,
        r: int,
        *,
        k: int | None = None,
        segment_bits: int | None = None,
        blocks: int | None = None,
        block_bits: Literal[64, 512] = 512,
        parts: Literal[1, 2, 4, 8] = 8,
        pages: int | None = None,
        lines: Literal[1, 2, 3, 4] = 1,
        capacity: int | None = None,
        lateness: _Span | None = None,
        seed: int = 0,
    ) -> Self: ...

@final
class TimingBloomFilter(Filter):
    def __new__(
        cls,
        window: int | _Span,
        fpr: float | None = None,
        *,
        nbytes: int | None = None,
        slack: int | _Span | None = None,
        capacity: int | None = None,
        lateness: _Span | None = None,
        seed: int = 0,
    ) -> Self: ...
    @classmethod
    def from_parameters(
        cls,
        window: int | _Span,
        k: int,
        bpt: int,
        blocks: int,
        slice_timers: int,
        *,
        equal_timers: int = 1,
        capacity: int | None = None,
        lateness: _Span | None = None,
        seed: int = 0,
    ) -> Self: ...
    @property
    def false_negative_rates(self) -> NDArray[np.float64]: ...

@final
class TimeLimitedBloomFilter(Filter):
    def __new__(
        cls,
        window: _Span,
        fpr: float,
        *,
        capacity: int | None = None,
        slack: _Span | None = None,
        lateness: _Span | None = None,
        seed: int = 0,
    ) -> Self: ...
    @classmethod
    def from_parameters(
        cls,
        window: _Span,
        k: int,
        l: int,
        *,
        slice_bits: int,
        capacity: int | None = None,
        lateness: _Span | None = None,
        seed: int = 0,
    ) -> Self: ...

@final
class FingerprintBuffer(Filter):
    def __new__(cls, window: int, fpr: float | None = None, *, nbytes: int | None = None, seed: int = 0) -> Self: ...
    @classmethod
    def from_parameters(cls, window: int, fingerprint_bits: int, *, seed: int = 0) -> Self: ...

@final
class Swamp(Filter):
    def __new__(cls, window: int, fpr: float | None = None, *, nbytes: int | None = None, seed: int = 0) -> Self: ...
    @classmethod
    def from_parameters(cls, window: int, slots: int, remainder_bits: int, *, seed: int = 0) -> Self: ...
    def count(self, keys: Any) -> NDArray[np.uint64]: ...
    def distinct(self) -> float: ...

@final
class CountingBloomFilter(Filter):
    def __new__(cls, window: int, fpr: float | None = None, *, nbytes: int | None = None, seed: int = 0) -> Self: ...
    @classmethod
    def from_parameters(cls, window: int, k: int, slice_cells: int, *, seed: int = 0) -> Self: ...

@final
class StableBloomFilter(Filter):
    def __new__(cls, window: int, fpr: float | None = None, *, nbytes: int | None = None, seed: int = 0) -> Self: ...
    @classmethod
    def from_parameters(
        cls, window: int, k: int, slice_cells: int, *, bits: Literal[1, 2, 4, 8], decrements: int, seed: int = 0
    ) -> Self: ...

def hash_keys(keys: Any, *, seed: int = 0) -> NDArray[np.uint64]: ...
def open(path: str | PathLike[str], *, mmap: bool = False) -> Filter: ...
def from_bytes(data: Buffer) -> Filter: ...
def _from_parts(preamble: bytes, cells: Buffer) -> Filter: ...
