"""Errors of sites, which keep their type on the way to the producer."""

from typing import Any


class SupersededError(RuntimeError):
    """Another producer has had the lease since: read again, then write."""


class ReplacedError(RuntimeError):
    """The process may have been replaced by another, which has its sites: call that one."""


class CheckpointError(RuntimeError):
    """A site cannot write its checkpoints, and accepts no keys until it can.

    The batch may be with some of the sites. Once the place of the checkpoints is writable again, send the same keys
    with the same ``number``: they get the answers of one batch that was sent once.
    """


class ForgottenError(RuntimeError):
    """A batch came again whose answers a site no longer remembers."""


class TooManyProducersError(RuntimeError):
    """A site would have to forget a producer that may yet send its batch again."""


_OWN = (CheckpointError, ForgottenError, ReplacedError, SupersededError, TooManyProducersError)
_ERRORS = {error.__name__: error for error in (*_OWN, MemoryError, OverflowError, RuntimeError, TypeError, ValueError)}


def refusal(error: Exception) -> dict[str, Any]:
    """Encode an error as the answer of a site."""
    return {"error": [type(error).__name__, str(error)]}


def raised(error: list[str]) -> Exception:
    """Decode an error; one of an unknown type becomes a RuntimeError that names it."""
    name, message = error
    return _ERRORS[name](message) if name in _ERRORS else RuntimeError(f"{name}: {message}")
