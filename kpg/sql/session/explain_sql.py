"""EXPLAIN: the algebra of a query after its rewrites, then each arrangement that its plan reads or keeps.

    EXPLAIN SELECT …                    what the plan would be; nothing is computed
    EXPLAIN ANALYZE SELECT …            computes the answer once, and adds rows and bytes
    EXPLAIN MATERIALIZED VIEW v         the plan of an installed view, with rows and bytes
    EXPLAIN VERBOSE …                   adds the operators of the dataflow

    Arrangements
      orders by id (id, who, amount)    shared with totals
      intermediate rows by who (who)    new

A shared arrangement exists already: the query adds nothing to it. A new one is what the query would keep. EXPLAIN
releases everything that it has built. On several workers, each worker describes its own share.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kpg.api.database_description import ArrangementInfo, indexes
from kpg.api.embedded_arrangement import EmbeddedArrangement
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.embedded_output import EmbeddedOutput
from kpg.api.explain_dataflow import count, explain_dataflow, size
from kpg.errors import NotSupported, UndefinedName
from kpg.sql.bind.bind_context import Parameters
from kpg.sql.bind.bind_statements import bind_query
from kpg.sql.catalog.database_catalog import InstalledView
from kpg.sql.lower.lower_query import facts_of, lower_query
from kpg.sql.lower.recursive_rule import rule_of
from kpg.sql.lower.row_estimates import RowEstimates
from kpg.sql.parse.sql_statements import CreateView, ExplainStatement, QueryStatement
from kpg.sql.parse.statement_parser import parse_query
from kpg.sql.relational.relations import BoundRecursion, BoundRelation, Query, without_order
from kpg.sql.relational.show_relations import show_relation
from kpg.sql.rewrites.relation_traversal import nodes_of
from kpg.sql.rewrites.rewrite_query import rewrite_query
from kpg.sql.session import sql_errors
from kpg.sql.session.query_result import QueryResult
from kpg.sql.session.run_query import CatalogSources
from kpg.sql.session.show_settings import texts
from kpg.sql.session.sql_errors import sql_error

if TYPE_CHECKING:
    from kpg.api.contracts import Output
    from kpg.sql.session.sql_session import SqlSession

OPTIONS = ("analyze", "verbose")


def explain(session: SqlSession, statement: ExplainStatement, parameters: Parameters) -> QueryResult:
    """Carry out EXPLAIN."""
    chosen = chosen_options(statement)
    if statement.view is not None:
        lines = explain_view(session, str(statement.view), "verbose" in chosen)
    elif isinstance(statement.statement, (QueryStatement, CreateView)):
        query = bind_query(statement.statement.query, session.catalog, parameters, standing=False)
        lines = [*explain_algebra(session, query), *explain_plan(session, query, chosen)]
    else:
        raise sql_error(
            NotSupported, sql_errors.NOT_SUPPORTED, "EXPLAIN of a statement that writes", hint="Explain its query."
        )
    return texts(["QUERY PLAN"], [(line,) for line in lines])


def chosen_options(statement: ExplainStatement) -> set[str]:
    """Return the options that are on; refuse others than those of kpg."""
    unknown = sorted(statement.options.keys() - set(OPTIONS))
    if unknown:
        what = f"EXPLAIN has no option {unknown[0].upper()}"
        raise sql_error(NotSupported, sql_errors.NOT_SUPPORTED, what, hint="Options: ANALYZE, VERBOSE.")
    return {name for name, value in statement.options.items() if value in ("true", "on", "1")}


def explain_algebra(session: SqlSession, query: Query) -> list[str]:
    """Return the algebra of a query, as its plan is made of it."""
    facts = facts_of(CatalogSources(session.catalog), {})
    relation = rewrite_query(without_order(query), facts).relation
    return [*show_relation(relation).splitlines(), *recursion_lines(session, relation, RowEstimates(facts))]


def recursion_lines(session: SqlSession, relation: BoundRelation, estimates: RowEstimates) -> Iterator[str]:
    """Yield, for each recursion, whether one operator maintains it, and if not, why it is a loop."""
    recursions = [node for node in nodes_of(relation) if isinstance(node, BoundRecursion)]
    if recursions:
        yield from ("", "Recursions")
    for node in recursions:
        names = ", ".join(entry.variable.name for entry in node.definitions)
        rule = rule_of(session.db, node, estimates)
        yield f"  {names}: a loop, because {rule}" if isinstance(rule, str) else f"  {names}: one operator"


def explain_plan(session: SqlSession, query: Query, chosen: set[str]) -> list[str]:
    """Return the arrangements of a query that is installed for a moment. Only ANALYZE computes its rows."""
    analyze = "analyze" in chosen
    output = lower_query(session.db, query, CatalogSources(session.catalog)).output(keep=analyze)
    try:
        rows = output.snapshot().num_rows if analyze else None
        lines = describe_output(session, output, analyze, "verbose" in chosen)
        return lines if rows is None else [*lines, "", f"Answer: {count(rows, 'row')}"]
    finally:
        output.release()


def explain_view(session: SqlSession, name: str, verbose: bool) -> list[str]:
    """Return the algebra and the arrangements of an installed view."""
    view = session.catalog.installed.get(name)
    if view is None:
        what = f"there is no materialized view {name!r}"
        raise sql_error(UndefinedName, sql_errors.UNDEFINED_TABLE, what, hint="SHOW MATERIALIZED VIEWS lists them.")
    query = bind_query(parse_query(view.entry.text, name), session.catalog)
    return [*explain_algebra(session, query), *describe_view(session, view, verbose)]


def describe_view(session: SqlSession, view: InstalledView, verbose: bool) -> list[str]:
    """Return the arrangements of a view."""
    db = session.db
    if not isinstance(db, EmbeddedDatabase) or not isinstance(view.arrangement, EmbeddedArrangement):
        return ["", *view.output.explain().splitlines()]
    return describe_dataflow(db, view.arrangement.installed.dataflow, True, verbose)


def describe_output(session: SqlSession, output: Output, sizes: bool, verbose: bool) -> list[str]:
    """Return the arrangements of an output."""
    db = session.db
    if not isinstance(db, EmbeddedDatabase) or not isinstance(output, EmbeddedOutput):
        return ["", *output.explain().splitlines()]
    return describe_dataflow(db, output.dataflow, sizes, verbose)


def describe_dataflow(db: EmbeddedDatabase, dataflow: Any, sizes: bool, verbose: bool) -> list[str]:
    """Return the arrangements that a dataflow reads or keeps, a line each; with `verbose` also its operators."""
    shown = [index for index in indexes(db, dataflow) if not index.name.startswith("errors of ")]
    lines = ["", "Arrangements", *arrangement_lines(db, shown, dataflow, sizes)]
    return [*lines, "", *explain_dataflow(db, dataflow).splitlines()] if verbose else lines


def arrangement_lines(db: EmbeddedDatabase, shown: list[ArrangementInfo], dataflow: Any, sizes: bool) -> Iterator[str]:
    """Yield a line for each arrangement, in columns."""
    names = [shown_name(index) for index in shown]
    width = max(map(len, names), default=0)
    for name, index in zip(names, shown, strict=True):
        figures = f"; {count(index.rows, 'row')}, {size(index.nbytes)}" if sizes or index.rows else ""
        yield f"  {name:<{width}}  {sharing(db, index, dataflow)}{figures}"
    if not shown:
        yield "  none"


def shown_name(index: ArrangementInfo) -> str:
    """Return what is arranged, by which columns, and all columns."""
    name = f"intermediate rows by {', '.join(index.keys) or 'nothing'}" if index.private else index.name
    return f"{name} ({', '.join(column.partition(':')[0] for column in index.columns)})"


def sharing(db: EmbeddedDatabase, index: ArrangementInfo, dataflow: Any) -> str:
    """Return whether a dataflow shares an arrangement, and with which others."""
    others = [name for name in dict.fromkeys(index.shared_by) if name != dataflow.name]
    if index.dataflow == dataflow.name:
        return f"new, read by {', '.join(others)}" if others else "new"
    known = {*others, *db.inputs, index.name}
    owner = [] if index.dataflow in known else [index.dataflow]
    readers = [*owner, *others]
    return f"shared with {', '.join(readers)}" if readers else "shared: the table's own"
