"""Compiling takes time linear in a text: twice the text, about twice the steps. Steps are function calls."""

import json
import sys
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.errors import KpgError, OverLimit, ResourceError
from kpg.query.ir.body_variables import bound_by, definitions, is_computable, variable_names
from kpg.query.ir.fallible_terms import literal_can_fail
from kpg.query.ir.literals import Atom, Comparison, Literal, Negation
from kpg.query.ir.program import Program, Relation, RelationColumn
from kpg.query.ir.rewrites.expand_disjunction import count_rules
from kpg.query.ir.rewrites.order_joins import boundness, has_constant, in_order, is_equation
from kpg.query.ir.terms import CallTerm, ConstantTerm, VariableTerm
from kpg.query.source_text import NOWHERE
from kpg.service.languages import read_rules

MAX_GROWTH = 2.6  # of the steps, when the text doubles


def relation(name: str, *columns: str) -> Relation:
    return Relation(name, tuple(RelationColumn(column, "number", "number", NOWHERE) for column in columns), NOWHERE)


EXISTING = {":a": relation(":a", "e", "v"), "q": relation("q", "x"), "e": relation("e", "x", "y")}

MATCH = {"MatchA": [0, ":a", 1]}
TEXTS: dict[str, tuple[str, Callable[[int], str]]] = {
    "a conjunction in EDN": (
        "edn", lambda n: "[:find ?x :where " + " ".join(f"[?x :a {i}]" for i in range(n)) + "]",
    ),
    "a chain of joins in EDN": (
        "edn", lambda n: "[:find ?x0 :where " + " ".join(f"[?x{i} :a ?x{i + 1}]" for i in range(n)) + "]",
    ),
    "alternatives in EDN": (
        "edn", lambda n: "[:find ?x :where (or " + " ".join(f"[?x :a {i}]" for i in range(n)) + ")]",
    ),
    "rules in EDN": ("edn", lambda n: "[" + " ".join(f"[(r{i} ?x) [?x :a {i}]]" for i in range(n)) + "]"),
    "brackets in EDN": ("edn", lambda n: "[:find ?x :where " + "[" * 10 * n),
    "a conjunction": ("datalog", lambda n: "p(x) :- " + ", ".join(f"e(x, {i})" for i in range(n)) + "."),
    "a chain of joins": ("datalog", lambda n: "p(x0) :- " + ", ".join(f"e(x{i}, x{i + 1})" for i in range(n)) + "."),
    "many rules": ("datalog", lambda n: " ".join(f"p{i}(x) :- q(x), x > {i}." for i in range(n))),
    "rules of one relation": ("datalog", lambda n: " ".join(f"p(x) :- q(x), x > {i}." for i in range(n))),
    "a chain of rules": (
        "datalog", lambda n: "p0(x) :- q(x). " + " ".join(f"p{i + 1}(x) :- p{i}(x)." for i in range(n)),
    ),
    "declarations": ("datalog", lambda n: " ".join(f".decl b{i}(x: number)" for i in range(n)) + " p(x) :- q(x)."),
    "negations": ("datalog", lambda n: "p(x) :- q(x), " + ", ".join(f"!e(x, {i})" for i in range(n)) + "."),
    "equations with constants": (
        "datalog", lambda n: "p(x) :- q(x), " + ", ".join(f"y{i} = {i}, e(x, y{i})" for i in range(n)) + ".",
    ),
    "a chain of equations": (
        "datalog", lambda n: "p(x) :- q(x), y0 = x, " + ", ".join(f"y{i + 1} = y{i}" for i in range(n)) + ".",
    ),
    "a reversed chain of equations": (
        "datalog", lambda n: "p(x0) :- " + ", ".join(f"x{i} = x{i + 1}" for i in range(n)) + f", q(x{n}).",
    ),
    "a reversed chain of sums": (
        "datalog", lambda n: "p(x0) :- " + ", ".join(f"x{i} = x{i + 1} + 1" for i in range(n)) + f", q(x{n}).",
    ),
    "undecided variables": (
        "datalog", lambda n: "p(x) :- q(x), " + ", ".join(f"x{i} = {i}" for i in range(n)) + ".",
    ),
    "rules in plans": (
        "plan", lambda n: json.dumps({"rules": [
            {"name": f"r{i}", "plan": {"Project": {"variables": [1], "plan": MATCH}}} for i in range(n)
        ]}),
    ),
    "a union of plans": (
        "plan", lambda n: json.dumps({"rules": [
            {"name": "r", "plan": {"Union": {"variables": [0, 1], "plans": [MATCH] * n}}}
        ]}),
    ),
    "open parentheses": ("datalog", lambda n: "p(x) :- q(x), x = " + "(" * 10 * n),
    "open comments": ("datalog", lambda n: "/*" * 10 * n),
    "digits": ("datalog", lambda n: "p(x) :- q(x), x = " + "1" * 10 * n + "."),
}  # fmt: skip


