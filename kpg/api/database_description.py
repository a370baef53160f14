"""What a db holds, as plain values: its arrangements, who shares them, and who pins what.

A trace is kept as far back as the earliest since of its handles, and its batches apart as far as the earliest physical
frontier; so for each handle this says whose it is and where it stands. Reads only; costs a look at every operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpg.algebra.frontier import Frontier
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
    """One handle of a trace: whose it is, and how far back it holds times and batches."""

    by: str
    since: Frontier
    physical: Frontier
    apart: bool  # whether some batches may not be merged because of it


@dataclass(frozen=True, slots=True)
class ArrangementInfo:
    """One arrangement as it is now."""

    name: str
    dataflow: str
    private: bool  # made by a query for itself
    columns: tuple[str, ...]  # with their types
    keys: tuple[str, ...]
    rows: int
    batches: int
    nbytes: int
    since: Frontier
    upper: Frontier
    shared_by: tuple[str, ...]
    pins: tuple[HandleInfo, ...]


def indexes(db: EmbeddedDatabase, dataflow: Dataflow | None = None) -> list[ArrangementInfo]:
    """All arrangements of a db, or those that one dataflow keeps or imports."""
    installed = {found.publisher: found for found in db.installed if not found.released}
    owners = dict(holders(db))
    return [
        index_of(publisher, installed.get(publisher), owners)
        for publisher in publishers(db)
        if dataflow is None or publisher.dataflow is dataflow or dataflow in importers(publisher)
    ]


def publishers(db: EmbeddedDatabase) -> Iterator[Publisher]:
    """The operators whose traces are alive, in the order they were installed."""
    for _, dataflow in sorted(db.worker.dataflows.items()):
        for operator in dataflow.operators:
            if isinstance(operator, Publisher) and operator.spine() is not None:
                yield operator


def importers(publisher: Publisher) -> list[Dataflow]:
    """The dataflows that import an arrangement."""
    return list(dict.fromkeys(operator.dataflow for operator in publisher.importers))


def index_of(
    publisher: Publisher, installed: InstalledArrangement | None, owners: dict[TraceHandle, str]
) -> ArrangementInfo:
    """What there is to say of one arrangement."""
    spine = publisher.spine()
    assert spine is not None
    batches = spine.batches_through(None)
    schema = installed.schema if installed else publisher.schema or Schema((), ())
    return ArrangementInfo(
        name=name_of(publisher, installed),
        dataflow=publisher.dataflow.name,
        private=installed is None,
        columns=tuple(f"{name.strip()}: {type_}" for name, type_ in zip(schema.names, schema.types, strict=True)),
        keys=installed.keys if installed else schema.names[: spine.key_lanes],
        rows=sum(map(len, batches)),
        batches=len(batches),
        nbytes=sum(batch.nbytes for batch in batches),
        since=spine.since,
        upper=publisher.output_frontier(),  # the last batch may be long ago
        shared_by=tuple(dataflow.name for dataflow in importers(publisher)),
        pins=tuple(pin_of(handle, owners) for handle in spine.handles),
    )


def pin_of(handle: TraceHandle, owners: dict[TraceHandle, str]) -> HandleInfo:
    """What one handle holds back."""
    apart = not handle.spine.upper.precedes(handle.physical)
    return HandleInfo(owners.get(handle, handle.name), handle.since, handle.physical, apart)


def name_of(publisher: Publisher, installed: InstalledArrangement | None) -> str:
    """What people would call an arrangement."""
    if installed is None:
        return publisher.name
    by = f"by {', '.join(installed.keys) or 'nothing'}"
    return installed.name if installed.name.endswith(by) else f"{installed.name} {by}"


def holders(db: EmbeddedDatabase) -> Iterator[tuple[TraceHandle, str]]:
    """Every handle that belongs to somebody, and to whom."""
    for installed in db.installed:
        yield installed.handle, holder_of(db, installed)
    for dataflow in db.worker.dataflows.values():
        for operator in dataflow.operators:
            for handle in handles_of(operator):
                yield handle, f"{dataflow.name}: {handle.name}"


def holder_of(db: EmbeddedDatabase, installed: InstalledArrangement) -> str:
    """Who keeps an arrangement readable: a relation, an answer, or people's own handles."""
    people = installed.users - len(importers(installed.publisher))
    if installed.name in db.inputs:
        people -= 1
        return f"input {installed.name}" + (f" and {_count(people, 'handle')}" if people > 0 else "")
    if installed.name in db.outputs:
        return f"output {installed.name}"
    return _count(people, "handle") if people > 0 else "its readers"


