"""Q4: how many tuples do star joins of 2 to 7 relations keep beyond the indexes of the relations themselves?

    p(k, x0, …) :- r0(k, x0), r1(k, x1), …        100k rows each, one for each k

Binary joins index each intermediate result; delta queries keep none, for any number of relations. Both compute the same
answer, which is not kept. Then single rows are removed and inserted again; that latency runs from before the change is
inserted until the changes of the answer are in hand.
"""

from __future__ import annotations

import numpy as np

import kpg
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.join_rules import JoinRule
from kpg.bench.measure import cpu_stopwatch, embedded, wall_stopwatch
from kpg.bench.run import Run
from kpg.operators.arrange import Publisher
from kpg.query.datalog import parse
from kpg.query.ir.compile import compile
from kpg.query.ir.program import Program
from kpg.query.lower.lower_program import LoweredProgram

ANSWER = "answer"


def run(run: Run) -> None:
    """Measure two to seven relations, by binary joins and by delta queries."""
    rows = run.size(100_000)
    for ways in range(2, 8):
        program = star_join(ways)
        for joins in ("binary", "delta"):
            measure(run, program, ways, rows, joins)


def measure(run: Run, program: Program, ways: int, rows: int, joins: str) -> None:
    """Measure the tuples kept after the first answer and after changes, and the seconds of both."""
    random = np.random.default_rng(1)
    tables = [np.stack([np.arange(rows), random.integers(0, 1000, rows)], axis=1) for _ in range(ways)]
    case = f"{ways}-way star, {joins}"
    first, live = cpu_stopwatch(case), wall_stopwatch(f"{ways}-way, 1 row, {joins}")
    with kpg.open() as db:
        lowered = LoweredProgram(db, program, distinct_inputs=False, joins=joins)
        output = lowered.collections[ANSWER].output(ANSWER, keep=False)
        inputs = lowered.inputs_of_db()
        with first:
            for number, table in enumerate(tables):
                inputs[f"r{number}"].insert(table)
            db.advance()
        run.check(len(output.take_changes()) == rows, f"the first answer, {case}")
        kept = tuples_kept(db, ANSWER)
        for number in range(run.fixed_rounds(50)):
            relation = inputs[f"r{number % ways}"]
            row = tables[number % ways][number % rows : number % rows + 1]
            for change in (relation.remove, relation.insert):
                with live:
                    change(row)
                    db.advance()
                    changes = output.take_changes()
                run.check(len(changes) == 1, f"the change of one row, {case}")
        kept = max(kept, tuples_kept(db, ANSWER))
    limits = [at_most("kept_tuples", 0)] if joins == "delta" else []
    run.report(
        case, "no tuple beyond the indexes of relations" if limits else None, limits,
        latency=live, rows=ways * rows, seconds=first.least, kept_tuples=kept,
    )  # fmt: skip


def tuples_kept(db: kpg.Database, name: str) -> int:
    """Return the number of tuples that the operators of a dataflow keep, without the indexes of its relations."""
    (dataflow,) = [dataflow for dataflow in embedded(db).worker.dataflows.values() if dataflow.name == name]
    operators = dataflow.operators
    published = sum(len(rows) for operator in operators if isinstance(operator, Publisher) for rows in operator.state())
    return published + sum(len(rows) for operator in operators for rows in operator.state() if not operator.has_readers)


def star_join(ways: int) -> Program:
    """Return the program that joins `ways` relations on their first column."""
    atoms = tuple((f"r{number}", f"k x{number}") for number in range(ways))
    head = " ".join(["k", *[f"x{number}" for number in range(ways)]])
    return compile(parse(JoinRule(atoms, head).text))


EXPERIMENT = engine_experiment(
    "Q4",
    "state of star joins, binary and delta",
    "2 to 7 relations of 100k rows",
    lambda scale: int(1e9 * scale + 4e8),
    run,
)
