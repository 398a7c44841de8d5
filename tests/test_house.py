"""The rooms of CONTRIBUTING.md: budgets of lines, layers that use only those below them, modules without circles."""

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter

import pytest

from support.tree import ROOT, tracked

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BUDGET = re.compile(r"^\| `([^`]+)` \| ([\d,]+) \|", re.MULTILINE)
LAYERS = re.search(r"<!-- layers, the lowest first -->\n```\n(.*?)```", CONTRIBUTING, re.DOTALL)
USE = re.compile(r"^([ \t]*)(?:pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
EXPORT = re.compile(r"^pub(?:\([^)]*\))? use ([^;]+);", re.MULTILINE)
PATH = re.compile(r"(?<![\w:$])(?:crate|super)(?:::\w+)+")
COMMENT = re.compile(r"//.*")
TESTS = re.compile(r"#\[cfg\(test\)\]\nmod tests \{.*", re.DOTALL)


def names() -> list[str]:
    """Return the tracked files of the product, by their path."""
    paths = (path.relative_to(ROOT).as_posix() for path in tracked(".rs", ".py", ".pyi"))
    return [name for name in paths if name.startswith(("src/", "crates/", "python/", "tests/"))]


def sources(*folders: str, suffix: str) -> dict[str, str]:
    """Return the text of the files in some folders, but for tests."""
    names_ = (name for name in names() if name.startswith(folders) and name.endswith(suffix))
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in names_ if "tests" not in name}


def lines(name: str) -> int:
    return len((ROOT / name).read_text(encoding="utf-8").splitlines())


def within(name: str, part: str) -> bool:
    """Return whether a file is in a folder, or matches a pattern such as `src/family/*.rs`, which has no subfolders."""
    folder, _, pattern = part.rpartition("/")
    return fnmatchcase(name, part) and "/" not in name[len(folder) + 1 :] if "*" in pattern else name.startswith(part)


def too_large(files: dict[str, int], budgets: dict[str, int]) -> dict[str, int]:
    """Return the rooms that exceed their budget by more than 5 %, with their lines. A room is a folder or a file."""
    rooms = {
        room: sum(count for name, count in files.items() if any(within(name, part) for part in room.split()))
        for room in budgets
    }
    return {room: count for room, count in rooms.items() if count > 1.05 * budgets[room]}


def flattened(use: str) -> Iterator[str]:
    """Yield each path of a `use`, without groups and aliases."""
    use = re.sub(r"\s+", "", re.sub(r"\s+as\s+\w+", "", use))
    group = re.search(r"\{([^{}]*)\}", use)
    if group is None:
        yield use.removesuffix("::*").removesuffix("::self")
        return
    for part in filter(None, group[1].split(",")):
        yield from flattened(use[: group.start()] + part + use[group.end() :])


