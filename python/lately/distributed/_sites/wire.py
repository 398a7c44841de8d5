"""What crosses the wire between a producer and the listener of a site, byte by byte: version `PROTOCOL`.

*Who is who.* The listener begins with `GREETING` and 32 random bytes. The producer answers with 32 random bytes of its
own and the HMAC-SHA256 of ``b"producer"`` and both, the listener with that of ``b"site"`` and both. The key is the
host's own (`key_of`), of a secret of the filter, which travels with its handles.

*Messages* are frames (`frames.py`). A request is a list of sites, each ``[number, [...]]`` with its messages
(`Message.plain`). The answer is a list of theirs: ``{"incarnation": i, "overfull": text or null, "answers": [...]}``,
or ``{"error": [type, message]}`` if a message raised it. The type `MovedError` says that the site is at another host,
or on its way there: it is to be asked again, with the same tickets. Requests of a connection are answered one after the
other.

*Turns* have a port of their own, with the key of host -1. A request is a method of `Turns` and its arguments, the
answer a list of what it gives.
"""

import hmac
from typing import Any

from lately.distributed._sites.interface import PROTOCOL
from lately.distributed._sites.memo import ForgottenError, TooManyProducersError
from lately.distributed._sites.site import CheckpointError, MovedError, SupersededError

GREETING = b"lately %02d" % PROTOCOL
"""First bytes of a listener: what it is, and the version that it speaks."""

NONCE = 32
"""Random bytes that each side proves its secret with; a proof is as long."""

TURNS = -1
"""What stands for a host's number in the key of the port of turns."""

_ERRORS = {
    error.__name__: error
    for error in (
        CheckpointError,
        ForgottenError,
        MemoryError,
        MovedError,
        OverflowError,
        RuntimeError,
        SupersededError,
        TooManyProducersError,
        TypeError,
        ValueError,
    )
}


def key_of(secret: bytes, host: int) -> bytes:
    """Give the key of a host: another for each, since a port may be taken over by another host of the filter."""
    return hmac.digest(secret, b"host %d" % host, "sha256")


def proof(key: bytes, who: bytes, theirs: bytes, ours: bytes) -> bytes:
    """Prove that one knows the key, by the random bytes of both sides."""
    return hmac.digest(key, who + theirs + ours, "sha256")


def refusal(error: Exception) -> dict[str, Any]:
    """Make the answer of a site that raised an error."""
    return {"error": [type(error).__name__, str(error)]}


def raised(error: list[str]) -> Exception:
    """Make the error again, or one like it if its type is not known here."""
    name, message = error
    return _ERRORS[name](message) if name in _ERRORS else RuntimeError(f"{name}: {message}")
