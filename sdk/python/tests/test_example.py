"""The example application asks for callers that are known, and for addresses."""

from __future__ import annotations

import importlib.util
import json
import os
import unittest
from pathlib import Path
from typing import Any, Dict, List
from unittest import mock

from tollgate import Settings

from .fake_server import FakeServer, answering, response
from .test_paths import call

EXAMPLE = Path(__file__).resolve().parents[1] / "examples/orders.py"


class ExampleTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        # Machines of tests are slow: nothing here depends on the timeout.
        defaults = Settings.__init__.__defaults__ or ()
        patient = tuple(30.0 if value == Settings.timeout else value for value in defaults)
        patch = mock.patch.object(Settings.__init__, "__defaults__", patient)
        patch.start()
        self.addCleanup(patch.stop)

    async def test_who_is_asked_about(self) -> None:
        with FakeServer(answering(response())) as server, mock.patch.dict(os.environ, TOLLGATE_URL=server.url):
            spec = importlib.util.spec_from_file_location("orders", EXAMPLE)
            assert spec is not None and spec.loader is not None
            orders = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(orders)
            for key in (b"key-of-ada", b"made-up"):
                sent = await call(orders.app, "/api/orders/1", headers=[(b"x-api-key", key)])
                self.assertEqual(sent[0]["status"], 200)
            await call(orders.app, "/health")
            asked = [json.loads(request.partition(b"\r\n\r\n")[2]) for request in server.requests]
        expected: List[Dict[str, Any]] = [
            {"ip": "192.0.2.1", "api_key": "ada", "tier": "paid", "endpoint": "GET /api/orders/1"},
            {"ip": "192.0.2.1", "endpoint": "GET /api/orders/1"},
        ]
        self.assertEqual(asked, expected)
