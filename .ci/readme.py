"""Run the commands and the Python blocks of a page, in the page's order and in this folder.

A `bash` block is run as it is. Of a `console` block the lines after `$ ` are run. Python blocks that follow each other
run in one process. The first failure ends the run, with its status.
"""

import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```(bash|console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps(text):
    """Return the steps of a page: pairs of a program and the text that it runs."""
    found = []
    for kind, code in BLOCK.findall(text):
        if kind == "python" and found and found[-1][0] == "python":
            found[-1] = ("python", found[-1][1] + code)
        elif kind == "console":
            found += [("bash", line[2:] + "\n") for line in code.splitlines() if line.startswith("$ ")]
        else:
            found.append((kind, code))
    return found


def main(page):
    """Run the steps of the page and return the status of the first that fails, or 0."""
    for program, code in steps(Path(page).read_text(encoding="utf-8")):
        print("\n".join(f"+ {line}" for line in code.splitlines()), flush=True)
        command = ["bash", "-euo", "pipefail", "-c", code] if program == "bash" else ["python", "-c", code]
        # A step that waits for an answer would wait without end.
        status = subprocess.run(command, stdin=subprocess.DEVNULL).returncode
        if status:
            return status if status > 0 else 128 - status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
