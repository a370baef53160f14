"""A PostgreSQL server for one run: on a free port, in a temporary directory.

    with server() as dsn: ...

Raises `PeerAbsent` (a note, no failure) if no server is installed or it cannot be started. PostgreSQL refuses to run as
root; then it runs as the user postgres. Nothing is forced to disk, which is its best case.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kpg.bench.run import PeerAbsent

OPTIONS = " ".join(
    f"-c {setting}"
    for setting in ("fsync=off", "synchronous_commit=off", "shared_buffers=1GB", "work_mem=256MB", "max_wal_size=8GB",
                 "jit=off")  # compiling a question takes longer than answering it
)  # fmt: skip


@contextmanager
def server() -> Iterator[str]:
    """Start a server and yield its address; stop it at the end."""
    binaries = installed_binaries()
    directory = Path(tempfile.mkdtemp(prefix="kpg-postgres-"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    run: dict[str, Any] = {"check": True, "capture_output": True, "cwd": directory, **owner(directory)}
    control = [str(word) for word in (binaries / "pg_ctl", "-D", directory / "data", "-l", directory / "log", "-w")]
    try:
        try:
            subprocess.run([binaries / "initdb", "-D", directory / "data", "-A", "trust", "-U", "kpg"], **run)
            listen = f"-c listen_addresses=127.0.0.1 -p {port} -c unix_socket_directories={directory} {OPTIONS}"
            subprocess.run([*control, "-o", listen, "start"], **run)
        except (OSError, subprocess.CalledProcessError) as error:
            raise PeerAbsent(f"the server could not be started ({error})") from error
        try:
            yield f"host=127.0.0.1 port={port} user=kpg dbname=postgres"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **{**run, "check": False})
    finally:
        shutil.rmtree(directory, ignore_errors=True)


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
