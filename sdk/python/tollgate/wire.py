"""HTTP/1.1 without input or output: requests to bytes, bytes to a response.

Both clients use it. `http.client` is not used because its timeout is one for each read, so that a server which drips
bytes holds a caller for as long as it likes, and because it cannot say whether anything of a request was sent.
Everything that a server sends is bounded and read strictly.
"""

from __future__ import annotations

import re
from typing import List, NamedTuple, Optional, Tuple, Union

from .errors import Unavailable

HEAD_BYTES_MAX = 16 * 1024
BODY_BYTES_MAX = 1024 * 1024
FIELDS_MAX = 100

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\x00-\x08\x0a-\x1f\x7f]*)?")
# All fields at once. A value ends where its line does and nowhere else, so that there is one way to read them.
_FIELDS = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\x00-\x08\x0a-\x1f\x7f]*(?:\r\n|\Z))*")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;[^\x00-\x08\x0a-\x1f\x7f]*)?")
_LENGTH = re.compile(rb"[0-9]{1,10}")

Fields = List[Tuple[str, str]]


class MalformedResponse(Unavailable):
    """The server's bytes are not a response, or too many."""


class HttpRequest(NamedTuple):
    """One call."""

    method: str
    target: str
    body: bytes = b""

    def encode(self, authority: str, token: Optional[str], timeout_ms: int) -> bytes:
        """The bytes to send. The timeout tells the server to charge nothing after the caller has left."""
        bearer = "" if token is None else f"Authorization: Bearer {token}\r\n"
        head = (
            f"{self.method} {self.target} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(self.body)}\r\nRequest-Timeout: {timeout_ms}ms\r\n{bearer}\r\n"
        )
        return head.encode("latin-1") + self.body


class HttpResponse:
    """One answer. Its fields are taken apart when they are asked for: most calls read the body alone."""

    __slots__ = ("_lines", "body", "status")

    def __init__(self, status: int, lines: bytes, body: bytes) -> None:
        self.status = status
        self.body = body
        self._lines = lines

    @property
    def fields(self) -> Fields:
        """The header fields, in their order."""
        return fields_of(self._lines)

    def field(self, name: str) -> Optional[str]:
        """The value of a field, by its name in lower case; the first one if there are several."""
        return next((value for key, value in self.fields if key.lower() == name), None)


def fields_of(lines: bytes) -> Fields:
    """The fields of a head that was checked, without its first line."""
    pairs = [line.partition(":") for line in lines.decode("latin-1").split("\r\n")] if lines else []
    return [(name, value.strip(" \t")) for name, _, value in pairs]


def _values(folded: bytes, start: bytes) -> List[bytes]:
    """The values of the fields that begin like this: fields are not taken apart to learn where a response ends."""
    return [part[: part.index(b"\r\n")].strip(b" \t") for part in folded.split(start)[1:]]


class ResponseReader:
    """Reads one response from pieces of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._status = 0
        self._lines = b""
        self._body: Union[bytes, bytearray] = bytearray()
        self._missing: Optional[int] = None  # bytes of the body or the chunk; None: until the end
        self._chunked = False
        self._state = "head"
        self.keep_alive = False

    @property
    def response(self) -> Optional[HttpResponse]:
        """The response, once all of it is there."""
        if self._state != "done":
            return None
        return HttpResponse(self._status, self._lines, bytes(self._body))

    def feed(self, data: bytes) -> None:
        """Takes what has arrived."""
        if self._state == "head" and not self._buffer and self._whole(data):
            return
        self._buffer += data
        self._advance()

    def _advance(self) -> None:
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

    def _whole(self, data: bytes) -> bool:
        """Takes an answer that is there at once, as nearly all are; its body is copied once."""
        end = data.find(b"\r\n\r\n")
        if not 0 <= end <= HEAD_BYTES_MAX:
            return False
        self._read_head(data[:end])
        if self._state != "body" or self._missing != len(data) - end - 4:
            self._buffer += data[end + 4 :]
            self._advance()
            return True
        self._body, self._state = data[end + 4 :], "done"
        return True

    def _head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if (end if end >= 0 else len(self._buffer)) > HEAD_BYTES_MAX:
            raise MalformedResponse("the head of the response is too large")
        if end < 0:
            return False
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        self._read_head(head)
        return True

    def _read_head(self, head: bytes) -> None:
        first, _, self._lines = head.partition(b"\r\n")
        status = _STATUS_LINE.fullmatch(first)
        if status is None or self._lines.count(b"\r\n") >= FIELDS_MAX:
            raise MalformedResponse("the head of the response cannot be read")
        if not _FIELDS.fullmatch(self._lines):
            raise MalformedResponse("a header field of the response cannot be read")
        self._status = int(status[2])
        if self._status == 101:
            raise MalformedResponse("the server changed the protocol, which was not asked for")
        if self._status >= 200:  # others are interim
            self._framing(is_1_1=status[1] == b"1")

    def _framing(self, is_1_1: bool) -> None:
        folded = b"\r\n" + self._lines.lower() + b"\r\n"
        lengths = set(_values(folded, b"\r\ncontent-length:"))
        codings = _values(folded, b"\r\ntransfer-encoding:")
        options = b",".join(_values(folded, b"\r\nconnection:")).split(b",")
        self.keep_alive = is_1_1 and b"close" not in [option.strip() for option in options]
        if self._status in (204, 304):
            self._state = "done"
        elif codings:
            if codings != [b"chunked"] or lengths:
                raise MalformedResponse("the length of the response can be read in two ways")
            self._chunked, self._state = True, "size"
        elif lengths:
            length = lengths.pop()
            if lengths or not _LENGTH.fullmatch(length) or int(length) > BODY_BYTES_MAX:
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
