"""The state of a service as tables: relations, queries, dataflows, arrangements, usage and workers.

    inspect(service, "arrangements")                  a table with one row for each arrangement
    inspect(service, "operators", "answer reach")     the operators of one dataflow

A tenant sees relations and queries of its own. The other tables describe the whole db, so they are refused to it. On
several workers, rows, bytes and times are summed, and frontiers are the earliest.
Cost: `db.describe()`, one visit of every operator. Descriptions up to MAX_AGE_SECONDS old are used again, so that the
tables of one page of a console cost one visit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kpg.api.operator_description import describe_operators
from kpg.api.usage_groups import UsageGroup
from kpg.errors import InputError, NotAuthorised
from kpg.service.relation_declarations import is_attribute
from kpg.service.system_relations import SYSTEM_PREFIX
from kpg.sql.catalog.database_catalog import catalog_of

if TYPE_CHECKING:
    from kpg.service.service import Service

Description = dict[str, Any]
Cells = tuple[Any, ...]

ROWS_PER_PART: Final = 500  # of a table of relations, between two pauses: a few milliseconds
MAX_AGE_SECONDS: Final = 0.5  # a console asks for several tables at once, about once a second
MAX_TEXT_CHARACTERS: Final = 2_000  # of a rule's text in a table

COLUMNS: Final[dict[str, dict[str, str]]] = {
    "relations": {
        "name": "string", "kind": "string", "columns": "string", "tenant": "string?", "rows": "int64?",
        "bytes": "int64?", "published_rows": "int64?", "queries": "int64", "text": "string",
    },
    "queries": {
        "number": "int64", "name": "string", "session": "int64?", "tenant": "string?", "sharing": "string",
        "dataflow": "string", "upto": "int64", "lag": "int64", "unread_rows": "int64", "unread_bytes": "int64",
        "cpu_seconds": "float64", "kept_rows": "int64", "kept_bytes": "int64", "state": "string",
    },
    "dataflows": {
        "name": "string", "operators": "int64", "state": "string", "lag": "int64", "pinned_bytes": "int64",
        "cpu_seconds": "float64", "kept_rows": "int64", "kept_bytes": "int64",
    },
    "arrangements": {
        "name": "string", "dataflow": "string", "private": "bool", "columns": "string", "keys": "string",
        "rows": "int64", "bytes": "int64", "batches": "int64", "published_rows": "int64", "since": "int64?",
        "upper": "int64?", "readers": "int64", "pins": "int64",
    },
    "readers": {
        "arrangement": "string", "dataflow": "string", "role": "string", "reader": "string", "since": "int64?",
        "physical": "int64?",
    },
    "operators": {
        "operator": "int64", "name": "string", "depth": "int64", "cpu_seconds": "float64", "rows": "int64",
        "bytes": "int64", "busy": "bool", "imports_from": "string?",
    },
    "channels": {"source": "int64", "target": "int64"},
    "usage": {
        "kind": "string", "name": "string", "queries": "int64", "kept_rows": "int64", "kept_bytes": "int64",
        "cpu_seconds": "float64",
    },
    "workers": {
        "worker": "int64", "process": "int64", "state": "string", "dataflows": "int64", "steps": "int64",
        "cpu_seconds": "float64", "arrangement_bytes": "int64", "resident_bytes": "int64", "limit_bytes": "int64?",
        "symbols": "int64", "log_bytes": "int64?",
    },
}  # fmt: skip
OF_ONE_DATAFLOW: Final = ("operators", "channels")  # tables that need the name of a dataflow
NAMED: Final = (*OF_ONE_DATAFLOW, "arrangements", "readers")  # tables that take a name
FOR_TENANTS: Final = ("relations", "queries")
TYPES: Final = {"string": pa.string(), "int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_()}


class Inspector:
    """Computes the tables of one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._described: tuple[float, Description] | None = None

    def table(self, table: str, name: str | None = None) -> pa.Table:
        """Return a table; `name` is that of a dataflow, or of an arrangement for `readers`."""
        if table not in COLUMNS:
            raise InputError(f"no table is called {table!r}", hint=f"The tables are {', '.join(COLUMNS)}.")
        tenant = self._service.grants.tenant
        if tenant is not None and table not in FOR_TENANTS:
            raise NotAuthorised(
                f"tenant {tenant} may not inspect {table}",
                detail="This table describes the queries of all clients.",
                hint="Use a token without a tenant.",
            )
        if name is not None and table not in NAMED:
            raise InputError(f"the table {table} takes no name", hint=f"These do: {', '.join(NAMED)}.")
        if name is None and table in OF_ONE_DATAFLOW:
            raise InputError(f"the table {table} needs the name of a dataflow", hint="Inspect dataflows for the names.")
        rows: Callable[..., Iterable[Cells]] = getattr(self, f"_{table}")
        return as_table(COLUMNS[table], rows(name) if table in NAMED else rows())

    def _workers_described(self) -> list[Description]:
        """Return what each worker says of itself."""
        now = monotonic()
        if self._described is None or now > self._described[0] + MAX_AGE_SECONDS:
            self._described = (now, self._service.db.describe())
        description = self._described[1]
        workers: list[Description] = description.get("workers", [description])
        return workers

    def forget(self) -> None:
        """Describe the db anew for the next table."""
        self._described = None

    # Relations and queries

    def _relations(self) -> Iterator[Cells]:
        service = self._service
        sizes: dict[str, Description] = {}  # by dataflow: of its first shared arrangement
        for arrangement in self._summed_arrangements():
            if not arrangement["private"]:
                sizes.setdefault(arrangement["dataflow"], arrangement)
        followed = Counter(interest.name for interest in service.interests.values())
        for number, (name, relation) in enumerate(sorted(service.relations().items()), 1):
            if number % ROWS_PER_PART == 0:
                service.db.pause_request()
            columns = ", ".join(f"{column.name}: {column.kind}" for column in relation.columns)
            text = service.rules.by_name.get(name)
            described = sizes.get(name) or sizes.get(f"answer {name}") or sizes.get(f"shared answer {name}")
            figures = (None,) * 3 if described is None else tuple(described[key] for key in SIZES)
            is_seen = text is not None and service.hidden.sees_text(service.grants.tenant, text)
            source = text.source[:MAX_TEXT_CHARACTERS] if text is not None and is_seen else ""
            yield (name, self._kind(name), columns, service.grants.owner(name), *figures, followed[name], source)
        if service.grants.tenant is None:
            for name, (view, _) in sorted(catalog_of(service.db).views.items()):
                columns = ", ".join(f"{column.name}: {column.type}" for column in view.columns)
                yield (name, "view", columns, None, None, None, None, 0, view.text[:MAX_TEXT_CHARACTERS])

    def _kind(self, name: str) -> str:
        """Return what a name stands for, in the words of its language."""
        if name in self._service.rules.by_name:
            return "rule"
        sql = catalog_of(self._service.db)
        if name in sql.tables:
            return "table"
        if name in sql.installed:
            return "materialized view"
        if name.startswith(SYSTEM_PREFIX):
            return "system relation"
        return "attribute" if is_attribute(name) else "relation"

    def _queries(self) -> Iterator[Cells]:
        service, tenant = self._service, self._service.grants.tenant
        dataflows = {dataflow["name"]: dataflow for dataflow in self._summed_dataflows()}
        for number, interest in sorted(service.interests.items()):
            if tenant is not None and interest.tenant != tenant:
                continue
            used = dataflows.get(interest.dataflow, NO_DATAFLOW)
            error, upto = interest.error, interest.upto
            if error is not None and tenant is not None:
                error = interest.shown(error)
            state = f"failed: {error}" if error is not None else used["state"]
            session = interest.owner if isinstance(interest.owner, int) else None
            lag = max(0, service.time - upto)
            yield (
                number, interest.name, session, interest.tenant, interest.sharing, interest.dataflow, upto, lag,
                interest.waiting, interest.unread_bytes, used["cpu_seconds"], used["kept_rows"], used["kept_bytes"],
                state,
            )  # fmt: skip
        if tenant is None:
            yield from self._cursors(dataflows)

    def _cursors(self, dataflows: dict[str, Description]) -> Iterator[Cells]:
        """Yield the queries that clients follow with cursors of SUBSCRIBE."""
        service = self._service
        for number, followed in sorted(service.sql.followed().items()):
            used = dataflows.get(followed.subscription.dataflow, NO_DATAFLOW)
            session = followed.owner if isinstance(followed.owner, int) else None
            unread, lanes = followed.cursor.unread_rows, len(followed.subscription.schema)
            yield (
                number, f"cursor {followed.name}", session, None, "nothing", followed.subscription.dataflow,
                service.time - used["lag_epochs"], used["lag_epochs"], unread, unread * (lanes + 2) * BYTES_OF_LANE,
                used["cpu_seconds"], used["kept_rows"], used["kept_bytes"], used["state"],
            )  # fmt: skip

    def _usage(self) -> Iterator[Cells]:
        service = self._service
        followed = Counter(("session", interest.owner) for interest in service.interests.values())
        followed += Counter(("tenant", interest.tenant) for interest in service.interests.values())
        followed += Counter(("session", cursor.owner) for cursor in service.sql.followed().values())
        for (kind, name), group in service.usage().items():
            yield (kind, str(name), followed[kind, name], *self._used(group))

    def _used(self, group: UsageGroup) -> tuple[int, int, float]:
        """Return the rows, bytes and CPU seconds of a group; several workers count their shares of them."""
        if self._service.db.is_single_worker:
            return group.kept_rows, group.kept_bytes, group.seconds
        shares = [share for worker in self._workers_described() for share in worker["usage_groups"]]
        own = [share for share in shares if share["number"] == group.number]
        rows, nbytes, seconds = (sum(share[key] for share in own) for key in ("kept_rows", "kept_bytes", "seconds"))
        return rows, nbytes, seconds

    # Dataflows and arrangements

    def _summed_dataflows(self) -> Iterator[Description]:
        """Yield dataflows by name: the index and the answer of a materialized view have one, and count as one."""
        dataflows = summed(([*worker["dataflows"]] for worker in self._workers_described()), ("name",), DATAFLOW_TOTALS)
        by_name: dict[str, list[Description]] = {}
        for dataflow in dataflows:
            by_name.setdefault(dataflow["name"], []).append(dataflow)
        for group in by_name.values():
            yield combined(group, {**DATAFLOW_TOTALS, "operators": sum, "state": busiest})

    def _dataflows(self) -> Iterator[Cells]:
        for dataflow in self._summed_dataflows():
            yield tuple(dataflow[key] for key in DATAFLOW_MEMBERS)

    def _summed_arrangements(self) -> Iterator[Description]:
        yield from summed(
            ([*worker["arrangements"]] for worker in self._workers_described()),
            ("dataflow", "name"),
            {"rows": sum, "bytes": sum, "batches": sum, "published_rows": sum, "since": earliest, "upper": earliest},
        )

    def _arrangements(self, dataflow: str | None) -> Iterator[Cells]:
        """Yield the arrangements that are shared, or all that one dataflow keeps or imports."""
        for one in self._summed_arrangements():
            if dataflow is None and one["private"]:
                continue
            if dataflow is not None and one["dataflow"] != dataflow and dataflow not in one["shared_by"]:
                continue
            yield (
                one["name"], one["dataflow"], one["private"], ", ".join(one["columns"]), ", ".join(one["keys"]),
                one["rows"], one["bytes"], one["batches"], one["published_rows"], first(one["since"]),
                first(one["upper"]), len(one["shared_by"]), len(one["pinned_by"]),
            )  # fmt: skip

    def _readers(self, arrangement: str | None) -> Iterator[Cells]:
        """Yield the dataflows that share each arrangement, and the handles that pin it."""
        for one in self._summed_arrangements():
            if one["name"] != arrangement if arrangement is not None else one["private"]:
                continue
            for reader in one["shared_by"]:
                yield (one["name"], one["dataflow"], "shares", reader, None, None)
            for pin in one["pinned_by"]:
                yield (one["name"], one["dataflow"], "pins", pin["by"], first(pin["since"]), first(pin["physical"]))

    # The graph of one dataflow

    def _graphs(self, dataflow: str) -> list[Description]:
        db: Any = self._service.db
        if db.is_single_worker:
            return [describe_operators(db, dataflow)]
        function = f"{describe_operators.__module__}:{describe_operators.__name__}"
        return list(db.call_workers(function, dataflow=dataflow))

    def _operators(self, dataflow: str) -> Iterator[Cells]:
        operators = summed(
            (graph["operators"] for graph in self._graphs(dataflow)),
            ("operator",),
            {"cpu_seconds": sum, "rows": sum, "bytes": sum, "busy": any},
        )
        for operator in operators:
            yield tuple(operator[key] for key in COLUMNS["operators"])

    def _channels(self, dataflow: str) -> Iterator[Cells]:
        yield from dict.fromkeys(tuple(channel) for channel in self._graphs(dataflow)[0]["channels"])

    # Workers

    def _workers(self) -> Iterator[Cells]:
        for number, worker in enumerate(self._workers_described()):
            memory, storage = worker["memory"], worker["storage"]
            yield (
                number, worker["process"], worker_state(worker), len(worker["dataflows"]), worker["steps"],
                sum(dataflow["cpu_seconds"] for dataflow in worker["dataflows"]), memory["arrangement_bytes"],
                memory["resident_bytes"], memory["limit_bytes"], worker["symbols"]["count"],
                None if storage is None else storage["log_bytes"],
            )  # fmt: skip


