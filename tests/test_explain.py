"""What a filter is, in words; and tables of filters in a notebook."""

from html.parser import HTMLParser

import numpy as np
import pytest

import lately
from lately._families import EVERY


class Read(HTMLParser):
    """Text of the cells of a table, and the tags that are used."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.cells = [], set(), []
        self.feed(page)
        assert not self.open, "every tag is closed"

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.open.append(tag)
        assert not {name for name, _ in attributes} - {"style"}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells.append(data)


def of(name, family):
    window = 1000 if family.windows in ("any", "insertions") else "90min"
    return family.make(window, fpr=0.01, **({"capacity": 900} if family.windows == "time" else {}))


@pytest.mark.parametrize(
    "f",
    [
        *(pytest.param(of(name, family), id=name) for name, family in EVERY.items()),
        pytest.param(lately.Filter("90min", 0.01, capacity=900, lateness="30s"), id="time"),
        pytest.param(lately.BloomFilter(1000, 0.01), id="bloom"),
        pytest.param(lately.ExactFilter(1000), id="exact"),
        pytest.param(lately.ExactFilter("90min"), id="exact, of time"),
        pytest.param(
            lately.TimingBloomFilter.from_parameters(101, k=8, bpt=8, blocks=100, slice_timers=160, equal_timers=3),
            id="equal timers",
        ),
    ],
)
def test_every_filter_describes_itself_empty_and_filled(f):
    for _ in range(2):
        printed = f.explain()
        assert printed.startswith(f"{type(f).__name__}, {f.family}\n")
        assert f"{f.nbytes:,} bytes" in printed
        assert f"{f.inserted:,} so far" in printed
        assert f"{f.fpr:.3g} as planned, {f.false_positive_rate():.3g} now" in printed
        f.insert(np.arange(700))


def test_explain_states_what_is_promised_and_what_is_not():
    printed = lately.Filter(1_000_000, 0.001).explain()
    assert "the last 1,000,000 keys: a key inserted within it is always reported" in printed
    assert "up to 15,625 keys more (1/64 of the window), in which a key may still be reported" in printed
    timed = lately.Filter("90min", 0.01, capacity=900, lateness="30s")
    timed.add("a", at=1_000_000_000)
    assert "the last 90 min, planned for 900 keys, times may step back by 30 s: a key" in timed.explain()
    assert "1 so far, the latest at 2001-09-09T01:46:40 UTC" in timed.explain()
    assert "may be missed" in lately.baselines.StableBloomFilter(1000, 0.01).explain()
    assert (
        "none: a key that was ever inserted is reported; planned for 50 keys" in lately.BloomFilter(50, 0.1).explain()
    )
    assert "none: a key that leaves the window is gone" in lately.Swamp(50, 0.1).explain()


def test_a_secret_seed_is_not_shown():
    secret = b"0123456789abcdef"
    f = lately.Filter(1000, 0.01, seed=secret)
    words = [secret.decode(), secret.hex(), *(str(int.from_bytes(secret[i : i + 8], "little")) for i in (0, 8))]
    for printed in (f.explain(), repr(f)):
        assert not any(word in printed for word in words)
    assert "secret: no attacker can choose keys that collide" in f.explain()


def test_plans_and_tunings_show_rejected_families_too():
    for table in (
        lately.plan(1000, 1e-9, slack=5),
        lately.tune(np.arange(100) % 30, window=15, nbytes=256, false_positive=1, false_negative=2),
    ):
        assert table.refused
        page = Read(table._repr_html_())
        text = " ".join(page.cells)
        for name, why in table.refused.items():
            assert name in text
            assert why in text
        assert table.best.name in text


def test_text_that_looks_like_html_is_escaped():
    plan = lately.plan(1000, 0.01)
    plan.refused = {"mine <b>": "since 1 < 2 & so on <script>"}
    page = Read(plan._repr_html_())
    assert "script" not in page.tags
    assert "mine <b>: since 1 < 2 & so on <script>" in "".join(page.cells)
