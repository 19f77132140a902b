"""Decisions: what the server, or this process in its place, says to a request."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence, Tuple

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

    def all_fields(self) -> Tuple[Tuple[str, str], ...]:
        """The header fields, those of the body included."""
        about_body = (("Content-Type", self.content_type), ("Content-Length", str(len(self.body))))
        return (*about_body, ("Cache-Control", "no-store"), *self.fields)


def problem(members: Mapping[str, Any], fields: Sequence[Tuple[str, str]] = ()) -> Answer:
    """An answer with a problem document (RFC 9457), whose status it has."""
    body = json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
    return Answer(members["status"], tuple(fields), body)


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
    members: Mapping[str, Any] = field(default_factory=dict)
    """All of it, as the server's JSON spells it."""
    fields: Tuple[Tuple[str, str], ...] = ()
    """Header fields for the user, if the server was asked for them."""
    refusal: Optional[Answer] = None
    """What to answer the user, if the request may not pass."""

    def __bool__(self) -> bool:
        raise TypeError("a decision is not a condition: ask for decision.allowed")


def user_fields(fields: Sequence[Tuple[str, str]]) -> Tuple[Tuple[str, str], ...]:
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
