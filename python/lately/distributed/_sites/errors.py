"""Errors of sites, which keep their type on the way to the producer."""


class SupersededError(RuntimeError):
    """Raised to an orderer that was replaced by another, which has its sites: it ends."""


class CheckpointError(RuntimeError):
    """Raised while a site cannot write its checkpoints; until it can, it accepts no keys.

    Some of the sites may have the batch. Once the checkpoints are writable again, send the same keys with the same
    ``number``: they get the answers that one sending would have got.
    """


class ForgottenError(RuntimeError):
    """Raised for a batch that comes again after a site has forgotten its answers."""


class TooManyProducersError(RuntimeError):
    """Raised if a site would have to forget a producer that may still send its batch again."""


def portable(error: Exception) -> Exception:
    """Return an error that another process can read; one of an unknown type becomes a `RuntimeError` that names it."""
    known = type(error).__module__.partition(".")[0] in ("builtins", "lately")
    return error if known else RuntimeError(f"{type(error).__name__}: {error}")
