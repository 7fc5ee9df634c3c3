"""What strangers type is kept within the budget of the one cache, and nowhere else."""

import gc
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

from builders import app_over
from cachetools import Cache
from flask import Flask
from flask.testing import FlaskClient
from processes import ROOT
from small_world import write_small_world

from store.web.mcp.tools import TOOLS
from store.web.openapi import ENDPOINTS

ROUNDS = 20
"""Pace of requests after the first; whatever remembers their texts grows by one in each."""

PARAMETERS = {name for each in ENDPOINTS for name in each.query.__struct_encode_fields__} | {
    "a", "b", "since", "from", "to", "strict", "v",
}  # fmt: skip
"""Every parameter that a route of the API or a page reads."""

HEADERS = (
    "Accept", "Accept-Encoding", "Accept-Language", "Access-Control-Request-Headers", "Host",
    "If-Modified-Since", "If-None-Match", "Mcp-Session-Id", "Origin", "Range", "User-Agent",
)  # fmt: skip

MCP = {"Accept": "application/json, text/event-stream"}


def word(number: int) -> str:
    """A word of letters alone that no other number has."""
    digits = f"{number:05}{number * 7919 % 100_000:05}"
    return "z" + digits.translate(str.maketrans("0123456789", "abcdefghij"))


def texts(number: int) -> tuple[str, ...]:
    """Texts that no other number has: a word, a name, a question, signs from all over Unicode."""
    own = word(number)
    return (
        own,
        f"{own.title()} {number}.5™",
        f"is {own} better than {own[::-1]}ing?",
        f"crm softwar {own} vs {own}s",
        "".join(chr(0x4E00 + 40 * number + i) for i in range(40)),
    )


def ask_everything(app: Flask, number: int) -> None:
    """Put texts that were never sent before wherever a request can carry one."""
    client = app.test_client()
    own = word(number)
    for rule in {rule.rule for rule in app.url_map.iter_rules()}:
        path = re.sub("<[^>]*>", own, rule)
        client.get(path, query_string={own: own, **dict.fromkeys(PARAMETERS, own)})
    for path in ("/search", "/search/suggest", "/api/v1/search", "/compare"):
        for text in texts(number):
            client.get(path, query_string={"q": text, "a": text, "b": own})
    known = {"slug": "crm-software"}
    for name in ("model", "before", "format", "limit"):
        client.get("/api/v1/history", query_string={**known, name: own})
    client.get("/api/v1/history", query_string={**known, "limit": number + 1})
    for name in HEADERS:
        client.get("/api/v1/best/crm-software.json", headers={name: own})
        client.options("/mcp", headers={"Origin": f"https://{own}.example", name: own})
    client.get("/", headers={"Host": f"10.0.0.{number}"})
    client.get("/", headers={"Accept-Encoding": f"gzip;q=0.{number:03}"})
    ask_tools(client, texts(number)[2], own)


def ask_tools(client: FlaskClient, text: str, own: str) -> None:
    """Call every tool with a text, and methods and tools that are not there."""
    for name, tool in TOOLS.items():
        for argument in tool.query.__struct_encode_fields__:
            call(client, "tools/call", {"name": name, "arguments": {argument: text}})
    call(client, "tools/call", {"name": own, "arguments": {own: text}})
    call(client, own, {own: text})
    call(client, "initialize", {"protocolVersion": own, "clientInfo": {"name": text}})


def call(client: FlaskClient, method: str, params: dict[str, Any]) -> None:
    """Post a message to ``/mcp``."""
    message = {"jsonrpc": "2.0", "id": str(params), "method": method, "params": params}
    client.post("/mcp", json=message, headers=MCP)


def sizes() -> dict[int, tuple[object, int]]:
    """By identity every collection and memo of the process, and how many entries it has.

    What is within the budget is left out.
    """
    gc.collect()
    tracked = gc.get_objects()
    # A dict of texts and numbers alone is not tracked; what holds it is.
    plain = [each for each in gc.get_referents(*tracked) if type(each) is dict]
    everything = tracked + [each for each in plain if not gc.is_tracked(each)]
    budgeted = {
        id(part)
        for cache in everything
        if isinstance(cache, Cache)
        for part in gc.get_referents(vars(cache))
    }
    return {id(each): (each, size) for each, size in _sized(everything) if id(each) not in budgeted}


def _sized(objects: list[Any]) -> Iterator[tuple[object, int]]:
    for each in objects:
        if isinstance(each, _lru_cache_wrapper):
            yield each, each.cache_info().currsize
        elif isinstance(each, dict | set | list | deque):
            yield each, len(each)


def grown(directory: Path) -> list[str]:
    """What ever new texts in every place of a request have made larger."""
    app = app_over(write_small_world(directory))
    quote_plus(bytes(range(256)))  # urllib remembers how each byte is quoted
    for number in range(2):
        ask_everything(app, number)
    before = sizes()
    for number in range(2, 2 + ROUNDS):
        ask_everything(app, number)
    after = sizes()
    return [
        f"{type(each).__name__} {getattr(each, '__qualname__', '')}: {size} to {after[key][1]}"
        for key, (each, size) in before.items()
        if key in after and after[key][1] >= size + ROUNDS
    ]


def test_texts_of_strangers_are_kept_in_the_budget_alone(tmp_path: Path) -> None:
    """No memo and no collection grows with them."""
    # A process of its own: to look through all that the suite has in memory takes ten seconds.
    script = [sys.executable, __file__, str(tmp_path / "data")]
    done = subprocess.run(
        script, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout.decode()) == (0, "grown: []\n")


if __name__ == "__main__":
    print("grown:", grown(Path(sys.argv[1])))  # noqa: T201 - for the test
