"""The namespace `lately` of polars expressions. The import of this module registers it."""

from typing import Any

import lately
from lately.integrations._missing import missing

try:
    import polars as pl
except ModuleNotFoundError as _error:
    raise missing("polars", "polars") from _error

if [int(part) for part in pl.__version__.split(".")[:2]] < [1, 34]:
    raise ImportError(
        f"lately.integrations.polars needs polars 1.34 or later, got {pl.__version__}: earlier ones pass the rows of "
        "all groups at once, and move filters past the marks; pip install 'polars>=1.34'"
    )

__all__ = ["Lately"]


@pl.api.register_expr_namespace("lately")
class Lately:
    """Namespace ``expression.lately``: marks the values of a column, or of a struct of columns, that were seen lately.

    For whole frames call `lately.drop_duplicates`.

    Examples
    --------
    >>> import polars as pl
    >>> import lately.integrations.polars
    >>> clicks = pl.LazyFrame({"ip": ["a", "a", "b", "a"], "time": [0, 599, 600, 2000]})
    >>> clicks.filter(~pl.col("ip").lately.duplicated(window="10min", at="time")).collect().rows()
    [('a', 0), ('b', 600), ('a', 2000)]
    """

    def __init__(self, keys: pl.Expr) -> None:
        self._keys = keys

    def duplicated(self, *, window: Any, at: "str | pl.Expr | None" = None, **options: Any) -> pl.Expr:
        """Mark the keys that were seen within the window.

        Parameters
        ----------
        window : int or span of time
            What "lately" means: a number of rows, or a span such as ``"10min"``, which needs `at`.
        at : str or Expr, optional
            The time of each row: a column, or an expression.
        **options
            `keep`, `fpr`, `refresh`, `missing`, `seed`, `filter` and `threads` of `lately.duplicated`.

        Returns
        -------
        Expr of Boolean
            True where the key was seen lately.

        Raises
        ------
        TypeError, ValueError
            If a parameter is of the wrong type or out of range. For keys and times it is raised when the query runs.

        Notes
        -----
        With `at`, rows count in the order of their times, and only rows of equal times as they stand. Without it, the
        result depends on the order of the rows. A scan, a filter and a sort have an order; a join or a ``group_by`` has
        one only with ``maintain_order``.

        The expression needs the keys and times of all rows at once, also in the streaming engine. polars moves no
        filter and no slice past it. In ``over`` and ``group_by`` each group is a stream with a window of its own. For
        more rows than memory holds, take ``LazyFrame.collect_batches`` and a `Filter`.

        Examples
        --------
        >>> import polars as pl
        >>> import lately.integrations.polars
        >>> clicks = pl.DataFrame({"ip": ["a", "a", "b", "a"], "url": ["/", "/x", "/", "/"]})
        >>> clicks.select(pl.struct("ip", "url").lately.duplicated(window=100)).to_series().to_list()
        [False, False, False, True]
        """
        # Raise for a wrong request now, not when the query runs.
        lately.duplicated([], window, at=None if at is None else [], **options)

        def marks(columns: Any) -> pl.Series:
            keys, times = columns if at is not None else (columns[0], None)
            if times is not None and len(times) != len(keys):
                raise ValueError(f"at must have one time for each of {len(keys)} keys, got {len(times)}")
            return pl.Series(keys.name, lately.duplicated(keys, window, at=times, **options), dtype=pl.Boolean)

        columns = [self._keys] if at is None else [self._keys, pl.col(at) if isinstance(at, str) else at]
        return pl.map_batches(columns, marks, return_dtype=pl.Boolean)
