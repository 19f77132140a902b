"""How long an API says to wait: `Retry-After` and the dialects of rate limit fields.

A field that cannot be read is as good as none, and so is a time that has passed.
"""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import Callable, List, Optional, Tuple

_DIGITS = re.compile(r"[0-9]{1,30}")
# One item of a structured list: a name, quoted or not, then parameters.
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_NAME = r"[a-z*][a-z0-9_\-.*]*"
_VALUE = rf'(?:{_QUOTED}|[^",; \t]*)'
_POLICY = re.compile(rf'[ \t]*(?:{_QUOTED}|[^",;= \t]+)((?:[ \t]*;[ \t]*{_NAME}(?:={_VALUE})?)*)')
_PARAMETER = re.compile(rf";[ \t]*({_NAME})=({_VALUE})")
_DRAFT_07 = re.compile(r"(?:^|,)[ \t]*reset=([0-9]{1,30})[ \t]*(?:,|$)")
_FIELD_CHARS_MAX = 8192

Header = Callable[[str], Optional[str]]


def named_wait_ms(header: Header, now_ms: int) -> Optional[int]:
    """Milliseconds that the response says to wait; None if it names no time, or one that has passed."""
    readers = (
        ("Retry-After", _retry_after),
        ("RateLimit", _rate_limit),
        ("RateLimit-Reset", _seconds),
        ("X-RateLimit-Reset", _reset),
    )
    for name, read in readers:
        value = header(name)
        wait = None if value is None or len(value) > _FIELD_CHARS_MAX else read(value.strip(), now_ms)
        if wait is not None:
            return wait if wait > 0 else None
    return None


def _seconds(value: str, _now_ms: int) -> Optional[int]:
    return int(value) * 1000 if _DIGITS.fullmatch(value) else None


def _retry_after(value: str, now_ms: int) -> Optional[int]:
    seconds = _seconds(value, now_ms)
    if seconds is not None:
        return seconds
    if not value[:1].isalpha():  # "-5" and "1.5" are no dates
        return None
    try:
        return int(parsedate_to_datetime(value).timestamp() * 1000) - now_ms
    except (TypeError, ValueError, OverflowError, IndexError):
        return None


def _reset(value: str, now_ms: int) -> Optional[int]:
    if not _DIGITS.fullmatch(value):
        return None
    number = int(value)
    if number > 10**12:
        return number - now_ms
    return number * 1000 - now_ms if number > 10**9 else number * 1000


def _rate_limit(value: str, _now_ms: int) -> Optional[int]:
    policies = _policies(value)
    spent = [wait for left, wait in policies if left == 0] or [wait for _, wait in policies]
    if spent:
        return max(spent) * 1000
    draft_07 = _DRAFT_07.search(value)
    return int(draft_07[1]) * 1000 if draft_07 else None


def _policies(value: str) -> List[Tuple[Optional[int], int]]:
    """What is left of each policy of draft 11, and the seconds until there is more; none if it cannot be read."""
    policies = []
    at = 0
    while at < len(value):
        match = _POLICY.match(value, at)
        if match is None:
            return []
        parameters = dict(_PARAMETER.findall(match[1]))
        if _DIGITS.fullmatch(parameters.get("t", "")):
            left = parameters.get("r", "")
            policies.append((int(left) if _DIGITS.fullmatch(left) else None, int(parameters["t"])))
        at = match.end()
        rest = value[at:].lstrip(" \t")
        if rest and not rest.startswith(","):
            return []
        at = len(value) - len(rest) + 1
    return policies
