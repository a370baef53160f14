"""A PostgreSQL server for one run: on a free port, in a directory that goes when the run is over.

    with server() as dsn: ...

Absent (a note, no failure) where no server is installed, or it may not be started. As root, which PostgreSQL refuses
to be run by, it runs as the user postgres. Nothing is forced to disk: its best case.
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

from kpg.bench.run import Absent

OPTIONS = " ".join(
    f"-c {each}"
    for each in ("fsync=off", "synchronous_commit=off", "shared_buffers=1GB", "work_mem=256MB", "max_wal_size=8GB",
                 "jit=off")  # to compile a question takes longer than to answer it
)  # fmt: skip


@contextmanager
def server() -> Iterator[str]:
    """The address of a database of its own."""
    binaries = found()
    place = Path(tempfile.mkdtemp(prefix="kpg-postgres-"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    run: dict[str, Any] = {"check": True, "capture_output": True, "cwd": place, **owner(place)}
    control = [str(each) for each in (binaries / "pg_ctl", "-D", place / "data", "-l", place / "log", "-w")]
    try:
        try:
            subprocess.run([binaries / "initdb", "-D", place / "data", "-A", "trust", "-U", "kpg"], **run)
            listen = f"-c listen_addresses=127.0.0.1 -p {port} -c unix_socket_directories={place} {OPTIONS}"
            subprocess.run([*control, "-o", listen, "start"], **run)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Absent(f"the server could not be started ({error})") from error
        try:
            yield f"host=127.0.0.1 port={port} user=kpg dbname=postgres"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **{**run, "check": False})
    finally:
        shutil.rmtree(place, ignore_errors=True)


def found() -> Path:
    """Where the programs of the server are."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    places += [Path(each).parent for each in [shutil.which("initdb")] if each]
    for place in places:
        if (place / "initdb").exists() and (place / "pg_ctl").exists():
            return place
    raise Absent("no PostgreSQL server is installed")


def owner(place: Path) -> dict[str, Any]:
    """Who runs the server, as arguments for a process: the user postgres if we are root."""
    if os.getuid() != 0:
        return {}
    try:
        account = pwd.getpwnam("postgres")
    except KeyError as error:
        raise Absent("the server may not be run by root, and there is no user postgres") from error
    os.chown(place, account.pw_uid, account.pw_gid)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
