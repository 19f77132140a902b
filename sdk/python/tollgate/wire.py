"""HTTP/1.1 without input or output: requests to bytes, bytes to a response.

Both clients use it. `http.client` is not used because its timeout is one for each read, so that a server which drips
bytes holds a caller for as long as it likes, and because it cannot say whether anything of a request was sent.
Everything that a server sends is bounded and read strictly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Optional, Tuple

from .errors import Unavailable

HEAD_BYTES_MAX = 16 * 1024
BODY_BYTES_MAX = 1024 * 1024
FIELDS_MAX = 100

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\x00-\x08\x0a-\x1f\x7f]*)?")
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;[^\x00-\x08\x0a-\x1f\x7f]*)?")
_LENGTH = re.compile(rb"[0-9]{1,10}")

Fields = List[Tuple[str, str]]


class MalformedResponse(Unavailable):
    """The server's bytes are not a response, or too many."""


@dataclass(frozen=True)
class HttpRequest:
    """One call."""

    method: str
    target: str
    body: bytes = b""

    def encode(self, authority: str, token: Optional[str], timeout_ms: int) -> bytes:
        """The bytes to send. The timeout tells the server to charge nothing after the caller has left."""
        lines = [
            f"{self.method} {self.target} HTTP/1.1",
            f"Host: {authority}",
            "Content-Type: application/json",
            f"Content-Length: {len(self.body)}",
            f"Request-Timeout: {timeout_ms}ms",
        ]
        if token is not None:
            lines.append(f"Authorization: Bearer {token}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body


@dataclass(frozen=True)
class HttpResponse:
    """One answer."""

    status: int
    fields: Fields
    body: bytes

    def field(self, name: str) -> Optional[str]:
        """The value of a field, by its name in lower case; the first one if there are several."""
        return next((value for key, value in self.fields if key.lower() == name), None)


class ResponseReader:
    """Reads one response from pieces of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._status = 0
        self._fields: Fields = []
        self._body = bytearray()
        self._missing: Optional[int] = None  # bytes of the body or the chunk; None: until the end
        self._chunked = False
        self._state = "head"
        self.keep_alive = False

    @property
    def response(self) -> Optional[HttpResponse]:
        """The response, once all of it is there."""
        if self._state != "done":
            return None
        return HttpResponse(self._status, self._fields, bytes(self._body))

    def feed(self, data: bytes) -> None:
        """Takes what has arrived."""
        self._buffer += data
        while self._step():
            pass
        if self._state == "done" and self._buffer:
            self.keep_alive = False  # bytes that no request asked for

    def end(self) -> None:
        """The connection was closed by the server."""
        self.keep_alive = False
        if self._state == "body" and self._missing is None:
            self._state = "done"
        elif self._state != "done":
            raise Unavailable("the server closed the connection before it answered")

    def _step(self) -> bool:
        if self._state == "head":
            return self._head()
        if self._state == "size":
            return self._chunk_size()
        if self._state == "body":
            return self._take()
        if self._state == "after":
            return self._after_chunk()
        return self._state == "trailer" and self._trailer()

    def _head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if (end if end >= 0 else len(self._buffer)) > HEAD_BYTES_MAX:
            raise MalformedResponse("the head of the response is too large")
        if end < 0:
            return False
        first, *lines = bytes(self._buffer[:end]).split(b"\r\n")
        del self._buffer[: end + 4]
        status = _STATUS_LINE.fullmatch(first)
        if status is None or len(lines) > FIELDS_MAX:
            raise MalformedResponse("the head of the response cannot be read")
        self._status = int(status[2])
        self._fields = [self._field(line) for line in lines]
        if self._status == 101:
            raise MalformedResponse("the server changed the protocol, which was not asked for")
        if self._status >= 200:  # others are interim
            self._framing(is_1_1=status[1] == b"1")
        return True

    @staticmethod
    def _field(line: bytes) -> Tuple[str, str]:
        match = _FIELD.fullmatch(line)
        if match is None:
            raise MalformedResponse("a header field of the response cannot be read")
        return match[1].decode("ascii"), match[2].decode("latin-1").strip(" \t")

    def _framing(self, is_1_1: bool) -> None:
        lengths = {value for name, value in self._fields if name.lower() == "content-length"}
        codings = [value.lower() for name, value in self._fields if name.lower() == "transfer-encoding"]
        options = ",".join(value.lower() for name, value in self._fields if name.lower() == "connection")
        self.keep_alive = is_1_1 and "close" not in [option.strip() for option in options.split(",")]
        if self._status in (204, 304):
            self._state = "done"
        elif codings:
            if codings != ["chunked"] or lengths:
                raise MalformedResponse("the length of the response can be read in two ways")
            self._chunked, self._state = True, "size"
        elif lengths:
            length = lengths.pop()
            if lengths or not _LENGTH.fullmatch(length.encode("latin-1")) or int(length) > BODY_BYTES_MAX:
                raise MalformedResponse("the body of the response is too large, or its length cannot be read")
            self._missing, self._state = int(length), "body"
        else:
            self._missing, self._state, self.keep_alive = None, "body", False

    def _take(self) -> bool:
        count = len(self._buffer) if self._missing is None else min(len(self._buffer), self._missing)
        if len(self._body) + count > BODY_BYTES_MAX:
            raise MalformedResponse("the body of the response is too large")
        self._body += self._buffer[:count]
        del self._buffer[:count]
        if self._missing is None:
            return False
        self._missing -= count
        if self._missing > 0:
            return False
        self._state = "after" if self._chunked else "done"
        return self._chunked

    def _after_chunk(self) -> bool:
        line = self._line()
        if line:
            raise MalformedResponse("a chunk is longer than its size")
        if line is not None:
            self._state = "size"
        return line is not None

    def _chunk_size(self) -> bool:
        line = self._line()
        if line is None:
            return False
        match = _CHUNK.fullmatch(line)
        if match is None:
            raise MalformedResponse("the size of a chunk cannot be read")
        self._missing = int(match[1], 16)
        self._state = "body" if self._missing else "trailer"
        return True

    def _trailer(self) -> bool:
        line = self._line()
        if line == b"":
            self._state = "done"
        return bool(line)

    def _line(self) -> Optional[bytes]:
        end = self._buffer.find(b"\r\n")
        if (end if end >= 0 else len(self._buffer)) > HEAD_BYTES_MAX:
            raise MalformedResponse("a line of the response is too long")
        if end < 0:
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line
