"""Q10: how long does CSPA take on 300,000 facts, three relations that derive each other with several recursive atoms?

The first answer, updatable, in the recursion operator; then single assignments that are removed and inserted again. The
rules are in `kpg/bench/programs/cspa.dl`. Sparse matrices of SciPy compute the expected answers.
"""

from __future__ import annotations

import numpy as np

import kpg
from kpg.bench import programs
from kpg.bench.data.analysed_programs import AnalysedProgram, pointer_program
from kpg.bench.data.graphs import Ints
from kpg.bench.experiment import engine_experiment
from kpg.bench.measure import cpu_stopwatch, wall_stopwatch
from kpg.bench.reference_answers import context_sensitive_points_to
from kpg.bench.run import Run
from kpg.query.installed_program import InstalledProgram

VARIABLES = 205_000  # with 300,000 facts
REPEATS = 3
CHANGED_FACTS = 20
ANSWERS = ("value_flow", "value_alias", "memory_alias")


def run(run: Run) -> None:
    """Measure the first answer, then changes."""
    analysed = pointer_program(run.size(VARIABLES, least=300), run.seed)
    expected = context_sensitive_points_to(analysed.assign, analysed.deref, analysed.nodes)
    cpu, live = cpu_stopwatch("CSPA, first answer"), wall_stopwatch("CSPA, 1 assignment")
    for repeat in range(REPEATS):
        with kpg.open() as db, InstalledProgram(db, programs.load("cspa"), distinct_inputs=False) as installed:
            with cpu:
                installed.inputs["assign"].insert(analysed.assign)
                installed.inputs["deref"].insert(analysed.deref)
                db.advance()
            check(run, installed, analysed, expected)
            if repeat == REPEATS - 1:
                positions = np.random.default_rng(3).permutation(len(analysed.assign))
                for position in positions[: run.fixed_rounds(CHANGED_FACTS)]:
                    fact = analysed.assign[position : position + 1]
                    for change in (installed.inputs["assign"].remove, installed.inputs["assign"].insert):
                        with live:
                            change(fact)
                            db.advance()
                check(run, installed, analysed, expected)
    rows = sum(map(len, expected))
    facts = len(analysed.assign) + len(analysed.deref)
    run.report("CSPA, first answer", None, [], facts=facts, rows=rows, seconds=cpu.least)
    run.report("CSPA, 1 assignment", None, [], latency=live)


def check(run: Run, installed: InstalledProgram, analysed: AnalysedProgram, expected: tuple[Ints, Ints, Ints]) -> None:
    """Compare all answers with the expected ones."""
    for name, codes in zip(ANSWERS, expected, strict=True):
        table = installed.table(name)
        found = np.sort(table["x"].to_numpy() * analysed.nodes + table["y"].to_numpy())
        run.check(np.array_equal(found, codes), f"{name} as SciPy computes it")


EXPERIMENT = engine_experiment(
    "Q10",
    "CSPA, in the recursion operator",
    "305,000 facts",
    lambda scale: int(1.5e9 * scale + 5e8),
    run,
    (),
)
