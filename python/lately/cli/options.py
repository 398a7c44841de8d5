"""The options of the commands, and their help texts."""

from __future__ import annotations

import argparse
import re
import sys
from contextlib import suppress

from lately import __version__
from lately._core import read_span
from lately._families import FAMILIES
from lately.cli.filters import FPR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_DESCRIPTION = """\
Write every record whose key was not seen within the window, byte for byte; drop the repeats. No repeat within the
window is missed. After the window comes the slack, in which a repeat may be dropped too: 1/64 of the window.

A new record, or a repeat after the slack, is dropped by mistake with a chance of at most --fpr. The report at the end,
on standard error, states the expected number of such records. Memory does not grow with the input; for a window of time
it follows the rate of records.

Two filters miss some repeats: stable and generalized.
"""

_EXAMPLES = """\
examples:
  lately dedupe access.log --window 1000000
        drop lines that occurred among the last million lines
  tail -F access.log | lately dedupe --window 1000000
        continue as the log grows
  lately dedupe clicks.jsonl.gz --key ip,page.url --time ts --window 10min --output new.jsonl.gz
        drop clicks of the same ip on the same url within ten minutes
  zstdcat day.tsv.zst | lately dedupe --format tsv --key host,url --window 1000000 > new.tsv
        read a pipe, which needs --format (gzip and zstd are recognised)
  lately dedupe monday.csv --key id --window 1000000 --state seen.lately --output new.csv
        remember the keys for the next run

filters (a number: bits of a block; lately.plan in Python compares them):
{filters}

if a run did not end with 0:
  Start it again. The file of --output is replaced whole or not at all, and before --state. If the state contains the
  run already, its output stays as it is: no record is lost, and none comes twice. There are two limits: the inputs must
  be unchanged, and what went to standard output, a pipe or a device comes again.

exit status:
  0 done; 1 an error, files are unchanged; 2 wrong usage; 130 interrupted; 143 terminated; 141 the reader of standard
  output has gone
"""


class _Parser(argparse.ArgumentParser):
    """Parser that reports wrong usage in two lines: the error, and the command that describes the options."""

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write a message. argparse ignores it if help cannot be written."""
        if file is sys.stdout:
            print(message, end="", flush=True)
        else:
            super()._print_message(message, file)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n`{self.prog} --help` describes the options\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands. Each sets `module` and `run`: the function that runs it."""
    options = _Parser(prog="lately", description="Have I seen this key lately?")
    options.add_argument("--version", action="version", version=f"lately {__version__}")
    commands = options.add_subparsers(required=True, metavar="COMMAND")
    _dedupe(commands)
    _plan(commands)
    _info(commands)
    _query(commands)
    _merge(commands)
    return options


def _plan(commands: Any) -> None:
    command = commands.add_parser(
        "plan",
        help="compare the filters for a window",
        description="Compare the filters that meet a request, and choose one.",
    )
    command.set_defaults(module="lately.cli.tools", run="plan")
    command.add_argument(
        "--window",
        type=_window,
        required=True,
        metavar="W",
        help="a number of keys, such as 1e6, or a span of time, such as 10min",
    )
    rate = command.add_mutually_exclusive_group()
    rate.add_argument("--fpr", type=float, metavar="P", help=f"highest rate of false positives; default: {FPR:g}")
    rate.add_argument("--bytes", dest="nbytes", type=_bytes, metavar="N", help="most memory, such as 65536 or 64KiB")
    command.add_argument(
        "--slack",
        type=_window,
        metavar="W",
        help="longest time for which a key may be reported after the window; default: 1/64 of it, where that is cheap",
    )
    command.add_argument("--capacity", type=_count, metavar="N", help="for windows of time: keys expected within one")
    command.add_argument("--lateness", type=_span, metavar="SPAN", help="for windows of time: how far times step back")


def _info(commands: Any) -> None:
    command = commands.add_parser(
        "info",
        help="describe saved filters",
        description="Describe saved filters: window and slack, planned and current rate of false positives, memory, "
        "and the key of a --state of lately dedupe.",
    )
    command.set_defaults(module="lately.cli.tools", run="info")
    command.add_argument("files", nargs="+", metavar="FILE", help="saved by --state, or in Python")


def _query(commands: Any) -> None:
    command = commands.add_parser(
        "query",
        help="look keys up in a saved filter",
        description="Print for each key, as text, whether it was seen lately or is new. In a state of JSON lines or "
        "Parquet, a key such as 5 or null also stands for the number or the missing value. The filter is unchanged.",
    )
    command.set_defaults(module="lately.cli.tools", run="query")
    command.add_argument("file", metavar="FILE", help="saved by --state, or in Python")
    command.add_argument(
        "keys",
        nargs="*",
        metavar="KEY",
        help="a key; for a key of several fields, their values between commas; default: the lines of standard input",
    )
    command.add_argument("--at", metavar="TIME", help="for windows of time: Unix seconds or ISO 8601; default: now")


