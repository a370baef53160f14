"""A process that parses and compiles texts for the service, with a limit on CPU time and memory for each.

    planner = shared_planner()
    future = planner.submit(PlanTask("rules", (language, text, name, relations)), seconds=2.0, bytes=512 << 20)
    future.result()          what the function of the task returns; its KpgError; or OverLimit

A text can take seconds and gigabytes, and Python runs one thread at a time. So the parser of a large text runs in a
process of its own: the threads of the server go on, and the operating system enforces the limits. The tasks are pure
functions. All services of a program share one process, in fair turns of their users. It starts with the first task,
ends with the program, and is replaced when it has died or has used too much memory. Cost: copying the task and its
result.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import IO, Any, Final

from kpg.errors import KpgError, OverLimit, ParseError
from kpg.service.fair_queue import FairQueue

HEADER: Final = struct.Struct("<Q")  # the length of a frame in bytes
NICENESS: Final = 5  # the process gives way to the engine
GRACE_SECONDS: Final = 1  # of CPU time after the limit, until the operating system ends the process
WALL_SECONDS: Final = 30.0  # added to the limit: on a busy machine the process waits for a processor

_planner: PlannerProcess | None = None
_planner_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class PlanTask:
    """A function of `TASKS` and its arguments."""

    name: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class LimitedTask:
    """A task with its limits, as the process gets it."""

    task: PlanTask
    seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What the process replies: a result, an error of the user, or the limit that was reached."""

    result: Any = None
    error: KpgError | None = None
    exceeded: str = ""  # "time" or "memory"
    defect: str = ""  # an unexpected error


class TimeIsOver(BaseException):
    """The CPU time of a task is used up; not an Exception, so that no parser catches it."""


def shared_planner() -> PlannerProcess:
    """Return the planner of this program."""
    global _planner
    with _planner_lock:
        if _planner is None or _planner.process_id != os.getpid():  # a forked child starts its own
            _planner = PlannerProcess()
        return _planner


class PlannerProcess:
    """The process, and the thread that sends it tasks: those of one client in order, users in fair turns."""

    def __init__(self) -> None:
        self.process_id = os.getpid()
        self._queue: FairQueue[tuple[LimitedTask, Future[Any]]] = FairQueue()
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._serve, name="kpg-planner", daemon=True)
        self._thread.start()

    def submit(
        self, task: PlanTask, seconds: float, bytes: int, client: Hashable = None, user: Hashable = None
    ) -> Future[Any]:
        """Queue a task of a client of a user; `seconds` of CPU time and `bytes` of memory are its limits."""
        future: Future[Any] = Future()
        self._queue.put(user, client, (LimitedTask(task, seconds, bytes), future))
        return future

    def _serve(self) -> None:
        while True:
            user, client, (task, future) = self._queue.get()
            if not future.set_running_or_notify_cancel():
                continue
            began = time.monotonic()
            try:
                outcome = self._perform(task)
                if outcome.exceeded:  # replace the process, so that the system gets its memory back
                    self._end_child()
                    self._child = start_child()
                future.set_result(value_of(outcome, task))
            except BaseException as error:
                future.set_exception(error)
            finally:
                self._queue.charge(user, client, time.monotonic() - began)

    def _perform(self, task: LimitedTask) -> TaskOutcome:
        """Run a task in the process; a process that ends meanwhile was ended by a limit."""
        frame = pickle.dumps(task, pickle.HIGHEST_PROTOCOL)
        child = self._child
        if child is None or child.poll() is not None:
            self._end_child()
            child = self._child = start_child()
        assert child.stdin is not None and child.stdout is not None
        try:
            write_frame(child.stdin, frame)
            reply = read_frame(child.stdout, time.monotonic() + task.seconds + WALL_SECONDS)
        except (OSError, TimeoutError):
            reply = None
        if reply is None:
            self._end_child()
            return TaskOutcome(exceeded="time")
        outcome = pickle.loads(reply)
        assert isinstance(outcome, TaskOutcome)
        return outcome

    def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout):
                assert stream is not None
                with contextlib.suppress(OSError):
                    stream.close()


