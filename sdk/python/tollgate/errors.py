"""What can go wrong, as types: whose fault it is, and whether the call may be repeated."""

from __future__ import annotations

from typing import Optional


class TollgateError(Exception):
    """Any failure of a call to Tollgate."""


class Unavailable(TollgateError):
    """There is no answer, and the server may have been charged: the call is not repeated."""


class NotSent(Unavailable):
    """Nothing of the call reached the server: it may be repeated."""


class PoolExhausted(NotSent):
    """All connections were in use until the deadline. Says nothing about the server."""


class CircuitOpen(NotSent):
    """The circuit breaker makes no call at the moment."""


class Refused(TollgateError):
    """The server answered, but not with what was asked for: a status of 4xx or 5xx with a code."""

    def __init__(self, status: int, code: str, detail: str, field: Optional[str] = None) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status = status
        self.code = code
        self.detail = detail
        self.field = field


class InvalidPath(Refused):
    """The application's caller sent a path or a method that servers could read differently, or a text that the server
    cannot read, mostly because it is too long. Answer 400, and never pass such a request on."""


class RateLimited(TollgateError):
    """Raised by the decorator: a limit refuses the call."""

    def __init__(self, retry_after: Optional[int]) -> None:
        wait = "" if retry_after is None else f"; retry after {retry_after} s"
        super().__init__(f"rate limited{wait}")
        self.retry_after = retry_after
