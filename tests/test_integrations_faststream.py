"""Each handler of FastStream, unmodified, deals with a key once: in memory, by FastStream's own test broker."""

import asyncio

import pytest
from faststream import AckPolicy
from faststream.exceptions import AckMessage
from faststream.kafka import KafkaBroker, KafkaRouter, TestKafkaBroker
from faststream.kafka.message import KafkaAckableMessage

import lately
from lately.integrations.faststream import DropDelivered


def by_id(message):
    return message.headers["id"]


def once(**options) -> DropDelivered:
    return DropDelivered(lately.Filter("1d", 1e-9, capacity=10_000), key=by_id, **options)


def run(broker, *sent, together=False) -> list:
    """Send messages, each an id, or an id and a topic; give what became of each: its error, or None."""

    async def main():
        async with TestKafkaBroker(broker):
            pairs = [pair if isinstance(pair, tuple) else (pair, "orders") for pair in sent]
            sending = [broker.publish(f"order {id}", topic, headers={"id": id}) for id, topic in pairs]
            if together:
                return await asyncio.gather(*sending, return_exceptions=True)
            return [(await asyncio.gather(one, return_exceptions=True))[0] for one in sending]

    errors = asyncio.run(main())
    return [error if isinstance(error, BaseException) else None for error in errors]


@pytest.mark.parametrize("policy", [AckPolicy.ACK_FIRST, AckPolicy.ACK, AckPolicy.NACK_ON_ERROR, AckPolicy.MANUAL])
def test_a_message_that_is_sent_again_is_dropped(policy, monkeypatch):
    """A repeat is acknowledged, and publishes nothing; other keys go through."""
    acknowledged = []

    async def ack(message):
        acknowledged.append(message.headers["id"])

    monkeypatch.setattr(KafkaAckableMessage, "ack", ack)
    router = KafkaRouter(middlewares=[once()])
    broker = KafkaBroker()
    shipped, notified = [], []

    @router.subscriber("orders", ack_policy=policy, group_id="shop")
    @router.publisher("shipped")
    async def ship(order: str) -> str:
        shipped.append(order)
        return "shipped " + order

    @broker.subscriber("shipped")
    async def notify(order: str):
        notified.append(order)

    broker.include_router(router)
    # FastStream shows its own signal where no middleware of its own acknowledges.
    assert {type(error) for error in run(broker, "1", "2", "1", "1", "3", "2")} <= {type(None), AckMessage}
    assert shipped == ["order 1", "order 2", "order 3"]
    assert notified == ["shipped " + order for order in shipped]
    if policy is AckPolicy.MANUAL:
        assert acknowledged == ["1", "1", "2"]


def shop(middleware, fails=()):
    """A broker with one handler, which fails at these orders the first time."""
    broker = KafkaBroker(middlewares=[middleware])
    shipped, failing = [], set(fails)

    @broker.subscriber("orders", ack_policy=AckPolicy.NACK_ON_ERROR, group_id="shop")
    async def ship(order: str):
        await asyncio.sleep(0)
        if order in failing:
            failing.remove(order)
            raise ConnectionError("no stock")
        shipped.append(order)

    return broker, shipped


def test_a_message_whose_handler_failed_is_delivered_again():
    """The message is dealt with then, and dropped after that."""
    broker, shipped = shop(once(), fails=["order 1"])
    errors = run(broker, "1", "1", "1", "2")
    assert [type(error) for error in errors] == [ConnectionError, type(None), type(None), type(None)]
    assert shipped == ["order 1", "order 2"]


@pytest.mark.parametrize("fails", [[], ["order 1"]])
def test_twice_at_a_time(fails):
    """Of ten under way one is dealt with; if it fails, another is."""
    broker, shipped = shop(once(), fails)
    errors = run(broker, *["1"] * 10, together=True)
    assert shipped == ["order 1"]
    assert [type(error) for error in errors if error] == [ConnectionError] * len(fails)


def test_each_handler_gets_each_key():
    """An id goes from topic to topic, and two groups read one topic."""
    broker = KafkaBroker(middlewares=[once()])
    seen = []

    @broker.subscriber("orders", group_id="a", title="ship")
    async def ship(order: str):
        seen.append("ship")

    @broker.subscriber("orders", group_id="b", title="count")
    async def count(order: str):
        seen.append("count")

    @broker.subscriber("shipped")
    async def notify(order: str):
        seen.append("notify")

    run(broker, "1", ("1", "shipped"), "1", ("1", "shipped"))
    assert sorted(seen) == ["count", "notify", "ship"]


def test_two_handlers_of_one_name_are_rejected():
    """Two would take each other's messages for their own."""
    broker = KafkaBroker(middlewares=[once()])

    @broker.subscriber("orders", group_id="a", title="ship")
    async def ship(order: str):
        pass

    @broker.subscriber("orders", group_id="b", title="ship")
    async def count(order: str):
        pass

    errors = [error for error in run(broker, "1") if isinstance(error, ValueError)]
    assert any("handlers must have different names" in str(error) for error in errors)


