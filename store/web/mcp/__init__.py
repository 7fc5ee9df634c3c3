"""The MCP server: five tools over what the JSON API serves, at ``POST /mcp``.

``jsonrpc`` reads and writes JSON-RPC, ``protocol`` knows the two eras of MCP, ``arguments`` checks
what a tool is given, ``tools`` answers, and ``endpoint`` joins them to Flask.
"""
