"""What is carried from run to run: the filter, and beside it a note of what it was asked and holds.

Whoever starts a run again because it did not end with 0 must lose nothing and get nothing twice. A run replaces its
note, then its output, then the filter, each durably before the next. Struck before the last step, it left the filter as
it was, and the run again gives the same output. Struck after it, the filter holds the run: the note says so, and the
run again leaves its output in place.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path

from lately.cli.errors import CliError
from lately.cli.filters import save
from lately.cli.inputs import identity
from lately.cli.outputs import beside, sync_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import lately

_HEADER = 64  # bytes of a saved filter that hold the sums of all the others
_RUNS = 32  # how many runs a note remembers


@contextmanager
def open_state(name: str) -> Iterator[State]:
    """Take the state that is named, which no other run may use meanwhile."""
    path = Path(name).resolve()  # a link stays a link
    if path.exists() and not path.is_file():
        raise CliError(f"--state {name}: not a regular file")
    if not path.parent.is_dir():
        raise CliError(f"--state {name}: there is no folder {path.parent}")
    lock = path.with_name(f"{path.name}.lock")
    try:
        descriptor = _locked(lock)
    except BlockingIOError:
        raise CliError(f"--state {name} is in use by another run") from None
    except OSError as error:
        raise CliError(f"cannot write --state {name}: {error.strerror or error}") from None
    try:
        yield State(name, path)
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def _locked(lock: Path) -> int:
    """Create a file and lock it. The kernel ends the lock with the process, however that ends."""
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
        os.close(descriptor)  # the run before removed it between the two calls


class State:
    """A saved filter and its note.

    Attributes
    ----------
    name : str
        As the user calls it.
    path : Path
    asked : dict
        What its runs were asked, such as the key, which later ones must not contradict.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self._note = note_of(path)
        self._waiting: dict[Path, Path] = {}
        self.asked: dict[str, Any] = {}
        self._runs: list[dict[str, Any]] = []
        if path.exists():
            self._read()

    @property
    def exists(self) -> bool:
        """Whether a run has left a filter."""
        return self.path.exists()

    def _read(self) -> None:
        try:
            note = json.loads(self._note.read_bytes())
            self.asked, runs = note["asked"], note["runs"]
        except FileNotFoundError:
            return  # saved by Python, or by a version that took no notes
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CliError(f"--state {self.name}: its note {self._note} cannot be read: {error}") from None
        found = _digest(self.path)
        # Runs up to the one that saved this filter are in it; a later one was struck before it replaced the filter.
        last = max((i for i, run in enumerate(runs) if run["state"] == found), default=-1)
        self._runs = runs[: last + 1]

    def holds(self, inputs: list[Any], outputs: list[Path]) -> bool:
        """Whether a run with these inputs is in the filter, and its outputs are in place as it wrote them.

        Only regular files can be in place.
        """
        try:
            written = [[str(path), *identity(path.stat())] for path in outputs]
        except OSError:
            return False
        return any(run["inputs"] == inputs and run["outputs"] == written for run in self._runs if written)

    def prepare(self, filter: lately.Filter, asked: dict[str, Any], inputs: list[Any], outputs: list[Any]) -> None:
        """Write filter and note beside those that are there, so that nothing can go wrong when they are replaced."""
        try:
            made = self._beside(self.path)
            save(filter, made, stat.S_IMODE(self.path.stat().st_mode) if self.path.exists() else None)
            run = {"inputs": inputs, "outputs": outputs, "state": _digest(made)}
            note = self._beside(self._note)
            with note.open("x", encoding="utf-8") as file:
                json.dump({"asked": asked, "runs": [*self._runs, run][-_RUNS:]}, file)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self.discard()
            raise CliError(f"cannot write --state {self.name}: {error.strerror or error}") from None
        except BaseException:
            self.discard()
            raise

    def _beside(self, path: Path) -> Path:
        made = beside(path)
        self._waiting[path] = made
        return made

    def replace_note(self) -> None:
        """Replace the note: the first step."""
        self._replace(self._note)

    def replace_filter(self) -> None:
        """Replace the filter: the last step."""
        self._replace(self.path)

    def _replace(self, path: Path) -> None:
        os.replace(self._waiting.pop(path), path)  # noqa: PTH105
        sync_folder(path.parent)

    def discard(self) -> None:
        """Remove what was prepared and not replaced."""
        for made in self._waiting.values():
            with suppress(OSError):
                made.unlink(missing_ok=True)
        self._waiting.clear()


def note_of(path: Path) -> Path:
    """Where the note of a filter lies."""
    return path.with_name(f"{path.name}.json")


def _digest(path: Path) -> str:
    """Tell a saved filter from any other, without the secret that its header may hold."""
    with path.open("rb") as file:
        return hashlib.blake2b(file.read(_HEADER), digest_size=16).hexdigest()
