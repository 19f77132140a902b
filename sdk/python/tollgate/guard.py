"""The middleware without a framework: what to ask for a request, and what to do with the decision.

The adapters (`asgi`, `wsgi`, `django`) read requests and write responses; everything that decides is here.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields, replace
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, Union, cast

from .address import TrustedProxies
from .decision import Answer, Decision
from .errors import InvalidPath
from .incoming import Incoming
from .local_decisions import bad_path
from .request import RequestFields
from .settings import Settings

_LOG = logging.getLogger("tollgate")
Costs = Mapping[str, int]


@dataclass(frozen=True)
class Result:
    """What became of a request: for `settle`, which says what it really cost."""

    status: int
    headers: Sequence[Tuple[str, str]]

    def header(self, name: str) -> Optional[str]:
        """The value of a field of the response."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


FAILED = Result(500, ())


@dataclass(frozen=True)
class Denial:
    """What `on_denied` answers instead of the server's body."""

    status: int
    body: bytes
    content_type: str = "application/json"


@dataclass(frozen=True)
class Guard:
    """Options of the middleware, the same for every framework."""

    identify: Optional[Callable[[Incoming], Any]] = None
    """Further fields of the request to ask about: `api_key`, `user_id`, `tier`, … Only what was verified."""
    skip: Optional[Callable[[Incoming], bool]] = None
    """Requests that are not asked about."""
    cost: Union[int, Callable[[Incoming], int]] = 1
    costs: Union[Costs, Callable[[Incoming], Optional[Costs]], None] = None
    """Amounts of further meters."""
    settle: Optional[Callable[[Incoming, Result], Costs]] = None
    """The real amounts once the response is there. Requests that have `costs` are then reserved, and settled after."""
    shadow: bool = False
    """Ask and report, but pass everything on."""
    on_denied: Optional[Callable[[Incoming, Decision], Optional[Denial]]] = None
    on_decision: Optional[Callable[[Incoming, Decision], None]] = None
    trusted_proxies: Sequence[str] = ()
    """Networks whose `X-Forwarded-For` counts, such as `10.0.0.0/8`."""
    case_insensitive_paths: bool = False
    """Set it if the router folds case, and write rules in lower case."""
    endpoint: Optional[Callable[[Incoming], str]] = None
    """Replaces `METHOD /path`, for example by the template of the route."""

    def proxies(self) -> TrustedProxies:
        """The networks, read."""
        return TrustedProxies(self.trusted_proxies)

    def is_skipped(self, incoming: Incoming) -> bool:
        """Whether the request is not asked about."""
        return self.skip is not None and self.skip(incoming)

    def fields(self, incoming: Incoming, identity: Optional[Mapping[str, Any]]) -> RequestFields:
        """The request to ask about."""
        fields: Dict[str, Any] = {}
        if incoming.address is not None:
            fields["ip"] = incoming.address
        fields.update(identity or {})
        if self.endpoint is not None:
            fields["endpoint"] = self.endpoint(incoming)
        else:
            fields["endpoint"] = incoming.endpoint(self.case_insensitive_paths)
        cost = self.cost(incoming) if callable(self.cost) else self.cost
        if cost != 1:
            fields["cost"] = cost
        costs = self.costs(incoming) if callable(self.costs) else self.costs
        if costs is not None:
            fields["costs"] = dict(costs)
        return cast("RequestFields", fields)

    def reserves(self, fields: RequestFields) -> bool:
        """Whether the request is reserved now and settled when its response is there."""
        return self.settle is not None and "costs" in fields

    def refusal(self, incoming: Incoming, decision: Union[Decision, InvalidPath]) -> Optional[Answer]:
        """What to answer instead of passing the request on; None to pass it on."""
        if isinstance(decision, InvalidPath):
            return None if self.shadow else bad_path(decision.code, decision.detail)
        if self.on_decision is not None:
            self.on_decision(incoming, decision)
        if decision.refusal is None or self.shadow:
            return None
        denial = None if self.on_denied is None else self.on_denied(incoming, decision)
        if denial is None:
            return decision.refusal
        return replace(decision.refusal, status=denial.status, body=denial.body, content_type=denial.content_type)

    def real_costs(self, incoming: Incoming, result: Result) -> Optional[Costs]:
        """What the request really cost; None leaves the estimate, if `settle` itself fails."""
        if self.settle is None:
            return None
        try:
            return self.settle(incoming, result)
        except Exception:
            _LOG.exception("settle failed: the reserved amounts stay charged")
            return None


def client_options(options: Dict[str, Any]) -> Dict[str, Any]:
    """Takes those options that are settings of the client out of those of the middleware."""
    names = [setting.name for setting in fields(Settings) if setting.name in options]
    return {name: options.pop(name) for name in names}


def fields_to_add(decision: Union[Decision, InvalidPath], shadow: bool) -> Sequence[Tuple[str, str]]:
    """Header fields of the decision for the response of the application."""
    return () if shadow or isinstance(decision, InvalidPath) else decision.fields


def delay_seconds(decision: Union[Decision, InvalidPath], shadow: bool) -> float:
    """How long a rule that queues holds the request back."""
    return 0.0 if shadow or isinstance(decision, InvalidPath) else decision.delay_ms / 1000
