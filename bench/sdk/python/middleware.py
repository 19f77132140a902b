"""What middleware adds to a request of FastAPI: CPU time of this process, the application called without sockets.

slowapi counts in this process; Tollgate does so while no server is there, and else asks one over loopback.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from statistics import median
from typing import Any, Dict, List

from fastapi import FastAPI, Request
from slowapi import Limiter
from slowapi.middleware import SlowAPIASGIMiddleware
from slowapi.util import get_remote_address

from tollgate.asgi import RateLimitMiddleware

ROUNDS = 9
NOWHERE = "http://127.0.0.1:1"
logging.disable(logging.WARNING)


def application(**options: Any) -> FastAPI:
    app = FastAPI()

    @app.get("/api/orders/{order}")
    async def order(order: str, request: Request) -> Dict[str, str]:  # noqa: ARG001 - as routes of slowapi
        return {"order": order}

    if options:
        app.add_middleware(RateLimitMiddleware, timeout=10, **options)
    return app


def with_slowapi() -> FastAPI:
    app = application()
    limits = ["1000000000/minute"]
    app.state.limiter = Limiter(key_func=get_remote_address, default_limits=limits, headers_enabled=True)
    app.add_middleware(SlowAPIASGIMiddleware)
    return app


async def ask(app: FastAPI, number: int) -> None:
    host = f"10.0.{number // 250 % 40}.{number % 250}"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/api/orders/7",
        "raw_path": b"/api/orders/7",
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"app")],
        "client": (host, 4711),
        "server": ("app", 80),
    }
    statuses: List[int] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    await app(scope, receive, send)
    assert statuses == [200], statuses


async def main(url: str, requests: int) -> None:
    candidates = {
        "fastapi": application(),
        "fastapi tollgate, in process": application(url=NOWHERE, fallback="1000000000/1m"),
        "fastapi slowapi": with_slowapi(),
        "fastapi tollgate, asks a server": application(url=url),
    }
    times: Dict[str, List[float]] = {name: [] for name in candidates}
    for round_number in range(ROUNDS + 1):
        for name, app in candidates.items():
            start = time.process_time_ns()
            for number in range(requests):
                await ask(app, number)
            if round_number > 0:  # the first one opens connections and the circuit
                times[name].append((time.process_time_ns() - start) / requests)
    for name, rounds in times.items():
        print(f"{name}\t{median(rounds):.0f}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
