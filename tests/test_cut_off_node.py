"""A node is cut off from the cluster while the processes of its sites live on: none of them answers or saves again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parent / "support"


def cut_off(how):
    """Run the script, in a cluster of its own, whose nodes are taken for lost after a few seconds of silence."""
    pytest.importorskip("ray")
    hasty = {"RAY_health_check_period_ms": "1000", "RAY_health_check_timeout_ms": "1000"}
    environment = os.environ | hasty | {"PYTHONPATH": str(SUPPORT.parent)}
    command = [sys.executable, SUPPORT / "cut_off_node.py", how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing is lost, and nothing is new twice" in done.stdout


def test_sites_that_are_cut_off_from_the_cluster_answer_nothing_and_replace_no_checkpoint():
    cut_off("apart")


@pytest.mark.campaign
@pytest.mark.parametrize("how", ["alive", "still"])
def test_sites_of_a_node_that_is_silent_answer_nothing_once_others_have_their_place(how):
    cut_off(how)
