"""The planner's ways to slice a filter do what it states."""

import json

import numpy as np
import pytest

import lately
from lately._core import Ranges
from lately._families import FAMILIES
from lately.distributed import SlicedFilter
from lately.distributed import plan as plan_sliced
from lately.distributed._slices.routes import Numbers
from lately.distributed._slices.slicing import Slicing

REQUEST = {"window": "10min", "fpr": 0.01, "capacity": 20_000, "sites": 12, "failures": 2}
PLAN = plan_sliced(**REQUEST)


@pytest.mark.parametrize("way", PLAN.choices, ids=lambda way: way.name)
def test_a_way_is_what_is_stated(way):
    with way.build() as sliced:
        assert len(sliced.sites) == 12
        assert sliced.nbytes == way.nbytes
        assert max(site["nbytes"] for site in sliced.status()) == way.nbytes_site
        assert (sliced.fpr, *sliced.failure_rates(2)) == pytest.approx((way.fpr, way.least_fpr, way.least_fnr))
        assert way.fpr <= 0.01
        sliced.duplicated(np.arange(1000), at=np.zeros(1000))
        assert sliced.traffic.sent * 8 == way.bits * 1000
        before, alone = sliced.traffic.messages, 300
        for key in range(alone):
            sliced.duplicated([key], at=0)
        # How many sites a key has differs by less than two.
        assert abs((sliced.traffic.messages - before) / alone - way.messages) < 5 * 2 / np.sqrt(alone)


def test_pipelining_asks_for_as_few_cells_as_are_needed():
    way = next(way for way in PLAN.choices if way.name == "vertical timing")
    k = way.filter.parameters["k"]
    with way.build(pipelined=True) as sliced:
        sliced.insert(np.arange(20_000), at=np.linspace(0, 599, 20_000))
        before, queried = sliced.traffic.keys.sum(), np.arange(20_000, 40_000)
        sliced.query(queried, at=599)
        cells = (sliced.traffic.keys.sum() - before) / len(queried)
        fill = sliced.fill.mean()
        sites = sliced._slices._ranges.deal(lately.hash_keys(queried, seed=sliced.seed)).sites
    # A site is queried for its cells of a key where all those at sites before it are set. At most k, so that their
    # variance is at most k times as many as are expected.
    first = (sites[:, :, None] == sites[:, None, :]).argmax(axis=2)
    before = (first[:, :, None] > first[:, None, :]).sum(axis=2)
    expected = (fill**before).sum(axis=1).mean()
    assert abs(cells - expected) < 5 * np.sqrt(k * expected / len(queried))
    assert cells < k


def test_every_family_is_a_choice_or_refused():
    named = {way.name.removeprefix("horizontal ") for way in PLAN.choices if way.kind == "horizontal"}
    assert named | set(PLAN.refused) == set(FAMILIES)
    assert {way.kind for way in PLAN.choices} == {"horizontal", "vertical", "diced"}
    assert {way.dice for way in PLAN.choices} == {None, "h-v", "v-h"}
    assert "13 sites are no product" in repr(plan_sliced(**{**REQUEST, "sites": 13}))


def test_a_vertical_one_is_only_taken_where_it_is_asked_for():
    for failures in (0, 2):
        assert plan_sliced(**{**REQUEST, "failures": failures}).best.kind == "horizontal"
    for kind in ("vertical", "diced"):
        plan = plan_sliced(**REQUEST, kind=kind)
        ways = [way for way in plan.choices if way.kind == kind]
        assert plan.best.kind == kind
        assert plan.best.least_fpr + plan.best.least_fnr == min(way.least_fpr + way.least_fnr for way in ways)
    with plan.build(on_failure="distinct") as sliced:
        assert sliced.failure_rates(2) == pytest.approx((pytest.approx(0, abs=0.01), plan.best.distinct))


def test_what_is_guessed_is_planned_only_where_sites_may_fail():
    """Else one that does not answer is an error."""
    for failures, strict in ((0, True), (2, False)):
        with plan_sliced(**{**REQUEST, "failures": failures}).build() as sliced:
            assert sliced._slicing.strict == strict


def test_where_none_fails_the_best_of_one_machine_is_taken_horizontally():
    plan = plan_sliced(**{**REQUEST, "failures": 0})
    alone = lately.plan("10min", 0.01, capacity=plan.best.filter.capacity)
    assert plan.best.name == f"horizontal {alone.best.name}"
    assert plan.best.filter.capacity > 20_000 / 12
    assert plan.best.duplicate == pytest.approx(plan.best.fpr)
    assert plan.best.distinct == 0


