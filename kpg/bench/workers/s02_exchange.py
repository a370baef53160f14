"""S2: what does a round trip between two workers cost, and a loop of 100 rounds that moves one row in each?

The round trip is a frame of rows and a frame of progress there, the same back, between two processes and through the
code of a dataflow. The loops count a number up, one row in each round, which the hash of its value sends to either
worker: once with the exchange and the feedback alone, once with distinct in the loop. The latency of a loop runs from
before its row is inserted until the changes of the answer are in hand.
"""

from __future__ import annotations

import multiprocessing
import socket
import time
from collections.abc import Callable

import numpy as np

import kpg
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import wall_stopwatch
from kpg.bench.run import Run
from kpg.cluster.frames import FrameSocket, SocketPoller
from kpg.cluster.mesh import Mesh
from kpg.cluster.rank_generation import SPIN_SECONDS
from kpg.columns.functions import col
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates, constant
from kpg.dataflow.operator import Message
from kpg.dataflow.transport import ProgressFrame

ROUNDS = 100
LOOPS = 50
REHEARSED_LOOPS = 5
PROGRESS = ProgressFrame(((1, [(0, 2, (0, 1), 1), (1, 3, (0, 1), -1)]),))
ROW = Message(((0, 1),), Updates(np.ones((2, 1), np.int64), constant((0, 1)), constant((1,))))
Step = Callable[[kpg.Collection, kpg.Collection], kpg.Collection]


def run(run: Run) -> None:
    """Measure the round trip, then both loops."""
    p50, p99 = np.percentile(round_trips(run.fixed_rounds(5_000)), [50, 99]) * 1e3
    run.report("round trip", "p50 at most 45 µs", [at_most("p50_ms", 0.045)], p50_ms=float(p50), p99_ms=float(p99))
    loops: tuple[tuple[str, str, float, Step], ...] = (
        (
            "100 rounds, exchange and feedback alone", "12 ms in all", 12,
            lambda now, start: count_up(now).concat(start),
        ),
        (
            "100 rounds, with distinct", "80 ms in all", 80,
            lambda now, start: count_up(now).concat(start).distinct(),
        ),
    )  # fmt: skip
    with kpg.open(workers=2) as db:
        for case, bar, limit, step in loops:
            p50_ms, p99_ms = loop(run, db, case, step)
            run.report(case, bar, [at_most("p50_ms", limit)], p50_ms=p50_ms, p99_ms=p99_ms)


def count_up(now: kpg.Collection) -> kpg.Collection:
    """Return the next number, up to a hundred of them."""
    return now.filter(col("n") % 1000 < ROUNDS - 1).select(n=col("n") + 1)


def loop(run: Run, db: kpg.Database, case: str, step: Step) -> tuple[float, float]:
    """Return the milliseconds of the rounds that one new row causes: p50 and p99."""
    stopwatch = wall_stopwatch(case)
    start = db.input("start", n=int)
    answer = start.iterate(lambda now: step(now, start)).output("answer", keep=False)
    for number in range(run.fixed_rounds(LOOPS) + REHEARSED_LOOPS):
        with stopwatch:
            start.insert([(number * 1000,)])
            db.advance()
            changes = answer.take_changes()
        run.check(len(changes.updates) == ROUNDS, f"the rows of {case}")
    answer.release()
    start.drop()
    del stopwatch.seconds[:REHEARSED_LOOPS]
    return stopwatch.p50_ms, stopwatch.p99_ms


def round_trips(count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the seconds of each trip to another process and back, without the first tenth."""
    listener = socket.create_server(("127.0.0.1", 0))
    other = multiprocessing.get_context("spawn").Process(target=echo, args=(listener.getsockname(), count), daemon=True)
    other.start()
    sock, _ = listener.accept()
    mesh = Mesh(0, Symbols())
    mesh.add(1, FrameSocket(sock))
    seconds = np.empty(count)
    for trip in range(count):
        begin = time.perf_counter()
        send(mesh, 1)
        receive(mesh)
        seconds[trip] = time.perf_counter() - begin
    other.join()
    return seconds[count // 10 :]


def echo(address: tuple[str, int], count: int) -> None:
    """Answer each frame with one: the other end of the round trips."""
    mesh = Mesh(1, Symbols())
    mesh.add(0, FrameSocket(socket.create_connection(address)))
    for _ in range(count):
        receive(mesh)
        send(mesh, 0)


def send(mesh: Mesh, peer: int) -> None:
    """Send one row and its progress."""
    mesh.send_data(peer, 1, 2, ROW)
    mesh.broadcast(PROGRESS)


def receive(mesh: Mesh) -> None:
    """Wait for a row and its progress."""
    frames, poller = 0, SocketPoller(mesh.connections())
    while frames < 2:
        frames += len(mesh.receive())
        if frames < 2:
            poller.wait_soon(1.0, SPIN_SECONDS)


EXPERIMENT = engine_experiment(
    "S2",
    "a round trip between two workers",
    "5,000 trips; loops of 100 rounds",
    lambda scale: int(1e7 * scale + 8e8),
    run,
)
