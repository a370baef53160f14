"""X18: how long do transitive closure and same generation take in full, on trees, grids and random graphs?

The programs are files (`kpg/bench/programs/tc.dl`, `sg.dl`); the answers stay updatable. Beside us DuckDB's
recursive SQL, Cozo and clingo on the same edges, each for as long as anybody would wait.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from kpg.bench import answers, programs
from kpg.bench.data.graphs import Ints, gnp, grid, tree
from kpg.bench.experiment import Experiment, Printed
from kpg.bench.peers.apart import Apart
from kpg.bench.peers.datalog_engines import ENGINES
from kpg.bench.run import Run, TooLong
from kpg.opening import open as open_database
from kpg.query.installed_program import InstalledProgram

PATIENCE = 30.0  # seconds that a peer may take for one answer


@dataclass(frozen=True, slots=True)
class Case:
    """A program on some edges."""

    program: str
    graph: str
    edges: Ints

    @property
    def nodes(self) -> int:
        """Nodes are 0 .. this."""
        return int(self.edges.max()) + 1


def cases(scale: float, seed: int) -> list[Case]:
    """Answers grow with the scale, so that nodes grow with its root."""
    root = math.sqrt(scale)
    side, depth, nodes = max(3, round(60 * root)), max(2, round(8 + math.log(scale, 4))), max(10, round(1_200 * root))
    small = max(2, round(5 + math.log(scale, 16)))
    return [
        Case("tc", f"tree-{depth}", tree(depth, seed)),
        Case("tc", f"grid-{side}", grid(side)),
        Case("tc", f"gnp-{nodes}", gnp(nodes, 6 / nodes, seed)),
        Case("sg", f"tree-{small}", tree(small, seed)),
        Case("sg", f"grid-{side}", grid(side)),
        Case("sg", f"gnp-{nodes // 2}", gnp(nodes // 2, 6 / nodes, seed)),
    ]


def run(run: Run) -> None:
    """Each program on each graph, by each engine."""
    made = cases(run.scale, run.seed)
    with Apart(PATIENCE * max(1.0, run.scale)) as apart:
        for number, case in enumerate(made):
            name = f"{case.program} on {case.graph}"
            run.say(name, number, len(made))
            seconds, rows = by_kpg(run, case)
            others = by_others(run, apart, case, rows)
            run.record(name, edges=len(case.edges), rows=rows, kpg_s=seconds, **others)


def by_others(run: Run, apart: Apart, case: Case, rows: int) -> dict[str, float | str]:
    """Seconds of each peer, or that it took more than anybody would wait for."""
    others: dict[str, float | str] = {}
    for peer, ask in ENGINES.items():
        try:
            found = run.ask(peer, partial(apart.ask, ask, case.program, case.edges))
        except TooLong as late:
            others[f"{peer}_s"] = str(late)
            continue
        if found is not None:
            run.check(found[0] == rows, f"{peer} agrees on {case.program} on {case.graph}")
            others[f"{peer}_s"] = found[1]
    return others


def by_kpg(run: Run, case: Case) -> tuple[float, int]:
    """Seconds from the edges to the answer, and its rows, checked."""
    with open_database() as db, InstalledProgram(db, programs.load(case.program), distinct_inputs=False) as running:
        began = time.perf_counter()
        running.inputs["e"].insert(case.edges)
        db.advance()
        seconds = time.perf_counter() - began
        table = running.table(case.program)
    found = np.sort(table["x"].to_numpy() * case.nodes + table["y"].to_numpy())
    run.check(np.array_equal(found, expected(case)), f"{case.program} on {case.graph}")
    return seconds, len(found)


def expected(case: Case) -> Ints:
    """The answer by NumPy, as sorted numbers x * nodes + y."""
    if case.program == "sg":
        return answers.same_generation(case.edges, case.nodes)
    turned = answers.closure(case.edges, case.edges, case.nodes)
    return np.sort(turned % case.nodes * case.nodes + turned // case.nodes)


EXPERIMENT = Experiment(
    id="X18",
    title="Datalog: bottom-up",
    paper="Shared Arrangements, figure 17; K-Pg, table 11",
    claim="Level with the best Datalog engine on one machine, ahead of the distributed ones.",
    size="trees, grids and random graphs with answers of one to four million rows (the paper: up to 10^9)",
    printed=(
        Printed("tc(t) / tc(g) / tc(r) / sg(t) / sg(g) / sg(r), 1 worker", "98.3 / 132 / 210 / 1211 / 4.43 / 483 s"),
        Printed("32 workers", "7.18 / 6.18 / 9.45 / 56.5 / 0.60 / 19.9 s"),
        Printed("Spark", "244 s / out of memory / 63 s / out of memory / 1955 s / 430 s", "120 cores"),
        Printed("BigDatalog", "105 / 25 / 7 / 53 / 34 / 72 s", "120 cores"),
        Printed("DeALS", "- / 148 / 321 / 1309 / 7.6 / 2926 s", "1 core"),
    ),
    memory=lambda scale: int(1.5e9 * scale + 5e8),
    run=run,
    peers=tuple(ENGINES),
)
