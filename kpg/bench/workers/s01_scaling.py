"""S1: how much faster are two workers than one, on E1, E7 (reach, wcc) and E8?

Wall time until the answer is complete. In one case each worker creates its own share of the input; in the other, one
client has all rows and sends them, which is then part of the time. One worker is the embedded db, which sends nothing.
Beside each stands the maximum of this machine: two processes at the same time that exchange nothing, each with a db of
its own and half of the rows. The first row is the same for kernels alone.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import kpg
from kpg import graphs
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import Stopwatch, wall_stopwatch
from kpg.bench.peers.peer_process import PeerProcess
from kpg.bench.row_checksums import checksum_of
from kpg.bench.run import Reference, Run
from kpg.bench.warm_workers import wait_for_made_rows
from kpg.bench.workers import worker_shares
from kpg.plan.plan_values import name_of_function

WORKERS = 2
REPEATS = 3
LEAST_GAINS = {"E1 load": (1.3, 1.3)}  # of two workers: when each makes its share, and fed by one client
USUAL_LEAST_GAINS = (1.5, 1.25)
APART_TIMEOUT_SECONDS = 600.0
INDEXED_KEY = ("r", "k")
Sizes = Callable[[int], int]  # a row count at the scale of a run
ShareOptions = tuple[Callable[..., Any], dict[str, Any]]  # the function that creates a share, and its options


@dataclass(frozen=True)
class ScalingCase:
    """The inputs of a query, and the query."""

    name: str
    inputs: dict[str, ShareOptions]
    query: Callable[..., kpg.Collection]
    indexes: tuple[tuple[str, str], ...] = ()
    constants: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)


def cases(size: Sizes) -> list[ScalingCase]:
    """Return the queries of E1, E7 and E8."""
    rows, distinct = size(10_000_000), size(1_000_000)
    nodes, count = size(1_000_000), size(5_000_000)
    side = size(1_000_000)
    keys = {"r": (worker_shares.share_of_keys, {"rows": rows, "distinct": distinct})}
    graph = {"edges": (worker_shares.share_of_digraph, {"nodes": nodes, "count": count})}
    sides = {
        "r": (worker_shares.share_of_side, {"rows": side, "seed": 1, "value": "v"}),
        "s": (worker_shares.share_of_side, {"rows": side, "seed": 2, "value": "w"}),
    }
    return [
        ScalingCase("E1 load", keys, lambda r: r.count("k"), (INDEXED_KEY,)),
        ScalingCase("E7 reach", graph, lambda edges, roots: graphs.reach(edges, roots), constants={"roots": [(0,)]}),
        ScalingCase("E7 wcc", graph, graphs.wcc),
        ScalingCase("E8 join", sides, lambda r, s: r.join(s, on="k").count("k")),
    ]


def run(run: Run) -> None:
    """Measure each query on one worker and on two, from shares and from one client."""
    with kpg.open() as alone, kpg.open(workers=WORKERS) as together:
        call_workers(together, worker_shares.load_worker_kernels)
        measure_kernels(run, together)
        for number, case in enumerate(cases(run.size)):
            apart = seconds_apart(run, number)
            for own_share, gain in zip((True, False), LEAST_GAINS.get(case.name, USUAL_LEAST_GAINS), strict=True):
                way = "each worker makes its share" if own_share else "fed by one client"
                one, two = wall_stopwatch(f"{case.name}, one"), wall_stopwatch(f"{case.name}, two")
                for _ in range(run.fixed_rounds(REPEATS)):
                    checksum = complete(case, alone, own_share, one)
                    run.check(complete(case, together, own_share, two) == checksum, f"{case.name} on two workers")
                run.report(
                    f"{case.name}, {way}",
                    f"at most 1/{gain:g} of the time of one worker",
                    [at_most("ratio", 1 / gain)],
                    Reference("one worker, embedded", one.least),
                    seconds=two.least,
                    rows=checksum[0],
                    exchanging_nothing_s=apart,
                )


def seconds_apart(run: Run, number: int) -> float:
    """Return the seconds of the slower of two simultaneous processes, each with half of the rows of a case."""
    with ExitStack() as stack, ThreadPoolExecutor(WORKERS) as pool:
        processes = [stack.enter_context(PeerProcess(APART_TIMEOUT_SECONDS)) for _ in range(WORKERS)]
        for process in processes:
            process.ask(seconds_alone, number, 0.0, 1)
        repeats = run.fixed_rounds(REPEATS)
        seconds: list[float] = list(
            pool.map(lambda process: process.ask(seconds_alone, number, run.scale / WORKERS, repeats), processes)
        )
        return max(seconds)


def seconds_alone(number: int, scale: float, repeats: int) -> float:
    """Return the least seconds of a case on one worker, each worker making its share."""
    case, stopwatch = cases(lambda rows: max(1, round(rows * scale)))[number], wall_stopwatch("alone")
    worker_shares.load_worker_kernels(None)
    with kpg.open() as db:
        for _ in range(repeats):
            complete(case, db, True, stopwatch)
    return stopwatch.least


def call_workers(db: kpg.Database, function: Callable[..., Any], **options: Any) -> list[Any]:
    """Call a function on each worker and return its values."""
    return db.call_workers(name_of_function(function), **options)  # type: ignore[attr-defined, no-any-return]


def measure_kernels(run: Run, db: kpg.Database) -> None:
    """Measure kernels in two processes at once, each with half of the rows, beside one process with all rows."""
    rows = run.size(10_000_000)
    one = min(worker_shares.sort_and_count(None, rows))
    by_worker = call_workers(db, worker_shares.sort_and_count, rows=max(1, rows // WORKERS))
    two = min(max(together) for together in zip(*by_worker, strict=True))
    reference = Reference("one process with all rows", one)
    run.report("the kernels alone, in two processes at once", reference=reference, seconds=two, rows=rows)


def complete(case: ScalingCase, db: kpg.Database, own_share: bool, stopwatch: Stopwatch) -> list[int]:
    """Rehearse on a few rows, load everything on the clock, and drop it again; return the checksum of the answer."""
    workers = getattr(db, "workers", 1)
    rehearse(case, db)
    inputs = {name: declare(db, name, share) for name, share in case.inputs.items()}
    for name, rows in case.constants.items():
        inputs[name] = db.input(name, node=int)
        inputs[name].insert(rows)
    indexes: list[Any] = [inputs[name].arrange(key) for name, key in case.indexes]
    answer: Any = case.query(*inputs.values()).output("answer")
    all_rows = {name: create(0, 1, **options) for name, (create, options) in case.inputs.items()}
    if own_share and workers > 1:
        for name, (create, options) in case.inputs.items():
            inputs[name].insert_made(create, **options)
        wait_for_made_rows(db)
    elif own_share:
        for name, columns in all_rows.items():
            inputs[name].insert(columns)
    with stopwatch:
        if not own_share:
            for name, columns in all_rows.items():
                inputs[name].insert(columns)
        db.advance()
    checksum = checksum_of(answer.snapshot())
    for handle in (answer, *indexes):
        handle.release()
    for source in inputs.values():
        source.drop()
    return checksum


def rehearse(case: ScalingCase, db: kpg.Database) -> None:
    """Run the same query on relations of a few rows."""
    inputs = [declare(db, f"few {name}", share) for name, share in case.inputs.items()]
    inputs += [db.input(f"few {name}", node=int) for name in case.constants]
    with case.query(*inputs).output("few"):
        for number in range(3):
            for source in inputs:
                source.insert([(number,) * len(source.schema)] * 2)
            db.advance()
    for source in inputs:
        source.drop()


def declare(db: kpg.Database, name: str, share: ShareOptions) -> kpg.Input:
    """Declare an input with the columns of a share."""
    create, options = share
    few = {key: min(value, 8) if isinstance(value, int) else value for key, value in options.items()}
    return db.input(name, kpg.Schema.of(dict.fromkeys(create(0, 1, **few), int)))


EXPERIMENT = engine_experiment(
    "S1", "two workers against one", "E1, E7 and E8 at their sizes", lambda scale: int(6e9 * scale + 8e8), run
)
