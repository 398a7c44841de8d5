"""The ways out: which records go where, and in what form."""

from __future__ import annotations

from contextlib import contextmanager, suppress

from lately.cli.errors import CliError
from lately.cli.outputs import Output
from lately.cli.records import others

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from lately.cli.marks import Mark
    from lately.cli.parquet import ParquetReader, ParquetSink
    from lately.cli.records import Batch, LineReader, LineSink, Marks


class Route:
    """New records or repeats, or all of them with a mark, on their way to a file or stream.

    With `count` only their number is written.

    Whatever goes wrong names the file, but for a reader of standard output that has gone.
    """

    def __init__(
        self,
        name: str,
        reader: LineReader | ParquetReader,
        *,
        repeats: bool = False,
        mark: Mark | None = None,
        count: bool = False,
    ) -> None:
        self._name = name
        self._repeats = repeats
        self._mark = mark
        self._count = 0
        self._finished = False
        with self._blamed():
            self.output = Output(name)
        self._sink: LineSink | ParquetSink | None = None
        if not count:
            self._sink = reader.sink(self.output, marked=mark is not None)

    def write(self, batch: Batch, new: Marks) -> None:
        """Write those of a batch that go this way."""
        goes = others(new) if self._repeats else new
        if self._mark is not None:
            batch, goes = self._mark(batch, new), b"\1" * len(new)
        if self._sink is None:
            self._count += goes.count(1)
            return
        with self._blamed():
            self._sink.write(batch, goes)

    def finish(self) -> None:
        """Write what is waiting, and hand it on or bring it to the disk."""
        self._finished = True
        with self._blamed():
            if self._sink is None:
                self.output.stream.write(b"%d\n" % self._count)
            else:
                self._sink.close()
            self.output.finish()

    def replace(self) -> None:
        """Put a file in place."""
        with self._blamed():
            self.output.replace()

    def close(self) -> None:
        """Close what is open, and remove what has not replaced anything."""
        if self._sink is not None and not self._finished:
            with suppress(OSError):
                self._sink.close()
        self.output.close()

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            shown = "standard output" if self._name == "-" else self._name
            raise CliError(f"cannot write {shown}: {error.strerror or error}") from None
