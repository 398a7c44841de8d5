"""Adapters to other libraries. Each is imported when it is first used, so lately needs none of these libraries.

In a clone, the extra with the adapter's name installs its library: ``pip install '.[scrapy]'``.
"""

from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lately.integrations import logging, pandas, polars, scrapy

__all__ = ["logging", "pandas", "polars", "scrapy"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; the adapters are {', '.join(__all__)}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
