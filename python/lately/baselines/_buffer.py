"""A list of fingerprints: exactly the last insertions."""

from __future__ import annotations

from lately.filters.base import Filter


class FingerprintBuffer(Filter):
    """Fingerprint buffer: a list of the fingerprints of the last keys, which every query searches. A baseline.

    Its window is exact, in little memory: a key is reported for exactly `window` insertions. But a query searches the
    whole list: 0.25 us for a window of 1000, 2 us for 10,000. For large windows take `Swamp`, which needs no search and
    half as much memory again.

    Parameters
    ----------
    window
        As in `Swamp`.
    fpr, nbytes, seed
        As in `Filter`.

    Notes
    -----
    The simple buffer of paper 5: J. L. Dautrich, C. V. Ravishankar, *Inferring Insertion Times and Optimizing Error
    Penalties in Time-Decaying Bloom Filters*, 2019, section 6.2. The chance that one of W different keys has the
    fingerprint of a new key is 1 - (1 - 1 / (2**bits - 1))**W: this is `fpr`, at every phase. `accesses` counts groups
    of 64 fingerprints.

    Examples
    --------
    >>> f = lately.baselines.FingerprintBuffer(window=3, fpr=1e-6)
    >>> f.duplicated(["a", "b", "a", "c", "d", "e", "a"])
    array([False, False,  True, False, False, False, False])
    >>> f.slack
    0
    """

    __module__ = "lately.baselines"
    __slots__ = ()
    _family = "baselines.FingerprintBuffer"