def steps(language: str, text: str) -> int:
    """Return the number of function calls that reading a text takes."""
    count = 0

    def trace(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(trace)
    try:
        read_rules(language, text, None, EXISTING)
    except KpgError:
        pass
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", TEXTS)
def test_twice_the_text_takes_about_twice_the_steps(name: str) -> None:
    language, text = TEXTS[name]
    read_rules("datalog", "p(x) :- q(x).", None, EXISTING)  # what is done once per process
    small, large = steps(language, text(100)), steps(language, text(200))
    assert large < MAX_GROWTH * small, f"{small} steps grow to {large}"


def test_a_query_of_ten_thousand_clauses_is_read() -> None:
    began = time.process_time()
    with pytest.raises(OverLimit, match="more than"):  # after it was read
        read_rules("edn", "[:find ?x :where " + "[?x :a ?y] " * 10_000 + "]", None, EXISTING)
    assert time.process_time() - began < 15  # a copy of all clauses for each took minutes


@pytest.mark.parametrize("terms", [50, 95])
def test_a_long_sum_takes_no_exponential_time(terms: int) -> None:
    text = "p(x) :- q(x), x = " + " + ".join(["1"] * terms) + "."
    assert steps("datalog", text) < 200 * terms**2


@pytest.mark.parametrize(
    "body",
    [
        ", ".join(["(q(x) ; e(x, x))"] * 20),
        ", ".join(f"n{i} = count : {{ e(x, {i}) }}" for i in range(20)),
        ", ".join(["!(q(x), e(x, x))"] * 20),
    ],
)
def test_alternatives_that_multiply_are_refused_before_they_are_made(body: str) -> None:
    text = f"p(x) :- q(x), {body}."
    with pytest.raises(ResourceError, match="alternatives"):
        read_rules("datalog", text, None, EXISTING)


def test_the_number_of_rules_is_counted_without_making_them() -> None:
    choices = ", ".join(["(q(x) ; e(x, x) ; x = 1)"] * 5)
    text = read_rules("datalog", f"p(x) :- q(x), {choices}.", None, EXISTING)
    assert count_rules(Program(relations=(), rules=text.rules)) == 3**5


# The join order: the same as that of a search through all literals

NAMES = ("a", "b", "c", "d")


@st.composite
def bodies(draw: st.DrawFn) -> tuple[Literal, ...]:
    """Return atoms, comparisons, equations that can fail, and negations."""
    term = st.one_of(
        st.sampled_from(NAMES).map(VariableTerm), st.integers(0, 3).map(lambda value: ConstantTerm(value, "number"))
    )
    call = st.builds(lambda left, right: CallTerm("+", (left, right), "number"), term, term)
    atom = st.builds(lambda *arguments: Atom("e", arguments), term, term)
    comparison = st.builds(Comparison, st.sampled_from(["=", "<"]), term, st.one_of(term, call))
    return tuple(dict.fromkeys(draw(st.lists(st.one_of(atom, comparison, atom.map(Negation)), max_size=8))))


def searched_order(body: tuple[Literal, ...]) -> list[Literal]:
    """Return the order by its definition, with a search through all waiting literals for each."""
    waiting, ordered, bound = list(body), list[Literal](), set[str]()
    while waiting:
        first = not any(isinstance(literal, Atom) for literal in ordered)
        literal = next_ready(waiting, bound) if bound or not first else None
        literal = literal or next_atom(waiting, bound, first) or next_ready(waiting, bound) or waiting[0]
        waiting.remove(literal)
        ordered.append(literal)
        bound = bound_by([literal], bound)
    return ordered


def next_ready(waiting: list[Literal], bound: set[str]) -> Literal | None:
    def is_ready(literal: Literal) -> bool:
        if variable_names(literal) <= bound:
            return True
        return any(is_computable(term, bound) for _, term in definitions(literal))

    ready = [literal for literal in waiting if not isinstance(literal, Atom) and is_ready(literal)]
    return min(
        ready,
        key=lambda literal: (literal_can_fail(literal), isinstance(literal, Negation), not is_equation(literal)),
        default=None,
    )


def next_atom(waiting: list[Literal], bound: set[str], first: bool) -> Literal | None:
    computed = set()
    for literal in waiting:
        if isinstance(literal, Comparison) and literal_can_fail(literal):
            for variable, term in definitions(literal):
                others = [other for other in waiting if variable.name not in variable_names(other)]
                if variable.name not in bound and is_computable(term, bound_by(others, bound)):
                    computed.add(variable.name)
    atoms = [literal for literal in waiting if isinstance(literal, Atom)]
    atoms = [atom for atom in atoms if not variable_names(atom) & computed] or atoms
    rank = has_constant if first else lambda atom: boundness(atom, bound)
    return max(atoms, key=rank, default=None)


@given(body=bodies())
def test_the_join_order_is_that_of_a_search_through_all_literals(body: tuple[Literal, ...]) -> None:
    assert in_order(body) == searched_order(body)
