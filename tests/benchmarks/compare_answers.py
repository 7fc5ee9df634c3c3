"""Ask two checkouts for every address and say where their answers differ.

    python tests/benchmarks/compare_answers.py OLD NEW            the shipped data, one in ten
    python tests/benchmarks/compare_answers.py OLD NEW --every 1  all of it
    python tests/benchmarks/compare_answers.py OLD NEW --show 5   the first differences in full

Asked are the JSON API, pages, feeds, pictures, tables, odd requests and MCP, of the shipped data
and of small worlds with hostile texts, deleted, broken and lost files. Addresses are those that the old
checkout publishes, old slugs among them; status, headers and body are compared.
"""

# ruff: noqa: E501 - addresses are long

import argparse
import difflib
import gzip
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from flask import Flask

ODD = (
    "/api/v1/search", "/api/v1/search?q=", "/api/v1/search?q=%20", "/api/v1/search?q=crm",
    "/api/v1/search?q=crm&limit=3&kind=brands", "/api/v1/search?q=crm&limit=0",
    "/api/v1/search?q=crm&q=vpn", "/api/v1/search?q=" + "a" * 201, "/api/v1/search?q=%C3%A9",
    "/api/v1/search?q=\u00e9", "/api/v1/search?q=best+password+manager", "/search?q=crm+or+vpn",
    "/search?q=", "/search?q=%EF%BB%BF", "/search/suggest?q=cr", "/search/suggest", "/compare",
    "/compare?a=alpha&b=beta", "/compare?a=x",
    "/api/v1/history", "/api/v1/history?slug=nope", "/api/v1/history?slug=NOPE%20",
    "/api/v1/changes.json?limit=5", "/api/v1/changes.json?limit=5&format=csv",
    "/api/v1/changes.json?before=0123456789abcdef", "/api/v1/changes.json?before=x&limit=y",
    "/api/v1/changes.json?format=jsonl", "/api/v1/mentions.json?format=csv",
    "/api/v1/mentions.json?format=xml", "/api/v1/categories.json?format=csv",
    "/api/v1/categories.json?topic=nope", "/api/v1/categories.json?topic=drinks",
    "/api/v1/categories.json?topic=kitchen&format=jsonl", "/api/v1/best/nope.json",
    "/api/v1/best/No%20pe.json", "/api/v1/best/crm-software.json?asOf=2026-11-01",
    "/api/v1/best/crm-software.json?asOf=2026-13-01", "/api/v1/best/crm-software.json?asOf=2020-01-01",
    "/api/v1/best/crm.json", "/api/v1/best/crm.json?asOf=2026-11-01", "/api/v1/product/nope.json",
    "/api/v1/product/alfa.json", "/api/v1/nope", "/api/v1/", "/nope", "/best/nope", "/best/NOPE/",
    "/best/crm-software?asOf=2026-11-01", "/best/crm-software?asOf=x", "/best/crm-software?asOf=2020-01-01",
    "/product/nope", "/topics/nope",
    "/models/nope", "/labs/nope", "/changes?since=2026-11-01", "/changes?since=x", "/static/site.css",
    "/static/nope", "/data/nope", "//best/crm-software", "/Best/CRM-software", "/API/V1/Labs.json",
    "/badge/crm-software/nope.svg", "/badge/nope/alpha.json", "/livez", "/readyz",
)  # fmt: skip
HEADERS: tuple[dict[str, str], ...] = (
    {}, {"Accept-Encoding": "gzip"}, {"Host": "evil.example"}, {"Origin": "https://a.example"},
    {"Accept": "text/html"}, {"Accept-Encoding": "gzip;q=0"}, {"If-None-Match": "*"},
)  # fmt: skip
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("search_best", {"q": "crm"}), ("search_best", {}), ("search_best", {"q": "x", "limit": 99}),
    ("search_best", {"q": "password manager", "limit": 2}), ("search_best", {"nope": 1, "q": "x"}),
    ("get_best_in_category", {"slug": "crm-software"}), ("get_best_in_category", {"slug": "crm"}),
    ("get_best_in_category", {"slug": "nope"}),
    ("get_best_in_category", {"slug": "crm-software", "detail": "full"}),
    ("get_product", {"slug": "alpha"}), ("get_product", {"slug": "nope"}),
    ("get_poll_history", {"slug": "crm-software", "limit": 2}), ("list_categories", {}),
    ("list_categories", {"q": "crm", "topic": "software"}), ("list_categories", {"topic": "nope"}),
    ("no_such_tool", {}),
)  # fmt: skip
UNCOMPARED = ("Date", "Content-Length")


