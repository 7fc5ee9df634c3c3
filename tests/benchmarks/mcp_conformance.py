"""The official conformance suite against this server: a longer check, run by hand.

It needs ``npx``, which fetches the suite and a Node new enough for it:

    PYTHONPATH=.:tests python tests/benchmarks/mcp_conformance.py

Every scenario that a revision requires is run. Those that ask for what this server does not have
are named in ``EXCLUDED`` and ``UNTESTABLE`` with the reason; any other failure ends it with 1.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import servers
from mcp_rankings import write_rankings

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
    "tools-call-": "calls tools that only the suite's own server has",
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


def run(port: int, revision: str) -> Iterator[tuple[str, str, str]]:
    """Scenario, check and status of everything that a revision requires."""
    npx = ["npx", "--yes", "--package", "node@24", "--package", SUITE, "conformance", "server"]
    with tempfile.TemporaryDirectory() as written:
        url = f"http://127.0.0.1:{port}/mcp"
        command = [*npx, "--url", url, "--requirements", revision, "--output-dir", written]
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
    verdicts = [
        (f"{scenario} / {check}", judged(scenario, check, status))
        for scenario, check, status in run(port, revision)
    ]
    return report(revision, verdicts)


def main() -> int:
    """Run it all."""
    with (
        tempfile.TemporaryDirectory() as home,
        servers.gunicorn(write_rankings(Path(home) / "data"), Path(home) / "log") as rankings,
    ):
        fine = [whole(rankings.port, revision) for revision in REVISIONS]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
