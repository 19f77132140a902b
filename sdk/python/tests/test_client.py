"""The client against servers that behave in every way there is."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import unittest
from typing import Any, Callable, List, Tuple
from unittest import mock

from tollgate import Client, Decision, InvalidPath, Refused, Unavailable
from tollgate.request import RequestFields

from .fake_server import ALLOWED, FakeServer, answering, closing_after_one, cutting, halted, response

PATIENT = 30.0

logging.getLogger("tollgate").setLevel(logging.CRITICAL)


class ClientTest(unittest.TestCase):
    def check(self, server: FakeServer, **settings: Any) -> Decision:
        with Client(server.url, **{"timeout": PATIENT, **settings}) as client:
            return client.check(api_key="a", endpoint="GET /x")

    def client(self, server: FakeServer, **settings: Any) -> Client:
        client = Client(server.url, **{"timeout": PATIENT, **settings})
        self.addCleanup(client.close)
        return client

    def test_a_call_says_how_long_it_waits_and_who_asks(self) -> None:
        with FakeServer(answering(response())) as server:
            self.check(server, token="t" * 32)
        head = server.requests[0].decode()
        self.assertRegex(head, r"^POST /v1/check HTTP/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\n")
        self.assertRegex(head, r"\r\nRequest-Timeout: \d+ms\r\n")
        self.assertIn(f"\r\nAuthorization: Bearer {'t' * 32}\r\n", head)
        self.assertTrue(head.endswith('{"api_key":"a","endpoint":"GET /x"}'))

    def test_connections_are_kept(self) -> None:
        with FakeServer(answering(response())) as server, self.client(server) as client:
            for _ in range(20):
                self.assertEqual(client.check(api_key="a").mode, "store")
        self.assertEqual((server.connections, len(server.requests)), (1, 20))

    def test_a_connection_that_the_server_closed_between_calls_is_no_failure(self) -> None:
        causes: List[Exception] = []
        with FakeServer(closing_after_one) as server:
            client = self.client(server, on_unavailable=causes.append)
            for count in range(1, 9):
                self.assertEqual(client.check(api_key="a").mode, "store")
                self.assertEqual(len(server.requests), count)
                until(lambda: all(idle.is_stale() for idle in client._pool._idle))
        self.assertEqual((causes, server.connections), ([], 8))

    def test_what_may_have_arrived_is_never_sent_again(self) -> None:
        with FakeServer(cutting) as server:
            self.assertEqual(self.check(server, on_error="open").mode, "open")
        self.assertEqual(len(server.requests), 1)

    def test_what_could_not_connect_is_tried_twice(self) -> None:
        attempts: List[Tuple[str, int]] = []

        def refuse(address: Tuple[str, int], *_: Any, **__: Any) -> Any:
            attempts.append(address)
            raise OSError("refused")

        with mock.patch("socket.getaddrinfo", refuse):
            client = Client("http://127.0.0.1:1", timeout=PATIENT, on_error="closed")
            self.assertEqual(client.check(api_key="a").mode, "closed")
        self.assertEqual(len(attempts), 2)

    def test_no_answer_in_time_is_a_decision_in_time(self) -> None:
        with FakeServer(halted) as server:
            self.assertEqual(self.check(server, timeout=0.05, on_error="closed").mode, "closed")

    def test_a_server_that_drips_holds_no_caller(self) -> None:
        def drip(server: FakeServer, connection: socket.socket, _number: int) -> None:
            server.read(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while True:
                connection.sendall(b"X: 1\r\n")
                threading.Event().wait(0.01)

        with FakeServer(drip) as server:
            start = time.monotonic()
            self.assertEqual(self.check(server, timeout=0.2).mode, "open")
        self.assertLess(time.monotonic() - start, 20)

    def test_hostile_answers_are_no_decisions(self) -> None:
        hostile = {
            "a huge body": response(b" " * (1 << 20) + ALLOWED),
            "a length of terabytes": b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999\r\n\r\n",
            "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "two lengths": response(fields="Content-Length: 3\r\n"),
            "length and chunks": response(fields="Transfer-Encoding: chunked\r\n"),
            "a huge head": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
            "many fields": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 101 + b"\r\n",
            "a bare line feed": b"HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
            "a field for the user with a carriage return": response(fields="RateLimit: a\rSet-Cookie: b\r\n"),
            "another protocol": b"SSH-2.0-x\r\n\r\n",
            "an upgrade": b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
            "a chunk of terabytes": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
            "no object": response(b"[true]"),
            "deep JSON": response(b"[" * 100_000),
            "a long number": response(b'{"allowed":true,"limit":' + b"9" * 100_000 + b"}"),
            "allowed by an error": response(status="500 Internal Server Error"),
            "allowed by a redirect": response(status="307 Temporary Redirect", fields="Location: /\r\n"),
            "a text as allowed": response(b'{"allowed":"yes"}'),
        }
        for name, data in hostile.items():
            with self.subTest(name), FakeServer(answering(data)) as server:
                self.assertEqual(self.check(server, on_error="closed").mode, "closed")
                self.assertEqual(len(server.requests), 1)

    def test_chunks_and_interim_responses_are_read(self) -> None:
        pieces = [ALLOWED[:10], ALLOWED[10:]]
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
        data = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
        with FakeServer(answering(data + b"0\r\n\r\n")) as server, self.client(server) as client:
            for _ in range(3):
                self.assertEqual(client.check(api_key="a").mode, "store")
        self.assertEqual(server.connections, 1)

    def test_errors_say_whose_fault_they_are(self) -> None:
        problem = b'{"status":400,"detail":"no","code":"path_escaped_slash","field":"endpoint"}'
        with FakeServer(answering(response(problem, "400 Bad Request"))) as server:
            with self.assertRaises(InvalidPath):
                self.check(server)
            with self.assertRaises(Refused):
                self.client(server).settle("tgr_x", 1)
        with FakeServer(cutting) as server, self.assertRaises(Unavailable):
            self.client(server).settle("tgr_x", 1)

    def test_what_the_server_cannot_read_is_not_sent(self) -> None:
        requests: List[Tuple[RequestFields, str]] = [
            ({"endpoint": "GET /" + "a" * 8192}, "path_too_long"),
            ({"endpoint": "GET /" + "é" * 4096}, "path_too_long"),
            ({"user_id": "a" * 4097}, "value_too_long"),
            ({"attributes": {"region": "€" * 1366}}, "value_too_long"),
            ({"user_id": "\ud800"}, "bad_text"),
        ]
        with FakeServer(answering(response())) as server, self.client(server) as client:
            for fields, code in requests:
                with self.assertRaises(InvalidPath) as raised:
                    client.check(**fields)
                self.assertEqual(raised.exception.code, code)
            self.assertEqual(len(server.requests), 0)
            readable: RequestFields = {"ip": "::1"}
            batch = client.check_batch([requests[4][0], requests[0][0]])
            self.assertEqual([isinstance(result, InvalidPath) for result in batch], [True, True])
            self.assertEqual(len(server.requests), 0)
            client.check_batch([requests[4][0], readable])
            self.assertTrue(server.requests[0].endswith(b'{"requests":[{"ip":"::1"}]}'))
            client.check(endpoint="GET /" + "a" * 8191 + "?" + "b" * 50, user_id="€" * 1365)
        too_large = response(b"too large", "413 Content Too Large")
        with FakeServer(answering(too_large)) as server, self.assertRaises(InvalidPath):
            self.check(server)

    def test_a_thousand_threads_share_a_bounded_number_of_connections(self) -> None:
        with FakeServer(answering(response())) as server:
            client = self.client(server, connections_max=8)
            modes: List[str] = []
            threads = [
                threading.Thread(target=lambda: modes.append(client.check(api_key="a").mode)) for _ in range(1000)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual((modes.count("store"), len(server.requests)), (1000, 1000))
        self.assertLessEqual(server.connections, 8)
        self.assertLessEqual(len(client._pool._idle), 8)

    @unittest.skipUnless(hasattr(os, "fork"), "only systems that fork")
    def test_a_forked_process_has_connections_of_its_own(self) -> None:
        with FakeServer(answering(response())) as server:
            client = self.client(server)
            client.check(api_key="parent")
            child = os.fork()
            if child == 0:
                os._exit(0 if client.check(api_key="child").mode == "store" else 1)
            _, status = os.waitpid(child, 0)
            self.assertEqual((status, client.check(api_key="parent").mode), (0, "store"))
        self.assertEqual(server.connections, 2)


def until(condition: Callable[[], bool]) -> None:
    """Waits for what another thread is about to do."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > PATIENT:
            raise AssertionError("it does not happen")
