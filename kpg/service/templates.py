"""Queries in EDN with parameters, and with constants, as queries over a relation of parameters.

    [:find ?speed :in ?x :where [?x :device/speed ?speed]]          also written  [<x> :device/speed ?speed]
    [:find ?token ?speed :where [?x :device/speed ?speed] (parameters ?token ?x)]

The token of a tenant stands in front of its parameters and of its results, so one dataflow answers all tenants. A
constant of a pattern can be lifted likewise: queries that differ in nothing else have the same shape.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kpg.errors import ParseError
from kpg.query.edn.clauses import COMPARE, is_group, variable_name
from kpg.query.edn.edn_reader import Form
from kpg.query.edn.queries import Reading
from kpg.query.edn.structure import is_query, sections_of
from kpg.query.ir.literals import Comparison, atoms
from kpg.query.ir.program import Program, Relation, RelationColumn
from kpg.query.ir.rewrites.check_names import parts
from kpg.query.ir.terms import Kind, VariableTerm
from kpg.query.source_text import failure

TOKEN = " token"  # the column of tokens, first in parameters and answers
CONSTANTS = ("number", "float", "string", "bool")


@dataclass(frozen=True, slots=True)
class Template:
    """A query, the names of its parameters, and the values of those that were constants."""

    query: Form
    names: tuple[str, ...]
    values: tuple[Any, ...] = ()


def template_of(forms: list[Form]) -> Template | None:
    """The query among some forms, if it has parameters."""
    query = next((form for form in forms if is_query(form)), None)
    names = () if query is None else parameters_of(query)
    return Template(query, names) if query is not None and names else None


def parameters_of(query: Form) -> tuple[str, ...]:
    """The parameters of a query: behind :in, and in angle brackets."""
    found: dict[str, None] = {}
    for form in sections_of(query).get(":in", []):
        if form.is_symbol("$", "%"):
            continue
        if form.kind != "symbol":
            hint = "Take one value, and give the interest several arguments."
            raise failure(ParseError, "a list as parameter of a standing query", form.at, hint=hint)
        found[variable_name(form)] = None
    stack = [query]
    while stack:
        form = stack.pop()
        if form.kind in ("list", "vector"):
            stack += reversed(form.value)
        elif in_brackets(form):
            found[form.value[1:-1]] = None
    return tuple(found)


def in_brackets(form: Form) -> bool:
    """Whether a form is a parameter like <x>."""
    return form.kind == "symbol" and len(form.value) > 2 and form.value[0] == "<" and form.value[-1] == ">"


def lift_constants(query: Form) -> Template:
    """A query with parameters in place of the constants in its patterns and rules."""
    values: list[Any] = []

    def lift(form: Form) -> Form:
        if is_group(form):
            return replace(form, value=(form.value[0], *map(lift, form.value[1:])))
        if not form.value or form.kind not in ("vector", "list") or form.value[0].kind == "list":
            return form
        pattern = form.kind == "vector"
        if not pattern and form.value[0].value in COMPARE:
            return form
        items = []
        for place, each in enumerate(form.value):
            if each.kind in CONSTANTS and not (pattern and place == 1):
                items.append(Form("symbol", f"<constant {len(values)}>", each.at))
                values.append(each.value)
            else:
                items.append(each)
        return replace(form, value=tuple(items))

    behind, items = "", []
    for form in query.value:
        behind = form.value if form.kind == "keyword" else behind
        items.append(lift(form) if behind == ":where" and form.kind != "keyword" else form)
    names = tuple(f"constant {place}" for place in range(len(values)))
    return Template(replace(query, value=tuple(items)), names, tuple(values))


def shape(form: Form) -> str:
    """A form as text: equal for queries that are equal but for where they stand."""
    if form.kind in ("list", "vector"):
        return f"{form.kind[0]}({' '.join(map(shape, form.value))})"
    return f"{form.kind[0]}{form.value!r}"


# As a program


def read_template(
    template: Template,
    name: str,
    attributes: dict[str, tuple[Kind, ...]],
    elsewhere: dict[str, tuple[Kind, ...]],
    rules: list[Form],
) -> tuple[Program, Relation]:
    """The program of a query over its parameters, and the relation of these."""
    called = f"@parameters of {name}"
    query = with_parameters(template, called)
    number: Kind = "number"
    guess: tuple[Kind, ...] = (number,) * (1 + len(template.names))
    program = Reading(attributes, {}, name, {**elsewhere, called: guess}).program(rules, [query])
    kinds = kinds_of(template.names, program)
    if ("number", *kinds) != guess:
        program = Reading(attributes, {}, name, {**elsewhere, called: ("number", *kinds)}).program(rules, [query])
    columns = (RelationColumn(TOKEN, "number", "number"), *map(RelationColumn, template.names, kinds, kinds))
    return program, Relation(called, columns, template.query.at)


def with_parameters(template: Template, called: str) -> Form:
    """The query with a clause of its parameters, and the token in front of what it finds."""
    at = template.query.at
    token = Form("symbol", f"?{TOKEN}", at)
    given = tuple(Form("symbol", f"?{name}", at) for name in template.names)
    clause = Form("list", (Form("symbol", called, at), token, *given), at)
    sections = sections_of(template.query)
    if not sections.get(":where"):
        raise failure(ParseError, "a query without :where", at)
    found = [token, *map(bracketless, sections[":find"])]
    where = [clause, *(replaced(form, template.names, clause) for form in sections[":where"])]
    kept = {":find": found, ":with": sections.get(":with", []), ":where": where}
    items = [form for word, forms in kept.items() if forms for form in (Form("keyword", word, at), *forms)]
    return Form("vector", tuple(items), at)


def bracketless(form: Form) -> Form:
    """A form with variables for parameters in angle brackets."""
    if form.kind in ("list", "vector"):
        return replace(form, value=tuple(map(bracketless, form.value)))
    return replace(form, value=f"?{form.value[1:-1]}") if in_brackets(form) else form


def replaced(form: Form, names: tuple[str, ...], clause: Form) -> Form:
    """A clause in which every branch of an `or` that reads parameters is bound to them as well."""
    if not is_group(form):
        return bracketless(form)
    word, *inside = form.value
    made = [replaced(each, names, clause) for each in inside]
    if word.value in ("or", "or-join") and any(mentions(each, names) for each in made):
        named = made.pop(0) if word.value == "or-join" else None
        join = Form("symbol", "and", form.at)
        made = [Form("list", (join, each, clause), form.at) for each in made]
        if named is not None:
            known = {variable_name(each) for each in named.value}
            more = [each for each in clause.value[1:] if variable_name(each) not in known]
            made.insert(0, replace(named, value=(*named.value, *more)))
    return replace(form, value=(word, *made))


def mentions(form: Form, names: tuple[str, ...]) -> bool:
    """Whether a form has one of some variables."""
    if form.kind in ("list", "vector"):
        return any(mentions(each, names) for each in form.value)
    return form.kind == "symbol" and variable_name(form) in names


def kinds_of(names: tuple[str, ...], program: Program) -> tuple[Kind, ...]:
    """What parameters hold, from the places they stand in; a number if nothing tells."""
    found: dict[str, Kind] = {}
    relations = program.by_name()
    for rule in program.rules:
        here: dict[str, Kind] = {}
        for atom, _ in atoms(rule.body):
            if not atom.relation.startswith("@"):
                for term, column in zip(atom.arguments, relations[atom.relation].columns, strict=True):
                    if isinstance(term, VariableTerm):
                        here.setdefault(term.name, column.kind)
        for part in parts(rule.body):
            if isinstance(part, Comparison):
                for this, that in ((part.left, part.right), (part.right, part.left)):
                    if isinstance(this, VariableTerm) and isinstance(that, VariableTerm) and that.name in here:
                        here.setdefault(this.name, here[that.name])
        found = here | found
    return tuple(found.get(name, "number") for name in names)
