"""A message goes through once a window, and nothing else is lost."""

import io
import logging
import logging.config
import os
import sys
import threading
import time
from itertools import pairwise

import pytest

import lately
from lately.integrations.logging import OncePerWindow
from support.threads import together


@pytest.fixture
def clock(monkeypatch):
    """The filter's clock, set by hand."""
    now, make = [1000.0], lately.Filter

    class Timed:
        def __init__(self, window, fpr, **options):
            self.filter = make(window, fpr, **options | {"max_ahead": None})

        def seen(self, key, *, refresh):
            return self.filter.seen(key, at=now[0], refresh=refresh)

    monkeypatch.setattr(lately, "Filter", Timed)
    return now


def logger(filter):
    """A logger and what its handler wrote."""
    written = io.StringIO()
    log = logging.Logger("shop")
    log.addHandler(logging.StreamHandler(written))
    log.handlers[0].addFilter(filter)
    return log, written


def lines(written) -> list[str]:
    return written.getvalue().splitlines()


def test_an_outage_of_ten_minutes(clock):
    """A message every 100 ms comes through about once a minute, and the counts add up to all messages."""
    log, written = logger(OncePerWindow("1min"))
    times = []
    for tick in range(6_000):
        clock[0] = 1000 + tick / 10
        before = written.tell()
        log.error("cannot reach %s", "db-1")
        if written.tell() > before:
            times.append(clock[0])
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(gaps) >= 6
    assert all(60 < gap <= 90.1 for gap in gaps)
    assert lines(written)[0] == "cannot reach db-1"
    counts = [int(line.split("(")[1].removesuffix(" like it held back)")) for line in lines(written)[1:]]
    once = log.handlers[0].filters[0]
    assert all(counts)
    held_now = once.held_back - sum(counts)
    assert len(times) + once.held_back == 6_000
    assert held_now == round((clock[0] - times[-1]) * 10)


def test_other_messages_go_through(clock):
    """Other text, arguments, level, logger or exception: another message."""
    log, written = logger(OncePerWindow("1min"))
    other, _ = logger(OncePerWindow("1min"))
    other.name, other.handlers = "cart", log.handlers
    for _ in range(3):
        log.warning("a %s", 1)
        log.warning("a %s", 2)
        log.error("a %s", 1)
        other.warning("a %s", 1)
        for error in (ValueError("x"), ValueError("y"), KeyError("x")):
            log.error("failed", exc_info=error)
    passed_lines = [line for line in lines(written) if line.startswith(("a ", "failed"))]
    assert passed_lines == ["a 1", "a 2", "a 1", "a 1", "failed", "failed", "failed"]


def test_a_key_may_ignore_the_arguments_of_a_message(clock):
    log, written = logger(OncePerWindow("1min", key=lambda record: record.msg))
    for number in range(5):
        log.warning("slow query %d", number)
    clock[0] += 100
    log.warning("slow query %d", 5)
    assert lines(written) == ["slow query 0", "slow query 5 (4 like it held back)"]


def test_a_number_of_messages():
    log, written = logger(OncePerWindow(3))
    for text in "aaabcda":
        log.warning(text)
    # The last is a repeat of the fourth message before it, which the window of three no longer holds.
    assert lines(written) == ["a", "b", "c", "d", "a (2 like it held back)"]
    for number in range(200):
        log.warning("%s", number)
    log.warning("a")
    assert lines(written)[-1] == "a"


def test_a_message_that_cannot_be_formatted_is_reported_as_usual(capsys):
    """Logging reports a wrong number of arguments on its own; the program goes on."""
    log, _ = logger(OncePerWindow("1min"))
    log.warning("%d and %d", 1)
    assert "not enough arguments" in capsys.readouterr().err
    log.warning("file %s", b"\xff".decode("utf-8", "surrogateescape"))
    assert log.handlers[0].filters[0].held_back == 0


def test_a_key_that_cannot_be_counted_is_reported_at_the_first_message(capsys):
    """Not at the first repeat, which may come in production only. The message passes: no logging call raises."""
    for key in (["db-1"], ("db-1", ["eth0"]), bytearray(b"db-1")):
        once = OncePerWindow("1min", key=lambda record, key=key: key)
        assert once.filter(logging.makeLogRecord({"msg": "a"})) is True
        assert "TypeError: unhashable" in capsys.readouterr().err
        assert once.held() == {}


def test_first_and_last_are_the_earliest_and_the_latest():
    """Threads come out of order, and the system's clock steps back."""
    once = OncePerWindow(100, key=lambda record: record.msg)
    for created in (50.0, 103.0, 101.0, 109.0, 102.0):
        once.filter(logging.makeLogRecord({"msg": "a", "created": created}))
    assert once.held() == {"a": (4, 101.0, 109.0)}


def test_a_wrong_key_is_reported_and_the_message_passes(capsys):
    log, written = logger(OncePerWindow("1min", key=lambda record: record.request))
    log.warning("a")
    assert lines(written) == ["a"]
    assert "has no attribute 'request'" in capsys.readouterr().err