def test_a_plan_for_more_keys_than_memory_holds_is_made():
    plan = plan_sliced("1h", 0.01, capacity=10**12, sites=1000)
    assert plan.best.nbytes > 10**12
    assert plan.best.nbytes_site == plan.best.nbytes // 1000
    vertical = next(way for way in plan.choices if way.name == "vertical timing")
    # Whoever asks for all of its cells at once is told.
    with pytest.raises(MemoryError):
        _ = vertical.filter


def test_a_way_makes_its_filter_once():
    way = plan_sliced(**REQUEST).best
    assert "filter" not in vars(way)
    assert way.filter is way.filter
    assert way.filter.parameters == way.choice.parameters


def test_tables_agree():
    frame = PLAN.to_pandas()
    assert list(frame["filter"]) == [way.name for way in PLAN.choices]
    assert list(frame["bytes per site"]) == [way.nbytes_site for way in PLAN.choices]
    assert list(frame["bytes per site"]) == sorted(frame["bytes per site"])
    for text in (repr(PLAN), PLAN._repr_html_()):
        assert all(f"{way.nbytes_site:,}" in text and way.name in text for way in PLAN.choices)
        assert PLAN.reason in text


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        ({"window": 1000}, ValueError, "window counts 1000 insertions"),
        ({"kind": "sideways"}, ValueError, "kind must be 'horizontal', 'vertical' or 'diced', got 'sideways'"),
        ({"kind": "diced", "sites": 13}, ValueError, "kind cannot be 'diced': 13 sites are no product"),
        ({"sites": 0}, ValueError, "sites must be at least 1, got 0"),
        ({"failures": 12}, ValueError, r"failures must lie in 0 \.\. 11"),
        ({"failures": -1}, ValueError, r"failures must lie in 0 \.\. 11"),
        ({"capacity": None}, TypeError, "missing .* 'capacity'"),
        ({"fpr": None}, TypeError, "missing .* 'fpr'"),
        ({"nbytes": 1 << 20}, TypeError, "unexpected keyword argument 'nbytes'"),
        ({"sites": None}, TypeError, "missing .* 'sites'"),
    ],
)
def test_bad_requests(request_, error, message):
    given = {name: value for name, value in {**REQUEST, **request_}.items() if value is not None}
    with pytest.raises(error, match=message):
        plan_sliced(**given)


def test_a_filter_larger_than_a_machine_is_planned_cut_and_routed_without_its_cells():
    """Hundreds of gigabytes: a site makes its own share of them, and a producer none."""
    sliced = lately.distributed.plan("10min", 0.001, capacity=10**11, sites=10_000, kind="vertical")
    way = sliced.best
    assert way.nbytes > 2 * 10**11
    slicing = Slicing.of("vertical", way.slices, way.choice, dice=None, on_failure="raise", pipelined=False)
    makers = slicing.contents()
    first, last = makers[0](), makers[-1]()
    assert last.nbytes <= first.nbytes <= way.nbytes_site < 10**8
    like = slicing.blank.outline()
    places = Ranges(like, slicing.parts).deal(lately.hash_keys(np.arange(10_000)))
    mine = Numbers(like, slicing.parts).at(9999, places.cells[places.sites == 9999])
    assert len(mine) > 0
    assert mine.dtype == np.uint32
    now = int(like.generations(None, 1)[0])
    assert last.set(mine, np.zeros(len(mine), bool), refresh=False, newest=now).shape == mine.shape
    ages, told = last.read(mine)
    assert not ages.any()
    assert told[0] == now
    again = Slicing.of_manifest(json.loads(json.dumps(slicing.manifest)), on_failure="raise", pipelined=False)
    assert again == slicing


@pytest.mark.parametrize("kind", ["horizontal", "vertical"])
def test_a_planned_filter_is_the_one_that_is_made(kind):
    way = lately.distributed.plan("10min", 0.01, capacity=1000, sites=3, lateness="1s", kind=kind).best
    keys, times = np.random.default_rng(1).integers(0, 900, 3000), np.linspace(0, 2000, 3000)
    with SlicedFilter(kind, 3, way.choice) as planned, SlicedFilter(kind, 3, way.filter) as made:
        assert repr(planned) == repr(made)
        assert (planned.fpr, planned.slack, planned.lateness) == (made.fpr, made.slack, made.lateness)
        assert (planned.duplicated(keys, at=times) == made.duplicated(keys, at=times)).all()
