"""E11: how long do rounds of one row take, in loops of any kind, and how long a peek?

The chain is followed by a loop that no operator replaces, from a root that comes, and again when the first edge goes. A
Datalog program counts to a million, one row a round. A query of SQL descends a chain of rows with names and null. Peeks
read one key of an arrangement of 10M, as rows and as an Arrow table. The other latencies of little work are those of E3
(one change), E5 (installing), E7 (changed edges), E9 (standing look-ups) and Q3 (triangles).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import kpg
from kpg import col
from kpg.bench.data.graphs import Ints
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.installed_lookups import FACTOR, arranged
from kpg.bench.measure import Stopwatch, cpu_stopwatch, wall_stopwatch
from kpg.bench.output_values import columns
from kpg.bench.run import Run
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile

COUNTER = """
.decl start(x: number)
.input start
.decl n(x: number)
.output n
n(x) :- start(x).
n(x + 1) :- n(x), x < {last}.
"""
DESCENT = """
CREATE MATERIALIZED VIEW levels AS
WITH RECURSIVE t(id, name, level) AS (
    SELECT id, name, 0 FROM people WHERE boss IS NULL
    UNION SELECT p.id, p.name, t.level + 1 FROM people p JOIN t ON p.boss = t.id
)
SELECT id, name, level FROM t"""
CHAIN_SECONDS, COUNTER_SECONDS = 3, 30  # 30 us a round
PEEKS, SEED = 5_000, 4


def run(run: Run) -> None:
    """Run the loops, then the peeks."""
    follow_chain(run, run.size(100_000))
    count(run, run.size(1_000_000))
    descend(run, run.size(100_000))
    peek(run, run.size(10_000_000))


def report_rounds(run: Run, case: str, rounds: int, limit: float, stopwatch: Stopwatch) -> None:
    """Report the seconds of a loop."""
    bar, limits = f"at most {limit:g} s", [at_most("seconds", limit)]
    seconds = stopwatch.total
    run.report(case, bar, limits, rows=rounds, seconds=seconds, us_per_round=1e6 * seconds / rounds)


def follow_chain(run: Run, length: int) -> None:
    """Follow a chain of nodes by a loop, and take its first edge away."""
    comes, goes = cpu_stopwatch("chain, the root comes"), cpu_stopwatch("chain, the first edge goes")
    with kpg.open() as db:
        edges, roots = db.input("edges", src=int, dst=int), db.input("roots", node=int)
        output = roots.iterate(lambda nodes: followed(edges, nodes)).output("reached", keep=False)
        edges.insert(np.stack([np.arange(length), np.arange(1, length + 1)], axis=1))
        db.advance()
        output.take_changes()
        reached = np.arange(length + 1)
        check_changes(run, changed(db, lambda: roots.insert([(0,)]), output, comes), reached, 1)
        check_changes(run, changed(db, lambda: edges.remove([(0, 1)]), output, goes), reached[1:], -1)
    report_rounds(run, "chain, the root comes", length, CHAIN_SECONDS, comes)
    report_rounds(run, "chain, the first edge goes", length, CHAIN_SECONDS, goes)


def changed(db: kpg.Database, change: Callable[[], object], output: kpg.Output, stopwatch: Stopwatch) -> kpg.Changes:
    """Make a change, and return the changes of the answer."""
    with stopwatch:
        change()
        db.advance()
        return output.take_changes()


def check_changes(run: Run, changes: kpg.Changes, nodes: Ints, diff: int) -> None:
    """Check that some nodes come or go."""
    data, diffs = columns(changes)
    run.check(np.array_equal(np.sort(data[0]), nodes) and (diffs == diff).all(), "the nodes of the chain")


def followed(edges: kpg.Collection, nodes: kpg.Collection) -> kpg.Collection:
    """Return nodes with their successors; the consolidation keeps the loop from becoming an operator."""
    return edges.join(nodes, on={"src": "node"}).select(node=col("dst")).consolidate().concat(nodes).distinct()


def count(run: Run, last: int) -> None:
    """Count by a Datalog program, from its installation to its answer."""
    stopwatch = cpu_stopwatch("counting")
    program = compile(parse(COUNTER.format(last=last)))
    with kpg.open() as db:
        with stopwatch:
            installed = InstalledProgram(db, program, max_rounds=2 * last)
            installed.inputs["start"].insert([(0,)])
            db.advance()
            table = installed.table("n")
        run.check(np.array_equal(np.sort(table["x"].to_numpy()), np.arange(last + 1)), "the numbers")
        installed.release()
    report_rounds(run, "a program that counts", last, COUNTER_SECONDS, stopwatch)


def descend(run: Run, length: int) -> None:
    """Descend a chain of rows in SQL when its root comes."""
    stopwatch = cpu_stopwatch("SQL")
    with kpg.open() as db:
        db.sql("CREATE TABLE people (id int, name text, boss int)")
        db.sql(DESCENT)
        ids = np.arange(1, length)
        names = [f"name {number % 97}" for number in range(1, length)]
        db.inputs["people"].insert(pa.table({"id": ids, "name": names, "boss": ids - 1}))
        db.advance()
        with stopwatch:
            db.sql("INSERT INTO people VALUES (0, 'root', NULL)")
        table = db.sql("SELECT id, level FROM levels").table
        run.check(np.array_equal(table["id"].to_numpy(), table["level"].to_numpy()), "the levels")
        run.check(len(table) == length, "the number of people")
    report_rounds(run, "WITH RECURSIVE, the root comes", length, CHAIN_SECONDS, stopwatch)


def peek(run: Run, rows: int) -> None:
    """Read single keys of an arrangement."""
    keys = np.random.default_rng(SEED).integers(0, rows, run.fixed_rounds(PEEKS)).tolist()
    with kpg.open() as db:
        arrangement = arranged(db, rows, SEED)
        peek_as(run, "as rows", 0.03, keys, arrangement.lookup_rows, rows)
        peek_as(run, "as an Arrow table", 0.045, keys, arrangement.lookup, rows)


def peek_as(run: Run, way: str, limit_ms: float, keys: list[int], read: Callable[[int], Any], rows: int) -> None:
    """Read single keys in one way."""
    stopwatch = wall_stopwatch(f"peek, {way}")
    for key in keys:
        with stopwatch:
            answer = read(key)
        found = answer if isinstance(answer, list) else list(zip(*answer.to_pydict().values(), strict=True))
        run.check(found == [(key, FACTOR * key)], "the row of a key")
    bar, limits = f"p50 at most {1000 * limit_ms:g} us", [at_most("p50_ms", limit_ms)]
    run.report(f"peek, {way}", bar, limits, latency=stopwatch, rows=1, state_rows=rows)


EXPERIMENT = engine_experiment(
    "E11",
    "rounds of one row, and peeks",
    "chains of 100,000 rows, a million rounds, 10M arranged keys",
    lambda scale: int(1.6e9 * scale + 4e8),
    run,
)
