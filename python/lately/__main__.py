"""``python -m lately`` is the command ``lately``."""

import sys

from lately.cli import main

sys.exit(main())
