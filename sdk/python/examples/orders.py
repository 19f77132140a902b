"""An application with keys, health checks and a fallback limit: `uvicorn orders:app --no-proxy-headers`."""

from __future__ import annotations

from typing import Any, Dict

from fastapi import FastAPI

from tollgate import Incoming
from tollgate.asgi import RateLimitMiddleware

# A stand-in for the table in which an application looks its keys up.
KEYS: Dict[str, Dict[str, Any]] = {
    "key-of-ada": {"api_key": "ada", "tier": "paid"},
    "key-of-bob": {"api_key": "bob", "tier": "free"},
}


def identify(request: Incoming) -> Dict[str, Any]:
    """Only keys that are known name a client; every other caller is an address."""
    return KEYS.get(request.header("X-API-Key") or "", {})


app = FastAPI()
app.add_middleware(
    RateLimitMiddleware,
    fallback="100/1m",  # in this process, while there is no answer
    identify=identify,
    skip=lambda request: request.path == "/health",
)


@app.get("/api/orders/{order}")
async def get_order(order: str) -> Dict[str, str]:
    """An order."""
    return {"order": order}


@app.get("/health")
async def health() -> Dict[str, bool]:
    """For the load balancer."""
    return {"ok": True}
