"""Descriptions written once: a docstring refers to a parameter that another docstring describes.

A docstring contains an entry such as this::

    window, seed
        As in `Filter`.

`complete` replaces it by the entries of `Filter` for these names, so that `help` and the site show them in full. In the
source the entry stays short, and an editor shows where the description is.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _Documented = TypeVar("_Documented")

_REFERENCE = "As in `"
_BY_NAME: dict[str, Any] = {}
_ENTRIES: dict[str, dict[str, tuple[str, ...]]] = {}


def complete(documented: _Documented) -> _Documented:
    """Decorate a class or function: replace each reference in its docstring, and in those of its methods.

    A reference names a class or function that was decorated before, or a method of one: "As in `Filter.query`."
    """
    thing: Any = documented
    _BY_NAME[thing.__name__] = thing
    members = [getattr(member, "__func__", member) for member in vars(thing).values()]
    for each in [thing, *members] if isinstance(thing, type) else [thing]:
        text = getattr(each, "__doc__", None)
        if text and _REFERENCE in text:
            each.__doc__ = _completed(text)
    return documented


def _completed(text: str) -> str:
    """Return a docstring with the entries that its references name."""
    lines: list[str] = []
    for line in text.split("\n"):
        if _REFERENCE in line and line.endswith("`."):
            names = lines.pop()
            margin = names[: len(names) - len(names.lstrip())]
            entries = _entries(line.lstrip()[len(_REFERENCE) : -2])
            for found in dict.fromkeys(entries[name] for name in names.strip().split(", ")):
                lines += [f"{margin}{of_entry}" if of_entry else "" for of_entry in found]
        else:
            lines.append(line)
    return "\n".join(lines)


def _entries(name: str) -> dict[str, tuple[str, ...]]:
    """Return the entries of the class, function or method of this name."""
    first, *rest = name.split(".")
    thing = _BY_NAME[first]
    for part in rest:
        thing = getattr(thing, part)
    text: str = thing.__doc__
    if text not in _ENTRIES:
        _ENTRIES[text] = _read_entries(text)
    return _ENTRIES[text]


def _read_entries(text: str) -> dict[str, tuple[str, ...]]:
    """Return the entries of a docstring by name: the line of names and types, and the indented lines below it."""
    lines = text.split("\n")
    # Python before 3.13 keeps the margin of the source.
    margin = next((len(line) - len(line.lstrip()) for line in lines[1:] if line), 0)
    lines = [lines[0], *(line[margin:] for line in lines[1:])]
    entries: dict[str, tuple[str, ...]] = {}
    for start, line in enumerate(lines[:-1]):
        if line[:1].strip() and lines[start + 1].startswith("    "):
            end = start + 1
            while end < len(lines) and (not lines[end] or lines[end].startswith("    ")):
                end += 1
            while not lines[end - 1]:
                end -= 1
            for of_line in line.split(" : ")[0].split(", "):
                entries.setdefault(of_line, tuple(lines[start:end]))
    return entries
