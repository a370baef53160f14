"""EDN queries with parameters, rewritten as queries over a relation of parameters.

    [:find ?speed :in ?x :where [?x :device/speed ?speed]]          also written  [<x> :device/speed ?speed]
    [:find ?token ?speed :where [?x :device/speed ?speed] (parameters ?token ?x)]

A tenant's token precedes its parameters and its results, so that one dataflow answers all tenants. Lifting constants
works alike: it turns the constants of patterns into parameters. Queries that differ only in them have the same shape.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kpg.errors import ParseError
from kpg.query.edn.clauses import COMPARE, is_group, variable_name
from kpg.query.edn.edn_reader import Form
from kpg.query.edn.queries import EdnQueryParser
from kpg.query.edn.structure import is_query, sections_of
from kpg.query.ir.literals import Comparison, atoms, subformulas
from kpg.query.ir.program import Program, Relation, RelationColumn
from kpg.query.ir.terms import Kind, VariableTerm
from kpg.query.source_text import failure

TOKEN = " token"  # the token column, first in parameters and answers; users cannot name a column like this
CONSTANT_KINDS = ("number", "float", "string", "bool")


@dataclass(frozen=True, slots=True)
class Template:
    """A query, the names of its parameters, and the values of parameters lifted from constants."""

    query: Form
    names: tuple[str, ...]
    values: tuple[Any, ...] = ()


def template_of(forms: list[Form]) -> Template | None:
    """Return the query among some forms if it has parameters."""
    query = next((form for form in forms if is_query(form)), None)
    names = () if query is None else parameters_of(query)
    return Template(query, names) if query is not None and names else None


def parameters_of(query: Form) -> tuple[str, ...]:
    """Return the names of a query's parameters: those after :in, and those in angle brackets."""
    names: dict[str, None] = {}  # ordered
    for form in sections_of(query).get(":in", []):
        if form.is_symbol("$", "%"):
            continue
        if form.kind != "symbol":
            hint = "Declare one value, and give the interest several arguments."
            raise failure(ParseError, "a standing query cannot have a list as parameter", form.at, hint=hint)
        names[variable_name(form)] = None
    stack = [query]
    while stack:
        form = stack.pop()
        if form.kind in ("list", "vector"):
            stack += reversed(form.value)
        elif is_bracketed(form):
            names[form.value[1:-1]] = None
    return tuple(names)


def is_bracketed(form: Form) -> bool:
    """Whether a form is a parameter such as <x>."""
    return form.kind == "symbol" and len(form.value) > 2 and form.value[0] == "<" and form.value[-1] == ">"


def lift_constants(query: Form) -> Template:
    """Replace the constants in a query's patterns and rule calls by parameters."""
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
        for index, item in enumerate(form.value):
            if item.kind in CONSTANT_KINDS and not (pattern and index == 1):
                items.append(Form("symbol", f"<constant {len(values)}>", item.at))
                values.append(item.value)
            else:
                items.append(item)
        return replace(form, value=tuple(items))

    section, items = "", []
    for form in query.value:
        section = form.value if form.kind == "keyword" else section
        items.append(lift(form) if section == ":where" and form.kind != "keyword" else form)
    names = tuple(f"constant {number}" for number in range(len(values)))
    return Template(replace(query, value=tuple(items)), names, tuple(values))


def shape(form: Form) -> str:
    """Return a form as text without source positions, so that equal queries have equal text."""
    if form.kind in ("list", "vector"):
        return f"{form.kind[0]}({' '.join(map(shape, form.value))})"
    return f"{form.kind[0]}{form.value!r}"


# Templates as programs


