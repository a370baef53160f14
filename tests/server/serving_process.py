"""`kpg serve` as a process of its own, for tests of signals and of the command."""

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TOKEN = "an-admin-token-of-tests"


@contextmanager
def process(*arguments: str, token: str | None = TOKEN):
    """A server process whose first line was read; killed at the end in any case."""
    known = {**os.environ, "PYTHONPATH": str(ROOT), **({"KPG_TOKEN": token} if token else {})}
    server = subprocess.Popen(
        [sys.executable, "-m", "kpg.cli", "serve", "--port", "0", *arguments],
        env=known, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield server, first_address(server)
    finally:
        server.kill()
        server.wait()


def first_address(server) -> str:
    for line in server.stdout:
        if match := re.fullmatch(r"kpg: listening on (ws://127\.0\.0\.1:\d+)\n", line):
            return match[1]
    raise AssertionError(server.stderr.read())
