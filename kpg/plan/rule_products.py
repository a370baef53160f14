"""Read the body of a loop over sets as rules: each set of the loop as a union of products of other collections.

    reach.set(edges.join(reach, on={"src": "node"}).select(node="dst").concat(reach).distinct())
    reach(z)  <-  edges(y, z), reach(y)

A *set* is a `distinct` inside the loop. Its rows follow from those of its input, which `RuleReader` expands through
unions, selections of columns, comparisons, joins and variables, down to collections from outside the loop and to other
sets. Counts do not matter below a `distinct` while none is negative, so a `distinct` directly below another one is
expanded, too, unless it is recursive by itself. A variable stands for its definition: it has the same fixed point if
its source is part of the definition, or if the definition keeps the rows of the round before. Antijoins with
collections from outside are negations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeGuard

from kpg.columns.expression import ColumnReference
from kpg.columns.lane_values import NULL
from kpg.columns.schema import INT64
from kpg.plan import nodes
from kpg.plan.lane_tests import ConstantLanes, LaneTest, lane_tests, widened_column
from kpg.plan.node_traversal import dependencies_of_node
from kpg.plan.renamed_nodes import renamed, unnamed
from kpg.seminaive.recursion_rules import Term

MAX_PRODUCTS = 64  # of one set; the rules of a body that shares much of itself grow exponentially
MAX_NODES = 500  # of a body; each is read by a recursive call


class NotRulesError(Exception):
    """The body of a loop is none of rules; the message says why."""


@dataclass(frozen=True, slots=True)
class ProductAtom:
    """Rows of a set or of a collection from outside, with a term for each column of one lane."""

    node: nodes.PlanNode
    terms: dict[str, Term]


@dataclass(frozen=True, slots=True)
class Product:
    """A join of atoms, with comparisons and negated atoms. A column has a term, or None if it has several lanes."""

    atoms: tuple[ProductAtom, ...]
    columns: dict[str, Term | None]
    tests: tuple[tuple[str, Term, Term], ...] = ()
    negations: tuple[ProductAtom, ...] = ()

    def replaced(self, old: str, new: Term) -> Product:
        """Return the product with a variable replaced by another term."""
        atoms, negations = (
            tuple(ProductAtom(atom.node, {c: new if t == old else t for c, t in atom.terms.items()}) for atom in some)
            for some in (self.atoms, self.negations)
        )
        tests = tuple((op, new if a == old else a, new if b == old else b) for op, a, b in self.tests)
        columns = {name: new if term == old else term for name, term in self.columns.items()}
        return Product(atoms, columns, tests, negations)


class RuleReader:
    """Reads the sets of one loop."""

    def __init__(self, loop: nodes.Loop, constants: ConstantLanes) -> None:
        self.loop = loop
        self.constants = constants
        self.sets: dict[nodes.ReduceNode, list[Product]] = {}
        self._kept: dict[nodes.PlanNode, list[nodes.PlanNode]] = {}  # sources of variables that a set keeps
        self.widened: dict[nodes.PlanNode, set[str]] = {}  # columns from outside that must not hold null's number
        self._open: set[nodes.PlanNode] = set()  # variables that are being expanded
        self._numbers = count()
        for variable in loop.definitions:
            self._check_source(variable)

    def read(self, results: list[nodes.ReduceNode]) -> dict[nodes.ReduceNode, list[Product]]:
        """Return the products of the results and of all sets that they need."""
        waiting = list(results)
        self.sets = {node: [] for node in waiting}
        for node in waiting:
            known = len(self.sets)
            self.sets[node] = [product for product in self._rows_of(node, node) if not is_itself(product, node)]
            waiting += list(self.sets)[known:]
        return self.sets

    # Variables

    def _check_source(self, variable: nodes.VariableNode) -> None:
        """Check that a variable has the fixed point of its definition; note a source that a set keeps."""
        source, definition = variable.source, self.loop.definition(variable)
        if source is None:
            return
        parts = list(self._addends(definition))
        if any(same in parts for same in with_equal_rows(source)):
            return
        kept = renamed(definition)
        if variable not in parts or kept.node not in parts or not kept.is_unchanged or not is_presence(kept.node):
            raise NotRulesError("a row of round 0 need not be one of later rounds")
        self._kept.setdefault(kept.node, []).append(source)

    def _addends(self, definition: nodes.PlanNode) -> Iterator[nodes.PlanNode]:
        """Yield the nodes all rows of which are rows of a definition, with the same columns."""
        stack = [definition]
        while stack:
            node = stack.pop()
            yield node
            if isinstance(node, nodes.ConcatNode):
                stack += node.inputs
            elif isinstance(node, nodes.ArrangeNode) or is_presence(node):
                stack.append(node.input)
            elif isinstance(node, nodes.EnterNode) and node.loop is self.loop and node.expression is None:
                stack.append(node.input)
            elif isinstance(node, nodes.SelectNode) and (view := renamed(node)).node is not node and view.is_unchanged:
                stack.append(view.node)

    # Products

    def _rows_of(self, node: nodes.PlanNode, of: nodes.PlanNode) -> list[Product]:
        """Return the products of a set, as part of the set `of`."""
        assert isinstance(node, nodes.ReduceNode)
        products = [
            product for inner in (node.input, *self._kept.get(node, ())) for product in self._products(inner, of)
        ]
        return [narrowed(product, node.schema.names) for product in products]

    def _products(self, node: nodes.PlanNode, of: nodes.PlanNode | None) -> list[Product]:
        """Return the products of a node; `of` is the set whose rows the node's rows are, unless it is joined first."""
        products = self._expanded(node, of)
        if len(products) > MAX_PRODUCTS:
            raise NotRulesError(f"its body has more than {MAX_PRODUCTS} rules")
        return products

    def _expanded(self, node: nodes.PlanNode, of: nodes.PlanNode | None) -> list[Product]:
        if self.loop not in node.loops:
            if isinstance(renamed(node).node, nodes.NegateNode):
                raise NotRulesError("it subtracts rows")
            return [self._atom(node)]
        if node.loops != {self.loop}:
            raise NotRulesError("a loop is inside it")
        match node:
            case nodes.ArrangeNode():
                return self._products(node.input, of)
            case nodes.EnterNode():
                if node.expression is not None:
                    raise NotRulesError("rows enter it in later rounds")
                return self._products(node.input, of)
            case nodes.VariableNode():
                return self._variable(node, of)
            case nodes.ReduceNode():
                return self._set(node, of)
            case nodes.ConcatNode():
                return self._union(node, of)
            case nodes.SelectNode():
                return [self._selected(product, node) for product in self._products(node.input, of)]
            case nodes.FilterNode():
                tests = self._tests(node)
                products = [with_tests(product, tests) for product in self._products(node.input, of)]
                return [product for product in products if product is not None]
            case nodes.JoinNode():
                left, right = self._products(node.left, None), self._products(node.right, None)
                pairs = [joined(one, other, node) for one in left for other in right]
                return [product for product in pairs if product is not None]
            case nodes.NegateNode():
                raise NotRulesError("it subtracts rows")
        raise NotRulesError("a part of its body is no join, union, selection or comparison")

    def _atom(self, node: nodes.PlanNode) -> Product:
        """Return all rows of a set or of a collection from outside."""
        pairs = zip(node.schema.names, node.schema.types, strict=True)
        terms: dict[str, Term] = {name: f"v{next(self._numbers)}" for name, type_ in pairs if type_.lanes == 1}
        return Product((ProductAtom(node, terms),), {name: terms.get(name) for name in node.schema.names})

    def _variable(self, node: nodes.VariableNode, of: nodes.PlanNode | None) -> list[Product]:
        if node in self._open:
            raise NotRulesError("a variable is no set")
        self._open.add(node)
        products = self._products(self.loop.definition(node), of)
        self._open.remove(node)
        return products

    def _set(self, node: nodes.ReduceNode, of: nodes.PlanNode | None) -> list[Product]:
        """Return the rows of a set: expanded, if they are rows of another set without being joined first."""
        if node.reduction.kind != "presence" or node.reduction.at_least != 1:
            kinds = {"presence": "a threshold", "count": "counts", "sums": "sums or averages", "function": "a function"}
            raise NotRulesError(f"it computes {kinds.get(node.reduction.kind, 'aggregates')} of groups")
        if of is not None and node is not of and node not in self.sets and not self._needs_itself(node, of):
            return self._rows_of(node, of)
        if node not in self.sets:
            self.sets[node] = []
        if any(type_.lanes > 1 for type_ in node.schema.types):
            wide = next(
                name for name, type_ in zip(node.schema.names, node.schema.types, strict=True) if type_.lanes > 1
            )
            raise NotRulesError(f"{wide} is {node.schema.type_of(wide)}, of several numbers")
        return [self._atom(node)]

    def _needs_itself(self, node: nodes.PlanNode, without: nodes.PlanNode) -> bool:
        """Return whether a set is recursive, without passing another one."""
        stack, seen = list(dependencies_of_node(node)), set[nodes.PlanNode]()
        while stack:
            current = stack.pop()
            if current is node:
                return True
            if current not in seen and current is not without and self.loop in current.loops:
                seen.add(current)
                stack += dependencies_of_node(current)
        return False

    def _union(self, node: nodes.ConcatNode, of: nodes.PlanNode | None) -> list[Product]:
        antijoin = antijoin_of(node, self.loop)
        if antijoin is not None:
            return [part for product in self._products(antijoin.left, of) for part in self._without(product, antijoin)]
        return [product for part in node.inputs for product in self._products(part, of)]

    def _without(self, product: Product, antijoin: Difference) -> Iterator[Product]:
        """Yield the rows of a product without those that match: those that fail a test, and those without a match."""
        tests = [test for condition in antijoin.conditions for test in self._tests(condition)]
        for test in tests:  # null, which matches nothing
            failing = with_tests(product, [test.opposite()])
            if failing is not None:
                yield failing
        passing = with_tests(product, tests)
        if passing is not None:
            terms = {other: known(passing, own) for own, other in antijoin.on}
            yield replace(passing, negations=(*passing.negations, ProductAtom(antijoin.right, terms)))

    def _tests(self, node: nodes.FilterNode) -> list[LaneTest]:
        tests = lane_tests(node.condition, node.schema, self.constants)
        if tests is None:
            raise NotRulesError("a condition of its body is more than comparisons of columns and constants")
        return tests

    def _selected(self, product: Product, node: nodes.SelectNode) -> Product:
        columns: dict[str, Term | None] = {}
        for name, expression in zip(node.schema.names, node.expressions, strict=True):
            expression, type_ = unnamed(expression), node.schema.type_of(name)
            widened = widened_column(expression, node.input.schema, type_)
            if isinstance(expression, ColumnReference):
                columns[name] = product.columns[expression.name]
            elif widened is not None:
                columns[name] = self._widened(product, widened)
            else:
                columns[name] = self.constants.selected_lane(expression, type_)
                if columns[name] is None:
                    raise NotRulesError(f"it computes values ({name})")
        return replace(product, columns=columns)

    def _widened(self, product: Product, column: str) -> Term:
        """Return the term of a column of integers without null, which is never the number that stands for null."""
        term = known(product, column)
        if isinstance(term, int) and term != NULL:
            return term
        for atom in product.atoms:
            for name, other in atom.terms.items():
                if other == term and self.loop not in atom.node.loops and atom.node.schema.type_of(name) == INT64:
                    self.widened.setdefault(atom.node, set()).add(name)
                    return term
        raise NotRulesError(f"it copies {column}, which is never null, to a column that may be null")


