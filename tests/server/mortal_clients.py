"""Clients that are killed: `python -m tests.server.mortal_clients URL TOKEN SECONDS SEED` prints their number.

It forks a client at a time, which follows answers and asks for expensive ones, and kills it after a moment. A forked
client needs no time to start, so many die in a short test.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from contextlib import suppress

import kpg


def live(url: str, token: str, seed: int) -> None:
    """Follow and change until killed."""
    chance = random.Random(seed)
    db = kpg.connect(url, token=token, reconnect=0)
    answers = [db.interest("path"), db.interest("path", arguments={"x": chance.randrange(40)})]
    while True:
        with suppress(kpg.KpgError):
            db.query("p(x, y) :- big(x), big2(y), x < 300.", language="datalog", limits={"product_rows": 10_000_000})
        for answer in answers:
            answer.rows()


def main() -> None:
    url, token, seconds, seed = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    chance, end, killed = random.Random(seed), time.monotonic() + seconds, 0
    with suppress(kpg.KpgError):
        kpg.connect(url, token="wrong", reconnect=0)  # imports what clients need, before the first fork
    while time.monotonic() < end:
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                live(url, token, killed)
            os._exit(1)
        time.sleep(chance.uniform(0.05, 1.0))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        killed += 1
    sys.stdout.write(str(killed))


if __name__ == "__main__":
    main()