def _merge(commands: Any) -> None:
    command = commands.add_parser(
        "merge",
        help="merge filters of several machines",
        description="Merge saved filters that were made with the same options, a --seed that is a number among them. "
        "The result reports every key that one of them reports.",
    )
    command.set_defaults(module="lately.cli.tools", run="merge")
    command.add_argument("files", nargs="+", metavar="FILE", help="saved by --state, or in Python")
    command.add_argument(
        "--output", "-o", type=_file, required=True, metavar="FILE", help="where to save the merged filter"
    )


def _dedupe(commands: Any) -> None:
    command = commands.add_parser(
        "dedupe",
        help="drop records seen lately from a file or stream",
        description=_DESCRIPTION,
        epilog=_EXAMPLES.format(filters=_filters()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(module="lately.cli.dedupe", run="dedupe")
    command.add_argument(
        "files", nargs="*", default=["-"], metavar="FILE", help="files, read one after the other; - is standard input"
    )
    _add_record_options(command.add_argument_group("records"))
    _add_window_options(command.add_argument_group("window and filter"))
    _add_output_options(command.add_argument_group("output"))


def _add_record_options(group: Any) -> None:
    group.add_argument(
        "--format",
        choices=["auto", "text", "csv", "tsv", "zeek", "jsonl", "parquet"],
        default="auto",
        help="default: by the name of the input, or for a pipe by that of --output; else text: each line is a key",
    )
    group.add_argument(
        "--delimiter", type=_delimiter, metavar="CHAR", help="of CSV; default: a comma, or a tab for .tsv"
    )
    group.add_argument(
        "--quotes",
        action=argparse.BooleanOptionalAction,
        help="whether quotes may enclose a field with delimiters or ends of lines; default: in CSV, and not in TSV",
    )
    group.add_argument(
        "--no-header",
        dest="header",
        action="store_false",
        help="CSV without names of fields in its first line: --key 1,3 and --time 2 are numbers of fields",
    )
    group.add_argument(
        "--encoding",
        type=_encoding,
        metavar="NAME",
        help="of text; a record that is not valid in it is malformed; default: utf-8, where the key of a record that "
        "is not valid is its bytes",
    )
    group.add_argument(
        "--key",
        type=_fields,
        metavar="FIELD,...",
        help="fields of the key, by name or number; a.b is field b within a; for text the numbers of words, such as "
        "1,7 or 3-, counted from 1; default: the whole record",
    )
    group.add_argument("--ignore-case", action="store_true", help="keys are equal if they differ in case alone")
    group.add_argument(
        "--time",
        metavar="FIELD",
        help="field with the time of a record, for windows of time: Unix seconds, or ISO 8601 (UTC without a zone); "
        "default for a pipe: when records arrive",
    )
    group.add_argument("--time-unit", choices=["s", "ms", "us", "ns"], help="of times that are numbers; default: s")
    group.add_argument(
        "--time-format",
        type=_time_format,
        metavar="FORMAT",
        help="of times, as for strptime: '%%d/%%b/%%Y:%%H:%%M:%%S %%z', '%%Y%%m%%d'",
    )
    group.add_argument("--skip-bad", action="store_true", help="count and skip malformed records; default: an error")
    group.add_argument(
        "--max-record",
        type=_bytes,
        default="16MiB",
        metavar="BYTES",
        help="longer records are malformed, such as 65536 or 64MiB; default: 16MiB",
    )


def _add_window_options(group: Any) -> None:
    group.add_argument(
        "--window",
        type=_window,
        metavar="W",
        help="what lately means: a number of records, such as 1000000, 1e6 or 1M, or a span of time, such as 10min",
    )
    group.add_argument(
        "--capacity",
        type=_count,
        metavar="N",
        help="for windows of time: records expected within one at the highest rate; filters other than the default "
        "need it, and their memory is then fixed; that of the default follows the rate",
    )
    group.add_argument(
        "--lateness", type=_span, metavar="SPAN", help="for windows of time: how far times may step back; default: 0s"
    )
    group.add_argument(
        "--max-ahead",
        type=_span,
        metavar="SPAN",
        help="for windows of time: how far times may lie ahead of this machine's clock; a record beyond it is "
        "malformed; default: one window, at least 1min",
    )
    group.add_argument(
        "--refresh",
        choices=["yes", "no", "delivered"],
        default="yes",
        help="whether a repeat restarts the window of its key; no: a key passes again after each window; delivered: as "
        "no, and --window counts only records that pass; default: yes",
    )
    group.add_argument(
        "--fpr", type=float, metavar="P", help=f"highest chance that a new record is dropped; default: {FPR:g}"
    )
    group.add_argument(
        "--filter",
        choices=list(FAMILIES),
        metavar="NAME",
        help="one of the filters below; default: aged-cuckoo, of little slack; swamp: no slack, for windows that count "
        "records",
    )
    group.add_argument(
        "--seed",
        type=_seed,
        metavar="N",
        help="of the hashes: a number, for filters to merge or to compare; default: random, a secret, so that an "
        "attacker cannot choose keys that are taken for repeats; --state contains it, and is then a secret too",
    )


def _add_output_options(group: Any) -> None:
    group.add_argument(
        "--output",
        "-o",
        type=_file,
        default="-",
        metavar="FILE",
        help="replaced at the end of the run; compressed for .gz, .zst, .xz and .bz2; default: standard output, which "
        "gets each record at once",
    )
    group.add_argument("--dropped", type=_file, metavar="FILE", help="file for the repeats, written as --output is")
    group.add_argument(
        "--mark",
        action="store_true",
        help="write all records to --output, with a first field, repeat: 0 or 1, in text with a tab after it; in JSON "
        "true or false",
    )
    group.add_argument(
        "--state",
        type=_file,
        metavar="FILE",
        help="the filter between runs: loaded if the file exists, and replaced after the output; readable by its owner "
        "only; FILE.json beside it has its options and its runs",
    )
    group.add_argument("--quiet", "-q", action="store_true", help="no progress bar and no report")


def _filters() -> str:
    """Return the names for --filter, a line each. (The formatter would break them at their hyphens)."""
    kinds = {
        "any": "",
        "insertions": "not for windows of time",
        "time": "for windows of time",
        "unknown rate": "for windows of time, without --capacity",
    }
    lines = []
    for name, family in FAMILIES.items():
        words = "; ".join(filter(None, ("the default" * (name == "aged-cuckoo"), kinds[family.windows], family.note)))
        lines.append(f"  {name:<26}{words}".rstrip())
    return "\n".join(lines)


def _fields(text: str) -> list[str]:
    """Read names between commas. A name with a comma is in double quotes."""
    import csv

    fields = next(csv.reader([text], skipinitialspace=True), [])
    if not fields or not all(fields):
        raise argparse.ArgumentTypeError(f"expected names of fields between commas, got {text!r}")
    return fields


def _file(name: str) -> str:
    if not name or name.endswith("/"):
        raise argparse.ArgumentTypeError(f"expected the name of a file, got {name!r}")
    return name


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
        raise argparse.ArgumentTypeError(f"expected a number, or random, got {text!r}") from None


def _span(text: str) -> str:
    """Check a span of time, and return its text: the filter reads it again, and messages show it."""
    try:
        read_span(text, "it")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _bytes(text: str) -> int:
    number, unit = text.rstrip("KMGiB"), text.lstrip("0123456789")
    powers = {"": 0, "B": 0, "KiB": 1, "MiB": 2, "GiB": 3}
    is_number = unit in powers and number.isdecimal()
    size = int(number) << 10 * powers[unit] if is_number else 0
    if not 0 < size < 1 << 63:
        raise argparse.ArgumentTypeError(f"expected a number of bytes, such as 65536 or 64MiB, got {text!r}")
    return size


def _time_format(format: str) -> str:
    from datetime import datetime

    try:
        datetime.strptime("", format)
    except ValueError as error:
        if "does not match" not in str(error):
            raise argparse.ArgumentTypeError(f"expected a format for strptime, got {format!r}: {error}") from None
    return format


def _delimiter(text: str) -> str:
    delimiter = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
        raise argparse.ArgumentTypeError(f"expected one character of ASCII, or tab, got {text!r}")
    return delimiter


def _encoding(name: str) -> str:
    """Read the name of an encoding that extends ASCII, because lines are separated before they are decoded."""
    import string

    if name == "bytes":
        return "latin-1"  # a character for each byte, so that keys are equal if their bytes are
    try:
        letters = string.printable + "\x1b$B"  # which changes the meaning of the bytes after it in some
        extends_ascii = letters.encode("ascii").decode(name) == letters == letters.encode(name).decode("ascii")
    except LookupError:
        raise argparse.ArgumentTypeError(f"expected the name of an encoding, got {name!r}") from None
    except UnicodeError:
        extends_ascii = False
    if not extends_ascii:
        raise argparse.ArgumentTypeError(
            f"expected an encoding that extends ASCII, such as utf-8 or cp1252, got {name}"
        )
    return name
