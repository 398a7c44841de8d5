"""Code that may end its process, run in a process of its own."""

import subprocess
import sys
import textwrap


def run(code, *arguments, seconds=60):
    """Run `code` with the arguments as ``sys.argv[1:]``; return what it printed, line by line. It must end well."""
    code = "import lately, numpy as np, os, resource, signal, sys, threading, time\n" + textwrap.dedent(code)
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr}"
    return done.stdout.splitlines()
