"""The filter of a run: made from the options, or loaded from the state of the previous run."""

from __future__ import annotations

from pathlib import Path

import lately
from lately._core import read_span
from lately._families import FAMILIES, of_filter
from lately.cli.errors import CliError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from typing import Any

FPR = 1e-6
"""Default rate of false positives. It is low because a dropped record is lost. A window of a million records takes four
megabytes more than at a rate of 1e-3."""


def open_filter(options: Namespace) -> lately.Filter:
    """Load the filter in ``--state`` if that file exists, and check the options against it; else make a new one."""
    if options.state and Path(options.state).exists():
        found: lately.Filter = load(options.state, "--state ")
        _compare(found, options)
    else:
        found = _create(options)
    timed = isinstance(found.window, float)
    if options.time is None:
        if timed and options.sized:
            raise UsageError(
                "a window of time needs --time: the field with the time of a record (without it the records of a pipe "
                "count when they arrive, and those of a file have no such times)"
            )
        for option in ("lateness", "time_unit", "time_format"):
            if getattr(options, option) is not None:
                raise UsageError(f"--{_dashed(option)} is for the times of records, which --time names")
    if not timed and options.time is not None:
        raise UsageError("--time is for windows of time, such as --window 10min; this window counts records")
    return found


def _create(options: Namespace) -> lately.Filter:
    window = options.window
    if window is None:
        raise UsageError("--window is needed: a number of records, such as 1000000, or a span of time, such as 10min")
    unknown = isinstance(window, str) and options.capacity is None
    name = options.filter
    family = FAMILIES[name] if name else None
    limits: dict[str, Any] = {}
    if family and family.windows in (("time", "unknown rate") if isinstance(window, int) else ("insertions",)):
        suited = "windows of time, such as 10min" if isinstance(window, int) else "windows that count records"
        raise UsageError(f"--filter {name} is for {suited}, got --window {window}")
    if isinstance(window, int):
        for option in ("capacity", "lateness", "max_ahead"):
            if getattr(options, option) is not None:
                raise UsageError(f"--{_dashed(option)} is for windows of time, such as 10min, got --window {window}")
    elif unknown and family and name != "aged-cuckoo" and family.windows != "unknown rate":
        raise UsageError(
            f"--window {window} needs --capacity with --filter {name}: the number of records within {window} at the "
            "highest rate, with repeats. If more come, no repeat within the window is missed, but more new records "
            "are dropped by mistake; if far fewer come, memory is wasted"
        )
    else:
        limits = {} if options.time is None else {"lateness": options.lateness or "0s", "max_ahead": "1d"}
        limits |= {
            option: given for option in ("capacity", "max_ahead") if (given := getattr(options, option)) is not None
        }
    make = family.make if family else lately.Filter
    seed = "random" if options.seed is None else options.seed
    return _make(make, window, fpr=FPR if options.fpr is None else options.fpr, seed=seed, **limits)


def _make(make: Callable[..., lately.Filter], window: Any, **request: Any) -> lately.Filter:
    try:
        return make(window, **request)
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(str(error)) from None
    except MemoryError:
        raise CliError(
            "there is not enough memory for such a filter: take a smaller --window or a higher --fpr"
        ) from None


def load(path: str, named: str = "") -> Any:
    """Open a saved filter. Errors begin with `named`, and name the file."""
    try:
        found = lately.open(path)
    except lately.FormatError as error:
        raise CliError(f"{named}{error}") from None
    except OSError as error:
        raise CliError(f"{named}{path}: {error.strerror or error}") from None
    try:
        of_filter(found)
    except ValueError as error:
        raise CliError(f"{named}{path}: {error}") from None
    return found


def _compare(found: lately.Filter, options: Namespace) -> None:
    """Raise `CliError` for an option that contradicts the state."""
    family = of_filter(found)
    if options.filter not in (None, family.name):
        raise contradiction(options.state, "filter", options.filter, found.family)
    given = {
        "window": options.window if isinstance(options.window, int) else _seconds(options.window),
        "lateness": _seconds(options.lateness),
        "max_ahead": _seconds(options.max_ahead),
        "capacity": options.capacity,
        "seed": None if options.seed == "random" and found.seed is None else options.seed,
    }
    for option, value in given.items():
        has = getattr(found, option)
        if value is not None and (value != has or type(value) is not type(has)):
            shown = f"{has:g} s" if isinstance(has, float) else "random" if option == "seed" and has is None else has
            raise contradiction(options.state, option, getattr(options, option), shown)
    if options.fpr is not None:
        # The rate of a state is slightly less than the --fpr that it was made for. An --fpr is equal if it makes the
        # same filter, by default or with a name of the family, and for a window of time with a capacity or without.
        window: Any = found.window
        requests: list[dict[str, Any]] = [{}]
        if isinstance(window, float):
            window = f"{window:.9f}s"
            requests = [{"lateness": f"{found.lateness or 0:.9f}s"}]
            requests.append(requests[0] | {"capacity": found.capacity})
        makes: tuple[Callable[..., lately.Filter], ...] = (lately.Filter, family.make)
        if not any(_makes(found, make, window, options.fpr, request) for make in makes for request in requests):
            raise contradiction(options.state, "fpr", options.fpr, f"{found.fpr:.3g}")


def _makes(found: lately.Filter, make: Callable[..., lately.Filter], window: Any, fpr: float, request: Any) -> bool:
    """Whether a request makes a filter of the parameters of `found`."""
    try:
        return _make(make, window, fpr=fpr, seed=found.seed or 0, **request).parameters == found.parameters
    except UsageError:
        return False


def contradiction(state: str, option: str, given: object, has: object) -> CliError:
    """Return the error for an option that contradicts the state."""
    return CliError(f"--{_dashed(option)} {given} contradicts the state in {state}, whose {option} is {has}")


def _dashed(option: str) -> str:
    return option.replace("_", "-")


def _seconds(span: str | None) -> float | None:
    return None if span is None else read_span(span, "span") / 1e9
