"""FastAPI."""

from typing import Dict

from fastapi import FastAPI, Response
from fastapi.responses import PlainTextResponse

from tollgate import AsyncClient
from tollgate.asgi import RateLimitMiddleware

from ..options import client_options, guard_options, used

app = FastAPI()
app.add_middleware(RateLimitMiddleware, client=AsyncClient(**client_options()), **guard_options())


@app.get("/api/orders/{order}")
async def get_order(order: str) -> Dict[str, str]:
    return {"order": order}


@app.post("/api/orders", status_code=201)
async def create_order() -> Dict[str, bool]:
    return {"created": True}


@app.get("/api/fail")
async def fail() -> Response:
    raise RuntimeError("this handler fails")


@app.get("/health")
async def health() -> PlainTextResponse:
    return PlainTextResponse("ok")


@app.post("/api/complete/{tokens}")
async def complete(tokens: str, response: Response) -> Dict[str, int]:
    response.headers["X-Tokens"] = str(used(tokens))
    return {"tokens": used(tokens)}
