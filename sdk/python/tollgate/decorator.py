"""A decorator for functions that are not requests: jobs, commands, handlers of messages."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, TypeVar, Union, cast

from .aio import AsyncClient
from .client import Client
from .decision import Decision
from .errors import RateLimited
from .request import RequestFields

F = TypeVar("F", bound=Callable[..., Any])


def limited(
    client: Union[Client, AsyncClient], fields: Union[RequestFields, Callable[..., RequestFields]]
) -> Callable[[F], F]:
    """Asks before every call of the function, and raises `RateLimited` if it may not be made.

    `fields` may be a function of the same arguments. Coroutines take an `AsyncClient`, functions a `Client`.

    >>> @limited(client, lambda user: {"user_id": user, "endpoint": "/jobs/export"})
    ... def export(user): ...
    """

    def request(arguments: Any, named: Any) -> RequestFields:
        return fields(*arguments, **named) if callable(fields) else fields

    def decorate(function: F) -> F:
        if inspect.iscoroutinefunction(function) != isinstance(client, AsyncClient):
            raise TypeError("coroutines are limited by an AsyncClient, functions by a Client")
        if isinstance(client, AsyncClient):

            @functools.wraps(function)
            async def limited_coroutine(*arguments: Any, **named: Any) -> Any:
                _raise_if_denied(await client.check(**request(arguments, named)))
                return await function(*arguments, **named)

            return cast("F", limited_coroutine)

        @functools.wraps(function)
        def limited_function(*arguments: Any, **named: Any) -> Any:
            _raise_if_denied(client.check(**request(arguments, named)))
            return function(*arguments, **named)

        return cast("F", limited_function)

    return decorate


def _raise_if_denied(decision: Decision) -> None:
    if not decision.allowed:
        raise RateLimited(decision.retry_after)
