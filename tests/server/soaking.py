"""A soak: a real `kpg serve` process under random clients, whose memory, files and threads must stay flat.

    python -m tests.server.soaking --seconds 600        what `make soak` runs; tests/server/test_soak.py runs less

Threads of this process install, follow, cancel and drop queries, run into limits, send nonsense and leave without a
word; processes of `tests.server.mortal_clients` are killed. Beside them a control client changes a small graph and
compares a recursive answer with its own after each change. After a warm-up and at the end all clients but the control
client are gone, and the server is measured: file descriptors, threads, child processes, the engine's dataflows,
arrangements and symbols, and resident memory. The first kinds must be equal, memory nearly so.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import kpg
from kpg.client.connection import Connection

ROOT = Path(__file__).parent.parent.parent
TOKEN = "the-token-of-the-soak"
NODES = 8  # of the control client's graph
BIG_ROWS = 3_000  # of the relations that offenders multiply
OPTIONS = [
    "--max-rounds", "100", "--max-step-rows", "500000", "--max-kept-rows", "300000", "--max-product-rows", "1000000",
    "--max-plan-seconds", "1", "--max-message-bytes", "1000000", "--max-hold-seconds", "1",
]  # fmt: skip
GAUGES = (
    "kpg_dataflows", "kpg_operators", "kpg_arrangement_rows", "kpg_inputs", "kpg_outputs", "kpg_interests", "kpg_rules",
    "kpg_relations", "kpg_sessions", "kpg_waiting_messages",
)  # fmt: skip
QUIET_SECONDS = 3  # without any request, in which a server collects garbage if that is due
MEMORY_TOLERANCE_BYTES = 48 << 20  # growth between two measurements that is noise of the allocator
MEMORY_TOLERANCE_RATIO = 0.12


@dataclass(frozen=True)
class Measurement:
    """What a quiet server uses."""

    resident_bytes: int
    files: list[str]  # what its file descriptors refer to
    threads: int
    children: int
    gauges: dict[str, float]

    def __str__(self) -> str:
        gauges = ", ".join(f"{name.removeprefix('kpg_')} {value:.0f}" for name, value in self.gauges.items())
        used = f"{self.resident_bytes >> 20} MiB, {len(self.files)} files, {self.threads} threads"
        return f"{used}, {self.children} children; {gauges}"


class Server:
    """The process under test."""

    def __init__(self, directory: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kpg.cli", "serve", "--port", "0", *OPTIONS, str(directory)],
            env={**os.environ, "PYTHONPATH": str(ROOT), "KPG_TOKEN": TOKEN}, cwd=ROOT,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        match = None
        while match is None:
            line = self.process.stdout.readline()
            assert line, "the server did not start"
            match = re.search(r"listening on (ws://\S+)", line)
        self.url = match[1]
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def connect(self) -> Connection:
        return kpg.connect(self.url, token=TOKEN, reconnect=0)

    def metrics(self) -> dict[str, float]:
        """Return the sums of the gauges."""
        request = urllib.request.Request(
            self.url.replace("ws", "http", 1) + "/metrics", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            text = response.read().decode()
        sums: Counter[str] = Counter()
        for name, value in re.findall(r"^(\w+)(?:\{.*\})? (\S+)$", text, re.MULTILINE):
            sums[name] += float(value)
        return {name: sums[name] for name in GAUGES}

    def measure(self) -> Measurement:
        """Measure the server once it is quiet: clients that were killed are noticed, and idle work is done."""
        time.sleep(QUIET_SECONDS)
        last, deadline = self._measure(), time.monotonic() + 20
        while time.monotonic() < deadline:
            time.sleep(0.5)
            now = self._measure()
            if (now.files, now.threads, now.gauges) == (last.files, last.threads, last.gauges):
                if now.gauges["kpg_sessions"] <= 1:
                    return now
            last = now
        return last

    def _measure(self) -> Measurement:
        gauges = self.metrics()
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        resident, threads = re.search(r"VmRSS:\s+(\d+)", status), re.search(r"Threads:\s+(\d+)", status)
        assert resident is not None and threads is not None
        process = Path(f"/proc/{self.process.pid}")
        children = [child for path in process.glob("task/*/children") for child in path.read_text().split()]
        files = []
        for descriptor in process.glob("fd/*"):
            with suppress(FileNotFoundError):
                files.append(re.sub(r"\d+", "N", os.readlink(descriptor)))
        return Measurement(int(resident[1]) << 10, sorted(files), int(threads[1]), len(children), gauges)

    def end(self) -> int:
        """End the server in order; return its exit status."""
        self.process.terminate()
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()


class Control:
    """A client that behaves well: it changes a graph, and compares the paths with its own."""

    def __init__(self, server: Server, seed: int) -> None:
        self._db = server.connect()
        self._chance = random.Random(seed)
        self._edges: set[tuple[int, int]] = set()
        self._answer = self._db.interest("control_path")
        self._answer.rows()
        self.changes = 0
        self.seconds: list[float] = []
        self.failure: BaseException | None = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        try:
            while not self._end.is_set():
                self.change()
                time.sleep(0.01)
        except BaseException as error:
            self.failure = error

    def change(self) -> None:
        """Insert or remove an edge, and compare."""
        edge = (self._chance.randrange(NODES), self._chance.randrange(NODES))
        began = time.perf_counter()
        (self._db.remove if edge in self._edges else self._db.insert)("control_edge", [edge])
        self._edges ^= {edge}
        rows = self._answer.rows()
        self.seconds.append(time.perf_counter() - began)
        assert sorted(rows) == paths(self._edges)
        self.changes += 1

    def end(self) -> None:
        """Stop, remove the edges, compare for the last time with a query, and disconnect."""
        self._end.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure
        assert sorted(map(tuple, self._db.query("control_path").to_pandas().to_numpy().tolist())) == paths(self._edges)
        self._answer.close()
        self._db.remove("control_edge", sorted(self._edges))
        self._db.close()


def paths(edges: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs of nodes with a path between them, sorted."""
    closure = set(edges)
    while True:
        more = closure | {(a, d) for a, b in closure for c, d in edges if b == c}
        if more == closure:
            return sorted(closure)
        closure = more


