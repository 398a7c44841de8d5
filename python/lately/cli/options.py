"""The options of the commands, and what they say of themselves."""

from __future__ import annotations

import argparse
import re
from contextlib import suppress

from lately import __version__
from lately._core import read_span
from lately._families import FAMILIES
from lately.cli.errors import CliError, optional
from lately.cli.filters import FPR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_DESCRIPTION = """\
Pass on every record whose key was not seen in the window, as it came, byte for byte; drop the repeats. No repeat within
the window is missed. After the window comes the slack, in which a repeat may be dropped too: 1/64 of the window, and a
fourth or half of it for a window of time without --capacity.

A new record, or a repeat after the slack, is dropped by mistake with a chance of at most --fpr. The report at the end,
on standard error, states how many that are in expectation, and about how many were dropped in the slack. Memory does
not grow with the input; for a window of time it follows the rate of records.

Two of the filters miss some repeats: stable and generalized.
"""

_DEFAULTS = {
    "aged-quotient": "the default",
    "aged-quotient-growing": "the default with --capacity",
    "time-limited": "the default without --capacity",
}

_EXAMPLES = """\
examples:
  lately dedupe access.log --window 1000000
        drop lines that occurred among the last million lines
  lately dedupe access.log --follow --window 1000000
        go on as the log grows
  lately dedupe clicks.jsonl.gz --key ip,page.url --time ts --window 10min --output new.jsonl.gz
        drop clicks of the same ip on the same url within ten minutes
  zstdcat day.tsv.zst | lately dedupe --format tsv --key host,url --window 1000000 > new.tsv
        read a pipe: say what it holds (gzip and zstd are recognised here, too)
  lately dedupe monday.csv --key id --window 1000000 --state seen.lately --output new.csv
        carry on, the next time, with what was seen up to now

filters (a number: bits of a block; lately.plan in Python puts them side by side):
{filters}

a run that did not end with 0:
  Start it again. A file of --output is replaced whole or not at all, and before --state. Where the state holds the run
  already, since it was struck after that, its output is left in place: nothing is lost, and nothing comes twice. Two
  limits: the inputs must be as they were, and what went to standard output, a pipe or a device comes again.

exit status:
  0 done; 1 an error, files are as they were; 2 wrong usage; 130 interrupted; 143 told to end; 141 the reader of
  standard output has gone
"""


class _Parser(argparse.ArgumentParser):
    """Reports wrong usage in two lines: the error, and where the options are described."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n`{self.prog} --help` describes the options\n")


def parser() -> argparse.ArgumentParser:
    """Make the parser of all commands; each sets `module` and `run`, the name of the function that runs it."""
    options = _Parser(prog="lately", description="Have I seen this key lately?")
    options.add_argument("--version", action="version", version=f"lately {__version__}")
    options.add_argument(
        "--completion",
        action=_Completion,
        choices=["bash", "zsh", "tcsh"],
        help='print what the shell needs to complete options and files: eval "$(lately --completion bash)"',
    )
    commands = options.add_subparsers(required=True, metavar="COMMAND")
    _dedupe(commands)
    _tools(commands)
    return options


class _Completion(argparse.Action):
    """Prints a shell's completion, and ends."""

    def __call__(self, parser: argparse.ArgumentParser, _options: Any, shell: Any, _name: str | None = None) -> None:
        try:
            shtab = optional("shtab", "--completion")
        except CliError as error:
            parser.error(str(error))
        print(shtab.complete(parser, shell))
        parser.exit()


def _of_file(argument: argparse.Action) -> None:
    """Say to shtab that the shell completes names of files there: the value of ``shtab.FILE``."""
    argument.complete = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}  # type: ignore[attr-defined]


