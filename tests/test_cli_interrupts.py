"""Ctrl-C before the command has started: it ends at once, without a traceback."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

# As the shell starts `lately`, but for a signal at the import of a module, which is given by its number or by its name.
COMMAND = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import lately.cli

class Meanwhile:
    count, struck = 0, sys.argv.pop(1)

    def find_spec(self, name, path=None, target=None):
        type(self).count += 1
        if self.struck in (name, str(self.count)):
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Meanwhile())
if status := lately.cli.main():
    sys.exit(status)
print(Meanwhile.count)
"""


def struck(at):
    command = [sys.executable, "-c", COMMAND, str(at), "plan", "--window", "100", "--fpr", "0.1"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_ctrl_c_while_the_command_is_imported_is_quiet():
    whole = struck("none")
    assert whole.returncode == 0, whole.stderr
    modules = int(whole.stdout.splitlines()[-1])
    assert modules > 20
    for at in ["lately.cli.errors", *range(1, modules, modules // 8)]:
        done = struck(at)
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "lately: interrupted\n"), at


def test_a_process_that_ignores_ctrl_c_is_not_interrupted():
    ignored = COMMAND.replace("signal.default_int_handler", "signal.SIG_IGN")
    command = [sys.executable, "-c", ignored, "lately.cli.options", "plan", "--window", "100", "--fpr", "0.1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.campaign
def test_ctrl_c_at_random_moments(tmp_path, capsys):
    """Before `main` is called, the interpreter and `import lately` may print a traceback."""
    source = tmp_path / "in.txt"
    source.write_bytes(b"".join(b"%d\n" % (i % 5000) for i in range(20_000)))
    chance, ends = random.Random(16), {}
    command = [sys.executable, "-m", "lately", "dedupe", str(source), "-o", str(tmp_path / "out"), "--window", "1000"]
    started = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    whole = time.monotonic() - started
    for _ in range(300):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(chance.uniform(0, max(0.3, whole)))
        os.kill(process.pid, signal.SIGINT)
        _, printed = process.communicate(timeout=60)
        early = "in main" not in printed and printed.strip().endswith("KeyboardInterrupt")
        end = "early" if early or (process.returncode == -signal.SIGINT and not printed) else process.returncode
        ends[end] = ends.get(end, 0) + 1
        assert early or "Traceback" not in printed, printed
        assert end in ("early", 0, 130), printed
    with capsys.disabled():
        print(f"\n300 signals: {ends}")
