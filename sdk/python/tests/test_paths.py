"""What is asked about is what the router reads: mounted applications, prefixes, rewritten and odd paths."""

from __future__ import annotations

import unittest
from typing import Any, Dict, List, Optional, Tuple

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from tollgate import AsyncClient, Client, Incoming, InvalidPath
from tollgate.address import TrustedProxies
from tollgate.asgi import RateLimitMiddleware as AsgiMiddleware
from tollgate.incoming import path_of, refuse_dot_segments
from tollgate.wsgi import RateLimitMiddleware as WsgiMiddleware

from .fake_server import FakeServer, answering, response


class RawPathTest(unittest.TestCase):
    def test_the_raw_path_counts_where_the_router_reads_it(self) -> None:
        for raw, decoded, expected in [
            (b"/a%2Fb", b"/a/b", "/a%2Fb"),
            (b"/%61pi", b"/api", "/%61pi"),
            (b"/a?b=c", b"/a", "/a"),
            (b"http://app/a", b"http://app/a", "/a"),
            (b"http://app", b"http://app", "/"),
            (b"/caf%C3%A9", "/café".encode(), "/caf%C3%A9"),
            (b"/%ff", b"/\xff", "/%ff"),
            (b"/%ff", "/\ufffd".encode(), "/%ff"),
            (b"/a#b", b"/a#b", "/a%23b"),
            (b"/a b\r\n", b"/a b\r\n", "/a%20b%0D%0A"),
        ]:
            with self.subTest(raw):
                self.assertEqual(path_of(raw, decoded), expected)

    def test_what_the_router_reads_counts_where_it_differs(self) -> None:
        for raw, decoded, expected in [
            (None, b"/a b%", "/a%20b%25"),
            (b"/api/orders#x", b"/api/orders", "/api/orders"),
            (b"//api/orders", b"/api/orders", "/api/orders"),
            (b"/public", b"/private", "/private"),
            (b"/orders", b"/shop/orders", "/shop/orders"),
        ]:
            with self.subTest(raw):
                self.assertEqual(path_of(raw, decoded), expected)

    def test_folding_makes_escaped_letters_lower_case_too(self) -> None:
        def folded(path: str) -> str:
            return Incoming("HEAD", path, None, [], None).endpoint(fold_case=True)

        self.assertEqual(folded("/%41PI/Orders/%2f%5A"), "GET /api/orders/%2fz")

    def test_dot_segments_that_the_router_keeps_are_refused(self) -> None:
        for path in ("/files/../x", "/files/%2e%2E/x", "/./x", "/x/.", "/x/.%2e"):
            with self.subTest(path), self.assertRaises(InvalidPath):
                refuse_dot_segments(f"GET {path}")
        for path in ("/files/...", "/.well-known/x", "/a..b", "/x.", "/"):
            refuse_dot_segments(f"GET {path}")

    def test_a_header_that_is_there_twice_is_none(self) -> None:
        def key(*values: str) -> Optional[str]:
            return Incoming("GET", "/", None, [("x-api-key", value) for value in values], None).header("X-API-Key")

        self.assertEqual([key("a"), key("a", "b"), key("a,b"), key()], ["a", None, None, None])


class AddressTest(unittest.TestCase):
    def test_the_first_untrusted_entry_from_the_right_is_the_client(self) -> None:
        proxies = TrustedProxies(["127.0.0.1", "10.0.0.0/8", "2001:db8::/32"])
        for peer, fields, expected in [
            ("203.0.113.9", ["1.2.3.4"], "203.0.113.9"),
            ("127.0.0.1", [], "127.0.0.1"),
            ("127.0.0.1", ["6.6.6.6, 9.9.9.9", "10.0.0.7"], "9.9.9.9"),
            ("2001:db8::7", ["9.9.9.9"], "9.9.9.9"),
            ("::ffff:127.0.0.1", ["::ffff:9.9.9.9"], "9.9.9.9"),
            ("127.0.0.1", ["9.9.9.9, unknown"], "127.0.0.1"),
            ("127.0.0.1", ["9.9.9.9, 010.0.0.1"], "127.0.0.1"),
            ("127.0.0.1", ["9.9.9.9:80"], "127.0.0.1"),
            ("127.0.0.1", ["[2001:db9::1]"], "127.0.0.1"),
            ("127.0.0.1", ["fe80::1%eth0"], "fe80::1"),
            ("127.0.0.1", [""], "127.0.0.1"),
            ("not an address", ["9.9.9.9"], None),
            (None, ["9.9.9.9"], "9.9.9.9"),
            (None, [], None),
        ]:
            with self.subTest(f"{peer} {fields}"):
                self.assertEqual(proxies.client(peer, fields), expected)
        self.assertIsNone(TrustedProxies().client(None, ["9.9.9.9"]))


