"""What a client needs to know: where the server is, who is asking, and what to do without an answer."""

from __future__ import annotations

import os
import ssl
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union
from urllib.parse import urlsplit

from .limit import Limit

DEFAULT_URL = "http://127.0.0.1:8080"
ON_ERROR = ("open", "closed", "local")


@dataclass(frozen=True)
class Origin:
    """Where the server listens."""

    host: str
    port: int
    tls: bool
    prefix: str
    """What comes before `/v1` in the path."""

    @staticmethod
    def parse(url: str) -> Origin:
        """Reads `http://HOST:PORT` or `https://HOST`, with a path in front of the API's if there is one."""
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = 0
        wrong = parts.query or parts.fragment or parts.username is not None or port == 0
        plain = all(0x20 < ord(char) < 0x7F for char in url)
        if parts.scheme not in ("http", "https") or not parts.hostname or wrong or not plain:
            raise ValueError("the URL of Tollgate is like http://127.0.0.1:8080 or https://limits.example.com")
        tls = parts.scheme == "https"
        return Origin(parts.hostname, port or (443 if tls else 80), tls, parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """The value of `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


@dataclass(frozen=True)
class Settings:
    """Settings of a client. What is not given comes from the environment."""

    url: str = field(default_factory=lambda: os.environ.get("TOLLGATE_URL") or DEFAULT_URL)
    token: Optional[str] = field(default_factory=lambda: os.environ.get("TOLLGATE_DATA_TOKEN") or None, repr=False)
    timeout: float = 0.25
    """Seconds for one call, connection included."""
    on_error: Optional[str] = None
    """`open`, `closed` or `local`; absent: `local` if there is a fallback, else `open`."""
    fallback: Union[Limit, str, None] = None
    """The limit of this process while there is no answer, such as `100/1m`."""
    connections_max: int = 32
    tls: Optional[ssl.SSLContext] = field(default=None, repr=False)
    """For https: a private authority, or a certificate of the client. Absent: the authorities of the system."""
    on_unavailable: Optional[Callable[[Exception], None]] = None
    """Called with the cause whenever there is no decision. Must not block."""
    clock: Callable[[], int] = time.monotonic_ns
    wall_clock: Callable[[], int] = time.time_ns
    """For `reset_at` of the fallback limit, which is a date."""

    @staticmethod
    def given(**values: Any) -> Settings:
        """Settings from those of these that are not None."""
        return Settings(**{name: value for name, value in values.items() if value is not None})

    def __post_init__(self) -> None:
        Origin.parse(self.url)
        if isinstance(self.fallback, str):
            object.__setattr__(self, "fallback", Limit.parse(self.fallback))
        if self.on_error is None:
            object.__setattr__(self, "on_error", "open" if self.fallback is None else "local")
        if self.on_error not in ON_ERROR:
            raise ValueError("on_error is open, closed or local")
        if self.on_error == "local" and self.fallback is None:
            raise ValueError("on_error local needs a fallback limit, such as fallback='100/1m'")
        if not 0.001 <= self.timeout <= 3600 or self.connections_max < 1:
            raise ValueError("timeout is 0.001 to 3600 seconds, connections_max at least 1")
        if self.token is not None and not all(0x20 < ord(char) < 0x7F for char in self.token):
            raise ValueError("the token has characters that no token has")
