"""What is reserved is settled: after the response, when the handler fails, when its task is cancelled."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import unittest
from typing import Any, Callable, Dict, List

from tollgate import AsyncClient, Client, Incoming
from tollgate.asgi import RateLimitMiddleware as AsgiMiddleware
from tollgate.guard import Result
from tollgate.wsgi import RateLimitMiddleware as WsgiMiddleware

from .fake_server import FakeServer, response

PATIENT = 30.0
OPTIONS: Dict[str, Any] = {
    "costs": lambda _request: {"tokens": 100},
    "settle": lambda _request, result: {"tokens": result.status},
}

logging.getLogger("tollgate").setLevel(logging.CRITICAL)


def reserving(server: FakeServer, connection: socket.socket, _number: int) -> None:
    """Answers reservations and settlements."""
    while True:
        head = server.read(connection)
        if not head:
            return
        if b"/v1/reserve" in head:
            connection.sendall(response(b'{"allowed":true,"reservation":"tgr_1","ttl_ms":30000}'))
        else:
            connection.sendall(response(b'{"settled":true,"refunded":1,"extended":0}'))


def settled(server: FakeServer) -> List[int]:
    """The amounts that were settled."""
    calls = [request.partition(b"\r\n\r\n") for request in server.requests]
    return [json.loads(body)["costs"]["tokens"] for head, _, body in calls if b"/v1/settle" in head]


class AsgiTest(unittest.IsolatedAsyncioTestCase):
    async def run_app(self, app: Any, server: FakeServer, **options: Any) -> asyncio.Task[None]:
        client = AsyncClient(server.url, timeout=PATIENT)
        self.addAsyncCleanup(client.close)

        async def nothing(*_: Any) -> Any:
            return {"type": "http.disconnect"}

        scope = {"type": "http", "method": "POST", "path": "/x", "headers": [], "client": ("192.0.2.1", 1)}
        middleware = AsgiMiddleware(app, client=client, **{**OPTIONS, **options})
        return asyncio.ensure_future(middleware(scope, nothing, nothing))

    async def test_after_the_response(self) -> None:
        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 201, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        with FakeServer(reserving) as server:
            await (await self.run_app(app, server))
        self.assertEqual(settled(server), [201])

    async def test_when_the_handler_fails(self) -> None:
        async def app(*_: Any) -> None:
            raise RuntimeError("it fails")

        with FakeServer(reserving) as server:
            with self.assertRaisesRegex(RuntimeError, "it fails"):
                await (await self.run_app(app, server))
            self.assertEqual(settled(server), [500])

    async def test_when_the_task_is_cancelled_again_and_again(self) -> None:
        begun = asyncio.Event()

        async def app(*_: Any) -> None:
            begun.set()
            await asyncio.Event().wait()

        with FakeServer(reserving) as server:
            task = await self.run_app(app, server)
            await begun.wait()
            while not task.done():
                task.cancel()
                await asyncio.sleep(0)
            while not settled(server):
                await asyncio.sleep(0)
        self.assertEqual((settled(server), task.cancelled()), ([500], True))

    async def test_a_settle_that_fails_breaks_no_response(self) -> None:
        def broken(_request: Incoming, _result: Result) -> Dict[str, int]:
            raise KeyError("tokens")

        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})

        with FakeServer(reserving) as server:
            await (await self.run_app(app, server, settle=broken))
        self.assertEqual(settled(server), [])


class WsgiTest(unittest.TestCase):
    def call(self, app: Callable[..., Any], server: FakeServer) -> Any:
        client = Client(server.url, timeout=PATIENT)
        self.addCleanup(client.close)
        environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/x", "REMOTE_ADDR": "192.0.2.1"}
        return WsgiMiddleware(app, client, **OPTIONS)(environ, lambda *_: lambda _body: None)

    def test_when_the_server_has_sent_the_body(self) -> None:
        closed = []

        class Body(List[bytes]):
            def close(self) -> None:
                closed.append(True)

        def app(_environ: Any, start_response: Any) -> Body:
            start_response("201 Created", [])
            return Body([b"a", b"b"])

        with FakeServer(reserving) as server:
            body = self.call(app, server)
            self.assertEqual((list(body), settled(server)), ([b"a", b"b"], []))
            body.close()
            body.close()
        self.assertEqual((settled(server), closed), ([201], [True, True]))

    def test_when_the_application_fails(self) -> None:
        def app(_environ: Any, _start_response: Any) -> List[bytes]:
            raise RuntimeError("it fails")

        with FakeServer(reserving) as server:
            with self.assertRaisesRegex(RuntimeError, "it fails"):
                self.call(app, server)
            self.assertEqual(settled(server), [500])
