"""Middleware for FastAPI, Starlette and every other ASGI application.

>>> app.add_middleware(RateLimitMiddleware, identify=lambda request: {"api_key": request.header("X-API-Key")})
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from contextlib import asynccontextmanager
from typing import Any, AsyncIterator, Awaitable, Callable, List, MutableMapping, Optional, Sequence, Tuple, Union

from .aio import AsyncClient, finish
from .decision import Answer, Decision
from .errors import InvalidPath, TollgateError
from .guard import FAILED, Costs, Guard, Result, client_options, delay_seconds, fields_to_add
from .incoming import Incoming, path_of, refuse_dot_segments
from .request import RequestFields
from .settings import Settings

_LOG = logging.getLogger("tollgate")
# As Starlette types them, without needing it.
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]


class RateLimitMiddleware:
    """Asks before every request and WebSocket handshake.

    Options are those of `Guard`, where `identify` may be async, and, in place of a client, its settings.
    """

    def __init__(self, app: App, /, client: Optional[AsyncClient] = None, **options: Any) -> None:
        self._app = app
        self._client = client or AsyncClient.from_settings(Settings(**client_options(options)))
        self._guard = Guard(**options)
        self._proxies = self._guard.proxies()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        incoming = self._incoming(scope)
        if self._guard.is_skipped(incoming):
            await self._app(scope, receive, send)
            return
        fields = self._guard.fields(incoming, await self._identity(incoming))
        decision = await ask_async(self._client, self._guard, fields)
        refusal = self._guard.refusal(incoming, decision)
        if refusal is not None:
            await _answer(refusal, scope, receive, send)
            return
        await self._pass_on(incoming, decision, scope, receive, send)

    async def _pass_on(
        self,
        incoming: Incoming,
        decision: Union[Decision, InvalidPath],
        scope: Message,
        receive: Receive,
        send: Send,
    ) -> None:
        result = FAILED
        fields = _encoded(fields_to_add(decision, self._guard.shadow))

        async def send_with_fields(message: Message) -> None:
            nonlocal result
            if message["type"] in ("http.response.start", "websocket.accept"):
                own = list(message.get("headers") or [])
                result = Result(message.get("status", 101), _decoded(own))
                message = {**message, "headers": [*own, *fields]}
            await send(message)

        async with settled(self._client, self._guard, incoming, decision, lambda: result):
            delay = delay_seconds(decision, self._guard.shadow)
            if delay:
                await asyncio.sleep(delay)
            await self._app(scope, receive, send_with_fields)

    async def _identity(self, incoming: Incoming) -> Any:
        identity = None if self._guard.identify is None else self._guard.identify(incoming)
        return await identity if inspect.isawaitable(identity) else identity

    def _incoming(self, scope: Message) -> Incoming:
        headers = _decoded(scope["headers"])
        forwarded = [value for name, value in headers if name.lower() == "x-forwarded-for"]
        peer = scope.get("client")
        address = self._proxies.client(peer[0] if peer else None, forwarded)
        path = path_of(scope.get("raw_path"), scope["path"].encode("utf-8", "surrogatepass"))
        return Incoming(scope.get("method", "GET"), path, address, headers, scope)


async def ask_async(client: AsyncClient, guard: Guard, fields: RequestFields) -> Union[Decision, InvalidPath]:
    """The decision about a request, or why its path is malformed."""
    try:
        refuse_dot_segments(fields.get("endpoint", ""))
        if guard.reserves(fields):
            return await client.reserve_for_user(fields)
        return await client.check_for_user(fields)
    except InvalidPath as error:
        return error


@asynccontextmanager
async def settled(
    client: AsyncClient,
    guard: Guard,
    incoming: Incoming,
    decision: Union[Decision, InvalidPath],
    result: Callable[[], Result],
) -> AsyncIterator[None]:
    """Keeps a reservation while its request is served, and settles it, also if the handler failed or was cancelled."""
    if not isinstance(decision, Decision) or decision.reservation is None:
        yield
        return
    stop = client.keep(decision)
    try:
        yield
    finally:
        stop()
        costs = guard.real_costs(incoming, result())
        if costs is not None:
            await finish(_settle(client, decision.reservation, costs))


async def _settle(client: AsyncClient, reservation: str, costs: Costs) -> None:
    try:
        await client.settle(reservation, costs)
    except TollgateError as error:
        _LOG.warning("a reservation was not settled, its estimate stays charged: %s", error)


def _decoded(headers: Sequence[Tuple[bytes, bytes]]) -> List[Tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]


def _encoded(fields: Sequence[Tuple[str, str]]) -> List[Tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in fields]


async def _answer(answer: Answer, scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": answer.status, "headers": _encoded(answer.all_fields())})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})
        return
    await receive()  # websocket.connect
    if "websocket.http.response" in (scope.get("extensions") or {}):
        start = "websocket.http.response.start"
        await send({"type": start, "status": answer.status, "headers": _encoded(answer.all_fields())})
        await send({"type": "websocket.http.response.body", "body": answer.body})
    else:
        await send({"type": "websocket.close", "code": 1013})  # try again later
