"""A notebook run as by Jupyter, without a kernel: that would import what all notebooks import for each of them."""

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout

import nbformat
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

OUTPUTS: list = []


class Stream(io.TextIOBase):
    """What a cell prints, together until another output comes."""

    def __init__(self, name):
        self.name = name

    def write(self, text):
        if text and (not OUTPUTS or OUTPUTS[-1].get("name") != self.name):
            OUTPUTS.append(nbformat.v4.new_output("stream", name=self.name, text=""))
        if text:
            OUTPUTS[-1].text += text
        return len(text)


class Shown(DisplayPublisher):
    """What a cell displays."""

    def publish(self, data, metadata=None, **_):
        OUTPUTS.append(nbformat.v4.new_output("display_data", data=data, metadata=metadata or {}))


class Result(DisplayHook):
    """The value of the last line of a cell."""

    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        given = {"execution_count": SHELL.execution_count, "metadata": md_dict or {}}
        OUTPUTS.append(nbformat.v4.new_output("execute_result", data=format_dict, **given))


class Shell(InteractiveShell):
    """A shell whose outputs go into the notebook."""

    kernel = None  # by which pandas, imported in a cell, takes the shell for Jupyter's

    def __init__(self, **options):
        super().__init__(display_pub_class=Shown, displayhook_class=Result, **options)


os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
SHELL = Shell.instance(config=Config({"HistoryManager": {"enabled": False}}))
SHELL.run_cell("import lately.distributed, matplotlib.pyplot, numpy, pandas, pyarrow").raise_error()
SHELL.reset()


def main(path, folder):
    """Run the cells of a notebook in a folder and print the notebook, or raise the error of the first that fails."""
    notebook = nbformat.read(path, as_version=4)
    os.chdir(folder)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            OUTPUTS.clear()
            cell.execution_count = SHELL.execution_count
            with redirect_stdout(Stream("stdout")), redirect_stderr(Stream("stderr")):
                done = SHELL.run_cell(cell.source, store_history=True)
            done.raise_error()
            cell.outputs = [*OUTPUTS]
    nbformat.write(notebook, sys.stdout)
