"""The three rule languages: read a text as a checked program over the existing relations of a service.

    read_rules(language, text, name, existing)    the text's own relations, rules and reductions

`existing` holds base relations and earlier rules by name. The function compiles the program to check it, and changes
nothing else. A Datalog rule may omit its declaration: its columns are then named after the variables of its first head,
and their kinds are inferred. Facts in a text become rules without a body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from kpg.errors import NameTaken, ParseError, ProgramError, TypeMismatch, UndefinedName
from kpg.query.datalog import parse
from kpg.query.edn import Attribute
from kpg.query.edn.edn_reader import Form, read_forms
from kpg.query.edn.queries import EdnQueryParser
from kpg.query.edn.structure import is_query
from kpg.query.ir.compile import compile
from kpg.query.ir.constructors import Constructor, UserFunctor
from kpg.query.ir.infer_column_kinds import infer_column_kinds
from kpg.query.ir.literals import Atom, Conjunction, Disjunction, Formula, Negation, Truth, aggregates, subformulas
from kpg.query.ir.program import (
    AggregateReduction,
    Directive,
    Fact,
    NamedType,
    Program,
    Relation,
    RelationColumn,
    Rule,
)
from kpg.query.ir.rewrites.single_head import single_head
from kpg.query.ir.terms import ConstantTerm, Kind, VariableTerm
from kpg.query.json_plans.plan_rules import parse_plans
from kpg.query.source_text import did_you_mean, failure
from kpg.service.limits import TextLimits
from kpg.service.relation_declarations import is_attribute
from kpg.service.templates import TOKEN, Template, read_template, template_of

Language = Literal["datalog", "edn", "plan"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
DEFAULT_TEXT_LIMITS = TextLimits()
CONNECTIVES = (Conjunction, Disjunction, Negation)
MAX_NAME_CHARACTERS = 1_000  # the protocol's limit for names
DEFAULT_QUERY_NAME = "query"
Kinds: TypeAlias = dict[str, tuple[Kind, ...]]


@dataclass(frozen=True, slots=True)
class RuleText:
    """A checked text: its own relations and rules, which may read relations outside of it."""

    names: tuple[str, ...]  # the relations that clients can ask for
    relations: tuple[Relation, ...]
    rules: tuple[Rule, ...]
    reductions: tuple[AggregateReduction, ...]
    bases: tuple[Relation, ...] = ()  # declared and not derived: base relations to create
    parameters: Relation | None = None  # of a query with parameters: the relation of tokens and values
    query: Form | None = None  # of an EDN query: its source form
    types: tuple[NamedType, ...] = ()
    constructors: tuple[Constructor, ...] = ()  # of the records and algebraic types that its rules use
    functors: tuple[UserFunctor, ...] = ()


def read_rules(
    language: str,
    text: str,
    name: str | None,
    existing: Mapping[str, Relation],
    limits: TextLimits = DEFAULT_TEXT_LIMITS,
) -> RuleText:
    """Read and check a text; raise if anything in it is wrong. Directives that name files are refused."""
    limits.check_characters(text)
    try:
        rule_text = read_language(language, text, name, existing, limits)
    except RecursionError:
        raise ParseError("the text is nested too deep", hint="Move inner parts into rules of their own.") from None
    check_names(rule_text)
    return rule_text


def check_names(text: RuleText) -> None:
    """Raise if a name is too long for messages, not printable, or reserved."""
    for relation in (*text.relations, *text.bases):
        for name in (relation.name, *(column.name for column in relation.columns)):
            if len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
                hint = f"A name has at most {MAX_NAME_CHARACTERS:,} characters, and no control characters."
                raise failure(ParseError, f"{name[:40]!r} cannot be a name", relation.at, hint=hint)
            if name == TOKEN and text.parameters is None:
                raise failure(ParseError, f"{name!r} cannot be a name", relation.at, hint="Leave out the space.")


def read_language(
    language: str, text: str, name: str | None, existing: Mapping[str, Relation], limits: TextLimits
) -> RuleText:
    """Read a text in the given language."""
    if language == "datalog":
        return read_datalog(text, name or "rules", existing, limits)
    if language == "edn":
        forms = read_forms(text)
        for form in forms:
            if is_query(form):
                limits.check_literals(len(form.value))  # before the time of a query that is too long is spent
        return read_edn(forms, name or DEFAULT_QUERY_NAME, existing, limits=limits)
    if language == "plan":
        attributes, elsewhere = split_attributes(existing)
        columns = {attribute: Attribute(*kinds) for attribute, kinds in attributes.items()}
        return compile_text(parse_plans(text, columns, elsewhere=elsewhere), existing, limits)
    raise ProgramError(f"no rule language is called {language!r}", hint=did_you_mean(language, LANGUAGES))


def read_edn(
    forms: list[Form],
    name: str,
    existing: Mapping[str, Relation],
    template: Template | None = None,
    limits: TextLimits = DEFAULT_TEXT_LIMITS,
) -> RuleText:
    """Read rules, a query, or both in EDN; a query with parameters reads a relation of parameters."""
    attributes, elsewhere = split_attributes(existing)
    template = template or template_of(forms)
    queries = [form for form in forms if is_query(form)]
    if template is None:
        text = compile_text(EdnQueryParser(attributes, {}, name, elsewhere).program([], forms), existing, limits)
        return replace(text, query=queries[0]) if queries else text
    rules = [form for form in forms if not is_query(form)]
    program, parameters = read_template(template, name, attributes, elsewhere, rules)
    text = compile_text(program, {**existing, parameters.name: parameters}, limits)
    return replace(text, parameters=parameters, query=template.query)


def split_attributes(existing: Mapping[str, Relation]) -> tuple[Kinds, Kinds]:
    """Return the column kinds of attributes, and those of all other relations."""
    attributes: Kinds = {}
    others: Kinds = {}
    for name, relation in existing.items():
        (attributes if is_attribute(name) else others)[name] = kinds_of(relation)
    return attributes, others


def check_literals(rules: Iterable[Rule], limits: TextLimits) -> None:
    """Raise if a rule has too many atoms and conditions."""
    for rule in rules:
        in_heads = sum(literals_of(aggregate.body) for head in rule.heads for aggregate in aggregates(head))
        limits.check_literals(literals_of(rule.body) + in_heads)


def literals_of(formula: Formula) -> int:
    """Return the number of atoms and conditions of a formula, with those in its aggregates."""
    own = sum(not isinstance(part, CONNECTIVES) for part in subformulas(formula))
    return own + sum(literals_of(aggregate.body) for aggregate in aggregates(formula))


def compile_text(program: Program, existing: Mapping[str, Relation], limits: TextLimits) -> RuleText:
    """Check a program by compiling it, and return the relations and rules that are its own."""
    check_literals(program.rules, limits)
    refuse_taken(program, existing)
    own = tuple(relation for relation in program.relations if relation.name not in existing)
    program = replace(program, rules=(*program.rules, *facts_as_rules(program.facts)), facts=(), derives_facts=True)
    compile(program)
    text = RuleText(tuple(program.outputs()), own, program.rules, program.reductions)
    return with_unique_names(with_declarations(text, program))


def kinds_of(relation: Relation) -> tuple[Kind, ...]:
    """Return the kinds of a relation's columns."""
    return tuple(column.kind for column in relation.columns)


