"""Adaptive throttling: calls that an overloaded API would refuse are refused here, which costs it nothing.

A call is refused with probability max(0, (requests - K * accepts) / (requests + 1)), counted over two minutes.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Callable, Deque, List

K = 2
_WINDOW_MS = 120_000
_SLICE_MS = 1_000


class AdaptiveThrottle:
    """Counts in slices of a second, so that its size does not depend on the load."""

    def __init__(self, monotonic_ms: Callable[[], int], random: Callable[[], float]) -> None:
        self._monotonic_ms = monotonic_ms
        self._random = random
        self._lock = threading.Lock()
        self._slices: Deque[List[int]] = deque()  # [begin, requests, accepts]
        self._requests = 0
        self._accepts = 0

    def refuses(self) -> bool:
        """Whether this attempt is refused; it counts as a request either way."""
        with self._lock:
            now = self._slice()
            excess = self._requests - K * self._accepts
            refused = excess > 0 and self._random() < excess / (self._requests + 1)
            now[1] += 1
            self._requests += 1
            return refused

    def answered(self, accepted: bool) -> None:
        """What came of an attempt that was not refused here."""
        with self._lock:
            self._slice()[2] += accepted
            self._accepts += accepted

    def _slice(self) -> List[int]:
        now = self._monotonic_ms()
        while self._slices and self._slices[0][0] <= now - _WINDOW_MS:
            _, requests, accepts = self._slices.popleft()
            self._requests -= requests
            self._accepts -= accepts
        begin = now - now % _SLICE_MS
        if not self._slices or self._slices[-1][0] != begin:
            self._slices.append([begin, 0, 0])
        return self._slices[-1]
