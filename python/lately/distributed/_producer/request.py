"""Messages whose answers belong together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lately.distributed._producer.exchange import Exchange
from lately.distributed._sites.interface import Message


@dataclass(frozen=True)
class Request:
    """Messages, and how to combine their answers."""

    messages: Sequence[Message]
    combine: Callable[[list[Any]], Any]

    def then(self, act: Callable[[Any], Any]) -> "Request":
        """Apply a function to the combined answers."""
        return Request(self.messages, lambda answers: act(self.combine(answers)))


def send(exchange: Exchange, requests: Sequence[Request]) -> list[Any]:
    """Send all at once, and wait for the answer to each."""
    answers = exchange.call([message for request in requests for message in request.messages])
    combined, start = [], 0
    for request in requests:
        end = start + len(request.messages)
        combined.append(request.combine(answers[start:end]))
        start = end
    return combined
