"""`conformance client`: one JSON object a line in, one out."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from typing import Any, Callable, Dict, List, Optional

from tollgate import AsyncClient, AsyncSlot, Client, Decision, Limit, Refused, Retry, Slot, Unavailable
from tollgate.retry import Throttled, Waiting

from .options import client_options

Line = Dict[str, Any]


def run() -> None:
    """Answers line by line, until standard input ends."""
    calls = Calls()
    for line in sys.stdin:
        _answer(calls.answer, json.loads(line))


def run_async() -> None:
    """The same by the client for asyncio."""
    asyncio.run(_answer_lines())


async def _answer_lines() -> None:
    calls = AsyncCalls()
    loop = asyncio.get_running_loop()
    while True:
        line = await loop.run_in_executor(None, sys.stdin.readline)
        if not line:
            os._exit(0)
        request = json.loads(line)
        try:
            _print(await calls.answer(request))
        except (Refused, Unavailable) as error:
            _print({"error": _code(error)})


def _answer(call: Callable[[Line], Line], request: Line) -> None:
    try:
        _print(call(request))
    except (Refused, Unavailable) as error:
        _print({"error": _code(error)})


def _print(answer: Line) -> None:
    print(json.dumps(answer), flush=True)


def _code(error: Exception) -> str:
    return error.code if isinstance(error, Refused) else "unreachable"


def _item(result: Any) -> Line:
    return dict(result.members) if isinstance(result, Decision) else {"error": _code(result)}


def _computed(line: Line) -> Optional[Line]:
    if line["call"] == "gcra":
        return {"results": _gcra(line)}
    return _retry(line) if line["call"] == "retry" else None


class Calls:
    """The calls by the client that waits."""

    def __init__(self) -> None:
        self._client = Client(**client_options())
        self._slots: Dict[str, Slot] = {}

    def answer(self, line: Line) -> Line:
        """What the call comes to."""
        client = self._client
        call = line["call"]
        if call == "check":
            return dict(client.check(**line["request"]).members)
        if call == "check_batch":
            return {"results": [_item(result) for result in client.check_batch(line["requests"])]}
        if call == "reserve":
            return dict(client.reserve(**line["request"]).members)
        if call == "extend":
            return dict(client.extend(line["reservation"], line["costs"]).members)
        if call == "settle":
            return dict(client.settle(line["reservation"], line["costs"]))
        if call == "usage":
            return dict(client.usage(**line["client"]))
        if call == "acquire_slot":
            slot = client.acquire_slot(**line["request"])
            if slot.decision.slot is not None:
                self._slots[slot.decision.slot] = slot
            return dict(slot.decision.members)
        if call == "release_slot":
            held = self._slots.pop(line["slot"], None)
            return {"released": held.release()} if held else dict(client.release_slot(line["slot"]))
        return _computed(line) or {"error": f"unknown call {call}"}


class AsyncCalls:
    """The same calls by the asyncio client."""

    def __init__(self) -> None:
        self._client = AsyncClient(**client_options())
        self._slots: Dict[str, AsyncSlot] = {}

    async def answer(self, line: Line) -> Line:
        """What the call comes to."""
        client = self._client
        call = line["call"]
        if call == "check":
            return dict((await client.check(**line["request"])).members)
        if call == "check_batch":
            return {"results": [_item(result) for result in await client.check_batch(line["requests"])]}
        if call == "reserve":
            return dict((await client.reserve(**line["request"])).members)
        if call == "extend":
            return dict((await client.extend(line["reservation"], line["costs"])).members)
        if call == "settle":
            return dict(await client.settle(line["reservation"], line["costs"]))
        if call == "usage":
            return dict(await client.usage(**line["client"]))
        if call == "acquire_slot":
            slot = await client.acquire_slot(**line["request"])
            if slot.decision.slot is not None:
                self._slots[slot.decision.slot] = slot
            return dict(slot.decision.members)
        if call == "release_slot":
            held = self._slots.pop(line["slot"], None)
            return {"released": await held.release()} if held else dict(await client.release_slot(line["slot"]))
        return _computed(line) or {"error": f"unknown call {call}"}


def _gcra(line: Line) -> List[Line]:
    given = line["limit"]
    limit = Limit(int(given["count"]), int(given["period_ns"]), int(given["burst"]))
    full_at: Optional[int] = None
    results = []
    for step in line["steps"]:
        now, cost = int(step["now_ns"]), int(step["cost"])
        outcome, full_at = limit.take(full_at, now, cost)
        wait = outcome.retry_after_ns
        results.append(
            {
                "allowed": outcome.allowed,
                "limit": str(outcome.limit),
                "remaining": str(outcome.remaining),
                "retry_after_ns": None if wait is None else str(wait),
                "reset_after_ns": str(outcome.reset_after_ns),
            }
        )
    return results


class FakeApi:
    """Responses from a table, on a clock that only waits and calls move."""

    def __init__(self, line: Line) -> None:
        self.now_ms = line["now_ms"]
        self.keys: List[str] = []
        self.waits_ms: List[int] = []
        draws = line.get("random") or [0]
        self._draws = itertools.chain(draws, itertools.repeat(draws[-1]))
        self._responses = iter(line["responses"])
        self.waiting = Waiting(lambda: self.now_ms, lambda: self.now_ms, self._sleep, random=lambda: next(self._draws))

    def request(self, _method: str, _url: str, headers: Optional[Dict[str, str]] = None) -> FakeResponse:
        """The next response of the table."""
        if headers is not None:
            self.keys.append(headers["Idempotency-Key"])
        given = next(self._responses)
        self.now_ms += given.get("took_ms", 0)
        return FakeResponse(given["status"], given.get("headers", {}), given.get("body", "").encode())

    def _sleep(self, seconds: float) -> None:
        self.waits_ms.append(round(seconds * 1000))
        self.now_ms += self.waits_ms[-1]


class FakeResponse:
    """What `requests` and `httpx` return, as far as it is read."""

    def __init__(self, status_code: int, headers: Dict[str, str], content: bytes) -> None:
        self.status_code = status_code
        self.headers = headers
        self.content = content


def _retry(line: Line) -> Line:
    api = FakeApi(line)
    options = line["options"]
    retry = Retry(
        options.get("attempts", 3),
        base=options.get("base_ms", 100) / 1000,
        cap=options.get("cap_ms", 20_000) / 1000,
        jitter=options.get("jitter", "full"),
        deadline=options.get("deadline_ms", 60_000) / 1000,
        adaptive=options.get("adaptive", False),
        waiting=api.waiting,
    )
    results: List[Line] = []
    for _ in range(line.get("calls", 1)):
        if results:
            api.now_ms += line.get("every_ms", 0)
        api.waits_ms = []
        try:
            status = retry.request(
                api.request, line.get("method", "GET"), "", idempotency_key=line.get("idempotency_key")
            ).status_code
        except Throttled:
            status = 0
        results.append({"waits_ms": api.waits_ms, "status": status})
    if "calls" in line:
        return {"calls": results}
    return {**results[0], "keys": api.keys} if api.keys else results[0]
