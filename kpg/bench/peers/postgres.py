"""A PostgreSQL server for one run: on a free port, in a temporary directory, with locale C.

    with server() as address: psycopg.connect(address.dsn)

Raises `PeerAbsent` (a note, no failure) if no server is installed or it cannot be started. PostgreSQL refuses to run as
root; then it runs as the user postgres. Nothing is forced to disk, which is its best case. It takes about two seconds
to start.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kpg.bench.run import PeerAbsent

UNSAFE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
BENCHMARK_SETTINGS = (
    *UNSAFE,
    "shared_buffers=1GB",
    "work_mem=256MB",
    "max_wal_size=8GB",
    "jit=off",  # compiling a question takes longer than answering it
)
SMALL_SETTINGS = (*UNSAFE, "shared_buffers=32MB", "jit=off", "autovacuum=off", "max_connections=20")
START_ATTEMPTS = 5  # another process may take the free port before the server does
START_TIMEOUT_SECONDS = 200


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """The address of a running server: by a socket file, and by TCP for drivers that need it."""

    directory: Path
    port: int

    @property
    def dsn(self) -> str:
        """The address for libpq, by the socket file."""
        return f"host={self.directory} port={self.port} user=kpg dbname=postgres"

    @property
    def jdbc(self) -> str:
        """The address for JDBC, by TCP."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"


@contextmanager
def server(settings: Sequence[str] = BENCHMARK_SETTINGS) -> Iterator[PostgresAddress]:
    """Start a server and yield its address; stop it and delete its files at the end."""
    binaries = installed_binaries()
    directory = Path(tempfile.mkdtemp(prefix="kpg-postgres-", dir="/tmp"))  # the path of a socket must be short
    try:
        run: dict[str, Any] = {"capture_output": True, "cwd": directory, **owner(directory)}
        create: list[Any] = [binaries / "initdb", "-D", directory / "data", "-A", "trust", "-U", "kpg"]
        control: list[Any] = [binaries / "pg_ctl", "-D", directory / "data", "-l", directory / "log", "-w"]
        try:
            subprocess.run([*create, "-E", "UTF8", "--locale=C", "--no-sync"], check=True, **run)
            port = start([*control, "-t", str(START_TIMEOUT_SECONDS)], directory, settings, run)
        except (OSError, subprocess.CalledProcessError) as error:
            raise PeerAbsent(f"the server could not be started ({error})") from error
        stop_if_orphaned(control, directory, run)
        try:
            yield PostgresAddress(directory, port)
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **run)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def start(control: list[Any], directory: Path, settings: Sequence[str], run: dict[str, Any]) -> int:
    """Start the server on a free port and return the port."""
    for _ in range(START_ATTEMPTS):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port: int = free.getsockname()[1]
        options = ["listen_addresses=127.0.0.1", f"unix_socket_directories={directory}", *settings]
        words = f"-p {port} " + " ".join(f"-c {option}" for option in options)
        if subprocess.run([*control, "-o", words, "start"], **run).returncode == 0:
            return port
    raise PeerAbsent(f"the server could not be started ({(directory / 'log').read_text()[-1000:]})")


def stop_if_orphaned(control: list[Any], directory: Path, run: dict[str, Any]) -> None:
    """Let a shell stop the server, and delete its files, when this process was killed and cannot do so."""
    if not Path("/proc/self").exists():
        return
    words = " ".join(map(str, [*control, "-m", "immediate", "stop"]))
    script = f"while [ -d /proc/{os.getpid()} ] && [ -d {directory} ]; do sleep 1; done; {words}; rm -rf {directory}"
    options = {name: value for name, value in run.items() if name != "capture_output"}
    quiet = subprocess.DEVNULL
    subprocess.Popen(["sh", "-c", script], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, **options)


def installed_binaries() -> Path:
    """Return the directory of the server's programs."""
    directories = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    directories += [Path(program).parent for program in [shutil.which("initdb")] if program]
    for directory in directories:
        if (directory / "initdb").exists() and (directory / "pg_ctl").exists():
            return directory
    raise PeerAbsent("no PostgreSQL server is installed")


def owner(directory: Path) -> dict[str, Any]:
    """Return the arguments of a process that runs the server: the user postgres if this process is root's."""
    if os.getuid() != 0:
        return {}
    try:
        account = pwd.getpwnam("postgres")
    except KeyError as error:
        raise PeerAbsent("the server may not be run by root, and there is no user postgres") from error
    os.chown(directory, account.pw_uid, account.pw_gid)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
