"""Times of single events, read with errors that name the argument `at`."""

from typing import Any

from lately._core import read_moment


def moment_of(at: Any) -> int:
    """Read one time, in nanoseconds since the Unix epoch."""
    try:
        return read_moment(at)
    except (TypeError, ValueError) as error:
        raise type(error)(f"at {error}") from None


def seconds(nanoseconds: int) -> str:
    """Format a span exactly, so that an argument of this text is as long."""
    return f"{nanoseconds // 10**9}.{nanoseconds % 10**9:09}".rstrip("0").rstrip(".")
