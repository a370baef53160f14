"""Queries and rules in EDN as programs.

    [:find ?company (sum ?salary)
     :in ?city
     :where [?company :company/city ?city] [?company :company/employee ?e] [?e :employee/salary ?salary]]

    [(knows ?a ?b) [?a :person/knows ?b]]
    [(knows ?a ?b) [?a :person/knows ?x] (knows ?x ?b)]

Attributes are binary relations of a set of facts; rules are sets, too. What `:find` gives is a multiset: a row is there
as often as the clauses have solutions for it, and aggregates are taken of all solutions, so that `:with` changes
nothing. Without aggregates the result is named `query`, and so it is with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kpg.errors import BadPlan, ParseError, ProgramError, UnsafeRule
from kpg.query.edn.clauses import Clauses, names_in, variable_name
from kpg.query.edn.edn_reader import Form, read_forms
from kpg.query.edn.structure import arities, is_query, rules_in, sections_of, where
from kpg.query.ir.body_variables import bound_by
from kpg.query.ir.literals import Atom, Conjunction, Formula
from kpg.query.ir.program import PARAMETER, AggregateReduction, Directive, Fact, Program, Relation, RelationColumn, Rule
from kpg.query.ir.terms import Kind, Term, Value, VariableTerm, WildcardTerm
from kpg.query.ir.undeclared import with_kinds
from kpg.query.join_strategy import check_hint
from kpg.query.source_text import did_you_mean, failure

QUERY = "query"
AGGREGATES = {"count": "count", "sum": "sum", "min": "min", "max": "max", "avg": "mean", "mean": "mean"}
SAME: dict[Any, Kind] = {int: "number", float: "float", str: "symbol", bool: "bool"}


@dataclass(frozen=True, slots=True)
class Attribute:
    """What an attribute relates: kinds, or the Python types int, float, str and bool."""

    entity: Any = int
    value: Any = int

    def kinds(self) -> tuple[Kind, Kind]:
        """Both as kinds."""
        return SAME.get(self.entity, self.entity), SAME.get(self.value, self.value)


def parse_query(
    text: str,
    attributes: Mapping[str, Attribute | tuple[Any, Any]],
    *,
    rules: str = "",
    parameters: Mapping[str, Value] | None = None,
    name: str = QUERY,
    elsewhere: Mapping[str, tuple[Kind, ...]] | None = None,
) -> Program:
    """The program of a query, with the rules it may use; its answer is the relation `name`.

    The text may hold rules as well, or nothing but rules: then each rule is an answer. Rules and relations that are
    defined elsewhere are inputs: they are named as rules are.
    """
    known: dict[str, tuple[Kind, ...]] = {}
    for each, given in attributes.items():
        known[each] = (given if isinstance(given, Attribute) else Attribute(*given)).kinds()
    reading = Reading(known, dict(parameters or {}), name, dict(elsewhere or {}))
    return reading.program(read_forms(rules, "rules"), read_forms(text))


class Reading:
    """A query and its rules, on their way to a program."""

    def __init__(
        self,
        attributes: dict[str, tuple[Kind, ...]],
        parameters: dict[str, Value],
        name: str,
        elsewhere: dict[str, tuple[Kind, ...]],
    ) -> None:
        self.attributes = attributes
        self.elsewhere = elsewhere
        self.parameters = parameters
        self.name = name
        self.rules: list[Rule] = []
        self.relations: list[Relation] = []
        self.reductions: list[AggregateReduction] = []
        self.facts: list[Fact] = []
        self.joins = ""
        self.given: dict[str, tuple[Kind, ...]] = {}

    def program(self, rules: list[Form], query: list[Form]) -> Program:
        """All of it."""
        queries = [form for form in query if is_query(form)]
        written = [each for form in (*rules, *(f for f in query if f not in queries)) for each in rules_in(form)]
        if len(queries) > 1:
            raise failure(ParseError, "two queries in one text", queries[1].at)
        known = {each: len(kinds) for each, kinds in self.elsewhere.items()}
        self.clauses = Clauses(self.attributes, known | arities(written), self.parameters)
        for form in written:
            self.rule(form)
        names = list(dict.fromkeys(form.value[0].value[0].value for form in written))
        self.relations += [Relation(each, columns(self.clauses.rules[each]), where(written, each)) for each in names]
        if queries:
            self.query(queries[0])
        wanted = [self.name] if queries else names
        return self.finish(wanted)

    def finish(self, wanted: list[str]) -> Program:
        """The program, with the kinds of what nobody declared."""
        base = [Relation(each, columns(2, ("e", "v"))) for each in self.attributes]
        base += [Relation(each, columns(len(kinds))) for each, kinds in self.elsewhere.items()]
        made = self.clauses
        program = Program(
            relations=(*base, *self.relations, *made.relations),
            rules=(*self.rules, *made.made),
            facts=tuple(self.facts),
            directives=(
                *(Directive("input", relation.name) for relation in base),
                *(Directive("output", each) for each in wanted),
            ),
            reductions=tuple(self.reductions),
            joins=self.joins,
        )
        return with_kinds(program, {**self.attributes, **self.elsewhere, **self.given})

    # Rules

    def rule(self, form: Form) -> None:
        """`[(name ?a ?b) clause ...]`"""
        head, *body = form.value
        formula = self.clauses.conjunction(tuple(body), form, set())
        terms: list[Term] = []
        for each in head.value[1:]:
            if each.is_symbol("..."):
                taken = {term.name for term in terms if isinstance(term, VariableTerm)}
                terms += [VariableTerm(name, each.at) for name in names_in(formula) if name not in taken]
            else:
                terms.append(self.clauses.term(each))
        self.rules.append(Rule((Atom(head.value[0].value, tuple(terms), head.at),), formula, form.at))

    # Queries

    def query(self, form: Form) -> None:
        """`[:find ... :where ...]`"""
        sections = sections_of(form)
        self.inputs(sections.get(":in", []))
        self.clauses.fixed = frozenset(self.parameters)  # only here: the variables of rules are their own
        self.joins = joins_of(sections.get(":joins", []))
        clauses = sections.get(":where", [])
        if not clauses:
            raise failure(ParseError, "a query without :where", form.at)
        body = self.clauses.conjunction(tuple(clauses), form, set())
        body = Conjunction((*body.parts, *self.bindings), body.at)
        found = self.expanded(sections[":find"], body)
        for each in sections.get(":with", []):
            self.check_bound(each, body)
        if any(each.kind == "list" for each in found):
            self.aggregated(found, body, form)
            return
        terms = tuple(self.clauses.term(each) for each in found)
        head = Atom(self.name, terms, form.at)
        self.relations.append(Relation(self.name, columns(len(terms), unique(found)), form.at, bag=True))
        self.rules.append(Rule((head,), body, form.at))

    def inputs(self, forms: list[Form]) -> None:
        """`:in $ ?x [?y ...] [[?a ?b]]`: values, lists of values, lists of rows."""
        self.bindings: list[Formula] = []
        for form in forms:
            if form.is_symbol("$", "%"):
                continue
            if form.kind == "symbol":
                name = variable_name(form)
                if name not in self.parameters:
                    hint = did_you_mean(name, self.parameters) or f"Give it: parameters={{{name!r}: ...}}."
                    raise failure(ProgramError, f"the parameter ?{name} has no value", form.at, hint=hint)
            else:
                self.rows_given(form)

    def rows_given(self, form: Form) -> None:
        """A parameter that is a list: a relation of its own."""
        inside: tuple[Form, ...] = form.value if form.kind == "vector" else ()
        nested = bool(inside) and inside[0].kind == "vector"
        names = [variable_name(each) for each in (inside[0].value if nested else inside[:1])]
        if not names:
            raise failure(ParseError, "not a parameter", form.at, hint="Write ?x, [?x ...] or [[?a ?b]].")
        key = " ".join(names)
        values: Any = self.parameters.pop(key, None)
        if not isinstance(values, (list, tuple, set)):
            hint = f"Give parameters={{{key!r}: [...]}}."
            raise failure(ProgramError, f"the parameter {key!r} is a list", form.at, hint=hint)
        relation = f"{PARAMETER}{key}"
        rows = [tuple(row) if nested else (row,) for row in values]
        self.facts += [Fact(relation, row, form.at) for row in dict.fromkeys(rows)]
        self.given[relation] = tuple(SAME.get(type(value), "number") for value in rows[0]) if rows else ()
        self.relations.append(Relation(relation, columns(len(names), tuple(names)), form.at))
        self.bindings.append(Atom(relation, tuple(VariableTerm(each, form.at) for each in names), form.at))

    def expanded(self, found: list[Form], body: Conjunction) -> list[Form]:
        """What is asked for; `...` stands for all variables that are not named, in order."""
        if not found:
            raise failure(ParseError, "a query that finds nothing", body.at, hint="Name variables behind :find.")
        named = {variable_name(each) for each in found if each.kind == "symbol"}
        every = [name for name in names_in(body) if name not in named]
        made: list[Form] = []
        for each in found:
            made += [Form("symbol", name, each.at) for name in every] if each.is_symbol("...") else [each]
        return made

    def check_bound(self, form: Form, body: Conjunction) -> None:
        """Refuse a variable behind :with that the clauses do not have."""
        if variable_name(form) not in names_in(body):
            raise failure(UnsafeRule, f"variable {form.value} behind :with is not bound", form.at)

    def aggregated(self, found: list[Form], body: Conjunction, form: Form) -> None:
        """Groups by the variables, with an aggregate each; several aggregates are joined on their group."""
        keys = list(dict.fromkeys(variable_name(each) for each in found if each.kind == "symbol"))
        formula = named_wildcards(body)
        others = [name for name in names_in(formula) if name not in keys and name in bound_by(formula.parts)]
        solutions = [*keys, *others]
        source = f"@solutions of {self.name}"
        self.relations.append(Relation(source, columns(len(solutions), tuple(solutions)), form.at, made=True))
        self.rules.append(Rule((Atom(source, variables_of(solutions, form), form.at),), formula, form.at))
        result: list[Term] = []
        atoms: list[Formula] = []
        for number, each in enumerate(found):
            if each.kind == "symbol":
                result.append(VariableTerm(variable_name(each), each.at))
                continue
            op, place = self.aggregate(each, solutions)
            name, value = f"@{op} {number} of {self.name}", VariableTerm(f"{op}#{number}", each.at)
            self.relations.append(Relation(name, columns(len(keys) + 1), each.at, made=True))
            self.reductions.append(AggregateReduction(name, source, len(keys), op, place, each.at))
            atoms.append(Atom(name, (*variables_of(keys, form), value), each.at))
            result.append(value)
        self.relations.append(Relation(self.name, columns(len(result), unique(found)), form.at, bag=True))
        self.rules.append(Rule((Atom(self.name, tuple(result), form.at),), Conjunction(tuple(atoms), form.at), form.at))

    def aggregate(self, form: Form, solutions: list[str]) -> tuple[str, int | None]:
        """`(sum ?x)` as an operation and the place of what it is taken of."""
        if len(form.value) != 2 or form.value[0].kind != "symbol":
            raise failure(ParseError, "not an aggregate", form.at, hint="Write (sum ?x).")
        word, what = form.value
        if word.value not in AGGREGATES:
            raise failure(ParseError, f"no aggregate is called {word.value!r}", word.at,
                          hint=did_you_mean(word.value, AGGREGATES))  # fmt: skip
        name = variable_name(what)
        if name not in solutions:
            raise failure(UnsafeRule, f"variable ?{name} of the {word.value} is not bound", what.at)
        op = AGGREGATES[word.value]
        return op, None if op == "count" else solutions.index(name)


def joins_of(forms: list[Form]) -> str:
    """`:joins hector ?a ?b ?c`: how clauses shall be joined, and for Hector an order of variables."""
    words = [str(form.value).removeprefix("?") for form in forms]
    try:
        if words:
            check_hint(" ".join(words))
    except BadPlan as error:
        raise failure(ParseError, error.what, forms[0].at, hint=error.hint) from None
    return " ".join(words)


def columns(size: int, names: tuple[str, ...] = ()) -> tuple[RelationColumn, ...]:
    """Columns whose kinds are not known yet."""
    return tuple(RelationColumn(names[place] if names else f"c{place}", "", "number") for place in range(size))


def unique(found: list[Form]) -> tuple[str, ...]:
    """A name for each thing that is asked for."""
    made: list[str] = []
    for each in found:
        name = variable_name(each) if each.kind == "symbol" else " ".join(str(part.value) for part in each.value)
        made.append(name if name not in made else f"{name} {len(made)}")
    return tuple(made)


def variables_of(names: list[str], form: Form) -> tuple[VariableTerm, ...]:
    """Variables by name."""
    return tuple(VariableTerm(name, form.at) for name in names)


def named_wildcards(body: Conjunction) -> Conjunction:
    """A body in which the wildcards of its atoms are variables: each solution counts."""
    parts: list[Formula] = []
    for number, part in enumerate(body.parts):
        if isinstance(part, Atom):
            terms = (
                VariableTerm(f"_{number}.{place}", term.at) if isinstance(term, WildcardTerm) else term
                for place, term in enumerate(part.arguments)
            )
            part = Atom(part.relation, tuple(terms), part.at)
        parts.append(part)
    return Conjunction(tuple(parts), body.at)
