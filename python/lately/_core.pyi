from collections.abc import Sequence
from datetime import datetime, timedelta
from os import PathLike
from typing import Any, Final, Literal, Self, SupportsIndex, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from typing_extensions import Buffer, disjoint_base

__all__ = [
    "AgePartitionedBloomFilter",
    "BloomFilter",
    "CountingBloomFilter",
    "Filter",
    "FingerprintBuffer",
    "FormatError",
    "GeneralizedBloomFilter",
    "GuardedEpochBloomFilter",
    "Hashes",
    "Learned",
    "Slice",
    "StableBloomFilter",
    "Swamp",
    "TimeLimitedBloomFilter",
    "TimingBloomFilter",
    "__version__",
    "_from_parts",
    "expected_messages",
    "failure_rates",
    "from_bytes",
    "hash_keys",
    "least_sites",
    "open",
    "read_insertions",
    "read_moment",
    "read_moments",
    "read_span",
    "settle",
    "slice_capacity",
    "sliced_rate",
]

__version__: Final[str]

_Span: TypeAlias = str | timedelta | np.timedelta64
# One time, or a column of them.
_Moments: TypeAlias = float | datetime | np.datetime64 | Any
# None, of a Bloom filter alone: who made another has not to ask.
_MaybeNone: TypeAlias = Any

# A number, one per key, or an object with `probability(keys)` or `rate(keys)`.
_Prior: TypeAlias = ArrayLike | Any

# How a filter is sliced over several sites.
_Sliced: TypeAlias = Literal["horizontal", "vertical", "h-v", "v-h"]

class FormatError(ValueError): ...

@disjoint_base
class Filter:
    @property
    def window(self) -> int | float | _MaybeNone: ...
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
    def insert(self, keys: Any, *, at: _Moments = None, threads: int = 1) -> None: ...
    def query(self, keys: Any, *, at: _Moments = None, threads: int = 1) -> NDArray[np.bool_]: ...
    def duplicated(
        self, keys: Any, *, at: _Moments = None, refresh: bool = True, threads: int = 1
    ) -> NDArray[np.bool_]: ...
    def add(self, key: Any, *, at: _Moments = None) -> None: ...
    def __contains__(self, key: Any, /) -> bool: ...
    def false_positive_rate(self) -> float: ...
    def posterior(
        self, keys: Any, prior: _Prior, window: int | _Span | None = None, *, at: _Moments = None, threads: int = 1
    ) -> NDArray[np.float64]: ...
    def decide(
        self,
        keys: Any,
        prior: _Prior,
        false_positive: ArrayLike = 1.0,
        false_negative: ArrayLike = 1.0,
        *,
        window: int | _Span | None = None,
        at: _Moments = None,
        threads: int = 1,
    ) -> NDArray[np.bool_]: ...
    def age(
        self,
        keys: Any,
        prior: _Prior,
        kind: Literal["most_likely", "expected"] = "most_likely",
        *,
        finite: bool = False,
        at: _Moments = None,
        threads: int = 1,
    ) -> NDArray[np.float64]: ...
    def age_probability(
        self,
        keys: Any,
        prior: _Prior,
        edges: ArrayLike,
        *,
        finite: bool = False,
        at: _Moments = None,
        threads: int = 1,
    ) -> NDArray[np.float64]: ...
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
        layout: Literal["sliced", "line", "transposed"] = "sliced",
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
        positions: int | None = None,
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
        layout: Literal["sliced", "line"] = "sliced",
        capacity: int | None = None,
        lateness: _Span | None = None,
        grow: Literal["cardinality", "density"] | None = None,
        seed: int = 0,
    ) -> Self: ...
    @classmethod
    def from_parameters(
        cls,
        window: int | _Span,
        k: int,
        bpt: int,
        blocks: int,
        slice_timers: int | None = None,
        *,
        pages: int | None = None,
        lines: int = 1,
        equal_timers: int = 1,
        part_keys: int | None = None,
        part_timers: int | None = None,
        capacity: int | None = None,
        lateness: _Span | None = None,
        seed: int = 0,
    ) -> Self: ...
    @property
    def false_negative_rates(self) -> NDArray[np.float64]: ...
    @property
    def parts(self) -> int: ...
    def cells(self, keys: Any) -> NDArray[np.uint64]: ...
    def generations(self, at: _Moments, n: int) -> NDArray[np.int64]: ...
    @property
    def kept(self) -> int: ...

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
    @property
    def slice_bits(self) -> NDArray[np.uint64]: ...

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

@final
class BloomFilter(Filter):
    def __new__(
        cls,
        capacity: int,
        fpr: float | None = None,
        *,
        nbytes: int | None = None,
        partitioned: bool = False,
        seed: int = 0,
    ) -> Self: ...
    @classmethod
    def from_parameters(
        cls, capacity: int, k: int, *, bits: int | None = None, slice_bits: int | None = None, seed: int = 0
    ) -> Self: ...
    def cells(self, keys: Any) -> NDArray[np.uint64]: ...
    def generations(self, at: _Moments, n: int) -> NDArray[np.int64]: ...
    @property
    def kept(self) -> int: ...

