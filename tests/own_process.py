"""Code that may end its process, run in a process of its own."""

import functools
import pickle
import signal
import textwrap
import threading

from support.forked import Forked

IMPORTS = "import lately, numpy as np, os, resource, signal, sys, threading, time, warnings\n"


def run(code, *arguments, seconds=60):
    """Run `code` with the arguments as ``sys.argv[1:]``; return the lines that it printed. It must succeed."""
    process = Forked(f"{IMPORTS}warnings.simplefilter('ignore')\n{textwrap.dedent(code)}", *arguments)
    limit = threading.Timer(seconds, process.send_signal, [signal.SIGKILL])
    limit.start()
    out, err = process.communicate()
    limit.cancel()
    assert process.returncode == 0, f"ended with {process.returncode}: {err.decode()}"
    return out.decode().splitlines()


def small(test):
    """Run a test in a process that has imported only its module: forks of one with all modules take 10 ms more."""

    @functools.wraps(test)
    def call(**given):
        code = f"import pickle, sys, {test.__module__} as module\n"
        code += f"module.{test.__name__}.__wrapped__(**pickle.loads(bytes.fromhex(sys.argv[1])))"
        process = Forked(code, pickle.dumps(given).hex(), imports=(test.__module__,))
        out, err = process.communicate()
        assert process.returncode == 0, (out + err).decode()

    return call
