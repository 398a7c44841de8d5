"""The error for a library that is not there."""


def missing(library: str, extra: str) -> ImportError:
    """Say which library an adapter needs, and how to install it."""
    return ImportError(f"lately.integrations.{extra} needs {library}: pip install 'lately[{extra}]'")