@dataclass(frozen=True, slots=True)
class Difference:
    """The rows of a node without their matches: those that pass some conditions, as often as another row matches."""

    left: nodes.PlanNode
    right: nodes.PlanNode
    on: tuple[tuple[str, str], ...]
    conditions: tuple[nodes.FilterNode, ...]


def difference_of(node: nodes.ConcatNode) -> Difference | None:
    """Return a union as a difference, as `Collection.antijoin` builds it; None if it is another union."""
    if len(node.inputs) != 2 or not isinstance(node.inputs[1], nodes.NegateNode):
        return None
    left, (join, columns) = node.inputs[0], renamed(node.inputs[1].input)
    if not isinstance(join, nodes.JoinNode):
        return None
    of = dict(zip(join.schema.names, join.columns, strict=True))
    if any(of[columns[name]] != (0, name) for name in left.schema.names):
        return None
    inner, conditions = join.left, list[nodes.FilterNode]()
    while inner is not left and isinstance(inner, nodes.FilterNode):
        conditions.append(inner)
        inner = inner.input
    return Difference(left, join.right, join.on, tuple(conditions)) if inner is left else None


def antijoin_of(node: nodes.ConcatNode, loop: nodes.Loop) -> Difference | None:
    """Return a union as a difference with a collection from outside, of which at most one row matches each row."""
    difference = difference_of(node)
    if difference is None:
        return None
    if loop in difference.right.loops:
        raise NotRulesError("it negates rows of the recursion")
    once = difference.on and holds_each_once(difference.right, {name for _, name in difference.on})
    return difference if once else None


