"""The client for asyncio. It has no dependency: what it needs of HTTP is in `wire`."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import weakref
from typing import TYPE_CHECKING, Any, Callable, Coroutine, List, Mapping, Optional, Sequence, Set, TypeVar, Union

from .async_connection import AsyncConnectionPool
from .calls import Calls, Steps
from .connection import Deadline
from .decision import Decision
from .errors import Refused, TollgateError, Unavailable
from .limit import Limit
from .request import RequestFields
from .settings import Settings
from .slots import renewal_interval_ns

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
_LOG = logging.getLogger("tollgate")
_TASKS: Set[asyncio.Task[Any]] = set()  # event loops hold tasks weakly


class AsyncClient:
    """Asks Tollgate without blocking the event loop. Event loops may share it: each has connections of its own.

    `timeout` of a call is in seconds and replaces that of the settings.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        timeout: float = 0.25,
        on_error: Optional[str] = None,
        fallback: Union[Limit, str, None] = None,
        connections_max: int = 32,
        tls: Optional[ssl.SSLContext] = None,
        on_unavailable: Optional[Callable[[Exception], None]] = None,
    ) -> None:
        settings = Settings.given(
            url=url,
            token=token,
            timeout=timeout,
            on_error=on_error,
            fallback=fallback,
            connections_max=connections_max,
            tls=tls,
            on_unavailable=on_unavailable,
        )
        self._start(settings)

    @classmethod
    def from_settings(cls, settings: Settings) -> AsyncClient:
        """A client with all settings, the clock included."""
        client = cls.__new__(cls)
        client._start(settings)
        return client

    def _start(self, settings: Settings) -> None:
        self.settings = settings
        self._calls = Calls(settings)
        self._pool = AsyncConnectionPool(settings)
        _CLIENTS.add(self)

    async def check(self, *, timeout: Optional[float] = None, **fields: Unpack[RequestFields]) -> Decision:
        """One decision: may this request pass?"""
        return await self._run(self._calls.check(fields), timeout)

    async def check_for_user(self, fields: RequestFields, *, timeout: Optional[float] = None) -> Decision:
        """One decision with what a user should see of it: header fields, and a `refusal` to answer with."""
        return await self._run(self._calls.check(fields, for_user=True), timeout)

    async def check_batch(
        self, requests: Sequence[RequestFields], *, timeout: Optional[float] = None
    ) -> List[Union[Decision, Refused]]:
        """Decisions in the same order; a request whose path is malformed has its error in its place."""
        return await self._run(self._calls.check_batch(requests), timeout)

    async def reserve(self, *, timeout: Optional[float] = None, **fields: Unpack[RequestFields]) -> Decision:
        """A decision about estimates. Settle its `reservation` with the real amounts."""
        return await self._run(self._calls.reserve(fields), timeout)

    async def reserve_for_user(self, fields: RequestFields, *, timeout: Optional[float] = None) -> Decision:
        """As `reserve`, with what a user should see of it."""
        return await self._run(self._calls.reserve(fields, for_user=True), timeout)

    async def extend(self, reservation: str, costs: Mapping[str, int], *, timeout: Optional[float] = None) -> Decision:
        """The next step of a reservation, whose new `reservation` replaces the old one."""
        return await self._run(self._calls.extend(reservation, costs), timeout)

    async def settle(
        self, reservation: str, costs: Union[int, Mapping[str, int]], *, timeout: Optional[float] = None
    ) -> Mapping[str, Any]:
        """Settles a reservation. If it raises `Unavailable`, settling again is safe."""
        return await self._run(self._calls.settle(reservation, costs), timeout)

    async def acquire_slot(self, *, timeout: Optional[float] = None, **fields: Unpack[RequestFields]) -> AsyncSlot:
        """A slot, which renews itself until the `async with` block ends. Ask it whether it is `allowed`."""
        return AsyncSlot(self, await self._run(self._calls.acquire(fields), timeout))

    def keep(self, reserved: Decision) -> Callable[[], None]:
        """Renews the slots of a reservation until the result is called, which is to be done before it is settled."""
        if reserved.reservation is None or reserved.ttl_ms is None:
            return lambda: None
        renewals = spawn(self._renew_until_cancelled(reserved.reservation, reserved))

        def stop() -> None:
            renewals.cancel()

        return stop

    async def renew_slot(self, slot: str, *, timeout: Optional[float] = None) -> Mapping[str, Any]:
        """Renews a slot by its receipt; `AsyncSlot` does that by itself."""
        return await self._run(self._calls.renew(slot), timeout)

    async def release_slot(self, slot: str, *, timeout: Optional[float] = None) -> Mapping[str, Any]:
        """Releases a slot by its receipt; `AsyncSlot` does that by itself."""
        return await self._run(self._calls.release(slot), timeout)

    async def usage(self, *, timeout: Optional[float] = None, **client: Unpack[RequestFields]) -> Mapping[str, Any]:
        """What a client has used, by rule: `usage(api_key="abc")`."""
        return await self._run(self._calls.usage(client), timeout)

    async def close(self) -> None:
        """Closes the connections that are not in use. The client opens new ones if it is used again."""
        self._pool.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, steps: Steps[T], timeout: Optional[float]) -> T:
        deadline = Deadline(self.settings.clock, self.settings.timeout if timeout is None else timeout)
        try:
            request = next(steps)
            while True:
                try:
                    response = await self._pool.send(request, deadline)
                except Unavailable as cause:
                    request = steps.throw(cause)
                else:
                    request = steps.send(response)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            steps.close()  # also if the task was cancelled: the breaker must hear of it

    async def _renew_until_cancelled(self, receipt: str, decision: Decision) -> bool:
        """Returns once the server says that there is nothing to renew any more."""
        interval = renewal_interval_ns(decision) / 10**9
        while True:
            await asyncio.sleep(interval)
            try:
                if (await self.renew_slot(receipt)).get("renewed") is False:
                    return False
            except TollgateError as error:
                _LOG.warning("a slot was not renewed: %s", error)

    def _reset_after_fork(self) -> None:
        self._calls.reset_after_fork()
        self._pool.reset_after_fork()


