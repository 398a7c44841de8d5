"""Errors of the command, and the import of optional libraries."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CliError(Exception):
    """An error that ends a run. Its message names the file, the line or the option."""


class UsageError(CliError):
    """Options that are wrong or contradict each other, whatever the files contain."""


class DamagedError(Exception):
    """An error in input that is compressed and damaged or incomplete, or not text."""


def optional(module: str, purpose: str) -> Any:
    """Import an optional library. A `CliError` names its purpose and the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        library = module.partition(".")[0]
        raise CliError(f"{purpose} needs {library}: pip install {library}") from None