def holds_each_once(node: nodes.PlanNode, columns: set[str]) -> bool:
    """Return whether at most one row, with the count 1, has each value of some columns, by the form of a node."""
    while True:
        if isinstance(node, nodes.FilterNode) or (isinstance(node, nodes.ArrangeNode) and not node.shared):
            node = node.input
        elif isinstance(node, nodes.LeaveNode) and node.graph is None:
            node = node.input
        elif isinstance(node, nodes.SelectNode):
            read = dict(zip(node.schema.names, map(unnamed, node.expressions), strict=True))
            columns = {of.name for name in columns if isinstance(of := read[name], ColumnReference)}
            node = node.input
        else:
            break
    if isinstance(node, nodes.SaturatedNode):
        return set(node.schema.names) <= columns
    if not isinstance(node, nodes.ReduceNode) or not set(node.keys) <= columns:
        return False
    kind, limit = node.reduction.kind, node.reduction.limit
    return kind in ("presence", "count", "sums") or (kind == "first" and limit == 1)


def is_presence(node: nodes.PlanNode) -> TypeGuard[nodes.ReduceNode]:
    """Return whether a node has each row of its input once."""
    if not isinstance(node, nodes.ReduceNode) or node.reduction.kind != "presence" or node.reduction.at_least != 1:
        return False
    return set(node.keys) == set(node.input.schema.names)


