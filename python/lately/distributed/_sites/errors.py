"""Errors of sites, which keep their type on the way to the producer."""

from typing import Any


class SupersededError(RuntimeError):
    """Raised if another producer has had the lease since: read again, then write."""


class ReplacedError(RuntimeError):
    """Raised by a process that may have been replaced by another, which has its sites: call that one."""


class CheckpointError(RuntimeError):
    """Raised while a site cannot write its checkpoints; until it can, it accepts no keys.

    Some of the sites may have the batch. Once the checkpoints are writable again, send the same keys with the same
    ``number``: they get the answers that one sending would have got.
    """


class ForgottenError(RuntimeError):
    """Raised for a batch that comes again after a site has forgotten its answers."""


class TooManyProducersError(RuntimeError):
    """Raised if a site would have to forget a producer that may still send its batch again."""


_OWN = (CheckpointError, ForgottenError, ReplacedError, SupersededError, TooManyProducersError)
_ERRORS = {error.__name__: error for error in (*_OWN, MemoryError, OverflowError, RuntimeError, TypeError, ValueError)}


def encode_error(error: Exception) -> dict[str, Any]:
    """Encode an error as the answer of a site."""
    return {"error": [type(error).__name__, str(error)]}


def decode_error(error: list[str]) -> Exception:
    """Decode an error; one of an unknown type becomes a `RuntimeError` that names the type."""
    name, message = error
    return _ERRORS[name](message) if name in _ERRORS else RuntimeError(f"{name}: {message}")
