"""A node is cut off from the cluster while the processes of its sites and of its orderer live on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parent / "support"


@pytest.mark.campaign
@pytest.mark.parametrize("how", ["alive", "still"])
def test_no_key_is_lost_or_new_twice_when_a_node_is_cut_off(how):
    """A node is taken for lost after a minute of silence: a busy machine would lose others sooner."""
    pytest.importorskip("ray")
    environment = os.environ | {"RAY_health_check_timeout_ms": "20000"}
    command = [sys.executable, SUPPORT / "cut_off_node.py", how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 lost, 0 new twice" in done.stdout