class AsyncSlot:
    """A slot, or the refusal of one. Use it in an `async with` block."""

    def __init__(self, client: AsyncClient, decision: Decision) -> None:
        self._client = client
        self._receipt = decision.slot if decision.allowed else None
        self.decision = decision
        self.lost = False
        """True once the server said that the slot has expired: the work has no claim any more."""
        self._renewals = None if self._receipt is None else spawn(self._renew(self._receipt))

    @property
    def allowed(self) -> bool:
        """Whether the work may begin."""
        return self.decision.allowed

    async def release(self) -> bool:
        """Gives the slot back; True if it was still held. Completes even if the task that asks is cancelled."""
        receipt, self._receipt = self._receipt, None
        if receipt is None:
            return False
        if self._renewals is not None:
            self._renewals.cancel()
        return await finish(self._release(receipt))

    async def __aenter__(self) -> AsyncSlot:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.release()

    async def _release(self, receipt: str) -> bool:
        try:
            return (await self._client.release_slot(receipt)).get("released") is True
        except TollgateError as error:
            _LOG.warning("a slot was not released and expires by itself: %s", error)
            return False

    async def _renew(self, receipt: str) -> None:
        self.lost = not await self._client._renew_until_cancelled(receipt, self.decision)


def spawn(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task that is not lost while it runs."""
    task = asyncio.ensure_future(work)
    _TASKS.add(task)
    task.add_done_callback(_TASKS.discard)
    return task


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Awaits work that must be done even if the caller is cancelled meanwhile: it goes on in a task of its own."""
    return await asyncio.shield(spawn(work))


_CLIENTS: weakref.WeakSet[AsyncClient] = weakref.WeakSet()


def _after_fork() -> None:
    for client in list(_CLIENTS):
        client._reset_after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_after_fork)
