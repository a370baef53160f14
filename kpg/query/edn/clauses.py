"""Where clauses as formulas: data patterns, rules, predicates, functions, not, or, and.

    [?x :person/name "Ann"]    an atom of the relation :person/name      (knows ?x ?y)   an atom of the rule knows
    [(< ?a ?b)] or (< ?a ?b)   a comparison                              [(+ ?a 1) ?b]   an equation
    (not ...)  (or ...)        a relation of their own, of the variables that they share with what is around them

A variable is a symbol with or without a leading `?`, so that `b` and `?b` are the same; `_` is any value; `<x>` is the
parameter x; `...` as the last argument stands for all arguments that are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kpg.errors import ParseError, UndefinedName
from kpg.query.edn.edn_reader import Form
from kpg.query.ir.body_variables import bound_by
from kpg.query.ir.literals import Atom, Comparison, Conjunction, Formula, Negation, variables
from kpg.query.ir.program import Relation, RelationColumn, Rule
from kpg.query.ir.terms import CallTerm, ConstantTerm, Kind, Term, Value, VariableTerm, WildcardTerm
from kpg.query.source_text import did_you_mean, failure

COMPARE = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "=": "=", "==": "=", "!=": "!=", "not=": "!=", "<>": "!="}
FUNCTIONS = {
    "+": "+", "-": "-", "*": "*", "/": "/", "quot": "/", "rem": "%", "min": "min", "max": "max", "str": "cat",
    "subs": "substr", "strlen": "strlen", "to-number": "to_number", "to-string": "to_string", "range": "range",
}  # fmt: skip


@dataclass(slots=True)
class Clauses:
    """What is known while clauses are read: attributes, rules by arity, parameters; and what not and or made."""

    attributes: dict[str, tuple[Kind, ...]]
    rules: dict[str, int]
    parameters: dict[str, Value]
    fixed: frozenset[str] = frozenset()  # variables of what is being read that are parameters
    relations: list[Relation] = field(default_factory=list)
    made: list[Rule] = field(default_factory=list)

    def conjunction(self, forms: tuple[Form, ...], form: Form, around: set[str]) -> Conjunction:
        """All of some clauses; `around` are the variables known outside of them."""
        parts: list[Formula | None] = [None if is_group(each) else self.plain(each) for each in forms]
        here = around | {name for part in parts if part is not None for name in names_in(part)}
        for each in forms:  # what an or binds can be used by a not beside it
            if is_group(each) and each.value[0].value in ("or", "or-join"):
                here |= common_names(each)
        done: list[Formula] = []
        for part, each in zip(parts, forms, strict=True):
            made = part if part is not None else self.group(each, here, [part for part in parts if part is not None])
            done += made.parts if isinstance(made, Conjunction) else [made]
        return Conjunction(tuple(done), form.at)

    def plain(self, form: Form) -> Formula:
        """A clause that stands for itself."""
        if form.kind == "vector":
            return self.bracketed(form)
        if form.kind == "list" and form.value and form.value[0].kind == "symbol":
            name, arguments = form.value[0], form.value[1:]
            if name.value in COMPARE:
                return self.comparison(name, arguments)
            return self.rule_atom(name, arguments)
        hint = "A clause is [?e :attribute ?v], (rule ?x) or (not ...)."
        raise failure(ParseError, "not a clause", form.at, hint=hint)

    def bracketed(self, form: Form) -> Formula:
        """A data pattern, a predicate or a function."""
        items: tuple[Form, ...] = form.value
        if items and items[0].kind == "list":
            return self.computed(form, items)
        if not 2 <= len(items) <= 3 or items[1].kind != "keyword":
            hint = "A pattern is [?entity :attribute ?value]."
            raise failure(ParseError, "not a data pattern", form.at, hint=hint)
        name = items[1]
        if name.value not in self.attributes:
            nearest = did_you_mean(name.value, self.attributes)
            raise failure(UndefinedName, f"no attribute is called {name.value}", name.at, hint=nearest)
        value = self.term(items[2]) if len(items) == 3 else WildcardTerm(form.at)
        return Atom(name.value, (self.term(items[0]), value), form.at)

    def computed(self, form: Form, items: tuple[Form, ...]) -> Formula:
        """`[(< ?a ?b)]` or `[(+ ?a ?b) ?c]`"""
        call = items[0]
        if not call.value or call.value[0].kind != "symbol" or len(items) > 2:
            hint = "Write [(< ?a ?b)] or [(+ ?a 1) ?b]."
            raise failure(ParseError, "not a predicate or function", form.at, hint=hint)
        name = call.value[0]
        if len(items) == 1:
            if name.value in COMPARE:
                return self.comparison(name, call.value[1:])
            raise failure(UndefinedName, f"no predicate is called {name.value!r}", name.at,
                          hint=did_you_mean(name.value, COMPARE))  # fmt: skip
        if name.value in ("ground", "identity") and len(call.value) == 2:
            return Comparison("=", self.term(items[1]), self.term(call.value[1]), form.at)
        if name.value not in FUNCTIONS:
            nearest = did_you_mean(name.value, FUNCTIONS)
            raise failure(UndefinedName, f"no function is called {name.value!r}", name.at, hint=nearest)
        arguments = tuple(map(self.term, call.value[1:]))
        return Comparison("=", self.term(items[1]), CallTerm(FUNCTIONS[name.value], arguments, None, call.at), form.at)

    def comparison(self, name: Form, arguments: tuple[Form, ...]) -> Formula:
        """`(< ?a ?b)`"""
        if len(arguments) != 2:
            raise failure(ParseError, f"{name.value} compares two values, not {len(arguments)}", name.at)
        return Comparison(COMPARE[name.value], self.term(arguments[0]), self.term(arguments[1]), name.at)

    def rule_atom(self, name: Form, arguments: tuple[Form, ...]) -> Atom:
        """`(knows ?a ?b)`; `...` fills up with wildcards."""
        if name.value not in self.rules:
            hint = did_you_mean(name.value, [*self.rules, "not", "or", "and", *COMPARE])
            raise failure(UndefinedName, f"no rule is called {name.value!r}", name.at, hint=hint)
        if arguments and arguments[-1].is_symbol("..."):
            missing = max(0, self.rules[name.value] - len(arguments) + 1)
            terms = (*map(self.term, arguments[:-1]), *(WildcardTerm(arguments[-1].at),) * missing)
        else:
            terms = tuple(map(self.term, arguments))
        return Atom(name.value, terms, name.at)

    def group(self, form: Form, around: set[str], beside: list[Formula]) -> Formula:
        """`(not ...)`, `(or ...)`, `(and ...)`, and the joins that name their variables."""
        word, *inside = form.value
        shared: set[str] | None = None
        if word.value.endswith("-join"):
            if not inside or inside[0].kind != "vector":
                raise failure(ParseError, f"{word.value} names its variables first", word.at, hint="As in [?x ?y].")
            shared = {variable_name(each) for each in inside.pop(0).value}
        if not inside:
            raise failure(ParseError, f"{word.value} of nothing", word.at)
        if word.value == "and":
            return self.conjunction(tuple(inside), form, around)
        if word.value.startswith("not"):
            body = self.conjunction(tuple(inside), form, around)
            names = sorted(set(names_in(body)) & (around if shared is None else shared))
            if not set(names) <= bound_by(body.parts):  # what is beside it says which values matter
                body = Conjunction((*(part for part in beside if isinstance(part, Atom)), *body.parts), form.at)
            return Negation(self.relation_of("not", names, [body], form), form.at)
        bodies = [self.conjunction((each,), form, around) for each in inside]
        common = set.intersection(*[set(names_in(body)) for body in bodies])
        names = sorted(common if shared is None else shared)
        return self.relation_of("or", names, bodies, form)

    def relation_of(self, word: str, names: list[str], bodies: list[Conjunction], form: Form) -> Atom:
        """A relation of some variables that holds where one of some bodies does."""
        name = f"@{word}.{len(self.relations) + 1}"
        head = Atom(name, tuple(VariableTerm(each, form.at) for each in names), form.at)
        self.relations.append(
            Relation(name, tuple(RelationColumn(each, "", "number") for each in names), form.at, made=True)
        )
        self.made += [Rule((head,), body, form.at) for body in bodies]
        return head

    def term(self, form: Form) -> Term:
        """A variable, a wildcard, a parameter or a constant."""
        match form.kind:
            case "number":
                return ConstantTerm(form.value, None, form.at)
            case "float":
                return ConstantTerm(form.value, "float", form.at)
            case "string" | "keyword":
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
        raise failure(ParseError, "not a variable or a value", form.at)

    def parameter(self, name: str, form: Form) -> ConstantTerm:
        """The value that a parameter was given."""
        if name not in self.parameters:
            hint = did_you_mean(name, self.parameters) or "Give it with parameters={...}."
            raise failure(UndefinedName, f"no parameter is called {name!r}", form.at, hint=hint)
        value = self.parameters[name]
        kind: Kind | None = "bool" if isinstance(value, bool) else "symbol" if isinstance(value, str) else None
        return ConstantTerm(value, "float" if isinstance(value, float) else kind, form.at)


def is_group(form: Form) -> bool:
    """Whether a clause is made of clauses."""
    words = ("not", "or", "and", "not-join", "or-join")
    return form.kind == "list" and bool(form.value) and form.value[0].is_symbol(*words)


def names_in(formula: Formula) -> list[str]:
    """The names of the variables of a formula, each once, in order."""
    return list(dict.fromkeys(variable.name for variable in variables(formula)))


def symbols_in(form: Form) -> set[str]:
    """The variables that are written in a form."""
    if form.kind in ("list", "vector"):
        return set().union(*map(symbols_in, form.value))
    return {variable_name(form)} if form.kind == "symbol" and form.value.startswith("?") else set()


def common_names(form: Form) -> set[str]:
    """The variables that are in every part of an or."""
    inside = [each for each in form.value[1:] if not (form.value[0].is_symbol("or-join") and each is form.value[1])]
    return set.intersection(*map(symbols_in, inside)) if inside else set()


def variable_name(form: Form) -> str:
    """The name of a variable, without its question mark."""
    if form.kind != "symbol":
        raise failure(ParseError, "not a variable", form.at, hint="A variable is written ?x.")
    return str(form.value).removeprefix("?") or "?"
