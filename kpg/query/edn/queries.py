"""Parse queries and rules in EDN into programs.

    [:find ?company (sum ?salary)
     :in ?city
     :where [?company :company/city ?city] [?company :company/employee ?e] [?e :employee/salary ?salary]]

    [(knows ?a ?b) [?a :person/knows ?b]]
    [(knows ?a ?b) [?a :person/knows ?x] (knows ?x ?b)]

Attributes are binary relations over a set of facts, and rules are sets as well. The result of `:find` is a multiset: it
holds a row once for each solution of the clauses. Aggregates range over all solutions, so `:with` changes nothing. The
result relation is named `query`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kpg.columns.schema import literal_type, parse_type
from kpg.errors import BadPlan, ParseError, ProgramError, UnsafeRule
from kpg.query.edn.clauses import ClauseParser, names_in, variable_name
from kpg.query.edn.edn_reader import Form, read_forms
from kpg.query.edn.find_section import read_find
from kpg.query.edn.result_rules import ResultRules, columns
from kpg.query.edn.structure import arities, is_query, position_of, rules_in, sections_of
from kpg.query.ir.infer_column_kinds import infer_column_kinds
from kpg.query.ir.literals import Atom, Conjunction, Formula
from kpg.query.ir.program import PARAMETER, AggregateReduction, Directive, Fact, Program, Relation, Rule
from kpg.query.ir.terms import Kind, Term, Value, VariableTerm
from kpg.query.join_strategy import check_hint
from kpg.query.lower.value_expressions import kind_of_type
from kpg.query.source_text import did_you_mean, failure

QUERY = "query"
KINDS_OF_TYPES: dict[Any, Kind] = {int: "number", float: "float", str: "symbol", bool: "bool"}


def kind_of_spec(spec: Any) -> Kind:
    """Return the kind that a type of Python stands for; a kind stands for itself."""
    return spec if isinstance(spec, str) else KINDS_OF_TYPES.get(spec) or kind_of_type(parse_type(spec))


@dataclass(frozen=True, slots=True)
class Attribute:
    """The types of an attribute's entities and values: kinds, or types of Python."""

    entity: Any = int
    value: Any = int

    def kinds(self) -> tuple[Kind, Kind]:
        """Return both as kinds."""
        return kind_of_spec(self.entity), kind_of_spec(self.value)


def parse_query(
    text: str,
    attributes: Mapping[str, Attribute | tuple[Any, Any]],
    *,
    rules: str = "",
    parameters: Mapping[str, Value] | None = None,
    name: str = QUERY,
    elsewhere: Mapping[str, tuple[Kind, ...]] | None = None,
) -> Program:
    """Parse a query, and the rules it may use, into a program; its output is the relation `name`.

    The text may also hold rules, or only rules: then each rule is an output. Rules and relations that are defined
    elsewhere are inputs; clauses refer to them as to rules.
    """
    kinds: dict[str, tuple[Kind, ...]] = {}
    for attribute, types in attributes.items():
        kinds[attribute] = (types if isinstance(types, Attribute) else Attribute(*types)).kinds()
    parser = EdnQueryParser(kinds, dict(parameters or {}), name, dict(elsewhere or {}))
    return parser.program(read_forms(rules, "rules"), read_forms(text))


