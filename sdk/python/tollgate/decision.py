"""Decisions: what the server, or this process in its place, says to a request."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .limit import Outcome

# Header fields of a decision; nothing else of the server's answer reaches a user.
_FIELD_PREFIXES = ("ratelimit", "x-ratelimit-", "x-rate-limit-")
_PROBLEM = "application/problem+json"


@dataclass(frozen=True)
class Answer:
    """A response for the user of the application."""

    status: int
    fields: Tuple[Tuple[str, str], ...]
    body: bytes
    content_type: str = _PROBLEM

    def all_fields(self) -> List[Tuple[str, str]]:
        """The header fields, those of the body included."""
        return [*self.fields, ("Content-Type", self.content_type), ("Content-Length", str(len(self.body)))]


@dataclass(frozen=True)
class Decision:
    """Whether a request may pass, and what its caller may know."""

    allowed: bool
    mode: str
    """What decided: `store` and so on as the server says; `open`, `closed` or `fallback` without the server."""
    limit: Optional[int] = None
    remaining: Optional[int] = None
    reset_at: Optional[int] = None
    retry_after: Optional[int] = None
    retry_after_ms: Optional[int] = None
    never: bool = False
    rule: Optional[str] = None
    delay_ms: int = 0
    reservation: Optional[str] = None
    slot: Optional[str] = None
    ttl_ms: Optional[int] = None
    members: Mapping[str, Any] = None  # type: ignore[assignment]
    """All of it, as the server's JSON spells it."""
    fields: Tuple[Tuple[str, str], ...] = ()
    """Header fields for the user, if the server was asked for them."""
    refusal: Optional[Answer] = None
    """What to answer the user, if the request may not pass."""

    def __bool__(self) -> bool:
        raise TypeError("a decision is not a condition: ask for decision.allowed")


def user_fields(fields: List[Tuple[str, str]]) -> Tuple[Tuple[str, str], ...]:
    """Those header fields of an answer that are about the limit."""
    return tuple((name, value) for name, value in fields if name.lower().startswith(_FIELD_PREFIXES))


def _whole(members: Mapping[str, Any], name: str) -> Optional[int]:
    value = members.get(name)
    return value if type(value) is int else None


def _text(members: Mapping[str, Any], name: str) -> Optional[str]:
    value = members.get(name)
    return value if isinstance(value, str) else None


def from_members(members: Mapping[str, Any], **more: Any) -> Decision:
    """A decision from its JSON, whose `allowed` is known to be a boolean."""
    return Decision(
        allowed=members["allowed"] is True,
        mode=_text(members, "mode") or "store",
        limit=_whole(members, "limit"),
        remaining=_whole(members, "remaining"),
        reset_at=_whole(members, "reset_at"),
        retry_after=_whole(members, "retry_after"),
        retry_after_ms=_whole(members, "retry_after_ms"),
        never=members.get("never") is True,
        rule=_text(members, "rule"),
        delay_ms=max(0, _whole(members, "delay_ms") or 0),
        reservation=_text(members, "reservation"),
        slot=_text(members, "slot"),
        ttl_ms=_whole(members, "ttl_ms"),
        members=members,
        **more,
    )


def without_server(allowed: bool) -> Decision:
    """The decision of `open` and `closed`."""
    members: Dict[str, Any] = {"allowed": allowed, "limit": None, "remaining": None, "reset_at": None}
    members.update(retry_after=None, retry_after_ms=None, rule=None, mode="open" if allowed else "closed")
    if allowed:
        return from_members(members)
    wait = random.randint(1, 3)  # so that callers do not come back together
    members.update(retry_after=wait, retry_after_ms=wait * 1000, error_code="store_unavailable")
    problem = {
        "type": "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
        "title": "Service unavailable",
        "status": 503,
        "detail": "Limits cannot be checked at the moment, and requests are refused meanwhile.",
        "error": "store_unavailable",
        "error_code": "store_unavailable",
        "allowed": False,
        "retry_after": wait,
    }
    return from_members(members, refusal=Answer(503, (("Retry-After", str(wait)),), _json(problem)))


def from_fallback(outcome: Outcome) -> Decision:
    """The decision of the limiter of this process."""
    wait_ns = outcome.retry_after_ns
    wait = None if outcome.allowed or wait_ns is None else -(-wait_ns // 10**9)
    wait_ms = None if outcome.allowed or wait_ns is None else -(-wait_ns // 10**6)
    never = not outcome.allowed and wait is None
    members: Dict[str, Any] = {"allowed": outcome.allowed, "limit": outcome.limit, "remaining": outcome.remaining}
    members.update(reset_at=None, retry_after=wait, retry_after_ms=wait_ms, rule=None, mode="fallback")
    if never:
        members["never"] = True
    if outcome.allowed:
        return from_members(members)
    problem = {
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Quota exceeded",
        "status": 429,
        "error": "rate_limited",
        "error_code": "cost_too_high" if never else "rate_limited",
        "allowed": False,
        "limit": outcome.limit,
        "remaining": outcome.remaining,
        "retry_after": wait,
    }
    fields = () if wait is None else (("Retry-After", str(max(wait, 1))),)
    return from_members(members, refusal=Answer(429, fields, _json(problem)))


def bad_path(code: str, detail: str) -> Answer:
    """What a user is told whose path or method cannot be read in one way."""
    problem = {"type": "about:blank", "title": "Bad request", "status": 400, "detail": detail, "code": code}
    return Answer(400, (), _json(problem))


def _json(members: Mapping[str, Any]) -> bytes:
    return json.dumps(members, separators=(",", ":")).encode()
