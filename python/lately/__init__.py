"""Have I seen this key lately? Sliding-window filters in constant memory.

The shortest way in is `duplicated`, for a whole column. For a stream make a filter, such as
`AgePartitionedBloomFilter`, and pass it one batch after another.
"""

from importlib import import_module
from warnings import warn

from lately._core import (
    Filter,
    FormatError,
    Hashes,
    InternalError,
    Learned,
    __version__,
    _debug_build,
    from_bytes,
    hash_keys,
    open,
)
from lately.filters import (
    AgedQuotientFilter,
    AgePartitionedBloomFilter,
    BloomFilter,
    CountingBloomFilter,
    FingerprintBuffer,
    GeneralizedBloomFilter,
    GuardedEpochBloomFilter,
    StableBloomFilter,
    Swamp,
    TimeLimitedBloomFilter,
    TimingBloomFilter,
)

if _debug_build:
    warn("a debug build of lately: every filter in it is many times slower", RuntimeWarning, stacklevel=2)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lately import integrations as integrations
    from lately import plot
    from lately._drop_duplicates import drop_duplicates
    from lately._duplicated import duplicated
    from lately._plan import Choice, Plan, plan
    from lately._tune import Trial, Tuned, tune
    from lately._unique import unique
    from lately.priors import DistinctCurve, Probabilities, Uniform, Zipf

__all__ = [
    "AgePartitionedBloomFilter",
    "AgedQuotientFilter",
    "BloomFilter",
    "Choice",
    "CountingBloomFilter",
    "DistinctCurve",
    "Filter",
    "FingerprintBuffer",
    "FormatError",
    "GeneralizedBloomFilter",
    "GuardedEpochBloomFilter",
    "Hashes",
    "InternalError",
    "Learned",
    "Plan",
    "Probabilities",
    "StableBloomFilter",
    "Swamp",
    "TimeLimitedBloomFilter",
    "TimingBloomFilter",
    "Trial",
    "Tuned",
    "Uniform",
    "Zipf",
    "__version__",
    "drop_duplicates",
    "duplicated",
    "from_bytes",
    "hash_keys",
    "open",
    "plan",
    "plot",
    "tune",
    "unique",
]

# Names that are imported when first used: they need NumPy, `inspect` and `typing`, which take ten times as long to
# import as the filters.
_LATER = {
    "Choice": "lately._plan",
    "DistinctCurve": "lately.priors",
    "Plan": "lately._plan",
    "Probabilities": "lately.priors",
    "Trial": "lately._tune",
    "Tuned": "lately._tune",
    "Uniform": "lately.priors",
    "Zipf": "lately.priors",
    "drop_duplicates": "lately._drop_duplicates",
    "duplicated": "lately._duplicated",
    "integrations": "lately",
    "plan": "lately._plan",
    "plot": "lately",
    "tune": "lately._tune",
    "unique": "lately._unique",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _LATER[name]
    found: object = import_module(f"lately.{name}") if home == "lately" else getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
