"""Runs the command ``lately``, for ``python -m lately``."""

import sys

from lately.cli import main

if __name__ == "__main__":
    sys.exit(main())
