"""A process that forks children, which transact on a directory until they are killed.

It reads lines of JSON: a directory, a seed, and the point at which the child kills itself: the call of a system
function, a frame of the log, or a file of a checkpoint in the background. If it is null, the test kills the child, and
a child that has finished waits for that. A child prints its process id first, and "ack n" when transaction n has
returned. Transaction n is a function of n alone, so a reader of the directory can tell how many of them it holds.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

STEPS = 40
CHECKPOINT_BYTES = [600, 3000, 1 << 30]


def changes(n: int) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return the rows that transaction n inserts, and those it removes."""
    inserted = [(n, f"text {n % 5}")] * (1 + n % 2)
    removed = [(n - 3, f"text {(n - 3) % 5}")] if n % 4 == 3 else []
    return inserted, removed


def after(count: int) -> Counter[tuple[int, str]]:
    """Return the rows after the first `count` transactions."""
    rows: Counter[tuple[int, str]] = Counter()
    for n in range(count):
        inserted, removed = changes(n)
        rows.update(inserted)
        rows.subtract(removed)
    return +rows


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def die_at(name: str, call: int, moment: str) -> None:
    """Kill this process before, amid or after a call of a function of `os`, counted from 1."""
    real: Callable[..., Any] = getattr(os, name)
    count = 0

    def wrapped(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count != call:
            return real(*arguments)
        if moment == "amid" and name == "pwrite":
            fd, data, at = arguments
            real(fd, bytes(data)[: len(data) // 2], at)
        elif moment != "before":
            real(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("dead")

    setattr(os, name, wrapped)


def die_at_frame(name: str, call: int, moment: str) -> None:
    """Kill this process before or after the kernel is asked to write a frame, or when half of the frame is written."""
    from kpg.storage.direct_blocks import DirectBlocks

    real = DirectBlocks.begin
    count = 0

    def begin(blocks: DirectBlocks, data: bytes, offset: int, force: bool) -> None:
        nonlocal count
        count += 1
        if count != call or moment == "after":
            real(blocks, data, offset, force)
        if count != call:
            return
        if moment == "amid":
            through_cache = os.open(f"/proc/self/fd/{blocks.fd}", os.O_WRONLY)
            os.pwrite(through_cache, data[: len(data) // 2], offset)
        os.kill(os.getpid(), signal.SIGKILL)

    DirectBlocks.begin = begin  # type: ignore[method-assign]


def die_in_checkpoint(name: str, acknowledged: int, moment: str) -> None:
    """Kill this process before or after a checkpoint writes a file, once more transactions were acknowledged beside it.

    `name` is the beginning of the file's name. A checkpoint that no transaction follows goes on.
    """
    from kpg.storage.local_files import LocalFiles

    real = LocalFiles.write
    count = threading.Semaphore(0)

    def write(files: LocalFiles, file: str, parts: Any) -> None:
        waiting = threading.current_thread().name == "kpg checkpoint" and file.startswith(name)
        enough = waiting and all(count.acquire(timeout=0.3) for _ in range(acknowledged))
        if not enough or moment != "before":
            real(files, file, parts)
        if enough:
            os.kill(os.getpid(), signal.SIGKILL)

    LocalFiles.write = write  # type: ignore[method-assign]
    ACKNOWLEDGED.append(count.release)


ACKNOWLEDGED: list[Callable[[], None]] = []  # called after each acknowledgement


def work(directory: str, seed: int) -> None:
    """Run transactions, and print an acknowledgement of each."""
    import kpg

    chance = random.Random(seed)
    db = kpg.open(directory, checkpoint_bytes=chance.choice(CHECKPOINT_BYTES))
    rows = db.input("rows", n=int, text=str)
    if chance.random() < 0.5:
        rows.arrange("text")
    done = db.applied.latest("writer")
    first = 0 if done is None else done + 1
    say(f"begin {first}")
    for n in range(first, first + STEPS):
        inserted, removed = changes(n)

        def fill(db: kpg.Database, inserted: Any = inserted, removed: Any = removed) -> None:
            rows.insert(inserted)
            rows.remove(removed)

        db.transact(fill, origin=("writer", n))
        say(f"ack {n}")
        for note in ACKNOWLEDGED:
            note()
        if chance.random() < 0.2:
            db.transact(fill, origin=("writer", n))  # a writer that missed the acknowledgement
        if chance.random() < 0.1:
            db.checkpoint()
    db.close()


def rehearse(db: Any) -> None:
    """Compile all kernels before the first fork."""
    rows = db.input("rows", n=int, text=str)
    rows.arrange("text")
    for n in range(STEPS):
        inserted, removed = changes(n)
        rows.insert(inserted)
        rows.remove(removed)
        db.advance()
    db.close()


def main() -> None:
    import kpg

    rehearse(kpg.open())
    say("ready")
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            say(f"child {os.getpid()}")
            if request["point"]:
                name, number, moment = request["point"]
                die = die_at_frame if name == "frame" else die_in_checkpoint if name.endswith("-") else die_at
                die(name, number, moment)
            try:
                work(request["directory"], request["seed"])
            except BaseException as error:
                say(f"error {error!r}")
                os._exit(1)
            while not request["point"]:
                signal.pause()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        say(f"end {status}")


if __name__ == "__main__":
    main()
