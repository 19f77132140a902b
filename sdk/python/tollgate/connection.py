"""Connections to the server: bounded in number, kept alive, never shared by two calls, never by two processes."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from functools import partial
from typing import Callable, List, Optional, TypeVar

from .errors import NotSent, PoolExhausted, Unavailable
from .settings import Origin, Settings
from .wire import HttpRequest, HttpResponse, ResponseReader

# The server closes a connection that was idle for a minute. Half of it leaves room for clocks and networks.
IDLE_NS_MAX = 30 * 10**9
_READ_BYTES = 64 * 1024

T = TypeVar("T")


class Deadline:
    """When a call must be over."""

    def __init__(self, clock: Callable[[], int], seconds: float) -> None:
        self._clock = clock
        self.at_ns = clock() + int(seconds * 10**9)

    def left(self) -> float:
        """Seconds until then; 0 if it has passed."""
        return max(0, self.at_ns - self._clock()) / 10**9

    def left_ms(self) -> int:
        """Whole milliseconds until then. Raises if there is none: such a call would be charged for nothing."""
        left = int(self.left() * 1000)
        if left < 1:
            raise NotSent("no time is left for the call")
        return left


class Connection:
    """One connection, and one call at a time."""

    def __init__(self, origin: Origin, tls: Optional[ssl.SSLContext], deadline: Deadline) -> None:
        self._socket = _connect(origin, tls, deadline)
        self.idle_since_ns = 0
        self.keep_alive = False

    def exchange(self, data: bytes, deadline: Deadline) -> HttpResponse:
        """Sends a request and waits for its response."""
        self.keep_alive = False
        try:
            self._send(data, deadline)
            reader = ResponseReader()
            response: Optional[HttpResponse] = None
            while response is None:
                piece = self._within(deadline, partial(self._socket.recv, _READ_BYTES))
                if piece:
                    reader.feed(piece)
                else:
                    reader.end()
                response = reader.response
        except (OSError, ValueError) as error:
            raise Unavailable(f"the connection broke: {error}") from error
        self.keep_alive = reader.keep_alive
        return response

    def is_stale(self) -> bool:
        """True if the server has closed it or sent what was not asked for: there is something to read between calls."""
        if not hasattr(select, "poll"):  # Windows
            return bool(select.select([self._socket], [], [], 0)[0])
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Closes it; whatever is under way is lost."""
        self._socket.close()

    def _send(self, data: bytes, deadline: Deadline) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._within(deadline, partial(self._socket.send, rest)) :]
            except (OSError, Unavailable) as error:
                if len(rest) == len(data):
                    raise NotSent(f"nothing of the call could be sent: {error}") from error
                raise

    def _within(self, deadline: Deadline, operation: Callable[[], T]) -> T:
        left = deadline.left()
        if left <= 0:
            raise Unavailable("no answer in time")
        self._socket.settimeout(left)
        try:
            return operation()
        except socket.timeout:
            raise Unavailable("no answer in time") from None


class ConnectionPool:
    """The connections of one client. Threads may share it; a forked process starts with none."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._origin = Origin.parse(settings.url)
        self._tls = (settings.tls or ssl.create_default_context()) if self._origin.tls else None
        self._idle: List[Connection] = []
        self.reset_after_fork()

    def send(self, request: HttpRequest, deadline: Deadline) -> HttpResponse:
        """Makes one call. What could not be sent is sent once more, what may have arrived never is."""
        permits = self._permits  # those of this process, if the call survives a fork
        if not permits.acquire(timeout=deadline.left()):
            raise PoolExhausted("all connections were in use until the deadline")
        try:
            if deadline.left() < 0.001:
                raise PoolExhausted("connections were in use for too long")
            try:
                return self._attempt(request, deadline)
            except NotSent:
                if deadline.left() < 0.001:
                    raise
                return self._attempt(request, deadline)
        finally:
            permits.release()

    def close(self) -> None:
        """Closes the connections that are not in use."""
        while self._idle:
            self._idle.pop().close()

    def reset_after_fork(self) -> None:
        """Starts anew: the connections belong to the parent, whose answers must not be read here."""
        self.close()  # here only: the parent goes on
        self._permits = threading.BoundedSemaphore(self._settings.connections_max)

    def _attempt(self, request: HttpRequest, deadline: Deadline) -> HttpResponse:
        connection = self._reuse() or Connection(self._origin, self._tls, deadline)
        idle = self._idle
        try:
            data = request.encode(self._origin.authority, self._settings.token, deadline.left_ms())
            response = connection.exchange(data, deadline)
        except BaseException:
            connection.close()
            raise
        if connection.keep_alive:
            connection.idle_since_ns = self._settings.clock()
            idle.append(connection)
        else:
            connection.close()
        return response

    def _reuse(self) -> Optional[Connection]:
        """The connection that was used last; lists are atomic, so that no lock is needed."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if self._settings.clock() - connection.idle_since_ns < IDLE_NS_MAX and not connection.is_stale():
                return connection
            connection.close()


def _connect(origin: Origin, tls: Optional[ssl.SSLContext], deadline: Deadline) -> socket.socket:
    try:
        addresses = socket.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NotSent(f"the address of {origin.host} cannot be found: {error}") from error
    cause: Optional[Exception] = None
    for family, kind, protocol, _, address in addresses:
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(deadline.left() or 0.001)
            connection.connect(address)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection if tls is None else tls.wrap_socket(connection, server_hostname=origin.host)
        except (OSError, ValueError) as error:
            connection.close()
            cause = error
        except BaseException:
            connection.close()
            raise
    raise NotSent(f"no connection to {origin.authority}: {cause}")
