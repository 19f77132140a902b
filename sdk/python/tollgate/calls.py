"""The calls of a client without input or output, so that the client and its asyncio twin share them.

Each call is a generator: it yields the HTTP request to make, is sent the response (or thrown why there is none), and
returns the result. The client that drives it only moves bytes.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from typing import Any, Callable, Dict, Generator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union
from urllib.parse import urlencode

from .bounds import unreadable
from .breaker import Breaker
from .decision import Answer, Decision, from_members, problem, user_fields
from .errors import CircuitOpen, InvalidPath, PoolExhausted, Refused, TollgateError, Unavailable
from .fallback import FallbackLimiter
from .limit import Limit
from .local_decisions import of_fallback, of_policy
from .request import RequestFields, bucket_key, total_cost
from .settings import Origin, Settings
from .wire import HttpRequest, HttpResponse, MalformedResponse

_LOG = logging.getLogger("tollgate")
_LOG_EVERY_NS = 10 * 10**9
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
# Codes of a text that a user of the application sent: the path, the method, or a value that identifies the user.
_CALLER_CODES = ("path_", "bad_method", "value_too_long", "bad_text")

T = TypeVar("T")
Steps = Generator[HttpRequest, HttpResponse, T]
Members = Mapping[str, Any]


class Calls:
    """The calls, with the state that they share: breaker and fallback."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._prefix = Origin.parse(settings.url).prefix
        self._breaker = Breaker(settings.clock)
        limit = settings.fallback
        self._fallback = FallbackLimiter(limit, settings.clock) if isinstance(limit, Limit) else None
        self._log_lock = threading.Lock()
        self._logged_at: Optional[int] = None

    def check(self, fields: RequestFields, for_user: bool = False) -> Steps[Decision]:
        """One decision; `for_user` asks for status, header fields and body as a user should see them."""
        return self._decide("check?status=429" if for_user else "check", fields, for_user)

    def reserve(self, fields: RequestFields, for_user: bool = False) -> Steps[Decision]:
        """A decision about estimates."""
        return self._decide("reserve?status=429" if for_user else "reserve", fields, for_user)

    def acquire(self, fields: RequestFields) -> Steps[Decision]:
        """A decision about a slot."""
        return self._decide("slots/acquire", fields)

    def check_batch(self, requests: Sequence[RequestFields]) -> Steps[List[Union[Decision, Refused]]]:
        """Decisions in the same order. A request whose path is malformed has its error in its place."""
        # What the server cannot read would make the whole batch unreadable.
        malformed = [unreadable(fields) for fields in requests]
        readable = [fields for fields, error in zip(requests, malformed) if error is None]
        results = iter((yield from self._check_readable(readable)))
        return [next(results) if error is None else error for error in malformed]

    def _check_readable(self, requests: Sequence[RequestFields]) -> Steps[List[Union[Decision, Refused]]]:
        if not requests:
            return []
        try:
            members = yield from self._members("check/batch", {"requests": list(requests)})
            results = members.get("results")
            if not isinstance(results, list) or len(results) != len(requests):
                raise MalformedResponse("the answer to a batch has another length")
        except (Unavailable, Refused) as cause:
            if isinstance(cause, InvalidPath):
                raise
            return [self._without_decision(cause, fields) for fields in requests]
        return [self._item(result, fields) for result, fields in zip(results, requests)]

    def extend(self, reservation: str, costs: Mapping[str, int]) -> Steps[Decision]:
        """The next step of a reservation. Raises if there is no answer: the old receipt stays good."""
        members = yield from self._members("extend", {"reservation": reservation, "costs": dict(costs)})
        return _decision(members)

    def settle(self, reservation: str, costs: Union[int, Mapping[str, int]]) -> Steps[Members]:
        """What the settlement changed. Raises if there is no answer: settling again changes nothing twice."""
        real: Dict[str, Any] = {"cost": costs} if isinstance(costs, int) else {"costs": dict(costs)}
        return self._members("settle", {"reservation": reservation, **real})

    def renew(self, slot: str) -> Steps[Members]:
        """Whether the slot is still held, and for how long."""
        return self._members("slots/renew", {"slot": slot})

    def release(self, slot: str) -> Steps[Members]:
        """Whether the slot was still held."""
        return self._members("slots/release", {"slot": slot})

    def usage(self, client: RequestFields) -> Steps[Members]:
        """What a client has used."""
        query = urlencode({name: str(value) for name, value in client.items()})
        response = yield from self._exchange(HttpRequest("GET", f"{self._prefix}/v1/usage?{query}"))
        return _ok(response)

    def reset_after_fork(self) -> None:
        """New locks: those of the parent may be held by threads that do not exist here."""
        self._breaker.reset_after_fork()
        self._log_lock = threading.Lock()
        if self._fallback is not None:
            self._fallback.reset_after_fork()

    def _decide(self, path: str, fields: RequestFields, for_user: bool = False) -> Steps[Decision]:
        malformed = unreadable(fields)
        if malformed is not None:
            raise malformed
        try:
            response = yield from self._exchange(self._post(path, fields))
            return _read_decision(response, for_user)
        except InvalidPath:
            raise
        except (Unavailable, Refused) as cause:
            return self._without_decision(cause, fields)

    def _members(self, path: str, body: Mapping[str, Any]) -> Steps[Members]:
        response = yield from self._exchange(self._post(path, body))
        return _ok(response)

    def _post(self, path: str, body: Mapping[str, Any]) -> HttpRequest:
        try:
            text = _ENCODER.encode(body)
        except (TypeError, ValueError, RecursionError) as error:
            raise Refused(400, "not_json", f"the request cannot be written as JSON: {error}") from None
        return HttpRequest("POST", f"{self._prefix}/v1/{path}", text.encode())

    def _exchange(self, request: HttpRequest) -> Steps[HttpResponse]:
        """Makes a call if the breaker admits one, and tells it what came of it."""
        permit = self._breaker.admit()
        if permit is None:
            raise CircuitOpen("no call is made: the last ones had no answer")
        report = permit.abandon  # the caller may leave before it is known
        try:
            response = yield request
            failed = response.status >= 500 and not _is_decision(response)
            report = permit.failure if failed else permit.success
            return response
        except PoolExhausted:
            raise
        except Unavailable:
            report = permit.failure
            raise
        finally:
            report()

    def _item(self, result: Any, fields: RequestFields) -> Union[Decision, Refused]:
        if isinstance(result, dict) and isinstance(result.get("allowed"), bool):
            return from_members(result)
        error = _refused(400, result if isinstance(result, dict) else {})
        return error if isinstance(error, InvalidPath) else self._without_decision(error, fields)

    def _without_decision(self, cause: TollgateError, fields: RequestFields) -> Decision:
        self._report(cause)
        if self._settings.on_error == "local" and self._fallback is not None:
            cost = total_cost(fields)
            outcome = self._fallback.decide(bucket_key(fields), cost, fields.get("peek") is True)
            return of_fallback(self._fallback.limit, outcome, self._settings.wall_clock())
        return of_policy(self._settings.on_error != "closed")

    def _report(self, cause: TollgateError) -> None:
        if self._settings.on_unavailable is not None:
            self._settings.on_unavailable(cause)
        now = self._settings.clock()
        with self._log_lock:
            if self._logged_at is not None and now - self._logged_at < _LOG_EVERY_NS:
                return
            self._logged_at = now
        _LOG.warning("no decision from Tollgate, %s applies: %s", self._settings.on_error, cause)


