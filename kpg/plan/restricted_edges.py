"""Read a step of a recursion as one join of its result with edges: conditions on rows from outside move to the edges.

    result.join(f).filter(c).antijoin(b).semijoin(e)   =   result.join(edges)
    edges   =   f.filter(c).antijoin(b).semijoin(e)

Joins, filters and differences are linear, so each row keeps its count if the conditions read only columns from outside.
A column of the result counts as one if a join equates it with one. The edges are plan nodes outside the loop, and have
at most the rows of one collection: a join of two that both have columns of their own is none of these steps, because it
may have very many more pairs than the loop reaches.

Errors stay those of the loop. A condition that can fail does not move, since it would also fail on edges that the loop
never reaches. After a computed value, which can fail, no condition moves: it would drop the rows that fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kpg.columns.bind import bind_condition
from kpg.columns.expression import ColumnReference, Expression, Literal, columns_in, with_columns, wrap
from kpg.columns.schema import Schema, Type
from kpg.columns.symbols import Symbols
from kpg.plan import nodes
from kpg.plan.renamed_nodes import column_names, unnamed
from kpg.plan.rule_products import Difference, difference_of

OWN = "result "  # prefix of the terms of the result's columns
NO_JOIN = "a part of its body is no selection of a join"
NOT_OUTSIDE = "a join of its body is not one of its result with rows from outside"


class NotLeastValuesError(Exception):
    """A loop is none of least values; the message says why."""


@dataclass(frozen=True, slots=True)
class OutsideRows:
    """A collection from outside, and the term of each of its columns. Columns with the same term are equal."""

    node: nodes.PlanNode
    terms: dict[str, str]

    def columns(self) -> dict[str, str]:
        """Return the column of each term."""
        return {term: name for name, term in self.terms.items()}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on terms. With `silent`, rows that fail are dropped without an error."""

    expression: Expression
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Exclusion:
    """The rows that pass some conditions and match a collection are dropped. `on` has its columns, each with a term."""

    node: nodes.PlanNode
    on: dict[str, str]
    conditions: tuple[Condition, ...]


