"""A rule system as tables of integers, for the kernel that runs small levels (`kpg.kernels.run_levels`).

The tables hold the paths of all rules, with the indexes that their steps need, in the layouts that rows have when the
tables are built: when layouts change, the tables are built again. `kpg.kernels.walk_rule` says what each field means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kpg.columns.updates import Ints
from kpg.kernels.level_records import NAME_FIELDS
from kpg.kernels.walk_rule import (
    ABSENT,
    AT_LEAST,
    AT_MOST,
    CODES,
    CODES_END,
    COMPARE,
    DIFFERENT,
    EQUAL,
    FIRST,
    INDEX_FIELDS,
    JOIN,
    KEYS,
    KIND,
    LAST,
    LESS,
    MISSING,
    MORE,
    NAME,
    NEXT_RELATION,
    OPERATION,
    PATH_FIELDS,
    PRESENT,
    RELATION,
    SAME,
    STEP_FIELDS,
    TERM_FIELDS,
    UNEQUAL,
    VALUE_BITS,
)
from kpg.seminaive.code_layout import CodeLayout
from kpg.seminaive.partial_solutions import ROW, PartialSolutions, needed_variables
from kpg.seminaive.recursion_rules import (
    EvaluationOrder,
    Literal,
    RecursionAtom,
    RecursionComparison,
    RecursionNegation,
    Term,
    variables,
)
from kpg.seminaive.rule_paths import RulePath

if TYPE_CHECKING:
    from kpg.seminaive.insert_only import InsertOnlyFixpoint

IndexName: TypeAlias = tuple[int, tuple[int, ...], int]  # as in `StoredRelations.indexes`
Span: TypeAlias = tuple[int, int]
NONE = -1
NO_IDS = np.empty(0, np.int64)
NO_REQUEST = (NONE, 0, 0)
OPERATORS = {"=": EQUAL, "!=": UNEQUAL, "<": LESS, "<=": AT_MOST, ">": MORE, ">=": AT_LEAST}


class LevelTable:
    """The paths of a rule system as integers."""

    def __init__(
        self,
        fixpoint: InsertOnlyFixpoint,
        forward: list[list[RulePath]],
        backward: list[list[RulePath]],
        negated: list[list[RulePath]],
        links_rows: bool,
        has_levels: bool,
    ) -> None:
        """`forward` has the paths from each relation; `links_rows` says whether paths join the rows of a run.

        Without levels, all rows in indexes of derived relations are present.
        """
        self._has_levels = has_levels
        self._fixpoint = fixpoint
        self._derived = len(backward)
        self._registers: dict[object, int] = {}
        self._constants: dict[int, int] = {}  # the value of each register that holds a constant
        self._paths: list[tuple[int, ...]] = []
        self._steps: list[tuple[int, ...]] = []
        self._terms: list[tuple[int, ...]] = []
        self._indexes: list[tuple[int, ...]] = []
        self._names: dict[IndexName, int] = {}
        self.layouts = fixpoint.layouts
        self.index_names: list[IndexName] = []
        self.tried: list[Span] = []  # for each index, the terms of which all values can be tried
        self.forward = [self._add_paths(paths) for paths in forward]
        self.backward = [self._add_paths(paths) for paths in backward]
        self.negated = [self._add_paths(paths) for paths in negated]
        names = self._linked_names(links_rows)
        self.paths = table(self._paths, PATH_FIELDS)
        self.steps = table(self._steps, STEP_FIELDS)
        self.terms = table(self._terms, TERM_FIELDS)
        self.indexes = table(self._indexes, INDEX_FIELDS)
        self.names = table(names, NAME_FIELDS)
        self.relations = np.array(
            [
                (*self.forward[relation], *self.backward[relation], *self._span_of_names(relation, links_rows))
                for relation in range(self._derived)
            ],
            np.int64,
        )
        self.depth = 1 + max(
            (len(path.steps) for paths in (*forward, *backward, *negated) for path in paths), default=0
        )
        self.registers = np.zeros(len(self._registers) + 1, np.int64)
        for register, value in self._constants.items():
            self.registers[register] = value
        del self._fixpoint  # which refers to this table

    def _add_paths(self, paths: list[RulePath]) -> Span:
        first = len(self._paths)
        for path in paths:
            self._add_path(path)
        return first, len(self._paths)

    def _add_path(self, path: RulePath) -> None:
        start, head = path.start, path.head
        layout = self._layout(start.relation)
        first_term = len(self._terms)
        for column, term in enumerate(start.terms):
            bits = layout.shift(column), layout.masks[column]
            if isinstance(term, int):
                self._terms.append((self._constant(term, start.relation, column), *bits, 1))
            elif term is not None:
                self._terms.append((self._register(term), *bits, 0))
        starts = first_term, len(self._terms)
        first_step, bound = len(self._steps), variables(start)
        for literal, live, is_bound in zip(path.steps, path.live[1:], path.is_bound, strict=True):
            self._steps.append(self._step(literal, live, is_bound, bound))
            bound |= variables(literal)
        self._join_present(first_step)
        steps = first_step, len(self._steps)
        heads = self._code_terms(head, bound)
        self._request(first_step, heads if path.live[-1] >= variables(head) else None, head.relation)
        self._paths.append((*starts, *steps, *heads, start.relation, head.relation))

    def _step(self, literal: Literal, live: frozenset[str], is_bound: bool, bound: set[str]) -> tuple[int, ...]:
        """Return the fields of a step."""
        no_terms = (0, 0)
        if isinstance(literal, RecursionComparison):
            return COMPARE, NONE, *self._comparison(literal), *no_terms, *no_terms, *NO_REQUEST
        if isinstance(literal, RecursionNegation):
            index, keys, _ = self._index(literal.atom, bound, frozenset({ROW}))
            return ABSENT, index, NONE, *keys, *no_terms, *no_terms, *NO_REQUEST
        if literal.relation >= self._derived or not self._has_levels:
            index, keys, binds = self._index(literal, bound, live)
            return JOIN, index, NONE, *keys, *binds, *no_terms, *NO_REQUEST
        if is_bound:
            codes = self._code_terms(literal, bound)
            return PRESENT, NONE, literal.relation, *no_terms, *no_terms, *codes, *NO_REQUEST
        index, keys, binds = self._index(literal, bound, live | variables(literal))
        codes = self._code_terms(literal, bound)
        return JOIN, index, literal.relation, *keys, *binds, *codes, *NO_REQUEST

    def _join_present(self, first: int) -> None:
        """Let joins with relations that rules read also test the presence of the derived row that they determine."""
        joined: list[tuple[int, ...]] = []
        for step in self._steps[first:]:
            if step[OPERATION] == PRESENT and joined and joined[-1][OPERATION] == JOIN and joined[-1][RELATION] == NONE:
                joined[-1] = (*joined[-1][:RELATION], step[RELATION], *joined[-1][KEYS:CODES], *step[CODES:])
            else:
                joined.append(step)
        self._steps[first:] = joined

    def _request(self, first: int, heads: Span | None, relation: int) -> None:
        """Let joins request the levels that they read, or that are read of the head."""
        for number in range(first, len(self._steps)):
            step = self._steps[number]
            if step[OPERATION] != JOIN:
                continue
            following = number + 1
            while following < len(self._steps) and self._steps[following][OPERATION] == COMPARE:
                following += 1
            requested: tuple[int, ...] = NO_REQUEST
            if step[RELATION] != NONE:
                requested = step[RELATION], *step[CODES : CODES_END + 1]
            elif following == len(self._steps) and heads is not None:
                requested = relation, *heads
            self._steps[number] = (*step[:NEXT_RELATION], *requested)

    def _comparison(self, literal: RecursionComparison) -> tuple[int, int, int]:
        """Return the operator and the terms of the two sides."""
        left, right = literal.left, literal.right
        first, operator = len(self._terms), OPERATORS[literal.op]
        if isinstance(left, str) and isinstance(right, str) and literal.op in ("=", "!="):
            operator = SAME if literal.op == "=" else DIFFERENT
        for side in (left, right):
            if isinstance(side, str):
                self._terms.append((self._register(side), self._fixpoint.domain_of.get(side, NONE), 0, 0))
            else:
                self._terms.append((self._register_of(("value", side), side), NONE, 0, 0))
        return operator, first, len(self._terms)

    def _index(self, atom: RecursionAtom, bound: set[str], live: frozenset[str]) -> tuple[int, Span, Span]:
        """Return a new row of the table of indexes, the terms of its key, and those that it binds."""
        probe = self._fixpoint._plan_probe(atom, PartialSolutions(0, dict.fromkeys(bound, NO_IDS)), live)
        layout = self._layout(atom.relation).selection(probe.columns, len(probe.keys))
        first = len(self._terms)
        for at, (column, key) in enumerate(zip(probe.columns, probe.keys, strict=False)):
            shift = sum(layout.bits[at + 1 : len(probe.keys)])
            self._terms.append((self._term(key, atom.relation, column), shift, 0, 0))
        keys = first, len(self._terms)
        for name, at in probe.provides.items():
            self._terms.append((self._register(name), layout.shift(at), layout.masks[at], 0))
        binds = keys[1], len(self._terms)
        for column, term in enumerate(atom.terms):
            if isinstance(term, str) and term not in bound:
                domain = self._fixpoint.domains.columns[atom.relation][column]
                self._terms.append((self._register(term), self._layout(atom.relation).shift(column), domain, 0))
        self.tried.append((binds[1], len(self._terms)))
        name_of_index = atom.relation, probe.columns, len(probe.keys)
        self.index_names.append(name_of_index)
        row = [0] * INDEX_FIELDS
        row[KIND], row[FIRST], row[LAST], row[VALUE_BITS] = MISSING, 0, 0, layout.value_bits(len(probe.keys))
        row[NAME] = self._names.setdefault(name_of_index, len(self._names))
        self._indexes.append(tuple(row))
        return len(self._indexes) - 1, keys, binds

    def _code_terms(self, atom: RecursionAtom, bound: set[str]) -> Span:
        """Add the terms of the code of an atom, of which none is None."""
        first, layout = len(self._terms), self._layout(atom.relation)
        for column, term in enumerate(atom.terms):
            assert term is not None
            is_unbound = isinstance(term, str) and term not in bound
            self._terms.append((self._term(term, atom.relation, column), layout.shift(column), 0, int(is_unbound)))
        return first, len(self._terms)

    # Names: the indexes of derived relations, in the order of relations

    def _linked_names(self, links_rows: bool) -> list[tuple[int, ...]]:
        """Number indexes in the order of their relations; return the rows of `names` for derived relations."""
        ordered = sorted(self._names)
        numbers = {self._names[name]: at for at, name in enumerate(ordered)}
        self._indexes = [(*row[:NAME], numbers[row[NAME]]) for row in self._indexes]
        self._names = {name: at for at, name in enumerate(ordered)}
        rows = list[tuple[int, ...]]()
        for relation, columns, keys in ordered:
            if relation < self._derived and links_rows:
                source, first = self._layout(relation), len(self._terms)
                layout = source.selection(columns, keys)
                for at, column in enumerate(columns):
                    self._terms.append((layout.shift(at), source.shift(column), source.masks[column], 0))
                rows.append((0, first, len(self._terms), layout.value_bits(keys)))
        return rows

    def _span_of_names(self, relation: int, links_rows: bool) -> Span:
        numbers = [at for name, at in self._names.items() if name[0] == relation]
        return (min(numbers), max(numbers) + 1) if numbers and links_rows else (0, 0)

    # Registers

    def _term(self, term: Term, relation: int, column: int) -> int:
        return self._register(term) if isinstance(term, str) else self._constant(term, relation, column)

    def _register(self, name: object) -> int:
        return self._registers.setdefault(name, len(self._registers))

    def _constant(self, value: int, relation: int, column: int) -> int:
        """Return the register of a constant in a column: it holds the id."""
        number = self._fixpoint.id_of(value, relation, column)
        return self._register_of(("id", number), number)

    def _register_of(self, name: tuple[str, int], value: int) -> int:
        register = self._register(name)
        self._constants[register] = value
        return register

    def _layout(self, relation: int) -> CodeLayout:
        layout = self.layouts[relation]
        assert isinstance(layout, CodeLayout)
        return layout


def rounds_table(fixpoint: InsertOnlyFixpoint, orders: list[list[EvaluationOrder]]) -> LevelTable:
    """Return the tables for rounds of a first load, in which no row is removed."""
    derived = fixpoint.system.derived
    joins_derived = any(
        isinstance(literal, RecursionAtom) and literal.relation < derived
        for of_relation in orders
        for order in of_relation
        for literal in order.steps
    )
    nothing: list[list[RulePath]] = [[] for _ in orders]
    forward = [[path_of(order) for order in of_relation] for of_relation in orders]
    return LevelTable(fixpoint, forward, nothing[:derived], nothing, joins_derived, False)


def path_of(order: EvaluationOrder) -> RulePath:
    """Return an order of evaluation as a path."""
    live = tuple(needed_variables(order, step) for step in range(len(order.steps) + 1))
    return RulePath(order.start, order.steps, order.head, live, (False,) * len(order.steps))


def table(rows: list[tuple[int, ...]], fields: int) -> Ints:
    """Return rows of fields as an array, int64[n, fields]."""
    return np.array(rows, np.int64).reshape(len(rows), fields)