class EdnQueryParser:
    """Builds a program from the forms of a query and its rules."""

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
        self.parameter_kinds: dict[str, tuple[Kind, ...]] = {}  # of the relations that hold list parameters

    def program(self, rules: list[Form], query: list[Form]) -> Program:
        """Build the program of some rules and a text with at most one query."""
        queries = [form for form in query if is_query(form)]
        other_forms = (form for form in query if form not in queries)
        rule_forms = [rule for form in (*rules, *other_forms) for rule in rules_in(form)]
        if len(queries) > 1:
            raise failure(ParseError, "two queries in one text", queries[1].at, hint="Send each query on its own.")
        sizes = {relation: len(kinds) for relation, kinds in self.elsewhere.items()}
        self.clauses = ClauseParser(self.attributes, sizes | arities(rule_forms), self.parameters)
        for form in rule_forms:
            self.add_rule(form)
        names = list(dict.fromkeys(form.value[0].value[0].value for form in rule_forms))
        self.relations += [
            Relation(rule, columns(self.clauses.rules[rule]), position_of(rule_forms, rule)) for rule in names
        ]
        if queries:
            self.add_query(queries[0])
        return self.build([self.name] if queries else names)

    def build(self, outputs: list[str]) -> Program:
        """Build the program, with inferred kinds for the columns of rules."""
        base = [Relation(attribute, columns(2, ("e", "v"))) for attribute in self.attributes]
        base += [Relation(relation, columns(len(kinds))) for relation, kinds in self.elsewhere.items()]
        program = Program(
            relations=(*base, *self.relations, *self.clauses.relations),
            rules=(*self.rules, *self.clauses.generated),
            facts=tuple(self.facts),
            directives=(
                *(Directive("input", relation.name) for relation in base),
                *(Directive("output", output) for output in outputs),
            ),
            reductions=tuple(self.reductions),
            joins=self.joins,
        )
        return infer_column_kinds(program, {**self.attributes, **self.elsewhere, **self.parameter_kinds})

    # Rules

    def add_rule(self, form: Form) -> None:
        """Add `[(name ?a ?b) clause ...]`."""
        head, *body = form.value
        formula = self.clauses.conjunction(tuple(body), form, set())
        terms: list[Term] = []
        for argument in head.value[1:]:
            if argument.is_symbol("..."):
                named = {term.name for term in terms if isinstance(term, VariableTerm)}
                terms += [VariableTerm(name, argument.at) for name in names_in(formula) if name not in named]
            else:
                terms.append(self.clauses.term(argument))
        self.rules.append(Rule((Atom(head.value[0].value, tuple(terms), head.at),), formula, form.at))

    # Queries

    def add_query(self, form: Form) -> None:
        """Add `[:find ... :where ...]`."""
        sections = sections_of(form)
        self.add_parameters(sections.get(":in", []))
        self.clauses.fixed = frozenset(self.parameters)  # only now: the variables of rules are not parameters
        self.joins = joins_of(sections.get(":joins", []))
        clauses = sections.get(":where", [])
        if not clauses:
            raise failure(ParseError, "a query without :where", form.at, hint="A query is [:find ?x :where ...].")
        body = self.clauses.conjunction(tuple(clauses), form, set())
        body = Conjunction((*body.parts, *self.bindings), body.at)
        find = read_find(sections[":find"], form, names_in(body), list(self.attributes))
        for variable in sections.get(":with", []):
            self.check_bound(variable, body)
        results = ResultRules(self.name, self.attributes, body, form).add(find, self.clauses.term)
        self.relations += results.relations
        self.rules += results.rules
        self.reductions += results.reductions

    def add_parameters(self, forms: list[Form]) -> None:
        """Add `:in $ ?x [?y ...] [[?a ?b]]`: values, lists of values, lists of rows."""
        self.bindings: list[Formula] = []
        for form in forms:
            if form.is_symbol("$", "%"):
                continue
            if form.kind == "symbol":
                name = variable_name(form)
                if name not in self.parameters:
                    hint = did_you_mean(name, self.parameters) or f"Pass it: parameters={{{name!r}: ...}}."
                    raise failure(ProgramError, f"the parameter ?{name} has no value", form.at, hint=hint)
            else:
                self.add_list_parameter(form)

    def add_list_parameter(self, form: Form) -> None:
        """Add a parameter that is a list as a relation with facts."""
        items: tuple[Form, ...] = form.value if form.kind == "vector" else ()
        nested = bool(items) and items[0].kind == "vector"
        names = [variable_name(variable) for variable in (items[0].value if nested else items[:1])]
        if not names:
            raise failure(ParseError, "not a parameter", form.at, hint="Write ?x, [?x ...] or [[?a ?b]].")
        key = " ".join(names)
        values: Any = self.parameters.pop(key, None)
        if not isinstance(values, (list, tuple, set)):
            hint = f"Pass parameters={{{key!r}: [...]}}."
            raise failure(ProgramError, f"the parameter {key!r} is a list", form.at, hint=hint)
        relation = f"{PARAMETER}{key}"
        rows = [tuple(row) if nested else (row,) for row in values]
        self.facts += [Fact(relation, row, form.at) for row in dict.fromkeys(rows)]
        kinds = tuple(kind_of_type(literal_type(value)) for value in rows[0]) if rows else ()
        self.parameter_kinds[relation] = kinds
        self.relations.append(Relation(relation, columns(len(names), tuple(names)), form.at))
        self.bindings.append(Atom(relation, tuple(VariableTerm(name, form.at) for name in names), form.at))

    def check_bound(self, form: Form, body: Conjunction) -> None:
        """Raise UnsafeRule if a variable behind :with does not occur in the clauses."""
        if variable_name(form) not in names_in(body):
            hint = "Use it in a clause of :where, or leave it out."
            raise failure(UnsafeRule, f"variable {form.value} behind :with is not bound", form.at, hint=hint)


def joins_of(forms: list[Form]) -> str:
    """Return the join hint of `:joins hector ?a ?b ?c`: a strategy, and for Hector an order of variables."""
    words = [str(form.value).removeprefix("?") for form in forms]
    try:
        if words:
            check_hint(" ".join(words))
    except BadPlan as error:
        raise failure(ParseError, error.what, forms[0].at, hint=error.hint) from None
    return " ".join(words)
