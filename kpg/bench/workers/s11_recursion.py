"""S11: are the recursions of Q1 on two workers no slower than on one: first answers, one edge, 1,000 edges?

Wall time until the answer, or its changes, are in hand, on the embedded db and on two workers in turn. Beside it stands
the CPU time of the busier worker over that of one worker: without other programs and without waiting, the ratio of wall
times would be the same. tc is divided by a column; sg runs on one of the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from kpg.api.contracts import Database
from kpg.bench.data.graphs import Ints
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.output_values import columns
from kpg.bench.queries.recursion_programs import RecursionCase, cases
from kpg.bench.run import Reference, Run
from kpg.bench.warm_workers import warm_database
from kpg.bench.workers.work_counting import CountingStopwatch
from kpg.query.installed_program import InstalledProgram

REPEATS = 3
CHANGED_EDGES = 20
MANY_EDGES = 1_000
WORKERS = (1, 2)


@dataclass
class KindOfWork:
    """Wall seconds, and CPU seconds of the busiest worker, of the repetitions of one kind of work."""

    wall: list[float] = field(default_factory=list)
    busiest: list[float] = field(default_factory=list)


class MeasuredDatabase:
    """A db on some workers, and what each kind of work took there."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.stopwatch = CountingStopwatch(db)
        self.kinds: dict[str, KindOfWork] = {}

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """Measure a block."""
        with self.stopwatch:
            yield
        assert self.stopwatch.work is not None
        times = self.kinds.setdefault(kind, KindOfWork())
        times.wall.append(self.stopwatch.seconds[-1])
        times.busiest.append(max(totals.cpu_seconds for totals in self.stopwatch.work.totals))


def run(run: Run) -> None:
    """Measure each program on one worker and on two, in turn."""
    with ExitStack() as stack:
        dbs = [stack.enter_context(warm_database(workers)) for workers in WORKERS]
        for case in cases(run):
            measured = [MeasuredDatabase(db) for db in dbs]
            for repeat in range(run.fixed_rounds(REPEATS)):
                run.progress(case.name, repeat, REPEATS)
                for on in measured:
                    measure(run, on, case)
            for kind in measured[0].kinds:
                report(run, f"{case.name}, {kind}", *[on.kinds[kind] for on in measured])


def report(run: Run, case: str, one: KindOfWork, two: KindOfWork) -> None:
    """Report one kind of work: medians of single edges, the least of what is repeated a few times."""
    typical: Callable[[list[float]], float] = median if len(one.wall) > REPEATS else min
    run.report(
        case,
        "no slower than on one worker",
        [at_most("ratio", 1)],
        Reference("one worker, embedded", typical(one.wall)),
        seconds=typical(two.wall),
        busier_worker_cpu_s=typical(two.busiest),
        busier_worker_cpu_ratio=typical(two.busiest) / typical(one.busiest),
    )


def measure(run: Run, on: MeasuredDatabase, case: RecursionCase) -> None:
    """Measure the first answer insert-only and with removals, then changes of the latter."""
    for insert_only, kind in ((True, "insert-only"), (False, "first answer")):
        with InstalledProgram(on.db, case.program, distinct_inputs=False, insert_only=insert_only) as program:
            with on.timed(kind):
                case.insert(program)
                on.db.advance()
            run.check(program.answer("answer").scan().num_rows == case.expected, f"the rows of {case.name}, {kind}")
            if not insert_only:
                measure_changes(run, on, case, program)
            inputs = list(program.inputs.values())
        for source in inputs:
            source.drop()


def measure_changes(run: Run, on: MeasuredDatabase, case: RecursionCase, program: InstalledProgram) -> None:
    """Measure changes of one edge and of many."""
    order = np.random.default_rng(3).permutation(len(case.edges))
    with program.answer("answer").output("changes of the answer", keep=False) as output:
        on.db.advance()
        output.take_changes()
        changed = 0
        for at in range(run.fixed_rounds(CHANGED_EDGES)):
            changed += change(on, program, output, case.edges[order[at : at + 1]], "1 edge")
        changed += change(on, program, output, case.edges[order[:MANY_EDGES]], "1,000 edges")
    run.check(changed == 0, f"the changes of {case.name}, summed up")


def change(on: MeasuredDatabase, program: InstalledProgram, output: Any, edges: Ints, kind: str) -> int:
    """Remove some edges and insert them again; return the sum of the changes of the answer."""
    changed, rows = 0, np.ascontiguousarray(edges)
    for apply, name in ((program.inputs["e"].remove, "removed"), (program.inputs["e"].insert, "inserted")):
        with on.timed(f"{kind} {name}"):
            apply(rows)
            on.db.advance()
            changes = output.take_changes()
        changed += int(columns(changes)[1].sum())
    return changed


EXPERIMENT = engine_experiment(
    "S11",
    "recursions on two workers",
    "tc on G(2,000), sg on a tree of depth 11 and a grid of 151 x 151 nodes",
    lambda scale: int(3e9 * scale + 8e8),
    run,
)
