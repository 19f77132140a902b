"""The retry side: calls to other people's limited APIs, repeated when they say "later" and when it is safe.

Waits and verdicts are computed without input or output; `call` and `call_async` only sleep and send.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from dataclasses import dataclass, field
from http.client import HTTPResponse
from io import BytesIO
from typing import Any, Awaitable, Callable, Generator, Generic, Mapping, Optional, TypeVar, Union, cast
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from .adaptive import AdaptiveThrottle
from .named_waits import named_wait_ms

R = TypeVar("R")
IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
_BUDGET_MAX = 100
_RETRY_COST = 10
_BODY_MAX = 64 * 1024


class Throttled(Exception):
    """The call was refused here, because the API refuses most calls at the moment."""


@dataclass(frozen=True)
class Waiting:
    """The clock and the dice, which tests replace."""

    now_ms: Callable[[], int] = lambda: time.time_ns() // 10**6
    monotonic_ms: Callable[[], int] = lambda: time.monotonic_ns() // 10**6
    sleep: Callable[[float], None] = time.sleep
    sleep_async: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random


class Retry:
    """Repeats calls to one API. Threads and tasks may share it: the budget is that of all calls."""

    def __init__(
        self,
        attempts: int = 3,
        *,
        base: float = 0.1,
        cap: float = 20.0,
        jitter: str = "full",
        deadline: float = 60.0,
        adaptive: bool = False,
        waiting: Optional[Waiting] = None,
    ) -> None:
        if attempts < 1 or base <= 0 or cap < base or jitter not in ("full", "equal") or deadline <= 0:
            raise ValueError("attempts is at least 1, 0 < base <= cap, jitter is full or equal, deadline is positive")
        self._attempts = attempts
        self._base_ms = int(base * 1000)
        self._cap_ms = int(cap * 1000)
        self._equal = jitter == "equal"
        self._deadline_ms = int(deadline * 1000)
        self._waiting = waiting or Waiting()
        self._adaptive = AdaptiveThrottle(self._waiting.monotonic_ms, self._waiting.random) if adaptive else None
        self._budget = _Budget(self._waiting.monotonic_ms)

    def call(self, send: Callable[[], R], method: str = "GET", idempotency_key: Optional[str] = None) -> R:
        """Calls `send` until its response is final; returns the last one.

        A response has `status_code` or `status`, and `headers`: that of requests, httpx and urllib do. The key is only
        what makes a POST safe to repeat: `send` has to put it into the field `Idempotency-Key`, the same every time.
        """
        steps = self._steps(method, idempotency_key)
        try:
            wait = next(steps)
            while True:
                if wait is not None:
                    self._waiting.sleep(wait / 1000)
                    wait = steps.send(None)
                    continue
                response = send()
                wait = steps.send(Answered.of(response))
        except StopIteration:
            return response

    async def call_async(
        self, send: Callable[[], Awaitable[R]], method: str = "GET", idempotency_key: Optional[str] = None
    ) -> R:
        """As `call`, for coroutines."""
        steps = self._steps(method, idempotency_key)
        try:
            wait = next(steps)
            while True:
                if wait is not None:
                    await self._waiting.sleep_async(wait / 1000)
                    wait = steps.send(None)
                    continue
                response = await send()
                wait = steps.send(Answered.of(response))
        except StopIteration:
            return response

    def request(
        self, request: Callable[..., R], method: str, url: str, *, idempotency_key: Optional[str] = None, **more: Any
    ) -> R:
        """Calls `requests.request`, the `request` of a session or of an `httpx.Client`, or anything alike."""
        if idempotency_key is not None:
            more["headers"] = {**(more.get("headers") or {}), "Idempotency-Key": idempotency_key}
        return self.call(lambda: request(method, url, **more), method, idempotency_key)

    async def request_async(
        self,
        request: Callable[..., Awaitable[R]],
        method: str,
        url: str,
        *,
        idempotency_key: Optional[str] = None,
        **more: Any,
    ) -> R:
        """As `request`, for `httpx.AsyncClient` and anything alike."""
        if idempotency_key is not None:
            more["headers"] = {**(more.get("headers") or {}), "Idempotency-Key": idempotency_key}
        return await self.call_async(lambda: request(method, url, **more), method, idempotency_key)

    def urlopen(self, request: Request, *, timeout: float = 10.0) -> HTTPResponse:
        """Calls `urllib.request.urlopen`; raises `HTTPError` as that does, if the last answer is one."""

        def send() -> Union[HTTPResponse, ErrorAnswer]:
            try:
                return cast("HTTPResponse", urlopen(request, timeout=timeout))
            except HTTPError as error:
                return ErrorAnswer(error)

        # urllib writes names of fields like this.
        answer = self.call(send, request.get_method(), request.get_header("Idempotency-key"))
        if isinstance(answer, ErrorAnswer):
            raise answer.error
        return answer

    def _steps(self, method: str, key: Optional[str]) -> Generator[Optional[int], Optional[Answered[Any]], None]:
        """Yields None to send, and milliseconds to wait before that; is sent each answer."""
        start = self._waiting.monotonic_ms()
        self._budget.earn()
        for attempt in range(1, self._attempts + 1):
            if self._adaptive is not None and self._adaptive.refuses():
                if attempt > 1:
                    return  # the answer that there is says more
                raise Throttled("the API refuses most calls at the moment")
            answer = cast("Answered[Any]", (yield None))
            later = answer.says_later()
            if self._adaptive is not None:
                self._adaptive.answered(accepted=not later)
            if not later or attempt == self._attempts:
                return
            if answer.status != 429 and method.upper() not in IDEMPOTENT and key is None:
                return
            wait = self._wait_ms(attempt, answer)
            if self._waiting.monotonic_ms() - start + wait > self._deadline_ms or not self._budget.spend():
                return
            answer.discard()
            yield wait

    def _wait_ms(self, attempt: int, answer: Answered[Any]) -> int:
        draw = self._waiting.random()
        named = named_wait_ms(answer.header, self._waiting.now_ms())
        if named is not None:
            return named + int(draw * named / 10)
        backoff = min(self._base_ms << min(attempt - 1, 40), self._cap_ms)
        return int(backoff * (0.5 + draw) if self._equal else backoff * draw)


@dataclass(frozen=True)
class Answered(Generic[R]):
    """A response of whichever library."""

    response: R
    status: int
    headers: Mapping[str, Any] = field(repr=False)

    @staticmethod
    def of(response: R) -> Answered[R]:
        """Reads `status_code`, or `status`, and `headers`."""
        status = getattr(response, "status_code", None)
        status = getattr(response, "status", None) if status is None else status
        if not isinstance(status, int):
            raise TypeError(f"a {type(response).__name__} has no status: the call has to return a response")
        return Answered(response, status, cast("Any", response).headers)

    def header(self, name: str) -> Optional[str]:
        """The value of a field, its name in any case."""
        value = self.headers.get(name)
        if value is None:
            value = next((value for key, value in self.headers.items() if key.lower() == name.lower()), None)
        return value if isinstance(value, str) else None

    def says_later(self) -> bool:
        """True if the same call may succeed later."""
        if self.status in (429, 503):
            return True
        if self.status == 403:
            return (self.header("X-RateLimit-Remaining") or "").strip() == "0"
        return self.status == 400 and b"ThrottlingException" in self._body()

    def discard(self) -> None:
        """Gives its connection back before the next attempt."""
        close = getattr(self.response, "close", None)
        if callable(close) and not asyncio.iscoroutinefunction(close):
            close()

    def _body(self) -> bytes:
        # requests and httpx keep the body. One that streams is not read: its caller wants to.
        try:
            content = getattr(self.response, "content", b"")
        except Exception:  # httpx: the body was not read
            return b""
        return bytes(content[:_BODY_MAX]) if isinstance(content, (bytes, bytearray)) else b""


class ErrorAnswer:
    """An error of urllib as the response that it is, with a body that can be read twice."""

    def __init__(self, error: HTTPError) -> None:
        self.status = error.code
        self.headers = error.headers
        self.content = error.read(_BODY_MAX) if error.code == 400 else b""
        self.error = error
        if self.content:
            self.error = HTTPError(error.url, error.code, error.msg, error.headers, BytesIO(self.content))
            error.close()

    def close(self) -> None:
        """Gives the connection back."""
        self.error.close()


class _Budget:
    """Retries are at most a tenth of the calls, or one a second."""

    def __init__(self, monotonic_ms: Callable[[], int]) -> None:
        self._monotonic_ms = monotonic_ms
        self._lock = threading.Lock()
        self._balance = _BUDGET_MAX
        self._last_ms: Optional[int] = None

    def earn(self) -> None:
        """A call was made."""
        with self._lock:
            self._balance = min(self._balance + 1, _BUDGET_MAX)

    def spend(self) -> bool:
        """Whether one more retry is allowed."""
        with self._lock:
            now = self._monotonic_ms()
            rested = self._last_ms is None or now - self._last_ms >= 1000
            if self._balance < _RETRY_COST and not rested:
                return False
            self._balance = max(self._balance - _RETRY_COST, 0) if self._balance >= _RETRY_COST else self._balance
            self._last_ms = now
            return True