# What wild clients do. Each leaves the server as it was, if the server forgets what belonged to its session.

Action = Callable[[Server, random.Random, int], None]


def install(server: Server, chance: random.Random, number: int) -> None:
    """Register a rule, follow it, perhaps read it, and remove it."""
    name = f"soak_{number}"
    with server.connect() as db:
        db.register(f"{name}(x, z) :- edge(x, y), edge(y, z), x < {chance.randrange(50)}.", name=name)
        answer = db.interest(name)
        if chance.random() < 0.7:
            answer.rows()
        if chance.random() < 0.7:
            answer.close()
        db.query(name)
        if chance.random() < 0.5:
            with suppress(kpg.KpgError):
                db.unregister(name)  # refused while it is followed
                return
    with server.connect() as db:
        db.unregister(name)


def follow_arguments(server: Server, chance: random.Random, number: int) -> None:
    """Follow a recursive rule for some arguments, as a tenant."""
    with server.connect() as db:
        answer = db.interest("path", arguments={"x": chance.randrange(40)})
        answer.rows()
        answer.add({"x": chance.randrange(40)})
        answer.rows()


def leave_amid_work(server: Server, chance: random.Random, number: int) -> None:
    """Ask for an expensive answer, and disconnect without waiting."""
    with server.connect() as db:
        text = f"p(x, y) :- big(x), big2(y), x < {chance.randrange(500, 3000)}."
        limits = {"product_rows": 50_000_000, "step_rows": 50_000_000}
        answer = db.interest("path")
        cut = threading.Timer(chance.uniform(0.01, 0.3), db._socket.socket.shutdown, [socket.SHUT_RDWR])
        cut.start()
        with suppress(kpg.KpgError, OSError):
            db.query(text, language="datalog", limits=limits)
            answer.rows()
        cut.join()