def _tools(commands: Any) -> None:
    command = commands.add_parser(
        "plan",
        help="put the filters for a window side by side",
        description="Put the filters that meet a request side by side, and say which to take.",
    )
    command.set_defaults(module="lately.cli.tools", run="plan")
    command.add_argument(
        "--window",
        type=_window,
        required=True,
        metavar="W",
        help="a number of keys, as 1e6, or a span of time, as 10min",
    )
    rate = command.add_mutually_exclusive_group()
    rate.add_argument("--fpr", type=float, metavar="P", help=f"highest rate of mistakes; default: {FPR:g}")
    rate.add_argument("--bytes", dest="nbytes", type=_bytes, metavar="N", help="most memory, as 65536 or 64KiB")
    command.add_argument(
        "--slack", type=_window, metavar="W", help="longest that keys may be reported after it; default: half of it"
    )
    command.add_argument("--capacity", type=_count, metavar="N", help="for windows of time: keys expected within one")
    command.add_argument("--lateness", type=_span, metavar="SPAN", help="for windows of time: how far times step back")

    command = commands.add_parser(
        "info",
        help="show what a saved filter is",
        description="Show a saved filter: window and slack, rate of mistakes as planned and now, memory; of a --state "
        "of lately dedupe also its key.",
    )
    command.set_defaults(module="lately.cli.tools", run="info")
    _of_file(command.add_argument("files", nargs="+", metavar="FILE", help="saved by --state, or in Python"))

    command = commands.add_parser(
        "query",
        help="ask a saved filter for keys",
        description="Say of each key, as text, whether it was seen lately or is new. The filter stays as it is.",
    )
    command.set_defaults(module="lately.cli.tools", run="query")
    _of_file(command.add_argument("file", metavar="FILE", help="saved by --state, or in Python"))
    command.add_argument(
        "keys",
        nargs="*",
        metavar="KEY",
        help="of a key of several fields the values between commas; default: the lines of standard input",
    )
    command.add_argument("--at", metavar="TIME", help="for windows of time: Unix seconds or ISO 8601; default: now")

    command = commands.add_parser(
        "merge",
        help="unite filters of several machines",
        description="Unite saved filters of windows of time, made alike and with the same --seed, a number: the "
        "result reports every key that one of them reports.",
    )
    command.set_defaults(module="lately.cli.tools", run="merge")
    _of_file(command.add_argument("files", nargs="+", metavar="FILE", help="saved by --state, or in Python"))
    output = command.add_argument(
        "--output", "-o", required=True, metavar="FILE", help="where the united filter is saved"
    )
    _of_file(output)


