"""The MCP server at ``POST /mcp``: five tools over what the JSON API serves.

``protocol`` knows JSON-RPC and the two eras of MCP, ``tools`` answers, ``endpoint`` joins them to
Flask.
"""
