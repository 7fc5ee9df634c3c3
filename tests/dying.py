"""Work on batches that dies by ``kill -9`` at a given step; run by ``test_polls_batches_killed``.

``python tests/dying.py DATA URL`` reads JSON lines {"do": "submit" or "follow", "api", "now",
"key", "die": step or 0} and answers each with a line: the names of its steps, or "died".
Each order is carried out by a child of its own, as a process that was just started.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batch_desk import Desk

from store.history import History
from store.last_good import LastGood
from store.polls.batches import files
from store.polls.due import Rounds
from store.polls.sending import Sender
from store.polls.spending import DailyAccount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CAP = 0.3
"""US dollars a day: two batches of three questions, asked twice each."""


class Address:
    """A provider by its address alone."""

    def __init__(self, url: str) -> None:
        self.url = url


@contextmanager
def steps(die: int) -> Iterator[list[str]]:
    """Count what is done before and after every step that leaves a trace; die at one of them."""
    seen: list[str] = []

    def step(name: str) -> None:
        seen.append(name)
        if len(seen) == die:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(where: Any, name: str) -> None:
        real: Callable[..., Any] = getattr(where, name)

        def call(*arguments: Any, **options: Any) -> Any:
            step(f"before {name}")
            result = real(*arguments, **options)
            step(f"after {name}")
            return result

        setattr(where, name, call)

    around(files, "atomic_write")
    around(LastGood, "place")
    around(Sender, "call")
    around(History, "append")
    around(DailyAccount, "reserve")
    around(DailyAccount, "settle_batch")
    yield seen


def carry_out(order: dict[str, Any], data: Path, url: str) -> list[str]:
    """One order; the steps it took."""
    desk = Desk(data, Address(url))
    desk.now = datetime.fromisoformat(order["now"])
    desk.cap = CAP
    desk.keys = (key for key in [order["key"]])
    with steps(order["die"]) as seen:
        if order["do"] == "submit":
            calls = desk.due(desk.calls(3, order["api"]), times=2)
            if calls:
                desk.submit(calls, rounds=Rounds(7, 2))
        else:
            desk.follow(order["api"])
    return seen


def main() -> None:
    """Carry out orders until there are none."""
    data, url = Path(sys.argv[1]), sys.argv[2]
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, json.dumps(carry_out(json.loads(line), data, url)).encode())
            os._exit(0)
        os.close(writing)
        _, status = os.waitpid(child, 0)
        said = os.read(reading, 1 << 16).decode()
        os.close(reading)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        print("died" if killed else said or "fault", flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