async def _pass(scope: Any, receive: Any, send: Any) -> None:
    del receive
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})
    else:
        await send({"type": "websocket.accept"})


async def call(app: Any, path: str, **scope: Any) -> List[Dict[str, Any]]:
    sent: List[Dict[str, Any]] = []

    async def receive() -> Dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Dict[str, Any]) -> None:
        sent.append(message)

    raw = path.encode().partition(b"?")[0]
    whole = {"type": "http", "method": "GET", "path": path, "raw_path": raw, "headers": [], "query_string": b""}
    await app({**whole, "client": ("192.0.2.1", 1), **scope}, receive, send)
    return sent


class AsgiTest(unittest.IsolatedAsyncioTestCase):
    async def asked(self, build: Any, path: str, **scope: Any) -> Tuple[List[str], List[Dict[str, Any]]]:
        with FakeServer(answering(response())) as server:
            client = AsyncClient(server.url, timeout=30)
            sent = await call(build(client), path, **scope)
            await client.close()
        return server.endpoints(), sent

    async def test_a_mounted_application_is_asked_about_by_the_whole_path(self) -> None:
        def build(client: AsyncClient) -> Any:
            async def order(_request: Any) -> PlainTextResponse:
                return PlainTextResponse("order")

            inner = Starlette(routes=[Route("/orders/{order}", order)])
            inner.add_middleware(AsgiMiddleware, client=client)
            return Starlette(routes=[Mount("/shop", inner)])

        endpoints, sent = await self.asked(build, "/shop/orders/1")
        self.assertEqual((endpoints, sent[0]["status"]), (["GET /shop/orders/1"], 200))

    async def test_a_root_path_is_part_of_the_path(self) -> None:
        endpoints, _ = await self.asked(
            lambda client: AsgiMiddleware(_pass, client=client), "/api/orders", root_path="/api", raw_path=b"/orders"
        )
        self.assertEqual(endpoints, ["GET /api/orders"])

    async def test_a_websocket_is_asked_about_before_its_handshake(self) -> None:
        endpoints, sent = await self.asked(
            lambda client: AsgiMiddleware(_pass, client=client), "/feed", type="websocket", method="GET"
        )
        self.assertEqual((endpoints, sent[0]["type"]), (["GET /feed"], "websocket.accept"))

    async def test_a_websocket_that_is_refused_never_reaches_the_application(self) -> None:
        refused = response(b'{"allowed":false,"error_code":"rate_limited"}', "429 Too Many Requests")
        with FakeServer(answering(refused)) as server:
            client = AsyncClient(server.url, timeout=30)
            sent = await call(AsgiMiddleware(_pass, client=client), "/feed", type="websocket")
            self.assertEqual([message["type"] for message in sent], ["websocket.close"])
            extensions: Dict[str, Any] = {"websocket.http.response": {}}
            app = AsgiMiddleware(_pass, client=client)
            sent = await call(app, "/feed", type="websocket", extensions=extensions)
            self.assertEqual((sent[0]["type"], sent[0]["status"]), ("websocket.http.response.start", 429))
            await client.close()

    async def test_the_lifespan_is_not_asked_about(self) -> None:
        async def app(_scope: Any, _receive: Any, _send: Any) -> None:
            return None

        endpoints, _ = await self.asked(lambda client: AsgiMiddleware(app, client=client), "", type="lifespan")
        self.assertEqual(endpoints, [])


class WsgiTest(unittest.TestCase):
    def asked(self, **environ: str) -> List[str]:
        def app(_environ: Any, start_response: Any) -> List[bytes]:
            start_response("200 OK", [])
            return [b""]

        with FakeServer(answering(response())) as server, Client(server.url, timeout=30) as client:
            whole = {"REQUEST_METHOD": "GET", "SCRIPT_NAME": "", "PATH_INFO": "/", **environ}
            list(WsgiMiddleware(app, client)(whole, lambda *_: lambda _body: None))
        return server.endpoints()

    def test_the_script_name_is_part_of_the_path(self) -> None:
        self.assertEqual(self.asked(SCRIPT_NAME="/shop", PATH_INFO="/orders"), ["GET /shop/orders"])
        raw = self.asked(SCRIPT_NAME="/shop", PATH_INFO="/a b", REQUEST_URI="/shop/a%20b?c")
        self.assertEqual(raw, ["GET /shop/a%20b"])

    def test_without_a_raw_path_the_decoded_one_is_escaped(self) -> None:
        self.assertEqual(self.asked(PATH_INFO="/caf\xc3\xa9/a b"), ["GET /caf%C3%A9/a%20b"])

    def test_a_path_with_dot_segments_is_answered_400_and_not_asked_about(self) -> None:
        self.assertEqual(self.asked(PATH_INFO="/files/../x"), [])

    def test_an_empty_path_is_the_root(self) -> None:
        self.assertEqual(self.asked(PATH_INFO=""), ["GET /"])
