"""Connections of the asyncio client. A deadline closes the connection, which wakes the call that waits on it: no task
is made for a timeout, and a cancelled call cannot leave its answer to the next one. A connection has one timer and not
one for each call: when it ends, it mostly finds a later deadline, and is set anew."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from typing import Deque, List, Optional
from weakref import WeakKeyDictionary

from .connection import IDLE_NS_MAX, Deadline
from .errors import NotSent, PoolExhausted, Unavailable
from .settings import Origin, Settings
from .wire import HttpRequest, HttpResponse, ResponseReader


class AsyncConnection(asyncio.Protocol):
    """One connection, and one call at a time."""

    def __init__(self) -> None:
        self._transport: Optional[asyncio.Transport] = None
        self._reader = ResponseReader()
        self._waiter: Optional[asyncio.Future[HttpResponse]] = None
        self._is_open = False
        self._deadline: Optional[Deadline] = None
        self._timer: Optional[asyncio.TimerHandle] = None
        self._timer_at_ns = 0
        self.idle_since_ns = 0

    @property
    def keep_alive(self) -> bool:
        """Whether another call may use it."""
        return self._is_open and self._reader.keep_alive

    async def exchange(self, data: bytes, deadline: Deadline) -> HttpResponse:
        """Sends a request and waits for its response."""
        if not self._is_open or self._transport is None:
            raise NotSent("the server closed the connection before the call")
        loop = asyncio.get_running_loop()
        self._reader = ResponseReader()
        self._waiter = loop.create_future()
        self._deadline = deadline
        if self._timer is None or deadline.at_ns < self._timer_at_ns:
            self._set_timer(loop, deadline)
        try:
            self._transport.write(data)
            return await self._waiter
        finally:
            self._waiter = self._deadline = None

    def _set_timer(self, loop: asyncio.AbstractEventLoop, deadline: Deadline) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(deadline.left(), self._check_deadline, loop)
        self._timer_at_ns = deadline.at_ns

    def _check_deadline(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if self._deadline is None:
            return
        if self._deadline.left() > 0:
            self._set_timer(loop, self._deadline)
        else:
            self._fail(Unavailable("no answer in time"))

    def close(self) -> None:
        """Closes it; whatever is under way is lost."""
        self._is_open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._is_open = True

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:
            self.close()  # bytes that no call asked for
            return
        try:
            self._reader.feed(data)
        except Unavailable as error:
            self._fail(error)
        self._finish()

    def eof_received(self) -> bool:
        self._end(None)
        return False

    def connection_lost(self, exc: Optional[Exception]) -> None:
        self._end(exc)
        self.close()  # its timer too

    def _end(self, cause: Optional[Exception]) -> None:
        self._is_open = False
        if self._waiter is None or self._waiter.done():
            return
        try:
            if cause is not None:
                raise Unavailable(f"the connection broke: {cause}") from cause
            self._reader.end()
        except Unavailable as error:
            self._fail(error)
        self._finish()

    def _finish(self) -> None:
        response = self._reader.response
        if response is not None and self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(response)

    def _fail(self, error: Unavailable) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        self.close()


class _LoopPool:
    """The connections of one event loop."""

    def __init__(self, free: int) -> None:
        self.idle: List[AsyncConnection] = []
        self._free = free
        self._waiters: Deque[asyncio.Future[None]] = deque()

    def try_acquire(self) -> bool:
        """Takes a permit if one is free; then there is no one who waits."""
        if self._free <= 0:
            return False
        self._free -= 1
        return True

    async def wait(self, deadline: Deadline) -> None:
        """Waits for a permit, first come, first served."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append(waiter)
        late = PoolExhausted("all connections were in use until the deadline")
        timer = loop.call_later(deadline.left(), _fail_unless_done, waiter, late)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.release()  # it came in the moment of the cancellation
            raise
        finally:
            timer.cancel()

    def release(self) -> None:
        """Hands the permit to the call that has waited for longest."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1


def _fail_unless_done(waiter: asyncio.Future[None], error: Exception) -> None:
    if not waiter.done():
        waiter.set_exception(error)


class AsyncConnectionPool:
    """The connections of one client, by event loop: connections live and die with theirs."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._origin = Origin.parse(settings.url)
        self._tls = (settings.tls or ssl.create_default_context()) if self._origin.tls else None
        self.reset_after_fork()

    async def send(self, request: HttpRequest, deadline: Deadline) -> HttpResponse:
        """Makes one call. What could not be sent is sent once more, what may have arrived never is."""
        pool = self._pool()
        if not pool.try_acquire():
            await pool.wait(deadline)
            if deadline.left() < 0.001:
                pool.release()
                raise PoolExhausted("connections were in use for too long")
        try:
            try:
                return await self._attempt(pool, request, deadline)
            except NotSent:
                if deadline.left() < 0.001:
                    raise
                return await self._attempt(pool, request, deadline)
        finally:
            pool.release()

    def close(self) -> None:
        """Closes the connections of this event loop that are not in use."""
        pool = self._pool()
        while pool.idle:
            pool.idle.pop().close()

    def reset_after_fork(self) -> None:
        """Starts anew: the connections belong to the parent, whose answers must not be read here."""
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopPool] = WeakKeyDictionary()

    def _pool(self) -> _LoopPool:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = self._pools.setdefault(loop, _LoopPool(self._settings.connections_max))
        return pool

    async def _attempt(self, pool: _LoopPool, request: HttpRequest, deadline: Deadline) -> HttpResponse:
        connection = self._reuse(pool) or await self._connect(deadline)
        try:
            data = request.encode(self._origin.authority, self._settings.token, deadline.left_ms())
            response = await connection.exchange(data, deadline)
        except BaseException:
            connection.close()
            raise
        if connection.keep_alive:
            connection.idle_since_ns = self._settings.clock()
            pool.idle.append(connection)
        else:
            connection.close()
        return response

    def _reuse(self, pool: _LoopPool) -> Optional[AsyncConnection]:
        while pool.idle:
            connection = pool.idle.pop()
            if connection.keep_alive and self._settings.clock() - connection.idle_since_ns < IDLE_NS_MAX:
                return connection
            connection.close()
        return None

    async def _connect(self, deadline: Deadline) -> AsyncConnection:
        loop = asyncio.get_running_loop()
        origin = self._origin
        connecting = loop.create_connection(AsyncConnection, origin.host, origin.port, ssl=self._tls)
        try:
            _, connection = await asyncio.wait_for(connecting, deadline.left())
        except (OSError, ValueError, asyncio.TimeoutError) as error:
            raise NotSent(f"no connection to {origin.authority}: {error or 'no answer in time'}") from error
        return connection
