"""Slots of rules that count requests in flight: renewed while the work lasts, released when it ends."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Callable, Dict, Optional, Protocol

from .decision import Decision
from .errors import TollgateError

if TYPE_CHECKING:
    from .client import Client

_LOG = logging.getLogger("tollgate")
TTL_MS = 30_000


def renewal_interval_ns(decision: Decision) -> int:
    """A third of the time to live: two renewals may fail before a slot is lost."""
    ttl = decision.ttl_ms if decision.ttl_ms is not None and decision.ttl_ms > 0 else TTL_MS
    return max(ttl, 30) * 10**6 // 3


class Renewable(Protocol):
    """What is renewed from time to time."""

    decision: Decision

    def renew(self) -> None:
        """Renews it once."""


class Slot:
    """A slot, or the refusal of one. Use it in a `with` block."""

    def __init__(self, client: Client, renewer: Renewer, decision: Decision) -> None:
        self._client = client
        self._renewer = renewer
        self._receipt = decision.slot if decision.allowed else None
        self.decision = decision
        self.lost = False
        """True once the server said that the slot has expired: the work has no claim any more."""
        if self._receipt is not None:
            renewer.add(self)

    @property
    def allowed(self) -> bool:
        """Whether the work may begin."""
        return self.decision.allowed

    def release(self) -> bool:
        """Gives the slot back; True if it was still held. If the server is away, the slot expires by itself."""
        receipt, self._receipt = self._receipt, None
        if receipt is None:
            return False
        self._renewer.remove(self)
        try:
            return self._client.release_slot(receipt).get("released") is True
        except TollgateError as error:
            _LOG.warning("a slot was not released and expires by itself: %s", error)
            return False

    def renew(self) -> None:
        """Renews it once, ahead of time."""
        receipt = self._receipt
        if receipt is None:
            return
        try:
            renewed = self._client.renew_slot(receipt).get("renewed")
        except TollgateError as error:
            _LOG.warning("a slot was not renewed: %s", error)
            return
        if renewed is False and self._receipt is not None:
            self.lost = True
            self._renewer.remove(self)

    def __enter__(self) -> Slot:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class KeptReservation:
    """A reservation whose slots are renewed until it is about to be settled."""

    def __init__(self, client: Client, renewer: Renewer, decision: Decision) -> None:
        self._client = client
        self._renewer = renewer
        self.decision = decision
        if decision.reservation is not None and decision.ttl_ms is not None:  # else it has no slots
            renewer.add(self)

    def renew(self) -> None:
        """Renews it once."""
        assert self.decision.reservation is not None
        try:
            self._client.renew_slot(self.decision.reservation)
        except TollgateError as error:
            _LOG.warning("the slots of a reservation were not renewed: %s", error)

    def stop(self) -> None:
        """Renews it no more."""
        self._renewer.remove(self)


class Renewer:
    """One thread for all slots of a client, there only while there are slots."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._due: Dict[Renewable, int] = {}
        self._thread: Optional[threading.Thread] = None

    def add(self, slot: Renewable) -> None:
        """Renews a slot from now on."""
        with self._changed:
            self._due[slot] = self._clock() + renewal_interval_ns(slot.decision)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tollgate-slots", daemon=True)
                self._thread.start()
            self._changed.notify()

    def remove(self, slot: Renewable) -> None:
        """Renews it no more."""
        with self._changed:
            self._due.pop(slot, None)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            slot = self._next()
            if slot is None:
                return
            slot.renew()

    def _next(self) -> Optional[Renewable]:
        """Waits for the slot that is due first; None if there is none left."""
        with self._changed:
            while self._due:
                slot = min(self._due, key=self._due.__getitem__)
                wait_ns = self._due[slot] - self._clock()
                if wait_ns <= 0:
                    self._due[slot] = self._clock() + renewal_interval_ns(slot.decision)
                    return slot
                self._changed.wait(wait_ns / 10**9)
            self._thread = None
            return None
