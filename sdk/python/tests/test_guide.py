"""docs/guide/fastapi.md, step by step: its application in its server, its rules in a real Tollgate, its curl lines.

Numbers and dates may differ; everything else has to be what the page says.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Dict, List, Optional

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/guide/fastapi.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
APP = "http://127.0.0.1:3000"

# Machines of tests are slow: nothing of the page depends on a timeout.
PATIENCE = """
from tollgate import settings
settings.Settings.__init__.__defaults__ = tuple(
    30.0 if value == 0.25 else value for value in settings.Settings.__init__.__defaults__
)
"""


class GuideTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "sitecustomize.py").write_text(PATIENCE)
        self.parts: List[str] = []  # of app.py
        self.limits: Optional[Running] = None
        self.app: Optional[Running] = None
        self.addCleanup(self.stop)

    def stop(self) -> None:
        for process in (self.app, self.limits):
            if process is not None:
                process.stop()

    def test_every_step(self) -> None:
        commands = 0
        for kind, text in BLOCK.findall(PAGE.read_text()):
            if kind == "python":
                self.write_app(text)
            elif kind == "yaml":
                (self.folder / "rules.yaml").write_text(text)
            elif "tollgate serve" in text:
                self.limits = Running(self.folder, tollgate(), r"listening on (http://\S+)", {})
            elif kind == "console":
                commands += self.replay(text)
        self.assertGreaterEqual(commands, 12)

    def write_app(self, text: str) -> None:
        """Puts a part of the application into its place; the next command runs the application anew."""
        place, _, code = text.partition("\n")
        if place == "# app.py":
            self.parts = [*code.split("app = FastAPI()\n", 1)]
        elif place == "# app.py, below `app = FastAPI()`":
            self.parts.insert(1, code)
        elif place == "# app.py, in place of the line with add_middleware":
            self.parts[1] = self.parts[1].partition("app.add_middleware(")[0] + code
        else:
            self.fail(f"where does this belong? {place}")
        (self.folder / "app.py").write_text("app = FastAPI()\n".join([self.parts[0], "".join(self.parts[1:])]))
        if self.app is not None:
            self.app.stop()
            self.app = None

    def replay(self, block: str) -> int:
        """Runs the commands of a block, and compares what they print."""
        commands = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
        for command in commands:
            line, _, expected = command.partition("\n")
            if "fallback=" in self.parts[1] and self.limits is not None:
                self.limits.stop()  # "Stop the server."
                url, self.limits = self.limits.url, None
                self.app = self.serve(url)
            if self.app is None:
                assert self.limits is not None
                self.app = self.serve(self.limits.url)
            words = shlex.split(line.replace(APP, self.app.url))
            printed = subprocess.run(words, stdout=subprocess.PIPE, check=True, timeout=60).stdout.decode()
            self.assertEqual(masked(printed), masked(expected), line)
        return len(commands)

    def serve(self, url: str) -> Running:
        command = [sys.executable, "-m", "uvicorn", "app:app", "--port", "0", "--no-proxy-headers"]
        paths = os.pathsep.join([str(ROOT / "sdk/python"), str(self.folder)])
        return Running(self.folder, command, r"running on (http://\S+)", {"TOLLGATE_URL": url, "PYTHONPATH": paths})


def tollgate() -> List[str]:
    """The command of the page, on ports that are free."""
    program = os.environ.get("TOLLGATE_BIN", str(ROOT / "target/debug/tollgate"))
    if not Path(program).exists():
        raise AssertionError(f"{program} is not there: cargo build -p tollgate, or set TOLLGATE_BIN")
    ports = ["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    return [program, "serve", "--rules", "rules.yaml", "--state-dir", "state", *ports]


class Running:
    """A server, from the line that says where it listens until it is stopped."""

    def __init__(self, folder: Path, command: List[str], ready: str, more: Dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **more}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self._process.stdout is not None
        printed = ""
        for line in self._process.stdout:
            printed += line
            match = re.search(ready, line)
            if match is not None:
                self.url = match[1]
                return
        raise AssertionError(f"{command[0]} ended: {printed}")

    def stop(self) -> None:
        """Ends it, and waits for that."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def masked(text: str) -> str:
    """Without what differs from run to run."""
    text = re.sub(r"(?i)^date: .*$", "date: …", text.replace("\r\n", "\n").strip(), flags=re.MULTILINE)
    return re.sub(r"(?<=[=:\s])\d+(?=[,;s}\s.]|$)", "0", re.sub(r"HTTP/1\.1 (\d+)", r"HTTP/1.1 «\1»", text))
