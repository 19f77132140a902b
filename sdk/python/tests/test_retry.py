"""Retries by the libraries that programs use. The waits themselves are those of sdk/conformance/retry.json."""

from __future__ import annotations

import socket
import unittest
import urllib.request
from typing import Callable, List
from urllib.error import HTTPError

import requests

from tollgate import Retry
from tollgate.retry import Waiting

from .fake_server import FakeServer, response


def later_and_then(*answers: bytes) -> Callable[[FakeServer, socket.socket, int], None]:
    """Answers in turn, over connections that close."""

    def serve(server: FakeServer, connection: socket.socket, number: int) -> None:
        if server.read(connection):
            connection.sendall(answers[min(number, len(answers)) - 1])

    return serve


LATER = response(b"{}", "429 Too Many Requests", "Retry-After: 2\r\nConnection: close\r\n")
FINE = response(b"fine", fields="Connection: close\r\n")


class RetryTest(unittest.TestCase):
    def setUp(self) -> None:
        self.waits: List[float] = []
        self.retry = Retry(waiting=Waiting(sleep=self.waits.append, random=lambda: 0.0))

    def test_requests(self) -> None:
        with FakeServer(later_and_then(LATER, LATER, FINE)) as server, requests.Session() as session:
            answer = self.retry.request(session.request, "POST", server.url, idempotency_key="k1", data=b"x")
        self.assertEqual((answer.status_code, answer.text, self.waits), (200, "fine", [2.0, 2.0]))
        keys = [line for request in server.requests for line in request.split(b"\r\n") if b"dempotency" in line]
        self.assertEqual(keys, [b"Idempotency-Key: k1"] * 3)

    def test_urllib(self) -> None:
        with FakeServer(later_and_then(LATER, FINE)) as server, self.retry.urlopen(self.request(server)) as answer:
            self.assertEqual((answer.status, answer.read()), (200, b"fine"))
        self.assertEqual(self.waits, [2.0])

    def test_the_last_error_of_urllib_is_raised(self) -> None:
        with FakeServer(later_and_then(LATER)) as server:
            with self.assertRaises(HTTPError) as caught:
                self.retry.urlopen(self.request(server))
            caught.exception.close()
        self.assertEqual((caught.exception.code, len(self.waits)), (429, 2))

    def test_urllib_and_a_400_that_means_later(self) -> None:
        throttled = response(b'{"__type":"ThrottlingException"}', "400 Bad Request", "Connection: close\r\n")
        wrong = response(b'{"__type":"ValidationException"}', "400 Bad Request", "Connection: close\r\n")
        with FakeServer(later_and_then(throttled, wrong)) as server:
            with self.assertRaises(HTTPError) as caught:
                self.retry.urlopen(self.request(server))
            self.assertIn(b"ValidationException", caught.exception.read())
            caught.exception.close()
        self.assertEqual(len(self.waits), 1)

    def request(self, server: FakeServer) -> urllib.request.Request:
        return urllib.request.Request(server.url, data=b"", method="GET")