def test_one_filter_on_two_handlers_passes_a_record_to_both(clock):
    """As `dictConfig` builds it: a filter by its name is one object."""
    log, written = logger(once := OncePerWindow("1min"))
    log.addHandler(logging.StreamHandler(other := io.StringIO()))
    log.handlers[1].addFilter(once)
    for _ in range(3):
        log.warning("a")
    clock[0] += 200
    log.warning("a")
    assert lines(written) == lines(other) == ["a", "a (2 like it held back)"]
    assert once.held_back == 2


def test_other_handlers(clock):
    """Two handlers, each with a filter of its own: both hold back, and neither reports the other's count."""
    log, written = logger(OncePerWindow("1min"))
    log.addHandler(logging.StreamHandler(rare := io.StringIO()))
    log.handlers[1].addFilter(OncePerWindow("1h"))
    log.addHandler(logging.StreamHandler(every := io.StringIO()))
    for _ in range(4):
        log.warning("a")
    clock[0] += 200
    log.warning("a")
    assert lines(written) == ["a", "a (3 like it held back)"]
    assert lines(rare) == ["a"]
    assert lines(every) == ["a"] * 5 if sys.version_info >= (3, 12) else ["a"] * 4 + ["a (3 like it held back)"]


def test_frozen_time_and_clocks_that_go_back_raise_nothing(monkeypatch):
    """As freezegun replaces them."""
    log, written = logger(OncePerWindow("1min"))
    for now in (1e9, 1e9 - 86400, 5.0):
        for clock in ("time", "monotonic"):
            monkeypatch.setattr(time, clock, lambda now=now: now)
        log.warning("at %s", now)
        log.warning("again")
    assert len(lines(written)) == 4


def test_from_many_threads(clock):
    """Each message comes through once, and all others are counted."""
    log, written = logger(OncePerWindow("1min"))

    def write():
        for number in range(500):
            log.warning("%d", number % 50)

    together(*[write] * 4)
    assert sorted(map(int, lines(written))) == list(range(50))
    assert log.handlers[0].filters[0].held_back == 2000 - 50


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_another_thread_is_in_the_filter():
    """The child of a fork logs, whichever thread held the lock."""
    log, _ = logger(OncePerWindow("1min"))
    held, done = threading.Event(), threading.Event()

    def hold():
        with log.handlers[0].filters[0]._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        # A child that waits for the lock is ended by the alarm, and not with status 0.
        import signal

        signal.alarm(20)
        log.warning("a")
        os._exit(0)
    try:
        assert os.waitpid(child, 0)[1] == 0
    finally:
        done.set()
        thread.join()


def test_counts_take_bounded_memory(clock):
    """Three thousand different messages are held back; the counts of the latest are known, and the total."""
    log, written = logger(OncePerWindow("1min"))
    for _ in range(2):
        for number in range(3_000):
            log.warning("%d", number)
    once = log.handlers[0].filters[0]
    assert once.held_back == 3_000
    assert len(once.held()) == 1024
    clock[0] += 100
    log.warning("0")
    log.warning("2999")
    assert lines(written)[-2:] == ["0", "2999 (1 like it held back)"]


def test_configured_by_a_dictionary():
    once = {"()": "lately.integrations.logging.OncePerWindow", "window": "1min"}
    handler = {"class": "logging.NullHandler", "filters": ["once"]}
    settings = {"version": 1, "incremental": False, "disable_existing_loggers": False}
    settings |= {"filters": {"once": once}, "handlers": {"null": handler}, "loggers": {"shop": {"handlers": ["null"]}}}
    logging.config.dictConfig(settings)
    handlers = logging.getLogger("shop").handlers
    assert isinstance(handlers[0].filters[0], OncePerWindow)
    handlers.clear()


@pytest.mark.parametrize(("window", "error"), [("1 fortnight", ValueError), (0, ValueError), (1.5, TypeError)])
def test_bad_windows(window, error):
    with pytest.raises(error, match="window"):
        OncePerWindow(window)


def test_messages_held_back_have_a_count_and_their_first_and_last_time():
    """In the attributes of the message that reports it, and in `held` until then."""
    once = OncePerWindow(5, key=lambda record: record.msg)

    def send(text, created):
        return once.filter(logging.makeLogRecord({"msg": text, "created": created}))

    assert send("a", 100.0) is True
    assert [send("a", created) for created in (101.0, 102.5, 103.0)] == [False] * 3
    assert once.held() == {"a": (3, 101.0, 103.0)}
    for n in range(20):
        assert send(f"other {n}", 110.0 + n) is True
    passed = send("a", 200.0)
    record = passed if isinstance(passed, logging.LogRecord) else None
    if record is not None:  # from Python 3.12 on
        assert (record.held_back, record.held_first, record.held_last) == (3, 101.0, 103.0)
        assert record.getMessage() == "a (3 like it held back)"
    assert once.held() == {}
