"""The contents of a db as plain values: its arrangements, the dataflows that share them, and the handles that pin them.

The handles of a trace limit its compaction: it keeps history from their earliest logical since on, and merges no
batches across their earliest physical since. The description therefore lists each handle with its owner and both
frontiers. It changes nothing; its cost is one visit of every operator.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpg.algebra.frontier import Frontier
from kpg.api.answer_lag import lag_of
from kpg.api.memory import resident_bytes
from kpg.api.times import show_frontier
from kpg.columns.schema import Schema
from kpg.dataflow.graph import Dataflow
from kpg.dataflow.operator import Operator
from kpg.operators.arrange import Publisher
from kpg.trace.handle import TraceHandle

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.api.installed_arrangement import InstalledArrangement


@dataclass(frozen=True, slots=True)
class HandleInfo:
    """One handle of a trace: its owner, and how far back it holds times and batches."""

    by: str
    since: Frontier
    physical: Frontier
    apart: bool  # whether it keeps some batches from being merged


@dataclass(frozen=True, slots=True)
class ArrangementInfo:
    """The present state of one arrangement."""

    name: str
    dataflow: str
    private: bool  # built by a query for itself
    columns: tuple[str, ...]  # with their types
    keys: tuple[str, ...]
    rows: int
    batches: int
    nbytes: int
    published_rows: int  # updates that it has received so far
    since: Frontier
    upper: Frontier
    shared_by: tuple[str, ...]
    pins: tuple[HandleInfo, ...]


def indexes(db: EmbeddedDatabase, dataflow: Dataflow | None = None) -> list[ArrangementInfo]:
    """Return all arrangements of a db, or those that one dataflow keeps or imports."""
    installed = {arrangement.publisher: arrangement for arrangement in db.installed if not arrangement.released}
    owners = dict(handle_owners(db))
    return [
        index_of(publisher, installed.get(publisher), owners)
        for publisher in publishers(db)
        if dataflow is None or publisher.dataflow is dataflow or dataflow in importers(publisher)
    ]


def publishers(db: EmbeddedDatabase) -> Iterator[Publisher]:
    """Yield the operators with a living trace, in the order of installation."""
    for _, dataflow in sorted(db.worker.dataflows.items()):
        for operator in dataflow.operators:
            if isinstance(operator, Publisher) and operator.spine() is not None:
                yield operator


def importers(publisher: Publisher) -> list[Dataflow]:
    """Return the dataflows that import an arrangement."""
    return list(dict.fromkeys(operator.dataflow for operator in publisher.importers))


def index_of(
    publisher: Publisher, installed: InstalledArrangement | None, owners: dict[TraceHandle, str]
) -> ArrangementInfo:
    """Describe one arrangement."""
    spine = publisher.spine()
    assert spine is not None
    batches = spine.batches_through(None)
    schema = installed.schema if installed else publisher.schema or Schema((), ())
    return ArrangementInfo(
        name=name_of(publisher, installed),
        dataflow=publisher.dataflow.name,
        private=installed is None,
        columns=tuple(f"{name.strip()}: {type_}" for name, type_ in zip(schema.names, schema.types, strict=True)),
        keys=installed.keys if installed else schema.names[: schema.columns_in(spine.key_lanes)],
        rows=sum(map(len, batches)),
        batches=len(batches),
        nbytes=sum(batch.nbytes for batch in batches),
        published_rows=publisher.published_rows,
        since=spine.since,
        upper=publisher.output_frontier(),  # the upper of the last batch may be long past
        shared_by=tuple(dataflow.name for dataflow in importers(publisher)),
        pins=tuple(pin_of(handle, owners) for handle in spine.handles),
    )


def pin_of(handle: TraceHandle, owners: dict[TraceHandle, str]) -> HandleInfo:
    """Describe one handle: its owner and its frontiers."""
    apart = not handle.spine.upper.precedes(handle.physical)
    return HandleInfo(owners.get(handle, handle.name), handle.since, handle.physical, apart)


def name_of(publisher: Publisher, installed: InstalledArrangement | None) -> str:
    """Return the name of an arrangement, with its key columns."""
    if installed is None:
        return publisher.name
    by = f"by {', '.join(installed.keys) or 'nothing'}"
    return installed.name if installed.name.endswith(by) else f"{installed.name} {by}"


def handle_owners(db: EmbeddedDatabase) -> Iterator[tuple[TraceHandle, str]]:
    """Yield every handle that has an owner, with the name of the owner."""
    for installed in db.installed:
        yield installed.handle, owner_of(db, installed)
    for dataflow in db.worker.dataflows.values():
        for operator in dataflow.operators:
            for handle in handles_of(operator):
                yield handle, f"{dataflow.name}: {handle.name}"


def owner_of(db: EmbeddedDatabase, installed: InstalledArrangement) -> str:
    """Return what keeps an arrangement readable: a relation, an answer, or handles of the program."""
    handles = installed.users - len(importers(installed.publisher))
    if installed.name in db.inputs:
        handles -= 1
        return f"input {installed.name}" + (f" and {_count(handles, 'handle')}" if handles > 0 else "")
    if installed.name in db.outputs:
        return f"output {installed.name}"
    return _count(handles, "handle") if handles > 0 else "its readers"


def handles_of(operator: Operator) -> Iterator[TraceHandle]:
    """Yield the handles that an operator keeps in its fields."""
    for value in vars(operator).values():
        for part in value if isinstance(value, tuple) else (value,):
            handle = getattr(part, "handle", part)
            if isinstance(handle, TraceHandle):
                yield handle


def state_of(dataflow: Dataflow) -> str:
    """Return whether a dataflow has failed, has work to do, waits for a time, or is idle."""
    if dataflow.failure is not None:
        return f"failed: {dataflow.failure.what}"
    lag = lag_of(dataflow)
    if lag.epochs:
        return f"{_count(lag.epochs, 'epoch')} behind, pins {lag.pinned_bytes:,} bytes"
    if dataflow.is_busy or any(operator.scheduled for operator in dataflow.operators):
        return "busy"
    held = Frontier(time for operator in dataflow.operators for time in operator.held)
    return f"waiting for {show_frontier(held)}" if held else "idle"


def spent_in(db: EmbeddedDatabase, dataflow: Dataflow) -> dict[str, Any]:
    """Return the seconds and steps of a dataflow, if a log counts them."""
    if db.recorder is None or dataflow.events is None:
        return {}
    seconds, steps = db.recorder.spent(dataflow.entity)
    return {"seconds": seconds, "steps": steps}


def used_by(dataflow: Dataflow) -> dict[str, Any]:
    """Return the CPU time of a dataflow, and the state that it keeps; both are 0 if the db has no guard."""
    usage = dataflow.usage
    return {
        "cpu_seconds": sum(operator.cpu_seconds for operator in dataflow.operators),
        "kept_rows": 0 if usage is None else usage.kept_rows,
        "kept_bytes": 0 if usage is None else usage.kept_bytes,
    }


def describe_database(db: EmbeddedDatabase) -> dict[str, Any]:
    """Return inputs, outputs, dataflows, arrangements, symbols and memory as values that JSON can hold."""
    arrangements = indexes(db)
    return {
        "epoch": db.epoch,
        "time": plain(db.time),
        "complete": None if db.sealed is None else plain(db.sealed),
        "storage": None if db.durable is None else db.durable.storage.describe(),
        "steps": db.worker.steps,
        "process": os.getpid(),
        "inputs": [
            {
                "name": source.name,
                "columns": columns_of(source),
                "key": list(source.key),
                "closed": source.closed,
            }
            for source in db.inputs.values()
        ],
        "outputs": [{"name": output.name, "columns": columns_of(output)} for output in db.outputs.values()],
        "dataflows": [
            {
                "name": dataflow.name,
                "operators": len(dataflow.operators),
                "state": state_of(dataflow),
                "lag_epochs": lag_of(dataflow).epochs,
                "pinned_bytes": lag_of(dataflow).pinned_bytes,
                **used_by(dataflow),
                **spent_in(db, dataflow),
            }
            for _, dataflow in sorted(db.worker.dataflows.items())
        ],
        "arrangements": [describe_index(index) for index in arrangements],
        "symbols": {"count": len(db.symbols), "bytes": db.symbols.bytes},
        "memory": {
            "arrangement_bytes": sum(index.nbytes for index in arrangements),
            "resident_bytes": resident_bytes(),
            "limit_bytes": db.memory.limit,
        },
    }


def describe_index(index: ArrangementInfo) -> dict[str, Any]:
    """Return one arrangement as plain values."""
    return {
        "name": index.name,
        "dataflow": index.dataflow,
        "private": index.private,
        "columns": list(index.columns),
        "keys": list(index.keys),
        "rows": index.rows,
        "batches": index.batches,
        "bytes": index.nbytes,
        "published_rows": index.published_rows,
        "since": plain(index.since),
        "upper": plain(index.upper),
        "shared_by": list(index.shared_by),
        "pinned_by": [{"by": pin.by, "since": plain(pin.since), "physical": plain(pin.physical)} for pin in index.pins],
    }


def columns_of(relation: Any) -> dict[str, str]:
    """Return the columns of anything with a schema, and their types by name."""
    return {name: str(type_) for name, type_ in zip(relation.schema.names, relation.schema.types, strict=True)}


def plain(frontier: Frontier) -> list[list[int]]:
    """Return a frontier as lists; the closed frontier is the empty list."""
    return [list(time) for time in frontier]


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")
