"""Fixtures and settings that all tests share."""

import atexit
import gc
import importlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from lately.cli import main
from support.command import Ended

# With this variable, which many containers set, each of a thousand processes would compile all that it imports: pandas
# takes two seconds then.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Read when Ray is imported: under `uv run` it would start its workers by `uv run` too, in a copy of the folder.
# They are as nice as the tests: by default they give way to whatever else the machine does, and wait for minutes.
# And they wait for the next job: by default Ray ends those without work after a second, and each takes three to import
# Ray Data again, so that a job on a hundred rows took ten seconds instead of a tenth.
os.environ |= {
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_kill_idle_workers_interval_ms": "0",
    "RAY_worker_niceness": "0",
}

# A shell that is no terminal lets what it starts in the background ignore Ctrl-C, which tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Ray, Jupyter and Scrapy write into the home folder, which need not be writable.
if not os.access(Path.home(), os.W_OK):
    os.environ["HOME"] = tempfile.mkdtemp(prefix="home-")
    atexit.register(shutil.rmtree, os.environ["HOME"], ignore_errors=True)


# No test times itself; the core is compiled beside the tests, so that an example may take as long as it likes.
# Each run draws other examples; `LATELY_CAMPAIGN=1 uv run pytest` draws more.
settings.register_profile("lately", deadline=None, max_examples=2000 if "LATELY_CAMPAIGN" in os.environ else 50)
settings.load_profile("lately")


# What the tests import, which takes seconds to compile where it was just installed.
LIBRARIES = ["pandas", "ray", "matplotlib.pyplot", "scrapy", "polars"]


def pytest_configure(config):
    """In a run of all tests let each process begin with another library: else each would compile all of them."""
    worker = getattr(config, "workerinput", None)
    if worker is not None and len(worker["mainargv"]) == 1:
        first = int(worker["workerid"].removeprefix("gw")) % len(LIBRARIES)
        for name in LIBRARIES[first:] + LIBRARIES[:first]:
            importlib.import_module(name)


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
    if " " in sys.executable:
        pytest.skip("Ray does not quote the path of Python: jobs of Ray Data would wait for their workers for ever")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Ray gives a node 30 seconds to start, which a machine that is busy with other things may need.
        for last in (False, False, True):
            try:
                # Another program's cluster may be running.
                ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
                break
            except Exception:
                ray.shutdown()
                if last:
                    raise
            gc.collect()
    yield ray
    end_cluster()


def end_cluster():
    """End this process's cluster, if there is one."""
    if ray := sys.modules.get("ray"):
        # Ray once waited here for ever, although the cluster was there. Its processes end with this one.
        ending = threading.Thread(target=ray.shutdown, daemon=True)
        ending.start()
        ending.join(30)
        if ending.is_alive():
            atexit.unregister(ray.shutdown)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """End the cluster after the last test that shares it: its idle processes take a tenth of a core."""
    last = Together.scope(item.nodeid) == "ray" and (nextitem is None or Together.scope(nextitem.nodeid) != "ray")
    if last and "PYTEST_XDIST_WORKER" in os.environ:
        end_cluster()


@pytest.fixture(scope="session", autouse=True)
def running_checks(request, tmp_path_factory):
    """Start the checks of test_linters.py that this run selects, and return the folder of their output.

    Each writes `NAME`, and `NAME.status` when it ends. The first worker to come here starts them for all.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder /= "checks"
    checks = [item for item in request.session.items if getattr(item, "originalname", None) == "test_check_passes"]
    started = []
    try:
        folder.mkdir()
    except FileExistsError:
        checks = []
    for item in checks:
        name = item.callspec.params["name"]
        output = shlex.quote(str(folder / name.replace(" ", "-")))
        command = shlex.join(map(str, item.module.CHECKS[name]))
        script = f"{command} > {output} 2>&1; echo $? > {output}.new && mv {output}.new {output}.status"
        started.append(subprocess.Popen(["sh", "-c", script], cwd=item.module.ROOT, start_new_session=True))
    yield folder
    # Another worker may still wait for them, unless the run was stopped.
    stopped = request.session.shouldstop or request.session.shouldfail
    for check in started:
        if stopped:
            os.killpg(check.pid, signal.SIGTERM)
        check.wait()


# Most of these tests wait: for other processes, locks, deadlines or the disk.
WAITING = ("test_kills", "test_once", "test_producers", "test_s", "test_threads", "test_tree")


def pytest_collection_modifyitems(items):
    """Put tests that wait first, while linters and the core's tests need the processors, and those last.

    Examples of the crate are built where `cargo test` builds, and wait for it. Ignore Ray's own warnings: all others
    are errors.
    """
    items.sort(
        key=lambda item: (item.path.stem in ("test_linters", "test_rust_crate"), not item.path.stem.startswith(WAITING))
    )
    for item in items:
        if "ray_cluster" in item.fixturenames:
            # In another process it would start a second cluster.
            assert Together.scope(item.nodeid) == "ray", f"{item.nodeid} is not among those that share the cluster"
            for theirs in ("DeprecationWarning", "ResourceWarning", "pytest.PytestUnraisableExceptionWarning"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{theirs}"))


class Together(LoadScopeScheduling):
    """Sends tests that share something slow to make to one process, where they begin at once; others go to any."""

    SHARED: ClassVar = {
        "ray": {
            "test_deduplicate",
            "test_distributed_ray",
            "test_retried_tasks",
            "test_sliced_on_ray",
            "test_sliced_overfull",
            "test_tree_on_ray",
        },
        "notebooks": {"test_notebooks"},
    }

    @classmethod
    def scope(cls, nodeid):
        file = Path(nodeid.partition("::")[0]).stem
        shared = "ray" if "on_ray" in nodeid else None
        return next((name for name, files in cls.SHARED.items() if file in files), shared or nodeid)

    def _split_scope(self, nodeid):
        return self.scope(nodeid)


def pytest_xdist_auto_num_workers(config):
    """Start a process more than there are processors: many tests wait for other processes."""
    return (os.cpu_count() or 1) + 1


def pytest_xdist_make_scheduler(config, log):
    return Together(config, log)
