"""X18: how long do transitive closure and same generation take in full, on trees, grids and random graphs?

The programs are files (`kpg/bench/programs/tc.dl`, `sg.dl`); the answers stay updatable. DuckDB's recursive SQL, Cozo
and clingo run on the same edges, each with a timeout.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from kpg.bench import programs, reference_answers
from kpg.bench.data.graphs import Ints, gnp, grid, tree
from kpg.bench.experiment import Experiment, PaperFigure
from kpg.bench.peers.datalog_engines import ENGINES
from kpg.bench.peers.peer_process import PeerProcess
from kpg.bench.run import PeerTimeout, Run
from kpg.opening import open as open_database
from kpg.query.installed_program import InstalledProgram

PEER_TIMEOUT_SECONDS = 30.0  # for one answer of a peer


@dataclass(frozen=True, slots=True)
class DatalogCase:
    """A program on some edges."""

    program: str
    graph: str
    edges: Ints

    @property
    def nodes(self) -> int:
        """The number of nodes; they are 0 .. nodes - 1."""
        return int(self.edges.max()) + 1


def cases(scale: float, seed: int) -> list[DatalogCase]:
    """Return the programs and graphs. Answers grow with the scale, so nodes grow with its square root."""
    root = math.sqrt(scale)
    side, depth, nodes = max(3, round(60 * root)), max(2, round(8 + math.log(scale, 4))), max(10, round(1_200 * root))
    small = max(2, round(5 + math.log(scale, 16)))
    return [
        DatalogCase("tc", f"tree-{depth}", tree(depth, seed)),
        DatalogCase("tc", f"grid-{side}", grid(side)),
        DatalogCase("tc", f"gnp-{nodes}", gnp(nodes, 6 / nodes, seed)),
        DatalogCase("sg", f"tree-{small}", tree(small, seed)),
        DatalogCase("sg", f"grid-{side}", grid(side)),
        DatalogCase("sg", f"gnp-{nodes // 2}", gnp(nodes // 2, 6 / nodes, seed)),
    ]


def run(run: Run) -> None:
    """Run each program on each graph, in each engine."""
    all_cases = cases(run.scale, run.seed)
    with PeerProcess(PEER_TIMEOUT_SECONDS * max(1.0, run.scale)) as process:
        for number, case in enumerate(all_cases):
            name = f"{case.program} on {case.graph}"
            run.progress(name, number, len(all_cases))
            seconds, rows = by_kpg(run, case)
            others = by_others(run, process, case, rows)
            run.record(name, edges=len(case.edges), rows=rows, kpg_s=seconds, **others)


def by_others(run: Run, process: PeerProcess, case: DatalogCase, rows: int) -> dict[str, float | str]:
    """Return the seconds of each peer, or that it exceeded its timeout."""
    others: dict[str, float | str] = {}
    for peer, ask in ENGINES.items():
        try:
            answer = run.ask(peer, partial(process.ask, ask, case.program, case.edges))
        except PeerTimeout as timeout:
            others[f"{peer}_s"] = str(timeout)
            continue
        if answer is not None:
            run.check(answer.rows == rows, f"{peer} agrees on {case.program} on {case.graph}")
            others[f"{peer}_s"] = answer.seconds
    return others


def by_kpg(run: Run, case: DatalogCase) -> tuple[float, int]:
    """Return the seconds from inserting the edges to the answer, and its row count; check the answer."""
    with open_database() as db, InstalledProgram(db, programs.load(case.program), distinct_inputs=False) as installed:
        began = time.perf_counter()
        installed.inputs["e"].insert(case.edges)
        db.advance()
        seconds = time.perf_counter() - began
        table = installed.table(case.program)
    codes = np.sort(table["x"].to_numpy() * case.nodes + table["y"].to_numpy())
    run.check(np.array_equal(codes, expected(case)), f"{case.program} on {case.graph}")
    return seconds, len(codes)


def expected(case: DatalogCase) -> Ints:
    """Return the answer by NumPy, as sorted codes x * nodes + y."""
    if case.program == "sg":
        return reference_answers.same_generation(case.edges, case.nodes)
    turned = reference_answers.closure(case.edges, case.edges, case.nodes)
    return np.sort(turned % case.nodes * case.nodes + turned // case.nodes)


EXPERIMENT = Experiment(
    id="X18",
    title="Datalog: bottom-up",
    paper="Shared Arrangements, figure 17; K-Pg, table 11",
    claim="As fast as the best Datalog engine on one machine, faster than the distributed ones.",
    size="trees, grids and random graphs with answers of one to four million rows (the paper: up to 10^9)",
    printed=(
        PaperFigure(
            "tc(t) / tc(g) / tc(r) / sg(t) / sg(g) / sg(r), 1 worker", "98.3 / 132 / 210 / 1211 / 4.43 / 483 s"
        ),
        PaperFigure("32 workers", "7.18 / 6.18 / 9.45 / 56.5 / 0.60 / 19.9 s"),
        PaperFigure("Spark", "244 s / out of memory / 63 s / out of memory / 1955 s / 430 s", "120 cores"),
        PaperFigure("BigDatalog", "105 / 25 / 7 / 53 / 34 / 72 s", "120 cores"),
        PaperFigure("DeALS", "- / 148 / 321 / 1309 / 7.6 / 2926 s", "1 core"),
    ),
    memory=lambda scale: int(1.5e9 * scale + 5e8),
    run=run,
    peers=tuple(ENGINES),
)