SIZES: Final = ("rows", "bytes", "published_rows")
DATAFLOW_TOTALS: Final[dict[str, Callable[[list[Any]], Any]]] = {
    "pinned_bytes": sum, "cpu_seconds": sum, "kept_rows": sum, "kept_bytes": sum, "lag_epochs": max,
}  # fmt: skip
DATAFLOW_MEMBERS: Final = (
    "name", "operators", "state", "lag_epochs", "pinned_bytes", "cpu_seconds", "kept_rows", "kept_bytes",
)  # fmt: skip
NO_DATAFLOW: Final[Description] = {
    "state": "ended", "lag_epochs": 0, "cpu_seconds": 0.0, "kept_rows": 0, "kept_bytes": 0,
}  # fmt: skip
BYTES_OF_LANE: Final = 8  # each row has one number for each lane, and two more for its time and diff


def worker_state(worker: Description) -> str:
    """Return whether a worker has trouble with its files, has work to do, or is idle."""
    storage = worker["storage"]
    if storage is not None and storage["trouble"] is not None:
        return f"cannot write a checkpoint: {storage['trouble']}"
    idle = all(dataflow["state"] == "idle" or dataflow["state"].startswith("wait") for dataflow in worker["dataflows"])
    return "idle" if idle else "busy"


def summed(
    workers: Iterable[list[Description]], key: tuple[str, ...], totals: dict[str, Callable[[list[Any]], Any]]
) -> Iterator[Description]:
    """Yield each description once for all workers: the members in `totals` combined, the others of the first worker.

    Descriptions with equal keys are told apart by their order, which is the same on all workers.
    """
    groups: dict[tuple[Any, ...], list[Description]] = {}
    for described in workers:
        seen: Counter[tuple[Any, ...]] = Counter()
        for one in described:
            name = tuple(one[member] for member in key)
            groups.setdefault((*name, seen[name]), []).append(one)
            seen[name] += 1
    for group in groups.values():
        yield combined(group, totals)


