"""A process that has loaded the code of a rank and forks ranks.

Most of a rank's start is the import of all code (0.2 to 1 s of CPU), so it is done once: the starter imports, and each
rank is a fork that shares its memory until it writes. While the starter waits for requests it runs some queries of its
own, so that a rank that replaces a lost one has the kernels loaded, too.

The client hands over a rank's standard streams and a pipe for news as file descriptors. The starter writes the rank's
process id into the pipe, and its exit status when it ends. The environment and the working directory come with each
rank; what libraries read from the environment when they are imported is, as in the client, what it was then. A rank is
in a session of its own, so signals from a terminal do not reach it. The starter ends when the client closes its socket,
or dies, and no rank is left. If the starter is killed, its ranks go on.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading

from kpg.cluster.rank_warm_up import warm_up

NEWS = struct.Struct("<q")  # the process id of a rank, then its exit status as `os.waitstatus_to_exitcode` gives it
REQUEST = b"rank"  # carries the descriptors of standard input, output and error, and of the pipe for news
DESCRIPTORS = 4
WARM_UP_DELAY_SECONDS = 3.0  # the ranks that start first need the cores
ENDED_UNSEEN = 1 << 16  # in place of an exit status, if the starter ended first


class RankProcess:
    """A rank that a starter has forked, or will fork when it has loaded all code."""

    def __init__(self, standard_input: int, news: int) -> None:
        self._input = standard_input
        self._news = news
        self._pid: int | None = None
        self._status: int | None = None

    def write(self, line: bytes) -> None:
        """Write a line to the standard input of the rank."""
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._input, rest) :]

    def wait(self, timeout_seconds: float | None) -> int | None:
        """Return the exit status; a signal's number is negative. None if the rank still runs after the timeout."""
        while self._status is None and select.select([self._news], [], [], timeout_seconds)[0]:
            news = os.read(self._news, NEWS.size)
            if len(news) < NEWS.size:
                self._status = ENDED_UNSEEN  # the rank has a copy of the pipe's end, so it has ended as well
            elif self._pid is None:
                (self._pid,) = NEWS.unpack(news)
            else:
                (self._status,) = NEWS.unpack(news)
        return self._status

    def kill(self) -> None:
        """Kill the rank."""
        if self.wait(0) is None and self._pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes. A rank that has no bootstrap yet then ends."""
        os.close(self._input)
        os.close(self._news)


class RankStarter:
    """The client's end of a starter. Several dbs share one; it closes with the last of them."""

    _lock = threading.Lock()
    _newest: RankStarter | None = None

    def __init__(self) -> None:
        self._client = os.getpid()
        self._users = 0
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "kpg.cluster"]
        with theirs:
            self._process = subprocess.Popen(
                command, stdin=theirs.fileno(), start_new_session=True, env=environment_of_ranks()
            )

    @classmethod
    def share(cls) -> RankStarter:
        """Return the starter of this process, for one user more; begin one if there is none."""
        with cls._lock:
            starter = cls._newest
            if starter is None or starter._client != os.getpid() or starter._process.poll() is not None:
                starter = cls._newest = RankStarter()
            starter._users += 1
            return starter

    def release(self) -> None:
        """End the use of one user; the last one ends the process."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            if RankStarter._newest is self:
                RankStarter._newest = None
        self._socket.close()
        self._process.wait()

    def start(self) -> RankProcess:
        """Begin a rank, without waiting for it. Raise OSError if the starter is gone."""
        input_end, standard_input = os.pipe()
        news, news_end = os.pipe()
        try:
            socket.send_fds(self._socket, [REQUEST], [input_end, 1, 2, news_end])
        except OSError:
            os.close(standard_input)
            os.close(news)
            raise
        finally:
            os.close(input_end)
            os.close(news_end)
        process = RankProcess(standard_input, news)
        process.write(json.dumps([os.getcwd(), environment_of_ranks()]).encode() + b"\n")
        return process


def environment_of_ranks() -> dict[str, str]:
    """Return the environment of a rank: that of this process, with the directory that kpg was imported from."""
    import kpg

    root = os.path.dirname(os.path.dirname(os.path.abspath(kpg.__file__)))
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": root if not before else f"{root}{os.pathsep}{before}"}


def fork_ranks() -> None:
    """Fork a rank for each request that arrives on standard input. Return in the ranks only; the starter exits."""
    requests = socket.socket(fileno=os.dup(0))
    ended, ended_end = os.pipe()
    os.set_blocking(ended_end, False)
    signal.set_wakeup_fd(ended_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    gc.freeze()  # a collection in a rank would write to, and so copy, the pages of all objects
    news_of: dict[int, int] = {}
    open_to_requests = True
    delay: float | None = WARM_UP_DELAY_SECONDS
    while open_to_requests or news_of:
        watched = [ended, requests.fileno()] if open_to_requests else [ended]
        waiting = select.select(watched, [], [], delay)[0]
        if not waiting:
            warm_up()
            gc.freeze()
            delay = None
        if ended in waiting:
            os.read(ended, 4096)
            report_ends(news_of)
        if requests.fileno() in waiting:
            request, descriptors, _, _ = socket.recv_fds(requests, len(REQUEST), DESCRIPTORS)
            if not request:
                open_to_requests = False
                continue
            *streams, news = descriptors
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                requests.close()
                become_rank(streams, [ended, ended_end, *news_of.values()])
                return
            for stream in streams:
                os.close(stream)
            news_of[pid] = news
            send_news(news, pid)
    sys.exit()


def become_rank(streams: list[int], others: list[int]) -> None:
    """Give a forked process its session, streams and environment; close the descriptors that belong to others."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for descriptor in (*streams, *others):
        os.close(descriptor)
    directory, environment = json.loads(sys.stdin.readline())
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)


def report_ends(news_of: dict[int, int]) -> None:
    """Tell the client of each rank that has ended."""
    while news_of:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        news = news_of.pop(pid)
        send_news(news, os.waitstatus_to_exitcode(status))
        os.close(news)


def send_news(news: int, value: int) -> None:
    """Write a number to a client, if it still reads."""
    with contextlib.suppress(BrokenPipeError):
        os.write(news, NEWS.pack(value))
