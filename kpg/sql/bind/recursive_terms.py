"""The form of a recursive query: where its term may mention it. PostgreSQL's rules, with its messages (42P19).

The recursive term mentions the query once: in FROM, not on the side of an outer join that may be null, not in a
subquery of an expression, not below EXCEPT or INTERSECT, and without aggregates in the same SELECT.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from kpg.errors import ProgramError
from kpg.sql.bind.bind_context import BindContext
from kpg.sql.bind.tree_reading import find_nodes, name_of
from kpg.sql.functions.resolve import is_aggregate
from kpg.sql.parse.sql_failures import sql_failure


def mentioned_tables(node: exp.Expr) -> set[str]:
    """Return the names of all tables that a query mentions, at any depth."""
    return {name_of(table.this) for table in find_nodes(node, exp.Table) if isinstance(table.this, exp.Identifier)}


def mentions_table(node: exp.Expr | None, name: str) -> bool:
    """Return whether a query mentions a table."""
    return node is not None and name in mentioned_tables(node)


def check_recursive_term(name: str, base: exp.Expr, step: exp.Expr, context: BindContext) -> None:
    """Refuse a recursive query of another form."""
    if mentions_table(base, name):
        refuse(name, "within its non-recursive term", base, context)
    TermChecker(name, context).query(step)


def refuse(name: str, where: str, node: exp.Expr, context: BindContext) -> None:
    """Raise the error of a reference in a wrong place."""
    what = f'recursive reference to query "{name}" must not appear {where}'
    raise sql_failure(ProgramError, what, context.span(node), "42P19")


class TermChecker:
    """Checks the recursive term of one query."""

    def __init__(self, name: str, context: BindContext) -> None:
        self.name = name
        self.context = context

    def query(self, node: exp.Expr) -> None:
        """Check a query of the term."""
        if not mentions_table(node, self.name):
            return
        if isinstance(node, exp.Except) and mentions_table(node.args["expression"], self.name):
            refuse(self.name, "within EXCEPT", node, self.context)
        if isinstance(node, exp.Intersect) and node.args.get("distinct") is False:
            refuse(self.name, "within INTERSECT", node, self.context)
        if isinstance(node, exp.SetOperation):
            self.query(node.this)
            self.query(node.args["expression"])
        elif isinstance(node, exp.Subquery):
            self.query(node.this)
        elif isinstance(node, exp.Select):
            self.select(node)

    def select(self, node: exp.Expr) -> None:
        """Check a SELECT: expressions do not mention the query, and items of FROM do so in allowed places."""
        source = node.args.get("from_")
        joins = node.args.get("joins") or []
        in_from = [] if source is None else [source.this, *(join.this for join in joins)]
        for part in expressions_of(node):
            if mentions_table(part, self.name):
                refuse(self.name, "within a subquery", part, self.context)
        if any(mentions_directly(item, self.name) for item in in_from):
            self.refuse_aggregates(node)
        if source is not None:
            self.join_tree(source.this, joins)

    def join_tree(self, first: exp.Expr, joins: list[exp.Expr]) -> None:
        """Check an item of FROM and the joins that follow it."""
        mentioned = mentions_table(first, self.name)
        self.item(first)
        for join in joins:
            kind = str(join.args.get("kind") or "")
            if kind in ("RIGHT", "FULL") and mentioned:
                refuse(self.name, "within an outer join", join, self.context)
            if kind in ("LEFT", "FULL") and mentions_table(join.this, self.name):
                refuse(self.name, "within an outer join", join, self.context)
            if mentions_table(join.args.get("on"), self.name):
                refuse(self.name, "within a subquery", join, self.context)
            self.item(join.this)
            comma = not any(join.args.get(key) for key in ("kind", "on", "using", "method"))
            mentioned = mentions_table(join.this, self.name) or (mentioned and not comma)

    def item(self, node: exp.Expr) -> None:
        """Check one item of FROM."""
        if isinstance(node, exp.Lateral):
            node = node.this
        if isinstance(node, exp.Subquery):
            self.query(node.this)
        elif isinstance(node, exp.Paren):
            self.join_tree(node.this, node.args.get("joins") or [])

    def refuse_aggregates(self, node: exp.Expr) -> None:
        """Refuse aggregates in a SELECT that reads the recursive query."""
        for part in expressions_of(node):
            for call in calls_outside_subqueries(part):
                if is_aggregate(name_of(call.this)):
                    what = "aggregate functions are not allowed in a recursive query's recursive term"
                    raise sql_failure(ProgramError, what, self.context.span(call), "42P19")


def expressions_of(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the expressions of a SELECT outside FROM."""
    yield from node.args.get("expressions") or []
    for key in ("where", "group", "having", "order", "limit", "offset", "distinct"):
        part = node.args.get(key)
        if part is not None:
            yield part


def mentions_directly(item: exp.Expr, name: str) -> bool:
    """Return whether an item of FROM is a table, or a join with it, and not a subquery that mentions it."""
    if isinstance(item, exp.Table):
        return isinstance(item.this, exp.Identifier) and name_of(item.this) == name
    if isinstance(item, exp.Paren):
        joins = item.args.get("joins") or []
        return any(mentions_directly(part, name) for part in (item.this, *(join.this for join in joins)))
    return False


def calls_outside_subqueries(node: exp.Expr) -> Iterator[exp.Anonymous]:
    """Yield the function calls of an expression that are not inside a subquery."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, exp.Subquery):
            continue
        if isinstance(current, exp.Anonymous):
            yield current
        stack.extend(current.iter_expressions())
