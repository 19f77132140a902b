"""Decisions of this process, while there is none of the server: what its user sees is what the server would write."""

from __future__ import annotations

import random
from typing import Any, Dict, List, Tuple

from .decision import Answer, Decision, from_members, problem, user_fields
from .limit import Limit, Outcome

RULE = "fallback"
_SECOND = 10**9


def of_policy(allowed: bool) -> Decision:
    """The decision of `open` and `closed`."""
    members: Dict[str, Any] = {"allowed": allowed, "limit": None, "remaining": None, "reset_at": None}
    members.update(retry_after=None, retry_after_ms=None, rule=None, mode="open" if allowed else "closed")
    if allowed:
        return from_members(members)
    document = {
        "type": "about:blank",
        "title": "Service unavailable",
        "status": 503,
        "detail": "The rate limiter cannot be reached.",
        "error": "limiter_unavailable",
        "error_code": "limiter_unavailable",
    }
    members.update(retry_after=1, retry_after_ms=1000, error_code="limiter_unavailable")
    return from_members(members, refusal=problem(document, [("Retry-After", "1")]))


def of_fallback(limit: Limit, outcome: Outcome, wall_ns: int) -> Decision:
    """The decision of the fallback limiter, as one of a rule of that name."""
    wait_ns = None if outcome.allowed else outcome.retry_after_ns
    members: Dict[str, Any] = {
        "allowed": outcome.allowed,
        "limit": outcome.limit,
        "remaining": outcome.remaining,
        "reset_at": _ceil(wall_ns + outcome.reset_after_ns, _SECOND),
        "retry_after": None if wait_ns is None else max(1, _ceil(wait_ns, _SECOND)),
        "retry_after_ms": None if wait_ns is None else max(1, _ceil(wait_ns, 10**6)),
    }
    if not outcome.allowed and wait_ns is None:
        members["never"] = True
    members["rule"] = RULE
    fields = _fields(limit, outcome, members)
    refusal = None if outcome.allowed else _refusal(members, fields)
    return from_members({**members, "mode": "fallback"}, fields=user_fields(fields), refusal=refusal)


def bad_path(code: str, detail: str) -> Answer:
    """What a user is told whose method or path can be read in more than one way."""
    return problem({"type": "about:blank", "title": "Bad request", "status": 400, "detail": detail, "code": code})


def _fields(limit: Limit, outcome: Outcome, members: Dict[str, Any]) -> List[Tuple[str, str]]:
    fields = []
    wait = members["retry_after"]
    if wait is not None:
        # As the server: up to a tenth is added, so that callers do not come back together.
        fields.append(("Retry-After", str(wait + random.randint(0, wait // 10))))
    burst = "" if outcome.limit == limit.requests else f";tollgate-burst={outcome.limit}"
    grows = "" if outcome.next_unit_ns is None else f";t={_ceil(outcome.next_unit_ns, _SECOND)}"
    return [
        *fields,
        ("X-RateLimit-Limit", str(outcome.limit)),
        ("X-RateLimit-Remaining", str(outcome.remaining)),
        ("X-RateLimit-Reset", str(members["reset_at"])),
        ("X-RateLimit-Resource", RULE),
        ("RateLimit-Policy", f'"{RULE}";q={limit.requests};w={_ceil(limit.window_ns, _SECOND)}{burst}'),
        ("RateLimit", f'"{RULE}";r={outcome.remaining}{grows}'),
    ]


def _refusal(members: Dict[str, Any], fields: List[Tuple[str, str]]) -> Answer:
    never = "never" in members
    detail = f"The limit of the rule '{RULE}' is reached."
    message = f"Too many requests. Retry after {members['retry_after']}s."
    if never:
        detail = f"The request costs more than the rule '{RULE}' ever allows at once."
        message = "This request can never pass: its cost exceeds the limit."
    document = {
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Quota exceeded",
        "status": 429,
        "detail": detail,
        "violated-policies": [RULE],
        "error": "rate_limited",
        "message": message,
        "error_code": "cost_too_high" if never else "rate_limited",
        **members,
    }
    return problem(document, fields)


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)
