"""GCRA in integer nanoseconds, as the server computes it.

The state is one time, the moment at which the bucket will be full again. A request of cost n pushes it `n * interval`
ahead and passes while it then lies at most `burst * interval` ahead of now. Nothing is rounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional, Tuple

_UNITS_NS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
_TEXT = re.compile(r"([0-9]{1,15})/([0-9]{1,9})(ms|s|m|h|d)")
_SPAN_NS_MAX = 2**63 - 1
COST_MAX = 2**53 - 1


@dataclass(frozen=True)
class Outcome:
    """What a bucket says to one request."""

    allowed: bool
    limit: int
    remaining: int
    retry_after_ns: Optional[int]
    """0 if allowed; None if waiting does not help."""
    reset_after_ns: int
    next_unit_ns: Optional[int]


@dataclass(frozen=True)
class Limit:
    """`requests` units per `window_ns`, at most `burst` at once (absent: `requests`)."""

    requests: int
    window_ns: int
    burst: Optional[int] = None

    def __post_init__(self) -> None:
        if self.requests < 0 or self.window_ns <= 0 or self.capacity < 0:
            raise ValueError("a limit has requests >= 0, a window > 0 and a burst >= 0")
        if not self.interval_ns:
            raise ValueError("a limit allows at most one unit in a nanosecond")
        if self.interval_ns * self.capacity > _SPAN_NS_MAX:
            raise ValueError("a bucket that takes more than 292 years to fill")

    @staticmethod
    def parse(text: str) -> Limit:
        """Reads `5/1m`: requests, and the window with its unit (ms, s, m, h, d)."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a limit; write 100/1m: requests, and a window in ms, s, m, h or d")
        return Limit(int(match[1]), int(match[2]) * _UNITS_NS[match[3]])

    @property
    def _blocks(self) -> bool:
        return self.requests == 0 or self.burst == 0

    @property
    def capacity(self) -> int:
        """Units that fit at once; 0 refuses everything."""
        if self._blocks:
            return 0
        return self.requests if self.burst is None else self.burst

    @property
    def interval_ns(self) -> int:
        """Time in which one unit is returned."""
        return 1 if self._blocks else self.window_ns // self.requests

    def decide(self, full_at_ns: Optional[int], now_ns: int, cost: int = 1) -> Outcome:
        """What the bucket says to a request, without recording it."""
        interval, capacity = self.interval_ns, self.capacity
        tolerance = interval * capacity
        ahead = self._ahead(full_at_ns, now_ns)
        allowed = ahead + interval * cost <= tolerance and capacity > 0
        wait: Optional[int] = 0
        if not allowed:
            wait = None if cost > capacity or capacity == 0 else ahead + interval * cost - tolerance
        after = ahead + interval * cost if allowed else ahead
        remaining = max(0, tolerance - after) // interval
        next_unit = after + interval * (remaining + 1) - tolerance if after > 0 else None
        return Outcome(allowed, capacity, remaining, wait, after, next_unit)

    def take(self, full_at_ns: Optional[int], now_ns: int, cost: int = 1) -> Tuple[Outcome, Optional[int]]:
        """Decides a request, and returns the bucket's next state with the outcome."""
        outcome = self.decide(full_at_ns, now_ns, cost)
        if cost == 0 or outcome.reset_after_ns == 0:
            return outcome, full_at_ns
        # Also after a refusal: what a clock that stepped back cut off stays cut off.
        return outcome, now_ns + outcome.reset_after_ns

    def _ahead(self, full_at_ns: Optional[int], now_ns: int) -> int:
        # A clock that stepped back makes no caller wait for longer than one full bucket.
        bound = self.interval_ns * self.capacity
        return 0 if full_at_ns is None else max(0, min(full_at_ns - now_ns, bound))
