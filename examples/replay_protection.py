"""Replay protection of signed tokens: each is accepted once, in spite of clocks that differ and of restarts."""

import fcntl
import hashlib
import hmac
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path

import lately

LIFETIME = 60
"""Seconds that a token is valid."""
SKEW = 5
"""Seconds that the clocks of issuers may differ from this one."""


def sign(secret: bytes, claims: dict) -> str:
    """Make a token, as an issuer does: claims and their signature."""
    body = urlsafe_b64encode(json.dumps(claims).encode())
    return f"{body.decode()}.{hmac.new(secret, body, hashlib.sha256).hexdigest()}"


class Gate:
    """Accepts each token once.

    A token is valid from ``iat - SKEW`` to ``iat + LIFETIME + SKEW`` by the clock of the gate. So the window is
    ``LIFETIME + 2 * SKEW``: a token that was accepted at the first instant is still remembered at the last. Several
    workers may have a gate each on one path. `first` states that no token was accepted before the file exists.
    """

    def __init__(self, path: Path, secret: bytes, clock=time.time, *, first: bool = False):
        self.secret, self.clock = secret, clock
        since = path.with_name(f"{path.name}.since")
        with path.with_name(f"{path.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # of several workers one makes the files
            if not path.exists():
                # Tokens that an earlier gate may have accepted, whose filter is lost, are not accepted again: not by
                # this worker, and not by those that start later.
                since.write_text("0" if first else str(clock() + SKEW))
                window = f"{LIFETIME + 2 * SKEW}s"
                made = lately.Filter(window, 1e-9, capacity=1_000_000, max_ahead=None, seed="random")
                made.save(path)
        self.not_before = float(since.read_text())
        self.seen = lately.open(path, shared=True)

    def accept(self, token: str, uri: str) -> bool:
        """Return whether a token is genuine, valid now, and new."""
        body, _, signature = token.partition(".")
        expected = hmac.new(self.secret, body.encode(), hashlib.sha256).hexdigest()
        if not hmac.compare_digest(signature, expected):
            return False
        claims = json.loads(urlsafe_b64decode(body))
        now = self.clock()
        if not claims["iat"] - SKEW <= now <= claims["iat"] + LIFETIME + SKEW or claims["iat"] < self.not_before:
            return False
        if claims["uri"] != uri:
            return False
        # Last, so that a forged token marks nothing. Each issuer numbers its own tokens, so the issuer is in the key.
        latest = self.seen.latest
        at = now if latest is None else max(now, latest.astype("int64") / 1e9)
        return not self.seen.seen((claims["iss"], uri, claims["jti"]), at=at)
