"""The circuit breaker: no calls to a server that does not answer."""

from __future__ import annotations

import threading
from typing import Callable, Optional

FAILURES_MAX = 5
PAUSE_NS = 10**9
PAUSE_NS_MAX = 30 * 10**9


class Breaker:
    """Opens after `FAILURES_MAX` failures in a row, then lets one call pass after each pause.

    The lock is held for a few instructions and never over a call, so that event loops may use it.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._pause_ns = PAUSE_NS
        self._try_at = 0
        self._probing = False

    def admit(self) -> Optional[Permit]:
        """A permit to make a call, which is told what came of it; None while no call is to be made."""
        with self._lock:
            if self._failures < FAILURES_MAX:
                return Permit(self, is_probe=False)
            if self._probing or self._clock() < self._try_at:
                return None
            self._probing = True
            return Permit(self, is_probe=True)

    def reset_after_fork(self) -> None:
        """The lock of the parent may be held by a thread that does not exist here, as may the probing call."""
        self._lock = threading.Lock()
        self._probing = False

    def _succeed(self, is_probe: bool) -> None:
        with self._lock:
            self._failures, self._pause_ns = 0, PAUSE_NS
            self._probing = self._probing and not is_probe

    def _fail(self, is_probe: bool) -> None:
        with self._lock:
            was_open = self._failures >= FAILURES_MAX
            self._failures = min(self._failures + 1, FAILURES_MAX)
            if is_probe:
                self._probing = False
                self._pause_ns = min(self._pause_ns * 2, PAUSE_NS_MAX) if was_open else self._pause_ns
            # Calls that were already under way when it opened do not prolong the pause.
            if self._failures == FAILURES_MAX and (is_probe or not was_open):
                self._try_at = self._clock() + self._pause_ns

    def _abandon(self, is_probe: bool) -> None:
        with self._lock:
            self._probing = self._probing and not is_probe


class Permit:
    """Permission for one call; exactly one of its methods is called."""

    __slots__ = ("_breaker", "is_probe")

    def __init__(self, breaker: Breaker, is_probe: bool) -> None:
        self._breaker = breaker
        self.is_probe = is_probe

    def success(self) -> None:
        """The server answered."""
        self._breaker._succeed(self.is_probe)

    def failure(self) -> None:
        """The server did not answer, or nothing that can be read."""
        self._breaker._fail(self.is_probe)

    def abandon(self) -> None:
        """The caller left before it was known."""
        self._breaker._abandon(self.is_probe)