def read_template(
    template: Template,
    name: str,
    attributes: dict[str, tuple[Kind, ...]],
    elsewhere: dict[str, tuple[Kind, ...]],
    rules: list[Form],
) -> tuple[Program, Relation]:
    """Return the program of a query over its parameters, and the relation of parameters."""
    relation = f"@parameters of {name}"
    query = with_parameters(template, relation)
    number: Kind = "number"
    assumed: tuple[Kind, ...] = (number,) * (1 + len(template.names))
    program = EdnQueryParser(attributes, {}, name, {**elsewhere, relation: assumed}).program(rules, [query])
    kinds = parameter_kinds(template.names, program)
    if ("number", *kinds) != assumed:
        program = EdnQueryParser(attributes, {}, name, {**elsewhere, relation: ("number", *kinds)}).program(
            rules, [query]
        )
    columns = (RelationColumn(TOKEN, "number", "number"), *map(RelationColumn, template.names, kinds, kinds))
    return program, Relation(relation, columns, template.query.at)


def with_parameters(template: Template, relation: str) -> Form:
    """Add a clause for the parameters to a query, and the token in front of its results."""
    at = template.query.at
    token = Form("symbol", f"?{TOKEN}", at)
    parameters = tuple(Form("symbol", f"?{name}", at) for name in template.names)
    clause = Form("list", (Form("symbol", relation, at), token, *parameters), at)
    sections = sections_of(template.query)
    if not sections.get(":where"):
        raise failure(ParseError, "the query has no :where", at)
    find = [token, *map(without_brackets, sections[":find"])]
    where = [clause, *(bind_parameters(form, template.names, clause) for form in sections[":where"])]
    kept = {":find": find, ":with": sections.get(":with", []), ":where": where}
    items = [form for word, forms in kept.items() if forms for form in (Form("keyword", word, at), *forms)]
    return Form("vector", tuple(items), at)


def without_brackets(form: Form) -> Form:
    """Replace parameters in angle brackets by variables."""
    if form.kind in ("list", "vector"):
        return replace(form, value=tuple(map(without_brackets, form.value)))
    return replace(form, value=f"?{form.value[1:-1]}") if is_bracketed(form) else form


def bind_parameters(form: Form, names: tuple[str, ...], clause: Form) -> Form:
    """Add the parameter clause to every branch of an `or` that reads parameters."""
    if not is_group(form):
        return without_brackets(form)
    word, *inner = form.value
    branches = [bind_parameters(branch, names, clause) for branch in inner]
    if word.value in ("or", "or-join") and any(mentions(branch, names) for branch in branches):
        joined = branches.pop(0) if word.value == "or-join" else None
        conjunction = Form("symbol", "and", form.at)
        branches = [Form("list", (conjunction, branch, clause), form.at) for branch in branches]
        if joined is not None:
            present = {variable_name(variable) for variable in joined.value}
            missing = [variable for variable in clause.value[1:] if variable_name(variable) not in present]
            branches.insert(0, replace(joined, value=(*joined.value, *missing)))
    return replace(form, value=(word, *branches))


def mentions(form: Form, names: tuple[str, ...]) -> bool:
    """Whether a form contains one of some variables."""
    if form.kind in ("list", "vector"):
        return any(mentions(inner, names) for inner in form.value)
    return form.kind == "symbol" and variable_name(form) in names


def parameter_kinds(names: tuple[str, ...], program: Program) -> tuple[Kind, ...]:
    """Infer the kinds of parameters from the columns they are used in; a number if no use determines it."""
    kinds: dict[str, Kind] = {}
    relations = program.by_name()
    for rule in program.rules:
        in_rule: dict[str, Kind] = {}
        for atom, _ in atoms(rule.body):
            if not atom.relation.startswith("@"):
                for term, column in zip(atom.arguments, relations[atom.relation].columns, strict=True):
                    if isinstance(term, VariableTerm):
                        in_rule.setdefault(term.name, column.kind)
        for part in subformulas(rule.body):
            if isinstance(part, Comparison):
                for this, that in ((part.left, part.right), (part.right, part.left)):
                    if isinstance(this, VariableTerm) and isinstance(that, VariableTerm) and that.name in in_rule:
                        in_rule.setdefault(this.name, in_rule[that.name])
        kinds = in_rule | kinds
    return tuple(kinds.get(name, "number") for name in names)