def handles_of(operator: Operator) -> Iterator[TraceHandle]:
    """The handles that an operator keeps in its fields."""
    for value in vars(operator).values():
        for each in value if isinstance(value, tuple) else (value,):
            handle = getattr(each, "handle", each)
            if isinstance(handle, TraceHandle):
                yield handle


def state_of(dataflow: Dataflow) -> str:
    """Whether a dataflow has something to do, waits for a time, or is at rest."""
    if dataflow.failure is not None:
        return f"failed: {dataflow.failure.what}"
    if any(operator.scheduled for operator in dataflow.operators):
        return "busy"
    held = Frontier(time for operator in dataflow.operators for time in operator.held)
    return f"waiting for {show_frontier(held)}" if held else "idle"


def spent_in(db: EmbeddedDatabase, dataflow: Dataflow) -> dict[str, Any]:
    """How long a dataflow has worked, if somebody listens to it."""
    if db.recorder is None or dataflow.events is None:
        return {}
    seconds, steps = db.recorder.spent(dataflow.entity)
    return {"seconds": seconds, "steps": steps}


def describe_database(db: EmbeddedDatabase) -> dict[str, Any]:
    """Inputs, outputs, dataflows, arrangements, symbols and memory, as values that JSON can hold."""
    found = indexes(db)
    return {
        "epoch": db.epoch,
        "time": plain(db.time),
        "complete": None if db.sealed is None else plain(db.sealed),
        "storage": None if db.durable is None else db.durable.storage.describe(),
        "steps": db.worker.steps,
        "inputs": [
            {
                "name": each.name,
                "columns": columns_of(each),
                "key": list(each.key),
                "closed": each.closed,
            }
            for each in db.inputs.values()
        ],
        "outputs": [{"name": each.name, "columns": columns_of(each)} for each in db.outputs.values()],
        "dataflows": [
            {"name": each.name, "operators": len(each.operators), "state": state_of(each), **spent_in(db, each)}
            for _, each in sorted(db.worker.dataflows.items())
        ],
        "arrangements": [describe_index(each) for each in found],
        "symbols": {"count": len(db.symbols), "bytes": db.symbols.bytes},
        "memory": {
            "arrangement_bytes": sum(each.nbytes for each in found),
            "resident_bytes": resident_bytes(),
            "limit_bytes": db.memory.limit,
        },
    }


def describe_index(index: ArrangementInfo) -> dict[str, Any]:
    """One arrangement as plain values."""
    return {
        "name": index.name,
        "dataflow": index.dataflow,
        "private": index.private,
        "columns": list(index.columns),
        "keys": list(index.keys),
        "rows": index.rows,
        "batches": index.batches,
        "bytes": index.nbytes,
        "since": plain(index.since),
        "upper": plain(index.upper),
        "shared_by": list(index.shared_by),
        "pinned_by": [{"by": pin.by, "since": plain(pin.since), "physical": plain(pin.physical)} for pin in index.pins],
    }


def columns_of(relation: Any) -> dict[str, str]:
    """The columns of anything with a schema, and their types by name."""
    return {name: str(type_) for name, type_ in zip(relation.schema.names, relation.schema.types, strict=True)}


def plain(frontier: Frontier) -> list[list[int]]:
    """A frontier as lists; empty when nothing comes any more."""
    return [list(time) for time in frontier]


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")
