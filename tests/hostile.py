"""Requests that nobody should send, as raw bytes: odd methods, paths, headers and bodies."""

import json
from random import Random

METHODS = (
    *["GET"] * 12,
    "HEAD",
    "HEAD",
    "OPTIONS",
    "POST",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "TRACE",
    "CONNECT",
    "FOO",
    "get",
    "GET" * 40,
    "G\x00T",
    "",
)
PLACES = (
    "/",
    "/healthz",
    "/mcp",
    "/docs",
    "/changes",
    "/robots.txt",
    "/sitemap.xml",
    "/static/",
    "/best/{}",
    "/product/{}",
    "/product/{}/polls",
    "/labs/{}",
    "/feeds/best/{}.atom",
    "/static/{}",
    "/api/v1/best/{}.json",
    "/api/v1/product/{}.json",
    "/api/v1/history",
    "/api/v1/search",
    "/api/v1/categories.json",
    "/api/v1/openapi.json",
    "/api/v1/{}",
    "/{}",
    "//{}",
    "/api//v1/{}",
)
PIECES = (
    "..", "../..", "../../site", "../../etc/passwd", "..\\site", "..\\..\\boot.ini", "....//site",
    ".", "~root", "/etc/passwd", "C:\\x", "\x00", "\r\nX-Bad: 1", "\n", " ", "%", "%00", "%zz",
    "%2e%2e%2f", "%2e%2e%2f%2e%2e", "..%2f..%2fetc%2fpasswd", "%252e", "%ff%fe", "%C0%AF", "%u2215",
    "%0d%0aSet-Cookie:%20a=b", "?", "#", "{slug}", "<x>", "<script>alert(1)</script>",
    "'\"><svg/onload=alert(1)>", "'", '"', "$(id)", "`id`", "|id", ";id", "{{7*7}}", "${7*7}",
    "${jndi:ldap://x}", "%s%n", "\u00e9", "\u0130", "\u0663\u0665", "\uff53", "\u202e", "\u202ecrm",
    "\U0001f600", "\xff", "a" * 101, "a" * 3500, "a/" * 200, "con", "nul", "-", "--", "--help",
    "+", "*", "[", "null", "0", "1e9", ".json", "crm software", "crm+software", "crm%00software",
    "crm;x=1", "crm?x", "crm#x", "http://evil.example/",
)  # fmt: skip
"""What names nothing, wherever it stands in a path."""
WORDS = (*["crm-software", "help-desk"] * 4, "nope", "CRM-Software", "crm-software.json", *PIECES)
VERSIONS = (*["HTTP/1.1"] * 15, "HTTP/1.0", "HTTP/9", "")
ODD_LIMITS = (
    "", " ", "0", "-1", "501", "5000", "00", "05", "0x10", "1e2", "1.0", "1,0", "1_0", " 5", "5 ",
    "+5", "-0", "\u0663", "\uff15", "\u00b2", "five", "null", "true", "NaN", "inf", "[1]", "5;",
    "5\n", "\t5", "1" * 400, "5\x00",
)  # fmt: skip
"""What is no number from 1 to 500, however much it may look like one."""
NUMBERS = ("1", "100", "500", "5%00", *ODD_LIMITS)
OTHER_HOSTS = (
    "", " ", "evil.example", "evil.example:80", "rankings.example.evil.example",
    "evilrankings.example", "rankings.example..", ".rankings.example", "rankings..example",
    "localhost.evil.example", "user@localhost", "localhost@evil.example", "evil.example@127.0.0.1",
    "localhost/x", "localhost?x", "localhost#x", "localhost:port", "127.0.0.1:x",
    "localhost:80:80", "localhost:123456", "localhost, evil.example", "::1", "[::1", "::1]",
    "[::1]x", "[localhost]", "[::1].",
    "[fe80::1%25eth0]", "127.1", "0x7f000001", "2130706433", "127.0.0.1.evil.example",
    "999.0.0.1", "*", "a..b", "..", "%2e", "local host", "l\u043ecalhost", "http://localhost", "-",
    "x" * 300, "localhost\\@evil.example", "\u00ff",
)  # fmt: skip
"""What is neither a host of ours nor an IP address."""
HOSTS = (
    *["127.0.0.1"] * 180, "localhost:80", "rankings.example", "rankings.example.", "[::1]",
    "127.0.0.1:99999", "\xe9.example", *OTHER_HOSTS,
)  # fmt: skip
HEADERS = (
    "If-None-Match: *",
    'If-None-Match: W/"x"',
    'If-None-Match: "',
    "If-None-Match: " + 'W/"a",' * 900,
    "If-Modified-Since: yesterday",
    "If-Modified-Since: Sat, 99 Foo 99999 99:99:99 GMT",
    "If-Modified-Since: Mon, 01 Jan 0001 00:00:00 GMT",
    "If-Modified-Since: Fri, 31 Dec 9999 23:59:59 +9999",
    "If-Modified-Since: Mon, 02 Nov 99999999999999999999 06:00:00 GMT",
    "If-Modified-Since: Mon, 02 Nov 2026 99999999999999999999:00:00 GMT",
    "If-Modified-Since: Mon, 02 Nov 2026 06:00:00 +99999999999999999999",
    "If-Modified-Since: Mon, 01 Jan 0001 00:00:00 +2359",
    "If-Unmodified-Since: Mon, 02 Nov 99999999999999999999 06:00:00 GMT",
    "If-Range: Mon, 02 Nov 99999999999999999999 06:00:00 GMT",
    "Date: Mon, 02 Nov 99999999999999999999 06:00:00 GMT",
    "If-Match: *",
    "Accept-Encoding: gzip",
    "Accept-Encoding: gzip;q=0",
    "Accept-Encoding: gzip;q=NaN",
    "Accept-Encoding: ;;;,,=",
    "Accept-Encoding: *;q=1e999",
    "Accept: " + "a/b," * 1000,
    "Accept: text/html;q=\xff",
    "Accept: text/html",
    "Accept: text/html;q=1e999",
    'Accept: a/b;c="',
    "Accept: ;;;,,=/",
    "Accept-Charset: \x80",
    "Accept-Language: \xff\xfe",
    "Range: bytes=0-1,2-3",
    "Range: bytes=-",
    "Range: bytes=" + "9" * 5000 + "-",
    "Range: \xb2=\xb2-\xb3",
    "Origin: https://evil.example",
    "Origin: null",
    "Origin: \xff[",
    "Access-Control-Request-Method: DELETE",
    "Access-Control-Request-Headers: " + "x," * 2000,
    "X-Forwarded-Host: evil.example",
    "X-Forwarded-Proto: gopher",
    "X-Original-URL: /admin",
    "Forwarded: host=evil.example",
    "Cookie: " + "a=b; " * 1000,
    'Cookie: a="\\777\xff',
    "Expect: 100-continue",
    "Expect: 200-fast",
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13",
    "Upgrade: h2c",
    "Content-Length: -1",
    "Content-Length: 5, 6",
    "Content-Length: 99999999999",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: \x0bchunked",
    "Content-Encoding: gzip",
    "Content-Type: application/json",
    "Content-Type: text/plain; charset=utf-99",
    "Content-Type: \xff",
    "Content-Type: application/json; charset*=x'y'%ff; a*0=\"",
    "Content-Type: multipart/form-data; boundary=",
    "X: " + "y" * 9000,
    " folded: yes",
    "NoColon",
    ": empty",
    "X\x00Y: z",
    "Authorization: Basic !!!",
    "MCP-Protocol-Version: 1999-01-01",
    "Mcp-Session-Id: ../../x",
    "Mcp-Name: =?base64?////?=",
    "Mcp-Method: \xff",
    "Host: second.example",
)
BODIES = (
    b"",
    b"{}",
    b"[]",
    b"null",
    b"NaN",
    b'"',
    b"[" * 100_000,
    b'{"a":' * 5_000,
    b"\xff\xfe{}",
    b"{" + b" " * 70_000,
    b'{"jsonrpc":"2.0","id":1,"method":"initialize"}',
    b'{"jsonrpc":"2.0","id":1e999,"method":"tools/list"}',
    (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
        b'"params":{"name":"search_best","arguments":{"q":null}}}'
    ),
    b'{"jsonrpc":"2.0","id":{},"method":[]}',
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    b'{"a":"\\ud800"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_poll_history",'
    b'"arguments":{"slug":"../..","limit":' + b"9" * 5000 + b"}}}",
    json.dumps({"jsonrpc": "2.0", "id": "x" * 9000, "method": "ping"}).encode(),
)
CHUNK_SIZES = (
    *["{:x}"] * 20,
    "ZZ",
    "-{:x}",
    "+{:x}",
    "0x{:x}",
    " {:x}",
    "{:x} ",
    "",
    "f" * 20,
    "1" * 9000,
    "{:x};a",
    "{:x} ; a = b",
    '{:x};a="\\"',
    "{:x};;;=",
    "{:x};a\r=b",
    "{:x};" + "a" * 9000,
    "\xb2",
)
"""What stands before a chunk; its length is filled in."""
CHUNK_ENDS = (*["\r\n"] * 20, "\n", "XX", "")
TRAILERS = (
    *["\r\n"] * 6,
    "",
    "\r",
    "X: y\r\n\r\n",
    "Content-Length: 5\r\n\r\n",
    "Host: evil.example\r\n\r\n",
    "no colon\r\n\r\n",
    "X\0: y\r\n\r\n",
    ": y\r\n\r\n",
    " folded\r\n\r\n",
    "X: y\n\r\n\r\n",
    "X: \xff\r\n\r\n",
    "".join(f"X{i}: y\r\n" for i in range(300)) + "\r\n",
    "X: " + "y" * 300_000 + "\r\n\r\n",
)