def combined(group: list[Description], totals: dict[str, Callable[[list[Any]], Any]]) -> Description:
    """Return descriptions as one: the members in `totals` combined, the others of the first."""
    if len(group) == 1:
        return group[0]
    return group[0] | {member: total([one[member] for one in group]) for member, total in totals.items()}


def busiest(states: list[str]) -> str:
    """Return the first state that is not idle."""
    return next((state for state in states if state != "idle"), "idle")


def earliest(frontiers: list[list[list[int]]]) -> list[list[int]]:
    """Return the earliest frontier of one coordinate; a closed one is the latest of all."""
    return min((frontier for frontier in frontiers if frontier), default=[])


def first(frontier: list[list[int]]) -> int | None:
    """Return the time of a frontier of one coordinate; None if it is closed."""
    return frontier[0][0] if frontier else None


def as_table(columns: dict[str, str], rows: Iterable[Cells]) -> pa.Table:
    """Return rows as a table with columns of the given types."""
    fields = [pa.field(name, TYPES[kind.rstrip("?")], kind.endswith("?")) for name, kind in columns.items()]
    schema, remaining, parts = pa.schema(fields), iter(rows), []
    while part := [*islice(remaining, ROWS_PER_PART)]:
        cells = zip(*part, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(cells, fields, strict=True)]
        parts.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return pa.Table.from_batches(parts, schema)
