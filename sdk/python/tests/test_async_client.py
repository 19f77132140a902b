"""The asyncio client: cancellation, many tasks, several event loops."""

from __future__ import annotations

import asyncio
import logging
import unittest
from typing import Any, List

from tollgate import AsyncClient
from tollgate.aio import finish

from .fake_server import FakeServer, answering, closing_after_one, cutting, halted, response

PATIENT = 30.0

logging.getLogger("tollgate").setLevel(logging.CRITICAL)


class AsyncClientTest(unittest.IsolatedAsyncioTestCase):
    def client(self, server: FakeServer, **settings: Any) -> AsyncClient:
        client = AsyncClient(server.url, **{"timeout": PATIENT, **settings})
        self.addAsyncCleanup(client.close)
        return client

    async def test_a_thousand_tasks_share_a_bounded_number_of_connections(self) -> None:
        with FakeServer(answering(response())) as server:
            client = self.client(server, connections_max=8)
            decisions = await asyncio.gather(*(client.check(api_key="a") for _ in range(1000)))
            self.assertEqual({decision.mode for decision in decisions}, {"store"})
            self.assertEqual(len(server.requests), 1000)
            self.assertLessEqual(server.connections, 8)

    async def test_a_connection_that_the_server_closed_between_calls_is_no_failure(self) -> None:
        causes: List[Exception] = []
        with FakeServer(closing_after_one) as server:
            client = self.client(server, on_unavailable=causes.append)
            for count in range(1, 9):
                self.assertEqual((await client.check(api_key="a")).mode, "store")
                self.assertEqual(len(server.requests), count)
                pool = client._pool._pool()
                while any(idle.keep_alive for idle in pool.idle):
                    await asyncio.sleep(0)  # the loop hears of it
        self.assertEqual((causes, server.connections), ([], 8))

    async def test_what_may_have_arrived_is_never_sent_again(self) -> None:
        with FakeServer(cutting) as server:
            self.assertEqual((await self.client(server).check(api_key="a")).mode, "open")
        self.assertEqual(len(server.requests), 1)

    async def test_no_answer_in_time_is_a_decision_in_time(self) -> None:
        with FakeServer(halted) as server:
            self.assertEqual((await self.client(server, timeout=0.05).check(api_key="a")).mode, "open")

    async def test_a_cancelled_call_leaves_its_answer_to_no_other(self) -> None:
        with FakeServer(halted) as server:
            client = self.client(server, connections_max=2)
            calls = [asyncio.ensure_future(client.check(api_key="a")) for _ in range(50)]
            while len(server.requests) < 2:
                await asyncio.sleep(0)
            for call in calls:
                call.cancel()
            results = await asyncio.gather(*calls, return_exceptions=True)
            self.assertTrue(all(isinstance(result, asyncio.CancelledError) for result in results))
            pool = client._pool._pool()
            self.assertEqual((pool._free, pool.idle), (2, []))

    async def test_a_cancelled_probe_lets_the_next_call_try(self) -> None:
        with FakeServer(halted) as server:
            client = self.client(server)
            breaker = client._calls._breaker
            breaker._failures = 5
            call = asyncio.ensure_future(client.check(api_key="a"))
            while not server.requests:
                await asyncio.sleep(0)
            self.assertIsNone(breaker.admit())
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            self.assertIsNotNone(breaker.admit())

    async def test_hostile_answers_are_no_decisions(self) -> None:
        hostile = [
            response(b" " * (1 << 20) + b"{}"),
            b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
            response(fields="RateLimit: a\rSet-Cookie: b\r\n"),
            b"",
        ]
        for data in hostile:
            with self.subTest(data[:40]), FakeServer(answering(data)) as server:
                decision = await self.client(server, on_error="closed", timeout=0.5).check(api_key="a")
                self.assertEqual(decision.mode, "closed")

    async def test_what_must_be_done_is_done_when_the_task_is_cancelled(self) -> None:
        begun, done = asyncio.Event(), asyncio.Event()
        may_end = asyncio.Event()

        async def work() -> None:
            begun.set()
            await may_end.wait()
            done.set()

        task = asyncio.ensure_future(finish(work()))
        await begun.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        may_end.set()
        await asyncio.wait_for(done.wait(), PATIENT)


class LoopsTest(unittest.TestCase):
    def test_event_loops_have_connections_of_their_own(self) -> None:
        async def two_calls(client: AsyncClient) -> None:
            for _ in range(2):
                self.assertEqual((await client.check(api_key="a")).mode, "store")
            await client.close()

        with FakeServer(answering(response())) as server:
            client = AsyncClient(server.url, timeout=PATIENT)
            for _ in range(3):
                asyncio.run(two_calls(client))
        self.assertEqual((server.connections, len(server.requests)), (3, 6))
