"""Ray, where it is installed."""

from importlib import import_module
from typing import Any


def imported(module: str = "ray") -> Any:
    """Import Ray, or a module of it; `ImportError` names the package to install."""
    try:
        return import_module(module)
    except ImportError:
        raise ImportError("Ray is needed here: pip install 'ray[data]'") from None
