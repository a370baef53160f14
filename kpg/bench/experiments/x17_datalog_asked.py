"""X17: how soon is a Datalog query with an argument answered, where the argument is data and the indexes are there?

tc(x, ?), tc(?, x) and sg(x, ?): the programs of files, asked through their demand (magic sets). Each of 100
arguments comes as the one before it goes. Beside it, how long the whole relation takes from nothing.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from kpg.bench import programs
from kpg.bench.clocks import Clock
from kpg.bench.data.graphs import Ints
from kpg.bench.experiment import Experiment, Printed
from kpg.bench.experiments.x18_datalog_full import PATIENCE, Case, by_kpg, cases, expected
from kpg.bench.peers.apart import Apart
from kpg.bench.peers.datalog_engines import BOUND
from kpg.bench.run import Run, TooLong
from kpg.opening import open as open_database
from kpg.query.demand import magic_sets
from kpg.query.installed_program import InstalledProgram

ARGUMENTS = 100
OTHERS = 20  # arguments for a peer


def run(run: Run) -> None:
    """Three queries on three graphs each."""
    made = cases(run.scale, run.seed)
    asked = [(case, column) for case in made for column in (("x", "y") if case.program == "tc" else ("x",))]
    whole: dict[str, float] = {}
    with Apart(PATIENCE * max(1.0, run.scale)) as apart:
        for number, (case, column) in enumerate(asked):
            query = f"{case.program}({'x, ?' if column == 'x' else '?, x'}) on {case.graph}"
            run.say(query, number, len(asked))
            key = f"{case.program} {case.graph}"
            if key not in whole:
                whole[key] = by_kpg(run, case)[0]
            seconds = ask(run, case, column, query)
            others = ask_others(run, apart, case, column, query)
            full_by_median = whole[key] / float(np.median(seconds))
            run.latencies(query, seconds, full_s=whole[key], full_by_median=full_by_median, **others)


def ask(run: Run, case: Case, column: str, query: str) -> list[float]:
    """Seconds of each argument; the answers are those of the whole relation."""
    rows, place = expected(case), 0 if column == "x" else 1
    columns = np.stack([rows // case.nodes, rows % case.nodes])
    made, clock = magic_sets(programs.load(case.program), case.program, (column,)), Clock()
    with open_database() as db, InstalledProgram(db, made.program, distinct_inputs=False) as running:
        running.inputs["e"].insert(case.edges)
        db.advance()
        seeds, before = running.inputs[made.seeds], None
        for argument in arguments_of(run, case).tolist():
            with clock:
                seeds.insert([(argument,)])
                if before is not None:
                    seeds.remove([(before,)])
                db.advance()
                table = running.table(made.answer)
            before = argument
            found: Ints = np.stack([table["x"].to_numpy(), table["y"].to_numpy()])
            right = columns[:, columns[place] == argument]
            run.check(same(found, right), f"{query}, argument {argument}")
    return clock.seconds


def ask_others(run: Run, apart: Apart, case: Case, column: str, query: str) -> dict[str, float | str]:
    """The median milliseconds of each peer that can be asked this, for the first few arguments; or what it exceeds."""
    medians: dict[str, float | str] = {}
    rows = expected(case)
    pairs = np.stack([rows // case.nodes, rows % case.nodes])
    given, wanted = pairs if column == "x" else pairs[::-1]
    arguments = arguments_of(run, case)[:OTHERS].tolist()
    for peer, (bound, questions) in BOUND.items():
        question = (case.program, column)
        if question not in questions:
            continue
        try:
            found = run.ask(peer, partial(apart.ask, bound, question, case.edges, arguments))
        except TooLong:
            medians[f"{peer}_p50_ms"] = f"more than {apart.patience * 1e3 / len(arguments):g}"  # on average
            continue
        if found is not None:
            right = [set(wanted[given == each].tolist()) for each in arguments]
            run.check(found[0] == right, f"{peer} agrees on {query}")
            medians[f"{peer}_p50_ms"] = float(np.median(found[1])) * 1e3
    return medians


def arguments_of(run: Run, case: Case) -> Ints:
    """Nodes of the graph, by the seed."""
    return np.random.default_rng(run.seed).choice(np.unique(case.edges), run.rounds(ARGUMENTS))


def same(one: Ints, other: Ints) -> bool:
    """The same rows, in whatever order; int64[2, n] each."""
    return one.shape == other.shape and bool((sorted_rows(one) == sorted_rows(other)).all())


def sorted_rows(rows: Ints) -> Ints:
    """In the order of their columns."""
    return rows[:, np.lexsort((rows[1], rows[0]))]


EXPERIMENT = Experiment(
    id="X17",
    title="Datalog: top-down",
    paper="Shared Arrangements, figure 8; K-Pg, table 2",
    claim="Queries with an argument take milliseconds where the whole relation takes seconds, though not always.",
    size="trees, grids and random graphs whose full answers have one to four million rows",
    printed=(
        Printed("tc(x, ?) on tree-11 / grid-150 / gnp1, median", "2.56 / 346 / 18.3 ms; full 0.08 / 6.18 / 9.45 s"),
        Printed("tc(?, x), median", "15.6 / 321 / 15.6 ms; full 0.08 / 6.18 / 9.45 s"),
        Printed("sg(x, ?), median", "68.3 / 1075 / 20.1 ms; full 56.5 / 0.60 / 19.9 s"),
    ),
    memory=lambda scale: int(1.5e9 * scale + 5e8),
    run=run,
    peers=tuple(BOUND),
)
