"""What a check costs a Python program, beside the call that people write by hand: CPU time of this process per call.

One connection, one call at a time, the same request. Candidates take turns; each line is a row: name, median.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import sys
import time
from statistics import median
from typing import Awaitable, Callable, Dict, List
from urllib.parse import urlsplit

from tollgate import AsyncClient, Client

FIELDS = {"api_key": "abc", "endpoint": "GET /api/orders/7"}
ROUNDS = 9


def main() -> None:
    url, calls = sys.argv[1], int(sys.argv[2])
    plain = Plain(url)
    client = Client(url, timeout=10)
    report(rounds({"python http.client": plain.check, "python client": lambda: client.check(**FIELDS)}, calls))
    report(asyncio.run(asynchronous(url, calls)))


class Plain:
    """A call over http.client, as it is written by hand."""

    def __init__(self, url: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)

    def check(self) -> bool:
        body = json.dumps(FIELDS)
        self.connection.request("POST", "/v1/check", body, {"Content-Type": "application/json"})
        return bool(json.loads(self.connection.getresponse().read())["allowed"])


class Streams:
    """A call over asyncio's streams, as it is written by hand: without a deadline, trusting the server."""

    async def open(self, url: str) -> None:
        self.authority = urlsplit(url).netloc
        host, port = self.authority.split(":")
        self.reader, self.writer = await asyncio.open_connection(host, int(port))

    async def check(self) -> bool:
        body = json.dumps(FIELDS).encode()
        head = f"POST /v1/check HTTP/1.1\r\nHost: {self.authority}\r\nContent-Type: application/json\r\n"
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        start = answer.index(b"content-length:") + 15
        length = int(answer[start : answer.index(b"\r", start)])
        return bool(json.loads(await self.reader.readexactly(length))["allowed"])


async def asynchronous(url: str, calls: int) -> Dict[str, float]:
    streams, client = Streams(), AsyncClient(url, timeout=10)
    await streams.open(url)
    candidates: Dict[str, Callable[[], Awaitable[object]]] = {
        "python asyncio streams": streams.check,
        "python asyncio client": lambda: client.check(**FIELDS),
    }
    times: Dict[str, List[float]] = {name: [] for name in candidates}
    for _ in range(ROUNDS):
        for name, call in candidates.items():
            start = time.process_time_ns()
            for _ in range(calls):
                await call()
            times[name].append((time.process_time_ns() - start) / calls)
    await client.close()
    return {name: median(rounds) for name, rounds in times.items()}


def rounds(candidates: Dict[str, Callable[[], object]], calls: int) -> Dict[str, float]:
    times: Dict[str, List[float]] = {name: [] for name in candidates}
    for _ in range(ROUNDS):
        for name, call in candidates.items():
            start = time.process_time_ns()
            for _ in range(calls):
                call()
            times[name].append((time.process_time_ns() - start) / calls)
    return {name: median(rounds) for name, rounds in times.items()}


def report(rows: Dict[str, float]) -> None:
    for name, nanoseconds in rows.items():
        print(f"{name}\t{nanoseconds:.0f}")


if __name__ == "__main__":
    main()
