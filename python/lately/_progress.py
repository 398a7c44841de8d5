"""A progress bar for long work."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module


@contextmanager
def progress(total: int | None, unit: str, show: bool | None = None) -> Iterator[Callable[[int], object]]:
    """Show a bar on standard error. Call the function that it yields with the size of each piece that is done.

    With None the bar appears if standard error is a terminal and tqdm is installed. With True it always appears, and
    `ImportError` is raised without tqdm.
    """
    wanted = sys.stderr is not None and sys.stderr.isatty() if show is None else show
    try:
        tqdm = import_module("tqdm").tqdm if wanted else None
    except ImportError:
        if show:
            raise ImportError("progress=True needs tqdm: pip install tqdm") from None
        tqdm = None
    if tqdm is None:
        yield lambda count: None
        return
    with tqdm(total=total, unit=unit, unit_scale=True, leave=False) as bar:
        yield bar.update