@final
class GeneralizedBloomFilter(Filter):
    def __new__(cls, window: int, fpr: float | None = None, *, nbytes: int | None = None, seed: int = 0) -> Self: ...
    @classmethod
    def from_parameters(cls, window: int, bits: int, *, k1: int, k0: int, seed: int = 0) -> Self: ...
    def false_negative_rates(self, ages: Sequence[int] | NDArray[np.integer[Any]]) -> NDArray[np.float64]: ...

@final
class Learned:
    def __new__(cls, half_life: int, *, nbytes: int = 1048576, seed: int = 0) -> Self: ...
    @property
    def half_life(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def inserted(self) -> int: ...
    @property
    def seed(self) -> int: ...
    def insert(self, keys: Any, *, at: _Moments = None) -> None: ...
    def probability(self, keys: Any) -> NDArray[np.float64]: ...
    def rate(self, keys: Any) -> NDArray[np.float64]: ...
    def distinct(self, insertions: ArrayLike) -> NDArray[np.float64]: ...
    def to_bytes(self) -> bytes: ...
    @classmethod
    def from_bytes(cls, data: bytes) -> Self: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Hashes:
    def __new__(cls, hashes: NDArray[np.uint64], *, seed: int = 0) -> Self: ...
    @property
    def seed(self) -> int: ...
    def __len__(self) -> int: ...
    def __array__(self, dtype: DTypeLike | None = None, *, copy: bool | None = None) -> NDArray[Any]: ...
    def __getnewargs_ex__(self) -> tuple[tuple[NDArray[np.uint64]], dict[str, int]]: ...

@final
class Slice:
    def __new__(cls, like: Filter, *, part: int = 0, parts: int = 1) -> Self: ...
    @staticmethod
    def from_words(like: Filter, words: NDArray[np.uint64], *, newest: int, part: int = 0, parts: int = 1) -> Slice: ...
    @staticmethod
    def bounds(like: Filter, parts: int) -> NDArray[np.uint64]: ...
    def read(self, cells: NDArray[np.uint64]) -> NDArray[np.int64]: ...
    def set(self, cells: NDArray[np.uint64], generations: int | NDArray[np.int64]) -> None: ...
    def words(self) -> NDArray[np.uint64]: ...
    @property
    def start(self) -> int: ...
    @property
    def stop(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def k(self) -> int: ...
    @property
    def part(self) -> int: ...
    @property
    def parts(self) -> int: ...
    @property
    def fill(self) -> float: ...
    @property
    def newest(self) -> int: ...

def settle(
    cells: NDArray[np.uint64],
    last: NDArray[np.int64],
    generations: NDArray[np.int64],
    *,
    newest: int,
    kept: int,
    refresh: bool = False,
    least: int = 0,
    equal: int = 1,
    alive: NDArray[np.bool_] | None = None,
    missed: NDArray[np.int64] | None = None,
    known: NDArray[np.int8] | None = None,
) -> NDArray[np.bool_]: ...
def sliced_rate(
    kind: _Sliced, keys: int, cells: int, k: int, sites: int, *, inner: int = 1, partitioned: bool = False
) -> float: ...
def failure_rates(
    kind: _Sliced,
    k: int,
    sites: int,
    failed: int,
    density: float,
    *,
    inner: int = 1,
    on_failure: Literal["duplicate", "distinct"] | int = "duplicate",
    partitioned: bool = False,
) -> tuple[float, float]: ...
def least_sites(
    kind: Literal["horizontal", "vertical"],
    k: int,
    failed: int,
    density: float,
    *,
    fpr: float | None = None,
    fnr: float | None = None,
    on_failure: Literal["duplicate", "distinct"] | int = "duplicate",
    partitioned: bool = False,
) -> int: ...
def expected_messages(
    kind: _Sliced,
    k: int,
    sites: int,
    *,
    inner: int = 1,
    pipelined: bool = False,
    density: float = 0.5,
    duplicates: float = 0.0,
    partitioned: bool = False,
) -> float: ...
def slice_capacity(keys: int, slices: int, *, overfull: float = 0.001) -> int: ...
def hash_keys(keys: Any, *, seed: int = 0) -> NDArray[np.uint64]: ...
def read_span(value: object, name: str) -> int: ...
def read_moment(value: object) -> int: ...
def read_moments(at: Any) -> int | NDArray[np.int64]: ...
def read_insertions(values: ArrayLike) -> NDArray[np.float64]: ...
def open(path: str | PathLike[str], *, mmap: bool = False) -> Filter: ...
def from_bytes(data: Buffer) -> Filter: ...
def _from_parts(preamble: bytes, cells: Buffer) -> Filter: ...
