"""Serves the application of a framework until standard input ends."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from importlib import import_module
from typing import Any, Callable, Dict

import uvicorn
from werkzeug.serving import make_server


def serve(framework: str) -> None:
    """Prints `ready URL`, and serves."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    FRAMEWORKS[framework]()


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def _app(framework: str) -> Any:
    # Frameworks are imported one by one: Django keeps its settings for the process.
    return import_module(f".apps.with_{framework}", __package__)


def _uvicorn(app: Any, **options: Any) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    # The middleware decides which X-Forwarded-For counts. Uvicorn would trust that of every local connection.
    config = uvicorn.Config(app, log_level="warning", log_config=None, proxy_headers=False, **options)
    _ready(listener.getsockname()[1])
    asyncio.run(uvicorn.Server(config).serve([listener]))


def _werkzeug(app: Any) -> None:
    server = make_server("127.0.0.1", 0, app, threaded=True)
    _ready(server.server_port)
    server.serve_forever()


def _ready(port: int) -> None:
    print(f"ready http://127.0.0.1:{port}", flush=True)


FRAMEWORKS: Dict[str, Callable[[], None]] = {
    "fastapi": lambda: _uvicorn(_app("fastapi").app),
    "starlette": lambda: _uvicorn(_app("starlette").app, http="h11"),
    "flask": lambda: _werkzeug(_app("flask").app),
    "django": lambda: _werkzeug(_app("django").wsgi_app()),
    "django_asgi": lambda: _uvicorn(_app("django").asgi_app()),
}