def refuse_taken(program: Program, existing: Mapping[str, Relation]) -> None:
    """Raise if a rule has the name of an existing relation."""
    for rule in program.rules:
        for head in rule.heads:
            if head.relation in existing:
                hint = "Choose another name, or unregister that one first."
                raise failure(NameTaken, f"{head.relation!r} exists already", head.at, hint=hint)


def facts_as_rules(facts: tuple[Fact, ...]) -> tuple[Rule, ...]:
    """Return facts as rules that always hold."""
    rules = []
    for fact in facts:
        terms = tuple(ConstantTerm(value, literal_kind(value), fact.at) for value in fact.values)
        body = Conjunction((Truth(True, fact.at),), fact.at)
        rules.append(Rule((Atom(fact.relation, terms, fact.at),), body, fact.at))
    return tuple(rules)


def literal_kind(value: object) -> Kind | None:
    """Return the kind of a literal; None for an integer, which may be of any numeric kind."""
    if isinstance(value, bool):
        return "bool"
    return "symbol" if isinstance(value, str) else "float" if isinstance(value, float) else None


# Datalog


def read_datalog(text: str, name: str, existing: Mapping[str, Relation], limits: TextLimits) -> RuleText:
    """Read rules in Datalog."""
    parsed = parse(text, name, includes=False)
    limits.check_rules(len(parsed.rules))
    limits.check_facts(len(parsed.facts))
    check_literals(parsed.rules, limits)
    for directive in parsed.directives:
        if directive.options:
            what = f"options of .{directive.kind} are not accepted here: no files are read or written"
            raise failure(ParseError, what, directive.at, hint="Leave the options out.")
    program = single_head(replace(parsed, rules=(*parsed.rules, *facts_as_rules(parsed.facts)), facts=()))
    refuse_taken(program, existing)
    for relation in program.relations:
        check_redeclaration(relation, existing)
    declared = [relation for relation in program.relations if relation.name not in existing]
    inline = {relation.name for relation in program.relations if relation.inline}
    derived = [head.relation for rule in program.rules for head in rule.heads]
    heads = dict.fromkeys(name for name in derived if name not in inline)
    bases = [relation for relation in declared if relation.name not in heads and not relation.inline]
    if not heads and not bases:
        raise ParseError("the text has no rule and no declaration", hint="A rule is written p(x) :- q(x, _).")
    in_text = {relation.name for relation in program.relations}
    undeclared = [infer_relation(head, program.rules) for head in heads if head not in in_text]
    wanted = [directive.relation for directive in program.directives if directive.kind != "input"]
    inputs = [*existing, *(relation.name for relation in bases)]
    names = tuple(dict.fromkeys(wanted)) or tuple(heads)
    for relation_name in wanted:
        if relation_name in existing:
            names = tuple(other for other in names if other != relation_name)
    program = replace(
        program,
        relations=(*existing.values(), *declared, *undeclared),
        derives_facts=True,
        directives=(*(Directive("input", base) for base in inputs), *(Directive("output", head) for head in heads)),
    )
    if undeclared:
        fixed = {relation.name: kinds_of(relation) for relation in (*existing.values(), *declared)}
        inferred = infer_column_kinds(program, fixed).by_name()
        undeclared = [inferred[relation.name] for relation in undeclared]
        program = replace(program, relations=(*existing.values(), *declared, *undeclared))
    compile(program)
    outside = {relation.name for relation in bases}
    own = [with_plain_types(relation) for relation in (*declared, *undeclared) if relation.name not in outside]
    text_of_rules = RuleText(names, tuple(own), program.rules, (), tuple(map(with_plain_types, bases)))
    return with_declarations(text_of_rules, program)


