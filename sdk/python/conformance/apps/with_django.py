"""Django."""

import sys

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.http import require_GET, require_POST

from ..options import client_options, guard_options, used


@require_GET
def get_order(_request: HttpRequest, order: str) -> HttpResponse:
    return _json(f'{{"order":"{order}"}}')


@require_POST
def create_order(_request: HttpRequest) -> HttpResponse:
    return _json('{"created":true}', 201)


@require_GET
def fail(_request: HttpRequest) -> HttpResponse:
    raise RuntimeError("this handler fails")


@require_GET
def health(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok", content_type="text/plain")


@require_POST
def complete(_request: HttpRequest, tokens: str) -> HttpResponse:
    response = _json(f'{{"tokens":{used(tokens)}}}')
    response["X-Tokens"] = str(used(tokens))
    return response


def _json(body: str, status: int = 200) -> HttpResponse:
    return HttpResponse(body, status=status, content_type="application/json")


urlpatterns = [
    path("api/orders/<order>", get_order),
    path("api/orders", create_order),
    path("api/fail", fail),
    path("health", health),
    path("api/complete/<tokens>", complete),
]

settings.configure(
    SECRET_KEY="not a secret: nothing is signed",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=sys.modules[__name__],
    MIDDLEWARE=["tollgate.django.RateLimitMiddleware"],
    TOLLGATE={**client_options(), **guard_options()},
    LOGGING_CONFIG=None,
)
django.setup()

wsgi_app = get_wsgi_application
asgi_app = get_asgi_application
