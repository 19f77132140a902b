"""Middleware for Django, under WSGI and ASGI: `"tollgate.django.RateLimitMiddleware"` in `MIDDLEWARE`.

Its options are in the setting `TOLLGATE`: those of `Guard`, and those of the client, such as `"fallback": "100/1m"`.
`identify` gets Django's request as `request.native`; it sees the user if the middleware stands below
`AuthenticationMiddleware`.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import Any, Awaitable, Callable, Union

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.encoding import repercent_broken_unicode

from .aio import AsyncClient
from .asgi import ask_async, settled
from .client import Client
from .decision import Answer, Decision
from .errors import InvalidPath
from .guard import FAILED, Guard, Result, client_options, delay_seconds, fields_to_add
from .incoming import Incoming, path_of
from .settings import Settings
from .wsgi import ask, raw_target, settlement

GetResponse = Callable[[HttpRequest], Any]


class RateLimitMiddleware:
    """Asks before every request."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: GetResponse) -> None:
        options = dict(getattr(settings, "TOLLGATE", {}))
        client = Settings(**client_options(options))
        self._get_response = get_response
        self._guard = Guard(**options)
        self._proxies = self._guard.proxies()
        self._is_async = iscoroutinefunction(get_response)
        self._client = Client.from_settings(client) if not self._is_async else None
        self._async_client = AsyncClient.from_settings(client) if self._is_async else None
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Union[HttpResponseBase, Awaitable[HttpResponseBase]]:
        incoming = self._incoming(request)
        if self._guard.is_skipped(incoming):
            response: HttpResponseBase = self._get_response(request)
            return response
        if self._async_client is not None:
            return self._call_async(self._async_client, incoming, request)
        assert self._client is not None
        return self._call(self._client, incoming, request)

    def _call(self, client: Client, incoming: Incoming, request: HttpRequest) -> HttpResponseBase:
        identity = None if self._guard.identify is None else self._guard.identify(incoming)
        decision = ask(client, self._guard, self._guard.fields(incoming, identity))
        refusal = self._guard.refusal(incoming, decision)
        if refusal is not None:
            return _response(refusal, request)
        time.sleep(delay_seconds(decision, self._guard.shadow))
        settle = settlement(client, self._guard, incoming, decision)
        result = FAILED
        try:
            response: HttpResponseBase = self._get_response(request)
            result = _result(response)
        finally:
            settle(result)
        return self._with_fields(response, decision)

    async def _call_async(self, client: AsyncClient, incoming: Incoming, request: HttpRequest) -> HttpResponseBase:
        identity = None if self._guard.identify is None else self._guard.identify(incoming)
        identity = await identity if inspect.isawaitable(identity) else identity
        decision = await ask_async(client, self._guard, self._guard.fields(incoming, identity))
        refusal = self._guard.refusal(incoming, decision)
        if refusal is not None:
            return _response(refusal, request)
        result = FAILED
        async with settled(client, self._guard, incoming, decision, lambda: result):
            await asyncio.sleep(delay_seconds(decision, self._guard.shadow))
            response: HttpResponseBase = await self._get_response(request)
            result = _result(response)
        return self._with_fields(response, decision)

    def _with_fields(self, response: HttpResponseBase, decision: Union[Decision, InvalidPath]) -> HttpResponseBase:
        for name, value in fields_to_add(decision, self._guard.shadow):
            response[name] = value
        return response

    def _incoming(self, request: HttpRequest) -> Incoming:
        headers = list(request.headers.items())
        forwarded = request.headers.get("X-Forwarded-For")
        peer = request.META.get("REMOTE_ADDR") or None
        address = self._proxies.client(peer, [] if forwarded is None else [forwarded])
        scope = getattr(request, "scope", None)
        raw = raw_target(request.META) if scope is None else scope.get("raw_path")
        path = path_of(raw, request.path.encode("utf-8", "surrogatepass"), repercent_broken_unicode)
        return Incoming(request.META["REQUEST_METHOD"], path, address, headers, request)


def _result(response: HttpResponseBase) -> Result:
    return Result(response.status_code, list(response.items()))


def _response(answer: Answer, request: HttpRequest) -> HttpResponse:
    body = b"" if request.method == "HEAD" else answer.body
    response = HttpResponse(body, status=answer.status, content_type=answer.content_type)
    for name, value in answer.all_fields():
        response[name] = value
    return response
