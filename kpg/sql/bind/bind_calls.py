"""Bind calls of functions and aggregates.

An aggregate belongs to the innermost query whose columns its arguments mention, as in PostgreSQL: that may be a query
around the one where it is written. It is collected there, and its result is a column of that query's groups.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sqlglot import exp

from kpg.errors import ProgramError, UndefinedName
from kpg.sql.bind.aggregate_calls import GroupingCall
from kpg.sql.bind.catalog_calls import catalog_call
from kpg.sql.bind.coercions import coerce, function_call, located, resolved
from kpg.sql.bind.name_scopes import NameScope
from kpg.sql.bind.scalar_binder import ScalarBinder
from kpg.sql.bind.tree_reading import name_of
from kpg.sql.functions.cast_rules import can_cast
from kpg.sql.functions.resolve import is_aggregate, is_table_function, resolve_aggregate
from kpg.sql.functions.sql_sequences import SEQUENCE_FUNCTIONS
from kpg.sql.parse.postgres_tokens import folded
from kpg.sql.parse.spans import Span
from kpg.sql.parse.sql_failures import not_supported, sql_failure
from kpg.sql.parse.type_rules import PLAIN_TYPES
from kpg.sql.relational.references import referenced_columns
from kpg.sql.relational.scalars import AggregateCall, Constant, Scalar, ScalarCall, SortKey
from kpg.sql.sql_types import TIMESTAMP, SqlType

CAST_FUNCTIONS: Final = {**PLAIN_TYPES, "timestamp": TIMESTAMP}
MODIFIERS: Final = {"distinct": "DISTINCT", "order": "ORDER BY", "filter": "FILTER", "within_group": "WITHIN GROUP"}
SESSION_FUNCTIONS: Final = frozenset({"current_time"})
TEMPORAL_FUNCTIONS: Final = frozenset({"mz_now"})  # compared with a column, they make a temporal filter


def sequence_name(text: str) -> str:
    """Return the name that a text means, as nextval reads it: folded unless it is quoted, without `public`."""
    name = text.strip().removeprefix("public.")
    return name[1:-1].replace('""', '"') if name.startswith('"') else folded(name)


class CallBinder(ScalarBinder):
    """Binds calls in one scope."""

    def bind_Anonymous(self, node: exp.Anonymous) -> Scalar:
        """Bind the call of a function by its name."""
        this, arguments, *modifiers = self.context.take(node, "this", "expressions", *MODIFIERS)
        name = name_of(this)
        span = self.context.span(node)
        if is_aggregate(name):
            return self.aggregate(name, node)
        if is_table_function(name):
            hint = f"Write it in FROM: FROM …, {name}(…) AS {name}."
            raise not_supported(f"{name}, a function that returns rows, as a value", span, hint=hint)
        if name in TEMPORAL_FUNCTIONS:
            raise not_supported(f"a temporal filter ({name})", span)
        is_star = any(isinstance(argument, exp.Star) for argument in arguments)
        about_db = None if is_star else catalog_call(name, tuple(map(self.bind, arguments)), self.context, span)
        if about_db is not None:
            return about_db
        if name in SESSION_FUNCTIONS:
            raise not_supported(f"function {name}", span)
        value = self.function(name, () if is_star else tuple(map(self.bind, arguments)), span)
        words = [word for modifier, word in zip(modifiers, MODIFIERS.values(), strict=True) if modifier]
        if words or is_star:
            what = f"{words[0] if words else f'{name}(*)'} specified, but {name} is not an aggregate function"
            raise sql_failure(ProgramError, what, span, "42809")
        return self.with_sequence(value) if name in SEQUENCE_FUNCTIONS and arguments else value

    def with_sequence(self, call: Scalar) -> Scalar:
        """Return a call of nextval or the like with the name of its sequence, which must be a constant."""
        assert isinstance(call, ScalarCall)
        text, *others = call.arguments
        if not isinstance(text, Constant) or not isinstance(text.value, str):
            raise not_supported("the name of a sequence that is not a constant", call.span)
        name = sequence_name(text.value)
        if self.context.catalog.sequence(name) is None:
            what = f'relation "{name}" does not exist'
            hint = "CREATE SEQUENCE creates a sequence."
            raise sql_failure(UndefinedName, what, text.span or call.span, "42P01", hint=hint)
        return replace(call, arguments=(replace(text, value=name), *others))

    def function(self, name: str, arguments: tuple[Scalar, ...], span: Span | None) -> Scalar:
        """Bind a scalar function; the name of a type is a cast, if there is no such function."""
        try:
            call = function_call(name, arguments, span)
        except UndefinedName:
            if name not in CAST_FUNCTIONS or len(arguments) != 1:
                raise
            target: SqlType = CAST_FUNCTIONS[name]
            if not can_cast(arguments[0].type, target, "explicit"):
                raise
            return coerce(arguments[0], target, "explicit", span)
        if self.context.standing and isinstance(call, ScalarCall) and (call.function.volatile or call.function.stable):
            hint = "Its value changes by itself. Store it with INSERT, or pass it as a parameter."
            raise not_supported(f"function {name}() in a view", span, hint=hint)
        return call

    # --- aggregates

    def aggregate(self, name: str, node: exp.Anonymous) -> Scalar:
        """Bind the call of an aggregate, and collect it in the query that it belongs to."""
        span = self.context.span(node)
        if self.scope.in_aggregate:
            raise sql_failure(ProgramError, "aggregate function calls cannot be nested", span, "42803")
        self.scope.in_aggregate = True
        try:
            call = self.aggregate_call(name, node, span)
        finally:
            self.scope.in_aggregate = False
        owner = self.level_of(call)
        if owner.collector is None or owner.in_aggregate:
            what = f"aggregate functions are not allowed in {owner.clause}"
            raise sql_failure(ProgramError, what, span, "42803")
        return owner.collector.add(call)

    def aggregate_call(self, name: str, node: exp.Anonymous, span: Span | None) -> AggregateCall:
        """Bind the arguments of an aggregate and choose its overload."""
        _, items, distinct, order, condition, within = self.context.take(node, "this", "expressions", *MODIFIERS)
        is_star = any(isinstance(item, exp.Star) for item in items)
        if not items and not within or (is_star and name != "count"):
            what = f"{name}(*) must be used to call a parameterless aggregate function"
            raise sql_failure(ProgramError, what, span, "42809" if name == "count" else "42883")
        arguments = [] if is_star else [self.bind(item) for item in items]
        keys = self.sort_keys(within or order) if within or order else ()
        if within:
            arguments += [key.value for key in keys]
        with located(span):
            resolution = resolve_aggregate(name, [argument.type for argument in arguments])
        function = resolution.function
        self.check_modifiers(name, function.ordered, bool(within), bool(distinct), span)
        cast = tuple(coerce(a, type_) for a, type_ in zip(arguments, resolution.argument_types, strict=True))
        if within:
            keys = (replace(keys[0], value=cast[-1]),)
        allowed = [resolved(argument) for argument in (*arguments, *cast)]
        if distinct and order and not all(key.value in allowed for key in keys):
            what = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list"
            raise sql_failure(ProgramError, what, span, "42P10")
        chosen = None if condition is None else self.condition(condition, "FILTER")
        result = function.result_type([argument.type for argument in cast])
        return AggregateCall(function, cast, result, bool(distinct), chosen, keys, span)

    def check_modifiers(self, name: str, ordered: bool, within: bool, distinct: bool, span: Span | None) -> None:
        """Refuse WITHIN GROUP where an aggregate has none, and the lack of it where it has one."""
        if ordered and not within:
            what = f"WITHIN GROUP is required for ordered-set aggregate {name}"
            raise sql_failure(ProgramError, what, span, "42809")
        if within and not ordered:
            what = f"{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
            raise sql_failure(ProgramError, what, span, "42809")
        if within and distinct:
            raise sql_failure(ProgramError, "cannot use DISTINCT with WITHIN GROUP", span, "42601")

    def sort_keys(self, node: exp.Expr) -> tuple[SortKey, ...]:
        """Bind the keys of ORDER BY within a call, where a number is a constant and no position."""
        (items,) = self.context.take(node, "expressions")
        keys = []
        for item in items:
            this, descending, nulls_first = self.context.take(item, "this", "desc", "nulls_first")
            keys.append(SortKey(resolved(self.bind(this)), bool(descending), bool(nulls_first)))
        return tuple(keys)

    def level_of(self, call: AggregateCall) -> NameScope:
        """Return the query that an aggregate belongs to: the innermost one whose columns it mentions."""
        scalars = [*call.arguments, *(key.value for key in call.order)]
        if call.filter is not None:
            scalars.append(call.filter)
        columns = {column for scalar in scalars for column in referenced_columns(scalar)}
        for scope in self.scope.chain():
            if columns & scope.owned:
                return scope
        return self.scope

    def bind_Grouping(self, node: exp.Grouping) -> Scalar:
        """Bind GROUPING(…), whose arguments are keys of the groups."""
        (arguments,) = self.context.take(node, "expressions")
        span = self.context.span(node)
        if self.scope.collector is None or self.scope.in_aggregate:
            what = f"grouping operations are not allowed in {self.scope.clause}"
            raise sql_failure(ProgramError, what, span, "42803")
        if len(arguments) > 31:
            raise sql_failure(ProgramError, "GROUPING must have fewer than 32 arguments", span, "54023")
        return self.scope.collector.add_grouping(GroupingCall(tuple(map(self.bind, arguments)), span))
