"""The page of the command names every option; test_pages.py checks what its blocks print."""

import argparse
from pathlib import Path

from lately.cli.options import parser

PAGE = (Path(__file__).parents[1] / "docs" / "command.md").read_text(encoding="utf-8")


def test_the_page_names_every_option():
    commands = next(action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    options = [option for action in commands.choices["dedupe"]._actions for option in action.option_strings]
    missing = [option for option in options if f"`{option}" not in PAGE]
    assert missing == ["-h", "--help"]
