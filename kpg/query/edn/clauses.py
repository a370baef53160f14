"""Parse where clauses into formulas: data patterns, rules, predicates, functions, not, or, and.

    [?x :person/name "Ann"]    an atom of the relation :person/name      (knows ?x ?y)   an atom of the rule knows
    [(< ?a ?b)] or (< ?a ?b)   a comparison                              [(+ ?a 1) ?b]   an equation
    (not ...)  (or ...)        a generated relation, of the variables shared with the clauses around it

A variable is a symbol with or without a leading `?`: `b` and `?b` are the same. `_` is any value, `<x>` the parameter
x, and `...` as the last argument stands for all omitted arguments. `$`, the database, is accepted and ignored. To add a
function, see kpg/query/ir/functors.py, then add its EDN name to `FUNCTIONS`; to add a predicate, see
kpg/query/edn/predicates.py.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any
from uuid import UUID

from kpg.errors import ParseError, TypeMismatch, UndefinedName
from kpg.query.edn.edn_reader import Form
from kpg.query.edn.predicates import PREDICATES
from kpg.query.ir.body_variables import bound_by
from kpg.query.ir.instants import MILLISECONDS, truncated
from kpg.query.ir.literals import Atom, Comparison, Conjunction, Disjunction, Formula, Negation, variables
from kpg.query.ir.program import Relation, RelationColumn, Rule
from kpg.query.ir.resolve_kinds import WRITTEN_AS_TEXT
from kpg.query.ir.terms import NUMBERS, CallTerm, ConstantTerm, Kind, Term, Value, VariableTerm, WildcardTerm
from kpg.query.source_text import did_you_mean, failure, undefined

CHAINED = ("<", "<=", ">", ">=", "=", "==")  # may compare more than two values, each with the next
COMPARE = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "=": "=", "==": "=", "!=": "!=", "not=": "!=", "<>": "!="}
FUNCTIONS = {
    "+": "+", "-": "-", "*": "*", "/": "/", "quot": "/", "rem": "%", "min": "min", "max": "max", "str": "cat",
    "subs": "substr", "strlen": "strlen", "to-number": "to_number", "to-string": "to_string", "range": "range",
}  # fmt: skip
LISTED_ATTRIBUTES = 8  # attributes that an error lists


@dataclass(slots=True)
class ClauseParser:
    """Parses clauses, given attributes, rules by arity and parameters; collects the relations of not and or."""

    attributes: dict[str, tuple[Kind, ...]]
    rules: dict[str, int]
    parameters: dict[str, Value]
    fixed: frozenset[str] = frozenset()  # variables of the current query that are parameters
    relations: list[Relation] = field(default_factory=list)
    generated: list[Rule] = field(default_factory=list)

    def conjunction(self, forms: tuple[Form, ...], form: Form, outside: set[str]) -> Conjunction:
        """Parse clauses that must all hold; `outside` are the variables of the clauses around them."""
        parts: list[Formula | None] = [None if is_group(clause) else self.plain_clause(clause) for clause in forms]
        visible = outside | {name for part in parts if part is not None for name in names_in(part)}
        for clause in forms:  # a not can use the variables that an or beside it binds
            if is_group(clause) and clause.value[0].value in ("or", "or-join"):
                visible |= common_names(clause)
        formulas: list[Formula] = []
        beside = [part for part in parts if part is not None]
        for part, clause in zip(parts, forms, strict=True):
            formula = part if part is not None else self.group(clause, visible, beside)
            formulas += formula.parts if isinstance(formula, Conjunction) else [formula]
        return Conjunction(tuple(formulas), form.at)

    def plain_clause(self, form: Form) -> Formula:
        """Parse a clause that contains no other clauses."""
        if form.kind == "vector":
            return self.vector_clause(form)
        if form.kind == "list" and form.value and form.value[0].kind == "symbol":
            name, arguments = form.value[0], form.value[1:]
            if name.value in COMPARE and name.value not in self.rules:
                return self.comparison(name, arguments)
            return self.rule_atom(name, arguments)
        hint = "A clause is [?e :attribute ?v], (rule ?x) or (not ...)."
        raise failure(ParseError, "not a clause", form.at, hint=hint)

    def vector_clause(self, form: Form) -> Formula:
        """Parse a data pattern, a predicate or a function."""
        items: tuple[Form, ...] = form.value
        if items and items[0].is_symbol("$"):
            items = items[1:]
        if items and items[0].kind == "list":
            return self.call_clause(form, items)
        if len(items) > 3:
            hint = "A pattern is [?entity :attribute ?value]; transactions are not kept as data."
            raise failure(ParseError, f"a data pattern of {len(items)} parts", form.at, hint=hint)
        if len(items) < 2 or items[1].kind not in ("keyword", "symbol"):
            hint = "A pattern is [?entity :attribute ?value]."
            raise failure(ParseError, "not a data pattern", form.at, hint=hint)
        value = self.term(items[2]) if len(items) == 3 else WildcardTerm(form.at)
        if items[1].kind == "symbol":
            return self.any_attribute(form, self.term(items[0]), items[1], value)
        return Atom(self.attribute(items[1]), (self.term(items[0]), value), form.at)

    def attribute(self, form: Form) -> str:
        """Return the attribute that a keyword names, with or without its colon."""
        name = attribute_name(str(form.value), self.attributes) if form.kind == "keyword" else None
        if name is None:
            nearest = did_you_mean(str(form.value), self.attributes)
            raise failure(UndefinedName, f"no attribute is called {form.value}", form.at, hint=nearest)
        return name

    def any_attribute(self, form: Form, entity: Term, attribute: Form, value: Term) -> Formula:
        """Parse `[?e ?attribute ?v]`: the facts of all attributes with the kinds that the other terms allow."""
        named = self.term(attribute)
        if isinstance(named, ConstantTerm):
            return Atom(self.attribute(Form("keyword", str(named.value), attribute.at)), (entity, value), form.at)
        candidates = [
            name
            for name, (entities, values) in self.attributes.items()
            if fits(entity, entities) and fits(value, values)
        ]
        if isinstance(value, VariableTerm) and len({self.attributes[name][1] for name in candidates}) > 1:
            kinds = ", ".join(f"{name}: {self.attributes[name][1]}" for name in candidates[:LISTED_ATTRIBUTES])
            hint = "Name the attribute, or write _ for the value."
            raise failure(TypeMismatch, "the values of these attributes have several kinds", form.at, detail=kinds,
                          hint=hint)  # fmt: skip
        if not candidates:
            raise failure(UndefinedName, "no attribute fits this pattern", form.at, hint="Create an attribute first.")
        terms = {term.name: term for term in (entity, named, value) if isinstance(term, VariableTerm)}
        bodies = []
        for name in candidates:
            parts: list[Formula] = [Atom(name, (entity, value), form.at)]
            if isinstance(named, VariableTerm):
                parts.append(Comparison("=", named, ConstantTerm(name, "symbol", attribute.at), attribute.at))
            bodies.append(Conjunction(tuple(parts), form.at))
        return self.relation_of("any", list(terms), bodies, form)

    def call_clause(self, form: Form, items: tuple[Form, ...]) -> Formula:
        """Parse `[(< ?a ?b)]` or `[(+ ?a ?b) ?c]`."""
        call = items[0]
        if not call.value or call.value[0].kind != "symbol" or len(items) > 2:
            hint = "Write [(< ?a ?b)] or [(+ ?a 1) ?b]."
            raise failure(ParseError, "not a predicate or function", form.at, hint=hint)
        name = call.value[0]
        arguments = tuple(argument for argument in call.value[1:] if not argument.is_symbol("$"))
        if len(items) == 1:
            return self.predicate(name, arguments)
        if name.value in ("ground", "identity") and len(arguments) == 1:
            return self.ground(arguments[0], items[1], form)
        if name.value == "get-else":
            return self.get_else(name, arguments, items[1])
        if name.value in ("truncate", "interval"):
            return self.truncate(name, arguments, items[1])
        if name.value not in FUNCTIONS:
            nearest = did_you_mean(name.value, [*FUNCTIONS, "ground", "get-else", "truncate"])
            raise failure(UndefinedName, f"no function is called {name.value!r}", name.at, hint=nearest)
        terms = tuple(map(self.term, arguments))
        value = CallTerm(FUNCTIONS[name.value], terms, None, call.at, call.span)
        return Comparison("=", self.term(items[1]), value, form.at)

    def predicate(self, name: Form, arguments: tuple[Form, ...]) -> Formula:
        """Parse `(< ?a ?b)`, `(missing? $ ?e :attribute)` or `(clojure.string/starts-with? ?s "a")`."""
        if name.value in COMPARE:
            return self.comparison(name, arguments)
        if name.value == "missing?":
            if len(arguments) != 2:
                hint = "Write (missing? $ ?e :name)."
                raise failure(ParseError, "not a test for a missing value", name.at, hint=hint)
            atom = Atom(self.attribute(arguments[1]), (self.term(arguments[0]), WildcardTerm(name.at)), name.at)
            return Negation(atom, name.at)
        word = name.value.rpartition("/")[2] or name.value
        if word not in PREDICATES:
            nearest = did_you_mean(name.value, [*COMPARE, *PREDICATES, "missing?"])
            raise failure(UndefinedName, f"no predicate is called {name.value!r}", name.at, hint=nearest)
        predicate = PREDICATES[word]
        if len(arguments) != predicate.arguments:
            raise failure(ParseError, f"{word} takes {predicate.arguments} values, not {len(arguments)}", name.at)
        return predicate.formula(tuple(map(self.term, arguments)), name.at)

    def comparison(self, name: Form, arguments: tuple[Form, ...]) -> Formula:
        """Parse `(< ?a ?b)`, or `(< 1 ?a 9)`: each value with the next."""
        if len(arguments) < 2 or (len(arguments) > 2 and name.value not in CHAINED):
            raise failure(
                ParseError, f"{name.value} compares two values, not {len(arguments)}", name.at, hint="Write (< ?a ?b)."
            )
        terms = tuple(map(self.term, arguments))
        parts = [Comparison(COMPARE[name.value], left, right, name.at) for left, right in pairwise(terms)]
        return parts[0] if len(parts) == 1 else Conjunction(tuple(parts), name.at)

    def ground(self, values: Form, target: Form, form: Form) -> Formula:
        """Parse `[(ground 7) ?x]`, or `[(ground [1 2]) [?x ...]]`: each of the values."""
        if target.kind != "vector":
            return Comparison("=", self.term(target), self.term(values), form.at)
        if values.kind != "vector" or len(target.value) != 2 or not target.value[1].is_symbol("..."):
            raise failure(ParseError, "not a list of values", form.at, hint="Write [(ground [1 2 3]) [?x ...]].")
        variable = VariableTerm(variable_name(target.value[0]), target.at)
        equations = [Comparison("=", variable, self.term(value), value.at) for value in values.value]
        bodies = [Conjunction((equation,), form.at) for equation in equations]
        if not bodies:
            raise failure(ParseError, "an empty list of values", values.at, hint="Give at least one value.")
        return self.relation_of("ground", [variable.name], bodies, form)

    def truncate(self, name: Form, arguments: tuple[Form, ...], target: Form) -> Formula:
        """Parse `[(truncate ?t :day) ?d]`: the beginning of an instant's day; without an interval, of its hour."""
        unit = str(arguments[1].value).removeprefix(":") if len(arguments) == 2 else "hour"
        if not 1 <= len(arguments) <= 2 or unit not in MILLISECONDS:
            hint = f"Write (truncate ?t :hour); the intervals are {', '.join(MILLISECONDS)}."
            raise failure(ParseError, f"cannot {name.value} to {unit!r}", name.at, hint=hint)
        return Comparison("=", self.term(target), truncated(self.term(arguments[0]), unit, name.at), name.at)

    def get_else(self, name: Form, arguments: tuple[Form, ...], target: Form) -> Formula:
        """Parse `[(get-else $ ?e :attribute default) ?v]`: the value, or the default if the entity has none."""
        if len(arguments) != 3:
            raise failure(ParseError, "not a value with a default", name.at, hint="Write (get-else $ ?e :age 0).")
        entity, value, default = self.term(arguments[0]), self.term(target), self.term(arguments[2])
        attribute = self.attribute(arguments[1])
        missing = Negation(Atom(attribute, (entity, WildcardTerm(name.at)), name.at), name.at)
        otherwise = Conjunction((missing, Comparison("=", value, default, name.at)), name.at)
        return Disjunction((Atom(attribute, (entity, value), name.at), otherwise), name.at)

    def rule_atom(self, name: Form, arguments: tuple[Form, ...]) -> Atom:
        """Parse `(knows ?a ?b)`; `...` stands for wildcards."""
        if name.value not in self.rules:
            raise undefined("rule", name.value, [*self.rules, "not", "or", "and", *COMPARE], name.at)
        if arguments and arguments[-1].is_symbol("..."):
            missing = max(0, self.rules[name.value] - len(arguments) + 1)
            terms = (*map(self.term, arguments[:-1]), *(WildcardTerm(arguments[-1].at),) * missing)
        else:
            terms = tuple(map(self.term, arguments))
        return Atom(name.value, terms, name.at)

    def group(self, form: Form, outside: set[str], beside: list[Formula]) -> Formula:
        """Parse `(not ...)`, `(or ...)`, `(and ...)`, and the joins that name their variables."""
        word, *items = form.value
        shared: set[str] | None = None
        if word.value.endswith("-join"):
            if not items or items[0].kind != "vector":
                raise failure(ParseError, f"{word.value} names its variables first", word.at, hint="As in [?x ?y].")
            shared = {variable_name(variable) for variable in items.pop(0).value}
        if not items:
            raise failure(
                ParseError, f"{word.value} without clauses", word.at, hint=f"Write ({word.value} clause ...)."
            )
        if word.value == "and":
            return self.conjunction(tuple(items), form, outside)
        if word.value.startswith("not"):
            body = self.conjunction(tuple(items), form, outside)
            names = sorted(set(names_in(body)) & (outside if shared is None else shared))
            if not set(names) <= bound_by(body.parts):  # the atoms beside it bind the rest
                body = Conjunction((*(part for part in beside if isinstance(part, Atom)), *body.parts), form.at)
            return Negation(self.relation_of("not", names, [body], form), form.at)
        bodies = [self.conjunction((item,), form, outside) for item in items]
        common = set.intersection(*[set(names_in(body)) for body in bodies])
        names = sorted(common if shared is None else shared)
        return self.relation_of("or", names, bodies, form)

    def relation_of(self, word: str, names: list[str], bodies: list[Conjunction], form: Form) -> Atom:
        """Add a relation of these variables that holds where one of the bodies does; return its atom."""
        name = f"@{word}.{len(self.relations) + 1}"
        head = Atom(name, tuple(VariableTerm(variable, form.at) for variable in names), form.at)
        columns = tuple(RelationColumn(variable, "", "number") for variable in names)
        self.relations.append(Relation(name, columns, form.at, generated=True))
        self.generated += [Rule((head,), body, form.at) for body in bodies]
        return head

    def term(self, form: Form) -> Term:
        """Parse a variable, a wildcard, a parameter or a constant."""
        match form.kind:
            case "number":
                return ConstantTerm(form.value, None, form.at)
            case "float":
                return ConstantTerm(form.value, "float", form.at)
            case "string" | "keyword" | "regex" | "tagged":
                return ConstantTerm(form.value, "symbol", form.at)
            case "bool":
                return ConstantTerm(form.value, "bool", form.at)
            case "symbol" if form.value == "_":
                return WildcardTerm(form.at)
            case "symbol" if form.value.startswith("<") and form.value.endswith(">"):
                return self.parameter(form.value[1:-1], form)
            case "symbol":
                name = variable_name(form)
                return self.parameter(name, form) if name in self.fixed else VariableTerm(name, form.at)
        raise failure(ParseError, "not a variable or a value", form.at, hint='Write ?x, _, 3, "text" or :keyword.')

    def parameter(self, name: str, form: Form) -> ConstantTerm:
        """Return the value of a parameter."""
        if name not in self.parameters:
            hint = did_you_mean(name, self.parameters) or "Pass it with parameters={...}."
            raise failure(UndefinedName, f"no parameter is called {name!r}", form.at, hint=hint)
        given: Any = self.parameters[name]
        value = str(given) if isinstance(given, (date, Decimal, UUID)) else given  # rules write these as text
        kind: Kind | None = "bool" if isinstance(value, bool) else "symbol" if isinstance(value, str) else None
        return ConstantTerm(value, "float" if isinstance(value, float) else kind, form.at)