def request(chance: Random) -> bytes:
    """One hostile request; the same ``chance`` makes the same bytes."""
    method, version = chance.choice(METHODS), chance.choice(VERSIONS)
    place = "/mcp" if method == "POST" and chance.random() < 0.7 else chance.choice(PLACES)
    path = place.replace("{}", chance.choice(WORDS))
    if chance.random() < 0.6:
        path += "?" + "&".join(_pair(chance) for _ in range(chance.randint(1, 3)))
    lines = [f"{method} {path} {version}"]
    if chance.random() < 0.95:
        lines.append(f"Host: {chance.choice(HOSTS)}")
    lines += chance.sample(HEADERS, chance.choice([0, 0, 1, 1, 2, 4]))
    body = chance.choice(BODIES) if method == "POST" or chance.random() < 0.05 else b""
    if method == "POST" and chance.random() < 0.8:
        lines.append("Content-Type: application/json")
    if method == "POST" and chance.random() < 0.4:
        lines.append("Transfer-Encoding: chunked")
        body = _chunked(body, chance)
    elif body and chance.random() < 0.9:
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join([*lines, "Connection: close", "", ""])
    return _damaged(head.encode("utf-8", "surrogateescape"), chance) + body


def _chunked(body: bytes, chance: Random) -> bytes:
    """A body in up to three chunks, seldom quite as HTTP has them."""
    size = max(1, len(body) // chance.randint(1, 3))
    sent = b""
    for start in range(0, len(body), size):
        piece = body[start : start + size]
        before = chance.choice(CHUNK_SIZES).format(len(piece)) + chance.choice(CHUNK_ENDS)
        sent += before.encode("latin-1") + piece + chance.choice(CHUNK_ENDS).encode()
    return sent + b"0\r\n" + chance.choice(TRAILERS).encode("latin-1")


def _pair(chance: Random) -> str:
    name = chance.choice(["q", "slug", "model", "limit", "v", "", "x" * 500, "limit[]"])
    values = NUMBERS if name.startswith("limit") else WORDS
    return f"{name}={chance.choice([*values, chance.choice(WORDS) * 3])}"


def _damaged(head: bytes, chance: Random) -> bytes:
    """Now and then a request that is no HTTP at all."""
    if chance.random() < 0.04:
        at = chance.randrange(len(head))
        return head[:at] + chance.randbytes(3) + head[at + 3 :]
    if chance.random() < 0.02:
        return head.replace(b"\r\n", b"\n")
    return head
