"""A server of bytes: it answers connections with what a test says, and counts what arrives."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from typing import Callable, List

ALLOWED = (
    b'{"allowed":true,"limit":3,"remaining":2,"reset_at":1,"retry_after":null,'
    b'"retry_after_ms":null,"rule":"orders","mode":"store","generation":1}'
)


def response(body: bytes = ALLOWED, status: str = "200 OK", fields: str = "") -> bytes:
    """The bytes of an answer."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{fields}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class FakeServer:
    """Calls `serve(connection, number)` for every connection, in a thread of its own."""

    def __init__(self, serve: Callable[[FakeServer, socket.socket, int], None]) -> None:
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests: List[bytes] = []
        self.connections = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> FakeServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def read(self, connection: socket.socket) -> bytes:
        """One request, counted; empty at the end."""
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return b""
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(int(line[16:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length: "))
        while len(body) < length:
            body += connection.recv(65536)
        with self._lock:
            self.requests.append(head + b"\r\n\r\n" + body)
        return head

    def endpoints(self) -> List[str]:
        """What the requests asked about."""
        return [json.loads(request.partition(b"\r\n\r\n")[2]).get("endpoint") for request in self.requests]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._run, args=(connection, self.connections), daemon=True).start()

    def _run(self, connection: socket.socket, number: int) -> None:
        with connection, suppress(OSError):  # the client has gone
            self._serve(self, connection, number)


def answering(data: bytes) -> Callable[[FakeServer, socket.socket, int], None]:
    """Answers every request with these bytes, over connections that stay open."""

    def serve(server: FakeServer, connection: socket.socket, _number: int) -> None:
        while server.read(connection):
            connection.sendall(data)

    return serve


def closing_after_one(server: FakeServer, connection: socket.socket, _number: int) -> None:
    """Answers one request and closes, without having said so."""
    if server.read(connection):
        connection.sendall(response())


def cutting(server: FakeServer, connection: socket.socket, _number: int) -> None:
    """Takes requests and closes without an answer."""
    server.read(connection)


def halted(server: FakeServer, connection: socket.socket, _number: int) -> None:
    """Takes requests and never answers, for as long as the client waits."""
    server.read(connection)
    connection.recv(1)
