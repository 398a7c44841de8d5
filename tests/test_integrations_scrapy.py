"""Scrapy, unmodified, makes each request once, also over several runs of a job."""

import json
from collections import Counter
from pathlib import Path

import pytest
from scrapy import Request
from scrapy.utils.test import get_crawler

import lately
from lately.integrations.scrapy import DupeFilter
from support.forked import Forked
from support.server import served

PAGES = 60


@pytest.fixture
def site():
    """The address of pages full of links to one another, in two spellings each, and how often each was requested."""
    hits: Counter = Counter()

    def respond(path):
        hits[path] += 1
        number = int(path.partition("page=")[2].partition("&")[0] or 0)
        links = "".join(
            f"<a href='/?page={other % PAGES}&sort=up'>x</a><a href='/?sort=up&page={other % PAGES}#part'>y</a>"
            for other in (number + 1, number + 7, 3 * number)
        )
        return 200, "text/html", f"<html>{links}</html>"

    with served(respond) as port:
        yield f"http://127.0.0.1:{port}/", hits


def crawl(site: str, **settings) -> tuple[dict, str]:
    """Run a spider of Scrapy's over the site: its statistics, and its log."""
    program = Path(__file__).parent / "support" / "crawler.py"
    given = [f"{name}={value}" for name, value in settings.items()]
    imports = ("scrapy.crawler", "lately.integrations.scrapy")
    process = Forked(program.read_text(), site, *given, imports=imports)
    out, err = process.communicate()
    assert process.returncode == 0, err.decode()
    return json.loads(out), err.decode()


def test_a_job_in_two_runs_requests_each_page_once(site, tmp_path):
    """The first run is stopped half-way; the second goes on, and no page is requested twice or left out."""
    address, hits = site
    first, log = crawl(address, JOBDIR=tmp_path, CLOSESPIDER_PAGECOUNT=20, CONCURRENT_REQUESTS=4)
    assert first["finish_reason"] == "closespider_pagecount", log
    assert 20 <= hits.total() < PAGES
    second, log = crawl(address, JOBDIR=tmp_path)
    assert second["finish_reason"] == "finished", log
    # The first request of a run is not filtered, by Scrapy's rule.
    assert hits.pop("/") == 2
    assert len(hits) == PAGES
    assert set(hits.values()) == {1}
    assert second["dupefilter/filtered"] > 0
    assert second["lately/false_positive_rate"] < 1e-6
    assert not log


def seen(**settings) -> DupeFilter:
    return DupeFilter.from_crawler(get_crawler(settings_dict=settings))


def test_the_same_request_in_other_words():
    """As to Scrapy: the order of parameters and the fragment do not count, method and body do."""
    requests = seen()
    assert not requests.request_seen(Request("http://a/?x=1&y=2"))
    assert requests.request_seen(Request("http://a/?y=2&x=1#top"))
    assert not requests.request_seen(Request("http://a/?x=1&y=2", method="POST"))
    assert not requests.request_seen(Request("http://a/?x=1&y=2", method="POST", body=b"z"))


def test_a_window_of_time():
    """After the window a page is crawled again, however often it was requested meanwhile."""
    hours, blink = seen(LATELY_WINDOW="12h"), seen(LATELY_WINDOW="50ms")
    for requests, again, times in ((hours, True, 3000), (blink, False, 20_000)):
        assert not requests.request_seen(Request("http://a/"))
        answers = (requests.request_seen(Request("http://a/")) for _ in range(times))
        assert all(answers) is again


@pytest.mark.parametrize("window", [100, "100"])
def test_a_window_of_requests(window):
    """A number on the command line is text."""
    requests = seen(LATELY_WINDOW=window)
    numbers = [*range(100), *range(100), *range(1000, 1300), 0]
    answers = [requests.request_seen(Request(f"http://a/{number}")) for number in numbers]
    assert answers[:200] == [False] * 100 + [True] * 100
    assert answers[-1] is False


def test_the_filter_is_saved_in_the_folder_of_the_job(tmp_path):
    """After a restart too; another window in the same folder is rejected, and nothing is overwritten."""
    settings = {"JOBDIR": str(tmp_path), "LATELY_WINDOW": "7d"}
    requests = seen(**settings)
    assert not requests.request_seen(Request("http://a/"))
    requests.close("finished")
    assert seen(**settings).request_seen(Request("http://a/"))
    for other in ({"LATELY_WINDOW": "8d"}, {"LATELY_WINDOW": None}, {"LATELY_FPR": 0.01}):
        with pytest.raises(ValueError, match="other settings"):
            seen(**settings | other)
    assert seen(**settings).request_seen(Request("http://a/"))


def test_a_file_of_scrapys_own_filter_is_reported(tmp_path, caplog):
    (tmp_path / "requests.seen").write_bytes(b"")
    seen(JOBDIR=str(tmp_path))
    assert "requests of Scrapy's own filter" in caplog.text


@pytest.mark.filterwarnings("always::lately.OverfullWarning")
def test_more_requests_than_planned():
    """A warning comes, which Scrapy logs, and still no request is made twice."""
    requests = seen(LATELY_CAPACITY=100, LATELY_FPR=0.001)
    many = [Request(f"http://a/{number}") for number in range(300)]
    with pytest.warns(lately.OverfullWarning, match="planned for 100 keys"):
        list(map(requests.request_seen, many))
    assert all(map(requests.request_seen, many))


def test_without_a_job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen().close("finished")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"LATELY_WINDOW": "1 fortnight"}, "window"),
        ({"LATELY_WINDOW": 0}, "window"),
        ({"LATELY_FPR": 2}, "fpr"),
        ({"LATELY_CAPACITY": 0}, "capacity"),
        ({"LATELY_WINDOW": "1h", "LATELY_CAPACITY": 5}, "LATELY_CAPACITY"),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        seen(**settings)
