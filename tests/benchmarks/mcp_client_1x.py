"""The 1.x client of the official SDK against a running server: a longer check, run by hand.

The two lines of the SDK cannot be installed side by side, so this has an environment of its own:

    python -m venv /tmp/mcp1 && /tmp/mcp1/bin/pip install 'mcp<2'
    /tmp/mcp1/bin/python tests/benchmarks/mcp_client_1x.py http://127.0.0.1:8000/mcp
"""
# It is written against an SDK that is not installed beside the tests:
# mypy: ignore-errors

import sys

import anyio
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


def say(line: str) -> None:
    """One line of the report."""
    sys.stdout.write(f"{line}\n")


async def check(url: str) -> None:
    """Shake hands, list the tools and call each once; the client validates what it gets."""
    async with (
        streamable_http_client(url) as (reading, writing, session_id),
        ClientSession(reading, writing) as session,
    ):
        opened = await session.initialize()
        assert session_id() is None
        say(f"{opened.serverInfo.title}: {opened.protocolVersion}")
        await session.send_ping()
        tools = (await session.list_tools()).tools
        listed = await session.call_tool("list_categories", {"limit": 1})
        slug = listed.structuredContent["categories"][0]["slug"]
        best = await session.call_tool("get_best_in_category", {"slug": slug})
        product = best.structuredContent["combined"][0]["slug"]
        calls = {
            "search_best": {"q": best.structuredContent["title"]},
            "get_best_in_category": {"slug": slug, "detail": "full"},
            "get_product": {"slug": product},
            "get_poll_history": {"slug": slug, "limit": 2},
            "list_categories": {"q": "best"},
        }
        assert [tool.name for tool in tools] == list(calls)
        for name, arguments in calls.items():
            result = await session.call_tool(name, arguments)
            assert not result.isError, result
            assert result.structuredContent["notice"] in result.content[0].text
            say(f"{name}: {len(result.content[0].text)} characters")
        wrong = await session.call_tool("get_product", {"slug": "x" * 99})
        assert wrong.isError
        say(wrong.content[0].text)


if __name__ == "__main__":
    anyio.run(check, sys.argv[1])
