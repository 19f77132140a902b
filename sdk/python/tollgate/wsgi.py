"""Middleware for Flask and every other WSGI application.

>>> app.wsgi_app = RateLimitMiddleware(app.wsgi_app, skip=lambda request: request.path == "/health")
"""

from __future__ import annotations

import logging
import time
from http import HTTPStatus
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from .client import Client
from .decision import Answer, Decision
from .errors import InvalidPath, TollgateError
from .guard import FAILED, Guard, Result, client_options, delay_seconds, fields_to_add
from .incoming import Incoming, path_of, refuse_dot_segments
from .request import RequestFields
from .settings import Settings

_LOG = logging.getLogger("tollgate")
Environ = Dict[str, Any]
StartResponse = Callable[..., Callable[[bytes], object]]
App = Callable[[Environ, StartResponse], Iterable[bytes]]


class RateLimitMiddleware:
    """Asks before every request. Options are those of `Guard` and, in place of a client, its settings."""

    def __init__(self, app: App, /, client: Optional[Client] = None, **options: Any) -> None:
        self._app = app
        self._client = client or Client.from_settings(Settings(**client_options(options)))
        self._guard = Guard(**options)
        self._proxies = self._guard.proxies()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        incoming = incoming_of(environ, self._proxies.client)
        if self._guard.is_skipped(incoming):
            return self._app(environ, start_response)
        identity = None if self._guard.identify is None else self._guard.identify(incoming)
        decision = ask(self._client, self._guard, self._guard.fields(incoming, identity))
        refusal = self._guard.refusal(incoming, decision)
        if refusal is not None:
            return _answer(refusal, environ, start_response)
        time.sleep(delay_seconds(decision, self._guard.shadow))
        return self._pass_on(incoming, decision, environ, start_response)

    def _pass_on(
        self, incoming: Incoming, decision: Union[Decision, InvalidPath], environ: Environ, start: StartResponse
    ) -> Iterable[bytes]:
        result = FAILED
        fields = fields_to_add(decision, self._guard.shadow)

        def start_with_fields(status: str, headers: List[Tuple[str, str]], *error: Any) -> Callable[[bytes], object]:
            nonlocal result
            result = Result(int(status.split(" ", 1)[0]), list(headers))
            return start(status, [*headers, *fields], *error)

        if not isinstance(decision, Decision) or decision.reservation is None:
            return self._app(environ, start_with_fields)
        settle = settlement(self._client, self._guard, incoming, decision)
        try:
            body = self._app(environ, start_with_fields)
        except BaseException:
            settle(FAILED)
            raise
        return _Settling(body, lambda: settle(result))


class _Settling:
    """A body that settles when the server has sent it, or gave up."""

    def __init__(self, body: Iterable[bytes], settle: Callable[[], None]) -> None:
        self._body = body
        self._settle: Optional[Callable[[], None]] = settle

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._body)

    def close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if callable(close):
                close()
        finally:
            settle, self._settle = self._settle, None
            if settle is not None:
                settle()


def ask(client: Client, guard: Guard, fields: RequestFields) -> Union[Decision, InvalidPath]:
    """The decision about a request, or why its path is malformed."""
    try:
        refuse_dot_segments(fields.get("endpoint", ""))
        return client.reserve_for_user(fields) if guard.reserves(fields) else client.check_for_user(fields)
    except InvalidPath as error:
        return error


def settlement(
    client: Client, guard: Guard, incoming: Incoming, decision: Union[Decision, InvalidPath]
) -> Callable[[Result], None]:
    """Keeps a reservation until the result is known, and settles what the request really cost."""
    if not isinstance(decision, Decision) or decision.reservation is None:
        return lambda _result: None
    reservation = decision.reservation
    kept = client.keep(decision)

    def settle(result: Result) -> None:
        kept.stop()
        costs = guard.real_costs(incoming, result)
        if costs is None:
            return
        try:
            client.settle(reservation, costs)
        except TollgateError as error:
            _LOG.warning("a reservation was not settled, its estimate stays charged: %s", error)

    return settle


def incoming_of(environ: Environ, client_of: Callable[[Optional[str], Sequence[str]], Optional[str]]) -> Incoming:
    """Reads an environ."""
    headers = [
        (name[5:].replace("_", "-").title(), value)
        for name, value in environ.items()
        if name.startswith("HTTP_") and isinstance(value, str)
    ]
    forwarded = environ.get("HTTP_X_FORWARDED_FOR")
    address = client_of(environ.get("REMOTE_ADDR") or None, [] if forwarded is None else [forwarded])
    decoded = (environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")).encode("latin-1", "replace")
    return Incoming(environ["REQUEST_METHOD"], path_of(raw_target(environ), decoded or b"/"), address, headers, environ)


def raw_target(environ: Mapping[str, Any]) -> Optional[bytes]:
    """The target as it came over the wire, where the server says it; WSGI itself has only the decoded path."""
    raw = environ.get("RAW_URI") or environ.get("REQUEST_URI")
    return None if raw is None else str(raw).encode("latin-1", "replace")


def _answer(answer: Answer, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    try:
        phrase = HTTPStatus(answer.status).phrase
    except ValueError:
        phrase = "Refused"
    start_response(f"{answer.status} {phrase}", list(answer.all_fields()))
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [answer.body]
