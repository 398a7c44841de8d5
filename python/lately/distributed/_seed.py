"""The seed that sites and producers share."""

from lately._core import Filter, FilterSpec


def shared_seed(made: Filter | FilterSpec) -> int:
    """Return the seed of a filter that goes over many sites.

    Raises
    ------
    ValueError
        If it is a secret: what travels between machines are hashes, and every producer has to make the same.
    """
    if made.seed is None:
        raise ValueError("a filter over many sites needs a seed that all producers know: an int, not a secret")
    return made.seed
