"""Sites without a network: batches that are sent again are answered as before."""

import threading
import time
from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lately.distributed._sites import results as _results
from lately.distributed._sites.checkpoints import pack, unpack
from lately.distributed._sites.errors import ForgottenError, SupersededError, TooManyProducersError
from lately.distributed._sites.interface import Failed, Message, Traffic
from lately.distributed._sites.local import LocalSites
from lately.distributed._sites.results import UNKNOWN, RequestId, ResultCache
from lately.distributed._sites.site import Site
from support.site import HASHES, Counted, Slow, bloom, duplicated

PLACES = 12

places = st.sets(st.integers(0, PLACES - 1)).map(lambda places: np.array(sorted(places), dtype=np.int64))
# The producer, whether it is the same batch or the next, which of its keys, and whether it is saved and loaded between.
sent = st.lists(st.tuples(st.sampled_from("ab"), st.booleans(), places, st.booleans()), max_size=20)


@given(sent)
def test_a_batch_is_written_once_and_answered_the_same_in_any_parts_and_order(messages):
    kept = Slow()
    make = partial(Site, name="site", store=kept, interval=0)
    contents = Counted()
    site = make(contents)
    numbers, answered = Counter(), {}
    for producer, again, index, crash in messages:
        numbers[producer] += not again
        request = RequestId(producer, numbers[producer], index)
        keys = (1000 * (100 * ord(producer) + numbers[producer]) + index).astype(np.uint64)
        for key, answer in zip(keys.tolist(), site.call("duplicated", (keys,), {}, request=request), strict=True):
            assert answered.setdefault(key, answer) == answer
        if crash:
            site.close(save=False)
            contents = Counted()
            site = make(contents)
    assert set(contents.written.values()) <= {1}
    assert set(contents.written) == set(answered)


@given(sent)
def test_the_cache_holds_the_results_of_the_latest_batch(messages):
    results, chance = ResultCache(), np.random.default_rng(2)
    numbers, answered = Counter(), {}
    for producer, again, index, saved in messages:
        if not again:
            numbers[producer] += 1
            answered[producer] = {}
        request = RequestId(producer, numbers[producer], index)
        answers = chance.random(len(index)) < 0.5
        results.keep(request, answers, index.astype(np.uint64))
        # The first answer stands.
        answered[producer] = dict(zip(index.tolist(), answers.tolist(), strict=True)) | answered.get(producer, {})
        if saved:
            results = ResultCache.from_state(unpack(pack(results.state())))
        for each, number in numbers.items():
            known = results.known(RequestId(each, number, np.arange(PLACES)))
            assert known.tolist() == [answered.get(each, {}).get(place, UNKNOWN) for place in range(PLACES)]
            assert set(results.known(RequestId(each, number + 1, np.arange(PLACES)))) == {UNKNOWN}


def remember(results, producer, number, keys, *, lasting=False):
    keys = np.asarray(keys, dtype=np.uint64)
    request = RequestId(producer, number, np.arange(len(keys)), lasting)
    results.admit(request)
    results.keep(request, np.ones(len(keys), dtype=bool), keys)
    return results


def test_an_earlier_batch_is_rejected():
    results = remember(ResultCache(), "a", 5, range(3))
    with pytest.raises(ValueError, match="batch 4 of producer 'a' comes after its batch 5"):
        results.known(RequestId("a", 4, np.arange(3)))


def test_a_number_that_is_used_again_for_other_keys_is_rejected():
    results = remember(ResultCache(), "a", 5, HASHES[:100])
    same = np.array(HASHES[:100])
    # Part of the keys, and keys that follow after them, are the same batch.
    assert results.known(RequestId("a", 5, np.arange(50, 100)), same[50:]).all()
    assert results.known(RequestId("a", 5, np.arange(200)), HASHES[:200]).tolist() == [1] * 100 + [UNKNOWN] * 100
    for i in range(100):
        other = same.copy()
        other[i] = HASHES[500]
        with pytest.raises(ValueError, match="batch 5 of producer 'a' comes again with other keys"):
            results.known(RequestId("a", 5, np.arange(100)), other)