def test_a_restarted_program_goes_on_with_the_saved_filter(tmp_path):
    """The program knows what it has dealt with, also when it was killed: nothing is left to be done at its end."""
    for expected in (["order 1", "order 2"], []):
        broker, shipped = shop(once(path=tmp_path / "seen.lately"))
        run(broker, "1", "2", "2")
        assert shipped == expected
    with pytest.raises(ValueError, match="has other settings: its window"):
        DropDelivered(lately.Filter("2d", 1e-9, capacity=10_000), key=by_id, path=tmp_path / "seen.lately")


@pytest.mark.parametrize(
    ("saved", "planned", "name"),
    [
        (lately.ExactFilter("1d"), lately.ExactFilter("1d", missing="distinct"), "missing"),
        (lately.Filter("1d", 1e-9), lately.Filter("1d", 1e-9, lateness="1h"), "lateness"),
        (lately.Filter("1d", 1e-9), lately.Filter("1d", 1e-9, seed="random"), "seed"),
    ],
)
def test_a_saved_filter_with_another_setting_is_rejected(saved, planned, name, tmp_path):
    saved.save(tmp_path / "seen.lately")
    with pytest.raises(ValueError, match=f"has other settings: its {name} is"):
        DropDelivered(planned, key=by_id, path=tmp_path / "seen.lately")


def test_saved_before_it_is_acknowledged(tmp_path, monkeypatch):
    """A message whose key could not be saved is not acknowledged."""
    broker, _ = shop(once(path=tmp_path / "not a folder" / "seen.lately"))
    acknowledged = []

    async def ack(message):
        acknowledged.append(message.headers["id"])

    monkeypatch.setattr(KafkaAckableMessage, "ack", ack)
    assert isinstance(run(broker, "1")[0], OSError)
    assert not acknowledged
    kept, _ = shop(once(path=tmp_path / "seen.lately"))
    run(kept, "1")


def test_a_save_that_failed_is_made_up_for_before_the_message_is_acknowledged(tmp_path, monkeypatch):
    """The work is done, so the message is dropped when it comes again; but a crash must not forget its key."""
    path = tmp_path / "later" / "seen.lately"
    broker, shipped = shop(once(path=path))
    acknowledged = []

    async def ack(message):
        acknowledged.append(path.exists() and lately.open(path).inserted)

    monkeypatch.setattr(KafkaAckableMessage, "ack", ack)
    assert [type(error) for error in run(broker, "1", "1")] == [FileNotFoundError, FileNotFoundError]
    assert not acknowledged
    path.parent.mkdir()
    run(broker, "1")
    assert shipped == ["order 1"]
    assert set(acknowledged) == {1}, "the file had the key by then"


def test_a_longer_interval_saves_less_often(tmp_path):
    """Every third message; `save` does the rest."""
    path = tmp_path / "seen.lately"
    dropping = once(path=path, every=3)
    broker, _ = shop(dropping)
    run(broker, "1", "2")
    assert not path.exists()
    run(broker, "3", "4")
    assert lately.open(path).inserted == 3
    dropping.save()
    assert lately.open(path).inserted == 4


def test_a_handler_whose_messages_cannot_be_dropped_is_an_error():
    """A batch, and a message without a key: neither is dropped in silence."""
    broker = KafkaBroker(middlewares=[once()])

    @broker.subscriber("orders", batch=True)
    async def ship(orders: list[str]):
        pass

    assert isinstance(run(broker, "1")[0], TypeError)
    broker, shipped = shop(DropDelivered(lately.Filter(100, 1e-9), key=lambda message: message.headers["event"]))
    assert isinstance(run(broker, "1")[0], KeyError)
    assert shipped == []


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"filter": "1d", "key": by_id}, TypeError, "filter of lately"),
        ({"filter": lately.Filter(5, 0.1), "key": "id"}, TypeError, "key must be callable"),
        ({"filter": lately.Filter(5, 0.1), "key": by_id, "every": 0}, ValueError, "every"),
        ({"filter": lately.Filter(5, 0.1), "key": by_id, "every": 1.5}, TypeError, "float"),
        ({"filter": lately.Filter(5, 0.1), "key": by_id, "lease": "soon"}, ValueError, "lease"),
    ],
)
def test_bad_parameters(given, error, words):
    with pytest.raises(error, match=words):
        DropDelivered(**given)


def test_a_shared_filter_takes_no_path(tmp_path):
    """The next start would open a private copy there, and the processes would share nothing."""
    path = tmp_path / "shared.lately"
    lately.Filter("1d", 1e-9, capacity=100, prefer="speed").save(path)
    with pytest.raises(ValueError, match=r"in its own file, .*shared\.lately: leave out path"):
        DropDelivered(lately.open(path, shared=True), key=by_id, path=tmp_path / "seen.lately")
