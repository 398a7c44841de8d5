"""What tests share."""

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
        # A cluster of somebody else's may be running.
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()
