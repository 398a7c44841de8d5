"""The family that `lately.Filter` takes for a request."""

from typing import Any

from lately._families import FAMILIES, FASTEST, Family, unsuited, whole
from lately._plan import asked_of, fewest_lines, figures_of, kind_of

WORST = 0.5
"""Greatest rate of false positives of a filter that nobody has chosen: a coin would say as much of new keys."""


def choose(
    window: Any,
    prefer: str,
    *,
    fpr: float | None,
    nbytes: int | None,
    slack: Any,
    capacity: int | None,
    ahead: Any,
    seed: Any,
    **limits: Any,
) -> tuple[Family, dict[str, Any]]:
    """Choose the family, and give the parameters of its constructor. No cells are allocated.

    Parameters and errors are those of `lately.Filter`.
    """
    if prefer not in ("speed", "memory"):
        raise ValueError(f"prefer must be 'speed' or 'memory', got {prefer!r}")
    window = whole(window)
    timed, unknown = kind_of(window, capacity, fpr, nbytes)
    request = asked_of(fpr=fpr, nbytes=nbytes, capacity=capacity, **limits)
    if stray := [name for name in (["distinct"] if timed else ["capacity", "lateness"]) if name in request]:
        kinds = ("of insertions", "is one of time") if timed else ("of time", "counts insertions")
        raise ValueError(f"{stray[0]} is for windows {kinds[0]}; this one {kinds[1]}")
    family, asked, figures = _chosen(window, prefer, slack, request, timed=timed, unknown=unknown)
    if nbytes is not None and figures["fpr"] > WORST:
        del request["nbytes"]
        *_, enough = _chosen(window, prefer, slack, {**request, "fpr": WORST}, timed=timed, unknown=unknown)
        raise ValueError(
            f"nbytes must be at least {enough['nbytes']} for a rate of false positives of {WORST}, got {nbytes}, where "
            f"the rate is {figures['fpr']:.3f}; a family by its own name takes less"
        )
    times = {"ahead": ahead} if timed else {}
    return family, family.given(window, seed=seed, **asked, **times)


def _chosen(
    window: Any, prefer: str, slack: Any, request: dict[str, Any], *, timed: bool, unknown: bool
) -> tuple[Family, dict[str, Any], dict[str, Any]]:
    """Choose the family, what to ask of it, and its figures."""
    able: list[tuple[Family, dict[str, Any], dict[str, Any]]] = []
    errors: list[str] = []
    fast = FASTEST if prefer == "speed" else ()
    for name in (*fast, *(name for name in FAMILIES if name not in fast)):
        family = FAMILIES[name]
        # The bytes of one that grows with a burst are only its first.
        suited = family.promise and not family.baseline and family.windows != "time"
        if (
            not suited
            or unsuited(family, timed=timed, unknown=unknown)
            or not all(family.takes(name) for name in request)
        ):
            continue
        try:
            able.append((family, *figures_of(family, window, slack, request)))
        except ValueError as error:
            errors.append(str(error))
            continue
        if name in fast:
            break
    if not able:
        raise ValueError("; ".join(dict.fromkeys(errors)) or f"no filter takes {', '.join(request)} together")
    return _best(able, prefer, fixed_bytes="nbytes" in request)


def _best(
    able: list[tuple[Family, dict[str, Any], dict[str, Any]]], prefer: str, *, fixed_bytes: bool
) -> tuple[Family, dict[str, Any], dict[str, Any]]:
    """Choose among the families that can."""
    if prefer == "memory":
        return min(able, key=lambda one: one[2]["fpr" if fixed_bytes else "nbytes"])

    def cost(one: tuple[Family, dict[str, Any], dict[str, Any]]) -> tuple[int, float]:
        lines = one[2]["cache_lines"]
        return one[2]["nbytes"], lines["miss"] + lines["insert"]

    return fewest_lines(able, cost)
