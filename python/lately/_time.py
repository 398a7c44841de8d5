"""Spans and moments of time, from whatever Python holds them in, to whole nanoseconds."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import nanoseconds

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # the micro sign
    "\u03bcs": 10**3,  # the Greek letter
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
    "w": 7 * 86_400 * 10**9,
}
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zµ\u03bc]+)\s*")

# Nanoseconds since 1970 are 64 bits: the years 1677 to 2262. Milliseconds taken for seconds lie far outside.
_LAST_SECOND = (2**63 - 1) // 10**9
_RANGE = "outside the years 1677 to 2262 (numbers are Unix seconds)"

# Today's Unix seconds as a double are 0.24 µs apart, so that 0.1 s in a file is 0.1 s and up to 0.12 µs. Rounding to
# microseconds takes that away; without it, two times exactly `lateness` apart may seem further. Below 2**23 s (97
# days, as in a simulation that starts at 0) doubles are 1.9 ns apart or less, and nanoseconds are kept.
_FINE = 2.0**23

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def span(value: object, name: str) -> int:
    """Nanoseconds of a span of time.

    Parameters
    ----------
    value : str, datetime.timedelta or numpy.timedelta64
        Text is a sum of numbers with units, such as ``"10min"``, ``"1h30min"``, ``"1.5 s"`` or ``"500ms"``. The units
        are ns, us, ms, s, min (or m), h, d and w.
    name : str
        Name of the parameter, for messages.

    Returns
    -------
    int
        0 or more, and below 2**63.

    Raises
    ------
    TypeError
        If `value` is of another type; a bare number could mean any unit.
    ValueError
        If it is negative, missing, longer than 292 years, finer than 1 ns, or text that is no span.

    Examples
    --------
    >>> span("1h30min", "window")
    5400000000000
    """
    if isinstance(value, str):
        nanoseconds = _span_of_text(value, name)
    elif isinstance(value, np.timedelta64):
        nanoseconds = _span_of_timedelta64(value, name)
    elif hasattr(value, "to_timedelta64"):  # pandas, finer than the timedelta it also is
        nanoseconds = _span_of_timedelta64(value.to_timedelta64(), name)
    elif isinstance(value, timedelta):
        nanoseconds = value // _MICROSECOND * 1000
    else:
        raise TypeError(
            f"{name} must be a span of time, such as '10min', a datetime.timedelta or a numpy.timedelta64; "
            f"got {type(value).__name__}"
        )
    if nanoseconds < 0:
        raise ValueError(f"{name} must not be negative, got {value}")
    if nanoseconds >= 2**63:
        raise ValueError(f"{name} must be shorter than 292 years, got {value}")
    return nanoseconds


def _span_of_text(text: str, name: str) -> int:
    total, position = Decimal(0), 0
    while part := _PART.match(text, position):
        number, unit = part.groups()
        if unit not in _NANOSECONDS:
            break
        total += Decimal(number) * _NANOSECONDS[unit]
        position = part.end()
    if position == 0 or position < len(text):
        raise ValueError(f"{name} must be a span of time such as '10min', '1h30min', '500ms' or '2d', got {text!r}")
    if total != int(total):
        raise ValueError(f"{name} must be whole nanoseconds, got {text!r}")
    return int(total)


def _span_of_timedelta64(value: np.timedelta64, name: str) -> int:
    if np.isnat(value):
        raise ValueError(f"{name} is missing (NaT)")
    unit, multiple = np.datetime_data(value.dtype)
    factor = _NANOSECONDS.get(unit.lower()) if unit not in ("M", "Y") else None
    if factor is None:
        raise ValueError(f"{name} must be in weeks, days, hours, minutes, seconds, ms, us or ns, got {value!r}")
    return int(value.astype(np.int64)) * multiple * factor


def moment(value: object) -> int:
    """Nanoseconds since the Unix epoch of one time.

    Parameters
    ----------
    value : int, float, datetime.datetime or numpy.datetime64
        Numbers are Unix seconds; datetimes without a time zone are UTC.

    Returns
    -------
    int
        In the range of a signed 64-bit integer. Floats of 2**23 s and more are rounded to microseconds.

    Raises
    ------
    TypeError
        If `value` is of another type.
    ValueError
        If it is missing (NaN, NaT) or outside the years 1677 to 2262.

    Examples
    --------
    >>> moment(1.5)
    1500000000
    """
    if isinstance(value, float):
        if not -_LAST_SECOND <= value <= _LAST_SECOND:
            raise ValueError("is missing (NaN)" if value != value else f"is {value}, {_RANGE}")
        return round(value * 1e9) if abs(value) < _FINE else round(value * 1e6) * 1000
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64):
        if not -_LAST_SECOND <= value <= _LAST_SECOND:
            raise ValueError(f"is {value}, {_RANGE}")
        return int(value) * 10**9
    if isinstance(value, np.floating):
        return moment(float(value))
    if hasattr(value, "to_datetime64"):  # pandas, finer than the datetime it also is
        value = value.to_datetime64()
    if isinstance(value, np.datetime64):
        if np.isnat(value):
            raise ValueError("is missing (NaT)")
        if _out_of_range(value):
            raise ValueError(f"is {value}, {_RANGE}")
        return int(value.astype("datetime64[ns]").astype(np.int64))
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        nanoseconds = (aware - _EPOCH) // _MICROSECOND * 1000
        if not -(2**63) < nanoseconds < 2**63:
            raise ValueError(f"is {value}, {_RANGE}")
        return nanoseconds
    if value is None or type(value).__name__ == "NAType":
        raise ValueError("is missing")
    raise TypeError(f"is of type {type(value).__name__}; a time is a number of Unix seconds or a datetime")


def moments(at: Any) -> int | NDArray[np.int64]:
    """Nanoseconds since the Unix epoch of one time or many.

    Parameters
    ----------
    at : time, or n times in a list, ndarray, Series or Arrow array
        Numbers are Unix seconds; datetimes without a time zone are UTC.

    Returns
    -------
    int or ndarray of int64, shape (n,)
        Contiguous. Floats of 2**23 s and more are rounded to microseconds.

    Raises
    ------
    TypeError
        If a time is neither a number nor a datetime.
    ValueError
        If one is missing (NaN, NaT) or outside the years 1677 to 2262; the message names its position. Or if `at` has
        two dimensions.

    Examples
    --------
    >>> moments([0, 1.5])
    array([         0, 1500000000])
    """
    times = one_or_array(at)
    return times if isinstance(times, int) else of_array(times)


def one_or_array(at: Any) -> int | NDArray[Any]:
    """Tell one time, as `moments` does, from many, which come as an array of whatever they are.

    Raises
    ------
    TypeError, ValueError
        As `moments`, of one time; or if `at` has two dimensions.
    """
    # pandas gives a column with a time zone as UTC when asked for datetime64, and as objects when not.
    zoned = getattr(getattr(at, "dtype", None), "kind", None) == "M" and not isinstance(at, np.ndarray | np.datetime64)
    array = np.asarray(at, dtype="datetime64[ns]" if zoned else None)
    if array.ndim == 0:
        try:
            return moment(at if array.dtype == object else array[()])
        except (TypeError, ValueError) as error:
            raise type(error)(f"at {error}") from None
    if array.ndim > 1:
        raise ValueError(f"at must have one dimension, got {array.ndim}")
    return array


def of_array(array: NDArray[Any]) -> NDArray[np.int64]:
    """Nanoseconds since the Unix epoch of an array of times, shape (n,); see `moments`."""
    if (quick := nanoseconds(array)) is not None:
        return quick
    if array.dtype.kind == "M":
        _refuse(array, np.isnat(array))
        _refuse(array, _out_of_range(array))
        result = array.astype("datetime64[ns]").astype(np.int64)
    elif array.dtype.kind in "iu":
        _refuse(array, (array > _LAST_SECOND) | (array < -_LAST_SECOND))
        result = array.astype(np.int64) * 10**9
    elif array.dtype.kind == "f":
        seconds = array.astype(np.float64)
        with np.errstate(invalid="ignore"):
            _refuse(array, ~(np.abs(seconds) <= _LAST_SECOND))
        return of_array(seconds)
    elif array.dtype == object:
        result = np.empty(len(array), np.int64)
        for i, value in enumerate(array):
            try:
                result[i] = moment(value)
            except (TypeError, ValueError) as error:
                raise type(error)(f"at[{i}] {error}") from None
    else:
        raise TypeError(f"at holds {array.dtype}; a time is a number of Unix seconds or a datetime")
    return np.ascontiguousarray(result)


def _out_of_range(times: Any) -> Any:
    """Which of one or many datetime64 nanoseconds cannot hold: NumPy wraps around in silence, or fails on all."""
    unit, multiple = np.datetime_data(times.dtype)
    # A year less than the range has, so that no calendar matters.
    most = {"Y": 291, "M": 291 * 12}.get(unit) or (2**63 - 1) // _NANOSECONDS.get(unit.lower(), 1)
    return np.abs(times.astype(np.int64)) > most // multiple


def _refuse(array: NDArray[Any], bad: NDArray[np.bool_]) -> None:
    """Raise for the first of the bad times, if any."""
    if bad.any():
        i = int(bad.argmax())
        missing = array[i] != array[i]
        raise ValueError(f"at[{i}] is missing ({array[i]})" if missing else f"at[{i}] is {array[i]}, {_RANGE}")
