"""How fast objects are uploaded, beside boto3's plain loop, to a sink that only answers.

    python tests/upload_speed.py [--objects 3000] [--size 6000]

Needs pip install '.[operations]'.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from store.copies.places import Item, place


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take every request of a connection, and say that all is well."""
    while head := await _head(reader):
        if b"expect: 100-continue" in head:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length or 0))
        writer.write(b'HTTP/1.1 200 OK\r\nETag: "x"\r\nContent-Length: 0\r\n\r\n')
    writer.close()


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return (await reader.readuntil(b"\r\n\r\n")).lower()
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


async def sink() -> None:
    """Print the port, and answer for ever."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201
    await server.serve_forever()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--objects", type=int, default=3000)
    parser.add_argument("--size", type=int, default=6000)
    parser.add_argument("--sink", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.sink:
        asyncio.run(sink())
    command = [sys.executable, __file__, "--sink"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = f"http://127.0.0.1:{process.stdout.readline().strip()}"
        os.environ.update(
            AWS_ENDPOINT_URL=url, AWS_ALLOW_HTTP="true", AWS_REGION="us-east-1",
            AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x",  # noqa: S106
        )  # fmt: skip
        compare(url, asked.objects, os.urandom(asked.size))
        process.kill()


def compare(url: str, count: int, body: bytes) -> None:
    """Upload with both, in turn, three times; print the best of each."""
    import boto3  # noqa: PLC0415 - optional

    amazon = boto3.client("s3", endpoint_url=url)
    headers = {"Content-Type": "text/html", "Content-Encoding": "gzip"}
    ours, theirs = [], []
    for _ in range(3):
        begun = time.perf_counter()
        place("s3://bucket/x").write(Item(f"o/{n}", body, headers) for n in range(count))
        ours.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        for n in range(count):
            amazon.put_object(
                Bucket="bucket", Key=f"x/o/{n}", Body=body,
                ContentType="text/html", ContentEncoding="gzip",
            )  # fmt: skip
        theirs.append(time.perf_counter() - begun)
    fast, slow = min(ours), min(theirs)
    print(f"{count} objects: {fast:.2f} s, boto3 {slow:.2f} s: {slow / fast:.1f} x")  # noqa: T201


if __name__ == "__main__":
    main()
