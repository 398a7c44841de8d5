"""The command, run and watched by its tests."""

import random
import resource
from dataclasses import dataclass

from support.forked import Forked

# In a process of its own, Ctrl-C works even where the tests themselves run in the background, deaf to it.
COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from lately.cli import main
sys.argv.insert(1, "dedupe")
sys.exit(main())
"""

# No false positive is to be expected in any test that does not want one: fewer than 10^5 keys at 10^-12.
SURE = ("--fpr", "1e-12")

# How a log of Zeek begins.
ZEEK = b"#separator \\x09\n#path\tconn\n#open\t2024-01-01\n#fields\tts\tid.orig_h\tnote\n#types\ttime\taddr\tstring\n"


@dataclass
class Ended:
    status: int
    out: bytes
    err: str


def start(*arguments, largest_file=resource.RLIM_INFINITY, **options):
    """Start the command in a process of its own, whose files can be made full at some size."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({largest_file}, {largest_file}))"
    return Forked(limit + COMMAND, *arguments, **options)


def finish(process, stdin=b""):
    out, err = process.communicate(stdin)
    return Ended(process.returncode, out, err.decode())


def unique(lines):
    return list(dict.fromkeys(lines))


def some_lines(count=5000, different=1000, seed=0):
    rng = random.Random(seed)
    return [f"line {rng.randrange(different)}\n".encode() for _ in range(count)]


def temporaries(folder):
    return [path for path in folder.iterdir() if path.name.startswith(".")]
