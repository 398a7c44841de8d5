"""`tune`: runs every filter on a sample of a stream, and finds the one whose mistakes cost least."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, product
from typing import Any, SupportsIndex
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike

from lately._core import Filter
from lately._families import FAMILIES, Family, whole
from lately._progress import progress
from lately._sample import Sample
from lately._table import Table, assigned, refusals, text

# Slacks to try, in windows. A slack of twice the length halves the number of generations. Only the timing filter has 0.
_SLACKS = (0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)


@dataclass(frozen=True)
class Trial:
    """A filter that ran over a sample, in figures: a row of `Tuned`.

    Attributes
    ----------
    name : str
        Name of the family, followed by its options, such as the bits of a block.
    parameters : dict of str to int
        Parameters of the paper.
    bits_per_key : float
        Bits of the cells per key of a full window.
    nbytes : int
        Bytes of the cells.
    slack : int
        How long after leaving the window a key may still be reported by `query`, in insertions.
    penalty : float
        Cost of all mistakes of `decide`.
    plain_penalty : float
        Cost of all mistakes of `query`.
    false_positives, false_negatives : int
        Number of keys outside the window that `decide` reported, and of keys within it that it missed.
    """

    name: str
    parameters: dict[str, int]
    bits_per_key: float
    nbytes: int
    slack: int | float
    penalty: float
    plain_penalty: float
    false_positives: int
    false_negatives: int
    _make: Callable[[], Filter] = field(repr=False, compare=False)

    @property
    def cost(self) -> float:
        """Cost of the mistakes of `decide` or of `query`, whichever is less."""
        return min(self.penalty, self.plain_penalty)

    def build(self) -> Filter:
        """Make this filter, empty."""
        return self._make()


class Tuned(Table):
    """Table of the filters that ran over a sample, with the one whose mistakes cost least. `tune` returns it.

    As text and HTML it shows the best filter of each family.

    Attributes
    ----------
    curve : tuple of Trial
        Every filter that ran, by family, bytes and slack.
    best : Trial
        The filter to take.
    reason : str
        Why to take it.
    prior_penalty : float
        Cost of the mistakes of the prior alone, without a filter.
    decided : int
        Number of keys that each filter decided; all penalties are sums over them.
    refused : dict of str to str
        For each family that cannot run, the reason.
    """

    _columns = (
        "filter",
        "parameters",
        "bits per key",
        "bytes",
        "slack",
        "penalty",
        "plain penalty",
        "false positives",
        "false negatives",
    )
    best: Trial

    def __init__(self, curve: list[Trial], refused: dict[str, str], prior_penalty: float, decided: int) -> None:
        self.curve = tuple(curve)
        self.refused, self.prior_penalty, self.decided = refused, prior_penalty, decided
        families = self._families()
        # A baseline is taken only if nothing else is left.
        real = [trial for trial in families if not FAMILIES[trial.name].baseline] or families
        self.best = real[0]
        rival = f", those of {real[1].name} {text(real[1].cost)}" if real[1:] else ""
        if self.best.plain_penalty < self.best.penalty:
            self.reason = (
                f"its plain answers cost least, {text(self.best.plain_penalty)} for {decided:,} keys{rival}: call "
                f"query, not decide, whose mistakes cost {text(self.best.penalty)} with this prior"
            )
        else:
            self.reason = (
                f"its mistakes cost least, {text(self.best.penalty)} in {decided:,} decisions{rival}, its plain "
                f"answers {text(self.best.plain_penalty)}, and the prior alone {text(prior_penalty)}"
            )

    def _families(self) -> list[Trial]:
        """Return the best filter of each family, the least costly first."""
        best: dict[str, Trial] = {}
        for trial in sorted(self.curve, key=lambda trial: (trial.cost, trial.nbytes)):
            best.setdefault(trial.name, trial)
        return list(best.values())

    def build(self) -> Filter:
        """Make the filter to take, empty.

        Examples
        --------
        >>> costs = {"false_positive": 1, "false_negative": 2}
        >>> tuned = lately.tune([1, 2, 3] * 100, window=50, nbytes=256, **costs, families=["timing"])
        >>> tuned.build().window
        50
        """
        return self.best.build()

    def _shown(self) -> list[list[Any]]:
        return [_row(trial) for trial in self._families()]

    def _all(self) -> list[list[Any]]:
        return [_row(trial) for trial in self.curve]


def _row(trial: Trial) -> list[Any]:
    size = [trial.bits_per_key, trial.nbytes, trial.slack]
    mistakes = [trial.penalty, trial.plain_penalty, trial.false_positives, trial.false_negatives]
    return [trial.name, assigned(trial.parameters), *size, *mistakes]


def tune(
    sample: Any,
    window: SupportsIndex,
    nbytes: ArrayLike,
    false_positive: ArrayLike,
    false_negative: ArrayLike,
    prior: Any = None,
    *,
    families: Iterable[str] | None = None,
    seed: int = 0,
) -> Tuned:
    """Run the filters on a sample of the stream, and find the one whose mistakes cost least.

    Every family is built in the given bytes, with slacks from none to a window; four also with other parameters, since
    the shape of the fewest mistakes is not that whose mistakes cost least. Each filter runs over the sample: the first
    two windows only fill it. From there on it decides each key at the least expected penalty; the decision is compared
    with the exact answer, and the key is inserted.

    Parameters
    ----------
    sample : array-like, Series, column or frame
        n successive keys of the stream, at least three windows; a row of a frame is one key. See `hash_keys`.
    window : int
        What "lately" means: the last `window` insertions.
    nbytes : int or sequence of int
        Greatest number of bytes. With several numbers each filter runs with each of them, which gives the penalty as a
        function of memory.
    false_positive, false_negative : float or array-like of float, shape (n,)
        Cost of reporting a key that was not inserted within the window, and of missing a key that was. A number for all
        keys, or one per key of the sample.
    prior : float, array-like of float, shape (n,), or object, optional
        As for `Filter.posterior`. By default a key that came c times among the first two windows, of n keys and m
        different ones, has the chance (c + 1/2) / (n + m/2).
    families : str or iterable of str, optional
        Names of the families to run, as in the table of `plan`. The default is all.
    seed : int, default 0
        Seed of the key hashes.

    Returns
    -------
    Tuned
        A table of the best filter of each family, with the one to take and the reason. `build` makes that filter;
        `curve` and `to_pandas` have every filter that ran.

    Raises
    ------
    ValueError
        If the sample is too short, a parameter is out of range or does not fit the sample, or no family can run. The
        message gives the reason for each family.
    TypeError
        If `window` is a span of time, a parameter is not a number, or a key has no canonical form.

    Warns
    -----
    UserWarning
        If the prior makes repeats within the window twice as frequent as the sample has them, or half as frequent.

    See Also
    --------
    plan : Chooses by the rate of mistakes, not by their cost, and needs no sample.
    plot.penalty : Draws the penalties.

    Notes
    -----
    Paper 5 (J. L. Dautrich, C. V. Ravishankar, 2019) gives the decision of least penalty, and leaves the choice of
    parameters open. Here it is measured, so the result is as good as the sample resembles the stream. The least of many
    measured penalties is biased low: treat filters within a few percent as equal.

    Keys are decided in chunks of 1/64 window, at most 4096 keys. A bar appears if standard error is a terminal and tqdm
    is installed. Filters that search all of their memory, or forget at random, are listed for comparison and never
    taken.

    Examples
    --------
    >>> import numpy as np
    >>> clicks = np.random.default_rng(0).zipf(1.3, 4000)
    >>> tuned = lately.tune(clicks, window=1000, nbytes=600, false_positive=5, false_negative=1)
    >>> tuned.best.penalty <= tuned.best.plain_penalty
    True
    >>> f = tuned.build()
    """
    window = whole(window)
    if not hasattr(window, "__index__"):
        raise TypeError(f"window must be a number of insertions, got {window!r}: the keys of a sample have no times")
    window = operator.index(window)
    if window < 1:
        raise ValueError(f"window must be 1 insertion or more, got {window}")
    # An array has a method `__index__` too.
    sizes: list[Any] = [nbytes] if isinstance(nbytes, int) else list(np.atleast_1d(nbytes))
    if not sizes or not all(hasattr(size, "__index__") for size in sizes):
        raise TypeError(f"nbytes must be a whole number of bytes, or a sequence of them, got {nbytes!r}")
    wanted = list(FAMILIES) if families is None else [families] if isinstance(families, str) else list(families)
    if unknown := [name for name in wanted if name not in FAMILIES]:
        raise ValueError(f"families must be of {', '.join(FAMILIES)}; got {unknown[0]!r}")
    trial_run = Sample(sample, window, prior, false_positive, false_negative)
    if prior is not None and (disagreement := trial_run.disagreement(window)):
        warn(disagreement, stacklevel=2)
    shapes: list[tuple[str, Callable[[], Filter]]] = []
    refused: dict[str, str] = {}
    for name in wanted:
        try:
            shapes += [(name, make) for make in _shapes(FAMILIES[name], window, sizes, seed, trial_run)]
        except (ValueError, MemoryError) as error:
            refused[name] = str(error)
    if not shapes:
        if not wanted:
            raise ValueError("families must have one name or more, got none")
        raise ValueError("\n  ".join(["no family can run", *refusals(refused)]))
    with progress(len(trial_run) * len(shapes), "keys") as advance:
        curve = [_run(name, make, trial_run, advance) for name, make in shapes]
    alone = trial_run.decided.penalty(trial_run.decided.by_prior_alone(window))
    return Tuned(curve, refused, alone, len(trial_run.decided.keys))


def _shapes(
    family: Family, window: int, sizes: list[Any], seed: int, trial_run: Sample
) -> Iterable[Callable[[], Filter]]:
    """Return a family's distinct filters in these bytes; `ValueError` if there is none, or it has no posteriors."""
    if family.windows in ("time", "unknown rate"):
        raise ValueError("windows of time only")
    slacks = [{"slack": int(share * window)} for share in _SLACKS] if family.windows != "insertions" else [{}]
    found: dict[tuple[Any, ...], Callable[[], Filter]] = {}
    errors: list[ValueError | MemoryError] = []
    planned = [
        partial(family.make, window, nbytes=nbytes, seed=seed, **slack) for nbytes, slack in product(sizes, slacks)
    ]
    others = (
        partial(family.kind.from_parameters, window, seed=seed, **shape)
        for nbytes in sizes
        for shape in family.kind._shapes(nbytes)
    )
    for make in chain(planned, others):
        try:
            made = make()
        except (ValueError, MemoryError) as error:
            errors.append(error)
            continue
        if not found:
            first = trial_run.chunks[0]
            made.posterior(first.keys, first.prior)
        if made.family != family.name:  # of another layout
            continue
        found.setdefault(tuple(made.parameters.items()), make)
    if not found:
        raise errors[0]
    return found.values()


def _run(name: str, make: Callable[[], Filter], trial_run: Sample, advance: Callable[[int], object]) -> Trial:
    """Run one filter over the sample."""
    f = make()
    f.insert(trial_run.warm)
    advance(len(trial_run.warm))
    by_chunk = []
    for chunk in trial_run.chunks:
        decided = f.decide(chunk.keys, chunk.prior, chunk.false_positive, chunk.false_negative)
        by_chunk.append((decided, f.query(chunk.keys)))
        f.insert(chunk.keys)
        advance(len(chunk.keys))
    every, (decided, plain) = trial_run.decided, map(np.concatenate, zip(*by_chunk, strict=True))
    return Trial(
        name=name,
        parameters=f.parameters,
        bits_per_key=f.bits_per_key,
        nbytes=f.nbytes,
        slack=f.slack,
        penalty=every.penalty(decided),
        plain_penalty=every.penalty(plain),
        false_positives=int((decided & ~every.seen).sum()),
        false_negatives=int((~decided & every.seen).sum()),
        _make=make,
    )
