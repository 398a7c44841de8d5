"""The progress of a long piece of work, for a person who watches."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module


@contextmanager
def progress(total: int | None, unit: str, show: bool | None = None) -> Iterator[Callable[[int], object]]:
    """Show a bar on standard error while the work runs. The function yielded is called with each piece that is done.

    With None the bar is shown if standard error is a terminal and tqdm is installed. With True it is always shown;
    without tqdm that is an ImportError.
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
