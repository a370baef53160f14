"""X17: how soon is a Datalog query with an argument answered, if the argument is data and the indexes are loaded?

tc(x, ?), tc(?, x) and sg(x, ?): the programs of files, with demand (magic sets). Each of 100 arguments replaces the one
before. Beside it, the time of the full relation from an empty db.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from kpg.bench import programs
from kpg.bench.data.graphs import Ints
from kpg.bench.experiment import Experiment, PaperFigure
from kpg.bench.measure import Stopwatch
from kpg.bench.papers.x18_datalog_full import PEER_TIMEOUT_SECONDS, DatalogCase, by_kpg, cases, expected
from kpg.bench.peers.datalog_engines import BOUND
from kpg.bench.peers.peer_process import PeerProcess
from kpg.bench.run import PeerTimeout, Run
from kpg.opening import open as open_database
from kpg.query.demand import magic_sets
from kpg.query.installed_program import InstalledProgram

ARGUMENTS = 100
PEER_ARGUMENTS = 20


def run(run: Run) -> None:
    """Measure three queries on three graphs each."""
    questions = [
        (case, column)
        for case in cases(run.scale, run.seed)
        for column in (("x", "y") if case.program == "tc" else ("x",))
    ]
    full: dict[str, float] = {}
    with PeerProcess(PEER_TIMEOUT_SECONDS * max(1.0, run.scale)) as process:
        for number, (case, column) in enumerate(questions):
            query = f"{case.program}({'x, ?' if column == 'x' else '?, x'}) on {case.graph}"
            run.progress(query, number, len(questions))
            key = f"{case.program} {case.graph}"
            if key not in full:
                full[key] = by_kpg(run, case)[0]
            seconds = ask(run, case, column, query)
            others = ask_others(run, process, case, column, query)
            full_by_median = full[key] / float(np.median(seconds))
            run.latencies(query, seconds, full_s=full[key], full_by_median=full_by_median, **others)


def ask(run: Run, case: DatalogCase, column: str, query: str) -> list[float]:
    """Return the seconds of each argument, and check the answers against the full relation."""
    rows, position = expected(case), 0 if column == "x" else 1
    columns = np.stack([rows // case.nodes, rows % case.nodes])
    asked, stopwatch = magic_sets(programs.load(case.program), case.program, (column,)), Stopwatch(query)
    with open_database() as db, InstalledProgram(db, asked.program, distinct_inputs=False) as installed:
        installed.inputs["e"].insert(case.edges)
        db.advance()
        seeds, before = installed.inputs[asked.seeds], None
        for argument in arguments_of(run, case).tolist():
            with stopwatch:
                seeds.insert([(argument,)])
                if before is not None:
                    seeds.remove([(before,)])
                db.advance()
                table = installed.table(asked.answer)
            before = argument
            answer: Ints = np.stack([table["x"].to_numpy(), table["y"].to_numpy()])
            correct = columns[:, columns[position] == argument]
            run.check(has_same_rows(answer, correct), f"{query}, argument {argument}")
    return stopwatch.seconds


def ask_others(run: Run, process: PeerProcess, case: DatalogCase, column: str, query: str) -> dict[str, float | str]:
    """Return the median milliseconds of each peer that has this query, for the first arguments; or a lower bound."""
    medians: dict[str, float | str] = {}
    rows = expected(case)
    pairs = np.stack([rows // case.nodes, rows % case.nodes])
    bound, free = pairs if column == "x" else pairs[::-1]
    arguments = arguments_of(run, case)[:PEER_ARGUMENTS].tolist()
    for peer, (bound, questions) in BOUND.items():
        question = (case.program, column)
        if question not in questions:
            continue
        try:
            answered = run.ask(peer, partial(process.ask, bound, question, case.edges, arguments))
        except PeerTimeout:
            medians[f"{peer}_p50_ms"] = f"more than {process.timeout_seconds * 1e3 / len(arguments):g}"  # on average
            continue
        if answered is not None:
            correct = [set(free[bound == argument].tolist()) for argument in arguments]
            run.check(answered[0] == correct, f"{peer} agrees on {query}")
            medians[f"{peer}_p50_ms"] = float(np.median(answered[1])) * 1e3
    return medians


def arguments_of(run: Run, case: DatalogCase) -> Ints:
    """Return random nodes of the graph."""
    return np.random.default_rng(run.seed).choice(np.unique(case.edges), run.scaled_rounds(ARGUMENTS))


def has_same_rows(one: Ints, other: Ints) -> bool:
    """Return whether two arrays int64[2, n] have the same rows in any order."""
    return one.shape == other.shape and bool((sorted_rows(one) == sorted_rows(other)).all())


def sorted_rows(rows: Ints) -> Ints:
    """Return rows sorted by their columns."""
    return rows[:, np.lexsort((rows[1], rows[0]))]


EXPERIMENT = Experiment(
    id="X17",
    title="Datalog: top-down",
    paper="Shared Arrangements, figure 8; K-Pg, table 2",
    claim="Queries with an argument take milliseconds where the full relation takes seconds, with exceptions.",
    size="trees, grids and random graphs with full answers of one to four million rows",
    printed=(
        PaperFigure("tc(x, ?) on tree-11 / grid-150 / gnp1, median", "2.56 / 346 / 18.3 ms; full 0.08 / 6.18 / 9.45 s"),
        PaperFigure("tc(?, x), median", "15.6 / 321 / 15.6 ms; full 0.08 / 6.18 / 9.45 s"),
        PaperFigure("sg(x, ?), median", "68.3 / 1075 / 20.1 ms; full 56.5 / 0.60 / 19.9 s"),
    ),
    memory=lambda scale: int(1.5e9 * scale + 5e8),
    run=run,
    peers=tuple(BOUND),
)
