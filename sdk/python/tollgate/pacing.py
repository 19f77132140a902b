"""Pacing of calls: `acquire` waits until the limit has room, first come, first served."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Awaitable, Callable, Optional, Union

from .limit import Limit


class Pacer:
    """A limit of this process that callers wait for. Threads and tasks may share it.

    Every caller takes its place when it asks, so that none is overtaken and nothing has to be woken.
    """

    def __init__(
        self,
        limit: Union[Limit, str],
        *,
        clock: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
        sleep_async: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._limit = Limit.parse(limit) if isinstance(limit, str) else limit
        self._clock = clock
        self._sleep = sleep
        self._sleep_async = sleep_async
        self._lock = threading.Lock()
        self._full_at_ns = 0

    def acquire(self, units: int = 1, *, timeout: Optional[float] = None) -> bool:
        """Waits for room, at most `timeout` seconds; False, and at once, if there is none until then."""
        wait_ns = self._take(units, timeout)
        if wait_ns:
            self._sleep(wait_ns / 10**9)
        return wait_ns is not None

    async def acquire_async(self, units: int = 1, *, timeout: Optional[float] = None) -> bool:
        """As `acquire`, without blocking the event loop. A caller that is cancelled has used its units."""
        wait_ns = self._take(units, timeout)
        if wait_ns:
            await self._sleep_async(wait_ns / 10**9)
        return wait_ns is not None

    def _take(self, units: int, timeout: Optional[float]) -> Optional[int]:
        limit = self._limit
        if not 0 <= units <= limit.capacity:
            raise ValueError(f"{units} units never fit a limit of {limit.capacity} at once")
        with self._lock:
            now = self._clock()
            full_at = max(self._full_at_ns, now) + units * limit.interval_ns
            wait_ns = max(0, full_at - limit.interval_ns * limit.capacity - now)
            if timeout is not None and wait_ns > timeout * 10**9:
                return None
            self._full_at_ns = full_at
            return wait_ns
