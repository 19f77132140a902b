"""The limiter of this process, for while the server is away.

At most `KEYS_MAX` buckets. One is dropped only when it equals an unused one; while there is none to drop, new keys
share a bucket, so that a flood of keys can neither take memory nor let others pass for free.
"""

from __future__ import annotations

import hashlib
import os
import threading
from typing import Callable, Dict

from .limit import Limit, Outcome

KEYS_MAX = 10_000
_OVERFLOW = b""


class FallbackLimiter:
    """Buckets of one limit by key. Threads may share it."""

    def __init__(self, limit: Limit, clock: Callable[[], int], keys_max: int = KEYS_MAX) -> None:
        self.limit = limit
        self._clock = clock
        self._keys_max = keys_max
        self._lock = threading.Lock()
        self._full_at: Dict[bytes, int] = {}
        self._next_sweep_ns = 0
        self._salt = os.urandom(16)  # keys are not kept, and buckets cannot be aimed at

    def decide(self, key: str, cost: int = 1, peek: bool = False) -> Outcome:
        """Decides one request of a key, and records it if it may pass."""
        name = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16, key=self._salt).digest()
        with self._lock:
            now = self._clock()
            name = self._bucket(name, now)
            full_at = self._full_at.get(name)
            outcome, after = self.limit.take(full_at, now, cost)
            if after is not None and not peek:
                self._full_at[name] = after
            return outcome

    def reset_after_fork(self) -> None:
        """The lock of the parent may be held by a thread that does not exist here."""
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._full_at)

    def _bucket(self, name: bytes, now: int) -> bytes:
        if name in self._full_at or len(self._full_at) < self._keys_max:
            return name
        if now >= self._next_sweep_ns:
            self._full_at = {key: full_at for key, full_at in self._full_at.items() if full_at > now}
            # Nothing can be dropped before the first of them is full: no sweep per request.
            self._next_sweep_ns = min(self._full_at.values(), default=now)
        return name if len(self._full_at) < self._keys_max else _OVERFLOW