OFFENCES: tuple[tuple[str, Literal["datalog", "edn"], dict[str, float | None] | None], ...] = (
    ("p(x, y) :- big(x), big2(y).", "datalog", None),
    ("p(x, y) :- big(x), big2(y).", "datalog", {"product_rows": 20_000_000}),
    ("n(1). n(y) :- n(x), y = x + 1.", "datalog", None),
    ("many(x) :- big(x)" + ", (x > 1 ; x < 3)" * 13 + ".", "datalog", None),
    ("[:find ?x :where " + " ".join(f"[?x :a {n}]" for n in range(2000)) + "]", "edn", None),
    ("p(x) :- no_such_relation(x).", "datalog", None),
    ("p(x :- ", "datalog", None),
)


def meet_limits(server: Server, chance: random.Random, number: int) -> None:
    """Ask for an answer that the server refuses or stops."""
    text, language, limits = OFFENCES[number % len(OFFENCES)]
    with server.connect() as db:
        try:
            db.query(text, language=language, limits=limits)
        except kpg.KpgError:
            return
        raise AssertionError(f"{text[:60]} was answered")


def run_sql(server: Server, chance: random.Random, number: int) -> None:
    """Create a table and a view, read them, and drop both."""
    with server.connect() as db:
        db.sql(f"CREATE TABLE t{number} (id int PRIMARY KEY, price int)")
        db.sql(f"INSERT INTO t{number} SELECT x, x * 2 FROM big WHERE x < {chance.randrange(1, 200)}")
        db.sql(f"CREATE MATERIALIZED VIEW v{number} AS SELECT sum(price) AS total FROM t{number}")
        db.sql(f"SELECT * FROM v{number}")
        with suppress(kpg.KpgError):
            db.sql("SELECT 1 / 0")
        db.sql(f"DROP MATERIALIZED VIEW v{number}")
        db.sql(f"DROP TABLE t{number}")


def change_much(server: Server, chance: random.Random, number: int) -> None:
    """Insert many rows while a client that never reads follows them, and remove them."""
    rows = [(1_000_000 + number, n) for n in range(chance.randrange(1, 3000))]
    with server.connect() as db, server.connect() as slow:
        slow.interest("bulk")
        db.insert("bulk", rows)
        db.remove("bulk", rows)


def talk_nonsense(server: Server, chance: random.Random, number: int) -> None:
    """Connect with a wrong token, send no JSON, a message that is too large, or half of an HTTP request."""
    with suppress(kpg.KpgError, OSError):
        match chance.randrange(4):
            case 0:
                kpg.connect(server.url, token="wrong", reconnect=0)
            case 1:
                with server.connect() as db:
                    db._socket.send(chance.choice(["{", "[]", '{"type": "interest"}', "null"]))
                    db.ping()
            case 2:
                with server.connect() as db:
                    db.insert("bulk", [(0, n) for n in range(200_000)])
            case _:
                with urllib.request.urlopen(server.url.replace("ws", "http", 1) + "/query", timeout=5):
                    pass


ACTIONS: tuple[Action, ...] = (
    install, install, follow_arguments, leave_amid_work, meet_limits, run_sql, change_much, talk_nonsense,
)  # fmt: skip


