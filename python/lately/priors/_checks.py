"""Checks of the parameters that the priors share."""

import operator
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

# How far above 1 chances may sum: float32 is as coarse as that.
ROUNDING = 1e-6


def probabilities(values: Any, name: str) -> NDArray[np.float64]:
    """Return one chance per key; ValueError if it has not one dimension, or one lies outside [0, 1]."""
    array = np.asarray(values, np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got {array.ndim}")
    wrong = ~((array >= 0) & (array <= 1))
    if wrong.any():
        place = int(wrong.argmax())
        raise ValueError(f"{name}[{place}] must lie in [0, 1], got {array[place]}")
    return array


def universe(value: SupportsIndex) -> int:
    """Return the number of keys; ValueError below 1."""
    try:
        whole = operator.index(value)
    except TypeError:
        raise TypeError(f"universe must be a whole number of keys, got {value!r}") from None
    if whole < 1:
        raise ValueError(f"universe must be 1 key or more, got {whole}")
    return whole


def rate(value: float | None) -> float | None:
    """Return the insertions per second of the whole stream; ValueError unless positive and finite, or None."""
    if value is not None and not 0 < value < np.inf:
        raise ValueError(f"rate must be a positive number of insertions per second, got {value}")
    return None if value is None else float(value)


def rate_text(rate: float | None) -> str:
    """Return the end of a repr."""
    return "" if rate is None else f", rate={rate}"


def known(rate: float | None) -> float:
    """Return the rate of the stream; ValueError if it was not given."""
    if rate is None:
        raise ValueError(
            "this prior has no rate: construct it with rate=, the insertions per second of the whole stream"
        )
    return rate
