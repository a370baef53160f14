"""Q2: how long do the programs of Q1 take with one label column more, with two recursive atoms, with negation inside?

A label column gives relations three columns. A rule with two recursive atoms (`tc(x, z) :- tc(x, y), tc(y, z)`) reads
two rows of the recursion. With negation (`!skip(y)`, a tenth of the nodes) the recursion may lose rows when its inputs
grow. The recursion operator takes all of them; each row says so (`evaluation`).

Measured as in Q1, against DuckDB's recursive SQL, but with DuckDB's own time as the bar of both first answers, and
20 ms for an edge; tc also on G(1,000, p = 0.01).
"""

from __future__ import annotations

from kpg.bench.experiment import engine_experiment
from kpg.bench.queries.q01_recursion import ask_duckdb, measure_insert_only, measure_updatable
from kpg.bench.queries.recursion_programs import variants
from kpg.bench.run import Run


def run(run: Run) -> None:
    """Measure each variant insert-only, then with removals."""
    for case in variants(run):
        duckdb = ask_duckdb(run, case)
        measure_insert_only(run, case, duckdb, "at most DuckDB's recursive SQL", 1.0)
        measure_updatable(run, case, duckdb, "at most DuckDB's recursive SQL", 1.0, edge_ms=20)


EXPERIMENT = engine_experiment(
    "Q2",
    "tc and sg with labels, two recursive atoms, negation",
    "the graphs of Q1 and G(1,000); two labels, every tenth node skipped",
    lambda scale: int(7e9 * scale + 5e8),
    run,
    ("duckdb",),
)
