"""The fields of a request, as the HTTP API has them."""

from __future__ import annotations

from typing import Dict, TypedDict


class RequestFields(TypedDict, total=False):
    """Who asks, for what, at which cost. All are optional, but one must name the client or the endpoint."""

    client_key: str
    api_key: str
    user_id: str
    ip: str
    org: str
    tier: str
    endpoint: str
    """`METHOD /path`, or `/path` for any method."""
    cost: int
    costs: Dict[str, int]
    peek: bool
    attributes: Dict[str, str]
    namespace: str


# Who is asking, the most particular first: the fallback limiter has one bucket for each.
_IDENTITY = ("api_key", "user_id", "client_key", "org", "ip")


def bucket_key(fields: RequestFields) -> str:
    """The bucket of the fallback limiter."""
    for name in _IDENTITY:
        value = fields.get(name)
        if value:
            return f"{name}:{value}"
    return ""


def total_cost(fields: RequestFields) -> int:
    """Units that a request costs without its further meters."""
    costs = fields.get("costs") or {}
    cost = fields.get("cost", costs.get("requests", 1))
    return cost if type(cost) is int and cost >= 0 else 1
