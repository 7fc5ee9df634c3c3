"""Web pages, feeds and what crawlers read: rendered from a snapshot on first request, then kept."""
