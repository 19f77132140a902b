"""Flask."""

from flask import Flask, Response

from tollgate import Client
from tollgate.wsgi import RateLimitMiddleware

from ..options import client_options, guard_options, used

app = Flask("conformance")
app.wsgi_app = RateLimitMiddleware(  # type: ignore[method-assign]
    app.wsgi_app, Client(**client_options()), **guard_options()
)


@app.get("/api/orders/<order>")
def get_order(order: str) -> Response:
    return _json(f'{{"order":"{order}"}}')


@app.post("/api/orders")
def create_order() -> Response:
    return _json('{"created":true}', 201)


@app.get("/api/fail")
def fail() -> Response:
    raise RuntimeError("this handler fails")


@app.get("/health")
def health() -> Response:
    return Response("ok", content_type="text/plain")


@app.post("/api/complete/<tokens>")
def complete(tokens: str) -> Response:
    response = _json(f'{{"tokens":{used(tokens)}}}')
    response.headers["X-Tokens"] = str(used(tokens))
    return response


def _json(body: str, status: int = 200) -> Response:
    return Response(body, status, content_type="application/json")
