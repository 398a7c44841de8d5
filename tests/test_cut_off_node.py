"""A node is cut off from the cluster while the processes of its sites live on: none of them answers or saves again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parent / "support"


def cut_off(how):
    """Run the script, in a cluster of its own, whose nodes are taken for lost after some seconds of silence.

    Not so soon that a busy machine loses one that was not cut off. And processes that do not reach the cluster live on
    until the test ends: by default they end after a minute, as if nothing had to be shown of them.
    """
    pytest.importorskip("ray")
    health = {"RAY_health_check_period_ms": "1000", "RAY_health_check_timeout_ms": "4000"}
    environment = os.environ | health | {"RAY_gcs_rpc_server_reconnect_timeout_s": "600"}
    environment |= {"PYTHONPATH": str(SUPPORT.parent)}
    command = [sys.executable, SUPPORT / "cut_off_node.py", how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing is lost, and nothing is new twice" in done.stdout


@pytest.mark.campaign
@pytest.mark.parametrize("how", ["apart", "alive", "still"])
def test_sites_of_a_node_that_is_cut_off_answer_nothing_and_save_nothing_once_others_have_their_place(how):
    cut_off(how)
