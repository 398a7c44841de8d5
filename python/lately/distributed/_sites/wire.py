"""What crosses the wire between a producer and the listener of a site, byte by byte: version `PROTOCOL`.

A *frame* is two little-endian 64-bit lengths, then that many bytes of JSON, then that many bytes of arrays. In the JSON
an array is ``{"dtype": "<i4", "shape": [n]}``; the bytes of all arrays follow in the order in which they are named,
each filled up to a multiple of 8. Types are those of numbers and bools. Nothing that is received is executed or
unpickled.

*Who is who.* The listener begins with `GREETING` and 32 random bytes. The producer answers with 32 random bytes of its
own and the HMAC-SHA256 of ``b"producer"`` and both, the listener with that of ``b"site"`` and both. The key is the
site's own (`key_of`), of a secret of the filter, which travels with its handles.

*Messages.* A request is a list of `Message.plain`. The answer is ``{"incarnation": i, "answers": [...]}``, or
``{"error": [type, message]}`` if one of them raised it. Requests of a connection are answered one after the other.
"""

import hmac
import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately.distributed._sites.interface import PROTOCOL
from lately.distributed._sites.memo import ForgottenError, TooManyProducersError
from lately.distributed._sites.site import CheckpointError, SupersededError

GREETING = b"lately %02d" % PROTOCOL
"""First bytes of a listener: what it is, and the version that it speaks."""

NONCE = 32
"""Random bytes that each side proves its secret with; a proof is as long."""

LENGTHS = struct.Struct("<QQ")

Buffer = bytes | memoryview

_ERRORS = {
    error.__name__: error
    for error in (
        CheckpointError,
        ForgottenError,
        MemoryError,
        OverflowError,
        RuntimeError,
        SupersededError,
        TooManyProducersError,
        TypeError,
        ValueError,
    )
}


def key_of(secret: bytes, site: int) -> bytes:
    """Give the key of a site: another for each, since a port may be taken over by another site of the filter."""
    return hmac.digest(secret, b"site %d" % site, "sha256")


def proof(key: bytes, who: bytes, theirs: bytes, ours: bytes) -> bytes:
    """Prove that one knows the key, by the random bytes of both sides."""
    return hmac.digest(key, who + theirs + ours, "sha256")


def framed(value: Any) -> list[Buffer]:
    """Make the frame of lists, mappings, text, numbers, and arrays in them."""
    arrays: list[Buffer] = []

    def named(array: Any) -> Any:
        if isinstance(array, np.generic):
            return array.item()
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            raise TypeError(f"{type(array).__name__} does not cross the wire")
        arrays.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        arrays.append(bytes(-array.nbytes % 8))
        return {"dtype": array.dtype.newbyteorder("<").str, "shape": array.shape}

    head = json.dumps(value, default=named).encode()
    head += b" " * (-len(head) % 8)
    return [LENGTHS.pack(len(head), sum(map(len, arrays))), head, *arrays]


def opened(head: bytes, arrays: bytes) -> Any:
    """Make again what `framed` was given; tuples are lists.

    Raises
    ------
    ValueError
        If it is no frame.
    """
    taken = 0

    def made(found: dict[str, Any]) -> Any:
        nonlocal taken
        if found.keys() != {"dtype", "shape"}:
            return found
        dtype, shape = np.dtype(found["dtype"]), found["shape"]
        if dtype.kind not in "biuf":
            raise ValueError(f"arrays of {dtype} do not cross the wire")
        array: NDArray[Any] = np.frombuffer(arrays, dtype, int(np.prod(shape)), taken).reshape(shape)
        taken += -(-array.nbytes // 8) * 8
        return array

    try:
        return json.loads(head, object_hook=made)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"this is no frame: {error}") from None


def refusal(error: Exception) -> Mapping[str, Any]:
    """Make the answer of a site that raised an error."""
    return {"error": [type(error).__name__, str(error)]}


def raised(error: list[str]) -> Exception:
    """Make the error again, or one like it if its type is not known here."""
    name, message = error
    return _ERRORS[name](message) if name in _ERRORS else RuntimeError(f"{name}: {message}")
