"""Starlette."""

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tollgate import AsyncClient
from tollgate.asgi import RateLimitMiddleware

from ..options import client_options, guard_options, used


async def get_order(request: Request) -> Response:
    return JSONResponse({"order": request.path_params["order"]})


async def create_order(_request: Request) -> Response:
    return JSONResponse({"created": True}, status_code=201)


async def fail(_request: Request) -> Response:
    raise RuntimeError("this handler fails")


async def health(_request: Request) -> Response:
    return PlainTextResponse("ok")


async def complete(request: Request) -> Response:
    tokens = used(request.path_params["tokens"])
    return JSONResponse({"tokens": tokens}, headers={"X-Tokens": str(tokens)})


app = Starlette(
    routes=[
        Route("/api/orders/{order}", get_order),
        Route("/api/orders", create_order, methods=["POST"]),
        Route("/api/fail", fail),
        Route("/health", health),
        Route("/api/complete/{tokens}", complete, methods=["POST"]),
    ],
    middleware=[Middleware(RateLimitMiddleware, client=AsyncClient(**client_options()), **guard_options())],
)
