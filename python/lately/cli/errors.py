"""What goes wrong in the command, and the libraries it can do without."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CliError(Exception):
    """What went wrong, told to a person: it names the file, the line or the option."""


class DamagedError(Exception):
    """What is compressed is damaged, or cut off."""


def optional(module: str, purpose: str) -> Any:
    """Import a library of the extra ``lately[cli]``, or say who needs it and how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        library = module.partition(".")[0]
        raise CliError(f"{purpose} needs {library}: pip install 'lately[cli]'") from None
