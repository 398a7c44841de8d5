"""Have I seen this key lately? Sliding-window filters in constant memory.

=====================  =================================================================
for a column or frame  `duplicated`, `drop_duplicates` (exact; no filter remains)
for an iterable        `unique`
for a stream           `Filter`, or `ExactFilter`; `once` for work done once
to choose              `plan`, `tune`
saved filters          `open`, `from_bytes`
=====================  =================================================================

The calls of a filter, for one key and for a batch:

====================  ============  ======================  ====================
what it does          one key       a batch                 the filter
====================  ============  ======================  ====================
look up               ``key in f``  ``f.query(keys)``       is unchanged
insert                ``f.add``     ``f.insert``, `update`  contains the keys
look up, then insert  ``f.seen``    ``f.duplicated(keys)``  contains the keys
====================  ============  ======================  ====================

`lately.duplicated` changes nothing; ``f.duplicated`` inserts the keys into ``f``.
"""

from importlib import import_module
from warnings import warn

from lately._core import (
    FormatError,
    Hashes,
    InternalError,
    OverfullWarning,
    __version__,
    _debug_build,
    from_bytes,
    hash_keys,
)
from lately._core import open as open
from lately.filters import (
    AgedCuckooFilter,
    AgePartitionedBloomFilter,
    BloomFilter,
    ExactFilter,
    Filter,
    GuardedEpochBloomFilter,
    Swamp,
    TimeLimitedBloomFilter,
    TimingBloomFilter,
)

if _debug_build:
    warn("a debug build of lately: every filter in it is many times slower", RuntimeWarning, stacklevel=2)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lately import baselines as baselines
    from lately import distributed as distributed
    from lately import integrations as integrations
    from lately import plot as plot
    from lately import priors as priors
    from lately._drop_duplicates import drop_duplicates
    from lately._duplicated import duplicated
    from lately._once import Claim, once
    from lately._plan import Choice, Plan, plan
    from lately._tune import Trial, Tuned, tune
    from lately._unique import unique
    from lately.priors import Probabilities, Uniform, Zipf

__all__ = [
    "AgePartitionedBloomFilter",
    "AgedCuckooFilter",
    "BloomFilter",
    "Choice",
    "Claim",
    "ExactFilter",
    "Filter",
    "FormatError",
    "GuardedEpochBloomFilter",
    "Hashes",
    "InternalError",
    "OverfullWarning",
    "Plan",
    "Probabilities",
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
    "once",
    "plan",
    "tune",
    "unique",
]
"""Without `open`, which would replace the built-in function after ``from lately import *``, and without modules."""

# Names that are imported when first used. They need NumPy, `inspect` and `typing`, whose import takes ten times as long
# as that of the filters.
_LATER = {
    "Choice": "lately._plan",
    "Claim": "lately._once",
    "Plan": "lately._plan",
    "Probabilities": "lately.priors",
    "Trial": "lately._tune",
    "Tuned": "lately._tune",
    "Uniform": "lately.priors",
    "Zipf": "lately.priors",
    "drop_duplicates": "lately._drop_duplicates",
    "duplicated": "lately._duplicated",
    "once": "lately._once",
    "plan": "lately._plan",
    "tune": "lately._tune",
    "unique": "lately._unique",
}
_MODULES = {"baselines", "distributed", "integrations", "plot", "priors"}


def __getattr__(name: str) -> object:
    found: object
    if name in _MODULES:
        found = import_module(f"lately.{name}")
    elif name in _LATER:
        found = getattr(import_module(_LATER[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_MODULES})
