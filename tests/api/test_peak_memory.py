"""Loading and importing peak at no more than twice the steady memory (A17.12).

Each case is a process of its own, because a peak cannot be undone. Linux reports it as VmHWM, and can reset it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ROWS = 4_000_000
pytestmark = [
    pytest.mark.jit,
    pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux resets the peak memory"),
]

SCRIPT = """
import json, sys
from pathlib import Path
import numpy as np
import kpg

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

def load(relation, rows, pieces):
    size = rows // pieces
    for piece in range(pieces):
        keys = np.random.default_rng(piece).permutation(size) * pieces + piece
        relation.insert({"k": keys, "v": keys * 1_000_003})

case, rows, pieces = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with kpg.open() as rehearsed:  # loads the machine code before memory is measured
    relation = rehearsed.input("relation", k=int, v=int)
    relation.arrange("k")
    for _ in range(2):
        load(relation, rows // 20, pieces)
        rehearsed.advance()
    while rehearsed.idle():
        pass
with kpg.open() as db:
    relation, few = db.input("relation", k=int, v=int), db.input("few", k=int)
    by_key = relation.arrange("k")
    few.insert([(1,), (2,)])
    if case == "count":
        answer = by_key.count("k").output("answer")
    db.advance()
    start = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    load(relation, rows, pieces)
    db.advance()
    if case.startswith("import"):
        while db.idle():
            pass
        Path("/proc/self/clear_refs").write_text("5")
        late = by_key.join(few, on="k") if case == "import join" else by_key.count("k")
        answer = late.output("answer")
        db.settle()
    peak = status("VmHWM")
    while db.idle():
        pass
    assert by_key.rows == rows
    print(json.dumps({"start": start, "peak": peak, "steady": status("VmRSS"), "arrays": by_key.nbytes}))
"""


def measure(case: str, pieces: int) -> dict[str, int]:
    """Return the bytes at the start, at the peak and afterwards, and the bytes of the arrangement's arrays."""
    command = [sys.executable, "-c", SCRIPT, case, str(ROWS), str(pieces)]
    environment = {**os.environ, "KPG_KEEP_MEMORY": "0"}  # so that freed memory does not count
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, env=environment)
    assert done.returncode == 0, done.stderr
    measured: dict[str, int] = json.loads(done.stdout)
    return measured


@pytest.mark.parametrize("case, pieces", [("load", 8), ("count", 8), ("import join", 8)])
def test_loading_and_importing_peak_at_twice_the_steady_memory(case, pieces):
    """A17.12: of the process, with four million rows; a join that imports them copies none."""
    measured = measure(case, pieces)
    assert measured["peak"] <= 2 * measured["steady"], measured
    if case == "load":  # the inserted rows, a sorted copy of them, and the words that are sorted
        assert measured["peak"] - measured["start"] <= 3.5 * measured["arrays"], measured
    if case == "import join":
        assert measured["peak"] - measured["steady"] < measured["arrays"] / 10, measured