def test_a_site_rejects_keys_of_other_sites_before_any_effect():
    site = Site(bloom(), name="site")
    duplicated(site, HASHES[:50], request=RequestId("a", 1, np.arange(50)))
    with pytest.raises(ValueError, match="comes again with other keys"):
        duplicated(site, HASHES[20:100], request=RequestId("a", 1, np.arange(80)))
    assert not site.call("query", (HASHES[50:],), {}).any()


def test_answers_that_had_to_go_are_not_guessed(monkeypatch):
    monkeypatch.setattr(_results, "KEYS", 10)
    results = ResultCache()
    for producer in "abcde":
        remember(results, producer, 1, range(3))
    results = ResultCache.from_state(unpack(pack(results.state())))
    for producer in "ab":
        with pytest.raises(ForgottenError, match=r"batch 1 of producer .* comes again, and .* is forgotten"):
            results.known(RequestId(producer, 1, np.arange(3)))
        # Its next one is new, and an earlier one is rejected as usual.
        assert (results.known(RequestId(producer, 2, np.arange(3))) == UNKNOWN).all()
        with pytest.raises(ValueError, match="comes after its batch 1"):
            results.known(RequestId(producer, 0, np.arange(3)))
    for producer in "cde":
        assert results.known(RequestId(producer, 1, np.arange(3))).all()
    # Answers to producers with names go last; a batch larger than all that is kept is kept by itself.
    remember(results, "n", 1, range(3), lasting=True)
    remember(results, "f", 1, range(7))
    assert results.known(RequestId("n", 1, np.arange(3), True)).all()
    assert results.known(RequestId("f", 1, np.arange(7))).all()
    remember(results, "g", 1, range(50))
    assert results.known(RequestId("g", 1, np.arange(50))).all()
    with pytest.raises(ForgottenError):
        results.known(RequestId("n", 1, np.arange(3), True))
    remember(results, "g", 2, range(1))
    assert results._keys == 1


def test_departed_producers_make_room_and_others_are_never_forgotten(monkeypatch):
    now = 1e9
    monkeypatch.setattr(_results, "PRODUCERS", 4)
    monkeypatch.setattr(_results.time, "time", lambda: now)
    results = ResultCache()
    for producer in "abcd":
        remember(results, producer, 1, range(2), lasting=producer == "a")
        now += 600
    with pytest.raises(TooManyProducersError, match="remembers 4 producers"):
        remember(results, "e", 1, range(2))
    remember(results, "b", 2, range(2))
    now = 1e9 + 1200 + _results.HOUR + 1
    remember(results, "e", 1, range(2))
    assert [len(results), results._keys] == [4, 8]
    assert results.known(RequestId("b", 2, np.arange(2))).all()
    assert (results.known(RequestId("c", 1, np.arange(2))) == UNKNOWN).all()
    now += _results.WEEK - 10_000
    remember(results, "f", 1, range(2))
    assert results.known(RequestId("a", 1, np.arange(2), True)).all()
    now += 10_000
    for producer in "ghij":
        remember(results, producer, 1, range(2))
    with pytest.raises(TooManyProducersError):
        remember(results, "k", 1, range(2))
    assert (results.known(RequestId("a", 1, np.arange(2), True)) == UNKNOWN).all()


@pytest.mark.parametrize(
    ("number", "index", "message"),
    [
        (-1, [0], "not -1"),
        (2**63, [0], str(2**63)),
        (1, [1, 0], "ascend"),
        (1, [0, 0], "ascend"),
        (1, [2**31], str(2**31)),
        (1, [-1], "-1"),
    ],
)
def test_bad_request_numbers_are_rejected(number, index, message):
    with pytest.raises(ValueError, match=message):
        RequestId("a", number, np.array(index))


