"""Random schedules of calls and kills on a db of several workers, against a model of what was acknowledged.

    Schedule(path, workers, seed).play(steps)

Every step is one call that a user could make, or the death of some workers: at once, or a moment later and so in the
middle of the calls that follow. Every call must return: a watchdog ends the test, with the calls so far, when one does
not return in time.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import kpg
from kpg import col

CALL_TIMEOUT_SECONDS = 60.0  # a recovery takes a few seconds; a call that waits for a lost message waits forever
TEXTS = ("a", "b", "longer text", "")
COLUMNS: dict[str, dict[str, Any]] = {
    "kv": {"key": "k", "k": int, "v": str},
    "names": {"key": "name", "name": str, "n": int},
    "edges": {"src": int, "dst": int},
}
Rows = Counter[tuple[Any, ...]]


class NoReturn(AssertionError):
    """Raised for a call that did not return in time."""


def expected_answer(kind: str, relation: str, rows: Rows) -> Rows:
    """Return what an output should hold, given the rows of its relation."""
    present = +rows
    if kind == "all":
        return present
    if kind == "count":
        last = Counter(row[1] for row in present.elements())
        return Counter(dict.fromkeys(last.items(), 1))
    assert kind == "hops"
    pairs: Rows = Counter()
    for (a, b), n in present.items():
        for (c, d), m in present.items():
            if b == c:
                pairs[a, d] += n * m
    return pairs


def install(kind: str, source: kpg.Input, name: str) -> kpg.Output:
    """Install an answer."""
    if kind == "all":
        return source.output(name)
    if kind == "count":
        return source.count(source.schema.names[1]).output(name)
    ahead = source.rename(src="dst", dst="end")
    return source.join(ahead, on="dst").select("src", dst=col("end")).output(name)


class Schedule:
    """One db, the model of it, and a source of chance."""

    def __init__(self, path: Path, workers: int, seed: int) -> None:
        self.path, self.workers = path, workers
        self.chance = random.Random(f"{workers}/{seed}")
        self.calls: list[str] = []
        self.rows: dict[str, Rows] = {}  # acknowledged, by stored relation
        self.open: dict[str, Rows] = {}  # the same with the pending changes
        self.inputs: dict[str, kpg.Input] = {}
        self.outputs: dict[str, tuple[str, str, kpg.Output]] = {}
        self.closed: set[str] = set()
        self.installed = 0
        self.timers: list[threading.Timer] = []
        self.pool = ThreadPoolExecutor(1)
        self.db: Any = None

    def play(self, steps: int) -> None:
        """Make random calls, then check everything once more in a db that is opened anew."""
        try:
            self.reopen()
            self.advance()  # before it, nothing is complete that could be read
            for _ in range(steps):
                self.chance.choice(self.possible())()
            self.advance()
            self.check()
            self.reopen()
            for name in tuple(self.rows):
                self.declare(name)
                self.install(name)
            self.check()
        except BaseException as error:
            error.add_note(f"{self.workers} workers: " + "; ".join(self.calls))
            raise
        finally:
            self.end()

    def possible(self) -> list[Callable[[], None]]:
        """Return the steps that make sense now, the more likely ones several times."""
        steps: list[Callable[[], None]] = [self.advance, self.advance, self.check, self.checkpoint, self.reopen]
        steps += [self.kill, self.kill_soon, self.kill_soon]
        missing = [name for name in COLUMNS if name not in self.inputs]
        steps += 3 * [lambda: self.declare(self.chance.choice(missing))] if missing else []
        if self.inputs:
            name = self.chance.choice(list(self.inputs))
            steps += 2 * [lambda: self.install(name)]
            if name not in self.closed:
                steps += 4 * [lambda: self.change(name)]
                steps += [lambda: self.close(name)] if self.chance.random() < 0.3 else []
            if all(name != relation for relation, _, _ in self.outputs.values()):
                steps.append(lambda: self.drop(name))
        steps += [self.release] if self.outputs else []
        return steps

    def call(self, text: str, function: Callable[[], Any]) -> Any:
        """Make a call under the watchdog."""
        self.calls.append(text)
        future = self.pool.submit(function)
        try:
            return future.result(CALL_TIMEOUT_SECONDS)
        except TimeoutError:
            if future.done():
                raise
            raise NoReturn(f"{text} did not return within {CALL_TIMEOUT_SECONDS:.0f} s") from None

    # Steps

    def reopen(self) -> None:
        self.wait_for_kills()
        if self.db is not None:
            self.call("close", self.db.close)
        self.inputs, self.outputs, self.open, self.closed = {}, {}, {}, set()
        self.db = self.call("open", lambda: kpg.open(self.path, workers=self.workers))

    def declare(self, name: str) -> None:
        options = COLUMNS[name]
        self.inputs[name] = self.call(f"declare {name}", lambda: self.db.input(name, **options))
        self.open[name] = self.rows.setdefault(name, Counter()).copy()

    def change(self, name: str) -> None:
        source, rows = self.inputs[name], self.open[name]
        if not source.key:
            row = (self.chance.randrange(4), self.chance.randrange(4))
            diff = -1 if rows[row] and self.chance.random() < 0.5 else 1
            rows[row] += diff
            self.call(f"{name} {diff:+} {row}", lambda: source.insert([row]) if diff > 0 else source.remove([row]))
            return
        keys = self.chance.sample(range(6), self.chance.choice([1, 1, 4]))
        value = self.chance.randrange(3)
        new = [(key, TEXTS[value]) if name == "kv" else (TEXTS[key % 4] + str(key), value) for key in keys]
        for row in new:
            for old in [old for old in rows if old[0] == row[0]]:
                del rows[old]
            rows[row] = 1
        self.call(f"upsert {name} {new}", lambda: source.upsert(new))

    def install(self, name: str) -> None:
        kind = self.chance.choice(["all", "count"] if self.inputs[name].key else ["all", "count", "hops"])
        self.installed += 1
        title, source = f"answer {self.installed}", self.inputs[name]
        output = self.call(f"install {kind} of {name}", lambda: install(kind, source, title))
        self.outputs[title] = (name, kind, output)

    def release(self) -> None:
        title = self.chance.choice(list(self.outputs))
        self.call(f"release {title}", self.outputs.pop(title)[2].release)

    def drop(self, name: str) -> None:
        self.call(f"drop {name}", self.inputs.pop(name).drop)
        self.closed.discard(name)
        del self.open[name], self.rows[name]

    def close(self, name: str) -> None:
        self.call(f"close {name}", self.inputs[name].close)
        self.closed.add(name)

    def advance(self) -> None:
        self.call("advance", self.db.advance)
        self.rows |= {name: rows.copy() for name, rows in self.open.items()}

    def checkpoint(self) -> None:
        self.call("checkpoint", self.db.checkpoint)

    def check(self) -> None:
        for title, (name, kind, output) in self.outputs.items():
            actual = Counter(self.call(f"read {title}", output.rows))
            assert actual == expected_answer(kind, name, self.rows[name]), (title, kind, name)

    # Kills

    def victims(self) -> list[int]:
        return self.chance.sample(range(self.workers), self.chance.choice([1, 1, 1, self.workers]))

    def kill(self) -> None:
        victims = self.victims()
        self.calls.append(f"kill {victims}")
        for rank in victims:
            self.kill_rank(rank)

    def kill_soon(self) -> None:
        seconds, victims = self.chance.choice([0.002, 0.01, 0.05, 0.3]), self.victims()
        self.calls.append(f"kill {victims} in {seconds} s")
        for rank in victims:
            self.timers.append(threading.Timer(seconds, self.kill_rank, [rank]))
            self.timers[-1].start()

    def kill_rank(self, rank: int) -> None:
        member = self.db.coordinator.members.get(rank)
        if member is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member.pid, signal.SIGKILL)

    def wait_for_kills(self) -> None:
        for timer in self.timers:
            timer.join()
        self.timers.clear()

    def end(self) -> None:
        """End the db and its workers, also if a call still waits."""
        self.wait_for_kills()
        closing = threading.Thread(target=self.db.close, daemon=True)
        closing.start()
        closing.join(10)
        if closing.is_alive():
            for rank in range(self.workers):
                self.kill_rank(rank)
        self.pool.shutdown(wait=False)