class Crate:
    """The modules of a Rust crate by their path, and which of them each uses."""

    def __init__(self, sources: dict[str, str]) -> None:
        self.file = {self.module(name): name for name in sources}
        self.text = {self.module(name): TESTS.sub("", COMMENT.sub("", text)) for name, text in sources.items()}
        self.exports = {
            module: {path.rsplit("::", 1)[-1]: path for use in EXPORT.findall(text) for path in flattened(use)}
            for module, text in self.text.items()
        }

    @staticmethod
    def module(name: str) -> tuple[str, ...]:
        parts = name.removesuffix(".rs").split("/")[1:]
        return tuple(parts[:-1] if parts[-1] in ("mod", "lib") else parts)

    def resolve(self, path: str, module: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the module that a path from `module` leads to, through what modules export; None for other crates."""
        parts = path.split("::")
        if parts[0] == "crate":
            place: tuple[str, ...] = ()
        elif parts[0] == "super":
            place = module[:-1]
            while parts[1:2] == ["super"]:
                parts, place = parts[1:], place[:-1]
        elif (*module, parts[0]) in self.file:
            place, parts = module, ["", *parts]
        else:
            return None
        for i, part in enumerate(parts[1:], 1):
            if (*place, part) in self.file:
                place = (*place, part)
            elif part in self.exports.get(place, {}):
                return self.resolve("::".join([self.exports[place][part], *parts[i + 1 :]]), place) or place
            else:
                break
        return place

    def uses(self) -> Iterator[tuple[str, str]]:
        """Yield each file with one that it uses. A file and those in the folder of its name are parts of one module."""
        for module, text in self.text.items():
            # In a module within the file, `super` is the file.
            named = [
                path for indent, use in USE.findall(text) if not indent or "super" not in use for path in flattened(use)
            ]
            for path in named + PATH.findall(USE.sub("", text)):
                used = self.resolve(path, module)
                if used is not None and used in self.file:
                    yield self.file[module], self.file[used]


def layers() -> list[list[str]]:
    assert LAYERS, "CONTRIBUTING.md lists the layers"
    return [line.split() for line in LAYERS[1].splitlines()]


def layer(name: str, order: list[list[str]]) -> int:
    """Return the layer of a file: that of the longest pattern that matches."""
    found = [
        (len(pattern), place)
        for place, patterns in enumerate(order)
        for pattern in patterns
        if fnmatchcase(name, pattern)
    ]
    assert found, f"{name} is in no layer of CONTRIBUTING.md"
    return max(found)[1]


def upward(uses: Iterator[tuple[str, str]], order: list[list[str]]) -> list[str]:
    return sorted({f"{a} uses {b}" for a, b in uses if layer(a, order) < layer(b, order)})


def node(name: str) -> str:
    """Return the module of a file: a folder of `src` or of `src/family`, where rows are modules of their own."""
    parts = name.removesuffix(".rs").split("/")
    if parts[1] != "family":
        return parts[1]
    return "/".join(parts[1:3]) + ("/row" if parts[-1] == "row" else "")


def python_module(name: str) -> str:
    return name.removeprefix("python/").removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def python_imports(name: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield each module of the package that a module imports, at once or in a function; types alone do not count."""
    module, left = python_module(name), [ast.parse(text)]
    while left:
        statement = left.pop()
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("lately"):
            yield from ((module, f"{statement.module}.{alias.name}") for alias in statement.names)
        elif isinstance(statement, ast.Import):
            yield from ((module, alias.name) for alias in statement.names if alias.name.startswith("lately"))
        if not (isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"):
            left += ast.iter_child_nodes(statement)


def circle(uses: Iterator[tuple[str, str]]) -> list[str]:
    """Return the modules of a circle, if there is one."""
    graph: dict[str, set[str]] = {}
    for a, b in uses:
        if a != b:
            graph.setdefault(a, set()).add(b)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.fixture(scope="module")
def crate() -> Crate:
    return Crate(sources("src/", suffix=".rs"))


def test_no_room_exceeds_its_budget():
    budgets = {room: int(count.replace(",", "")) for room, count in BUDGET.findall(CONTRIBUTING)}
    assert len(budgets) > 20
    files = {name: lines(name) for name in names()}
    assert too_large(files, budgets) == {}
    # Every file of the product is in a room.
    parts = [part for room in budgets for part in room.split()]
    assert [name for name in files if not any(within(name, part) for part in parts)] == []


def test_a_room_that_exceeds_its_budget_is_found():
    files = {"src/a/b.rs": 90, "src/a/c/e.rs": 16, "src/d.rs": 4}
    budgets = {"src/a/ src/d.rs": 105, "src/a/": 100, "src/a/*.rs": 86, "src/*.rs": 4}
    assert too_large(files, budgets) == {"src/a/": 106}


def test_no_module_uses_one_above_it(crate):
    assert upward(crate.uses(), layers()) == []


def test_no_rust_modules_form_a_circle(crate):
    assert circle((node(a), node(b)) for a, b in crate.uses()) == []


def test_no_python_modules_form_a_circle():
    package = sources("python/", suffix=".py")
    modules = {python_module(name) for name in package} | {"lately._core"}

    def known(module: str) -> str:
        return module if module in modules else module.rpartition(".")[0]

    uses = [(a, known(b)) for name, text in package.items() for a, b in python_imports(name, text)]
    assert len(uses) > 100
    assert circle(iter(uses)) == []


def test_circles_and_arrows_that_point_up_are_found():
    made = {
        "src/lib.rs": "pub mod low; pub mod high;",
        "src/low.rs": "use crate::high::{self, Other as _};\n",
        "src/high/mod.rs": "mod part;\npub use part::Item;\n",
        "src/high/part.rs": "use crate::low;\nfn f() { super::super::low::g() }\n",
    }
    uses = sorted(set(Crate(made).uses()))
    assert ("src/low.rs", "src/high/mod.rs") in uses
    assert ("src/high/part.rs", "src/low.rs") in uses
    order = [["src/low.rs"], ["src/high/*"], ["src/lib.rs"]]
    assert upward(iter(uses), order) == ["src/low.rs uses src/high/mod.rs"]
    assert set(circle((node(a), node(b)) for a, b in uses)) == {"low", "high"}
    through = Crate(made | {"src/low.rs": "use crate::high::Item;\n"})
    assert ("src/low.rs", "src/high/part.rs") in set(through.uses())
    text = "from lately.b import c\ndef f():\n  import lately.d\nif TYPE_CHECKING:\n  import lately.e\n"
    assert set(python_imports("python/lately/a.py", text)) == {("lately.a", "lately.b.c"), ("lately.a", "lately.d")}
