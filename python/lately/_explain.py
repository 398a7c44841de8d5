"""A filter described in words, for `Filter.explain`."""

from math import inf

from lately._core import Filter, variants

_WHY = {
    "age-partitioned": "the layout of its paper, in which old keys fade slice by slice; the fewest bytes of its class",
    "age-partitioned-512": "a slice's bits of a key in one cache line; for rates too low for lines",
    "age-partitioned-line": "the fastest for windows of either kind: a key's bits are in one cache line, or a few",
    "guarded-epoch": "the layout of its paper, segments that rotate",
    "guarded-epoch-512": "a segment's bits of a key in one cache line",
    "guarded-epoch-line": "fast, and a few bits smaller than age-partitioned lines",
    "guarded-epoch-transposed": "few bytes, and it fades gently when overfull",
    "aged-cuckoo": "fast, in few bytes, none of them for repeats, and with an age for every key",
    "timing": "a cell stores when it was set; the window may be exact",
    "timing-growing": "opens another part in a burst, and drops it afterwards",
    "time-limited": "for an unknown rate of keys: memory follows it",
    "swamp": "an exact window of insertions, and how often every key came",
    "exact": "no false positive and no slack, in memory that holds every key",
    "bloom": "for a stream that ends: nothing is forgotten",
}
"""The reason to take a family, by its name."""

_VARIANTS = {variant["name"]: variant for variant in variants()} | {"exact": {"promise": True}}
"""The rows of the table of families, which has none for the exact window."""

_UNITS = {"d": 86_400, "h": 3600, "min": 60}


def explained(made: Filter) -> str:
    """Format the explanation as lines."""
    (_, name), *rows = _rows(made)
    width = max(len(label) for label, _ in rows)
    return "\n".join([name, *(f"  {label:<{width}}  {what}" for label, what in rows)])


def _rows(made: Filter) -> list[tuple[str, str]]:
    """Return label and text of each fact, the name first."""
    family = made.family
    rows = [("", f"{type(made).__name__}, {family}"), ("why", _why(made))]
    rows += [("window", _window(made))]
    if made.window is not None:
        rows += [("slack", _slack(made))]
    now = made.false_positive_rate()
    rows += [
        (
            "false positives",
            f"a key never inserted is reported with a chance of {made.fpr:.3g} as planned, {now:.3g} now",
        ),
        ("memory", f"{made.nbytes:,} bytes, {made.bits_per_key:.1f} bits per key of a full window"),
        ("fill", _fill(made)),
        ("inserted", _inserted(made)),
        ("seed", _seed(made)),
    ]
    return rows


def _why(made: Filter) -> str:
    if made.family not in _WHY:
        return f"for comparisons: {_VARIANTS[made.family]['note']}"
    return _WHY[made.family]


def _window(made: Filter) -> str:
    promise = "a key inserted within it is always reported"
    if made.window is None:
        return f"none: a key that was ever inserted is reported; planned for {made.capacity:,} keys"
    if not _promises(made):
        promise = "a key inserted within it may be missed"
    if isinstance(made.window, int):
        return f"the last {made.window:,} keys: {promise}"
    guessed = made.family in ("time-limited", "exact") or made.parameters.get("chain") == 2
    planned = "" if guessed else f", planned for {made.capacity:,} keys"
    late = f", times may step back by {_span(made.lateness)}" if made.lateness else ""
    return f"the last {_span(made.window)}{planned}{late}: {promise}"


def _promises(made: Filter) -> bool:
    return _VARIANTS[made.family]["promise"] and made.parameters.get("equal_timers", 1) == 1


def _slack(made: Filter) -> str:
    if made.slack == inf:
        return "no bound: a key may be reported long after its window"
    if made.slack == 0:
        return "none: a key that leaves the window is gone"
    more = f"{made.slack:,} keys" if isinstance(made.slack, int) else _span(made.slack)
    part = f" (1/{made.window / made.slack:.0f} of the window)" if 8 * made.slack <= made.window else ""
    return f"up to {more} more{part}, in which a key may still be reported"


def _fill(made: Filter) -> str:
    fill = made.fill
    if not len(fill):
        return "empty"
    parts = f" of {len(fill)} parts" if len(fill) > 1 else ""
    return f"{float(fill.mean()):.1%} of the cells in use, {float(fill.max()):.1%} at most{parts}"


def _inserted(made: Filter) -> str:
    latest = "" if made.latest is None else f", the latest at {made.latest.astype('datetime64[s]')} UTC"
    return f"{made.inserted:,} so far{latest}"


def _seed(made: Filter) -> str:
    if made.seed is None:
        return "secret: no attacker can choose keys that collide"
    return f'{made.seed}, which is no secret: where keys come from outside, take seed="random"'


def _span(seconds: float) -> str:
    """Format seconds in the largest unit that divides them."""
    for unit, length in _UNITS.items():
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:,.6g} s"
