"""Errors of the command, and the import of optional libraries."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CliError(Exception):
    """An error that ends a run; the message names the file, the line or the option."""


class DamagedError(Exception):
    """Compressed input is damaged or cut off."""


def optional(module: str, purpose: str) -> Any:
    """Import a library of the extra ``cli``; a `CliError` names its purpose and how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        library = module.partition(".")[0]
        raise CliError(f"{purpose} needs {library}: pip install {library}") from None