@dataclass
class Crowd:
    """Threads of wild clients, and a process whose clients are killed."""

    server: Server
    seed: int
    threads: int = 3
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[BaseException] = field(default_factory=list)

    def run(self, seconds: float) -> None:
        """Run wild clients for some time, and wait until all are gone."""
        end = time.monotonic() + seconds
        mortal = subprocess.Popen(
            [sys.executable, "-m", "tests.server.mortal_clients", self.server.url, TOKEN, str(seconds), str(self.seed)],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        threads = [threading.Thread(target=self._work, args=(number, end)) for number in range(self.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        killed, _ = mortal.communicate(timeout=120)
        self.counts["killed clients"] += int(killed)
        self.seed += 1
        if self.failures:
            raise self.failures[0]

    def run_each(self) -> None:
        """Let a client do each thing once: the first time may open files and start threads that stay."""
        for number, action in enumerate((*ACTIONS, *[meet_limits] * len(OFFENCES))):
            self.act(action, random.Random(number), number)

    def act(self, action: Action, chance: random.Random, number: int) -> None:
        """Let a client do one thing."""
        action(self.server, chance, number)
        self.counts[action.__name__] += 1

    def _work(self, number: int, end: float) -> None:
        chance = random.Random(f"{self.seed} {number}")
        try:
            while time.monotonic() < end and not self.failures:
                action = chance.choice(ACTIONS)
                self.act(action, chance, self.threads * self.counts.total() + number)
        except BaseException as error:
            self.failures.append(error)


def prepare(server: Server) -> None:
    """Create the relations and rules that all clients use."""
    with server.connect() as db:
        for name in ("edge", "control_edge", "bulk"):
            db.create_relation(name, {"x": int, "y": int})
        for prefix in ("", "control_"):
            edge, path = f"{prefix}edge", f"{prefix}path"
            db.register(f"{path}(x, y) :- {edge}(x, y). {path}(x, z) :- {path}(x, y), {edge}(y, z).", name=path)
        db.insert("edge", [(n, n + 1) for n in range(40)])
        for name in ("big", "big2"):
            db.create_relation(name, {"x": int})
            db.insert(name, [(n,) for n in range(BIG_ROWS)])


def soak(seconds: float, warm_seconds: float, seed: int, report: Callable[[str], object]) -> None:
    """Run a soak; raise if an answer was wrong, the server failed, or something has grown."""
    with tempfile.TemporaryDirectory() as directory:
        server = Server(Path(directory) / "db")
        try:
            prepare(server)
            control, crowd = Control(server, seed), Crowd(server, seed)
            crowd.run_each()
            crowd.run(warm_seconds)
            before = server.measure()
            report(f"after warm-up: {before}")
            crowd.run(seconds)
            after = server.measure()
            report(f"at the end:    {after}")
            control.end()
            counts = ", ".join(f"{name} {count}" for name, count in sorted(crowd.counts.items()))
            latencies = sorted(control.seconds)
            report(f"{counts}; control changes {control.changes}")
            report(f"control p50 {latencies[len(latencies) // 2] * 1e3:.1f} ms, max {latencies[-1] * 1e3:.0f} ms")
            compare(before, after)
            assert server.end() == 0
        finally:
            server.process.kill()


def compare(before: Measurement, after: Measurement) -> None:
    """Raise if a quiet server uses more than before."""
    more = Counter(after.files) - Counter(before.files)
    assert more.total() <= 1, f"file descriptors: {len(before.files)}, then {len(after.files)}: {dict(more)} more"
    assert after.threads <= before.threads + 1, f"threads: {before.threads}, then {after.threads}"
    assert after.children <= before.children, f"child processes: {before.children}, then {after.children}"
    grown = {name: (before.gauges[name], value) for name, value in after.gauges.items() if value > before.gauges[name]}
    grown.pop("kpg_arrangement_rows", None)  # the control graph differs in rows
    assert not grown, f"grown: {grown}"
    limit = before.resident_bytes * (1 + MEMORY_TOLERANCE_RATIO) + MEMORY_TOLERANCE_BYTES
    assert after.resident_bytes <= limit, (
        f"memory: {before.resident_bytes >> 20}, then {after.resident_bytes >> 20} MiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Soak a server.")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--warm-seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    soak(arguments.seconds, arguments.warm_seconds, arguments.seed, lambda line: os.write(1, f"{line}\n".encode()))


if __name__ == "__main__":
    main()
