"""The words of the glossary, and what the rules of CONTRIBUTING.md exclude: counts that may only fall.

`python tests/test_language.py [FOLDER ...]` lists the places, of some folders or of all.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator

import pytest

from support.tree import ROOT, tracked

# A phrase that is quoted by itself, as here, is mentioned rather than used. `.tell()` is the method of Python's files.
PHRASES = [
    *("told", "tell", "tells", "say", "says", "said", "ask", "asks", "asked", "asking"),
    *("nobody", "somebody", "whoever", "begun", "at hand", "so many", "one by one"),
]
# Words with which no doc comment and no docstring begins: each refers to what stands above.
OPENINGS = [
    *("The same", "Its", "It", "Of these", "Of those", "Of that", "Of it", "Of which", "Those", "These", "That"),
    *("They", "Their", "This", "Such", "Who", "Whoever", "What it", "Likewise", "Also", "And", "But", "So"),
    *("As above", "As before", "As there"),
]
PHRASE = re.compile(rf"\b({'|'.join(PHRASES)})\b", re.IGNORECASE)
MENTIONED = re.compile(rf"([\"'`])({'|'.join(PHRASES)})\1|\.tell\(\)", re.IGNORECASE)
OPENING = re.compile(rf"({'|'.join(OPENINGS)})\b")
PRODUCT = ("src/", "crates/", "python/")

RUST_TYPE = re.compile(r"^\s*(?:pub(?:\(.*?\))? )?(?:struct|enum|trait|union) (\w+)", re.MULTILINE)
PYTHON_TYPE = re.compile(r"^class (\w+)", re.MULTILINE)
RUST_FUNCTION = re.compile(r'^( *)(?:pub(?:\(.*?\))? )?(?:const |async |unsafe |extern "C" )*fn (\w+)', re.MULTILINE)


class Sources:
    """Tracked files of some folders, by name."""

    def __init__(self, folders: tuple[str, ...] = ()) -> None:
        paths = tracked(".rs", ".py", ".pyi", ".md")
        named = {path.relative_to(ROOT).as_posix(): path for path in paths}
        self.text = {
            name: path.read_text(encoding="utf-8")
            for name, path in named.items()
            if not folders or name.startswith(folders)
        }

    def of(self, *suffixes: str, product: bool = False) -> Iterator[tuple[str, str]]:
        """Yield name and text of the files with a suffix; of the product alone, or of all."""
        for name, text in self.text.items():
            if name.endswith(suffixes) and (not product or name.startswith(PRODUCT)):
                yield name, text


def phrases(sources: Sources) -> Iterator[str]:
    """Yield each line with a listed phrase."""
    for name, text in sources.of(".rs", ".py", ".pyi", ".md"):
        for number, line in enumerate(text.splitlines(), 1):
            if PHRASE.search(line) and PHRASE.search(MENTIONED.sub("", line)):
                yield f"{name}:{number}: {line.strip()}"


def openings(sources: Sources) -> Iterator[str]:
    """Yield the first line of each doc comment and docstring that begins with a listed word."""
    for name, text in sources.of(".rs"):
        above = ""
        for number, line in enumerate(text.splitlines(), 1):
            line = line.strip()
            first = line.startswith(("///", "//!")) and not above.startswith(line[:3])
            if first and OPENING.match(line[3:].strip()):
                yield f"{name}:{number}: {line}"
            above = line
    for name, text in sources.of(".py", ".pyi"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(node, clean=False) or ""
                if OPENING.match(docstring.strip()):
                    yield f"{name}:{node.body[0].lineno}: {docstring.strip().splitlines()[0]}"


def repeated_types(sources: Sources) -> Iterator[str]:
    """Yield each type name that more than two modules of one language define."""
    for suffix, pattern in ((".rs", RUST_TYPE), (".py", PYTHON_TYPE)):
        modules = defaultdict(set)
        for name, text in sources.of(suffix, product=True):
            for found in pattern.finditer(text):
                modules[found[1]].add(name)
        yield from (f"{found}: {', '.join(sorted(where))}" for found, where in modules.items() if len(where) > 2)


def closing(text: str, start: int) -> int:
    """Return the place of the bracket that closes the one at `start`; `->` closes none."""
    depth = 0
    for found in re.compile(r"[(\[{<]|(?<!-)>|[)\]}]").finditer(text, start):
        depth += 1 if found[0] in "([{<" else -1
        if depth == 0:
            return found.start()
    raise ValueError(text[start : start + 60])


def rust_functions(sources: Sources) -> Iterator[tuple[str, int, int]]:
    """Yield the place of each Rust function, how many parameters it has, and how many lines."""
    for name, text in sources.of(".rs", product=True):
        for found in RUST_FUNCTION.finditer(text):
            start = found.end()
            if text[start] == "<":
                start = closing(text, start) + 1
            end = closing(text, start)
            inside, parameters, place = text[start + 1 : end], 0, 0
            while place < len(inside):
                if inside[place] in "([{<":
                    place = closing(inside, place)
                parameters += inside[place] == ","
                place += 1
            parameters += bool(inside.strip().rstrip(",")) and not inside.strip().endswith(",")
            body = text.find("{", end)
            lines = 1
            # A body on one line ends there; another ends with the next brace at the function's own indent.
            if body != -1 and ";" not in text[end:body] and not text[body : text.index("\n", body)].endswith("}"):
                lines += text.count("\n", found.start(), text.index(f"\n{found[1]}}}", body) + 1)
            yield f"{name}:{text.count(chr(10), 0, found.start()) + 1}: {found[2]}", parameters, lines


def many_parameters(sources: Sources) -> Iterator[str]:
    """Yield each Rust function with more than 7 parameters."""
    for place, parameters, _ in rust_functions(sources):
        if parameters > 7:
            yield f"{place}, {parameters} parameters"


def long_functions(sources: Sources) -> Iterator[str]:
    """Yield each function of the product of more than 80 lines; a docstring is not counted."""
    for place, _, lines in rust_functions(sources):
        if lines > 80:
            yield f"{place}, {lines} lines"
    for name, text in sources.of(".py", product=True):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(node, clean=False)
                lines = node.end_lineno - node.lineno + 1 - (docstring.count("\n") + 1 if docstring else 0)
                if lines > 80:
                    yield f"{name}:{node.lineno}: {node.name}, {lines} lines"


# What is counted, and the highest count that passes. Lower it with the count.
LIMITS = {
    phrases: 1,
    openings: 0,
    repeated_types: 0,
    many_parameters: 2,
    long_functions: 0,
}


@pytest.fixture(scope="module")
def sources():
    return Sources()


@pytest.mark.parametrize("counted", LIMITS, ids=lambda counted: counted.__name__)
def test_no_count_rises(counted, sources):
    found = list(counted(sources))
    assert len(found) <= LIMITS[counted], f"{len(found)}, at most {LIMITS[counted]}:\n" + "\n".join(found)


def test_the_glossary_has_at_most_60_terms():
    page = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^(\S.*)\n:   ", page, re.MULTILINE)
    assert 40 < len(terms) <= 60
    assert len({*terms}) == len(terms)


def test_each_rule_finds_what_it_excludes():
    sources = Sources(("no such folder",))
    phrase, opening = PHRASES[0].title(), OPENINGS[1]
    sources.text = {
        "src/a.rs": f"/// {opening} seed.\n/// {phrase} twice.\nstruct Same;\nfn f() {{ {phrase}(); }}\n",
        "src/b.rs": f"pub(crate) struct Same;\nfn g<F: Fn(u8) -> u8>({'a: (u8, u8), ' * 8}) {{\n{'x;' * 80}\n}}\n",
        "src/c.rs": "pub enum Same { A }\nfn h() {\n" + "    x;\n" * 79 + "}\n",
        "python/d.py": f'"""{opening} use."""\n\nplace = file.tell()\nword = "{phrase}"\n',
        "docs/e.md": f"What a `{phrase}` {phrase}.\n",
    }
    assert [len(list(counted(sources))) for counted in LIMITS] == [3, 2, 1, 1, 1]


if __name__ == "__main__":
    chosen = Sources(tuple(sys.argv[1:]))
    for counted in LIMITS:
        places = list(counted(chosen))
        print(f"{counted.__name__.replace('_', ' ')}: {len(places)}", *places, sep="\n    ")
