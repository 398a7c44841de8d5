"""Messages that together ask one thing."""

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
        """Do something more with the answers, once they are combined."""
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
