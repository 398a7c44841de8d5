"""The accessor `lately` of pandas frames and columns. The import of this module registers it."""

from typing import Any

import lately
from lately.integrations._missing import missing

try:
    import pandas as pd
except ModuleNotFoundError as _error:
    raise missing("pandas", "pandas") from _error

__all__ = ["Lately"]


@pd.api.extensions.register_dataframe_accessor("lately")
@pd.api.extensions.register_series_accessor("lately")
class Lately:
    """Accessor ``frame.lately``: the methods `duplicated` and `drop_duplicates` of pandas, with a window.

    Examples
    --------
    >>> import pandas as pd
    >>> import lately.integrations.pandas
    >>> clicks = pd.DataFrame({"ip": ["a", "a", "b", "a"], "time": [0, 599, 600, 2000]})
    >>> clicks.lately.drop_duplicates("ip", window="10min", at="time")
      ip  time
    0  a     0
    2  b   600
    3  a  2000
    >>> clicks["ip"].lately.duplicated(window=2)
    0    False
    1     True
    2    False
    3     True
    Name: ip, dtype: bool
    """

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def duplicated(self, subset: Any = None, *, window: Any, at: Any = None, **options: Any) -> "pd.Series":
        """Mark the rows whose key was seen within the window.

        Parameters
        ----------
        subset : column label or list of them, optional
            For a frame: the columns of the key. The default is all columns, except the one that `at` names.
        window : int or span of time
            What "lately" means: a number of rows, or a span such as ``"10min"``, which needs `at`.
        at : column label, name of an index level, or n times, optional
            The time of each row. A Series must have the index of these rows.
        **options
            `keep`, `fpr`, `refresh`, `missing`, `seed`, `filter` and `threads` of `lately.duplicated`.

        Returns
        -------
        Series of bool
            With the index of these rows.

        Raises
        ------
        KeyError, TypeError, ValueError
            As for `lately.duplicated`, or if a Series of times has another index.

        Examples
        --------
        >>> import pandas as pd
        >>> import lately.integrations.pandas
        >>> pd.Series(["a", "b", "a"], index=[7, 8, 9]).lately.duplicated(window=2)
        7    False
        8    False
        9     True
        dtype: bool
        """
        if isinstance(at, pd.Series) and not at.index.equals(self._rows.index):
            raise ValueError("at must have the index of the rows: align it first, or pass at.to_numpy()")
        marks = lately.duplicated(self._rows, window, subset=subset, at=at, **options)
        return pd.Series(marks, index=self._rows.index, name=getattr(self._rows, "name", None))

    def drop_duplicates(self, subset: Any = None, *, window: Any, at: Any = None, **options: Any) -> Any:
        """Drop the rows whose key was seen within the window.

        Parameters
        ----------
        subset, window, at, **options
            As in `Lately.duplicated`.

        Returns
        -------
        DataFrame or Series
            The rows that remain, with their index.

        Raises
        ------
        KeyError, TypeError, ValueError
            As in `Lately.duplicated`.

        Examples
        --------
        >>> import pandas as pd
        >>> import lately.integrations.pandas
        >>> pd.Series([5, 6, 5, 5]).lately.drop_duplicates(window=1)
        0    5
        1    6
        2    5
        dtype: int64
        """
        marks = self.duplicated(subset, window=window, at=at, **options)
        return self._rows[~marks.to_numpy()]