def _dedupe(commands: Any) -> None:
    command = commands.add_parser(
        "dedupe",
        help="drop records seen lately from a file or stream",
        description=_DESCRIPTION,
        epilog=_EXAMPLES.format(filters=_filters()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(module="lately.cli.dedupe", run="dedupe")
    files = command.add_argument(
        "files", nargs="*", default=["-"], metavar="FILE", help="files, read one after the other; - is standard input"
    )

    what = command.add_argument_group("what the records are")
    what.add_argument(
        "--format",
        choices=["auto", "text", "csv", "tsv", "zeek", "jsonl", "parquet"],
        default="auto",
        help="default: by the name of the input, of a pipe by that of --output, or else text, where each line is a key",
    )
    what.add_argument("--delimiter", type=_delimiter, metavar="CHAR", help="of CSV; default: comma, or tab for .tsv")
    what.add_argument(
        "--quotes",
        action=argparse.BooleanOptionalAction,
        help="whether quotes enclose a field that holds delimiters or ends of lines; default: in CSV, and not in TSV",
    )
    what.add_argument(
        "--no-header",
        dest="header",
        action="store_false",
        help="CSV does not begin with the names of its fields: --key 1,3 and --time 2 count them",
    )
    what.add_argument(
        "--encoding",
        type=_encoding,
        metavar="NAME",
        help="of text; what is not valid is then malformed; default: utf-8, and a key that is not valid is its bytes",
    )
    what.add_argument(
        "--key",
        type=_fields,
        metavar="FIELD,...",
        help="fields that make the key, as a.b within one; of text the numbers of words, as 1,7, counted from 1; "
        "default: all there is",
    )
    what.add_argument(
        "--time",
        metavar="FIELD",
        help="field with the time of a record, for windows of time: Unix seconds, or ISO 8601 (UTC if it has no zone)",
    )
    what.add_argument("--time-unit", choices=["s", "ms", "us", "ns"], help="of times that are numbers; default: s")
    what.add_argument(
        "--time-format", metavar="FORMAT", help="of times, as for strptime: '%%d/%%b/%%Y:%%H:%%M:%%S %%z', '%%Y%%m%%d'"
    )
    what.add_argument(
        "--skip-bad", action="store_true", help="count malformed records and pass over them; default: an error"
    )

    what.add_argument(
        "--follow",
        "-f",
        action="store_true",
        help="at the end of the last file wait for more, and go on with the file that takes its name, as tail -F; "
        "Ctrl-C or SIGTERM is then the end of the input, and the run ends well",
    )
    what.add_argument(
        "--max-record",
        type=_bytes,
        default="16MiB",
        metavar="BYTES",
        help="longer records are malformed, as 65536 or 64MiB; default: 16MiB",
    )

    lately = command.add_argument_group("what lately means")
    lately.add_argument(
        "--window",
        type=_window,
        metavar="W",
        help="a number of records, as 1000000, 1e6 or 1M, or a span of time, as 10min or 1h30min",
    )
    lately.add_argument(
        "--capacity",
        type=_count,
        metavar="N",
        help="for windows of time: records expected within one at busy times; "
        "memory is then fixed; default: it follows the rate",
    )
    lately.add_argument(
        "--lateness", type=_span, metavar="SPAN", help="for windows of time: how far times may step back; default: 0s"
    )
    lately.add_argument(
        "--max-ahead",
        type=_span,
        metavar="SPAN",
        help="for windows of time: how far times may lie ahead of this machine's clock, else a record is malformed; "
        "default: 1d",
    )
    lately.add_argument(
        "--no-refresh",
        dest="refresh",
        action="store_false",
        help="a repeat does not restart the window of its key: it comes again once it was passed on that long ago",
    )
    lately.add_argument(
        "--refresh",
        type=_refresh,
        default=True,
        metavar="WHEN",
        help="yes, the default; no, as --no-refresh; or delivered: the same, but --window counts records passed on",
    )
    lately.add_argument(
        "--fpr", type=float, metavar="P", help=f"highest chance that a new record is dropped; default: {FPR:g}"
    )
    lately.add_argument(
        "--filter",
        choices=list(FAMILIES),
        metavar="NAME",
        help="one of those below; default: the one that lately plan takes, a filter of little slack",
    )
    lately.add_argument(
        "--exact",
        dest="filter",
        action="store_const",
        const="swamp",
        help="drop no repeat that is older than the window, by a filter without slack: as --filter swamp",
    )
    lately.add_argument(
        "--seed",
        type=_seed,
        metavar="N",
        help="of the hashes: a number, for filters to merge or to compare; default: random, a secret, so that nobody "
        "can choose keys that are taken for repeats; it lies in the --state, which is then a secret too",
    )

    where = command.add_argument_group("where it goes")
    output = where.add_argument(
        "--output",
        "-o",
        default="-",
        metavar="FILE",
        help="replaced when all is done; .gz, .zst, .xz and .bz2 are compressed; default: standard output, which gets "
        "records as soon as they are decided",
    )
    dropped = where.add_argument("--dropped", metavar="FILE", help="where the other records go, as with --output")
    which = where.add_mutually_exclusive_group()
    which.add_argument(
        "--mark",
        action="store_true",
        help="all records go to --output, with a first field, repeat: 0 or 1, and a tab after it in text; in JSON true "
        "or false",
    )
    which.add_argument("--only-repeats", action="store_true", help="repeats go to --output, new records do not")
    where.add_argument("--count", action="store_true", help="how many records would go to --output goes there instead")
    state = where.add_argument(
        "--state",
        metavar="FILE",
        help="carry the filter over from run to run: loaded if it is there, and replaced after the output; nobody else "
        "may read it; FILE.json beside it says which key it is of and which runs it holds",
    )
    where.add_argument("--quiet", "-q", action="store_true", help="no progress bar and no report")
    for argument in (files, output, dropped, state):
        _of_file(argument)


def _filters() -> str:
    """List the names for --filter; the formatter would break them at their hyphens."""
    kinds = {
        "any": "",
        "insertions": "not for windows of time",
        "time": "for windows of time",
        "unknown rate": "for windows of time, without --capacity",
    }
    lines = []
    for name, family in FAMILIES.items():
        words = "; ".join(filter(None, (_DEFAULTS.get(name), kinds[family.windows], family.note)))
        lines.append(f"  {name:<26}{words}".rstrip())
    return "\n".join(lines)


def _fields(text: str) -> list[str]:
    """Names between commas; one that holds a comma stands in double quotes."""
    import csv

    fields = next(csv.reader([text], skipinitialspace=True), [])
    if not fields or not all(fields):
        raise argparse.ArgumentTypeError(f"names of fields between commas are needed, got {text!r}")
    return fields


def _count(text: str) -> int:
    """Read a whole number: 1000000, 1_000_000, 1,000,000, 1e6, 1000k or 1M."""
    thousands = {"k": 1_000, "M": 1_000_000, "G": 1_000_000_000}.get(text[-1:], 1)
    digits = text if thousands == 1 else text[:-1]
    if re.fullmatch(r"\d{1,3}(,\d{3})+", digits):
        digits = digits.replace(",", "")
    with suppress(ValueError, OverflowError):
        return int(digits) * thousands
    with suppress(ValueError, OverflowError):
        if (number := float(digits) * thousands).is_integer():
            return int(number)
    raise argparse.ArgumentTypeError(f"expected a whole number, such as 1000000, 1e6 or 1M, got {text!r}")


def _window(text: str) -> int | str:
    with suppress(argparse.ArgumentTypeError):
        return _count(text)
    with suppress(argparse.ArgumentTypeError):
        return _span(text)
    raise argparse.ArgumentTypeError(
        f"expected a number of records, such as 1000000 or 1M, or a span of time, such as 10min or 2d, got {text!r}"
    )


def _seed(text: str) -> int | str:
    if text == "random":
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a number is needed, or random; got {text!r}") from None


def _refresh(text: str) -> bool | str:
    choices: dict[str, bool | str] = {"yes": True, "no": False, "delivered": "delivered"}
    refresh = choices.get(text)
    if refresh is None:
        raise argparse.ArgumentTypeError(f"yes, no or delivered is needed; got {text!r}")
    return refresh


def _span(text: str) -> str:
    """Check a span and leave it as it is: the filter reads it again, and messages show it."""
    try:
        read_span(text, "it")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _bytes(text: str) -> int:
    number, unit = text.rstrip("KMGiB"), text.lstrip("0123456789")
    powers = {"": 0, "B": 0, "KiB": 1, "MiB": 2, "GiB": 3}
    if not number.isdecimal() or int(number) == 0 or unit not in powers:
        raise argparse.ArgumentTypeError(f"a number of bytes is needed, such as 65536 or 64MiB; got {text!r}")
    return int(number) << 10 * powers[unit]


def _delimiter(text: str) -> str:
    delimiter = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise argparse.ArgumentTypeError(f"one character is needed, or tab; got {text!r}")
    return delimiter


def _encoding(name: str) -> str:
    """Take only encodings that extend ASCII, so that lines can be told apart before they are decoded."""
    import string

    if name == "bytes":
        return "latin-1"  # a letter for each byte, so that keys are equal if their bytes are
    try:
        extends_ascii = string.printable.encode(name) == string.printable.encode("ascii")
    except LookupError:
        raise argparse.ArgumentTypeError(f"there is no encoding {name!r}") from None
    if not extends_ascii:
        raise argparse.ArgumentTypeError(f"{name} is no extension of ASCII, such as utf-8, latin-1 or cp1252")
    return name
