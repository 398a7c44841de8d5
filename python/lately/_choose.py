"""The family that `lately.Filter` takes for a request."""

from typing import Any

from lately._families import FAMILIES, FASTEST, Family, unsuited, whole
from lately._plan import DEARER, asked_of, figures_of, kind_of


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
    family, asked = _best(able, prefer, fixed_bytes=nbytes is not None)
    times = {"ahead": ahead} if timed else {}
    return family, family.given(window, seed=seed, **asked, **times)


def _best(
    able: list[tuple[Family, dict[str, Any], dict[str, Any]]], prefer: str, *, fixed_bytes: bool
) -> tuple[Family, dict[str, Any]]:
    """Choose among the families that can."""
    least = min(figures["nbytes"] for _, _, figures in able)

    def cost(one: tuple[Family, dict[str, Any], dict[str, Any]]) -> tuple[float, ...]:
        _, _, figures = one
        if prefer == "memory":
            return (figures["fpr"] if fixed_bytes else figures["nbytes"],)
        moved = figures["cache_lines"]["miss"] + figures["cache_lines"]["insert"]
        return (figures["nbytes"] > DEARER * least, moved)

    family, asked, _ = min(able, key=cost)
    return family, asked
