"""A process that is killed in the middle of a transaction leaves nothing that keeps history in its directory."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import kpg

KILLED_IN_A_TRANSACTION = """
import os, signal, sys
import kpg

if __name__ == "__main__":
    with kpg.open(sys.argv[1], workers=int(sys.argv[2])) as db:
        db.sql("CREATE TABLE t (x int)")
        db.sql("INSERT INTO t VALUES (1)")
        db.set_reader("of a user", db.epoch)
        db.sql("BEGIN")
        db.sql("SELECT * FROM t")
        print(len(db.readers), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_readers_of_transactions_end_with_their_process(tmp_path: Path, workers: int) -> None:
    script = tmp_path / "killed.py"
    script.write_text(KILLED_IN_A_TRANSACTION)
    killed = subprocess.run(
        [sys.executable, script, tmp_path / "db", str(workers)],
        stdout=subprocess.PIPE,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(kpg.__file__).parents[1])},
    )
    assert (killed.returncode, killed.stdout.decode().strip()) == (-signal.SIGKILL, "2")
    with kpg.open(tmp_path / "db", workers=workers) as db:
        assert list(db.readers) == ["of a user"]
        assert db.sql("SELECT * FROM t").rows() == [(1,)]