def attribute_name(name: str, attributes: Collection[str]) -> str | None:
    """Return the attribute of this name, with or without the colon before it; None if there is none."""
    other = name.removeprefix(":") if name.startswith(":") else f":{name}"
    return name if name in attributes else other if other in attributes else None


def fits(term: Term, kind: Kind) -> bool:
    """Return whether a value of a kind can equal a term; a variable can equal any."""
    if not isinstance(term, ConstantTerm):
        return True
    if term.kind == "symbol" and kind.removesuffix("?").partition("(")[0] in WRITTEN_AS_TEXT:
        return True
    return term.kind == kind.removesuffix("?") if term.kind is not None else kind.removesuffix("?") in NUMBERS


def is_group(form: Form) -> bool:
    """Return whether a clause contains other clauses."""
    words = ("not", "or", "and", "not-join", "or-join")
    return form.kind == "list" and bool(form.value) and form.value[0].is_symbol(*words)


def names_in(formula: Formula) -> list[str]:
    """Return the names of a formula's variables, each once, in order."""
    return list(dict.fromkeys(variable.name for variable in variables(formula)))


def symbols_in(form: Form) -> set[str]:
    """Return the variables written in a form."""
    if form.kind in ("list", "vector"):
        return set().union(*map(symbols_in, form.value))
    return {variable_name(form)} if form.kind == "symbol" and form.value.startswith("?") else set()


def common_names(form: Form) -> set[str]:
    """Return the variables that occur in every alternative of an or."""
    items = [item for item in form.value[1:] if not (form.value[0].is_symbol("or-join") and item is form.value[1])]
    return set.intersection(*map(symbols_in, items)) if items else set()


def variable_name(form: Form) -> str:
    """Return the name of a variable, without its question mark."""
    if form.kind != "symbol":
        raise failure(ParseError, "not a variable", form.at, hint="A variable is written ?x.")
    return str(form.value).removeprefix("?") or "?"