def drive(steps: Steps[T], send: Callable[[HttpRequest], HttpResponse]) -> T:
    """Runs a call: every request it makes goes through `send`."""
    try:
        request = next(steps)
        while True:
            try:
                response = send(request)
            except Unavailable as cause:
                request = steps.throw(cause)
            else:
                request = steps.send(response)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        steps.close()  # also if the caller was interrupted: the breaker must hear of it


# More than a number of the server has, which would take long to read. Inside of a text it does no harm, and only makes
# the numbers be read one by one.
_LONG = re.compile(rb"[0-9]{21}")


def _whole(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError("a number of the answer is too long")
    return int(digits)


def _object(response: HttpResponse) -> Dict[str, Any]:
    try:
        parse_int = _whole if _LONG.search(response.body) else None
        members = json.loads(response.body.decode(), parse_int=parse_int)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        if response.status == 413:  # by a proxy
            raise InvalidPath(413, "body_too_large", "the request is longer than the server reads")
        raise MalformedResponse(f"the answer with status {response.status} is not a JSON object")
    return members


def _is_decision(response: HttpResponse) -> bool:
    try:
        return isinstance(_object(response).get("allowed"), bool)
    except MalformedResponse:
        return False


def _read_decision(response: HttpResponse, for_user: bool) -> Decision:
    members = _object(response)
    allowed = members.get("allowed")
    if not isinstance(allowed, bool) or (allowed and response.status != 200):
        raise _refused(response.status, members)
    fields = user_fields(response.fields) if for_user or not allowed else ()
    refusal = None if allowed else _refusal(response, fields)
    return from_members(members, fields=fields, refusal=refusal)


def _refusal(response: HttpResponse, fields: Tuple[Tuple[str, str], ...]) -> Answer:
    if response.status == 200:  # no status was asked for, and the body is not for users
        return problem({"type": "about:blank", "title": "Too many requests", "status": 429}, fields)
    wait = response.field("retry-after")
    media = response.field("content-type") or "application/problem+json"
    return Answer(response.status, fields if wait is None else (("Retry-After", wait), *fields), response.body, media)


def _decision(members: Members) -> Decision:
    if not isinstance(members.get("allowed"), bool):
        raise MalformedResponse("the answer is not a decision")
    return from_members(members)


def _ok(response: HttpResponse) -> Members:
    members = _object(response)
    if response.status != 200:
        raise _refused(response.status, members)
    return members


def _refused(status: int, members: Members) -> TollgateError:
    def text(name: str) -> str:
        value = members.get(name)
        return value if isinstance(value, str) else ""

    if status == 200:
        return MalformedResponse("the answer is not a decision")
    code = text("code") or "unknown"
    by_caller = status == 413 or (status == 400 and (code.startswith(_CALLER_CODES) or text("field") == "endpoint"))
    return (InvalidPath if by_caller else Refused)(status, code, text("detail"), text("field") or None)
