"""The page's recipe for Kafka loses no key where offsets have gaps, on a stand-in for the client."""

import json
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import lately
from lately.distributed import SlicedFilter

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "kafka.md"
COLUMNS = ("a", "al", "c", "gr", "cy", "u")


class Message:
    """A click at an offset of a partition."""

    def __init__(self, partition, offset, click):
        self.partition, self.offset, self.click = (lambda: partition), (lambda: offset), click

    def error(self):
        return None

    def value(self):
        return json.dumps(self.click)


class Topic:
    """Partitions of messages, and what the group has committed of them."""

    def __init__(self, partitions):
        self.partitions, self.committed = partitions, dict.fromkeys(range(len(partitions)), 0)

    def module(self):
        topic = self

        class Consumer:
            def __init__(self, options):
                self.left = iter(())

            def subscribe(self, topics, on_revoke):
                self.left = iter(
                    [m for i, each in enumerate(topic.partitions) for m in each if m.offset() >= topic.committed[i]]
                )

            def poll(self, timeout):
                return next(self.left, None)

            def commit(self, message=None, offsets=(), asynchronous=True):
                for number, offset in [(message.partition(), message.offset() + 1)] if message else offsets:
                    topic.committed[number] = offset

            def close(self):
                pass

        made = types.ModuleType("confluent_kafka")
        made.Consumer, made.KafkaException, made.Producer = Consumer, RuntimeError, None
        made.TopicPartition = lambda name, partition, offset: (partition, offset)
        return made


def recipe(monkeypatch, topic):
    (code,) = [
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "Consumer(" in block
    ]
    monkeypatch.setitem(sys.modules, "confluent_kafka", topic.module())
    names = {"__name__": "recipe"}
    exec(compile(code, PAGE.name, "exec"), names)
    return names["consume"]


def clicks(offsets, partition):
    return [Message(partition, int(o), dict.fromkeys(COLUMNS, f"{partition} {o}")) for o in offsets]


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("gaps", ["none", "transactions", "ends"])
def test_no_click_is_lost_where_offsets_have_gaps(monkeypatch, gaps, compacted):
    """A consumer dies between the filter's answer and the delivery; the next one reads what is not committed."""
    offsets = np.arange(3500)
    kept = {"none": offsets, "transactions": offsets[offsets % 7 != 6], "ends": offsets[offsets % 1000 < 990]}[gaps]
    topic = Topic([clicks(kept, partition) for partition in range(2)])
    consume, delivered = recipe(monkeypatch, topic), []
    with SlicedFilter("horizontal", 2, lately.BloomFilter(20_000, 1e-9)) as seen:
        consume("servers", seen, delivered.extend, crashes=True)
        if compacted:
            # Meanwhile every third message has gone from what is not committed.
            topic.partitions = [
                [m for m in each if m.offset() < topic.committed[i] or m.offset() % 3]
                for i, each in enumerate(topic.partitions)
            ]
        consume("servers", seen, delivered.extend)
    there = {m.click["u"] for each in topic.partitions for m in each}
    assert there <= {click["u"] for click in delivered}
    # All but the last batch of each partition are done with.
    assert [topic.committed[i] >= 3000 for i in range(2)] == [True, True]
