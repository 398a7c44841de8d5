"""What tests share."""

import gc
import os
import warnings

import pytest

# Read when Ray is imported: under `uv run` it would start its workers by `uv run` too, in a copy of the folder.
os.environ |= {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_USAGE_STATS_ENABLED": "0"}


@pytest.fixture(scope="session")
def ray_cluster():
    """One cluster of this machine for the whole run: it takes seconds to start."""
    ray = pytest.importorskip("ray")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Ray gives a node 30 seconds to start, which a machine that is busy with other things may need.
        for last in (False, False, True):
            try:
                # A cluster of somebody else's may be running.
                ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
                break
            except Exception:
                ray.shutdown()
                if last:
                    raise
            gc.collect()
    yield ray
    ray.shutdown()


def pytest_collection_modifyitems(items):
    """Warnings are errors; those of Ray, at its own settings and processes, are not ours."""
    for item in items:
        if "ray_cluster" in item.fixturenames:
            for theirs in ("DeprecationWarning", "ResourceWarning", "pytest.PytestUnraisableExceptionWarning"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{theirs}"))
