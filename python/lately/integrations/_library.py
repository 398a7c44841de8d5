"""The error for a library that is missing."""


def missing(library: str, extra: str) -> ImportError:
    """Return an error that names the library of an adapter, and how to install it."""
    return ImportError(f"lately.integrations.{extra} needs {library}: pip install {extra}")
