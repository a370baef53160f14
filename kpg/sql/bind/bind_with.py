"""Bind WITH: common tables are bound once, recursive ones become a fixed point.

WITH RECURSIVE r AS (base UNION [ALL] step)     one recursive definition; other forms are refused (42P19)
WITH MUTUALLY RECURSIVE a (…) AS …, b (…) AS …  all definitions see each other; their column types are declared
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from sqlglot import exp

from kpg.errors import NotSupported, ProgramError, TypeMismatch
from kpg.sql.bind.bind_context import BindContext, BoundSelect
from kpg.sql.bind.coercions import located
from kpg.sql.bind.common_tables import CommonTable, CommonTables
from kpg.sql.bind.name_scopes import NameScope
from kpg.sql.bind.recursive_terms import check_recursive_term, mentioned_tables
from kpg.sql.bind.tree_reading import name_of
from kpg.sql.bind.typed_outputs import typed, with_types
from kpg.sql.functions.cast_rules import common_type
from kpg.sql.parse.sql_failures import sql_failure
from kpg.sql.relational.relations import BoundRecursion, BoundRelation, Definition, RecursiveVariable, VariableScan
from kpg.sql.relational.scalars import Column
from kpg.sql.sql_types import MAX_NUMERIC_DIGITS, SqlType, numeric

RECURSIVE_SCALE: Final = 16  # the least scale of a numeric whose scale would grow from round to round


class WithBinder:
    """Binds the definitions of one WITH."""

    def __init__(self, outer: NameScope, ctes: CommonTables, context: BindContext) -> None:
        self.outer = outer
        self.ctes = CommonTables(ctes)
        self.context = context

    def around(self, node: exp.Expr, body: Callable[[CommonTables], BoundSelect]) -> BoundSelect:
        """Bind the definitions, then the body that reads them."""
        definitions, recursive, mutual, limit, error_at_limit = self.context.take(
            node, "expressions", "recursive", "mutual", "limit", "error_at_limit"
        )
        self.refuse_duplicates(definitions)
        if mutual:
            return self.mutual(definitions, limit, error_at_limit, body)
        for definition in in_dependency_order(definitions, self.context) if recursive else definitions:
            self.define(definition, bool(recursive))
        return body(self.ctes)

    def refuse_duplicates(self, definitions: list[exp.Expr]) -> None:
        """Refuse two definitions of one name."""
        seen = set()
        for definition in definitions:
            name = name_of(definition.args["alias"].this)
            if name in seen:
                what = f'WITH query name "{name}" specified more than once'
                raise sql_failure(ProgramError, what, self.context.span(definition), "42712")
            seen.add(name)

    def bind(self, node: exp.Expr, ctes: CommonTables) -> BoundSelect:
        """Bind the query of a definition."""
        scope = NameScope(self.outer, ctes, clause="WITH", lateral=True)
        return self.context.bind_query(node, scope, self.context)

    # --- WITH and WITH RECURSIVE

    def define(self, node: exp.Expr, recursive: bool) -> None:
        """Bind one definition."""
        this, alias = self.context.take(node, "this", "alias")
        identifier, columns = self.context.take(alias, "this", "columns")
        name = name_of(identifier)
        labels = tuple(name_of(column) for column in columns or ())
        if recursive and name in mentioned_tables(this):
            self.ctes.tables[name] = self.recursion(name, labels, this, node)
            return
        query = typed(self.bind(this, self.ctes))
        self.ctes.tables[name] = CommonTable(self.labelled(query, labels, name, node), query.rows())

    def labelled(self, query: BoundSelect, labels: tuple[str, ...], name: str, node: exp.Expr) -> tuple[str, ...]:
        """Return the names of a definition's columns."""
        if len(labels) > len(query.names):
            what = f'WITH query "{name}" has {len(query.names)} columns available but {len(labels)} columns specified'
            raise sql_failure(ProgramError, what, self.context.span(node), "42P10")
        return (*labels, *query.names[len(labels) :])

    def recursion(self, name: str, labels: tuple[str, ...], node: exp.Expr, definition: exp.Expr) -> CommonTable:
        """Bind a recursive definition: a base, and a step that mentions the definition once."""
        span = self.context.span(definition)
        while isinstance(node, exp.Subquery):
            node = node.this
        if not isinstance(node, exp.Union):
            what = f'recursive query "{name}" does not have the form non-recursive-term UNION [ALL] recursive-term'
            raise sql_failure(ProgramError, what, span, "42P19")
        for clause, word in (("order", "ORDER BY"), ("offset", "OFFSET"), ("limit", "LIMIT")):
            if node.args.get(clause):
                what = f"{word} in a recursive query is not implemented"
                raise sql_failure(NotSupported, what, self.context.span(node.args[clause]), "0A000")
        base_node, step_node, distinct = self.context.take(node, "this", "expression", "distinct")
        check_recursive_term(name, base_node, step_node, self.context)
        base = typed(self.bind(base_node, self.ctes))
        names = self.labelled(base, labels, name, definition)
        types = [column.type for column in base.columns]
        step, variable = self.step(name, names, types, step_node)
        widened = self.recursive_types(name, types, step, definition)
        if widened != types:  # digits or lengths differ: bind the step again with those that hold for all rounds
            types = widened
            step, variable = self.step(name, names, types, step_node)
        base_rows = with_types(base, types, "assignment").rows()
        step_rows = with_types(step, types, "assignment").rows()
        rule = Definition(variable, "union" if distinct else "sum", base_rows, step_rows)
        scan = VariableScan(tuple(Column(column.name, column.type) for column in variable.columns), variable)
        return CommonTable(names, BoundRecursion(scan.columns, (rule,), scan))

    def step(
        self, name: str, names: tuple[str, ...], types: list[SqlType], node: exp.Expr
    ) -> tuple[BoundSelect, RecursiveVariable]:
        """Bind the recursive term for given types of the variable."""
        variable = RecursiveVariable(name, tuple(Column(n, type_) for n, type_ in zip(names, types, strict=True)))
        ctes = CommonTables(self.ctes, {name: CommonTable(names, variable=variable, linear=True)})
        query = self.bind(node, ctes)
        if len(query.names) != len(names):
            what = "each UNION query must have the same number of columns"
            raise sql_failure(ProgramError, what, self.context.span(node), "42601")
        return query, variable

    def recursive_types(self, name: str, types: list[SqlType], step: BoundSelect, node: exp.Expr) -> list[SqlType]:
        """Return the types of all rounds: those of the base, up to digits and lengths."""
        widened = []
        for number, (base, column) in enumerate(zip(types, step.columns, strict=True), 1):
            with located(self.context.span(node)):
                common = common_type([base, column.type], "UNION")
            if not common.same_family(base):
                what = (
                    f'recursive query "{name}" column {number} has type {base} in non-recursive term '
                    f"but type {common} overall"
                )
                hint = "Cast the output of the non-recursive term to the correct type."
                raise sql_failure(TypeMismatch, what, self.context.span(node), "42804", hint=hint)
            widened.append(base if common == base else any_round(common))
        return widened

    # --- WITH MUTUALLY RECURSIVE

    def mutual(
        self, nodes: list[exp.Expr], limit: int | None, error: bool | None, body: Callable[[CommonTables], BoundSelect]
    ) -> BoundSelect:
        """Bind mutually recursive definitions, and a body at their fixed point."""
        variables = [self.declared(node) for node in nodes]
        for variable in variables:
            names = tuple(column.name for column in variable.columns)
            self.ctes.tables[variable.name] = CommonTable(names, variable=variable)
        definitions = []
        for node, variable in zip(nodes, variables, strict=True):
            query = self.bind(node.this, self.ctes)
            definitions.append(Definition(variable, "replace", None, self.as_declared(query, variable, node)))
        result = typed(body(self.ctes))
        columns = result.relation.columns
        at_limit = True if error is None else bool(error)
        relation = BoundRecursion(columns, tuple(definitions), result.relation, limit, at_limit)
        return replace(result, relation=relation)

    def declared(self, node: exp.Expr) -> RecursiveVariable:
        """Return the variable of a definition, with its declared columns."""
        _, alias = self.context.take(node, "this", "alias")
        identifier, columns = self.context.take(alias, "this", "columns")
        declared_columns = []
        for column in columns:
            this, kind = self.context.take(column, "this", "kind")
            declared_columns.append(Column(name_of(this), kind.args["this"]))
        return RecursiveVariable(name_of(identifier), tuple(declared_columns))

    def as_declared(self, query: BoundSelect, variable: RecursiveVariable, node: exp.Expr) -> BoundRelation:
        """Return the rows of a definition in its declared types."""
        span = self.context.span(node)
        if len(query.names) != len(variable.columns):
            what = f'"{variable.name}" declares {len(variable.columns)} columns, its query has {len(query.names)}'
            raise sql_failure(ProgramError, what, span, "42601")
        with located(span):
            return with_types(query, [column.type for column in variable.columns], "assignment").rows()


def any_round(type_: SqlType) -> SqlType:
    """Return a type that rows of all rounds have: without a length, and with a scale that does not grow."""
    if type_.name == "numeric":
        return numeric(MAX_NUMERIC_DIGITS, max(type_.scale or 0, RECURSIVE_SCALE))
    return type_.without_modifiers()


def in_dependency_order(nodes: list[exp.Expr], context: BindContext) -> list[exp.Expr]:
    """Return the definitions of WITH RECURSIVE such that each follows those it mentions; refuse cycles of several."""
    names = {name_of(node.args["alias"].this): node for node in nodes}
    ordered: list[exp.Expr] = []
    open_names: list[str] = []

    def visit(name: str) -> None:
        if names[name] in ordered:
            return
        if name in open_names:
            what = "mutual recursion between WITH items is not implemented"
            hint = "Write WITH MUTUALLY RECURSIVE, with the types of the columns."
            raise sql_failure(NotSupported, what, context.span(names[name]), "0A000", hint=hint)
        open_names.append(name)
        for other in mentioned_tables(names[name].this):
            if other in names and other != name:
                visit(other)
        open_names.pop()
        ordered.append(names[name])

    for name in names:
        visit(name)
    return ordered
