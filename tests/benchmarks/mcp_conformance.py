"""The official conformance suite against this server: a longer check, run by hand.

It needs ``npx``, which fetches the suite and a Node new enough for it:

    PYTHONPATH=.:tests python tests/benchmarks/mcp_conformance.py

Every scenario that a revision requires is run. Those that ask for what this server does not have
are named in ``EXCLUDED`` and ``UNTESTABLE`` with the reason; any other failure ends it with 1.
Scenarios about kinds of content are run against the same dispatcher with the suite's own tools.
"""

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import servers
from flask import Flask, Response, request
from mcp_rankings import write_rankings
from werkzeug.serving import make_server

from store.web.mcp.protocol import Server, dispatch

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
REVISIONS = ("2026-07-28", "2025-11-25")

EXCLUDED = {
    "prompts-": "no prompts",
    "resources-": "no resources",
    "sep-2164-": "no resources",
    "completion-": "no completion",
    "logging-": "no logging: requests end in milliseconds",
    "tools-call-with-logging": "no logging",
    "tools-call-with-progress": "no progress: requests end in milliseconds",
    "tools-call-sampling": "asks nothing of the client",
    "tools-call-elicitation": "asks nothing of the client",
    "elicitation-": "asks nothing of the client",
    "input-required-": "asks nothing of the client",
    "tasks-": "extension; no tasks",
    "json-schema-2020-12": "wants a diagnostic tool whose schema uses every keyword",
    "http-custom-header-": "no x-mcp-header: no argument is repeated in a header",
    "tools-call-": "calls the suite's own tools: run below, with them",
}
"""Scenarios by the beginning of their name."""

UNTESTABLE = {
    "sep-2549-prompts-list-caching-hints": "no prompts",
    "sep-2549-resources-list-caching-hints": "no resources",
    "sep-2549-resources-templates-list-caching-hints": "no resources",
    "sep-2575-server-rejects-undeclared-capability": "no tool needs a capability of the client",
    "sep-2575-missing-capability-http-400": "no tool needs a capability of the client",
    "sep-2575-http-server-no-independent-requests-on-stream": "no streams",
    "sep-2575-server-no-log-without-loglevel": "no logging",
    "server-sse-multiple-streams-session": "no sessions, no streams",
    "server-sse-polling-session": "no sessions, no streams",
}
"""Checks within scenarios that are run."""

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
TEXT = {"type": "text", "text": "This is a simple text response for testing."}
IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
EMBEDDED = {
    "type": "resource",
    "resource": {"uri": "test://embedded", "mimeType": "text/plain", "text": "embedded"},
}
DIAGNOSTIC: dict[str, dict[str, Any]] = {
    "test_simple_text": {"content": [TEXT]},
    "test_image_content": {"content": [IMAGE]},
    "test_audio_content": {
        "content": [{"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}]
    },
    "test_embedded_resource": {"content": [EMBEDDED]},
    "test_multiple_content_types": {"content": [TEXT, IMAGE, EMBEDDED]},
    "test_error_handling": {"content": [TEXT], "isError": True},
}
KINDS = (
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
)


def encoded_tools() -> msgspec.Raw:
    """The diagnostic tools, none of which takes an argument."""
    schema = {"type": "object", "additionalProperties": False}
    return msgspec.Raw(
        msgspec.json.encode([{"name": name, "inputSchema": schema} for name in DIAGNOSTIC])
    )


def diagnostic() -> Flask:
    """The dispatcher over the diagnostic tools."""
    app, info = Flask(__name__), {"name": "diagnostic", "version": "1"}
    server = Server(
        info, str, encoded_tools, lambda name, given: None if given else DIAGNOSTIC.get(name)
    )

    @app.post("/mcp")
    def messages() -> Response:
        status, headers, body = dispatch(server, request.get_data(), request.headers)
        return Response(body, status, headers)

    return app


def run(port: int, *options: str) -> Iterator[tuple[str, str, str]]:
    """Scenario, check and status of everything that these options select."""
    npx = ["npx", "--yes", "--package", "node@24", "--package", SUITE, "conformance", "server"]
    with tempfile.TemporaryDirectory() as written:
        url = f"http://127.0.0.1:{port}/mcp"
        command = [*npx, "--url", url, *options, "--output-dir", written]
        subprocess.run(command, check=False, capture_output=True)
        for checks in sorted(Path(written).rglob("checks.json")):
            scenario = checks.parent.name.removeprefix("server-").rsplit("-", 6)[0]
            for check in json.loads(checks.read_text()):
                yield scenario, check["id"], check["status"]


def judged(scenario: str, check: str, status: str) -> str:
    """A status, or why it does not count."""
    if status not in ("FAILURE", "WARNING"):
        return status
    reasons = [why for prefix, why in EXCLUDED.items() if scenario.startswith(prefix)]
    why = UNTESTABLE.get(check, reasons[0] if reasons else None)
    return f"excluded: {why}" if why else status


def report(title: str, verdicts: list[tuple[str, str]]) -> bool:
    """Print every check with its verdict; whether something passed and nothing failed."""
    failed = [name for name, verdict in verdicts if verdict in ("FAILURE", "WARNING")]
    passed = sum(verdict == "SUCCESS" for _, verdict in verdicts)
    for name, verdict in verdicts:
        sys.stdout.write(f"{verdict:60} {name}\n")
    sys.stdout.write(f"== {title}: {passed} passed, {len(failed)} failed\n\n")
    return passed > 0 and not failed


def whole(port: int, revision: str) -> bool:
    """What a revision requires, against the rankings."""
    found = run(port, "--requirements", revision)
    verdicts = [
        (f"{scenario} / {check}", judged(scenario, check, s)) for scenario, check, s in found
    ]
    return report(revision, verdicts)


def kinds(port: int, revision: str) -> bool:
    """The scenarios about kinds of content, against the diagnostic tools; nothing is excluded."""
    verdicts = [
        (f"{scenario} / {check}", status)
        for kind in KINDS
        for scenario, check, status in run(port, "--scenario", kind, "--spec-version", revision)
    ]
    return report(f"{revision}, kinds of content", verdicts)


def main() -> int:
    """Run it all."""
    with (
        tempfile.TemporaryDirectory() as home,
        servers.gunicorn(write_rankings(Path(home) / "data"), Path(home) / "log") as rankings,
    ):
        fine = [whole(rankings.port, revision) for revision in REVISIONS]
    server = make_server("127.0.0.1", 0, diagnostic(), threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    fine += [kinds(server.port, revision) for revision in REVISIONS]
    server.shutdown()
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
