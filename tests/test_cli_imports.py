"""What a run imports: each import takes as long as thousands of records."""

import subprocess
import sys

from support.parquet import parquet


def imported(folder, options, *names):
    """Run the command on each file of a folder, in one process; return which of the modules it imported."""
    code = f"""
import sys
from lately.cli import main
*files, options = sys.argv[1:]
for file in files:
    assert main(["dedupe", file, *eval(options), "-o", f"{{file}}.out"]) == 0
sys.exit(str({ {*names} } & {{*sys.modules}}))
"""
    files = sorted(folder.iterdir())
    ended = subprocess.run([sys.executable, "-c", code, *files, repr(options)], capture_output=True, text=True)
    assert ended.stderr.count("kept       1\n") == len(files), ended.stderr
    return ended.stderr.splitlines()[-1]


def test_a_run_does_not_import_pandas(tmp_path):
    """pyarrow imports pandas when it gets an object that may be of pandas; the import takes longer than many runs."""
    (tmp_path / "a.csv").write_bytes(b"k,t\n1,2\n1,3\n")
    (tmp_path / "a.jsonl").write_bytes(b'{"k": "1", "t": 2}\n{"k": "1", "t": 3}\n')
    parquet(tmp_path / "a.parquet", k=["1", "1"], t=[2, 3])
    options = ["--key", "k", "--time", "t", "--window", "9s"]
    assert imported(tmp_path, options, "pandas") == "set()"


def test_a_run_without_times_imports_no_numpy(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'k,l\n"1",2\n1,3\n')
    (tmp_path / "a.jsonl").write_bytes(b'{"k": "1"}\n{"k": "1"}\n')
    assert imported(tmp_path, ["--key", "k", "--window", "200000"], "numpy") == "set()"


def test_a_run_on_text_imports_no_more_than_it_needs(tmp_path):
    """Each import takes as long as thousands of records, which a user of a small file notices."""
    (tmp_path / "a.txt").write_bytes(b"1\n1\n")
    needless = {"dataclasses", "hashlib", "inspect", "json", "lately.cli.parquet", "numpy"}
    assert imported(tmp_path, ["--window", "200000"], *needless) == "set()"
