"""S2: what does a round trip between two workers cost, and a loop of 100 rounds that moves one row each?

The round trip is a frame of rows and a frame of progress there, the same back, between two processes and through the
same code as a dataflow's. The loops count a number up, one row in each round, which the hash of its value sends to
either worker: once with nothing but the exchange and the way back, once with distinct in the loop.
"""

from __future__ import annotations

import multiprocessing
import socket
import time
from collections.abc import Callable

import numpy as np

import kpg
from benchmarks.lines import Run, at_most
from benchmarks.measure import wall_clock
from kpg import col
from kpg.cluster.frames import FrameSocket, SocketPoller
from kpg.cluster.mesh import Mesh
from kpg.cluster.rank_requests import SPIN
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates, constant
from kpg.dataflow.operator import Message
from kpg.dataflow.transport import ProgressFrame

ROUNDS = 100
PROGRESS = ProgressFrame(((1, [(2, (0, 1), 1), (3, (0, 1), -1)]),))
ROW = Message(((0, 1),), Updates(np.ones((2, 1), np.int64), constant((0, 1)), constant((1,))))


def run(run: Run) -> None:
    """Both."""
    trips = round_trips(run.times(5_000))
    p50, p99 = np.percentile(trips, [50, 99]) * 1e3
    run.report("round trip", "p50 at most 60 µs", [at_most("p50_ms", 0.06)], p50_ms=float(p50), p99_ms=float(p99))
    alone = loop(run, "exchange and feedback", lambda now, seed: count_up(now).concat(seed))
    run.report(
        "100 rounds, exchange and feedback alone", "20 ms in all", [at_most("p50_ms", 20)], p50_ms=alone[0],
        p99_ms=alone[1],
    )  # fmt: skip
    distinct = loop(run, "distinct", lambda now, seed: count_up(now).concat(seed).distinct())
    run.report(
        "100 rounds, with distinct", "80 ms in all", [at_most("p50_ms", 80)], p50_ms=distinct[0], p99_ms=distinct[1]
    )


def count_up(now: kpg.Collection) -> kpg.Collection:
    """The next number, until a hundred are there."""
    return now.filter(col("n") % 1000 < ROUNDS - 1).select(n=col("n") + 1)


def loop(run: Run, name: str, step: Callable[[kpg.Collection, kpg.Collection], kpg.Collection]) -> tuple[float, float]:
    """Milliseconds for the rounds of one new row: p50, p99."""
    clock = wall_clock(name)
    with kpg.open(workers=2) as db:
        seed = db.input("seed", n=int)
        answer = seed.iterate(lambda now: step(now, seed)).output("answer", keep=False)
        for number in range(run.times(50) + 5):
            seed.insert([(number * 1000,)])
            with clock:
                db.advance()
            assert len(answer.take_changes().updates) == ROUNDS
    del clock.seconds[:5]
    return clock.p50_ms, clock.p99_ms


def round_trips(count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Seconds of each trip to another process and back."""
    listener = socket.create_server(("127.0.0.1", 0))
    other = multiprocessing.get_context("spawn").Process(target=echo, args=(listener.getsockname(), count), daemon=True)
    other.start()
    sock, _ = listener.accept()
    mesh = Mesh(0, Symbols())
    mesh.add(1, FrameSocket(sock))
    seconds = np.empty(count)
    for trip in range(count):
        begin = time.perf_counter()
        there(mesh, 1)
        heard(mesh)
        seconds[trip] = time.perf_counter() - begin
    other.join()
    return seconds[count // 10 :]


def echo(address: tuple[str, int], count: int) -> None:
    """The other end: each frame is answered by one."""
    mesh = Mesh(1, Symbols())
    mesh.add(0, FrameSocket(socket.create_connection(address)))
    for _ in range(count):
        heard(mesh)
        there(mesh, 0)


def there(mesh: Mesh, peer: int) -> None:
    """One row and its progress."""
    mesh.send_data(peer, 1, 2, ROW)
    mesh.broadcast(PROGRESS)


def heard(mesh: Mesh) -> None:
    """Wait for a row and its progress."""
    frames, watch = 0, SocketPoller(mesh.connections())
    while frames < 2:
        frames += len(mesh.receive())
        if frames < 2:
            watch.wait_soon(1.0, SPIN)
