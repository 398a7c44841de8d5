"""The error for a library that is not installed."""


def missing(library: str, extra: str) -> ImportError:
    """Return an error that names the library of an adapter, and the command that installs it."""
    return ImportError(f"lately.integrations.{extra} needs {library}: pip install {extra}")
