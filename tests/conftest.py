"""What tests share."""

import gc
import os
import shutil
import subprocess
import warnings

import pytest
from hypothesis import settings

from lately.cli import main
from support.command import Ended

# Read when Ray is imported: under `uv run` it would start its workers by `uv run` too, in a copy of the folder.
os.environ |= {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_USAGE_STATS_ENABLED": "0"}


# No test times itself; the core is compiled beside the tests, so that an example may take as long as it likes.
settings.register_profile("lately", deadline=None)
settings.load_profile("lately")


@pytest.fixture
def dedupe(capfdbinary):
    """Run the command in this process."""

    def run(*arguments):
        capfdbinary.readouterr()
        status = main(["dedupe", *map(str, arguments)])
        out, err = capfdbinary.readouterr()
        return Ended(status, out, err.decode())

    return run


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


@pytest.fixture(scope="session", autouse=True)
def running(request, tmp_path_factory):
    """The checks of test_house.py that this run asks for, all under way: each name's process, and where it writes."""
    folder = tmp_path_factory.mktemp("house")
    running = {}
    for item in request.session.items:
        if getattr(item, "originalname", None) == "test_check_passes":
            name = item.callspec.params["name"]
            command = item.module.CHECKS[name]
            if shutil.which(command[0]):
                output = folder / name.replace(" ", "-")
                with output.open("w") as file:
                    check = subprocess.Popen(command, cwd=item.module.ROOT, stdout=file, stderr=subprocess.STDOUT)
                running[name] = check, output
    yield running
    for check, _ in running.values():
        check.terminate()
        check.wait()


def pytest_collection_modifyitems(items):
    """The house comes last. Warnings are errors; those of Ray, at its own settings and processes, are not ours."""
    items.sort(key=lambda item: item.path.name == "test_house.py")
    for item in items:
        if "ray_cluster" in item.fixturenames:
            for theirs in ("DeprecationWarning", "ResourceWarning", "pytest.PytestUnraisableExceptionWarning"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{theirs}"))
