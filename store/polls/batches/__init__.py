"""Asking in batches: what is on its way outlives every process, and is paid for once."""
