"""EXPLAIN: the algebra of a query after its rewrites, the plan of its joins, and the arrangements that it uses.

    EXPLAIN SELECT …                    what the plan would be; nothing is computed
    EXPLAIN ANALYZE SELECT …            computes the answer once, and adds rows and bytes
    EXPLAIN MATERIALIZED VIEW v         the plan of an installed view, with rows and bytes
    EXPLAIN VERBOSE …                   adds the operators of the dataflow

    Joins
      binary: (lineitem ⋈ orders) ⋈ customer
        keeps about 1,200 rows, 48 kB; delta queries would keep about 9,000 rows, 280 kB

    Arrangements
      orders by id (id, who, amount)    shared with totals
      intermediate rows by who (who)    new

A shared arrangement exists already: the query adds nothing to it. A new one is what the query would keep. EXPLAIN
releases everything that it has built. Rows and bytes are those of all workers together; the operators are the same on
each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpg.api.embedded_arrangement import EmbeddedArrangement
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.embedded_output import EmbeddedOutput
from kpg.api.explain_dataflow import count, explain_dataflow, size
from kpg.columns.building_turns import building_in_turns
from kpg.errors import NotSupported, UndefinedName
from kpg.plan.rule_loops import why_loops
from kpg.sql.bind.bind_context import Parameters
from kpg.sql.bind.bind_statements import bind_query
from kpg.sql.catalog.database_catalog import InstalledView
from kpg.sql.lower.join_choice import JoinChoice, KeptRows
from kpg.sql.lower.lower_query import facts_of, lower_query
from kpg.sql.lower.lower_sql_recursion import loop_name
from kpg.sql.lower.recursive_rule import rule_of
from kpg.sql.lower.row_estimates import RowEstimates
from kpg.sql.parse.sql_statements import CreateView, ExplainStatement, QueryStatement
from kpg.sql.parse.statement_parser import parse_query
from kpg.sql.relational.relations import BoundRecursion, BoundRelation, Query, without_order
from kpg.sql.relational.show_relations import show_relation
from kpg.sql.rewrites.relation_traversal import nodes_of
from kpg.sql.rewrites.rewrite_query import rewrite_query
from kpg.sql.session import sql_errors
from kpg.sql.session.planned_version import planning, require_planned_version
from kpg.sql.session.query_result import QueryResult, ResultColumn
from kpg.sql.session.run_query import CatalogSources
from kpg.sql.session.show_settings import texts
from kpg.sql.session.sql_errors import sql_error
from kpg.sql.sql_types import TEXT

if TYPE_CHECKING:
    from kpg.api.contracts import Database, Output
    from kpg.sql.session.sql_session import SqlSession

OPTIONS = ("analyze", "verbose")
EXPLAIN_COLUMNS = (ResultColumn("QUERY PLAN", TEXT),)


def explain(session: SqlSession, statement: ExplainStatement, parameters: Parameters) -> QueryResult:
    """Carry out EXPLAIN."""
    chosen = chosen_options(statement)
    if statement.view is not None:
        lines = explain_view(session, str(statement.view), "verbose" in chosen)
    elif isinstance(statement.statement, (QueryStatement, CreateView)):
        with planning(session.catalog):
            query = bind_query(statement.statement.query, session.catalog, parameters, standing=False)
            algebra = explain_algebra(session, query)
        lines = [*algebra, *explain_plan(session, query, chosen)]
    else:
        raise sql_error(
            NotSupported, sql_errors.NOT_SUPPORTED, "EXPLAIN of a statement that writes", hint="Explain its query."
        )
    return texts([EXPLAIN_COLUMNS[0].name], [(line,) for line in lines])


def chosen_options(statement: ExplainStatement) -> set[str]:
    """Return the options that are on; refuse others than those of kpg."""
    unknown = sorted(statement.options.keys() - set(OPTIONS))
    if unknown:
        what = f"EXPLAIN has no option {unknown[0].upper()}"
        raise sql_error(NotSupported, sql_errors.NOT_SUPPORTED, what, hint="Options: ANALYZE, VERBOSE.")
    return {name for name, value in statement.options.items() if value in ("true", "on", "1")}


def explain_algebra(session: SqlSession, query: Query) -> list[str]:
    """Return the algebra of a query, as its plan is made of it."""
    facts = facts_of(CatalogSources(session.catalog))
    relation = rewrite_query(without_order(query), facts).relation
    return [*show_relation(relation).splitlines(), *recursion_lines(session, query, relation, RowEstimates(facts))]


def recursion_lines(
    session: SqlSession, query: Query, relation: BoundRelation, estimates: RowEstimates
) -> Iterator[str]:
    """Yield, for each recursion, whether one operator maintains it, and if not, why it is a loop."""
    recursions = [node for node in nodes_of(relation) if isinstance(node, BoundRecursion)]
    if not recursions:
        return
    yield from ("", "Recursions")
    plan = lower_query(session.db, query, CatalogSources(session.catalog)).node
    loops = why_loops(plan, session.db.symbols)
    for node in recursions:
        names = ", ".join(entry.variable.name for entry in node.definitions)
        rule = rule_of(session.db, node, estimates)
        reason = loops.get(loop_name(names), rule) if isinstance(rule, str) else None
        yield f"  {names}: one operator" if reason is None else f"  {names}: a loop, because {reason}"


def explain_plan(session: SqlSession, query: Query, chosen: set[str]) -> list[str]:
    """Return the joins and arrangements of a query that is installed for a moment. Only ANALYZE computes its rows."""
    analyze = "analyze" in chosen
    joins: list[JoinChoice] = []
    with planning(session.catalog):
        collection = lower_query(session.db, query, CatalogSources(session.catalog), choices=joins)
    require_planned_version(session.catalog)
    with building_in_turns():
        output = collection.output(keep=analyze)
    try:
        rows = output.snapshot().num_rows if analyze else None
        lines = [*join_lines(joins), *describe_dataflow(session.db, output.name, analyze)]
        lines += operators(session.db, output) if "verbose" in chosen else []
        return lines if rows is None else [*lines, "", f"Answer: {count(rows, 'row')}"]
    finally:
        output.release()


def explain_view(session: SqlSession, name: str, verbose: bool) -> list[str]:
    """Return the algebra and the arrangements of an installed view."""
    view = session.catalog.installed.get(name)
    if view is None:
        what = f"there is no materialized view {name!r}"
        raise sql_error(UndefinedName, sql_errors.UNDEFINED_TABLE, what, hint="SHOW MATERIALIZED VIEWS lists them.")
    with planning(session.catalog):
        query = bind_query(parse_query(view.entry.text, name), session.catalog)
        algebra = explain_algebra(session, query)
    require_planned_version(session.catalog)
    lines = [*algebra, *join_lines(view.joins), *describe_dataflow(session.db, name, True)]
    return [*lines, *view_operators(session.db, view)] if verbose else lines


# Joins


def join_lines(joins: Sequence[JoinChoice]) -> Iterator[str]:
    """Yield the plan of each tree of inner joins: its kind, its orders, and what it is estimated to keep."""
    if joins:
        yield from ("", "Joins")
    for choice in joins:
        first, *others = choice.orders
        yield f"  {choice.kind}: {first}"
        yield from (f"  {' ' * len(choice.kind)}  {order}" for order in others)
        other = "delta queries" if choice.kind == "binary" else "binary joins"
        beside = "" if choice.other is None else f"; {other} would keep {kept_text(choice.other)}"
        yield f"    keeps {kept_text(choice.kept)}{beside}"


def kept_text(kept: KeptRows) -> str:
    """Return an estimate of rows and bytes."""
    return f"about {count(round(kept.rows), 'row')}, {size(kept.nbytes)}" if kept.rows else "no rows"


# Operators


def operators(db: Database, output: Output) -> list[str]:
    """Return the operators of an output; of several workers, those of the first."""
    if isinstance(db, EmbeddedDatabase) and isinstance(output, EmbeddedOutput):
        return ["", *explain_dataflow(db, output.dataflow).splitlines()]
    first = output.explain().partition("\n\nworker 1\n")[0].removeprefix("worker 0\n")
    return ["", *first.splitlines()]


def view_operators(db: Database, view: InstalledView) -> list[str]:
    """Return the operators of a view."""
    if isinstance(db, EmbeddedDatabase) and isinstance(view.arrangement, EmbeddedArrangement):
        return ["", *explain_dataflow(db, view.arrangement.installed.dataflow).splitlines()]
    return operators(db, view.output)


# Arrangements


@dataclass(frozen=True, slots=True)
class ArrangementLine:
    """What EXPLAIN tells of one arrangement. Rows and bytes are those of all workers."""

    name: str
    dataflow: str
    private: bool
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    shared_by: tuple[str, ...]
    rows: int
    nbytes: int


def arrangements_of(db: Database, dataflow: str) -> list[ArrangementLine]:
    """Return the arrangements that the dataflows of a name keep or import.

    A worker may have released one that others still have, because no row can reach it there any more.
    """
    described = db.describe()
    parts: dict[tuple[Any, ...], list[dict[str, Any]]] = {}  # of each arrangement, on the workers that have it
    for worker in described.get("workers", [described]):
        seen = Counter[tuple[Any, ...]]()
        for entry in worker["arrangements"]:
            if dataflow in (entry["dataflow"], *entry["shared_by"]):
                name = entry["name"], entry["dataflow"], entry["private"], tuple(entry["keys"]), tuple(entry["columns"])
                parts.setdefault((*name, seen[name]), []).append(entry)
                seen[name] += 1
    lines = [arrangement_line(entries) for entries in parts.values()]
    lines = [line for line in lines if not line.name.startswith("errors of ")]
    named = {(line.name, line.keys): line for line in reversed(lines) if not line.private}  # the first of each name
    return [line for line in lines if line.private or named[line.name, line.keys] is line]


def arrangement_line(entries: Sequence[dict[str, Any]]) -> ArrangementLine:
    """Return one arrangement, from the descriptions of its parts on the workers."""
    first = entries[0]
    rows, nbytes = (sum(entry[figure] for entry in entries) for figure in ("rows", "bytes"))
    columns, keys, readers = (tuple(first[field]) for field in ("columns", "keys", "shared_by"))
    return ArrangementLine(first["name"], first["dataflow"], first["private"], columns, keys, readers, rows, nbytes)


def describe_dataflow(db: Database, dataflow: str, sizes: bool) -> list[str]:
    """Return the arrangements that a dataflow reads or keeps, a line each."""
    return ["", "Arrangements", *arrangement_lines(db, arrangements_of(db, dataflow), dataflow, sizes)]


def arrangement_lines(db: Database, shown: list[ArrangementLine], dataflow: str, sizes: bool) -> Iterator[str]:
    """Yield a line for each arrangement, in columns."""
    names = [shown_name(index) for index in shown]
    width = max(map(len, names), default=0)
    for name, index in zip(names, shown, strict=True):
        figures = f"; {count(index.rows, 'row')}, {size(index.nbytes)}" if sizes or index.rows else ""
        yield f"  {name:<{width}}  {sharing(db, index, dataflow)}{figures}"
    if not shown:
        yield "  none"


def shown_name(index: ArrangementLine) -> str:
    """Return what is arranged, by which columns, and all columns."""
    name = f"intermediate rows by {', '.join(index.keys) or 'nothing'}" if index.private else index.name
    return f"{name} ({', '.join(column.partition(':')[0] for column in index.columns)})"


def sharing(db: Database, index: ArrangementLine, dataflow: str) -> str:
    """Return whether a dataflow shares an arrangement, and with which others."""
    others = [name for name in dict.fromkeys(index.shared_by) if name != dataflow]
    if index.dataflow == dataflow:
        return f"new, read by {', '.join(others)}" if others else "new"
    known = {*others, *db.inputs, index.name}
    owner = [] if index.dataflow in known else [index.dataflow]
    readers = [*owner, *others]
    return f"shared with {', '.join(readers)}" if readers else "shared: the table's own"
