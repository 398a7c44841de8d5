"""The programs in `examples/` do what their pages state, with real clients: HTTP, asyncio, SQLite; others run."""

import http.client
import importlib.util
import json
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from support.server import served

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Workers:
    """Receivers of web hooks, each a process."""

    def __init__(self, folder, number):
        self.folder = folder
        self.running = [self.start() for _ in range(number)]

    def start(self):
        command = [sys.executable, str(EXAMPLES / "web_hooks.py"), str(self.folder)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        return process, int(process.stdout.readline())

    def kill(self, number):
        process, _ = self.running[number]
        process.kill()
        process.communicate()
        self.running[number] = self.start()

    def send(self, event, number):
        """Send an event; return the status, or None if the receiver was killed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.running[number][1], timeout=60)
        try:
            connection.request("POST", "/", json.dumps(event))
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def stop(self):
        for process, _ in self.running:
            process.kill()
            process.communicate()


@pytest.fixture
def workers(tmp_path):
    load("web_hooks").prepare(tmp_path)
    workers = Workers(tmp_path, 3)
    yield workers
    workers.stop()


def paid(folder):
    with closing(sqlite3.connect(folder / "store.db")) as store:
        return Counter(id for (id,) in store.execute("SELECT id FROM payments"))


def test_web_hooks_that_come_again_and_fail_are_paid_once(workers, tmp_path):
    """Each event comes to two receivers at once, and again until one answers 200."""
    events = [{"id": f"evt_{n}", "amount": n, "fails": n % 3} for n in range(20)]

    def deliver(event_and_seed):
        event, seed = event_and_seed
        chance = Random(seed)
        while (status := workers.send(event, chance.randrange(3))) != 200:
            assert status in (500, 503)
        return status

    with ThreadPoolExecutor(8) as pool:
        deliveries = [(event, seed) for seed in (0, 1) for event in events]
        assert set(pool.map(deliver, deliveries)) == {200}
    assert paid(tmp_path) == Counter(event["id"] for event in events)


def test_web_hooks_of_a_receiver_that_was_killed_are_paid(workers, tmp_path):
    """The shared file has what the killed receiver had paid."""
    events = [{"id": f"evt_{n}", "amount": n} for n in range(12)]
    for event in events[:6]:
        assert workers.send(event, 0) == 200
    workers.kill(0)
    for event in events:
        assert [workers.send(event, number) for number in range(3)] == [200] * 3
    assert paid(tmp_path) == Counter(event["id"] for event in events)


class Clock:
    now = 1_800_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def gate(tmp_path):
    """Each call starts a gate on the same file."""
    module, clock = load("replay_protection"), Clock()

    def start(path="tokens.lately", **options):
        return module.Gate(tmp_path / path, b"secret", clock, **options)

    start.clock, start.module = clock, module
    start(first=True)
    return start


def token(gate, number, iat, uri="/pay", iss="a", secret=b"secret"):
    return gate.module.sign(secret, {"jti": number, "iat": iat, "uri": uri, "iss": iss})


def test_a_token_is_accepted_once_within_all_of_its_life(gate):
    """Issuers' clocks may differ by the greatest skew, and a second gate may serve the file."""
    lifetime, skew, now = gate.module.LIFETIME, gate.module.SKEW, gate.clock.now
    one, two = gate(), gate()
    early = token(gate, 1, now + skew)
    assert [one.accept(early, "/pay"), two.accept(early, "/pay")] == [True, False]
    for passed in (1, lifetime, lifetime + 2 * skew):
        gate.clock.now = now + passed
        assert not one.accept(early, "/pay")
    gate.clock.now += 1
    assert not one.accept(early, "/pay"), "it is too old"


def test_the_scope_of_a_token_is_its_issuer_and_its_uri(gate):
    now, one = gate.clock.now, gate()
    assert one.accept(token(gate, 1, now), "/pay")
    assert one.accept(token(gate, 1, now, iss="b"), "/pay")
    assert one.accept(token(gate, 1, now, uri="/refund"), "/refund")
    assert not one.accept(token(gate, 2, now, uri="/refund"), "/pay")


def test_a_forged_token_marks_nothing(gate):
    now, one = gate.clock.now, gate()
    assert not one.accept(token(gate, 1, now, secret=b"guess"), "/pay")
    assert one.accept(token(gate, 1, now), "/pay")


def test_a_restart_accepts_no_token_again(gate):
    """With the file, because it was written at once; and without it, because older tokens are rejected."""
    now = gate.clock.now
    old, new = token(gate, 1, now), token(gate, 2, now + 6)
    assert gate().accept(old, "/pay")
    assert not gate().accept(old, "/pay")
    lost = gate("new file.lately")
    # Other workers, and those that start later, find the new file.
    later = [gate("new file.lately"), gate("new file.lately")]
    assert not any(one.accept(old, "/pay") for one in (lost, *later))
    gate.clock.now += 6
    assert [one.accept(new, "/pay") for one in (*later, lost)] == [True, False, False]


def test_gates_that_start_together_share_one_file(gate):
    """Each finds no file, and one makes it."""
    with ThreadPoolExecutor(4) as pool:
        gates = list(pool.map(lambda _: gate("at once.lately", first=True), range(4)))
    assert sum(one.accept(token(gate, 1, gate.clock.now), "/pay") for one in gates) == 1


@pytest.fixture
def site():
    """The port of a site of 60 pages, each with links to others, and its requests; some fail the first time."""
    requests = Counter()

    def respond(path):
        number = int(path[1:])
        requests[number] += 1
        fails = number % 7 == 3 and requests[number] == 1
        return 500 if fails else 200, "application/json", json.dumps([f"/{(number * 2 + n) % 60}" for n in range(3)])

    with served(respond) as port:
        yield port, requests


CRAWL = """
import asyncio, http.client, importlib.util, json, os, signal, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("crawler", sys.argv[1])
crawler = importlib.util.module_from_spec(spec)
spec.loader.exec_module(crawler)
port, dies_after = int(sys.argv[3]), int(sys.argv[4])
fetched = 0

def get(url):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", url)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    if answer.status != 200:
        raise ConnectionError(url)
    return body, json.loads(body)

async def fetch(url):
    global fetched
    fetched += 1
    if fetched == dies_after:
        os.kill(os.getpid(), signal.SIGKILL)
    return await asyncio.to_thread(get, url)

asyncio.run(crawler.crawl(Path(sys.argv[2]), "/0", fetch, workers=4))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="a kill")
def test_a_crawler_that_is_killed_fetches_the_rest_and_little_again(tmp_path, site):
    port, requests = site

    def crawl(dies_after):
        command = [sys.executable, "-c", CRAWL, str(EXAMPLES / "crawler.py"), str(tmp_path), str(port), str(dies_after)]
        return subprocess.run(command, capture_output=True, text=True)

    assert crawl(20).returncode == -signal.SIGKILL
    ended = crawl(0)
    assert ended.returncode == 0, ended.stderr
    with closing(sqlite3.connect(tmp_path / "pages.db")) as pages:
        urls = {url for (url,) in pages.execute("SELECT url FROM pages")}
    reached, todo = set(), ["/0"]
    while todo:
        url = todo.pop()
        if url not in reached:
            reached.add(url)
            todo += [f"/{(int(url[1:]) * 2 + n) % 60}" for n in range(3)]
    assert urls == reached
    # Once for each page, once more for each that failed, and for those under way when the process was killed.
    assert requests.total() <= len(urls) + sum(n % 7 == 3 for n in range(60)) + 4


def test_no_article_is_shown_to_a_reader_twice_a_day():
    articles = sqlite3.connect(":memory:")
    articles.execute("CREATE TABLE articles (id INTEGER, score REAL)")
    articles.executemany("INSERT INTO articles VALUES (?, ?)", [(n, -n) for n in range(200)])
    shelf = load("recommendations").Shelf(articles)
    day = 86_400
    picks = [shelf.pick("ada", 5, at) for at in (0, 3600, day)]
    assert len({number for pick in picks for number in pick}) == 15
    # By chance one of 200 is taken for one that was shown, with 0.2; each such chance skips an article.
    assert picks[0] == [0, 1, 2, 3, 4]
    assert shelf.pick("bob", 5, day)[0] < 5
    assert shelf.pick("ada", 5, 3 * day) == [0, 1, 2, 3, 4]
    articles.close()


def test_every_example_has_a_test_and_a_page():
    pages = "".join(path.read_text() for path in (EXAMPLES.parent / "docs").rglob("*.md"))
    # Programs that share a file with one in Rust are tested beside it.
    tests = "".join(Path(__file__).with_name(name).read_text() for name in ("test_examples.py", "test_rust_crate.py"))
    for path in EXAMPLES.glob("*.py"):
        assert f"examples/{path.name}" in pages
        assert f'"{path.stem}' in tests


@pytest.mark.parametrize("script", ["memcheck.py", "seeds.py"])
def test_scripts_of_the_fuzz_targets_run(script, tmp_path):
    """Only weekly checks use them, so they would otherwise miss a renamed parameter."""
    subprocess.run([sys.executable, EXAMPLES.parent / "fuzz" / script, tmp_path], check=True)
