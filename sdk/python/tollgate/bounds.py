"""Longest texts of a request.

A server that gets much more than it reads closes the connection, and that would look like an outage, for which the fail
policy may pass requests: the length of a text must not choose it.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, Optional

from .errors import InvalidPath

_PATH_BYTES_MAX = 8192
_METHOD_BYTES_MAX = 64
_VALUE_BYTES_MAX = 4096
_VALUES = ("client_key", "api_key", "user_id", "ip", "org", "tier", "namespace")
_QUERY = re.compile("[?#]")


def unreadable(fields: Mapping[str, Any]) -> Optional[InvalidPath]:
    """What the server would say about a text that is too long, or is no Unicode."""
    endpoint = fields.get("endpoint")
    if isinstance(endpoint, str):
        path = _QUERY.split(endpoint[max(0, endpoint.find("/")) :], maxsplit=1)[0]
        length, whole = _bytes(path), _bytes(endpoint)
        if length is None or whole is None:
            return _not_unicode("endpoint")
        if length > _PATH_BYTES_MAX or whole > _PATH_BYTES_MAX + _METHOD_BYTES_MAX:
            return InvalidPath(400, "path_too_long", f"the path is longer than {_PATH_BYTES_MAX} bytes", "endpoint")
    values = [(name, fields.get(name)) for name in _VALUES]
    for name, value in [*values, *(fields.get("attributes") or {}).items()]:
        if isinstance(value, str):
            length = _bytes(value)
            if length is None:
                return _not_unicode(name)
            if length > _VALUE_BYTES_MAX:
                return InvalidPath(400, "value_too_long", f"use at most {_VALUE_BYTES_MAX} bytes", name)
    return None


def _bytes(text: str) -> Optional[int]:
    try:
        return len(text.encode())
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can write and no server reads
        return None


def _not_unicode(name: str) -> InvalidPath:
    return InvalidPath(400, "bad_text", "is not Unicode", name)
