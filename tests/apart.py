"""Code that may end its process, run in a process of its own."""

import signal
import textwrap
import threading

from support.forked import Forked

IMPORTS = "import lately, numpy as np, os, resource, signal, sys, threading, time, warnings\n"


def run(code, *arguments, seconds=60):
    """Run `code` with the arguments as ``sys.argv[1:]``; return what it printed, line by line. It must end well."""
    process = Forked(f"{IMPORTS}warnings.simplefilter('ignore')\n{textwrap.dedent(code)}", *arguments)
    limit = threading.Timer(seconds, process.send_signal, [signal.SIGKILL])
    limit.start()
    out, err = process.communicate()
    limit.cancel()
    assert process.returncode == 0, f"ended with {process.returncode}: {err.decode()}"
    return out.decode().splitlines()