def write_worlds(home: Path) -> dict[str, Path]:
    """Write the small worlds: everything of note once, hostile texts, and files that went wrong."""
    from hostile_texts import HOSTILE  # noqa: PLC0415 - of the tests' own folder
    from small_world import write_small_world  # noqa: PLC0415
    from test_web_pages_hostile import client_over  # noqa: PLC0415

    small = write_small_world(home / "small")
    client_over(home / "hostile", HOSTILE)
    wrong = write_small_world(home / "wrong")
    (wrong / "categories" / "tea-kettle.json").unlink()
    (wrong / "categories" / "green-tea.json").write_text("{")
    (wrong / "products" / "alpha.json").write_text('{"name": 1}')
    lost = write_small_world(home / "lost")
    for file in (lost / "history").glob("*.jsonl"):
        file.unlink()
        file.mkdir()
    return {"small": small, "hostile": home / "hostile", "wrong": wrong, "lost": lost}


def addresses(app: Flask, every: int) -> Iterator[str]:
    """Yield every address worth asking, one in ``every`` of those that are alike."""
    from store.publishing.trees import moved_paths, paths_to_export  # noqa: PLC0415

    snapshot, seen = app.extensions["store"].snapshot, Counter[str]()
    for path in (*paths_to_export(app, snapshot), *moved_paths(app, snapshot)):
        kind = path.split("/")[1] + path.rpartition("/")[2].rpartition(".")[2][:4]
        seen[kind] += 1
        if path != "/healthz" and (seen[kind] % every == 0 or seen[kind] < 20):
            yield path
    yield from ODD
    for slug in islice(snapshot.poll_indexes, 0, None, every):
        history = f"/api/v1/history?slug={slug}"
        yield from (history, f"{history}&limit=2", f"{history}&format=csv&limit=3")
        yield from (f"{history}&format=jsonl", f"{history}&model=A", f"{history}&limit=x&model=?")
        for day in ("2026-10-26", "2026-11-02", "2026-11-09", "2026-09-15", "2099-01-01"):
            yield from (f"/api/v1/best/{slug}.json?asOf={day}", f"/best/{slug}?asOf={day}")
        yield from (f"/api/v1/best/{slug.upper()}.json", f"/best/{slug}/", f"/BEST/{slug}")


def ask(data: Path, every: int, out: Path, given: Path | None) -> None:
    """Ask the checkout on the path for everything; write what it says, by address."""
    from builders import app_over  # noqa: PLC0415

    app = app_over(data, hosts=())
    client = app.test_client()
    paths = json.loads(given.read_text()) if given else list(dict.fromkeys(addresses(app, every)))
    answers: dict[str, tuple[int, list[tuple[str, str]], bytes]] = {}
    for number, path in enumerate(paths):
        for headers in HEADERS if path in ODD else (HEADERS[number % 2],):
            response = client.get(path, headers=headers)
            body = response.get_data()
            if response.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            kept = sorted(pair for pair in response.headers if pair[0] not in UNCOMPARED)
            answers[f"{path} {json.dumps(headers) if headers else ''}".strip()] = (
                response.status_code, kept, body,
            )  # fmt: skip
    for method in ("POST", "OPTIONS", "HEAD", "PUT"):
        for path in ("/api/v1/labs.json", "/", "/nope", "/mcp", "/healthz"):
            response = client.open(path, method=method)
            answers[f"{method} {path}"] = (response.status_code, sorted(response.headers), b"")
    answers |= {f"MCP {json.dumps(call)}": (200, [], call_tool(client, call)) for call in CALLS}
    out.write_bytes(pickle.dumps((paths, answers)))


