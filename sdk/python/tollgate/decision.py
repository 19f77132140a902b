"""Decisions: what the server, or this process in its place, says to a request."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

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


# Members that are attributes too, and the type that they have.
_TYPES = {
    **dict.fromkeys(("limit", "remaining", "reset_at", "retry_after", "retry_after_ms", "delay_ms", "ttl_ms"), int),
    **dict.fromkeys(("mode", "rule", "reservation", "slot"), str),
    **dict.fromkeys(("allowed", "never"), bool),
}


def from_members(
    members: Mapping[str, Any], fields: Tuple[Tuple[str, str], ...] = (), refusal: Optional[Answer] = None
) -> Decision:
    """A decision from its JSON, whose `allowed` is known to be a boolean. What has another type is not taken.

    It is made without `__init__`, which sets each attribute of a frozen class by a call: half of the time it takes.
    """
    type_of = _TYPES.get
    values: Dict[str, Any] = {name: value for name, value in members.items() if type(value) is type_of(name)}
    values["mode"] = values.get("mode") or "store"
    if values.get("delay_ms", 0) < 0:
        del values["delay_ms"]
    decision = object.__new__(Decision)
    decision.__dict__.update(values, members=members, fields=fields, refusal=refusal)
    return decision
