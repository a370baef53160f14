"""S1: how much faster are two workers than one, on E1, E7 (reach, wcc) and E8?

Wall time until all is complete. Once each worker makes its own share of the input; once one client has all rows and
sends them, which is then part of the time. One worker is the embedded db, which sends nothing anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import kpg
from benchmarks import shards
from benchmarks.lines import Reference, Run, at_most
from benchmarks.measure import Clock, wall_clock
from kpg import graphs
from kpg.plan.plan_values import name_of_function

WORKERS = 2
KEY = ("r", "k")


@dataclass(frozen=True)
class Work:
    """Inputs, how their rows are made, and what is asked of them."""

    name: str
    inputs: dict[str, tuple[Callable[..., Any], dict[str, Any]]]
    query: Callable[..., kpg.Collection]
    indexes: tuple[tuple[str, str], ...] = ()
    constants: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)


def works(run: Run) -> list[Work]:
    """The experiments."""
    rows, distinct = run.size(10_000_000), run.size(1_000_000)
    nodes, count = run.size(1_000_000), run.size(5_000_000)
    side = run.size(1_000_000)
    graph = {"edges": (shards.edges, {"nodes": nodes, "count": count})}
    return [
        Work("E1 load", {"r": (shards.keys, {"rows": rows, "distinct": distinct})}, lambda r: r.count("k"), (KEY,)),
        Work("E7 reach", graph, lambda edges, roots: graphs.reach(edges, roots), constants={"roots": [(0,)]}),
        Work("E7 wcc", graph, graphs.wcc),
        Work(
            "E8 join",
            {
                "r": (shards.side, {"rows": side, "seed": 1, "value": "v"}),
                "s": (shards.side, {"rows": side, "seed": 2, "value": "w"}),
            },
            lambda r, s: r.join(s, on="k").count("k"),
        ),
    ]


def run(run: Run) -> None:
    """Each with one worker and with two, from shards and from one client; first what the machine allows."""
    with kpg.open() as alone, kpg.open(workers=WORKERS) as together:
        ask(together, shards.load_kernels)
        ceiling(run, together)
        for work in works(run):
            for own, limit in ((True, 1 / 1.6), (False, 1 / 1.25)):
                way = "each worker makes its share" if own else "fed by one client"
                one, two = wall_clock(f"{work.name}, one"), wall_clock(f"{work.name}, two")
                for _ in range(3):
                    rows = complete(work, alone, own, one)
                    assert complete(work, together, own, two) == rows, f"{work.name}: two workers say something else"
                run.report(
                    f"{work.name}, {way}",
                    f"at most 1/{1 / limit:g} of the time of one worker",
                    [at_most("ratio", limit)],
                    Reference("one worker, embedded", one.least),
                    seconds=two.least,
                    rows=rows,
                )


def ask(db: kpg.Database, function: Callable[..., Any], **options: Any) -> list[Any]:
    """What a function says on each worker."""
    request = {"do": "call", "function": name_of_function(function), "options": options}
    return [reply.value for reply in db.ask(request)]  # type: ignore[attr-defined]


def ceiling(run: Run, db: kpg.Database) -> None:
    """Two processes at once, each with half of the rows, beside one with all: nothing that exchanges can do better."""
    rows = run.size(10_000_000)
    one = min(shards.sort_and_count(None, rows))
    each = ask(db, shards.sort_and_count, rows=max(1, rows // WORKERS))
    two = min(max(together) for together in zip(*each, strict=True))
    reference = Reference("one process with all rows", one)
    run.report("the kernels alone, in two processes at once", reference=reference, seconds=two, rows=rows)


def complete(work: Work, db: kpg.Database, own: bool, clock: Clock) -> int:
    """Load everything, after a rehearsal on a few rows, and drop it again; how many rows the answer has."""
    workers = getattr(db, "workers", 1)
    rehearse(work, db)
    inputs = {name: declare(db, name, made) for name, made in work.inputs.items()}
    for name, rows in work.constants.items():
        inputs[name] = db.input(name, node=int)
        inputs[name].insert(rows)
    indexes: list[Any] = [inputs[name].arrange(key) for name, key in work.indexes]
    answer: Any = work.query(*inputs.values()).output("answer")
    share = {name: made(0, 1, **options) for name, (made, options) in work.inputs.items()}
    if own and workers > 1:
        for name, (made, options) in work.inputs.items():
            inputs[name].insert_made(made, **options)
    elif own:
        for name, columns in share.items():
            inputs[name].insert(columns)
    with clock:
        if not own:
            for name, columns in share.items():
                inputs[name].insert(columns)
        db.advance()
    found: int = answer.snapshot().num_rows
    for each in (answer, *indexes):
        each.release()
    for source in inputs.values():
        source.drop()
    return found


def rehearse(work: Work, db: kpg.Database) -> None:
    """The same query on relations of a few rows."""
    small = [declare(db, f"few {name}", made) for name, made in work.inputs.items()]
    small += [db.input(f"few {name}", node=int) for name in work.constants]
    with work.query(*small).output("few"):
        for number in range(3):
            for source in small:
                source.insert([(number,) * len(source.schema)] * 2)
            db.advance()
    for source in small:
        source.drop()


def declare(db: kpg.Database, name: str, made: tuple[Callable[..., Any], dict[str, Any]]) -> kpg.Input:
    """An input for the columns that a shard has."""
    function, options = made
    few = {key: min(value, 8) if isinstance(value, int) else value for key, value in options.items()}
    return db.input(name, kpg.Schema.of(dict.fromkeys(function(0, 1, **few), int)))
