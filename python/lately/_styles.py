"""Line styles of the families in pictures: a colour for each class, a line and a marker for each layout.

The colours have medium lightness, so that a picture without a background is readable on white and on black.
"""

from typing import Any

INK = "#7a7a7a"
"""Colour of text and axes, and of lines that are no family."""

_COLOURS = {
    "age-partitioned": "#1f77b4",
    "guarded-epoch": "#2ca02c",
    "aged-cuckoo": "#ff7f0e",
    "timing": "#9467bd",
    "time-limited": "#d62728",
    "swamp": "#e377c2",
    "bloom": "#17becf",
    "counting": "#a0695a",
    "fingerprint-buffer": "#a9a91d",
    "generalized": "#8f8f8f",
    "stable": "#8f8f8f",
}
_LINES: dict[str, dict[str, Any]] = {
    "": {"ls": "-"},
    "line": {"ls": "-", "lw": 2.2},
    "transposed": {"ls": "-", "marker": "^"},
    "512": {"ls": "--", "marker": "s"},
    "64": {"ls": ":", "marker": "s"},
    "growing": {"ls": ":", "marker": "^"},
}
_PLAIN = {"age-partitioned", "guarded-epoch", "timing"}
"""Classes with several layouts, whose name alone is the papers' layout."""


def line_style(name: str) -> dict[str, Any]:
    """Return the style of a family's line, as keywords of `Axes.plot`. Other names are grey."""
    kind = next((kind for kind in _COLOURS if name == kind or name.startswith(f"{kind}-")), "")
    layout = name.removeprefix(kind).removeprefix("-")
    style = {"lw": 1.3, "ms": 3.5, "color": _COLOURS.get(kind, INK), **_LINES.get(layout, {})}
    if name in _PLAIN or name == "stable":
        style["ls"] = "--"
    return style


def transparent() -> dict[str, Any]:
    """Return matplotlib's settings for a picture without a background. The same figures give the same file."""
    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "legend.labelcolor")
    clear = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
    return {
        **dict.fromkeys(inked, INK),
        **dict.fromkeys(clear, "none"),
        "svg.hashsalt": "lately",
        "svg.fonttype": "none",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.color": INK,
        "grid.alpha": 0.25,
    }