def test_arrays_of_shared_memory_are_copied():
    index, results = np.arange(4), ResultCache()
    answers = np.ones(4, dtype=bool)
    results.keep(RequestId("a", 1, index), answers, HASHES[:4])
    index[:], answers[:] = 0, False
    assert results.known(RequestId("a", 1, np.arange(4))).tolist() == [1] * 4


def test_a_query_with_a_request_number_gets_what_that_request_wrote():
    site = Site(bloom(), name="site")
    assert not duplicated(site, HASHES[:5], request=RequestId("a", 1, np.arange(5))).any()
    answer, known = site.call("query", (HASHES[3:8],), {}, request=RequestId("a", 1, np.arange(3, 8)))
    assert answer.tolist() == [True] * 2 + [False] * 3
    assert known.tolist() == [0] * 2 + [UNKNOWN] * 3


def test_an_orderer_that_was_replaced_is_rejected_also_after_a_crash_and_a_producer_is_not():
    kept = Slow()
    site = Site(bloom(), name="site", store=kept, interval=0)
    assert site.call("order", (), {}, fence=6) == (0, None)
    duplicated(site, HASHES[:5], fence=6, record=(6, 1, "batch"))
    number, record = site.call("order", (), {}, fence=7)
    assert (number, tuple(record)) == (6, (6, 1, "batch"))
    for _ in range(2):
        with pytest.raises(SupersededError, match="orderer 6 of site was replaced by 7"):
            duplicated(site, HASHES[5:9], fence=6)
        assert site.call("query", (HASHES[:9],), {}).tolist() == [True] * 5 + [False] * 4
        site.close(save=False)
        site = Site(bloom(), name="site", store=kept, interval=0)
    number, record = site.call("order", (), {}, fence=1)
    assert (number, tuple(record)) == (7, (6, 1, "batch"))


def test_many_threads_lose_nothing():
    kept = Slow()
    site = Site(bloom(), name="site", store=kept, interval=0)
    new = []

    def produce(name):
        for number, part in enumerate(np.split(HASHES, 20)):
            new.append(~duplicated(site, part, request=RequestId(name, number, np.arange(50))))

    threads = [threading.Thread(target=produce, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert np.sum(new) == len(HASHES)
    assert Site(bloom(), name="site", store=kept).call("query", (HASHES,), {}).all()


def test_local_sites_answer_fail_and_come_back():
    kept = Slow()
    sites = LocalSites([partial(lambda i: Site(bloom(), name=str(i), store=kept, interval=0), i) for i in range(3)])
    messages = [Message(i, "duplicated", (HASHES[i::3],), {"refresh": True}) for i in range(3)]
    traffic = Traffic(0, 0, 0, 0, np.zeros(3, dtype=int))
    answers = sites.call(messages)
    traffic.count(messages, answers)
    assert not np.concatenate(answers).any()
    sites.kill(1)
    answers = sites.call(messages)
    traffic.count(messages, answers)
    assert [isinstance(answer, Failed) for answer in answers] == [False, True, False]
    assert answers[1] == Failed(1, "killed")
    assert time.time() - 60 < answers[1].since == sites.status()[1].since
    assert (traffic.messages, traffic.failures, traffic.sent) == (6, 1, 2 * HASHES.nbytes)
    assert traffic.received == len(HASHES) + len(HASHES[::3]) + len(HASHES[2::3])
    assert traffic.keys.tolist() == [2 * len(HASHES[i::3]) for i in range(3)]
    sites.restart(1)
    assert sites.status()[1]["restored"]
    assert np.concatenate(sites.call(messages)).all()
    sites.close()


def test_an_error_is_raised_once_all_sites_have_answered():
    sites = LocalSites([partial(Site, bloom(), name=str(i)) for i in range(2)])
    bad = Message(0, "duplicated", (HASHES, np.arange(3)), {"refresh": True})
    with pytest.raises(ValueError, match="3 times for 1000 keys"):
        sites.call([bad, Message(1, "insert", (HASHES,))])
    assert sites.call([Message(1, "query", (HASHES,))])[0].all()
