"""Adapters for the tools in which streams already run, each imported when first used.

None of their libraries is needed to import lately. In a clone the extra of an adapter's name installs its library, as
in ``pip install '.[scrapy]'``.
"""

from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lately.integrations import datasets, faststream, logging, pandas, polars, scrapy

__all__ = ["datasets", "faststream", "logging", "pandas", "polars", "scrapy"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; there are {', '.join(__all__)}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