def call_tool(client: Any, call: tuple[str, dict[str, Any]]) -> bytes:
    """Return what a tool answers."""
    params = {"name": call[0], "arguments": call[1]}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return bytes(client.post("/mcp", json=message).get_data())


def asked(checkout: Path, data: Path, every: int, out: Path, given: Path | None) -> dict[str, Any]:
    """Let a process of a checkout ask; return addresses and answers."""
    folders = [checkout, checkout / "tests"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, __file__, "--ask", str(data), "--out", str(out)]
    command += ["--every", str(every), *(["--given", str(given)] if given else [])]
    subprocess.run(command, env=env, cwd=checkout, check=True)
    paths, answers = pickle.loads(out.read_bytes())  # noqa: S301 - written a moment ago
    return {"paths": paths, "answers": answers}


def compare(name: str, old: dict[str, Any], new: dict[str, Any], show: int) -> int:
    """Print how many answers differ, by kind and by what differs; return the number."""
    differing: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for path, was in old.items():
        before, after = was, new[path]
        if path.startswith(("POST", "PUT")):
            before, after = (without_length(answer) for answer in (before, after))
        if before == after:
            continue
        headers = {pair[0] for pair in set(before[1]) ^ set(after[1])}
        what = [*(["status"] if before[0] != after[0] else []), *sorted(headers)]
        what += ["body"] if before[2] != after[2] else []
        differing[("/".join(path.split("?")[0].split("/")[:4])[:30], *what)].append(path)
    print(f"{name}: {len(old):,} asked, {sum(map(len, differing.values())):,} differ")  # noqa: T201
    by_what: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for kind, paths in differing.items():
        by_what[kind[1:]] += paths
    for changed, paths in sorted(by_what.items(), key=lambda pair: -len(pair[1])):
        print(f"  {len(paths):6,} {', '.join(changed)}: {'  '.join(paths[:3])[:230]}")  # noqa: T201
        for path in paths[:show]:
            print_difference(path, old[path], new[path])
    return sum(map(len, differing.values()))


def without_length(answer: Any) -> Any:
    """Return an answer without the length of a body that was not kept."""
    return (answer[0], [pair for pair in answer[1] if pair[0] not in UNCOMPARED], answer[2])


def print_difference(path: str, before: Any, after: Any) -> None:
    """Print two answers as a difference of lines."""

    def lines(answer: Any) -> list[str]:
        text = answer[2].decode(errors="replace").replace(',"', ',\n"').replace("\\n", "\n")
        return [str(answer[0]), *map(str, answer[1]), *text.splitlines()]

    print(f"--- {path}")  # noqa: T201
    for line in islice(difflib.unified_diff(lines(before), lines(after), n=0, lineterm=""), 2, 40):
        print(line[:300])  # noqa: T201


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("old", type=Path, nargs="?")
    parser.add_argument("new", type=Path, nargs="?")
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--worlds", default="small,hostile,wrong,lost,shipped")
    parser.add_argument("--keep", type=Path, help="where answers of OLD stay for the next run")
    for option in ("--ask", "--out", "--given"):
        parser.add_argument(option, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        return ask(options.ask, options.every, options.out, options.given)
    root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(root), str(root / "tests")]
    with tempfile.TemporaryDirectory() as made:
        home = options.keep or Path(made)
        home.mkdir(exist_ok=True)
        worlds = {name: home / name for name in ("small", "hostile", "wrong", "lost")}
        if not (home / "small").exists():
            worlds = write_worlds(home)
        worlds["shipped"] = home / "shipped"
        if not worlds["shipped"].exists():
            shutil.copytree(options.old / "data", worlds["shipped"])
        for name in options.worlds.split(","):
            out, given = home / f"{name}.old", home / f"{name}.json"
            if out.exists():
                paths, answers = pickle.loads(out.read_bytes())  # noqa: S301 - our own
                before = {"paths": paths, "answers": answers}
            else:
                before = asked(options.old, worlds[name], options.every, out, None)
            given.write_text(json.dumps(before["paths"]))
            after = asked(options.new, worlds[name], options.every, home / "new", given)
            compare(name, before["answers"], after["answers"], options.show)
    return None


if __name__ == "__main__":
    main()
