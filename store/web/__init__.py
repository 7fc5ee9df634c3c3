"""Answering readers: JSON, MCP and pages, all from one snapshot."""
