"""Checks of the parameters that the priors share."""

import operator
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

# How far the sum of chances may exceed 1: the precision of float32.
ROUNDING = 1e-6


def probabilities(values: Any, name: str) -> NDArray[np.float64]:
    """Return one chance per key; `ValueError` if the array is not 1-d, or a chance lies outside [0, 1]."""
    array = np.asarray(values, np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a 1-d array, got {array.ndim}-d")
    wrong = ~((array >= 0) & (array <= 1))
    if wrong.any():
        place = int(wrong.argmax())
        raise ValueError(f"{name}[{place}] must lie in [0, 1], got {array[place]}")
    return array


def universe(value: SupportsIndex) -> int:
    """Return the number of keys; `ValueError` if it is less than 1."""
    try:
        whole = operator.index(value)
    except TypeError:
        raise TypeError(f"universe must be a whole number of keys, got {value!r}") from None
    if whole < 1:
        raise ValueError(f"universe must be 1 key or more, got {whole}")
    return whole


def rate(value: float | None) -> float | None:
    """Return the insertions per second of the stream, or None; `ValueError` if it is not positive and finite."""
    if value is not None and not 0 < value < np.inf:
        raise ValueError(f"rate must be a positive number of insertions per second, got {value}")
    return None if value is None else float(value)


def rate_text(rate: float | None) -> str:
    """Return the rate as a repr shows it."""
    return "" if rate is None else f", rate={rate}"


def known(rate: float | None) -> float:
    """Return the rate of the stream; `ValueError` if it is None."""
    if rate is None:
        raise ValueError(
            "this prior has no rate: construct it with rate=, the insertions per second of the whole stream"
        )
    return rate
