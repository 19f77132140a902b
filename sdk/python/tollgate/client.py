"""The client for programs that wait for an answer; `AsyncClient` is its asyncio twin."""

from __future__ import annotations

import os
import ssl
import weakref
from typing import TYPE_CHECKING, Any, Callable, List, Mapping, Optional, Sequence, TypeVar, Union

from .calls import Calls, Steps, drive
from .connection import ConnectionPool, Deadline
from .decision import Decision
from .errors import Refused
from .limit import Limit
from .request import RequestFields
from .settings import Settings
from .slots import KeptReservation, Renewer, Slot

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class Client:
    """Asks Tollgate. Threads may share it, and a process that was forked may go on using it.

    `timeout` of a call is in seconds and replaces that of the settings.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        timeout: float = 0.25,
        on_error: Optional[str] = None,
        fallback: Union[Limit, str, None] = None,
        connections_max: int = 32,
        tls: Optional[ssl.SSLContext] = None,
        on_unavailable: Optional[Callable[[Exception], None]] = None,
    ) -> None:
        settings = Settings.given(
            url=url,
            token=token,
            timeout=timeout,
            on_error=on_error,
            fallback=fallback,
            connections_max=connections_max,
            tls=tls,
            on_unavailable=on_unavailable,
        )
        self._start(settings)

    @classmethod
    def from_settings(cls, settings: Settings) -> Client:
        """A client with all settings, the clock included."""
        client = cls.__new__(cls)
        client._start(settings)
        return client

    def _start(self, settings: Settings) -> None:
        self.settings = settings
        self._calls = Calls(settings)
        self._pool = ConnectionPool(settings)
        self._renewer = Renewer(settings.clock)
        _CLIENTS.add(self)

    def check(self, *, timeout: Optional[float] = None, **fields: Unpack[RequestFields]) -> Decision:
        """One decision: may this request pass?"""
        return self._run(self._calls.check(fields), timeout)

    def check_for_user(self, fields: RequestFields, *, timeout: Optional[float] = None) -> Decision:
        """One decision with what a user should see of it: header fields, and a `refusal` to answer with."""
        return self._run(self._calls.check(fields, for_user=True), timeout)

    def check_batch(
        self, requests: Sequence[RequestFields], *, timeout: Optional[float] = None
    ) -> List[Union[Decision, Refused]]:
        """Decisions in the same order; a request whose path is malformed has its error in its place."""
        return self._run(self._calls.check_batch(requests), timeout)

    def reserve(self, *, timeout: Optional[float] = None, **fields: Unpack[RequestFields]) -> Decision:
        """A decision about estimates. Settle its `reservation` with the real amounts."""
        return self._run(self._calls.reserve(fields), timeout)

    def reserve_for_user(self, fields: RequestFields, *, timeout: Optional[float] = None) -> Decision:
        """As `reserve`, with what a user should see of it."""
        return self._run(self._calls.reserve(fields, for_user=True), timeout)

    def extend(self, reservation: str, costs: Mapping[str, int], *, timeout: Optional[float] = None) -> Decision:
        """The next step of a reservation, whose new `reservation` replaces the old one."""
        return self._run(self._calls.extend(reservation, costs), timeout)

    def settle(
        self, reservation: str, costs: Union[int, Mapping[str, int]], *, timeout: Optional[float] = None
    ) -> Mapping[str, Any]:
        """Settles a reservation. If it raises `Unavailable`, settling again is safe."""
        return self._run(self._calls.settle(reservation, costs), timeout)

    def acquire_slot(self, *, timeout: Optional[float] = None, **fields: Unpack[RequestFields]) -> Slot:
        """A slot, which renews itself until the `with` block ends. Ask it whether it is `allowed`."""
        decision = self._run(self._calls.acquire(fields), timeout)
        return Slot(self, self._renewer, decision)

    def keep(self, reserved: Decision) -> KeptReservation:
        """Renews the slots of a reservation until `stop`, which is to be called before it is settled."""
        return KeptReservation(self, self._renewer, reserved)

    def renew_slot(self, slot: str, *, timeout: Optional[float] = None) -> Mapping[str, Any]:
        """Renews a slot by its receipt; `Slot` does that by itself."""
        return self._run(self._calls.renew(slot), timeout)

    def release_slot(self, slot: str, *, timeout: Optional[float] = None) -> Mapping[str, Any]:
        """Releases a slot by its receipt; `Slot` does that by itself."""
        return self._run(self._calls.release(slot), timeout)

    def usage(self, *, timeout: Optional[float] = None, **client: Unpack[RequestFields]) -> Mapping[str, Any]:
        """What a client has used, by rule: `usage(api_key="abc")`."""
        return self._run(self._calls.usage(client), timeout)

    def close(self) -> None:
        """Closes the connections that are not in use. The client opens new ones if it is used again."""
        self._pool.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, steps: Steps[T], timeout: Optional[float]) -> T:
        deadline = Deadline(self.settings.clock, self.settings.timeout if timeout is None else timeout)
        return drive(steps, lambda request: self._pool.send(request, deadline))

    def _reset_after_fork(self) -> None:
        self._calls.reset_after_fork()
        self._pool.reset_after_fork()
        self._renewer = Renewer(self.settings.clock)


_CLIENTS: weakref.WeakSet[Client] = weakref.WeakSet()


def _after_fork() -> None:
    for client in list(_CLIENTS):
        client._reset_after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_after_fork)
