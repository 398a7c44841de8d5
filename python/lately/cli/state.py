"""The state between runs: a filter, and beside it a note with its options and the runs that it contains.

A user who starts a run again, because it did not end with status 0, must lose no record and get no record twice.
Therefore a run replaces its note, then its output, then the filter, and flushes each to the disk before the next. If it
is killed before the last step, the filter is unchanged, and the repeated run gives the same output. If it is killed
afterwards, the filter contains the run. The note states this, and the repeated run leaves its output in place.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from lately.cli.errors import CliError
from lately.cli.inputs import identity
from lately.cli.outputs import Replacement, check_replaceable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    import lately

_HEADER = 64  # bytes of a saved filter that hold the sums of all the others
_RUNS = 32  # most runs in a note
_OPTIONS = {"key": list, "format": str, "time": str, "ignore_case": bool, "types": str}


@contextmanager
def open_state(name: str) -> Iterator[State]:
    """Open the state of this name. No other run may use it until this context ends."""
    with locked(name, "state") as path:
        yield State(name, path)


@contextmanager
def locked(name: str, option: str) -> Iterator[Path]:
    """Lock the state of this name, which an option gives, until this context ends. Yield its file."""
    path = Path(name).resolve()  # so that a link remains a link
    if path.exists() and not path.is_file():
        raise CliError(f"--{option} {name}: not a regular file")
    if not path.parent.is_dir():
        raise CliError(f"--{option} {name}: the folder {path.parent} does not exist")
    _, _, lock = files_of(path)
    try:
        check_replaceable(path)
        check_replaceable(note_of(path))
        descriptor = _locked(lock)
    except BlockingIOError:
        raise CliError(f"--{option} {name} is in use by another run") from None
    except OSError as error:
        raise CliError(f"cannot write --{option} {name}: {error.strerror or error}") from None
    try:
        yield path
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def _locked(lock: Path) -> int:
    """Create a file and lock it. The kernel releases the lock when the process ends, for any reason."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), lock.stat()):
                return descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # another run removed the file between the two calls


class State:
    """A saved filter and its note.

    Attributes
    ----------
    name : str
        Name of the filter's file in the options.
    path : Path
        The file, with links followed.
    options : dict
        Options of its runs, such as the key. Later runs must not contradict them.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self._note = note_of(path)
        self.options: dict[str, Any] = {}
        self._runs: list[dict[str, Any]] = []
        if path.exists():
            self._read()

    def _read(self) -> None:
        try:
            note = json.loads(self._note.read_bytes())
            self.options = recorded(note)
            runs = [{part: run[part] for part in ("inputs", "outputs", "state")} for run in note["runs"]]
        except FileNotFoundError:
            return  # saved in Python
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CliError(f"--state {self.name}: cannot read its note {self._note}: {error}") from None
        found = _digest(self.path)
        # The filter contains the runs up to the one that saved it. A later run was killed before it replaced the
        # filter.
        last = max((i for i, run in enumerate(runs) if run["state"] == found), default=-1)
        self._runs = runs[: last + 1]

    def holds(self, inputs: list[Any], outputs: list[Path]) -> bool:
        """Whether the filter contains a run with these inputs, and the run's outputs are unchanged since.

        Only regular files can be checked.
        """
        try:
            written = [[str(path), *identity(path.stat())] for path in outputs]
        except OSError:
            return False
        return any(run["inputs"] == inputs and run["outputs"] == written for run in self._runs if written)

    @contextmanager
    def prepared(
        self, filter: lately.Filter, options: dict[str, Any], inputs: list[Any], outputs: list[Any]
    ) -> Iterator[tuple[Replacement, Replacement]]:
        """Write the note and the filter under temporary names, so that only the renaming is left, in this order."""

        def contents(made: Path) -> Any:
            run = {"inputs": inputs, "outputs": outputs, "state": _digest(made)}
            return {"options": options, "runs": [*self._runs, run][-_RUNS:]}

        with ExitStack() as stack:
            try:
                made = stack.enter_context(replacements(self.path, filter, contents))
            except OSError as error:
                raise CliError(f"cannot write --state {self.name}: {error.strerror or error}") from None
            yield made


@contextmanager
def replacements(
    path: Path, filter: lately.Filter, contents: Callable[[Path], Any]
) -> Iterator[tuple[Replacement, Replacement]]:
    """Write a filter and its note under temporary names. `contents` returns what the note of the filter's file has."""
    # The file of a filter with a secret seed, which is shown as None, can be read by its owner alone.
    with closing(Replacement(path, 0o600 if filter.seed is None else 0o666)) as saved:
        filter.save(saved.file)
        saved.finish()
        with closing(Replacement(note_of(path))) as note:
            note.file.write(json.dumps(contents(saved.temporary)).encode())
            note.finish()
            yield note, saved


def note_of(path: Path) -> Path:
    """Return the path of a filter's note."""
    return path.with_name(f"{path.name}.json")


def files_of(path: Path) -> tuple[Path, Path, Path]:
    """Return the files of a state: the filter, its note, and the lock of a run."""
    return path, note_of(path), path.with_name(f"{path.name}.lock")


def recorded(note: Any) -> dict[str, Any]:
    """Return the options of the runs in a note; `ValueError` if there are none, or others than a run records."""
    options = note.get("options") if isinstance(note, dict) else None
    if not (
        isinstance(options, dict)
        and all(value is None or isinstance(value, _OPTIONS.get(name, ())) for name, value in options.items())
        and all(isinstance(field, str) for field in options.get("key") or ())
    ):
        raise ValueError(f"expected the options of a run, got {options!r}")
    return options


def _digest(path: Path) -> str:
    """Return a digest that identifies a saved filter, and does not reveal the secret in its header."""
    with path.open("rb") as file:
        return hashlib.blake2b(file.read(_HEADER), digest_size=16).hexdigest()