def value_of(outcome: TaskOutcome, task: LimitedTask) -> Any:
    """Return the result of a task, or raise its error."""
    if outcome.error is not None:
        raise outcome.error
    if outcome.exceeded == "time":
        raise over_time(task.seconds)
    if outcome.exceeded:
        raise OverLimit(
            f"the text takes more than {task.bytes:,} bytes of memory to parse and plan",
            detail="The limit is plan_bytes.",
            hint="Split it into several texts, or raise the limit: kpg serve --max-plan-bytes N.",
        )
    if outcome.defect:
        raise RuntimeError(outcome.defect)
    return outcome.result


def over_time(seconds: float) -> OverLimit:
    """Return the error for a text that takes too long."""
    return OverLimit(
        f"the text takes more than {seconds:g} seconds of CPU time to parse and plan",
        detail="The limit is plan_seconds.",
        hint="Split it into several texts, or raise the limit: kpg serve --max-plan-seconds N.",
    )


def start_child() -> subprocess.Popen[bytes]:
    """Start the process. It ends when this one closes its standard input, or has ended."""
    import kpg

    root = os.path.dirname(os.path.dirname(os.path.abspath(kpg.__file__)))
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, "-c", "from kpg.service.planner_process import serve_tasks; serve_tasks()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,  # Ctrl-C in a terminal is for the parent
    )


# Frames


def write_frame(stream: IO[bytes], frame: bytes) -> None:
    """Write a frame."""
    stream.write(HEADER.pack(len(frame)))
    stream.write(frame)
    stream.flush()


def read_frame(stream: IO[bytes], deadline: float | None = None) -> bytes | None:
    """Read a frame; return None at the end of the stream, and raise TimeoutError at the deadline."""
    header = read_exactly(stream, HEADER.size, deadline)
    return None if header is None else read_exactly(stream, HEADER.unpack(header)[0], deadline)


def read_exactly(stream: IO[bytes], size: int, deadline: float | None) -> bytes | None:
    """Read that many bytes without a buffer of its own; return None if the stream ends before."""
    parts: list[bytes] = []
    while size:
        if deadline is not None:
            wait = max(0.0, deadline - time.monotonic())
            if not select.select([stream], [], [], wait)[0]:
                raise TimeoutError
        part = os.read(stream.fileno(), min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


# In the process


def perform(limited: LimitedTask, tasks: dict[str, Callable[..., Any]]) -> TaskOutcome:
    """Run a task within its limits."""
    task = limited.task
    try:
        with cpu_limit(limited.seconds), memory_limit(limited.bytes):
            return TaskOutcome(result=tasks[task.name](*task.arguments))
    except KpgError as error:
        return TaskOutcome(error=error)
    except TimeIsOver:
        return TaskOutcome(exceeded="time")
    except MemoryError:
        return TaskOutcome(exceeded="memory")
    except RecursionError:
        hint = "Move inner parts into rules of their own."
        return TaskOutcome(error=ParseError("the text is nested too deep", hint=hint))
    except Exception as error:
        return TaskOutcome(defect=f"planning failed: {error!r}")


@contextlib.contextmanager
def cpu_limit(seconds: float) -> Any:
    """Raise TimeIsOver in this block after some CPU time; soon after that, the operating system ends the process."""
    import resource

    def raise_timeout(number: int, frame: Any) -> None:
        raise TimeIsOver

    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    last = int(used.ru_utime + used.ru_stime + seconds) + 1 + GRACE_SECONDS
    signal.signal(signal.SIGPROF, raise_timeout)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (last if hard == resource.RLIM_INFINITY else min(last, hard), hard))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))


@contextlib.contextmanager
def memory_limit(bytes: int) -> Any:
    """Let allocations in this block fail if the process takes that much more memory than now."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_AS)
    if sys.platform == "linux":
        with open("/proc/self/statm") as statistics:
            held = int(statistics.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def serve_tasks() -> None:
    """Perform tasks from the standard input until it ends."""
    from kpg.query.ir.compile import compile
    from kpg.service.languages import read_rules
    from kpg.sql.parse.statement_parser import parse_statements

    tasks: dict[str, Callable[..., Any]] = {"rules": read_rules, "compile": compile, "sql": parse_statements}
    os.nice(NICENESS)
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints must not mix with replies
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        outcome = perform(pickle.loads(frame), tasks)
        write_frame(replies, pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL))
