"""Interpreted and compiled kernels give equal answers, and a process changes from the ones to the others."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kpg.kernels.jit import jit, kernel_of

pytestmark = pytest.mark.jit
ROOT = Path(__file__).parents[2]

# Random transactions on queries that use most kernels; prints all changes of all answers.
PROGRAM = """
import json, random, sys
import kpg
from kpg import col

def session(seed):
    pick = random.Random(seed)
    db = kpg.open(history=None)
    edges = db.input("edges", src=int, dst=int, name=str)
    roots = db.input("roots", node=int)
    prices = db.input("prices", key="name", name=str, cost=float)
    pairs = edges.select("src", "dst")
    by_src = pairs.arrange("src")

    def step(nodes):
        return by_src.join(nodes, on={"src": "node"}).select(node="dst").concat(nodes).distinct()

    outputs = [
        edges.group_by("src").min("dst").output("min"),
        edges.group_by("name").sum("dst").output("sum"),
        edges.join(prices, on="name").group_by("src").max("cost").output("max"),
        edges.count("name").output("count"),
        pairs.join(pairs, on={"dst": "src"}).select("src", dst=col("dst_right")).distinct().output("two"),
        pairs.antijoin(roots, on={"src": "node"}).output("rest"),
        roots.iterate(step).output("reach"),
    ]
    rows = []
    for _ in range(pick.randrange(2, 6)):
        for _ in range(pick.randrange(8)):
            if rows and pick.random() < 0.3:
                edges.remove([rows.pop(pick.randrange(len(rows)))])
            else:
                rows.append((pick.randrange(6), pick.randrange(6) - 2**62 * (pick.random() < 0.1), pick.choice("abc")))
                edges.insert([rows[-1]])
        prices.upsert([(pick.choice("abc"), pick.random())])
        if pick.random() < 0.5:
            roots.insert([(pick.randrange(6),)])
        db.advance()
    result = [sorted([list(row), time, diff] for row, time, diff in output.changes()) for output in outputs]
    db.close()
    return result

print(json.dumps([session(seed) for seed in range(int(sys.argv[1]), int(sys.argv[2]))]))
print('numba' in sys.modules, file=sys.stderr)
"""

SWITCH = """
import sys
import numpy as np
import kpg
from kpg.columns import consolidation
from kpg.kernels.jit import Kernel, USAGE

db = kpg.open()
numbers = db.input("numbers", n=int)
odd = numbers.select(rest=kpg.col("n") % 2).count("rest").output("odd")
numbers.insert([(1,), (2,)])
db.advance()
assert 'numba' not in sys.modules and not USAGE.exceeded
assert odd.rows() == [(0, 1), (1, 1)]
numbers.insert({"n": np.arange(1_000_000)})
db.advance()
assert 'numba' in sys.modules and USAGE.exceeded
assert odd.rows() == [(0, 500_001), (1, 500_001)]
numbers.remove([(1,)])
db.advance()
assert odd.rows() == [(0, 500_001), (1, 500_000)]
print(sum(not isinstance(value, Kernel) for name, value in vars(consolidation).items() if hasattr(value, "py_func")))
"""


@jit
def double(x):
    return x + x


@jit
def doubled_sum(values):
    total = 0
    for value in values:
        total += value
    return double(total)


def run(code, *arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_interpreted_and_compiled_kernels_give_equal_answers():
    seeds = ("0", "20")
    plain, without = run(PROGRAM, *seeds, KPG_KERNELS="interpreted")
    compiled, loaded = run(PROGRAM, *seeds, KPG_KERNELS="compiled")
    assert (without.strip(), loaded.strip()) == ("False", "True")
    assert json.loads(plain) == json.loads(compiled)
    assert sum(len(changes) for session in json.loads(plain) for changes in session) > 500


def test_a_process_changes_to_machine_code_when_a_large_input_arrives():
    """And the modules that call kernels then hold Numba's dispatchers, so that a call costs no more than theirs."""
    bound, _ = run(SWITCH, KPG_KERNELS="auto")
    assert int(bound) > 0


def test_a_process_changes_to_machine_code_after_enough_small_work():
    code = """
import sys
import kpg
from kpg.kernels import jit
jit.INTERPRETED_SECONDS = 0.01
db = kpg.open()
numbers = db.input("numbers", n=int)
total = numbers.group_by().sum("n").output("total")
for n in range(300):
    numbers.insert([(n,)])
    db.advance()
assert total.rows() == [(44850,)]
assert jit.USAGE.exceeded and 'numba' in sys.modules
"""
    run(code, KPG_KERNELS="auto")


def test_a_kernel_without_machine_code_stays_interpreted_while_its_work_is_small(tmp_path):
    code = """
import sys
import numpy as np
from kpg.kernels import jit
from kpg.kernels.sum_diffs import sum_diffs
jit.USAGE.exceeded = True
kernel = jit.kernel_of(sum_diffs)
assert kernel._stays_interpreted((np.zeros((1, 1000), np.int64),))
assert not kernel._stays_interpreted((np.zeros((1, 1_000_000), np.int64),))
kernel.seconds = 5.0
assert not kernel._stays_interpreted((np.zeros((1, 1000), np.int64),))
assert 'numba' not in sys.modules
"""
    run(code, KPG_KERNELS="auto", KPG_CACHE_DIR=str(tmp_path))


def test_the_interpreted_version_takes_arrays_of_exact_integers():
    """Its callees are interpreted too, also after calls of the kernel have loaded its machine code."""
    assert doubled_sum(np.array([3, 4])) == 14
    assert kernel_of(doubled_sum).dispatcher is not None
    assert kernel_of(doubled_sum).interpreted(np.array([2**63, 2**64], object)) == 2 * (2**63 + 2**64)


def test_a_dispatcher_is_known_as_the_kernel_that_it_belongs_to():
    kernel = kernel_of(doubled_sum)
    assert kernel_of(kernel.load()) is kernel and kernel_of(len) is None
