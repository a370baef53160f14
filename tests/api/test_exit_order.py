"""A program that leaves dbs open ends quietly: their threads have ended before the interpreter does."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

LEFT_OPEN = """
    import atexit, sys, threading

    def report():
        names = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
        print("left behind:", names)

    atexit.register(report)  # runs after everything that kpg registers
    import io, pyarrow as pa, kpg

    table = pa.table({"n": list(range(100))})
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)

    def read(db):
        for _ in range(2000):  # Arrow calls Python here, which must not find the interpreter gone
            pa.ipc.open_stream(io.BytesIO(stream.getvalue())).read_all()

    dbs = [kpg.open(sys.argv[1] + str(n), background=True) for n in range(2)]
    for db in dbs:
        db.input("numbers", n=int).insert(table)
        db.submit(read)
"""


@pytest.mark.parametrize("attempt", range(3))
def test_two_dbs_left_open_do_not_abort_the_process(tmp_path: Path, attempt: int) -> None:
    command = [sys.executable, "-c", textwrap.dedent(LEFT_OPEN), str(tmp_path / "db")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "left behind: []\n"


FORKED = """
    import os, sys, kpg

    db = kpg.open(background=True)
    child = os.fork()
    if child == 0:
        sys.exit(0)  # the thread of the db exists in the parent only
    assert os.waitpid(child, 0)[1] == 0
    assert db.input("numbers", n=int).schema.names == ("n",)
"""


def test_a_forked_child_leaves_the_dbs_of_its_parent_alone() -> None:
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(FORKED)], capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stderr) == (0, "")
