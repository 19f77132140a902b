"""The environment of both commands."""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional

from tollgate import Incoming
from tollgate.address import comma_separated
from tollgate.guard import Result


def client_options() -> Dict[str, Any]:
    """Settings of the client, in the words of its constructor."""
    options: Dict[str, Any] = {}
    if os.environ.get("CONFORMANCE_ON_ERROR"):
        options["on_error"] = os.environ["CONFORMANCE_ON_ERROR"]
    if os.environ.get("CONFORMANCE_FALLBACK"):
        options["fallback"] = os.environ["CONFORMANCE_FALLBACK"]
    if os.environ.get("CONFORMANCE_TIMEOUT_MS"):
        options["timeout"] = int(os.environ["CONFORMANCE_TIMEOUT_MS"]) / 1000
    return options


def guard_options() -> Dict[str, Any]:
    """Settings of the middleware."""
    return {
        "identify": _identify,
        "skip": lambda request: request.path == "/health",
        "costs": lambda request: {"tokens": 100} if request.path.startswith("/api/complete/") else None,
        "settle": _settle,
        "shadow": os.environ.get("CONFORMANCE_SHADOW") == "1",
        "trusted_proxies": comma_separated(os.environ.get("CONFORMANCE_TRUSTED_PROXIES", "")),
    }


def _identify(request: Incoming) -> Optional[Mapping[str, str]]:
    key = request.header("X-API-Key")
    return None if key is None else {"api_key": key}


def _settle(_request: Incoming, result: Result) -> Mapping[str, int]:
    return {"tokens": int(result.header("X-Tokens") or 0)}


def used(tokens: str) -> int:
    """What `POST /api/complete/:tokens` uses: as many as its path says. Fails for `fail`."""
    return int(tokens)