def with_equal_rows(node: nodes.PlanNode) -> Iterator[nodes.PlanNode]:
    """Yield a node, and those below it that have the same rows, with other counts."""
    yield node
    while is_presence(node):
        node = node.input
        yield node


def is_itself(product: Product, node: nodes.PlanNode) -> bool:
    """Return whether a product has the rows of a set, unchanged."""
    if len(product.atoms) != 1 or product.tests or product.negations:
        return False
    (atom,) = product.atoms
    return atom.node is node and product.columns == atom.terms


def narrowed(product: Product, names: tuple[str, ...]) -> Product:
    """Return a product with some of its columns."""
    return replace(product, columns={name: product.columns[name] for name in names})


def known(product: Product, column: str) -> Term:
    """Return the term of a column of one lane."""
    term = product.columns[column]
    if term is None:
        raise NotRulesError(f"{column} is of several numbers")
    return term


def with_tests(product: Product, tests: list[LaneTest]) -> Product | None:
    """Return the rows of a product that pass all tests; None if none can."""
    for test in tests:
        left, right = (
            known(product, test.left),
            test.right if isinstance(test.right, int) else known(product, test.right),
        )
        if isinstance(left, int) and isinstance(right, int):
            if not holds(test.op, left, right):
                return None
            continue
        if test.op == "=":
            product = equated(product, left, right)
        else:
            product = replace(product, tests=(*product.tests, (test.op, left, right)))
    return settled(product)


def equated(product: Product, left: Term, right: Term) -> Product:
    """Return the rows of a product with two equal terms, of which one is a variable."""
    if left == right:
        return product
    if isinstance(left, str):
        return product.replaced(left, right)
    assert isinstance(right, str)
    return product.replaced(right, left)


def settled(product: Product) -> Product | None:
    """Return a product without comparisons of constants; None if one of them is false."""
    tests = []
    for op, left, right in product.tests:
        if left == right or (isinstance(left, int) and isinstance(right, int)):
            if not (op in ("=", "<=", ">=") if left == right else holds(op, int(left), int(right))):
                return None
        else:
            tests.append((op, left, right))
    return replace(product, tests=tuple(tests))


def holds(op: str, left: int, right: int) -> bool:
    """Return whether a comparison of two lane values is true."""
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[op]


def joined(left: Product, right: Product, node: nodes.JoinNode) -> Product | None:
    """Return the pairs of two products with equal keys; None if constants differ."""
    sides = (left.columns, right.columns)
    keys = [f"{number}" for number in range(len(node.on))]
    columns: dict[str, Term | None] = {f"={key}": known(left, pair[0]) for key, pair in zip(keys, node.on, strict=True)}
    columns |= {f"+{key}": known(right, pair[1]) for key, pair in zip(keys, node.on, strict=True)}
    columns |= {f"_{name}": sides[side][of] for name, (side, of) in zip(node.schema.names, node.columns, strict=True)}
    product = Product(left.atoms + right.atoms, columns, left.tests + right.tests, left.negations + right.negations)
    result = with_tests(product, [LaneTest("=", f"={key}", f"+{key}") for key in keys])
    return None if result is None else replace(result, columns={n: result.columns[f"_{n}"] for n in node.schema.names})
