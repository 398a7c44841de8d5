"""Complete what mkdocstrings reads of the package, for the pages of the reference.

- The compiled module has its docstrings when it is imported; its stub, which is what is read, has none.
- A class shows what its ``__new__`` takes.
- NumPy's way to write a list of links and a power becomes Markdown's.
- A choice, ``{"a", "b"}``, is a type. The reader of docstrings would take its first value for the default.
"""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import griffe

from lately import _core

SEE_ALSO = re.compile(r"(?<=See Also\n--------\n)(?:.+\n?)+")
CHOICE = re.compile(r"^(\s*[\w, ]+ : )\{(.+?)\}", re.MULTILINE)
# What stands between backticks is left alone.
POWER = re.compile(r"(``.*?``|`[^`]*`)|(?<=\w)\*\*(?=[-\w(])")


class Docstrings(griffe.Extension):
    """Complete the package once it is read."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Go through all of it."""
        if pkg.name != "lately":
            return
        assert pkg.docstring is not None
        fill(pkg["_core"], _core, pkg.docstring)
        for member in every(pkg):
            if isinstance(member, griffe.Class) and "__new__" in member.members:
                made = member.members.pop("__new__")
                made.name = "__init__"
                member.members["__init__"] = made
            if member.docstring is not None:
                member.docstring.value = in_markdown(member.docstring.value)


def fill(described: griffe.Module | griffe.Class, thing: Any, like: griffe.Docstring) -> None:
    """Fill in the docstrings of all members, and of theirs."""
    for name, member in described.members.items():
        found = inspect.getattr_static(thing, name, None)
        if member.is_alias or found is None or name.startswith("__"):
            continue
        text = inspect.getdoc(found)
        if text and not isinstance(found, (str, bool)):
            options = like.parser_options
            member.docstring = griffe.Docstring(text, parent=member, parser=like.parser, parser_options=options)
        if isinstance(member, griffe.Class):
            fill(member, found, like)


def every(described: griffe.Module | griffe.Class) -> Iterator[griffe.Object]:
    """All that a module or a class has."""
    for member in [*described.members.values()]:
        if not isinstance(member, griffe.Object):
            continue
        yield member
        if isinstance(member, (griffe.Module, griffe.Class)):
            yield from every(member)


def in_markdown(text: str) -> str:
    """Give a docstring whose links are a list, and whose powers are not bold."""
    text = SEE_ALSO.sub(lambda found: re.sub(r"^(\S+) : ", r"- `\1`: ", found[0], flags=re.MULTILINE), text)
    text = CHOICE.sub(lambda found: found[1] + found[2].replace(", ", " or "), text)
    lines = text.split("\n")
    code = (">>>", "...")
    return "\n".join(
        line if line.lstrip().startswith(code) else POWER.sub(lambda found: found[1] or r"\*\*", line) for line in lines
    )
