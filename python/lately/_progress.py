"""A progress bar for long work."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module


@contextmanager
def progress(total: int | None, unit: str, *, show: bool = True) -> Iterator[Callable[[int], object]]:
    """Show a bar on standard error, if that is a terminal and tqdm is installed.

    Call the function that it yields with the size of each piece that is done.
    """
    try:
        tqdm = import_module("tqdm").tqdm if show and sys.stderr is not None and sys.stderr.isatty() else None
    except ImportError:
        tqdm = None
    if tqdm is None:
        yield lambda count: None
        return
    with tqdm(total=total, unit=unit, unit_scale=True, leave=False) as bar:
        yield bar.update