@dataclass(slots=True)
class StepReader:
    """Reads the nodes of a step, from the result of the loop to the step."""

    result: nodes.PlanNode
    symbols: Symbols
    columns: dict[str, Expression] = field(init=False)  # of the last node, as expressions of terms
    types: dict[str, Type] = field(init=False)  # of all terms
    joins: list[OutsideRows] = field(default_factory=list)
    restrictions: list[Condition | Exclusion] = field(default_factory=list)

    def __post_init__(self) -> None:
        schema = self.result.schema
        self.columns = {name: ColumnReference(OWN + name) for name in schema.names}
        self.types = {OWN + name: type_ for name, type_ in zip(schema.names, schema.types, strict=True)}

    # Reading

    def read(self, node: nodes.PlanNode) -> None:
        """Read a node whose input was read before."""
        if isinstance(node, nodes.SelectNode):
            self.columns = self._selected(node)
        elif isinstance(node, nodes.FilterNode):
            self.restrictions.append(self._condition(node))
        elif isinstance(node, nodes.JoinNode):
            self._join(node)
        elif isinstance(node, nodes.ConcatNode) and (difference := difference_of(node)) is not None:
            self._subtract(difference)

    def _selected(self, node: nodes.SelectNode) -> dict[str, Expression]:
        if self._is_computed():
            names = column_names(node)
            if names is None or set(names.values()) != set(self.columns):
                raise NotLeastValuesError(NO_JOIN)
        pairs = zip(node.schema.names, node.expressions, strict=True)
        return {name: with_columns(expression, self.columns) for name, expression in pairs}

    def _condition(self, node: nodes.FilterNode) -> Condition:
        self._check_not_computed()
        return Condition(with_columns(wrap(node.condition), self.columns), node.silent)

    def _join(self, node: nodes.JoinNode) -> None:
        self._check_not_computed()
        side = own_side(node)
        other = (node.right, node.left)[side]
        on = self._terms([(pair[side], pair[1 - side]) for pair in node.on])
        number = len(self.joins) + 1
        rows = OutsideRows(other, {name: on.get(name, f"{number} {name}") for name in other.schema.names})
        if len(rows.columns()) < len(rows.terms) or len(on) < len(node.on):
            raise NotLeastValuesError("a join of its body is by one column twice")
        self.joins.append(rows)
        self.types = {term: other.schema.type_of(name) for name, term in rows.terms.items()} | self.types
        pairs = zip(node.schema.names, node.columns, strict=True)
        self.columns = {
            name: self.columns[of] if at == side else ColumnReference(rows.terms[of]) for name, (at, of) in pairs
        }

    def _subtract(self, difference: Difference) -> None:
        self._check_not_computed()
        conditions = tuple(self._condition(condition) for condition in difference.conditions)
        self.restrictions.append(Exclusion(difference.right, self._terms(difference.on), conditions))

    def _terms(self, on: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Return the term of each column of another collection; `on` pairs a column of the last node with each."""
        terms = {}
        for ours, theirs in on:
            column = unnamed(self.columns[ours])
            if not isinstance(column, ColumnReference):
                raise NotLeastValuesError(f"a join of its body is by {ours}, which is a constant")
            terms[theirs] = column.name
        return terms

    def _is_computed(self) -> bool:
        return not all(isinstance(unnamed(value), (ColumnReference, Literal)) for value in self.columns.values())

    def _check_not_computed(self) -> None:
        if self._is_computed():
            raise NotLeastValuesError("a condition of its body follows a computed value")

    # Building

    def is_plain(self) -> bool:
        """Return whether the step is one join without restrictions."""
        return len(self.joins) == 1 and not self.restrictions

    def join(self) -> nodes.JoinNode:
        """Return the join of the result with the edges; its columns are terms."""
        edges = self._edges()
        columns = edges.columns()
        own = {OWN + name: (0, name) for name in self.result.schema.names}
        places = {term: (1, name) for term, name in columns.items()} | own
        on = tuple((of, columns[term]) for term, (_, of) in own.items() if term in columns)
        schema = Schema(tuple(places), tuple(self.types[term] for term in places))
        return nodes.JoinNode(schema, self.result.loops, self.result, edges.node, on, tuple(places.values()))

    def _edges(self) -> OutsideRows:
        """Return all collections from outside joined with each other, and restricted."""
        left = list(self.restrictions)
        first, *waiting = [self._restricted(rows, left) for rows in self.joins]
        edges = first
        while waiting:
            further = next((rows for rows in waiting if edges.columns().keys() & rows.columns().keys()), None)
            if further is None:
                raise NotLeastValuesError("two joins of its body have no column in common")
            waiting.remove(further)
            edges = self._restricted(self._joined(edges, further, left), left)
        if left:
            raise NotLeastValuesError(f"a condition of its body reads {unknown_term(left[0], edges.columns())}")
        return edges

    def _joined(self, one: OutsideRows, other: OutsideRows, left: list[Condition | Exclusion]) -> OutsideRows:
        """Return the rows of one collection with a match in the other, which has no further columns that are read."""
        read = self._read_terms(left)
        edges, matches = (picked(one, read), picked(other, read))
        if not matches.columns().keys() <= edges.columns().keys():
            edges, matches = matches, edges
        ours, theirs = edges.columns(), matches.columns()
        if not theirs.keys() <= ours.keys():  # all pairs may be very many more than those that the loop reaches
            raise NotLeastValuesError("two collections from outside have columns of their own")
        on = tuple((ours[term], theirs[term]) for term in theirs)
        places = tuple((0, name) for name in edges.terms)
        join = nodes.JoinNode(edges.node.schema, frozenset(), edges.node, matches.node, on, places)
        return OutsideRows(join, edges.terms)

    def _read_terms(self, left: list[Condition | Exclusion]) -> set[str]:
        """Return the terms of the step's columns, of conditions that are left, and of joins."""
        read = {term for value in self.columns.values() for term in columns_in(value)}
        read |= {term for restriction in left for term in terms_of(restriction)}
        joined = [term for rows in self.joins for term in rows.columns()]
        return read | {term for term in joined if term.startswith(OWN) or joined.count(term) > 1}

    def _restricted(self, rows: OutsideRows, left: list[Condition | Exclusion]) -> OutsideRows:
        """Return the rows that pass all restrictions on their columns; remove these from the ones that are left."""
        columns = rows.columns()
        for restriction in [restriction for restriction in left if terms_of(restriction) <= columns.keys()]:
            left.remove(restriction)
            if isinstance(restriction, Condition):
                rows = self._passing(rows, restriction)
            else:
                rows = self._without(rows, restriction)
        return rows

    def _passing(self, rows: OutsideRows, condition: Condition) -> OutsideRows:
        columns, schema = rows.columns(), rows.node.schema
        if any(schema.type_of(columns[term]) != self.types[term] for term in columns_in(condition.expression)):
            raise NotLeastValuesError("a condition of its body reads columns of two types")
        expression = with_columns(condition.expression, references(columns))
        if not condition.silent and bind_condition(expression, schema, self.symbols).fallible:
            raise NotLeastValuesError("a condition of its body can fail")
        return OutsideRows(nodes.FilterNode(schema, frozenset(), rows.node, expression, condition.silent), rows.terms)

    def _without(self, rows: OutsideRows, exclusion: Exclusion) -> OutsideRows:
        columns, schema, inner = rows.columns(), rows.node.schema, rows
        for condition in exclusion.conditions:
            inner = self._passing(inner, condition)
        on = tuple((columns[term], name) for name, term in exclusion.on.items())
        places = tuple((0, name) for name in schema.names)
        matches = nodes.JoinNode(schema, frozenset(), inner.node, exclusion.node, on, places)
        dropped = nodes.NegateNode(schema, frozenset(), matches)
        return OutsideRows(nodes.ConcatNode(schema, frozenset(), (rows.node, dropped)), rows.terms)


def read_step(
    part: nodes.PlanNode, loop: nodes.Loop, is_result: Callable[[nodes.PlanNode], bool], symbols: Symbols
) -> StepReader:
    """Return a reader that has read a step of a loop. Raise NotLeastValuesError if the step has no such form."""
    path: list[nodes.PlanNode] = []
    node = part
    while not is_result(node):
        path.append(node)
        node = recursive_input(node, loop, any(isinstance(passed, nodes.JoinNode) for passed in path))
    reader = StepReader(node, symbols)
    for node in reversed(path):
        reader.read(node)
    if not reader.joins:
        raise NotLeastValuesError(NO_JOIN)
    return reader


def recursive_input(node: nodes.PlanNode, loop: nodes.Loop, is_joined: bool) -> nodes.PlanNode:
    """Return the input of a node of a step that depends on the loop."""
    match node:
        case nodes.ArrangeNode() | nodes.FilterNode() | nodes.SelectNode(silent=False):
            return node.input
        case nodes.JoinNode() if not (node.left.loops and node.right.loops):
            return (node.left, node.right)[own_side(node)]
        case nodes.ConcatNode() if (difference := difference_of(node)) is not None:
            if loop not in difference.right.loops:
                return difference.left
    raise NotLeastValuesError(NOT_OUTSIDE if is_joined else NO_JOIN)


def own_side(node: nodes.JoinNode) -> int:
    """Return the side of a join in a loop that depends on the loop."""
    return 0 if node.left.loops else 1


def terms_of(restriction: Condition | Exclusion) -> set[str]:
    """Return the terms that a restriction reads."""
    if isinstance(restriction, Condition):
        return set(columns_in(restriction.expression))
    return set(restriction.on.values()).union(*map(terms_of, restriction.conditions))


def unknown_term(restriction: Condition | Exclusion, known: Mapping[str, str]) -> str:
    """Return a column of the result that a restriction reads and no join equates with one from outside."""
    return min(term for term in terms_of(restriction) if term not in known).removeprefix(OWN)


def picked(rows: OutsideRows, read: set[str]) -> OutsideRows:
    """Return rows without the columns that nothing reads."""
    terms = {name: term for name, term in rows.terms.items() if term in read}
    if len(terms) == len(rows.terms):
        return rows
    schema = rows.node.schema.select(terms)
    columns = tuple(map(ColumnReference, terms))
    return OutsideRows(nodes.SelectNode(schema, frozenset(), rows.node, columns), terms)


def references(columns: Mapping[str, str]) -> dict[str, Expression]:
    """Return each column as an expression."""
    return {name: ColumnReference(of) for name, of in columns.items()}
