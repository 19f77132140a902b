"""A request of the application's user, in the same words for every framework."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Callable, List, Optional, Tuple
from urllib.parse import quote, unquote_to_bytes

from .errors import InvalidPath

_SCHEME_AND_HOST = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^/?#]*")
# What may stand in a path as it is; `%` only where it came from the wire.
_PATH_CHARS = "/:@!$&'()*+,;=-._~"
_DOT = re.compile("%2[Ee]")
_ESCAPED_LETTER = re.compile("%([46][1-9A-Fa-f]|[57][0-9Aa])")


@dataclass(frozen=True)
class Incoming:
    """What the middleware and its callbacks read."""

    method: str
    path: str
    """As the router got it, escaped, without the query."""
    address: Optional[str]
    """Of the client: that of the connection, or what trusted proxies say."""
    headers: List[Tuple[str, str]] = field(repr=False)
    native: Any = field(repr=False)
    """The framework's own: the scope of ASGI, the environ of WSGI, the request of Django."""

    def header(self, name: str) -> Optional[str]:
        """The value of a field if there is exactly one of that name: two could be read in two ways.

        Servers that speak WSGI join fields with commas before anything else sees them, so that a comma counts as two.
        """
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        return values[0].strip() if len(values) == 1 and "," not in values[0] else None

    def endpoint(self, fold_case: bool = False) -> str:
        """`METHOD /path`. Routers answer HEAD by the handler of GET."""
        method = "GET" if self.method == "HEAD" else self.method
        path = self.path
        if fold_case:
            path = _ESCAPED_LETTER.sub(lambda match: chr(int(match[1], 16)), path).lower()
        return f"{method} {path}"


def path_of(raw: Optional[bytes], decoded: bytes, reading: Callable[[bytes], bytes] = bytes) -> str:
    """The path as the router got it: as it came over the wire if that is what the router decoded, else escaped anew.

    They differ if something in between rewrote the path, or read the target in its own way; the router's view is the
    one that a limit must hold. `reading` is how the framework reads bytes that are not UTF-8.
    """
    if raw is not None:
        raw = raw.split(b"?", 1)[0]
        bare = unquote_to_bytes(raw)
        # ASGI has text, in which what is not UTF-8 was replaced.
        if decoded in (bare, bare.decode("utf-8", "replace").encode(), reading(bare)):
            return _absolute(quote(raw, safe=_PATH_CHARS + "%"))
    return _absolute(quote(decoded, safe=_PATH_CHARS))


def _absolute(path: str) -> str:
    match = _SCHEME_AND_HOST.match(path)
    return (path[match.end() :] or "/") if match else path


def refuse_dot_segments(endpoint: str) -> None:
    """Raises for a path with `.` or `..` as a segment, escaped or not.

    Tollgate resolves them. The router does not, or the path would not have them any more: `/files/../x` runs the
    handler of `/files/{path}`, and would be limited as `/x`. Browsers and clients resolve them before they send.
    """
    path = endpoint.partition(" ")[2].partition("?")[0]
    if any(_DOT.sub(".", segment) in (".", "..") for segment in path.split("/")):
        raise InvalidPath(
            400, "path_dot_segment", "the path has a dot segment, which servers read differently", "endpoint"
        )