def check_functors(declared: tuple[UserFunctor, ...], functions: Mapping[str, object]) -> None:
    """Raise UndefinedName if a text declares a functor for which the service has no function."""
    for functor in declared:
        if functor.name not in functions:
            hint = did_you_mean(functor.name, functions) or "Start the server with --functors MODULE.py."
            raise failure(UndefinedName, f"functor @{functor.name} has no function here", functor.at, hint=hint)


def with_declarations(text: RuleText, program: Program) -> RuleText:
    """Return a text with the types and functors that its program declares."""
    return replace(text, types=program.types, constructors=program.constructors, functors=program.functors)


def check_redeclaration(relation: Relation, existing: Mapping[str, Relation]) -> None:
    """Raise if a declaration contradicts that of an existing relation."""
    earlier = existing.get(relation.name)
    if earlier is not None and kinds_of(earlier) != kinds_of(relation):
        columns = ", ".join(f"{column.name}: {column.kind}" for column in earlier.columns)
        raise failure(
            TypeMismatch, f"{relation.name!r} is already declared with other columns", relation.at,
            hint=f"It is {relation.name}({columns}).",
        )  # fmt: skip


def infer_relation(name: str, rules: tuple[Rule, ...]) -> Relation:
    """Return a relation for undeclared rules: its columns are named after the variables of the first head."""
    head = next(head for rule in rules for head in rule.heads if head.relation == name)
    columns: list[RelationColumn] = []
    for index, term in enumerate(head.arguments):
        column_name = term.name if isinstance(term, VariableTerm) else f"c{index}"
        taken = any(column.name == column_name for column in columns)
        columns.append(RelationColumn(f"c{index}" if taken else column_name, "number", "number", head.at))
    return Relation(name, tuple(columns), head.at)


def with_plain_types(relation: Relation) -> Relation:
    """Return the relation with kinds for types, because type names are local to each text."""
    return replace(relation, columns=tuple(replace(column, type=column.kind) for column in relation.columns))


# Names that the front ends generate


def with_unique_names(text: RuleText) -> RuleText:
    """Append the text's first name to generated relation names, so that they differ from those of other texts."""
    if not text.names:
        raise ParseError("the text has no rule and no query", hint="Add a rule or a query.")
    suffix = f" of {text.names[0]}"
    generated = [relation.name for relation in text.relations if relation.name.startswith("@")]
    names = {name: name.removesuffix(suffix) + suffix for name in generated}
    if not names:
        return text
    return replace(
        text,
        relations=tuple(replace(relation, name=names.get(relation.name, relation.name)) for relation in text.relations),
        rules=tuple(rename_in_rule(rule, names) for rule in text.rules),
        reductions=tuple(
            replace(
                reduction,
                relation=names.get(reduction.relation, reduction.relation),
                source=names.get(reduction.source, reduction.source),
            )
            for reduction in text.reductions
        ),
    )


def rename_in_rule(rule: Rule, names: Mapping[str, str]) -> Rule:
    """Return a rule with some relations renamed."""
    heads = tuple(replace(head, relation=names.get(head.relation, head.relation)) for head in rule.heads)
    return replace(rule, heads=heads, body=rename_in_formula(rule.body, names))


def rename_in_formula(formula: Formula, names: Mapping[str, str]) -> Formula:
    """Return a formula with some relations renamed."""
    match formula:
        case Atom():
            return replace(formula, relation=names.get(formula.relation, formula.relation))
        case Negation():
            return replace(formula, formula=rename_in_formula(formula.formula, names))
        case Conjunction() | Disjunction():
            return replace(formula, parts=tuple(rename_in_formula(part, names) for part in formula.parts))
    return formula
