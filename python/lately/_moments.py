"""Times of single events, read with errors that name the argument `at`."""

from typing import Any

from lately._core import read_moment


def moment_of(at: Any) -> int:
    """Read one time, in nanoseconds since the Unix epoch."""
    try:
        return read_moment(at)
    except (TypeError, ValueError) as error:
        raise type(error)(f"at {error}") from None
