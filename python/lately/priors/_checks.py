"""Checks of the parameters that the priors share."""

import operator
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


def insertions(values: ArrayLike) -> NDArray[np.float64]:
    """Return numbers of insertions; `ValueError` if one is negative or NaN."""
    array = np.asarray(values, np.float64)
    wrong = array[~(array >= 0)]
    if wrong.size:
        raise ValueError(f"insertions must be 0 or more, got {wrong[0]}")
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
